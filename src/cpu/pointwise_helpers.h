/* Small functions that the table's expressions call by F(name): one for each computing type that needs it. */
#ifndef MSA_CPU_POINTWISE_HELPERS_H
#define MSA_CPU_POINTWISE_HELPERS_H

#include <complex.h>
#include <math.h>
#include <stdint.h>

static inline float _Complex c64_conj(float _Complex a) { return conjf(a); }
static inline double _Complex c128_conj(double _Complex a) { return conj(a); }

#endif
