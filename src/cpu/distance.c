/* Distances of all rows from all rows, and their gradient: x1 is (B, m, d), x2 (B, n, d), the distances (B, m, n).
 *
 * No (m, n, d) array is made. Many rows under the Euclidean norm go through a matrix product: |x - y|^2 = |x|^2 + |y|^2 - 2 x y. */
#include <math.h>

#include "base/parallel.h"
#include "cpu/gemm.h"
#include "msadapter/ops.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

enum { MANY_ROWS = 25 };

static int check_points(const msa_tensor *x1, const msa_tensor *x2) {
    if (x1->ndim != 3 || x2->ndim != 3 || x1->sizes[0] != x2->sizes[0] || x1->sizes[2] != x2->sizes[2])
        return msa_fail(MSA_RUNTIME_ERROR, "cdist: shapes %s and %s are not (B, m, d) and (B, n, d)", msa_sizes_text(msa_sizes(x1)), msa_sizes_text(msa_sizes(x2)));
    if (x1->dtype != x2->dtype || (x1->dtype != MSA_FLOAT32 && x1->dtype != MSA_FLOAT64))
        return msa_fail(MSA_NOT_IMPLEMENTED, "\"cdist\" not implemented for '%s' and '%s'", msa_dtype_type_name((msa_dtype)x1->dtype),
                        msa_dtype_type_name((msa_dtype)x2->dtype));
    return 0;
}

#define DISTANCES(T, S) \
    static T distance_##T(const T *x, const T *y, int64_t d, double p) { \
        T sum = 0; \
        if (p == 2) { \
            for (int64_t k = 0; k < d; k++) sum += (x[k] - y[k]) * (x[k] - y[k]); \
            return sqrt##S(sum); \
        } \
        if (p == 1) { \
            for (int64_t k = 0; k < d; k++) sum += fabs##S(x[k] - y[k]); \
            return sum; \
        } \
        if (p == 0) { \
            for (int64_t k = 0; k < d; k++) sum += x[k] != y[k]; \
            return sum; \
        } \
        if (p == INFINITY) { \
            for (int64_t k = 0; k < d; k++) { \
                const T a = fabs##S(x[k] - y[k]); \
                if (a > sum || a != a) sum = a; \
            } \
            return sum; \
        } \
        for (int64_t k = 0; k < d; k++) sum += pow##S(fabs##S(x[k] - y[k]), (T)p); \
        return pow##S(sum, (T)(1 / p)); \
    } \
    /* What one distance `r` with gradient g adds to the gradient of x. Nothing where the points are the same. */ \
    static void pull_##T(T *to, const T *x, const T *y, int64_t d, double p, T g, T r) { \
        if (p == 0 || (r == 0 && p != 1)) return; \
        if (p == 2) { \
            g /= r; \
            for (int64_t k = 0; k < d; k++) to[k] += g * (x[k] - y[k]); \
        } else if (p == 1) { \
            for (int64_t k = 0; k < d; k++) to[k] += g * (T)((x[k] > y[k]) - (x[k] < y[k])); \
        } else if (p == INFINITY) { \
            for (int64_t k = 0; k < d; k++) \
                if (fabs##S(x[k] - y[k]) == r) to[k] += g * (T)((x[k] > y[k]) - (x[k] < y[k])); \
        } else { \
            g /= pow##S(r, (T)(p - 1)); \
            for (int64_t k = 0; k < d; k++) \
                if (x[k] != y[k]) to[k] += g * (T)((x[k] > y[k]) - (x[k] < y[k])) * pow##S(fabs##S(x[k] - y[k]), (T)(p - 1)); \
        } \
    } \
    static void all_distances_##T(const T *x1, const T *x2, T *to, int64_t batch, int64_t m, int64_t n, int64_t d, double p) { \
        _Pragma("omp parallel for num_threads(msa_threads_for(batch * m * n * d, MSA_GRAIN)) schedule(static)") \
        for (int64_t row = 0; row < batch * m; row++) \
            for (int64_t j = 0; j < n; j++) to[row * n + j] = distance_##T(x1 + row * d, x2 + (row / m * n + j) * d, d, p); \
    } \
    static T square_##T(const T *x, int64_t d) { \
        T sum = 0; \
        for (int64_t k = 0; k < d; k++) sum += x[k] * x[k]; \
        return sum; \
    } \
    /* `to` holds -2 x y. */ \
    static void finish_squares_##T(const T *x1, const T *x2, T *to, int64_t batch, int64_t m, int64_t n, int64_t d, T *lengths) { \
        for (int64_t j = 0; j < batch * n; j++) lengths[j] = square_##T(x2 + j * d, d); \
        _Pragma("omp parallel for num_threads(msa_threads_for(batch * m * n, MSA_GRAIN)) schedule(static)") \
        for (int64_t row = 0; row < batch * m; row++) { \
            const T length = square_##T(x1 + row * d, d), *others = lengths + row / m * n; \
            for (int64_t j = 0; j < n; j++) { \
                const T square = to[row * n + j] + length + others[j]; \
                to[row * n + j] = square > 0 || square != square ? sqrt##S(square) : 0; \
            } \
        } \
    } \
    static void all_pulls_##T(const T *grad, const T *x1, const T *x2, const T *r, T *to, int64_t batch, int64_t m, int64_t n, int64_t d, double p) { \
        _Pragma("omp parallel for num_threads(msa_threads_for(batch * m * n * d, MSA_GRAIN)) schedule(static)") \
        for (int64_t row = 0; row < batch * m; row++) \
            for (int64_t j = 0; j < n; j++) \
                pull_##T(to + row * d, x1 + row * d, x2 + (row / m * n + j) * d, d, p, grad[row * n + j], r[row * n + j]); \
    }
DISTANCES(float, f)
DISTANCES(double, )

static int squares_by_product(const msa_tensor *x1, const msa_tensor *x2, msa_tensor *to) {
    const int64_t batch = x1->sizes[0], m = x1->sizes[1], n = x2->sizes[1], d = x1->sizes[2];
    msa_auto msa_tensor *lengths = msa_tensor_new(MSA_INTS(batch * n), (msa_dtype)x1->dtype);
    if (!lengths) return -1;
    const msa_matrix a = {msa_data(x1), d, 1}, b = {msa_data(x2), 1, d};
    void *c = to->storage->data;
    if (msa_gemm_batched((msa_dtype)x1->dtype, batch, (msa_batch_steps){m * d, n * d, m * n}, m, n, d, msa_float(-2), a, b, msa_float(0), c, n) != 0) return -1;
    if (x1->dtype == MSA_FLOAT32) finish_squares_float(a.data, b.data, c, batch, m, n, d, lengths->storage->data);
    else finish_squares_double(a.data, b.data, c, batch, m, n, d, lengths->storage->data);
    return 0;
}

msa_tensor *cdist_cpu(msa_tensor *x1, msa_tensor *x2, double p, bool product) {
    if (check_points(x1, x2) != 0) return NULL;
    const int64_t batch = x1->sizes[0], m = x1->sizes[1], n = x2->sizes[1], d = x1->sizes[2];
    msa_auto msa_tensor *a = msa_contiguous_values(x1), *b = msa_contiguous_values(x2);
    msa_auto msa_tensor *result = a && b ? msa_tensor_new(MSA_INTS(batch, m, n), (msa_dtype)x1->dtype) : NULL;
    if (!result || !result->numel) return msa_take(result);
    if (p == 2 && product && d && (m > MANY_ROWS || n > MANY_ROWS)) return squares_by_product(a, b, result) == 0 ? msa_take(result) : NULL;
    if (a->dtype == MSA_FLOAT32) all_distances_float(msa_data(a), msa_data(b), result->storage->data, batch, m, n, d, p);
    else all_distances_double(msa_data(a), msa_data(b), result->storage->data, batch, m, n, d, p);
    return msa_take(result);
}

msa_tensor *cdist_backward_cpu(msa_tensor *grad, msa_tensor *x1, msa_tensor *x2, double p, msa_tensor *distances) {
    if (check_points(x1, x2) != 0) return NULL;
    const int64_t batch = x1->sizes[0], m = x1->sizes[1], n = x2->sizes[1], d = x1->sizes[2];
    msa_auto msa_tensor *g = msa_contiguous_values(grad), *a = msa_contiguous_values(x1), *b = msa_contiguous_values(x2),
                        *r = msa_contiguous_values(distances);
    msa_auto msa_tensor *result = g && a && b && r ? msa_tensor_new(msa_sizes(x1), (msa_dtype)x1->dtype) : NULL;
    if (!result || msa_fill_values(result, msa_int(0)) != 0) return NULL;
    if (g->dtype != a->dtype || r->dtype != a->dtype || g->numel != batch * m * n || r->numel != batch * m * n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "cdist: the gradient does not fit the distances");
    if (a->dtype == MSA_FLOAT32) all_pulls_float(msa_data(g), msa_data(a), msa_data(b), msa_data(r), result->storage->data, batch, m, n, d, p);
    else all_pulls_double(msa_data(g), msa_data(a), msa_data(b), msa_data(r), result->storage->data, batch, m, n, d, p);
    return msa_take(result);
}
