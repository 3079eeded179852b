/* Layer and group normalisation: each row of values (for group normalisation, each group of channels of one image) is
 * normalised by itself. Two passes over a row, which stays in the cache. */
#include <math.h>
#include <stdio.h>

#include "base/parallel.h"
#include "cpu/vector.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

#define ROWS(NAME, T) \
    MSA_VECTOR static void NAME##_statistics(int64_t d, const T *x, double eps, T *mean, T *rstd) { \
        double sum = 0, squares = 0; \
        for (int64_t at = 0; at < d; at += 1024) { \
            const int64_t n = d - at < 1024 ? d - at : 1024; \
            T part = 0; \
            _Pragma("omp simd reduction(+ : part)") for (int64_t i = 0; i < n; i++) part += x[at + i]; \
            sum += (double)part; \
        } \
        const T m = (T)(sum / (double)d); \
        for (int64_t at = 0; at < d; at += 1024) { \
            const int64_t n = d - at < 1024 ? d - at : 1024; \
            T part = 0; \
            _Pragma("omp simd reduction(+ : part)") for (int64_t i = 0; i < n; i++) part += (x[at + i] - m) * (x[at + i] - m); \
            squares += (double)part; \
        } \
        *mean = m; \
        *rstd = (T)(1 / sqrt(squares / (double)d + eps)); \
    } \
    MSA_VECTOR static void NAME##_normalise(int64_t d, const T *x, T mean, T rstd, const T *weight, const T *bias, T *out) { \
        if (weight && bias) \
            for (int64_t i = 0; i < d; i++) out[i] = (x[i] - mean) * rstd * weight[i] + bias[i]; \
        else if (weight) \
            for (int64_t i = 0; i < d; i++) out[i] = (x[i] - mean) * rstd * weight[i]; \
        else if (bias) \
            for (int64_t i = 0; i < d; i++) out[i] = (x[i] - mean) * rstd + bias[i]; \
        else \
            for (int64_t i = 0; i < d; i++) out[i] = (x[i] - mean) * rstd; \
    } \
    /* (x - centre) * scale + shift: one value alone is its own mean, and gives shift exactly. */ \
    MSA_VECTOR static void NAME##_affine(int64_t d, const T *x, T centre, T scale, T shift, T *out) { \
        for (int64_t i = 0; i < d; i++) out[i] = (x[i] - centre) * scale + shift; \
    } \
    /* dx of one row; adds to the parameters' gradients where there are any. */ \
    MSA_VECTOR static void NAME##_row_back(int64_t d, const T *x, const T *g, T mean, T rstd, const T *weight, T *dx, T *dw, T *db) { \
        T products = 0, sums = 0; \
        if (weight) { \
            _Pragma("omp simd reduction(+ : products, sums)") for (int64_t i = 0; i < d; i++) { \
                const T wg = g[i] * weight[i]; \
                products += wg * (x[i] - mean); \
                sums += wg; \
            } \
        } else { \
            _Pragma("omp simd reduction(+ : products, sums)") for (int64_t i = 0; i < d; i++) { \
                products += g[i] * (x[i] - mean); \
                sums += g[i]; \
            } \
        } \
        const T slope = -products * rstd * rstd * rstd / (T)d, shift = -sums * rstd / (T)d; \
        if (dx && weight) \
            for (int64_t i = 0; i < d; i++) dx[i] = g[i] * weight[i] * rstd + (x[i] - mean) * slope + shift; \
        else if (dx) \
            for (int64_t i = 0; i < d; i++) dx[i] = g[i] * rstd + (x[i] - mean) * slope + shift; \
        if (dw) \
            for (int64_t i = 0; i < d; i++) dw[i] += g[i] * ((x[i] - mean) * rstd); \
        if (db) \
            for (int64_t i = 0; i < d; i++) db[i] += g[i]; \
    } \
    MSA_VECTOR static void NAME##_group_sums(int64_t p, const T *x, const T *g, T mean, T *products, T *sums) { \
        T a = 0, b = 0; \
        _Pragma("omp simd reduction(+ : a, b)") for (int64_t i = 0; i < p; i++) { \
            a += g[i] * (x[i] - mean); \
            b += g[i]; \
        } \
        *products = a; \
        *sums = b; \
    } \
    MSA_VECTOR static void NAME##_group_combine(int64_t p, const T *x, const T *g, T a, T b, T shift, T *dx) { \
        for (int64_t i = 0; i < p; i++) dx[i] = g[i] * a + x[i] * b + shift; \
    } \
    static void NAME##_layer(int64_t rows, int64_t d, double eps, const T *x, const T *weight, const T *bias, T *out, T *mean, T *rstd) { \
        _Pragma("omp parallel for num_threads(msa_threads_for(rows * d, MSA_GRAIN / 2))") for (int64_t r = 0; r < rows; r++) { \
            NAME##_statistics(d, x + r * d, eps, mean + r, rstd + r); \
            NAME##_normalise(d, x + r * d, mean[r], rstd[r], weight, bias, out + r * d); \
        } \
    } \
    static int NAME##_layer_back(int64_t rows, int64_t d, const T *x, const T *g, const T *mean, const T *rstd, const T *weight, T *dx, T *dw, T *db) { \
        const int threads = msa_threads_for(rows * d, MSA_GRAIN / 2); \
        msa_auto_free T *partial = dw || db ? msa_calloc((size_t)(threads * d * 2), sizeof(T)) : NULL; \
        if ((dw || db) && !partial) return -1; \
        _Pragma("omp parallel for num_threads(threads)") for (int t = 0; t < threads; t++) { \
            int64_t begin, end; \
            msa_share(rows, threads, t, &begin, &end); \
            T *own_w = dw ? partial + 2 * t * d : NULL, *own_b = db ? partial + (2 * t + 1) * d : NULL; \
            for (int64_t r = begin; r < end; r++) \
                NAME##_row_back(d, x + r * d, g + r * d, mean[r], rstd[r], weight, dx ? dx + r * d : NULL, own_w, own_b); \
        } \
        for (int64_t i = 0; i < d; i++) { \
            T w = 0, b = 0; \
            for (int t = 0; t < threads && partial; t++) { \
                w += partial[2 * t * d + i]; \
                b += partial[(2 * t + 1) * d + i]; \
            } \
            if (dw) dw[i] = w; \
            if (db) db[i] = b; \
        } \
        return 0; \
    } \
    static void NAME##_group(int64_t n, int64_t groups, int64_t channels, int64_t p, double eps, const T *x, const T *weight, const T *bias, \
                             T *out, T *mean, T *rstd) { \
        const int64_t d = channels * p; \
        _Pragma("omp parallel for num_threads(msa_threads_for(n * groups * d, MSA_GRAIN / 2))") for (int64_t r = 0; r < n * groups; r++) { \
            NAME##_statistics(d, x + r * d, eps, mean + r, rstd + r); \
            for (int64_t k = 0; k < channels; k++) { \
                const int64_t c = r % groups * channels + k; \
                const T scale = weight ? rstd[r] * weight[c] : rstd[r]; \
                NAME##_affine(p, x + r * d + k * p, mean[r], scale, bias ? bias[c] : 0, out + r * d + k * p); \
            } \
        } \
    } \
    /* products and sums are (n, groups * channels): sums over positions of g * (x - mean) and of g. */ \
    static void NAME##_group_back(int64_t n, int64_t groups, int64_t channels, int64_t p, const T *x, const T *g, const T *mean, const T *rstd, \
                                  const T *weight, T *products, T *sums, T *dx, T *dw, T *db) { \
        const int64_t d = channels * p, all = groups * channels; \
        _Pragma("omp parallel for num_threads(msa_threads_for(n * groups * d, MSA_GRAIN / 2))") for (int64_t r = 0; r < n * groups; r++) { \
            T product = 0, sum = 0; \
            for (int64_t k = 0; k < channels; k++) { \
                const int64_t at = r * channels + k, c = r % groups * channels + k; \
                NAME##_group_sums(p, x + at * p, g + at * p, mean[r], products + at, sums + at); \
                product += products[at] * (weight ? weight[c] : 1); \
                sum += sums[at] * (weight ? weight[c] : 1); \
            } \
            const T slope = -product * rstd[r] * rstd[r] * rstd[r] / (T)d, shift = -sum * rstd[r] / (T)d - slope * mean[r]; \
            for (int64_t k = 0; k < channels && dx; k++) { \
                const int64_t at = r * channels + k, c = r % groups * channels + k; \
                NAME##_group_combine(p, x + at * p, g + at * p, rstd[r] * (weight ? weight[c] : 1), slope, shift, dx + at * p); \
            } \
        } \
        for (int64_t c = 0; c < all; c++) { \
            T w = 0, b = 0; \
            for (int64_t i = 0; i < n; i++) { \
                w += products[i * all + c] * rstd[i * groups + c / channels]; \
                b += sums[i * all + c]; \
            } \
            if (dw) dw[c] = w; \
            if (db) db[c] = b; \
        } \
    }
ROWS(f32, float)
ROWS(f64, double)

/* The computing type; half precision computes in float32. */
static int computing_type(const char *op, const msa_tensor *t, msa_dtype *type) {
    const msa_dtype d = (msa_dtype)t->dtype;
    if (!msa_is_floating(d)) return msa_fail(MSA_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", op, msa_dtype_type_name(d));
    *type = d == MSA_FLOAT64 ? d : MSA_FLOAT32;
    return 0;
}

/* Contiguous values in the computing type; NULL stays NULL. */
static int take_values(msa_tensor *t, msa_dtype type, msa_tensor **out) {
    *out = NULL;
    if (!t) return 0;
    msa_auto msa_tensor *typed = msa_cast_values(t, type);
    *out = typed ? msa_contiguous_values(typed) : NULL;
    return *out && (msa_data(*out) || !t->numel) ? 0 : -1;
}
static void *values_of(const msa_tensor *t) { return t ? msa_data(t) : NULL; }

static bool sizes_are(const msa_tensor *t, msa_ints sizes) {
    return t->ndim == sizes.n && memcmp(t->sizes, sizes.data, sizeof(int64_t) * (size_t)sizes.n) == 0;
}

static int check_layer(const msa_tensor *input, msa_ints shape, const msa_tensor *weight, const msa_tensor *bias) {
    if (shape.n < 1)
        return msa_fail(MSA_RUNTIME_ERROR, "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = %s",
                        msa_sizes_text(shape));
    if (weight && !sizes_are(weight, shape))
        return msa_fail(MSA_RUNTIME_ERROR, "Expected weight to be of same shape as normalized_shape, but got weight of shape %s and normalized_shape = %s",
                        msa_sizes_text(msa_sizes(weight)), msa_sizes_text(shape));
    if (bias && !sizes_are(bias, shape))
        return msa_fail(MSA_RUNTIME_ERROR, "Expected bias to be of same shape as normalized_shape, but got bias of shape %s and normalized_shape = %s",
                        msa_sizes_text(msa_sizes(bias)), msa_sizes_text(shape));
    if (input->ndim >= shape.n && memcmp(input->sizes + input->ndim - shape.n, shape.data, sizeof(int64_t) * (size_t)shape.n) == 0) return 0;
    char wanted[256] = "[*";
    size_t at = 2;
    for (int64_t i = 0; i < shape.n && at < sizeof wanted - 24; i++) at += (size_t)snprintf(wanted + at, sizeof wanted - at, ", %lld", (long long)shape.data[i]);
    return msa_fail(MSA_RUNTIME_ERROR, "Given normalized_shape=%s, expected input with shape %s], but got input of size%s", msa_sizes_text(shape), wanted,
                    msa_sizes_text(msa_sizes(input)));
}

int layer_norm_cpu(msa_tensor *input, msa_ints normalized_shape, msa_tensor *weight, msa_tensor *bias, double eps, msa_tensor **results) {
    msa_dtype type = MSA_NO_DTYPE;
    if (check_layer(input, normalized_shape, weight, bias) != 0 || computing_type("LayerNormKernelImpl", input, &type) != 0) return -1;
    const int64_t d = msa_product(normalized_shape), kept = input->ndim - normalized_shape.n, rows = msa_product((msa_ints){input->sizes, kept});
    int64_t sizes[MSA_MAX_DIMS];
    for (int i = 0; i < input->ndim; i++) sizes[i] = i < kept ? input->sizes[i] : 1;
    msa_auto msa_tensor *x = NULL, *w = NULL, *b = NULL;
    msa_auto msa_tensor *out = msa_tensor_new(msa_sizes(input), type), *mean = msa_tensor_new((msa_ints){sizes, input->ndim}, type),
                        *rstd = msa_tensor_new((msa_ints){sizes, input->ndim}, type);
    if (!out || !mean || !rstd || take_values(input, type, &x) != 0 || take_values(weight, type, &w) != 0 || take_values(bias, type, &b) != 0) return -1;
    if (type == MSA_FLOAT64) f64_layer(rows, d, eps, msa_data(x), values_of(w), values_of(b), out->storage->data, mean->storage->data, rstd->storage->data);
    else f32_layer(rows, d, eps, msa_data(x), values_of(w), values_of(b), out->storage->data, mean->storage->data, rstd->storage->data);
    results[0] = msa_cast_values(out, (msa_dtype)input->dtype);
    results[1] = msa_cast_values(mean, (msa_dtype)input->dtype);
    results[2] = msa_cast_values(rstd, (msa_dtype)input->dtype);
    return results[0] && results[1] && results[2] ? 0 : -1;
}

int layer_norm_backward_cpu(msa_tensor *grad, msa_tensor *input, msa_ints normalized_shape, msa_tensor *mean, msa_tensor *rstd,
                            msa_tensor *weight, msa_ints output_mask, msa_tensor **results) {
    msa_dtype type = MSA_NO_DTYPE;
    if (check_layer(input, normalized_shape, weight, NULL) != 0 || computing_type("LayerNormBackwardKernelImpl", input, &type) != 0) return -1;
    const int64_t d = msa_product(normalized_shape), rows = msa_product((msa_ints){input->sizes, input->ndim - normalized_shape.n});
    if (output_mask.n != 3 || !msa_same_sizes(grad, input) || mean->numel != rows || rstd->numel != rows)
        return msa_fail(MSA_RUNTIME_ERROR, "layer_norm_backward: arguments of other sizes");
    msa_auto msa_tensor *x = NULL, *g = NULL, *m = NULL, *r = NULL, *w = NULL;
    if (take_values(input, type, &x) != 0 || take_values(grad, type, &g) != 0 || take_values(mean, type, &m) != 0 || take_values(rstd, type, &r) != 0 ||
        take_values(weight, type, &w) != 0)
        return -1;
    msa_auto msa_tensor *dx = output_mask.data[0] ? msa_tensor_new(msa_sizes(input), type) : NULL,
                        *dw = output_mask.data[1] ? msa_tensor_new(normalized_shape, type) : NULL,
                        *db = output_mask.data[2] ? msa_tensor_new(normalized_shape, type) : NULL;
    if ((output_mask.data[0] && !dx) || (output_mask.data[1] && !dw) || (output_mask.data[2] && !db)) return -1;
    const int status = type == MSA_FLOAT64 ? f64_layer_back(rows, d, msa_data(x), msa_data(g), msa_data(m), msa_data(r), values_of(w), values_of(dx),
                                                            values_of(dw), values_of(db))
                                           : f32_layer_back(rows, d, msa_data(x), msa_data(g), msa_data(m), msa_data(r), values_of(w), values_of(dx),
                                                            values_of(dw), values_of(db));
    if (status) return -1;
    if (dx && !(results[0] = msa_cast_values(dx, (msa_dtype)input->dtype))) return -1;
    results[1] = msa_take(dw);
    results[2] = msa_take(db);
    return 0;
}

static int check_group(const msa_tensor *input, const msa_tensor *weight, const msa_tensor *bias, int64_t groups) {
    if (input->ndim < 2) return msa_fail(MSA_RUNTIME_ERROR, "Expected at least 2 dimensions for input tensor but received %d", input->ndim);
    const int64_t c = input->sizes[1];
    if (groups <= 0) return msa_fail(MSA_RUNTIME_ERROR, "Expected num groups to be greater than 0, got %lld", (long long)groups);
    if (c % groups)
        return msa_fail(MSA_RUNTIME_ERROR, "Expected number of channels in input to be divisible by num_groups, but got input of shape %s and num_groups=%lld",
                        msa_sizes_text(msa_sizes(input)), (long long)groups);
    if (weight && (weight->ndim != 1 || weight->numel != c))
        return msa_fail(MSA_RUNTIME_ERROR, "Expected weight to be a vector of size equal to the number of channels in input, but got weight of shape %s and input of shape %s",
                        msa_sizes_text(msa_sizes(weight)), msa_sizes_text(msa_sizes(input)));
    if (bias && (bias->ndim != 1 || bias->numel != c))
        return msa_fail(MSA_RUNTIME_ERROR, "Expected bias to be a vector of size equal to the number of channels in input, but got bias of shape %s and input of shape %s",
                        msa_sizes_text(msa_sizes(bias)), msa_sizes_text(msa_sizes(input)));
    return 0;
}

int group_norm_cpu(msa_tensor *input, int64_t num_groups, msa_tensor *weight, msa_tensor *bias, double eps, msa_tensor **results) {
    msa_dtype type = MSA_NO_DTYPE;
    if (check_group(input, weight, bias, num_groups) != 0 || computing_type("GroupNormKernelImpl", input, &type) != 0) return -1;
    const int64_t n = input->sizes[0], c = input->sizes[1], p = msa_product((msa_ints){input->sizes + 2, input->ndim - 2});
    msa_auto msa_tensor *x = NULL, *w = NULL, *b = NULL;
    msa_auto msa_tensor *out = msa_tensor_new(msa_sizes(input), type), *mean = msa_tensor_new(MSA_INTS(n, num_groups), type),
                        *rstd = msa_tensor_new(MSA_INTS(n, num_groups), type);
    if (!out || !mean || !rstd || take_values(input, type, &x) != 0 || take_values(weight, type, &w) != 0 || take_values(bias, type, &b) != 0) return -1;
    if (type == MSA_FLOAT64)
        f64_group(n, num_groups, c / num_groups, p, eps, msa_data(x), values_of(w), values_of(b), out->storage->data, mean->storage->data, rstd->storage->data);
    else
        f32_group(n, num_groups, c / num_groups, p, eps, msa_data(x), values_of(w), values_of(b), out->storage->data, mean->storage->data, rstd->storage->data);
    results[0] = msa_cast_values(out, (msa_dtype)input->dtype);
    results[1] = msa_cast_values(mean, (msa_dtype)input->dtype);
    results[2] = msa_cast_values(rstd, (msa_dtype)input->dtype);
    return results[0] && results[1] && results[2] ? 0 : -1;
}

int group_norm_backward_cpu(msa_tensor *grad, msa_tensor *input, int64_t num_groups, msa_tensor *mean, msa_tensor *rstd, msa_tensor *weight,
                            msa_ints output_mask, msa_tensor **results) {
    msa_dtype type = MSA_NO_DTYPE;
    if (check_group(input, weight, NULL, num_groups) != 0 || computing_type("GroupNormBackwardKernelImpl", input, &type) != 0) return -1;
    const int64_t n = input->sizes[0], c = input->sizes[1], p = msa_product((msa_ints){input->sizes + 2, input->ndim - 2});
    if (output_mask.n != 3 || !msa_same_sizes(grad, input) || mean->numel != n * num_groups || rstd->numel != n * num_groups)
        return msa_fail(MSA_RUNTIME_ERROR, "group_norm_backward: arguments of other sizes");
    msa_auto msa_tensor *x = NULL, *g = NULL, *m = NULL, *r = NULL, *w = NULL;
    msa_auto msa_tensor *products = msa_tensor_new(MSA_INTS(n, c), type), *sums = msa_tensor_new(MSA_INTS(n, c), type);
    if (!products || !sums || take_values(input, type, &x) != 0 || take_values(grad, type, &g) != 0 || take_values(mean, type, &m) != 0 ||
        take_values(rstd, type, &r) != 0 || take_values(weight, type, &w) != 0)
        return -1;
    msa_auto msa_tensor *dx = output_mask.data[0] ? msa_tensor_new(msa_sizes(input), type) : NULL,
                        *dw = output_mask.data[1] ? msa_tensor_new(MSA_INTS(c), type) : NULL, *db = output_mask.data[2] ? msa_tensor_new(MSA_INTS(c), type) : NULL;
    if ((output_mask.data[0] && !dx) || (output_mask.data[1] && !dw) || (output_mask.data[2] && !db)) return -1;
    if (type == MSA_FLOAT64)
        f64_group_back(n, num_groups, c / num_groups, p, msa_data(x), msa_data(g), msa_data(m), msa_data(r), values_of(w), products->storage->data,
                       sums->storage->data, values_of(dx), values_of(dw), values_of(db));
    else
        f32_group_back(n, num_groups, c / num_groups, p, msa_data(x), msa_data(g), msa_data(m), msa_data(r), values_of(w), products->storage->data,
                       sums->storage->data, values_of(dx), values_of(dw), values_of(db));
    if (dx && !(results[0] = msa_cast_values(dx, (msa_dtype)input->dtype))) return -1;
    results[1] = msa_take(dw);
    results[2] = msa_take(db);
    return 0;
}
