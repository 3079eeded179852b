/* The 12 x 12 loops of msa_convert, from one macro for each side. */
#include "tensor/convert.h"

#include <complex.h>
#include <string.h>

typedef float _Complex c64;
typedef double _Complex c128;

/* How each type is read, and the widest value class it is read as: integer, real or complex. */
#define READ_PLAIN(v) (v)
#define READ_BOOL(v) ((v) != 0)
#define READ_BF16(v) msa_from_bfloat16(v)
#define READ_F16(v) ((float)(v))

#define WRITE_BOOL(v) ((v) != 0)
#define WRITE_BF16(v) msa_to_bfloat16((float)(v))
#define WRITE_F16(v) ((_Float16)(float)(v))
#define WRITE_F16_FROM_DOUBLE(v) ((_Float16)(v))

#define LOOP(TO, FROM, EXPRESSION) \
    { \
        TO *t = to; \
        const FROM *f = from; \
        if (to_stride == 1 && from_stride == 1) { \
            for (int64_t i = 0; i < n; i++) { \
                FROM v = f[i]; \
                t[i] = (TO)(EXPRESSION); \
            } \
        } else if (to_stride == 1 && from_stride == 0) { \
            FROM v = f[0]; \
            TO all = (TO)(EXPRESSION); \
            for (int64_t i = 0; i < n; i++) t[i] = all; \
        } else { \
            for (int64_t i = 0; i < n; i++) { \
                FROM v = f[i * from_stride]; \
                t[i * to_stride] = (TO)(EXPRESSION); \
            } \
        } \
    } \
    break;

/* READ gives an arithmetic value of the source; SIGNED narrows floats to unsigned bytes through int64_t. */
#define TO_ALL(FROM, READ, SIGNED) \
    switch (to_type) { \
    case MSA_BOOL: LOOP(uint8_t, FROM, READ != 0) \
    case MSA_UINT8: LOOP(uint8_t, FROM, SIGNED) \
    case MSA_INT8: LOOP(int8_t, FROM, SIGNED) \
    case MSA_INT16: LOOP(int16_t, FROM, SIGNED) \
    case MSA_INT32: LOOP(int32_t, FROM, READ) \
    case MSA_INT64: LOOP(int64_t, FROM, READ) \
    case MSA_FLOAT16: LOOP(_Float16, FROM, (float)(READ)) \
    case MSA_BFLOAT16: LOOP(uint16_t, FROM, msa_to_bfloat16((float)(READ))) \
    case MSA_FLOAT32: LOOP(float, FROM, READ) \
    case MSA_FLOAT64: LOOP(double, FROM, READ) \
    case MSA_COMPLEX64: LOOP(c64, FROM, (float)(READ)) \
    case MSA_COMPLEX128: LOOP(c128, FROM, (double)(READ)) \
    default: break; \
    }

#define FROM_TYPE(NAME, FROM, READ, SIGNED) \
    static void NAME(msa_dtype to_type, void *restrict to, int64_t to_stride, const void *restrict from, \
                     int64_t from_stride, int64_t n) { \
        TO_ALL(FROM, READ, SIGNED) \
    }

FROM_TYPE(from_bool, uint8_t, (v != 0), (v != 0))
FROM_TYPE(from_uint8, uint8_t, v, v)
FROM_TYPE(from_int8, int8_t, v, v)
FROM_TYPE(from_int16, int16_t, v, v)
FROM_TYPE(from_int32, int32_t, v, v)
FROM_TYPE(from_int64, int64_t, v, v)
FROM_TYPE(from_float16, _Float16, ((float)v), ((int64_t)(float)v))
FROM_TYPE(from_bfloat16, uint16_t, msa_from_bfloat16(v), ((int64_t)msa_from_bfloat16(v)))
FROM_TYPE(from_float32, float, v, ((int64_t)v))
FROM_TYPE(from_float64, double, v, ((int64_t)v))

#define COMPLEX_FROM(NAME, FROM, REAL, IS_ZERO) \
    static void NAME(msa_dtype to_type, void *restrict to, int64_t to_stride, const void *restrict from, \
                     int64_t from_stride, int64_t n) { \
        switch (to_type) { \
        case MSA_BOOL: LOOP(uint8_t, FROM, v != 0) \
        case MSA_UINT8: LOOP(uint8_t, FROM, (int64_t)REAL(v)) \
        case MSA_INT8: LOOP(int8_t, FROM, (int64_t)REAL(v)) \
        case MSA_INT16: LOOP(int16_t, FROM, (int64_t)REAL(v)) \
        case MSA_INT32: LOOP(int32_t, FROM, REAL(v)) \
        case MSA_INT64: LOOP(int64_t, FROM, REAL(v)) \
        case MSA_FLOAT16: LOOP(_Float16, FROM, (float)REAL(v)) \
        case MSA_BFLOAT16: LOOP(uint16_t, FROM, msa_to_bfloat16((float)REAL(v))) \
        case MSA_FLOAT32: LOOP(float, FROM, REAL(v)) \
        case MSA_FLOAT64: LOOP(double, FROM, REAL(v)) \
        case MSA_COMPLEX64: LOOP(c64, FROM, v) \
        case MSA_COMPLEX128: LOOP(c128, FROM, v) \
        default: break; \
        } \
    }
COMPLEX_FROM(from_complex64, c64, crealf, )
COMPLEX_FROM(from_complex128, c128, creal, )

static void (*const table[MSA_DTYPES])(msa_dtype, void *, int64_t, const void *, int64_t, int64_t) = {
    [MSA_BOOL] = from_bool,         [MSA_UINT8] = from_uint8,     [MSA_INT8] = from_int8,
    [MSA_INT16] = from_int16,       [MSA_INT32] = from_int32,     [MSA_INT64] = from_int64,
    [MSA_FLOAT16] = from_float16,   [MSA_BFLOAT16] = from_bfloat16, [MSA_FLOAT32] = from_float32,
    [MSA_FLOAT64] = from_float64,   [MSA_COMPLEX64] = from_complex64, [MSA_COMPLEX128] = from_complex128,
};

void msa_convert(msa_dtype to_type, void *to, int64_t to_stride, msa_dtype from_type, const void *from,
                 int64_t from_stride, int64_t n) {
    if (to_type == from_type && to_stride == 1 && from_stride == 1 && to_type != MSA_BOOL)
        memcpy(to, from, (size_t)n * msa_dtype_size(to_type));
    else table[from_type](to_type, to, to_stride, from, from_stride, n);
}
