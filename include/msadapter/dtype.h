/* Element types and scalars. */
#ifndef MSADAPTER_DTYPE_H
#define MSADAPTER_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "msadapter/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The order within each kind is the order of promotion. */
typedef enum {
    MSA_BOOL,
    MSA_UINT8,
    MSA_INT8,
    MSA_INT16,
    MSA_INT32,
    MSA_INT64,
    MSA_FLOAT16,
    MSA_BFLOAT16,
    MSA_FLOAT32,
    MSA_FLOAT64,
    MSA_COMPLEX64,
    MSA_COMPLEX128,
    MSA_DTYPES, /* how many there are */
    MSA_NO_DTYPE = -1,
} msa_dtype;

static inline bool msa_is_complex(msa_dtype d) { return d == MSA_COMPLEX64 || d == MSA_COMPLEX128; }
static inline bool msa_is_floating(msa_dtype d) { return d >= MSA_FLOAT16 && d <= MSA_FLOAT64; }
static inline bool msa_is_inexact(msa_dtype d) { return d >= MSA_FLOAT16; }
/* Integers, and bool where `with_bool`. */
static inline bool msa_is_integral(msa_dtype d, bool with_bool) {
    return d < MSA_FLOAT16 && (with_bool || d != MSA_BOOL);
}

MSA_API size_t msa_dtype_size(msa_dtype d);            /* bytes of an element */
MSA_API const char *msa_dtype_name(msa_dtype d);       /* "float32" */
MSA_API const char *msa_dtype_type_name(msa_dtype d);  /* "Float", as PyTorch's messages name it */
MSA_API msa_dtype msa_dtype_promote(msa_dtype a, msa_dtype b);
MSA_API bool msa_dtype_can_cast(msa_dtype from, msa_dtype to); /* as torch.can_cast: no change of kind downwards */
MSA_API msa_dtype msa_dtype_real(msa_dtype d);         /* complex64 -> float32; others unchanged */
MSA_API msa_dtype msa_dtype_complex(msa_dtype d);      /* float32 -> complex64 */
MSA_API msa_dtype msa_default_dtype(void);             /* float32 unless set */
MSA_API int msa_set_default_dtype(msa_dtype d);

/* A number with the kind it was written in: MSA_BOOL, MSA_INT64, MSA_FLOAT64 or MSA_COMPLEX128. */
typedef struct {
    msa_dtype kind;
    union {
        int64_t i; /* bool too */
        double d;
    };
    double im;
} msa_scalar;

static inline msa_scalar msa_int(int64_t v) { return (msa_scalar){MSA_INT64, {.i = v}, 0}; }
static inline msa_scalar msa_float(double v) { return (msa_scalar){MSA_FLOAT64, {.d = v}, 0}; }
static inline msa_scalar msa_bool_scalar(bool v) { return (msa_scalar){MSA_BOOL, {.i = v}, 0}; }
static inline msa_scalar msa_complex(double re, double im) { return (msa_scalar){MSA_COMPLEX128, {.d = re}, im}; }
static inline double msa_scalar_double(msa_scalar s) { return s.kind >= MSA_FLOAT16 ? s.d : (double)s.i; }
static inline int64_t msa_scalar_int(msa_scalar s) { return s.kind >= MSA_FLOAT16 ? (int64_t)s.d : s.i; }
static inline bool msa_scalar_is_zero(msa_scalar s) {
    return s.kind >= MSA_FLOAT16 ? s.d == 0 && s.im == 0 : s.i == 0;
}
static inline bool msa_scalar_is_one(msa_scalar s) {
    return s.kind >= MSA_FLOAT16 ? s.d == 1 && s.im == 0 : s.i == 1;
}

#ifdef __cplusplus
}
#endif
#endif
