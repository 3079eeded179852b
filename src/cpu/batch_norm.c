/* Batch normalisation, forward and backward, in the order of the input's memory: rows of channels (channels last, or no spatial
 * dimensions) or planes of one channel.
 *
 * Mean and variance come from one sweep over memory: each chunk that fits the first-level cache is summed, its squared deviations
 * from its own mean are summed, and the chunks are merged in double (Chan, Golub and LeVeque, "Updating formulae and a pairwise
 * algorithm for computing sample variances"). */
#include <math.h>

#include "base/parallel.h"
#include "cpu/layout.h"
#include "cpu/vector.h"
#include "ops/kernels.h"

enum { CHUNK_BYTES = 16384, PLANE_CHUNK = 4096 };

/* rows x c values in `rows` order; or n planes of p values for each of c channels. */
typedef struct {
    bool rows;
    int64_t n, c, p;
} shape;

typedef struct {
    double count, mean, squares; /* squares: sum of squared deviations from the mean */
} moments;

static void merge(moments *a, double count, double mean, double squares) {
    const double total = a->count + count, delta = mean - a->mean;
    a->squares += squares + delta * delta * a->count * count / total;
    a->mean += delta * count / total;
    a->count = total;
}

#define NORM(NAME, T) \
    MSA_VECTOR static void NAME##_row_sums(int64_t rows, int64_t c, const T *x, T *sum) { \
        for (int64_t i = 0; i < c; i++) sum[i] = 0; \
        for (int64_t r = 0; r < rows; r++) \
            for (int64_t i = 0; i < c; i++) sum[i] += x[r * c + i]; \
    } \
    MSA_VECTOR static void NAME##_row_squares(int64_t rows, int64_t c, const T *x, const T *mean, T *sum) { \
        for (int64_t i = 0; i < c; i++) sum[i] = 0; \
        for (int64_t r = 0; r < rows; r++) \
            for (int64_t i = 0; i < c; i++) sum[i] += (x[r * c + i] - mean[i]) * (x[r * c + i] - mean[i]); \
    } \
    MSA_VECTOR static void NAME##_row_apply(int64_t rows, int64_t c, const T *x, const T *scale, const T *shift, T *out) { \
        for (int64_t r = 0; r < rows; r++) \
            for (int64_t i = 0; i < c; i++) out[r * c + i] = x[r * c + i] * scale[i] + shift[i]; \
    } \
    /* Sums of g and of g * (x - mean). */ \
    MSA_VECTOR static void NAME##_row_products(int64_t rows, int64_t c, const T *x, const T *g, const T *mean, T *sum, T *product) { \
        for (int64_t i = 0; i < c; i++) sum[i] = product[i] = 0; \
        for (int64_t r = 0; r < rows; r++) \
            for (int64_t i = 0; i < c; i++) { \
                sum[i] += g[r * c + i]; \
                product[i] += g[r * c + i] * (x[r * c + i] - mean[i]); \
            } \
    } \
    /* g * a + x * b + d */ \
    MSA_VECTOR static void NAME##_row_combine(int64_t rows, int64_t c, const T *x, const T *g, const T *a, const T *b, const T *d, T *out) { \
        for (int64_t r = 0; r < rows; r++) \
            for (int64_t i = 0; i < c; i++) out[r * c + i] = g[r * c + i] * a[i] + x[r * c + i] * b[i] + d[i]; \
    } \
    MSA_VECTOR static T NAME##_plane_sum(int64_t n, const T *x) { \
        T sum = 0; \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < n; i++) sum += x[i]; \
        return sum; \
    } \
    MSA_VECTOR static T NAME##_plane_squares(int64_t n, const T *x, T mean) { \
        T sum = 0; \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean); \
        return sum; \
    } \
    MSA_VECTOR static T NAME##_plane_product(int64_t n, const T *x, const T *g, T mean) { \
        T sum = 0; \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t i = 0; i < n; i++) sum += g[i] * (x[i] - mean); \
        return sum; \
    } \
    MSA_VECTOR static void NAME##_plane_combine(int64_t n, const T *x, const T *g, T a, T b, T d, T *out) { \
        if (g) \
            for (int64_t i = 0; i < n; i++) out[i] = g[i] * a + x[i] * b + d; \
        else \
            for (int64_t i = 0; i < n; i++) out[i] = x[i] * b + d; \
    } \
    /* all: one for each thread and channel. */ \
    static int NAME##_moments(const shape *s, const T *x, moments *result) { \
        memset(result, 0, sizeof *result * (size_t)s->c); \
        if (!s->rows) { \
            _Pragma("omp parallel for num_threads(msa_threads_for(s->n * s->c * s->p, MSA_GRAIN))") for (int64_t c = 0; c < s->c; c++) \
                for (int64_t n = 0; n < s->n; n++) \
                    for (int64_t at = 0; at < s->p; at += PLANE_CHUNK) { \
                        const int64_t count = s->p - at < PLANE_CHUNK ? s->p - at : PLANE_CHUNK; \
                        const T *plane = x + (n * s->c + c) * s->p + at; \
                        const T mean = NAME##_plane_sum(count, plane) / (T)count; \
                        merge(&result[c], (double)count, (double)mean, (double)NAME##_plane_squares(count, plane, mean)); \
                    } \
            return 0; \
        } \
        const int64_t rows = s->n * s->p, fit = CHUNK_BYTES / ((int64_t)sizeof(T) * s->c), chunk = fit < 8 ? 8 : fit; \
        const int threads = msa_threads_for(rows * s->c, MSA_GRAIN); \
        msa_auto_free moments *all = msa_calloc((size_t)(s->c * threads), sizeof *all); \
        msa_auto_free T *scratch = msa_calloc((size_t)(s->c * threads * 2), sizeof *scratch); \
        if (!all || !scratch) return -1; \
        _Pragma("omp parallel for num_threads(threads)") for (int t = 0; t < threads; t++) { \
            int64_t begin, end; \
            msa_share(rows, threads, t, &begin, &end); \
            T *mean = scratch + 2 * t * s->c, *squares = mean + s->c; \
            moments *own = all + t * s->c; \
            for (int64_t r = begin; r < end; r += chunk) { \
                const int64_t count = end - r < chunk ? end - r : chunk; \
                NAME##_row_sums(count, s->c, x + r * s->c, mean); \
                for (int64_t c = 0; c < s->c; c++) mean[c] /= (T)count; \
                NAME##_row_squares(count, s->c, x + r * s->c, mean, squares); \
                for (int64_t c = 0; c < s->c; c++) merge(&own[c], (double)count, (double)mean[c], (double)squares[c]); \
            } \
        } \
        for (int t = 0; t < threads; t++) \
            for (int64_t c = 0; c < s->c; c++) \
                if (all[t * s->c + c].count > 0) merge(&result[c], all[t * s->c + c].count, all[t * s->c + c].mean, all[t * s->c + c].squares); \
        return 0; \
    } \
    /* out = g * a + x * b + d by channel; g may be NULL. */ \
    static void NAME##_combine(const shape *s, const T *x, const T *g, const T *a, const T *b, const T *d, T *out) { \
        const int64_t items = s->rows ? s->n * s->p : s->n * s->c; \
        const int threads = msa_threads_for(s->n * s->c * s->p, MSA_GRAIN); \
        _Pragma("omp parallel for num_threads(threads)") for (int t = 0; t < threads; t++) { \
            int64_t begin, end; \
            msa_share(items, threads, t, &begin, &end); \
            if (s->rows) { \
                const int64_t at = begin * s->c; \
                if (g) NAME##_row_combine(end - begin, s->c, x + at, g + at, a, b, d, out + at); \
                else NAME##_row_apply(end - begin, s->c, x + at, b, d, out + at); \
                continue; \
            } \
            for (int64_t i = begin; i < end; i++) { \
                const int64_t c = i % s->c, at = i * s->p; \
                NAME##_plane_combine(s->p, x + at, g ? g + at : NULL, a ? a[c] : 0, b[c], d[c], out + at); \
            } \
        } \
    } \
    static int NAME##_products(const shape *s, const T *x, const T *g, const T *mean, double *sum, double *product) { \
        memset(sum, 0, sizeof *sum * (size_t)s->c); \
        memset(product, 0, sizeof *product * (size_t)s->c); \
        if (!s->rows) { \
            _Pragma("omp parallel for num_threads(msa_threads_for(s->n * s->c * s->p, MSA_GRAIN))") for (int64_t c = 0; c < s->c; c++) \
                for (int64_t n = 0; n < s->n; n++) \
                    for (int64_t at = 0; at < s->p; at += PLANE_CHUNK) { \
                        const int64_t count = s->p - at < PLANE_CHUNK ? s->p - at : PLANE_CHUNK, o = (n * s->c + c) * s->p + at; \
                        sum[c] += (double)NAME##_plane_sum(count, g + o); \
                        product[c] += (double)NAME##_plane_product(count, x + o, g + o, mean[c]); \
                    } \
            return 0; \
        } \
        const int64_t rows = s->n * s->p, chunk = 128; \
        const int threads = msa_threads_for(rows * s->c, MSA_GRAIN); \
        msa_auto_free double *all = msa_calloc((size_t)(s->c * threads * 2), sizeof *all); \
        msa_auto_free T *scratch = msa_calloc((size_t)(s->c * threads * 2), sizeof *scratch); \
        if (!all || !scratch) return -1; \
        _Pragma("omp parallel for num_threads(threads)") for (int t = 0; t < threads; t++) { \
            int64_t begin, end; \
            msa_share(rows, threads, t, &begin, &end); \
            T *part = scratch + 2 * t * s->c; \
            double *own = all + 2 * t * s->c; \
            for (int64_t r = begin; r < end; r += chunk) { \
                const int64_t count = end - r < chunk ? end - r : chunk; \
                NAME##_row_products(count, s->c, x + r * s->c, g + r * s->c, mean, part, part + s->c); \
                for (int64_t c = 0; c < 2 * s->c; c++) own[c] += (double)part[c]; \
            } \
        } \
        for (int t = 0; t < threads; t++) \
            for (int64_t c = 0; c < s->c; c++) { \
                sum[c] += all[2 * t * s->c + c]; \
                product[c] += all[(2 * t + 1) * s->c + c]; \
            } \
        return 0; \
    } \
    static int NAME##_forward(const shape *s, const T *x, const T *mean, const T *invstd, const T *weight, const T *bias, T *out) { \
        msa_auto_free T *scale = msa_malloc(sizeof *scale * 2 * (size_t)s->c); \
        if (!scale) return -1; \
        for (int64_t c = 0; c < s->c; c++) { \
            scale[c] = weight ? invstd[c] * weight[c] : invstd[c]; \
            scale[s->c + c] = (bias ? bias[c] : 0) - mean[c] * scale[c]; \
        } \
        NAME##_combine(s, x, NULL, NULL, scale, scale + s->c, out); \
        return 0; \
    } \
    static int NAME##_backward(const shape *s, const T *x, const T *g, const T *mean, const T *invstd, const T *weight, bool training, \
                               T *grad_x, T *grad_weight, T *grad_bias) { \
        const size_t c_ = (size_t)s->c; \
        msa_auto_free double *sums = msa_malloc(sizeof *sums * 2 * c_); \
        msa_auto_free T *factors = msa_malloc(sizeof *factors * 3 * c_); \
        if (!sums || !factors || NAME##_products(s, x, g, mean, sums, sums + c_) != 0) return -1; \
        const double count = (double)(s->n * s->p); \
        for (size_t c = 0; c < c_; c++) { \
            const double r = (double)invstd[c], w = weight ? (double)weight[c] : 1; \
            if (grad_weight) grad_weight[c] = (T)(sums[c_ + c] * r); \
            if (grad_bias) grad_bias[c] = (T)sums[c]; \
            const double slope = training ? -w * r * r * r * sums[c_ + c] / count : 0; \
            factors[c] = (T)(w * r); \
            factors[c_ + c] = (T)slope; \
            factors[2 * c_ + c] = (T)(training ? -w * r * sums[c] / count - slope * (double)mean[c] : 0); \
        } \
        if (grad_x) NAME##_combine(s, x, g, factors, factors + c_, factors + 2 * c_, grad_x); \
        return 0; \
    }
NORM(f32, float)
NORM(f64, double)

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

static int check_parameter(const char *name, const msa_tensor *t, int64_t c) {
    if (!t || (t->ndim == 1 && t->numel == c) || t->numel == c) return 0;
    return msa_fail(MSA_RUNTIME_ERROR, "%s should contain %lld elements not %lld", name, (long long)c, (long long)t->numel);
}

/* A parameter's values in the computing type, contiguous; NULL stays NULL. */
static int parameter(msa_tensor *t, msa_dtype type, msa_tensor **out) {
    *out = NULL;
    if (!t) return 0;
    msa_auto msa_tensor *typed = msa_cast_values(t, type);
    *out = typed ? msa_contiguous_values(typed) : NULL;
    return *out ? 0 : -1;
}
static const void *values_of(const msa_tensor *t) { return t ? msa_data(t) : NULL; }

static int computing_type(msa_tensor *input, msa_dtype *type) {
    const msa_dtype d = (msa_dtype)input->dtype;
    if (!msa_is_floating(d)) return msa_fail(MSA_NOT_IMPLEMENTED, "\"batch_norm\" not implemented for '%s'", msa_dtype_type_name(d));
    *type = d == MSA_FLOAT64 ? d : MSA_FLOAT32;
    return 0;
}

static bool by_rows(const msa_tensor *t) { return msa_hidden_nhwc(t) || msa_visibly_channels_last(t) || t->ndim == 2; }

/* x's values in rows or planes. */
static int ordered(msa_tensor *x, bool rows, msa_image *image, msa_tensor **keep) {
    *image = (msa_image){NULL, NULL};
    if (rows && x->ndim > 2) return msa_image_channels_last(x, image);
    *keep = msa_contiguous_values(x);
    if (!*keep) return -1;
    image->data = msa_data(*keep);
    return image->data || !x->numel ? 0 : -1;
}

static int new_result(const msa_tensor *like, bool rows, msa_dtype type, msa_image_out *out) {
    if (rows && like->ndim > 2) return msa_image_out_new(msa_sizes(like), type, !msa_hidden_nhwc(like), out);
    *out = (msa_image_out){msa_tensor_new(msa_sizes(like), type), NULL, NULL};
    if (!out->result) return -1;
    out->data = out->result->storage->data;
    return 0;
}

/* running = (1 - momentum) * running + momentum * fresh */
static int update_running(msa_tensor *running, const double *fresh, double momentum) {
    msa_auto msa_tensor *wide = msa_cast_values(running, MSA_FLOAT64), *values = wide ? msa_clone_values(wide) : NULL;
    double *v = values ? msa_data(values) : NULL;
    if (!v) return values && !values->numel ? 0 : -1;
    for (int64_t c = 0; c < values->numel; c++) v[c] = (1 - momentum) * v[c] + momentum * fresh[c];
    if (msa_copy_values(running, values) != 0) return -1;
    msa_bump_version(running);
    return 0;
}

int batch_norm_cpu(msa_tensor *input, msa_tensor *weight, msa_tensor *bias, msa_tensor *running_mean, msa_tensor *running_var,
                   bool training, double momentum, double eps, msa_tensor **results) {
    msa_dtype type = MSA_NO_DTYPE;
    if (input->ndim < 2) return msa_fail(MSA_RUNTIME_ERROR, "batch_norm: expected an input of at least 2 dimensions, got %d", input->ndim);
    const int64_t c = input->sizes[1];
    if (computing_type(input, &type) != 0 || check_parameter("running_mean", running_mean, c) != 0 ||
        check_parameter("running_var", running_var, c) != 0 || check_parameter("weight", weight, c) != 0 || check_parameter("bias", bias, c) != 0)
        return -1;
    if (!training && !(running_mean && running_var))
        return msa_fail(MSA_RUNTIME_ERROR, "running_mean and running_var must be defined in evaluation mode");
    const bool rows = by_rows(input);
    const shape s = {rows, input->sizes[0], c, input->numel && c ? input->numel / input->sizes[0] / c : 0};
    msa_auto msa_tensor *x = msa_cast_values(input, type), *w = NULL, *b = NULL, *keep = NULL;
    msa_auto msa_tensor *mean = msa_tensor_new(MSA_INTS(c), type), *invstd = msa_tensor_new(MSA_INTS(c), type);
    msa_auto_image from = {NULL, NULL};
    msa_image_out out = {NULL, NULL, NULL};
    if (!x || !mean || !invstd || parameter(weight, type, &w) != 0 || parameter(bias, type, &b) != 0 || ordered(x, rows, &from, &keep) != 0 ||
        new_result(input, rows, type, &out) != 0)
        return -1;
    int status = 0;
    if (training) {
        msa_auto_free moments *m = msa_malloc(sizeof *m * (size_t)c);
        msa_auto_free double *fresh = msa_malloc(sizeof *fresh * 2 * (size_t)c);
        status = !m || !fresh ? -1 : type == MSA_FLOAT64 ? f64_moments(&s, from.data, m) : f32_moments(&s, from.data, m);
        for (int64_t i = 0; i < c && !status; i++) {
            const double variance = m[i].count > 0 ? m[i].squares / m[i].count : NAN, root = variance == 0 && eps == 0 ? 0 : 1 / sqrt(variance + eps);
            fresh[i] = m[i].mean;
            fresh[c + i] = m[i].squares / (m[i].count - 1);
            if (type == MSA_FLOAT64) ((double *)mean->storage->data)[i] = m[i].mean, ((double *)invstd->storage->data)[i] = root;
            else ((float *)mean->storage->data)[i] = (float)m[i].mean, ((float *)invstd->storage->data)[i] = (float)root;
        }
        const bool seen = input->numel > 0; /* an empty batch teaches nothing */
        if (!status && seen && running_mean) status = update_running(running_mean, fresh, momentum);
        if (!status && seen && running_var) status = update_running(running_var, fresh + c, momentum);
    } else {
        status = msa_copy_values(mean, running_mean) != 0 || msa_copy_values(invstd, running_var) != 0 ? -1 : 0;
        for (int64_t i = 0; i < c && !status; i++)
            if (type == MSA_FLOAT64) ((double *)invstd->storage->data)[i] = 1 / sqrt(((double *)invstd->storage->data)[i] + eps);
            else ((float *)invstd->storage->data)[i] = (float)(1 / sqrt((double)((float *)invstd->storage->data)[i] + eps));
    }
    if (!status && input->numel)
        status = type == MSA_FLOAT64 ? f64_forward(&s, from.data, mean->storage->data, invstd->storage->data, values_of(w), values_of(b), out.data)
                                     : f32_forward(&s, from.data, mean->storage->data, invstd->storage->data, values_of(w), values_of(b), out.data);
    if (status) {
        msa_image_out_drop(&out);
        return -1;
    }
    msa_auto msa_tensor *y = msa_image_out_finish(&out);
    results[0] = msa_cast_values(y, (msa_dtype)input->dtype);
    results[1] = msa_take(mean);
    results[2] = msa_take(invstd);
    return results[0] ? 0 : -1;
}

int batch_norm_backward_cpu(msa_tensor *grad, msa_tensor *input, msa_tensor *weight, msa_tensor *mean, msa_tensor *invstd, bool training,
                            msa_ints output_mask, msa_tensor **results) {
    msa_dtype type = MSA_NO_DTYPE;
    if (output_mask.n != 3 || input->ndim < 2 || !msa_same_sizes(grad, input)) return msa_fail(MSA_RUNTIME_ERROR, "batch_norm_backward: arguments of other sizes");
    const int64_t c = input->sizes[1];
    if (computing_type(input, &type) != 0 || check_parameter("weight", weight, c) != 0 || check_parameter("mean", mean, c) != 0 ||
        check_parameter("invstd", invstd, c) != 0)
        return -1;
    const bool rows = by_rows(input);
    const shape s = {rows, input->sizes[0], c, input->numel && c ? input->numel / input->sizes[0] / c : 0};
    msa_auto msa_tensor *x = msa_cast_values(input, type), *g = msa_cast_values(grad, type), *w = NULL, *m = NULL, *r = NULL, *keep = NULL, *keep_g = NULL;
    msa_auto msa_tensor *grad_weight = msa_tensor_new(MSA_INTS(c), type), *grad_bias = msa_tensor_new(MSA_INTS(c), type);
    msa_auto_image from = {NULL, NULL}, from_g = {NULL, NULL};
    msa_image_out out = {NULL, NULL, NULL};
    if (!x || !g || !grad_weight || !grad_bias || parameter(weight, type, &w) != 0 || parameter(mean, type, &m) != 0 || parameter(invstd, type, &r) != 0 ||
        ordered(x, rows, &from, &keep) != 0 || ordered(g, rows, &from_g, &keep_g) != 0)
        return -1;
    if (output_mask.data[0] && new_result(input, rows, type, &out) != 0) return -1;
    const int status =
        type == MSA_FLOAT64 ? f64_backward(&s, from.data, from_g.data, values_of(m), values_of(r), values_of(w), training, out.data,
                                           grad_weight->storage->data, grad_bias->storage->data)
                            : f32_backward(&s, from.data, from_g.data, values_of(m), values_of(r), values_of(w), training, out.data,
                                           grad_weight->storage->data, grad_bias->storage->data);
    if (status) {
        if (out.result) msa_image_out_drop(&out);
        return -1;
    }
    if (output_mask.data[0]) {
        msa_auto msa_tensor *grad_x = msa_image_out_finish(&out);
        if (!(results[0] = msa_cast_values(grad_x, (msa_dtype)input->dtype))) return -1;
    }
    if (output_mask.data[1]) results[1] = msa_take(grad_weight);
    if (output_mask.data[2]) results[2] = msa_take(grad_bias);
    return 0;
}
