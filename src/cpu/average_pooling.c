/* Average pooling with windows of a fixed or an adaptive size, and its gradient. Both are sums over boxes given by per-dimension
 * bounds, divided by a product of per-dimension lengths or by a given number. Channels last stays so. */
#include "base/parallel.h"
#include "cpu/layout.h"
#include "cpu/pooling.h"
#include "cpu/vector.h"
#include "ops/kernels.h"

/* Output index i of a dimension averages input [low[i], high[i]); `length` is what it counts in the divisor. */
typedef struct {
    int64_t *low, *high, *length;
} bounds;

typedef struct {
    int64_t n, c, in[3], out[3];
    bounds of[3];
    double divisor; /* 0: the product of the lengths */
    int64_t *memory;
} boxes;

static void boxes_release(boxes *b) { free(b->memory); }
#define auto_boxes __attribute__((cleanup(boxes_release))) boxes

static int allocate(boxes *b) {
    for (int i = 0; i < 3; i++)
        if (b->out[i] < 0 || b->out[i] > INT32_MAX) return msa_fail(MSA_RUNTIME_ERROR, "pooling: output size %lld is out of range", (long long)b->out[i]);
    const int64_t total = b->out[0] + b->out[1] + b->out[2];
    int64_t *at = b->memory = msa_malloc(sizeof *at * 3 * (size_t)total);
    if (!at) return -1;
    for (int i = 0; i < 3; i++) {
        b->of[i] = (bounds){at, at + b->out[i], at + 2 * b->out[i]};
        at += 3 * b->out[i];
    }
    return 0;
}

static int fixed_boxes(const msa_pool *p, bool count_include_pad, double divisor, boxes *b) {
    *b = (boxes){.n = p->n, .c = p->c, .divisor = divisor};
    memcpy(b->in, p->in, sizeof b->in);
    memcpy(b->out, p->out, sizeof b->out);
    if (allocate(b) != 0) return -1;
    for (int d = 0; d < 3; d++)
        for (int64_t o = 0; o < p->out[d]; o++) {
            int64_t start = o * p->stride[d] - p->padding[d], end = start + p->kernel[d];
            if (end > p->in[d] + p->padding[d]) end = p->in[d] + p->padding[d];
            const int64_t with_padding = end - start;
            if (start < 0) start = 0;
            if (end > p->in[d]) end = p->in[d];
            b->of[d].low[o] = start;
            b->of[d].high[o] = end > start ? end : start;
            b->of[d].length[o] = count_include_pad ? with_padding : b->of[d].high[o] - start;
        }
    return 0;
}

static int adaptive_boxes(msa_ints sizes, msa_ints output_size, boxes *b) {
    *b = (boxes){.n = sizes.data[0], .c = sizes.data[1]};
    const int first = 3 - (int)output_size.n;
    for (int i = 0; i < 3; i++) b->in[i] = b->out[i] = 1;
    for (int i = 0; i < output_size.n; i++) {
        b->in[first + i] = sizes.data[2 + i];
        b->out[first + i] = output_size.data[i];
    }
    if (allocate(b) != 0) return -1;
    for (int d = 0; d < 3; d++)
        for (int64_t o = 0; o < b->out[d]; o++) {
            b->of[d].low[o] = o * b->in[d] / b->out[d];
            b->of[d].high[o] = ((o + 1) * b->in[d] + b->out[d] - 1) / b->out[d];
            b->of[d].length[o] = b->of[d].high[o] - b->of[d].low[o];
        }
    return 0;
}

#define FOR_BOX(b, o, body) \
    for (int64_t z = (b)->of[0].low[o[0]]; z < (b)->of[0].high[o[0]]; z++) \
        for (int64_t y = (b)->of[1].low[o[1]]; y < (b)->of[1].high[o[1]]; y++) { body }

#define AVERAGE(NAME, T, SUM) \
    MSA_VECTOR static void NAME##_add_rows(int64_t c, int64_t n, const T *rows, T *sum) { \
        for (int64_t k = 0; k < n; k++) \
            for (int64_t i = 0; i < c; i++) sum[i] += rows[k * c + i]; \
    } \
    MSA_VECTOR static void NAME##_spread(int64_t c, int64_t n, T *rows, const T *value, SUM divisor) { \
        for (int64_t k = 0; k < n; k++) \
            for (int64_t i = 0; i < c; i++) rows[k * c + i] += (T)(value[i] / divisor); \
    } \
    MSA_VECTOR static void NAME##_divide(int64_t c, T *sum, SUM divisor) { \
        for (int64_t i = 0; i < c; i++) sum[i] = (T)(sum[i] / divisor); \
    } \
    static SUM NAME##_divisor(const boxes *b, const int64_t *o) { \
        return b->divisor != 0 ? (SUM)b->divisor : (SUM)(b->of[0].length[o[0]] * b->of[1].length[o[1]] * b->of[2].length[o[2]]); \
    } \
    /* in and out share the order: wide is c channels last, 1 plain. `back`: in is the gradient's result, cleared here. */ \
    static void NAME##_average(const boxes *b, bool last, bool back, T *in, T *out) { \
        const int64_t outs = msa_volume(b->out), ins = msa_volume(b->in), wide = last ? b->c : 1, images = last ? b->n : b->n * b->c; \
        const int threads = msa_threads_for(b->n * b->c * (ins > outs ? ins : outs), MSA_GRAIN / 4); \
        _Pragma("omp parallel for num_threads(threads)") for (int64_t t = 0; t < images; t++) { \
            T *image = in + t * ins * wide, *result = out + t * outs * wide; \
            if (back) memset(image, 0, sizeof(T) * (size_t)(ins * wide)); \
            int64_t o[3]; \
            for (o[0] = 0; o[0] < b->out[0]; o[0]++) \
                for (o[1] = 0; o[1] < b->out[1]; o[1]++) \
                    for (o[2] = 0; o[2] < b->out[2]; o[2]++, result += wide) { \
                        const int64_t x = b->of[2].low[o[2]], run = b->of[2].high[o[2]] - x; \
                        const SUM divisor = NAME##_divisor(b, o); \
                        if (!back) memset(result, 0, sizeof(T) * (size_t)wide); \
                        if (wide == 1 && !back) { \
                            SUM sum = 0; \
                            FOR_BOX(b, o, { \
                                const T *row = image + (z * b->in[1] + y) * b->in[2] + x; \
                                for (int64_t i = 0; i < run; i++) sum += row[i]; \
                            }) \
                            *result = (T)(sum / divisor); \
                            continue; \
                        } \
                        FOR_BOX(b, o, { \
                            T *row = image + ((z * b->in[1] + y) * b->in[2] + x) * wide; \
                            if (back) NAME##_spread(wide, run, row, result, divisor); \
                            else NAME##_add_rows(wide, run, row, result); \
                        }) \
                        if (!back) NAME##_divide(wide, result, divisor); \
                    } \
        } \
    }
AVERAGE(f32, float, float)
AVERAGE(f64, double, double)
AVERAGE(i64, int64_t, int64_t)

static bool is_last(const msa_tensor *t) { return msa_hidden_nhwc(t) || (t->ndim == 4 && msa_visibly_channels_last(t)); }

/* `given` is the input, or with `back` the gradient; the result has `sizes`. */
static msa_tensor *average(const char *op, const boxes *b, msa_tensor *given, msa_ints sizes, bool back) {
    const msa_dtype d = (msa_dtype)given->dtype;
    if (d == MSA_BOOL || msa_is_complex(d)) return msa_fail_null(MSA_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", op, msa_dtype_type_name(d));
    const msa_dtype type = d == MSA_FLOAT16 || d == MSA_BFLOAT16 ? MSA_FLOAT32 : msa_is_integral(d, false) ? MSA_INT64 : d;
    const bool last = is_last(given), visible = last && !msa_hidden_nhwc(given);
    msa_auto msa_tensor *x = msa_cast_values(given, type);
    if (!x) return NULL;
    msa_auto msa_tensor *plain = last ? NULL : msa_contiguous_values(x);
    if (!last && !plain) return NULL;
    msa_image_out out = {NULL, NULL, NULL};
    if (last && msa_image_out_new(sizes, type, visible, &out) != 0) return NULL;
    msa_auto msa_tensor *result = last ? out.result : msa_tensor_new(sizes, type);
    if (!result) return NULL;
    msa_auto_image image = {NULL, NULL};
    void *from = NULL;
    if (last) {
        if (msa_image_channels_last(x, &image) != 0) {
            msa_data_free(out.owned);
            return NULL;
        }
        from = (void *)(uintptr_t)image.data;
    } else from = msa_data(plain);
    void *to = last ? out.data : result->storage->data;
    void *in = back ? to : from, *outs = back ? from : to;
    if (type == MSA_FLOAT32) f32_average(b, last, back, in, outs);
    else if (type == MSA_FLOAT64) f64_average(b, last, back, in, outs);
    else i64_average(b, last, back, in, outs);
    if (last && out.owned) {
        result = NULL;
        result = msa_image_out_finish(&out);
    }
    return msa_cast_values(result, d);
}

static int fixed(msa_ints sizes, msa_ints kernel_size, msa_ints stride, msa_ints padding, bool ceil_mode, bool count_include_pad,
                 msa_opt_int divisor_override, msa_pool *p, boxes *b) {
    static const int64_t ones[3] = {1, 1, 1};
    const char *const name = kernel_size.n == 3 ? "avg_pool3d" : kernel_size.n == 2 ? "avg_pool2d" : "avg_pool1d";
    if (divisor_override.has && divisor_override.v == 0) return msa_fail(MSA_RUNTIME_ERROR, "divisor must be not zero");
    if (msa_pool_plan(name, sizes, kernel_size, stride, padding, (msa_ints){ones, kernel_size.n}, ceil_mode, p) != 0) return -1;
    return fixed_boxes(p, count_include_pad, divisor_override.has ? (double)divisor_override.v : 0, b);
}

msa_tensor *avg_pool_windows_cpu(msa_tensor *self, msa_ints kernel_size, msa_ints stride, msa_ints padding, bool ceil_mode,
                                 bool count_include_pad, msa_opt_int divisor_override) {
    msa_pool p;
    auto_boxes b = {0};
    if (fixed(msa_sizes(self), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, &p, &b) != 0) return NULL;
    int64_t sizes[5];
    msa_pool_out_sizes(&p, sizes);
    return average("avg_pool2d", &b, self, (msa_ints){sizes, self->ndim}, false);
}

msa_tensor *avg_pool_windows_backward_cpu(msa_tensor *grad, msa_ints sizes, msa_ints kernel_size, msa_ints stride, msa_ints padding,
                                          bool ceil_mode, bool count_include_pad, msa_opt_int divisor_override) {
    msa_pool p;
    auto_boxes b = {0};
    if (fixed(sizes, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, &p, &b) != 0) return NULL;
    int64_t expected[5];
    msa_pool_out_sizes(&p, expected);
    if (grad->ndim != sizes.n || memcmp(grad->sizes, expected, sizeof(int64_t) * (size_t)sizes.n) != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "avg_pool_backward: grad of another size");
    return average("avg_pool2d_backward", &b, grad, sizes, true);
}

static int check_adaptive(const char *op, msa_ints sizes, msa_ints output_size) {
    for (int64_t i = 0; i < output_size.n; i++)
        if (output_size.data[i] < 0) return msa_fail(MSA_RUNTIME_ERROR, "%s: elements of output_size must be greater than or equal to 0", op);
    for (int64_t i = sizes.n - output_size.n; i < sizes.n; i++)
        if (sizes.data[i] == 0)
            return msa_fail(MSA_RUNTIME_ERROR, "%s: Expected input to have non-zero size for non-batch dimensions, but input has sizes %s with dimension %lld being empty",
                            op, msa_sizes_text(sizes), (long long)i);
    return 0;
}

msa_tensor *adaptive_avg_pool_windows_cpu(msa_tensor *self, msa_ints output_size) {
    auto_boxes b = {0};
    int64_t sizes[5] = {self->sizes[0], self->sizes[1]};
    if (output_size.n < 1 || output_size.n > 3 || self->ndim != output_size.n + 2)
        return msa_fail_null(MSA_RUNTIME_ERROR, "adaptive_avg_pool: the output size does not fit an input of size %s", msa_sizes_text(msa_sizes(self)));
    for (int i = 0; i < output_size.n; i++) sizes[2 + i] = output_size.data[i];
    if (check_adaptive(output_size.n == 3 ? "adaptive_avg_pool3d()" : "adaptive_avg_pool2d()", msa_sizes(self), output_size) != 0 ||
        adaptive_boxes(msa_sizes(self), output_size, &b) != 0)
        return NULL;
    return average("adaptive_avg_pool2d", &b, self, (msa_ints){sizes, self->ndim}, false);
}

msa_tensor *adaptive_avg_pool_windows_backward_cpu(msa_tensor *grad, msa_ints sizes) {
    auto_boxes b = {0};
    if (grad->ndim != sizes.n || sizes.n < 3 || sizes.n > 5) return msa_fail_null(MSA_RUNTIME_ERROR, "adaptive_avg_pool_backward: grad of another size");
    if (adaptive_boxes(sizes, (msa_ints){grad->sizes + 2, grad->ndim - 2}, &b) != 0) return NULL;
    return average("adaptive_avg_pool2d_backward", &b, grad, sizes, true);
}

/* Largest value of each adaptive box and its flat position; plain order. */
#define ADAPTIVE_MAX(NAME, T) \
    static void NAME##_largest(const boxes *b, const T *in, T *values, int64_t *indices) { \
        const int64_t outs = msa_volume(b->out), ins = msa_volume(b->in); \
        _Pragma("omp parallel for num_threads(msa_threads_for(b->n * b->c * ins, MSA_GRAIN))") for (int64_t t = 0; t < b->n * b->c; t++) { \
            const T *image = in + t * ins; \
            int64_t o[3], at = t * outs; \
            for (o[0] = 0; o[0] < b->out[0]; o[0]++) \
                for (o[1] = 0; o[1] < b->out[1]; o[1]++) \
                    for (o[2] = 0; o[2] < b->out[2]; o[2]++, at++) { \
                        int64_t from = (b->of[0].low[o[0]] * b->in[1] + b->of[1].low[o[1]]) * b->in[2] + b->of[2].low[o[2]]; \
                        T top = image[from]; \
                        FOR_BOX(b, o, { \
                            for (int64_t x = b->of[2].low[o[2]]; x < b->of[2].high[o[2]]; x++) { \
                                const int64_t k = (z * b->in[1] + y) * b->in[2] + x; \
                                if (image[k] > top || image[k] != image[k]) { \
                                    top = image[k]; \
                                    from = k; \
                                } \
                            } \
                        }) \
                        values[at] = top; \
                        indices[at] = from; \
                    } \
        } \
    }
ADAPTIVE_MAX(f32, float)
ADAPTIVE_MAX(f64, double)

int adaptive_max_pool_windows_cpu(msa_tensor *self, msa_ints output_size, msa_tensor **results) {
    auto_boxes b = {0};
    int64_t sizes[5] = {self->sizes[0], self->sizes[1]};
    if (output_size.n < 1 || output_size.n > 3 || self->ndim != output_size.n + 2)
        return msa_fail(MSA_RUNTIME_ERROR, "adaptive_max_pool: the output size does not fit an input of size %s", msa_sizes_text(msa_sizes(self)));
    const msa_dtype d = (msa_dtype)self->dtype;
    if (!msa_is_floating(d)) return msa_fail(MSA_NOT_IMPLEMENTED, "\"adaptive_max_pool2d\" not implemented for '%s'", msa_dtype_type_name(d));
    for (int i = 0; i < output_size.n; i++) sizes[2 + i] = output_size.data[i];
    if (check_adaptive(output_size.n == 3 ? "adaptive_max_pool3d()" : "adaptive_max_pool2d()", msa_sizes(self), output_size) != 0 ||
        adaptive_boxes(msa_sizes(self), output_size, &b) != 0)
        return -1;
    const msa_dtype type = d == MSA_FLOAT64 ? d : MSA_FLOAT32;
    msa_auto msa_tensor *typed = msa_cast_values(self, type), *x = typed ? msa_contiguous_values(typed) : NULL;
    msa_auto msa_tensor *values = msa_tensor_new((msa_ints){sizes, self->ndim}, type), *indices = msa_tensor_new((msa_ints){sizes, self->ndim}, MSA_INT64);
    if (!x || !values || !indices) return -1;
    if (values->numel) {
        const void *from = msa_data(x);
        if (!from) return -1;
        if (type == MSA_FLOAT64) f64_largest(&b, from, values->storage->data, indices->storage->data);
        else f32_largest(&b, from, values->storage->data, indices->storage->data);
    }
    results[0] = msa_cast_values(values, d);
    results[1] = msa_take(indices);
    return results[0] ? 0 : -1;
}
