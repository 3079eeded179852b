/* Reductions: sums, products, extremes, variance, norms. Rows are summed in double, in blocks, so that the error does not
 * grow with their length. */
#include <complex.h>
#include <math.h>

#include "cpu/rows.h"
#include "ops/kernels.h"

typedef float _Complex c64;
typedef double _Complex c128;

static msa_tensor *new_result(const msa_rows *rows, msa_dtype dtype) {
    return msa_tensor_new((msa_ints){rows->sizes, rows->ndim}, dtype);
}

static msa_tensor *finish(msa_tensor *out, msa_dtype dtype) {
    msa_tensor *cast = out ? msa_cast_values(out, dtype) : NULL;
    msa_tensor_release(out);
    return cast;
}

/* Sums of whole rows. A long single row is cut among the threads. */
static double sum_f32(const float *p, int64_t n) {
    double total = 0;
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = n - i < 256 ? n - i : 256;
        float s[8] = {0};
        int64_t k = 0;
        for (; k + 8 <= m; k += 8)
            for (int j = 0; j < 8; j++) s[j] += p[i + k + j];
        for (; k < m; k++) s[0] += p[i + k];
        total += ((double)s[0] + s[4]) + ((double)s[1] + s[5]) + ((double)s[2] + s[6]) + ((double)s[3] + s[7]);
    }
    return total;
}

static double sum_f64(const double *p, int64_t n) {
    double s[8] = {0};
    int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (int j = 0; j < 8; j++) s[j] += p[k + j];
    for (; k < n; k++) s[0] += p[k];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

static int64_t sum_i64(const int64_t *p, int64_t n) {
    uint64_t s = 0;
    for (int64_t k = 0; k < n; k++) s += (uint64_t)p[k];
    return (int64_t)s;
}

static c128 sum_c64(const c64 *p, int64_t n) {
    c128 s = 0;
    for (int64_t k = 0; k < n; k++) s += p[k];
    return s;
}

static c128 sum_c128(const c128 *p, int64_t n) {
    c128 s = 0;
    for (int64_t k = 0; k < n; k++) s += p[k];
    return s;
}

/* The sum of all elements on several threads. */
static double sum_f32_threads(const float *p, int64_t n) {
    double total = 0;
    int threads = msa_threads_for(n, MSA_GRAIN);
    if (threads == 1) return sum_f32(p, n);
    double part[256] = {0};
    if (threads > 256) threads = 256;
#pragma omp parallel num_threads(threads)
    {
        int64_t begin, end;
        msa_share(n, omp_get_num_threads(), omp_get_thread_num(), &begin, &end);
        part[omp_get_thread_num()] = sum_f32(p + begin, end - begin);
    }
    for (int i = 0; i < threads; i++) total += part[i];
    return total;
}

/* Float sums over leading dimensions, (R, C) -> (C): added row by row, without moving anything. */
static msa_tensor *sum_columns(msa_tensor *self, msa_ints dim, bool keepdim) {
    int64_t lead = dim.n;
    bool leading = self->dtype == MSA_FLOAT32 && self->contiguous && lead > 0 && lead < self->ndim;
    uint64_t seen = 0;
    for (int64_t i = 0; i < dim.n && leading; i++) {
        int64_t d = dim.data[i] < 0 ? dim.data[i] + self->ndim : dim.data[i];
        leading = d >= 0 && d < lead && !(seen >> d & 1);
        seen |= (uint64_t)1 << d;
    }
    if (!leading) return NULL;
    int64_t rows = 1, columns = 1, sizes[MSA_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < self->ndim; d++) {
        if (d < lead) {
            rows *= self->sizes[d];
            if (keepdim) sizes[n++] = 1;
        } else {
            columns *= self->sizes[d];
            sizes[n++] = self->sizes[d];
        }
    }
    if (rows < 2 || columns < 8) return NULL;
    msa_tensor *out = msa_tensor_new((msa_ints){sizes, n}, MSA_FLOAT32);
    const float *p = out ? msa_data(self) : NULL;
    if (!p) {
        msa_tensor_release(out);
        return NULL;
    }
    float *to = out->storage->data;
    int threads = msa_threads_for(rows * columns, MSA_GRAIN);
    int64_t blocks = (columns + 63) / 64;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t b = 0; b < blocks; b++) {
        int64_t from = b * 64, width = columns - from < 64 ? columns - from : 64;
        double total[64] = {0};
        for (int64_t r = 0; r < rows; r += 64) {
            float part[64] = {0};
            int64_t last = r + 64 < rows ? r + 64 : rows;
            for (int64_t k = r; k < last; k++) {
                const float *row = p + k * columns + from;
                if (width == 64)
                    for (int j = 0; j < 64; j++) part[j] += row[j];
                else
                    for (int64_t j = 0; j < width; j++) part[j] += row[j];
            }
            for (int j = 0; j < 64; j++) total[j] += part[j];
        }
        for (int64_t j = 0; j < width; j++) to[from + j] = (float)total[j];
    }
    return out;
}

/* Means and sums over the positions of a tensor in the hidden layout: (N, P, C) -> (N, C). */
static msa_tensor *sum_positions(msa_tensor *self, msa_ints dim, bool keepdim, double scale) {
    if (!msa_hidden_nhwc(self) || self->dtype != MSA_FLOAT32 || dim.n != 2) return NULL;
    int64_t a = dim.data[0] < 0 ? dim.data[0] + 4 : dim.data[0], b = dim.data[1] < 0 ? dim.data[1] + 4 : dim.data[1];
    if (!((a == 2 && b == 3) || (a == 3 && b == 2))) return NULL;
    int64_t n = self->sizes[0], c = self->sizes[1], p = self->sizes[2] * self->sizes[3];
    msa_tensor *out = keepdim ? msa_tensor_new(MSA_INTS(n, c, 1, 1), MSA_FLOAT32) : msa_tensor_new(MSA_INTS(n, c), MSA_FLOAT32);
    if (!out) return NULL;
    const float *from = self->storage->data;
    float *to = out->storage->data;
#pragma omp parallel for num_threads(msa_threads_for(n *c *p, MSA_GRAIN))
    for (int64_t i = 0; i < n; i++) {
        float *sums = to + i * c;
        memset(sums, 0, sizeof(float) * (size_t)c);
        for (int64_t k = 0; k < p; k++)
            for (int64_t j = 0; j < c; j++) sums[j] += from[(i * p + k) * c + j];
        for (int64_t j = 0; j < c; j++) sums[j] = (float)(sums[j] * scale);
    }
    return out;
}

static msa_tensor *summed(const char *op, msa_tensor *self, msa_ints dim, bool keepdim, msa_dtype result, bool mean) {
    msa_dtype working = msa_working_type(result);
    if (result == (msa_dtype)self->dtype && result == MSA_FLOAT32) {
        double count = 1;
        if (mean && msa_hidden_nhwc(self)) count = (double)(self->sizes[2] * self->sizes[3]);
        msa_tensor *quick = sum_positions(self, dim, keepdim, 1 / count);
        if (!quick && !mean) quick = sum_columns(self, dim, keepdim);
        if (quick) return quick;
    }
    msa_auto_rows msa_rows rows = {0};
    if (msa_rows_open(&rows, op, self, dim, keepdim, working) != 0) return NULL;
    msa_tensor *out = new_result(&rows, working);
    if (!out) return NULL;
    void *to = out->storage->data;
    const void *from = msa_data(rows.matrix);
    int64_t n = rows.inner;
    double over = mean ? (double)n : 1;
    switch (working) {
    case MSA_FLOAT32:
        if (rows.outer == 1) *(float *)to = (float)(sum_f32_threads(from, n) / over);
        else MSA_FOR_ROWS(rows)((float *)to)[row] = (float)(sum_f32((const float *)from + row * n, n) / over);
        break;
    case MSA_FLOAT64: MSA_FOR_ROWS(rows)((double *)to)[row] = sum_f64((const double *)from + row * n, n) / over; break;
    case MSA_COMPLEX64: MSA_FOR_ROWS(rows)((c64 *)to)[row] = (c64)(sum_c64((const c64 *)from + row * n, n) / over); break;
    case MSA_COMPLEX128: MSA_FOR_ROWS(rows)((c128 *)to)[row] = sum_c128((const c128 *)from + row * n, n) / over; break;
    default: MSA_FOR_ROWS(rows)((int64_t *)to)[row] = sum_i64((const int64_t *)from + row * n, n); break;
    }
    return finish(out, result);
}

static msa_dtype sum_type(const msa_tensor *self, msa_dtype dtype) {
    msa_dtype have = (msa_dtype)self->dtype;
    return dtype != MSA_NO_DTYPE ? dtype : msa_is_integral(have, true) ? MSA_INT64 : have;
}

msa_tensor *sum_cpu(msa_tensor *self, msa_ints dim, bool keepdim, msa_dtype dtype) {
    return summed("sum", self, dim, keepdim, sum_type(self, dtype), false);
}

msa_tensor *sum_all_cpu(msa_tensor *self, msa_dtype dtype) { return sum_cpu(self, MSA_NO_INTS, false, dtype); }

msa_tensor *mean_cpu(msa_tensor *self, msa_ints dim, bool keepdim, msa_dtype dtype) {
    msa_dtype result = dtype != MSA_NO_DTYPE ? dtype : (msa_dtype)self->dtype;
    if (!msa_is_inexact(result))
        return msa_fail_null(MSA_RUNTIME_ERROR,
                             "mean(): could not infer output dtype. %s dtype must be either a floating point or complex dtype. Got: %s",
                             dtype != MSA_NO_DTYPE ? "Optional" : "Input", msa_dtype_type_name(result));
    return summed("mean", self, dim, keepdim, result, true);
}

msa_tensor *mean_all_cpu(msa_tensor *self, msa_dtype dtype) { return mean_cpu(self, MSA_NO_INTS, false, dtype); }

#define PRODUCT(T, ACC, COUNT) \
    MSA_FOR_ROWS(rows) { \
        const T *p = (const T *)from + row * n; \
        ACC s = 1; \
        for (int64_t k = 0; k < COUNT; k++) s *= p[k]; \
        ((T *)to)[row] = (T)s; \
    } \
    break

static msa_tensor *product(msa_tensor *self, msa_ints dim, bool keepdim, msa_dtype dtype) {
    msa_dtype result = sum_type(self, dtype), working = msa_working_type(result);
    msa_auto_rows msa_rows rows = {0};
    if (msa_rows_open(&rows, "prod", self, dim, keepdim, working) != 0) return NULL;
    msa_tensor *out = new_result(&rows, working);
    if (!out) return NULL;
    void *to = out->storage->data;
    const void *from = msa_data(rows.matrix);
    int64_t n = rows.inner;
    switch (working) {
    case MSA_FLOAT32: PRODUCT(float, double, n);
    case MSA_FLOAT64: PRODUCT(double, double, n);
    case MSA_COMPLEX64: PRODUCT(c64, c128, n);
    case MSA_COMPLEX128: PRODUCT(c128, c128, n);
    default: PRODUCT(int64_t, uint64_t, n);
    }
    return finish(out, result);
}

msa_tensor *prod_cpu(msa_tensor *self, int64_t dim, bool keepdim, msa_dtype dtype) { return product(self, MSA_INTS(dim), keepdim, dtype); }

msa_tensor *prod_all_cpu(msa_tensor *self, msa_dtype dtype) { return product(self, MSA_NO_INTS, false, dtype); }

/* For each element the product of the others of its row: prefix products times suffix products. */
#define OTHERS(T) \
    MSA_FOR_ROWS(rows) { \
        const T *p = (const T *)from + row * n; \
        T *t = (T *)to + row * n, s = 1; \
        for (int64_t k = 0; k < n; k++) { \
            t[k] = s; \
            s *= p[k]; \
        } \
        s = 1; \
        for (int64_t k = n - 1; k >= 0; k--) { \
            t[k] *= s; \
            s *= p[k]; \
        } \
    } \
    break

msa_tensor *product_of_others_cpu(msa_tensor *self, msa_opt_int dim) {
    msa_dtype working = msa_working_type((msa_dtype)self->dtype);
    msa_auto_rows msa_rows rows = {0};
    if (msa_rows_open(&rows, "prod", self, dim.has ? MSA_INTS(dim.v) : MSA_NO_INTS, false, working) != 0) return NULL;
    msa_auto msa_tensor *matrix = msa_tensor_new(MSA_INTS(rows.outer, rows.inner), working);
    if (!matrix) return NULL;
    void *to = matrix->storage->data;
    const void *from = msa_data(rows.matrix);
    int64_t n = rows.inner;
    switch (working) {
    case MSA_FLOAT32: OTHERS(float);
    case MSA_FLOAT64: OTHERS(double);
    case MSA_COMPLEX64: OTHERS(c64);
    case MSA_COMPLEX128: OTHERS(c128);
    default: OTHERS(int64_t);
    }
    if (dim.has) return msa_lines_result(self, dim.v, matrix, (msa_dtype)self->dtype);
    msa_auto msa_tensor *shaped = msa_tensor_new(msa_sizes(self), working);
    if (!shaped) return NULL;
    memcpy(shaped->storage->data, to, (size_t)self->numel * msa_dtype_size(working));
    return msa_cast_values(shaped, (msa_dtype)self->dtype);
}

/* The derivative of sum_k g_k prod_(i != k) x_i by x_j: the coefficient of t in prod_(i != j) (x_i + t g_i), from the products of
 * such binomials before and behind j. Exact with zeros, too. */
#define OTHERS_GRADIENT(T) \
    MSA_FOR_ROWS(rows) { \
        const T *x = (const T *)from + row * n, *g = (const T *)grads + row * n; \
        T *r = (T *)to + row * n, product = 1, slope = 0; \
        for (int64_t k = n - 1; k >= 0; k--) { /* behind: kept in r as the slope, in `behind` as the product */ \
            r[k] = slope; \
            ((T *)behind)[row * n + k] = product; \
            slope = slope * x[k] + product * g[k]; \
            product *= x[k]; \
        } \
        product = 1; \
        slope = 0; \
        for (int64_t k = 0; k < n; k++) { \
            r[k] = product * r[k] + slope * ((const T *)behind)[row * n + k]; \
            slope = slope * x[k] + product * g[k]; \
            product *= x[k]; \
        } \
    } \
    break

msa_tensor *product_of_others_gradient_cpu(msa_tensor *grad, msa_tensor *self, msa_opt_int dim) {
    const msa_ints dims = dim.has ? MSA_INTS(dim.v) : MSA_NO_INTS;
    msa_dtype working = msa_working_type((msa_dtype)self->dtype);
    msa_auto_rows msa_rows rows = {0}, grad_rows = {0};
    if (msa_rows_open(&rows, "prod", self, dims, false, working) != 0 || msa_rows_open(&grad_rows, "prod", grad, dims, false, working) != 0) return NULL;
    msa_auto msa_tensor *matrix = msa_tensor_new(MSA_INTS(rows.outer, rows.inner), working);
    msa_auto msa_tensor *products = matrix ? msa_tensor_new(MSA_INTS(rows.outer, rows.inner), working) : NULL;
    if (!products) return NULL;
    void *to = matrix->storage->data, *behind = products->storage->data;
    const void *from = msa_data(rows.matrix), *grads = msa_data(grad_rows.matrix);
    int64_t n = rows.inner;
    switch (working) {
    case MSA_FLOAT32: OTHERS_GRADIENT(float);
    case MSA_FLOAT64: OTHERS_GRADIENT(double);
    case MSA_COMPLEX64: OTHERS_GRADIENT(c64);
    case MSA_COMPLEX128: OTHERS_GRADIENT(c128);
    default: OTHERS_GRADIENT(int64_t);
    }
    if (dim.has) return msa_lines_result(self, dim.v, matrix, (msa_dtype)self->dtype);
    msa_auto msa_tensor *shaped = msa_tensor_new(msa_sizes(self), working);
    if (!shaped) return NULL;
    memcpy(shaped->storage->data, to, (size_t)self->numel * msa_dtype_size(working));
    return msa_cast_values(shaped, (msa_dtype)self->dtype);
}

/* Extremes. A NaN wins, and the first of equals. `sign` is 1 for the largest, -1 for the smallest. */
#define EXTREME(T, BETTER, IS_NAN) \
    MSA_FOR_ROWS(rows) { \
        const T *p = (const T *)from + row * n; \
        int64_t at = 0; \
        for (int64_t k = 1; k < n; k++) { \
            if (IS_NAN(p[at])) break; \
            if (BETTER(p[k], p[at]) || IS_NAN(p[k])) at = k; \
        } \
        if (values) ((T *)values->storage->data)[row] = p[at]; \
        if (places) ((int64_t *)places->storage->data)[row] = at; \
    }
#define LARGER(a, b) ((a) > (b))
#define SMALLER(a, b) ((a) < (b))
#define FLOAT_NAN(a) ((a) != (a))
#define NO_NAN(a) false

static int extreme(const char *op, msa_tensor *self, msa_ints dim, bool keepdim, bool largest, msa_tensor **values_out,
                   msa_tensor **places_out) {
    msa_dtype have = (msa_dtype)self->dtype, working = msa_working_type(have);
    if (msa_is_complex(have)) return msa_fail(MSA_RUNTIME_ERROR, "%s: not implemented for '%s'", op, msa_dtype_type_name(have));
    msa_auto_rows msa_rows rows = {0};
    if (msa_rows_open(&rows, op, self, dim, keepdim, working) != 0) return -1;
    if (rows.inner == 0 && (rows.outer > 0 || dim.n <= 0)) {
        if (dim.n <= 0)
            return msa_fail(places_out && !values_out ? MSA_INDEX_ERROR : MSA_RUNTIME_ERROR,
                            "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
                            "'dim' argument.", op);
        return msa_fail(MSA_INDEX_ERROR, "%s(): Expected reduction dim %lld to have non-zero size.", op, (long long)dim.data[0]);
    }
    msa_auto msa_tensor *values = values_out ? new_result(&rows, working) : NULL;
    msa_auto msa_tensor *places = places_out ? new_result(&rows, MSA_INT64) : NULL;
    if ((values_out && !values) || (places_out && !places)) return -1;
    const void *from = msa_data(rows.matrix);
    int64_t n = rows.inner;
    if (working == MSA_FLOAT32 && largest) EXTREME(float, LARGER, FLOAT_NAN)
    else if (working == MSA_FLOAT32) EXTREME(float, SMALLER, FLOAT_NAN)
    else if (working == MSA_FLOAT64 && largest) EXTREME(double, LARGER, FLOAT_NAN)
    else if (working == MSA_FLOAT64) EXTREME(double, SMALLER, FLOAT_NAN)
    else if (largest) EXTREME(int64_t, LARGER, NO_NAN)
    else EXTREME(int64_t, SMALLER, NO_NAN)
    if (values_out && !(*values_out = msa_cast_values(values, have))) return -1;
    if (places_out) *places_out = msa_take(places);
    return 0;
}

static msa_tensor *extreme_value(const char *op, msa_tensor *self, msa_ints dim, bool keepdim, bool largest) {
    msa_tensor *value = NULL;
    return extreme(op, self, dim, keepdim, largest, &value, NULL) == 0 ? value : NULL;
}

static msa_tensor *extreme_place(const char *op, msa_tensor *self, msa_opt_int dim, bool keepdim, bool largest) {
    msa_tensor *place = NULL;
    msa_ints dims = dim.has ? MSA_INTS(dim.v) : MSA_NO_INTS;
    return extreme(op, self, dims, keepdim, largest, NULL, &place) == 0 ? place : NULL;
}

msa_tensor *amax_cpu(msa_tensor *self, msa_ints dim, bool keepdim) { return extreme_value("amax", self, dim, keepdim, true); }
msa_tensor *amin_cpu(msa_tensor *self, msa_ints dim, bool keepdim) { return extreme_value("amin", self, dim, keepdim, false); }
msa_tensor *max_all_cpu(msa_tensor *self) { return extreme_value("max", self, MSA_NO_INTS, false, true); }
msa_tensor *min_all_cpu(msa_tensor *self) { return extreme_value("min", self, MSA_NO_INTS, false, false); }
int max_dim_cpu(msa_tensor *self, int64_t dim, bool keepdim, msa_tensor **results) {
    return extreme("max", self, MSA_INTS(dim), keepdim, true, &results[0], &results[1]);
}
int min_dim_cpu(msa_tensor *self, int64_t dim, bool keepdim, msa_tensor **results) {
    return extreme("min", self, MSA_INTS(dim), keepdim, false, &results[0], &results[1]);
}
msa_tensor *argmax_cpu(msa_tensor *self, msa_opt_int dim, bool keepdim) { return extreme_place("argmax", self, dim, keepdim, true); }
msa_tensor *argmin_cpu(msa_tensor *self, msa_opt_int dim, bool keepdim) { return extreme_place("argmin", self, dim, keepdim, false); }

/* all and any: of truth values; a uint8 tensor gives uint8. */
static msa_tensor *truth(const char *op, msa_tensor *self, msa_ints dim, bool keepdim, bool all) {
    msa_auto_rows msa_rows rows = {0};
    if (msa_rows_open(&rows, op, self, dim, keepdim, MSA_BOOL) != 0) return NULL;
    msa_tensor *out = new_result(&rows, MSA_BOOL);
    if (!out) return NULL;
    uint8_t *to = out->storage->data;
    const uint8_t *from = msa_data(rows.matrix);
    int64_t n = rows.inner;
    MSA_FOR_ROWS(rows) {
        const uint8_t *p = from + row * n;
        int64_t k = 0;
        while (k < n && (p[k] != 0) == all) k++;
        to[row] = all ? k == n : k < n;
    }
    return self->dtype == MSA_UINT8 ? finish(out, MSA_UINT8) : out;
}

msa_tensor *all_cpu(msa_tensor *self, int64_t dim, bool keepdim) { return truth("all", self, MSA_INTS(dim), keepdim, true); }
msa_tensor *any_cpu(msa_tensor *self, int64_t dim, bool keepdim) { return truth("any", self, MSA_INTS(dim), keepdim, false); }
msa_tensor *all_all_cpu(msa_tensor *self) { return truth("all", self, MSA_NO_INTS, false, true); }
msa_tensor *any_all_cpu(msa_tensor *self) { return truth("any", self, MSA_NO_INTS, false, false); }

/* Variance in two passes: the mean, then the squares of what differs from it. */
#define VARIANCE(T, R, SQUARE) \
    MSA_FOR_ROWS(rows) { \
        const T *p = (const T *)from + row * n; \
        MEAN_TYPE mean = 0; \
        for (int64_t k = 0; k < n; k++) mean += p[k]; \
        mean /= (double)n; \
        double s = 0; \
        for (int64_t k = 0; k < n; k++) { \
            MEAN_TYPE d = p[k] - mean; \
            s += SQUARE; \
        } \
        ((R *)to)[row] = (R)(s / divisor); \
    } \
    break

msa_tensor *var_cpu(msa_tensor *self, msa_ints dim, int64_t correction, bool keepdim) {
    msa_dtype have = (msa_dtype)self->dtype, working = msa_working_type(have);
    if (!msa_is_inexact(have)) return msa_fail_null(MSA_RUNTIME_ERROR, "std and var only support floating point and complex dtypes");
    msa_auto_rows msa_rows rows = {0};
    if (msa_rows_open(&rows, "var", self, dim, keepdim, working) != 0) return NULL;
    msa_tensor *out = new_result(&rows, msa_dtype_real(working));
    if (!out) return NULL;
    void *to = out->storage->data;
    const void *from = msa_data(rows.matrix);
    int64_t n = rows.inner;
    double divisor = (double)(n > correction ? n - correction : 0);
    switch (working) {
#define MEAN_TYPE double
    case MSA_FLOAT32: VARIANCE(float, float, d *d);
    case MSA_FLOAT64: VARIANCE(double, double, d *d);
#undef MEAN_TYPE
#define MEAN_TYPE c128
    case MSA_COMPLEX64: VARIANCE(c64, float, creal(d) * creal(d) + cimag(d) * cimag(d));
    default: VARIANCE(c128, double, creal(d) * creal(d) + cimag(d) * cimag(d));
#undef MEAN_TYPE
    }
    return finish(out, msa_dtype_real(have));
}

/* Vector norms of any order, from absolute values. */
static double row_norm(const void *from, msa_dtype type, int64_t n, double order) {
#define ABS(k) \
    (type == MSA_FLOAT32     ? fabs((double)((const float *)from)[k]) \
     : type == MSA_FLOAT64   ? fabs(((const double *)from)[k]) \
     : type == MSA_COMPLEX64 ? hypot(((const float *)from)[2 * (k)], ((const float *)from)[2 * (k) + 1]) \
                             : hypot(((const double *)from)[2 * (k)], ((const double *)from)[2 * (k) + 1]))
    double s = 0;
    if (order == 2) {
        if (type == MSA_FLOAT32) {
            const float *p = from;
            for (int64_t k = 0; k < n; k++) s += (double)p[k] * p[k];
        } else {
            for (int64_t k = 0; k < n; k++) s += ABS(k) * ABS(k);
        }
        return sqrt(s);
    }
    if (isinf(order)) {
        s = order > 0 ? 0 : INFINITY;
        for (int64_t k = 0; k < n; k++) {
            double a = ABS(k);
            if (a != a) return a;
            s = order > 0 ? (a > s ? a : s) : (a < s ? a : s);
        }
        return s;
    }
    if (order == 0) {
        for (int64_t k = 0; k < n; k++) s += ABS(k) != 0;
        return s;
    }
    if (order == 1) {
        for (int64_t k = 0; k < n; k++) s += ABS(k);
        return s;
    }
    for (int64_t k = 0; k < n; k++) s += pow(ABS(k), order);
    return pow(s, 1 / order);
#undef ABS
}

msa_tensor *vector_norm_cpu(msa_tensor *self, msa_scalar ord, msa_ints dim, bool keepdim, msa_dtype dtype) {
    msa_dtype have = (msa_dtype)self->dtype;
    if (!msa_is_inexact(have))
        return msa_fail_null(MSA_RUNTIME_ERROR, "linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s",
                             msa_dtype_type_name(have));
    if (dtype != MSA_NO_DTYPE && msa_is_complex(dtype) != msa_is_complex(have))
        return msa_fail_null(MSA_RUNTIME_ERROR, "linalg.vector_norm: the dtype of the input (%s) should be convertible without narrowing to the specified dtype (%s)",
                             msa_dtype_type_name(have), msa_dtype_type_name(dtype));
    msa_dtype type = dtype == MSA_NO_DTYPE ? have : dtype, working = msa_working_type(type);
    msa_auto_rows msa_rows rows = {0};
    if (msa_rows_open(&rows, "linalg.vector_norm", self, dim, keepdim, working) != 0) return NULL;
    double order = msa_scalar_double(ord);
    if (rows.inner == 0 && (order < 0 || isinf(order)))
        return msa_fail_null(MSA_RUNTIME_ERROR, "linalg.vector_norm cannot compute the %g norm on an empty tensor because the operation does not have an identity", order);
    msa_dtype real = msa_dtype_real(working);
    msa_tensor *out = new_result(&rows, real);
    if (!out) return NULL;
    const char *from = msa_data(rows.matrix);
    int64_t n = rows.inner, step = n * (int64_t)msa_dtype_size(working);
    MSA_FOR_ROWS(rows) {
        double norm = row_norm(from + row * step, working, n, order);
        if (real == MSA_FLOAT32) ((float *)out->storage->data)[row] = (float)norm;
        else ((double *)out->storage->data)[row] = norm;
    }
    return finish(out, msa_dtype_real(type));
}

#define LOGSUMEXP(T) \
    MSA_FOR_ROWS(rows) { \
        const T *p = (const T *)from + row * n; \
        double most = -INFINITY, s = 0; \
        bool nan = false; \
        for (int64_t k = 0; k < n; k++) { \
            if (p[k] != p[k]) nan = true; \
            if (p[k] > most) most = p[k]; \
        } \
        double shift = isinf(most) ? 0 : most; \
        for (int64_t k = 0; k < n; k++) s += exp(p[k] - shift); \
        ((T *)to)[row] = (T)(nan ? NAN : log(s) + shift); \
    }

msa_tensor *logsumexp_cpu(msa_tensor *self, msa_ints dim, bool keepdim) {
    msa_dtype have = (msa_dtype)self->dtype;
    msa_dtype type = msa_is_integral(have, true) ? msa_default_dtype() : have, working = msa_working_type(type);
    if (msa_is_complex(have)) return msa_fail_null(MSA_NOT_IMPLEMENTED, "\"logsumexp\" not implemented for '%s'", msa_dtype_type_name(have));
    msa_auto_rows msa_rows rows = {0};
    if (msa_rows_open(&rows, "logsumexp", self, dim, keepdim, working) != 0) return NULL;
    msa_tensor *out = new_result(&rows, working);
    if (!out) return NULL;
    void *to = out->storage->data;
    const void *from = msa_data(rows.matrix);
    int64_t n = rows.inner;
    if (working == MSA_FLOAT32) LOGSUMEXP(float)
    else LOGSUMEXP(double)
    return finish(out, type);
}
