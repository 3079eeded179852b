/* softmax and log_softmax over one dimension, with their gradients, and the rows of softmax that losses share. */
#include <math.h>

#include "base/parallel.h"
#include "cpu/softmax.h"
#include "cpu/vector.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

enum { BLOCK = 64 };

#define SOFTMAX(NAME, T) \
    MSA_VECTOR static T NAME##_largest(int64_t d, const T *x) { \
        T top = -INFINITY; \
        _Pragma("omp simd reduction(max : top)") for (int64_t i = 0; i < d; i++) top = x[i] > top ? x[i] : top; \
        return top; \
    } \
    MSA_VECTOR static T NAME##_exp_row(int64_t d, const T *x, T top, T *out) { \
        T sum = 0; \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < d; i++) { \
            const T e = NAME##_exp(x[i] - top); \
            out[i] = e; \
            sum += e; \
        } \
        return sum; \
    } \
    MSA_VECTOR static T NAME##_exp_sum(int64_t d, const T *x, T top) { \
        T sum = 0; \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < d; i++) sum += NAME##_exp(x[i] - top); \
        return sum; \
    } \
    MSA_VECTOR static void NAME##_scale(int64_t d, T *x, T factor) { \
        for (int64_t i = 0; i < d; i++) x[i] *= factor; \
    } \
    MSA_VECTOR static void NAME##_shift(int64_t d, const T *x, T by, T *out) { \
        for (int64_t i = 0; i < d; i++) out[i] = x[i] - by; \
    } \
    MSA_VECTOR static void NAME##_row_back(int64_t d, const T *g, const T *y, bool log_, T *out) { \
        T sum = 0; \
        if (log_) { \
            _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < d; i++) sum += g[i]; \
            for (int64_t i = 0; i < d; i++) out[i] = g[i] - NAME##_exp(y[i]) * sum; \
        } else { \
            _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < d; i++) sum += g[i] * y[i]; \
            for (int64_t i = 0; i < d; i++) out[i] = (g[i] - sum) * y[i]; \
        } \
    } \
    /* `lanes` neighbouring columns of a (d, inner) block. */ \
    MSA_VECTOR static void NAME##_columns(int64_t d, int64_t inner, int64_t lanes, const T *x, bool log_, T *out) { \
        T top[BLOCK], sum[BLOCK]; \
        for (int64_t j = 0; j < lanes; j++) top[j] = -INFINITY, sum[j] = 0; \
        for (int64_t i = 0; i < d; i++) \
            for (int64_t j = 0; j < lanes; j++) top[j] = x[i * inner + j] > top[j] ? x[i * inner + j] : top[j]; \
        for (int64_t i = 0; i < d; i++) \
            for (int64_t j = 0; j < lanes; j++) { \
                const T e = NAME##_exp(x[i * inner + j] - top[j]); \
                if (!log_) out[i * inner + j] = e; \
                sum[j] += e; \
            } \
        for (int64_t j = 0; j < lanes; j++) sum[j] = log_ ? NAME##_log(sum[j]) + top[j] : 1 / sum[j]; \
        for (int64_t i = 0; i < d; i++) \
            for (int64_t j = 0; j < lanes; j++) out[i * inner + j] = log_ ? x[i * inner + j] - sum[j] : out[i * inner + j] * sum[j]; \
    } \
    MSA_VECTOR static void NAME##_columns_back(int64_t d, int64_t inner, int64_t lanes, const T *g, const T *y, bool log_, T *out) { \
        T sum[BLOCK]; \
        for (int64_t j = 0; j < lanes; j++) sum[j] = 0; \
        for (int64_t i = 0; i < d; i++) \
            for (int64_t j = 0; j < lanes; j++) sum[j] += log_ ? g[i * inner + j] : g[i * inner + j] * y[i * inner + j]; \
        for (int64_t i = 0; i < d; i++) \
            for (int64_t j = 0; j < lanes; j++) { \
                const int64_t at = i * inner + j; \
                out[at] = log_ ? g[at] - NAME##_exp(y[at]) * sum[j] : (g[at] - sum[j]) * y[at]; \
            } \
    } \
    T msa_softmax_row_##NAME(int64_t d, const T *x, T *log_sum) { \
        const T top = NAME##_largest(d, x); \
        const T sum = NAME##_exp_sum(d, x, top); \
        *log_sum = top + NAME##_log(sum); \
        return sum; \
    } \
    MSA_VECTOR void msa_softmax_row_gradient_##NAME(int64_t d, const T *x, T log_sum, T factor, T *out) { \
        for (int64_t i = 0; i < d; i++) out[i] = NAME##_exp(x[i] - log_sum) * factor; \
    } \
    static void NAME##_forward(int64_t outer, int64_t d, int64_t inner, const T *x, bool log_, T *out) { \
        const int64_t blocks = inner == 1 ? 1 : (inner + BLOCK - 1) / BLOCK; \
        _Pragma("omp parallel for num_threads(msa_threads_for(outer * d * inner, MSA_GRAIN / 4))") for (int64_t t = 0; t < outer * blocks; t++) { \
            if (inner == 1) { \
                const T *row = x + t * d; \
                const T top = NAME##_largest(d, row); \
                if (log_) NAME##_shift(d, row, top + NAME##_log(NAME##_exp_sum(d, row, top)), out + t * d); \
                else NAME##_scale(d, out + t * d, 1 / NAME##_exp_row(d, row, top, out + t * d)); \
                continue; \
            } \
            const int64_t at = t / blocks * d * inner + t % blocks * BLOCK, left = inner - t % blocks * BLOCK; \
            NAME##_columns(d, inner, left < BLOCK ? left : BLOCK, x + at, log_, out + at); \
        } \
    } \
    static void NAME##_backward(int64_t outer, int64_t d, int64_t inner, const T *g, const T *y, bool log_, T *out) { \
        const int64_t blocks = inner == 1 ? 1 : (inner + BLOCK - 1) / BLOCK; \
        _Pragma("omp parallel for num_threads(msa_threads_for(outer * d * inner, MSA_GRAIN / 4))") for (int64_t t = 0; t < outer * blocks; t++) { \
            if (inner == 1) { \
                NAME##_row_back(d, g + t * d, y + t * d, log_, out + t * d); \
                continue; \
            } \
            const int64_t at = t / blocks * d * inner + t % blocks * BLOCK, left = inner - t % blocks * BLOCK; \
            NAME##_columns_back(d, inner, left < BLOCK ? left : BLOCK, g + at, y + at, log_, out + at); \
        } \
    }
SOFTMAX(f32, float)
SOFTMAX(f64, double)

static int extents(const char *op, const msa_tensor *t, int64_t dim, int64_t *outer, int64_t *d, int64_t *inner) {
    const int at = msa_wrap_dim(op, dim, t->ndim);
    if (at < 0) return -1;
    *outer = *d = *inner = 1;
    for (int i = 0; i < t->ndim; i++) *(i < at ? outer : i == at ? d : inner) *= t->sizes[i];
    return 0;
}

static msa_tensor *contiguous_as(msa_tensor *t, msa_dtype type) {
    msa_auto msa_tensor *typed = msa_cast_values(t, type);
    return typed ? msa_contiguous_values(typed) : NULL;
}

static msa_tensor *forward(msa_tensor *self, int64_t dim, bool log_) {
    const char *const op = log_ ? "log_softmax" : "softmax";
    const msa_dtype given = (msa_dtype)self->dtype, type = given == MSA_FLOAT64 ? given : MSA_FLOAT32;
    int64_t outer, d, inner;
    if (extents(op, self, dim, &outer, &d, &inner) != 0) return NULL;
    if (!msa_is_floating(given))
        return msa_fail_null(MSA_NOT_IMPLEMENTED, "\"%s_lastdim_kernel_impl\" not implemented for '%s'", op, msa_dtype_type_name(given));
    msa_auto msa_tensor *x = contiguous_as(self, type), *out = msa_tensor_new(msa_sizes(self), type);
    if (!x || !out) return NULL;
    if (out->numel) {
        if (type == MSA_FLOAT64) f64_forward(outer, d, inner, msa_data(x), log_, out->storage->data);
        else f32_forward(outer, d, inner, msa_data(x), log_, out->storage->data);
    }
    return msa_cast_values(out, given);
}

static msa_tensor *backward(msa_tensor *grad, msa_tensor *output, int64_t dim, bool log_) {
    const msa_dtype given = (msa_dtype)grad->dtype, type = given == MSA_FLOAT64 ? given : MSA_FLOAT32;
    int64_t outer, d, inner;
    if (extents("softmax_backward", output, dim, &outer, &d, &inner) != 0) return NULL;
    if (!msa_same_sizes(grad, output) || !msa_is_floating(given)) return msa_fail_null(MSA_RUNTIME_ERROR, "softmax_backward: grad of another size or type");
    msa_auto msa_tensor *g = contiguous_as(grad, type), *y = contiguous_as(output, type), *out = msa_tensor_new(msa_sizes(output), type);
    if (!g || !y || !out) return NULL;
    if (out->numel) {
        if (type == MSA_FLOAT64) f64_backward(outer, d, inner, msa_data(g), msa_data(y), log_, out->storage->data);
        else f32_backward(outer, d, inner, msa_data(g), msa_data(y), log_, out->storage->data);
    }
    return msa_cast_values(out, given);
}

msa_tensor *softmax_cpu(msa_tensor *self, int64_t dim, bool half_to_float) { return forward(self, dim, false); }
msa_tensor *log_softmax_cpu(msa_tensor *self, int64_t dim, bool half_to_float) { return forward(self, dim, true); }
msa_tensor *softmax_backward_cpu(msa_tensor *grad, msa_tensor *output, int64_t dim) { return backward(grad, output, dim, false); }
msa_tensor *log_softmax_backward_cpu(msa_tensor *grad, msa_tensor *output, int64_t dim) { return backward(grad, output, dim, true); }
