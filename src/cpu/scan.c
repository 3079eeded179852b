/* Scans along a dimension: running sums, products, extremes. */
#include <complex.h>
#include <math.h>

#include "cpu/rows.h"
#include "ops/kernels.h"

typedef float _Complex c64;
typedef double _Complex c128;

#define SCAN(T, ACC, START, STEP) \
    MSA_FOR_ROWS(rows) { \
        const T *p = (const T *)from + row * n; \
        T *t = (T *)to + row * n; \
        ACC s = START; \
        for (int64_t k = 0; k < n; k++) { \
            s STEP p[k]; \
            t[k] = (T)s; \
        } \
    }

static msa_tensor *scan(const char *op, msa_tensor *self, int64_t dim, msa_dtype dtype, bool product) {
    msa_dtype have = (msa_dtype)self->dtype;
    msa_dtype result = dtype != MSA_NO_DTYPE ? dtype : msa_is_integral(have, true) ? MSA_INT64 : have;
    msa_dtype working = msa_working_type(result);
    msa_auto_rows msa_rows rows = {0};
    if (msa_lines_open(&rows, op, self, dim, working) != 0) return NULL;
    msa_auto msa_tensor *matrix = msa_tensor_new(MSA_INTS(rows.outer, rows.inner), working);
    if (!matrix) return NULL;
    const void *from = msa_data(rows.matrix);
    void *to = matrix->storage->data;
    int64_t n = rows.inner;
    switch (working) {
    case MSA_FLOAT32:
        if (product) SCAN(float, float, 1, *=)
        else SCAN(float, double, 0, +=)
        break;
    case MSA_FLOAT64:
        if (product) SCAN(double, double, 1, *=)
        else SCAN(double, double, 0, +=)
        break;
    case MSA_COMPLEX64:
        if (product) SCAN(c64, c64, 1, *=)
        else SCAN(c64, c128, 0, +=)
        break;
    case MSA_COMPLEX128:
        if (product) SCAN(c128, c128, 1, *=)
        else SCAN(c128, c128, 0, +=)
        break;
    default:
        if (product) SCAN(int64_t, uint64_t, 1, *= (uint64_t))
        else SCAN(int64_t, uint64_t, 0, += (uint64_t))
        break;
    }
    return msa_lines_result(self, dim, matrix, result);
}

msa_tensor *cumsum_cpu(msa_tensor *self, int64_t dim, msa_dtype dtype) { return scan("cumsum", self, dim, dtype, false); }

msa_tensor *cumprod_cpu(msa_tensor *self, int64_t dim, msa_dtype dtype) { return scan("cumprod", self, dim, dtype, true); }

/* d/dx_k of sum_i g_i prod_{j<=i} x_j = sum_{i>=k} g_i prod_{j<=i, j!=k} x_j; quadratic in rows with zeros only. */
#define CUMPROD_GRADIENT(T, CONJ) \
    MSA_FOR_ROWS(rows) { \
        const T *x = (const T *)from + row * n, *g = (const T *)slopes + row * n; \
        T *t = (T *)to + row * n; \
        bool zero = false; \
        for (int64_t k = 0; k < n; k++) zero = zero || x[k] == 0; \
        if (!zero) { \
            T suffix = 0, running = 1; \
            for (int64_t k = 0; k < n; k++) { \
                running *= x[k]; \
                t[k] = g[k] * CONJ(running); \
            } \
            for (int64_t k = n - 1; k >= 0; k--) { \
                suffix += t[k]; \
                t[k] = suffix / CONJ(x[k]); \
            } \
            continue; \
        } \
        T before = 1; \
        for (int64_t k = 0; k < n; k++) { \
            T chain = before, sum = 0; \
            for (int64_t i = k; i < n; i++) { \
                if (i > k) chain *= x[i]; \
                sum += g[i] * CONJ(chain); \
            } \
            t[k] = sum; \
            before *= x[k]; \
        } \
    } \
    break
#define SAME(x) (x)

msa_tensor *cumprod_gradient_cpu(msa_tensor *grad, msa_tensor *self, int64_t dim, msa_tensor *output) {
    msa_dtype working = msa_working_type((msa_dtype)output->dtype);
    msa_auto_rows msa_rows rows = {0};
    if (msa_lines_open(&rows, "cumprod", self, dim, working) != 0) return NULL;
    msa_auto_rows msa_rows gradients = {0};
    if (msa_lines_open(&gradients, "cumprod", grad, dim, working) != 0) return NULL;
    msa_auto msa_tensor *matrix = msa_tensor_new(MSA_INTS(rows.outer, rows.inner), working);
    if (!matrix) return NULL;
    const void *from = msa_data(rows.matrix), *slopes = msa_data(gradients.matrix);
    void *to = matrix->storage->data;
    int64_t n = rows.inner;
    switch (working) {
    case MSA_FLOAT32: CUMPROD_GRADIENT(float, SAME);
    case MSA_COMPLEX64: CUMPROD_GRADIENT(c64, conjf);
    case MSA_COMPLEX128: CUMPROD_GRADIENT(c128, conj);
    default: CUMPROD_GRADIENT(double, SAME);
    }
    return msa_lines_result(self, dim, matrix, (msa_dtype)grad->dtype);
}

/* Running extremes; later equals take over, NaN stays once seen. */
#define RUNNING(T, BETTER) \
    MSA_FOR_ROWS(rows) { \
        const T *p = (const T *)from + row * n; \
        T *t = (T *)to + row * n; \
        int64_t *q = places + row * n, at = 0; \
        for (int64_t k = 0; k < n; k++) { \
            if (p[k] != p[k] || (p[at] == p[at] && p[k] BETTER p[at])) at = k; \
            t[k] = p[at]; \
            q[k] = at; \
        } \
    }

static int running(const char *op, msa_tensor *self, int64_t dim, bool largest, msa_tensor **results) {
    msa_dtype have = (msa_dtype)self->dtype, working = msa_working_type(have);
    if (msa_is_complex(have)) return msa_fail(MSA_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", op, msa_dtype_type_name(have));
    msa_auto_rows msa_rows rows = {0};
    if (msa_lines_open(&rows, op, self, dim, working) != 0) return -1;
    msa_auto msa_tensor *values = msa_tensor_new(MSA_INTS(rows.outer, rows.inner), working);
    msa_auto msa_tensor *indices = msa_tensor_new(MSA_INTS(rows.outer, rows.inner), MSA_INT64);
    if (!values || !indices) return -1;
    const void *from = msa_data(rows.matrix);
    void *to = values->storage->data;
    int64_t *places = indices->storage->data, n = rows.inner;
    if (working == MSA_FLOAT32 && largest) RUNNING(float, >=)
    else if (working == MSA_FLOAT32) RUNNING(float, <=)
    else if (working == MSA_FLOAT64 && largest) RUNNING(double, >=)
    else if (working == MSA_FLOAT64) RUNNING(double, <=)
    else if (largest) RUNNING(int64_t, >=)
    else RUNNING(int64_t, <=)
    results[0] = msa_lines_result(self, dim, values, have);
    results[1] = msa_lines_result(self, dim, indices, MSA_INT64);
    return results[0] && results[1] ? 0 : -1;
}

int cummax_cpu(msa_tensor *self, int64_t dim, msa_tensor **results) { return running("cummax", self, dim, true, results); }

int cummin_cpu(msa_tensor *self, int64_t dim, msa_tensor **results) { return running("cummin", self, dim, false, results); }

#define LOG_RUNNING(T) \
    MSA_FOR_ROWS(rows) { \
        const T *p = (const T *)from + row * n; \
        T *t = (T *)to + row * n; \
        double s = -INFINITY; \
        for (int64_t k = 0; k < n; k++) { \
            double x = p[k], most = s > x ? s : x, least = s > x ? x : s; \
            s = x != x || s != s ? NAN : isinf(most) && most == least ? most : most + log1p(exp(least - most)); \
            t[k] = (T)s; \
        } \
    }

msa_tensor *logcumsumexp_cpu(msa_tensor *self, int64_t dim) {
    msa_dtype have = (msa_dtype)self->dtype, working = msa_working_type(have);
    if (!msa_is_floating(have)) return msa_fail_null(MSA_NOT_IMPLEMENTED, "\"logcumsumexp\" not implemented for '%s'", msa_dtype_type_name(have));
    msa_auto_rows msa_rows rows = {0};
    if (msa_lines_open(&rows, "logcumsumexp", self, dim, working) != 0) return NULL;
    msa_auto msa_tensor *matrix = msa_tensor_new(MSA_INTS(rows.outer, rows.inner), working);
    if (!matrix) return NULL;
    const void *from = msa_data(rows.matrix);
    void *to = matrix->storage->data;
    int64_t n = rows.inner;
    if (working == MSA_FLOAT32) LOG_RUNNING(float)
    else LOG_RUNNING(double)
    return msa_lines_result(self, dim, matrix, have);
}
