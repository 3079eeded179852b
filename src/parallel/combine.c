/* The loops of combine.h, one for each type and operation. NaN wins minima and maxima only as the left operand, as in
 * gloo. */
#include "parallel/combine.h"

#include "tensor/convert.h"

bool msa_can_combine(msa_reduce_op op, msa_dtype dtype) {
    if (msa_is_complex(dtype)) return op == MSA_SUM;
    return op < MSA_BAND || !msa_is_floating(dtype);
}

#define EACH(EXPRESSION)                                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        x[i] = (EXPRESSION);                                                                                           \
    }                                                                                                                  \
    return

#define ARITHMETIC(name, T, READ, WRITE, SUM, PRODUCT)                                                                 \
    static void name(msa_reduce_op op, T *restrict x, const T *restrict y, int64_t n) {                                \
        switch (op) {                                                                                                  \
        case MSA_PRODUCT:                                                                                              \
            EACH(WRITE(PRODUCT));                                                                                      \
        case MSA_MIN:                                                                                                  \
            EACH(READ(y[i]) < READ(x[i]) ? y[i] : x[i]);                                                               \
        case MSA_MAX:                                                                                                  \
            EACH(READ(x[i]) < READ(y[i]) ? y[i] : x[i]);                                                               \
        default:                                                                                                       \
            EACH(WRITE(SUM));                                                                                          \
        }                                                                                                              \
    }
#define SAME(v) (v)
#define TO_F16(v) ((_Float16)(v))
#define FROM_F16(v) ((float)(v))
#define FLOATING(name, T) ARITHMETIC(name, T, SAME, (T), x[i] + y[i], x[i] * y[i])
FLOATING(of_float, float)
FLOATING(of_double, double)
ARITHMETIC(of_half, _Float16, FROM_F16, TO_F16, FROM_F16(x[i]) + FROM_F16(y[i]), FROM_F16(x[i]) * FROM_F16(y[i]))
ARITHMETIC(of_bfloat16, uint16_t, msa_from_bfloat16, msa_to_bfloat16, msa_from_bfloat16(x[i]) + msa_from_bfloat16(y[i]),
           msa_from_bfloat16(x[i]) * msa_from_bfloat16(y[i]))

/* Sums and products of integers wrap around: computed unsigned. */
#define INTEGER(name, T, U)                                                                                            \
    ARITHMETIC(name##_arithmetic, T, SAME, (T), (U)x[i] + (U)y[i], (U)x[i] * (U)y[i])                                  \
    static void name(msa_reduce_op op, T *restrict x, const T *restrict y, int64_t n) {                                \
        switch (op) {                                                                                                  \
        case MSA_BAND:                                                                                                 \
            EACH((T)(x[i] & y[i]));                                                                                    \
        case MSA_BOR:                                                                                                  \
            EACH((T)(x[i] | y[i]));                                                                                    \
        case MSA_BXOR:                                                                                                 \
            EACH((T)(x[i] ^ y[i]));                                                                                    \
        default:                                                                                                       \
            name##_arithmetic(op, x, y, n);                                                                            \
        }                                                                                                              \
    }
INTEGER(of_uint8, uint8_t, uint32_t)
INTEGER(of_int8, int8_t, uint32_t)
INTEGER(of_int16, int16_t, uint32_t)
INTEGER(of_int32, int32_t, uint32_t)
INTEGER(of_int64, int64_t, uint64_t)

static void of_bool(msa_reduce_op op, uint8_t *restrict x, const uint8_t *restrict y, int64_t n) {
    switch (op) {
    case MSA_PRODUCT:
    case MSA_MIN:
    case MSA_BAND:
        EACH(x[i] && y[i]);
    case MSA_BXOR:
        EACH(!x[i] != !y[i]);
    default:
        EACH(x[i] || y[i]);
    }
}

void msa_combine(msa_reduce_op op, msa_dtype dtype, void *a, const void *b, int64_t n) {
    switch (dtype) {
    case MSA_BOOL:
        of_bool(op, a, b, n);
        return;
    case MSA_UINT8:
        of_uint8(op, a, b, n);
        return;
    case MSA_INT8:
        of_int8(op, a, b, n);
        return;
    case MSA_INT16:
        of_int16(op, a, b, n);
        return;
    case MSA_INT32:
        of_int32(op, a, b, n);
        return;
    case MSA_INT64:
        of_int64(op, a, b, n);
        return;
    case MSA_FLOAT16:
        of_half(op, a, b, n);
        return;
    case MSA_BFLOAT16:
        of_bfloat16(op, a, b, n);
        return;
    case MSA_FLOAT32:
        of_float(op, a, b, n);
        return;
    case MSA_FLOAT64:
        of_double(op, a, b, n);
        return;
    case MSA_COMPLEX64:
        of_float(op, a, b, 2 * n);
        return;
    case MSA_COMPLEX128:
        of_double(op, a, b, 2 * n);
        return;
    default:
        return;
    }
}
