/* Operations on single elements. */
#include "cpu/element.h"

#include <complex.h>

#include "tensor/convert.h"

#define BY_TYPE(OP) \
    switch (dtype) { \
    case MSA_BOOL: *(uint8_t *)a = (uint8_t)((*(uint8_t *)a != 0)OP(*(const uint8_t *)b != 0)) != 0; break; \
    case MSA_UINT8: *(uint8_t *)a = (uint8_t)(*(uint8_t *)a OP * (const uint8_t *)b); break; \
    case MSA_INT8: *(int8_t *)a = (int8_t)(*(int8_t *)a OP * (const int8_t *)b); break; \
    case MSA_INT16: *(int16_t *)a = (int16_t)(*(int16_t *)a OP * (const int16_t *)b); break; \
    case MSA_INT32: *(uint32_t *)a = *(uint32_t *)a OP * (const uint32_t *)b; break; \
    case MSA_INT64: *(uint64_t *)a = *(uint64_t *)a OP * (const uint64_t *)b; break; \
    case MSA_FLOAT16: *(_Float16 *)a = (_Float16)((float)*(_Float16 *)a OP(float) * (const _Float16 *)b); break; \
    case MSA_BFLOAT16: \
        *(uint16_t *)a = msa_to_bfloat16(msa_from_bfloat16(*(uint16_t *)a) OP msa_from_bfloat16(*(const uint16_t *)b)); \
        break; \
    case MSA_FLOAT32: *(float *)a = *(float *)a OP * (const float *)b; break; \
    case MSA_FLOAT64: *(double *)a = *(double *)a OP * (const double *)b; break; \
    case MSA_COMPLEX64: *(float _Complex *)a = *(float _Complex *)a OP * (const float _Complex *)b; break; \
    default: *(double _Complex *)a = *(double _Complex *)a OP * (const double _Complex *)b; break; \
    }

void msa_element_add(msa_dtype dtype, void *a, const void *b) { BY_TYPE(+) }

void msa_element_multiply(msa_dtype dtype, void *a, const void *b) { BY_TYPE(*) }

void msa_element_walk(int ndim, const int64_t *sizes, int64_t count, void *a, const int64_t *a_strides, void *b,
                      const int64_t *b_strides, msa_dtype dtype, bool into_a, bool accumulate) {
    int64_t size = (int64_t)msa_dtype_size(dtype);
    int64_t inner = ndim ? sizes[ndim - 1] : 1, a_step = ndim ? a_strides[ndim - 1] : 1, b_step = ndim ? b_strides[ndim - 1] : 1;
    int64_t index[MSA_MAX_DIMS] = {0};
    for (int64_t done = 0; done < count; done += inner) {
        char *x = a, *y = b;
        for (int d = 0; d < ndim - 1; d++) {
            x += index[d] * a_strides[d] * size;
            y += index[d] * b_strides[d] * size;
        }
        if (!accumulate) {
            if (into_a) msa_convert(dtype, x, a_step, dtype, y, b_step, inner);
            else msa_convert(dtype, y, b_step, dtype, x, a_step, inner);
        } else if (dtype == MSA_FLOAT32) {
            for (int64_t i = 0; i < inner; i++) ((float *)x)[i * a_step] += ((const float *)y)[i * b_step];
        } else {
            for (int64_t i = 0; i < inner; i++) msa_element_add(dtype, x + i * a_step * size, y + i * b_step * size);
        }
        for (int d = ndim - 2; d >= 0 && ++index[d] == sizes[d]; d--) index[d] = 0;
    }
}
