/* Conversion of runs of elements from any type to any other. */
#ifndef MSA_TENSOR_CONVERT_H
#define MSA_TENSOR_CONVERT_H

#include "msadapter/dtype.h"

/* n elements; strides in elements, 0 and negative ones included. Reals from complex take the real part. Out-of-range
 * floats become whatever the processor's conversion gives, as in PyTorch. */
void msa_convert(msa_dtype to_type, void *to, int64_t to_stride, msa_dtype from_type, const void *from,
                 int64_t from_stride, int64_t n);

static inline float msa_from_bfloat16(uint16_t v) {
    union {
        uint32_t bits;
        float f;
    } u = {(uint32_t)v << 16};
    return u.f;
}

/* Round to nearest even; NaN stays NaN. */
static inline uint16_t msa_to_bfloat16(float f) {
    union {
        float f;
        uint32_t bits;
    } u = {f};
    uint32_t rounded = (u.bits + 0x7fffu + ((u.bits >> 16) & 1u)) >> 16;
    return f != f ? 0x7fc0 : (uint16_t)rounded;
}

#endif
