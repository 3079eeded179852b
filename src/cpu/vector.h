/* Vector code without intrinsics: a function marked MSA_VECTOR is compiled for AVX-512, AVX2 and the baseline, and the best
 * version is chosen when the library is loaded. Parallel regions belong into its callers: the outlined body of one inside it
 * would be baseline code. Inline functions used in it must be MSA_INLINE. */
#ifndef MSA_CPU_VECTOR_H
#define MSA_CPU_VECTOR_H

#include "cpu/pointwise_math.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define MSA_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MSA_VECTOR
#endif

/* 32 bytes: an AVX2 register, two of the baseline's. Loads and stores by memcpy: no alignment is asked for. */
typedef float msa_v8f __attribute__((vector_size(32)));
typedef double msa_v4d __attribute__((vector_size(32)));

#endif
