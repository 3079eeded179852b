/* Convolutions of 1, 2 and 3 dimensions, ordinary and transposed, and their gradients.
 *
 * A transposed convolution is the gradient of an ordinary one towards its input, so three computations do for everything: forward,
 * towards the input, towards the weight. Each works on channels-last memory: in float32 by Winograd's method where that pays, else by
 * oneDNN where that has a fast implementation; otherwise window by window as matrix products (any type). */
#include <stdio.h>

#include "base/parallel.h"
#include "cpu/gemm.h"
#include "cpu/layout.h"
#include "cpu/onednn.h"
#include "cpu/winograd.h"
#include "ops/kernels.h"

/* ---- what is asked for ---------------------------------------------------------------------------------------- */

typedef struct {
    msa_conv conv; /* in the ordinary direction */
    bool transposed;
    int spatial;
} plan;

static int expand_list(const char *name, msa_ints given, int n, int64_t *out) {
    if (given.n != 1 && given.n != n)
        return msa_fail(MSA_RUNTIME_ERROR,
                        "expected %s to be a single integer value or a list of %d values to match the convolution dimensions, but got %s=%s",
                        name, n, name, msa_sizes_text(given));
    for (int i = 0; i < n; i++) out[i] = given.data[given.n == 1 ? 0 : i];
    return 0;
}

static int check_channels(msa_tensor *input, msa_tensor *weight, msa_ints bias, bool transposed, int64_t groups) {
    const int n = weight->ndim;
    if (n != input->ndim)
        return msa_fail(MSA_RUNTIME_ERROR, "Expected %d-dimensional input for %d-dimensional weight %s, but got %d-dimensional input of size %s instead",
                        n, n, msa_sizes_text(msa_sizes(weight)), input->ndim, msa_sizes_text(msa_sizes(input)));
    if (weight->sizes[0] < groups)
        return msa_fail(MSA_RUNTIME_ERROR, "Given groups=%lld, expected weight to be at least %lld at dimension 0, but got weight of size %s instead",
                        (long long)groups, (long long)groups, msa_sizes_text(msa_sizes(weight)));
    if (weight->sizes[0] % groups)
        return msa_fail(MSA_RUNTIME_ERROR,
                        "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got weight of size [%s] instead",
                        (long long)groups, (long long)groups, msa_sizes_text(msa_sizes(weight)));
    const int64_t wanted = transposed ? weight->sizes[0] : weight->sizes[1] * groups;
    if (input->sizes[1] != wanted)
        return msa_fail(MSA_RUNTIME_ERROR, "Given %s=%lld, weight of size %s, expected input%s to have %lld channels, but got %lld channels instead",
                        transposed ? "transposed" : "groups", (long long)(transposed ? 1 : groups), msa_sizes_text(msa_sizes(weight)),
                        msa_sizes_text(msa_sizes(input)), (long long)wanted, (long long)input->sizes[1]);
    const int64_t out = transposed ? weight->sizes[1] * groups : weight->sizes[0];
    if (bias.data && (bias.n != 1 || bias.data[0] != out))
        return msa_fail(MSA_RUNTIME_ERROR, "Given %sweight of size %s, expected bias to be 1-dimensional with %lld elements, but got bias of size %s instead",
                        transposed ? "transposed=1, " : "", msa_sizes_text(msa_sizes(weight)), (long long)out, msa_sizes_text(bias));
    return 0;
}

static void list_text(char *to, size_t room, int n, const int64_t *values) {
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        int wrote = snprintf(to + at, room - at, i ? " x %lld" : "%lld", (long long)values[i]);
        if (wrote < 0 || (size_t)wrote >= room - at) return;
        at += (size_t)wrote;
    }
}

static int check_extent(int n, const int64_t *padded, const int64_t *kernel, const int64_t *reach) {
    bool fits = true;
    for (int i = 0; i < n; i++) fits = fits && padded[i] >= reach[i];
    if (fits) return 0;
    char in[96] = "", window[96] = "";
    list_text(in, sizeof in, n, padded);
    list_text(window, sizeof window, n, reach);
    return msa_fail(MSA_RUNTIME_ERROR,
                    "Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel size can't be greater than actual input size", in, window);
}

static int check_output_padding(int n, const int64_t *output_padding, const int64_t *stride, const int64_t *dilation) {
    for (int i = 0; i < n; i++) {
        if (output_padding[i] < 0) return msa_fail(MSA_RUNTIME_ERROR, "negative output_padding is not supported");
        if (output_padding[i] < stride[i] || output_padding[i] < dilation[i]) continue;
        if (n == 2)
            return msa_fail(MSA_RUNTIME_ERROR,
                            "output padding must be smaller than either stride or dilation, but got output_padding_height: %lld "
                            "output_padding_width: %lld stride_height: %lld stride_width: %lld dilation_height: %lld dilation_width: %lld",
                            (long long)output_padding[0], (long long)output_padding[1], (long long)stride[0], (long long)stride[1],
                            (long long)dilation[0], (long long)dilation[1]);
        return msa_fail(MSA_RUNTIME_ERROR, "output padding must be smaller than either stride or dilation, but got output_padding %lld, stride %lld, dilation %lld",
                        (long long)output_padding[i], (long long)stride[i], (long long)dilation[i]);
    }
    return 0;
}

static int make_plan(msa_tensor *input, msa_tensor *weight, msa_ints bias, msa_ints stride, msa_ints padding, msa_ints dilation,
                     bool transposed, msa_ints output_padding, int64_t groups, plan *p) {
    memset(p, 0, sizeof *p); /* the whole is a key */
    const int n = weight->ndim - 2;
    if (n < 1 || n > 3) return msa_fail(MSA_RUNTIME_ERROR, "expected a weight of 3 to 5 dimensions, but got %d", weight->ndim);
    int64_t s[3], pad[3], d[3], extra[3];
    if (expand_list("stride", stride, n, s) != 0 || expand_list("padding", padding, n, pad) != 0 || expand_list("dilation", dilation, n, d) != 0 ||
        expand_list("output_padding", output_padding, n, extra) != 0)
        return -1;
    for (int i = 0; i < n; i++) {
        if (pad[i] < 0) return msa_fail(MSA_RUNTIME_ERROR, "negative padding is not supported");
        if (s[i] <= 0) return msa_fail(MSA_RUNTIME_ERROR, "non-positive stride is not supported");
        if (d[i] <= 0) return msa_fail(MSA_RUNTIME_ERROR, "dilation should be greater than zero, but got %s", msa_sizes_text((msa_ints){d, n}));
        if (pad[i] > INT32_MAX / 4 || s[i] > INT32_MAX || d[i] > INT32_MAX || weight->sizes[2 + i] > INT32_MAX)
            return msa_fail(MSA_RUNTIME_ERROR, "convolution: stride, padding, dilation or kernel size is too large");
    }
    if (groups <= 0) return msa_fail(MSA_RUNTIME_ERROR, "non-positive groups is not supported");
    if (check_channels(input, weight, bias, transposed, groups) != 0) return -1;
    msa_conv *c = &p->conv;
    p->transposed = transposed;
    p->spatial = n;
    c->n = input->sizes[0];
    c->groups = groups;
    c->ci = weight->sizes[1] * groups;
    c->co = weight->sizes[0];
    for (int i = 0; i < 3; i++) c->in[i] = c->out[i] = c->kernel[i] = c->stride[i] = c->dilation[i] = 1;
    int64_t padded[3], reach[3];
    const int first = 3 - n;
    for (int i = 0; i < n; i++) {
        const int64_t size = input->sizes[2 + i], k = weight->sizes[2 + i];
        reach[i] = d[i] * (k - 1) + 1;
        padded[i] = size + 2 * pad[i];
        c->kernel[first + i] = k;
        c->stride[first + i] = s[i];
        c->padding[first + i] = pad[i];
        c->dilation[first + i] = d[i];
        if (transposed) {
            c->out[first + i] = size;
            c->in[first + i] = (size - 1) * s[i] - 2 * pad[i] + reach[i] + extra[i];
            if (c->in[first + i] <= 0)
                return msa_fail(MSA_RUNTIME_ERROR, "Given input size per channel: %s. Calculated output size per channel is too small at dimension %d (%lld)",
                                msa_sizes_text((msa_ints){input->sizes + 2, n}), i, (long long)c->in[first + i]);
        } else {
            c->in[first + i] = size;
            c->out[first + i] = padded[i] >= reach[i] ? (padded[i] - reach[i]) / s[i] + 1 : 0;
        }
    }
    return transposed ? check_output_padding(n, extra, s, d) : check_extent(n, padded, c->kernel + first, reach);
}

/* ---- windows as matrix products ------------------------------------------------------------------------------- */

static int64_t volume(const int64_t *v) { return v[0] * v[1] * v[2]; }

/* One image's windows of one group: columns is (out positions, kernel positions, ci / groups). With `back`, columns are added to
 * the image instead, as floats of the given count an element. */
static void windows(const msa_conv *c, int64_t group, char *image, char *columns, size_t size, msa_dtype dtype, bool back) {
    const int64_t channels = c->ci / c->groups;
    const size_t run = (size_t)channels * size;
    for (int64_t od = 0; od < c->out[0]; od++)
        for (int64_t oh = 0; oh < c->out[1]; oh++)
            for (int64_t ow = 0; ow < c->out[2]; ow++)
                for (int64_t kd = 0; kd < c->kernel[0]; kd++)
                    for (int64_t kh = 0; kh < c->kernel[1]; kh++)
                        for (int64_t kw = 0; kw < c->kernel[2]; kw++, columns += run) {
                            const int64_t z = od * c->stride[0] - c->padding[0] + kd * c->dilation[0], y = oh * c->stride[1] - c->padding[1] + kh * c->dilation[1],
                                          x = ow * c->stride[2] - c->padding[2] + kw * c->dilation[2];
                            const bool inside = z >= 0 && z < c->in[0] && y >= 0 && y < c->in[1] && x >= 0 && x < c->in[2];
                            char *at = image + ((((z * c->in[1] + y) * c->in[2] + x) * c->ci) + group * channels) * (int64_t)size;
                            if (!back) {
                                if (inside) memcpy(columns, at, run);
                                else memset(columns, 0, run);
                            } else if (inside) {
                                switch (dtype) {
                                case MSA_FLOAT32:
                                case MSA_COMPLEX64:
                                    for (size_t i = 0; i < run / 4; i++) ((float *)at)[i] += ((float *)columns)[i];
                                    break;
                                case MSA_FLOAT64:
                                case MSA_COMPLEX128:
                                    for (size_t i = 0; i < run / 8; i++) ((double *)at)[i] += ((double *)columns)[i];
                                    break;
                                default:
                                    for (size_t i = 0; i < run / 8; i++) ((int64_t *)at)[i] += ((int64_t *)columns)[i];
                                }
                            }
                        }
}

/* A contiguous (co, ci / groups, kernel) weight as (co, kernel, ci / groups), or back. */
static void turn_weight(const msa_conv *c, const char *from, char *to, size_t size, bool back) {
    const int64_t channels = c->ci / c->groups, k = volume(c->kernel);
    for (int64_t o = 0; o < c->co; o++)
        for (int64_t i = 0; i < channels; i++)
            for (int64_t j = 0; j < k; j++) {
                const int64_t plain = ((o * channels + i) * k + j) * (int64_t)size, turned = ((o * k + j) * channels + i) * (int64_t)size;
                memcpy(to + (back ? plain : turned), from + (back ? turned : plain), size);
            }
}

typedef struct {
    const msa_conv *c;
    msa_dtype dtype;
    size_t size;
    int64_t rows, depth, co; /* out positions, window elements of a group, output channels of a group */
} windowed;

static windowed window_sizes(const msa_conv *c, msa_dtype dtype) {
    return (windowed){c, dtype, msa_dtype_size(dtype), volume(c->out), volume(c->kernel) * (c->ci / c->groups), c->co / c->groups};
}

static int windowed_forward(const windowed *w, const char *src, const char *turned, char *dst) {
    const msa_conv *c = w->c;
    const int threads = c->n > 1 ? msa_threads_for(c->n * w->rows * w->depth * w->co, 32768) : 1;
    int failed = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < c->n; n++) {
        char *columns = msa_data_alloc((size_t)(w->rows * w->depth) * w->size);
        if (!columns) failed = 1;
        for (int64_t g = 0; g < c->groups && columns; g++) {
            windows(c, g, (char *)(uintptr_t)src + n * volume(c->in) * c->ci * (int64_t)w->size, columns, w->size, w->dtype, false);
            if (msa_gemm(w->dtype, w->rows, w->co, w->depth, msa_int(1), (msa_matrix){columns, w->depth, 1},
                         (msa_matrix){turned + g * w->co * w->depth * (int64_t)w->size, 1, w->depth}, msa_int(0),
                         dst + (n * w->rows * c->co + g * w->co) * (int64_t)w->size, c->co) != 0)
                failed = 1;
        }
        msa_data_free(columns);
    }
    return failed ? msa_fail(MSA_MEMORY_ERROR, "convolution: out of memory") : 0;
}

static int windowed_backward_data(const windowed *w, const char *diff_dst, const char *turned, char *diff_src) {
    const msa_conv *c = w->c;
    const int64_t image = volume(c->in) * c->ci * (int64_t)w->size;
    const int threads = c->n > 1 ? msa_threads_for(c->n * w->rows * w->depth * w->co, 32768) : 1;
    int failed = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < c->n; n++) {
        char *columns = msa_data_alloc((size_t)(w->rows * w->depth) * w->size);
        if (!columns) failed = 1;
        memset(diff_src + n * image, 0, (size_t)image);
        for (int64_t g = 0; g < c->groups && columns; g++) {
            if (msa_gemm(w->dtype, w->rows, w->depth, w->co, msa_int(1),
                         (msa_matrix){diff_dst + (n * w->rows * c->co + g * w->co) * (int64_t)w->size, c->co, 1},
                         (msa_matrix){turned + g * w->co * w->depth * (int64_t)w->size, w->depth, 1}, msa_int(0), columns, w->depth) != 0)
                failed = 1;
            windows(c, g, diff_src + n * image, columns, w->size, w->dtype, true);
        }
        msa_data_free(columns);
    }
    return failed ? msa_fail(MSA_MEMORY_ERROR, "convolution: out of memory") : 0;
}

static int windowed_backward_weights(const windowed *w, const char *src, const char *diff_dst, char *turned) {
    const msa_conv *c = w->c;
    char *columns = msa_data_alloc((size_t)(w->rows * w->depth) * w->size);
    int status = columns ? 0 : -1;
    for (int64_t n = 0; n < c->n && !status; n++)
        for (int64_t g = 0; g < c->groups && !status; g++) {
            windows(c, g, (char *)(uintptr_t)src + n * volume(c->in) * c->ci * (int64_t)w->size, columns, w->size, w->dtype, false);
            status = msa_gemm(w->dtype, w->co, w->depth, w->rows, msa_int(1),
                              (msa_matrix){diff_dst + (n * w->rows * c->co + g * w->co) * (int64_t)w->size, 1, c->co},
                              (msa_matrix){columns, w->depth, 1}, msa_int(n > 0), turned + g * w->co * w->depth * (int64_t)w->size, w->depth);
        }
    msa_data_free(columns);
    return status;
}

/* ---- the three computations, on channels-last memory ------------------------------------------------------------ */

static int forward(const msa_conv *c, msa_dtype dtype, const void *src, const msa_tensor *weight, const void *bias, void *dst,
                   bool *added) {
    if (dtype == MSA_FLOAT32 && msa_winograd_fits(c)) {
        *added = bias != NULL;
        const float *window = msa_data(weight);
        return window ? msa_winograd_forward(c, src, window, bias, dst) : -1;
    }
    if (dtype == MSA_FLOAT32) {
        const int status = msa_onednn_conv_forward(c, src, weight, bias, dst);
        *added = bias && status == 0;
        if (status <= 0) return status;
    }
    const windowed w = window_sizes(c, dtype);
    const void *plain = msa_data(weight);
    char *turned = msa_data_alloc((size_t)(c->co * w.depth) * w.size);
    int status = turned && plain ? 0 : -1;
    if (!status) {
        turn_weight(c, plain, turned, w.size, false);
        status = windowed_forward(&w, src, turned, dst);
    }
    msa_data_free(turned);
    return status;
}

static int backward_data(const msa_conv *c, msa_dtype dtype, const void *diff_dst, const msa_tensor *weight, void *diff_src) {
    if (dtype == MSA_FLOAT32 && msa_winograd_fits(c)) {
        const float *window = msa_data(weight);
        return window ? msa_winograd_backward_data(c, diff_dst, window, diff_src) : -1;
    }
    if (dtype == MSA_FLOAT32) {
        const int status = msa_onednn_conv_backward_data(c, diff_dst, weight, diff_src);
        if (status <= 0) return status;
    }
    const windowed w = window_sizes(c, dtype);
    const void *plain = msa_data(weight);
    char *turned = msa_data_alloc((size_t)(c->co * w.depth) * w.size);
    int status = turned && plain ? 0 : -1;
    if (!status) {
        turn_weight(c, plain, turned, w.size, false);
        status = windowed_backward_data(&w, diff_dst, turned, diff_src);
    }
    msa_data_free(turned);
    return status;
}

static int backward_weights(const msa_conv *c, msa_dtype dtype, const void *src, const void *diff_dst, void *diff_weight) {
    if (dtype == MSA_FLOAT32 && msa_winograd_fits(c)) return msa_winograd_backward_weights(c, src, diff_dst, diff_weight);
    if (dtype == MSA_FLOAT32) {
        const int status = msa_onednn_conv_backward_weights(c, src, diff_dst, diff_weight, NULL);
        if (status <= 0) return status;
    }
    const windowed w = window_sizes(c, dtype);
    char *turned = msa_data_alloc((size_t)(c->co * w.depth) * w.size);
    if (!turned) return -1;
    const int status = windowed_backward_weights(&w, src, diff_dst, turned);
    if (!status) turn_weight(c, turned, diff_weight, w.size, true);
    msa_data_free(turned);
    return status;
}

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

/* Half precision computes in float32; narrow integers are not supported, as in PyTorch. */
static int computing_type(msa_tensor *input, msa_tensor *weight, msa_tensor *bias, msa_dtype *type) {
    const msa_dtype d = (msa_dtype)input->dtype;
    if (weight->dtype != input->dtype)
        return msa_fail(MSA_RUNTIME_ERROR, "expected scalar type %s but found %s", msa_dtype_type_name(d), msa_dtype_type_name((msa_dtype)weight->dtype));
    if (bias && bias->dtype != input->dtype)
        return msa_fail(MSA_RUNTIME_ERROR, "Input type (%s) and bias type (%s) should be the same", msa_dtype_type_name(d),
                        msa_dtype_type_name((msa_dtype)bias->dtype));
    if (d == MSA_BOOL) return msa_fail(MSA_NOT_IMPLEMENTED, "\"slow_conv2d_cpu\" not implemented for 'Bool'");
    *type = d == MSA_FLOAT16 || d == MSA_BFLOAT16 ? MSA_FLOAT32 : msa_is_integral(d, false) ? MSA_INT64 : d;
    return 0;
}

static void shape_of(const plan *p, int64_t n, int64_t channels, const int64_t *extent, int64_t *sizes) {
    sizes[0] = n;
    sizes[1] = channels;
    for (int i = 0; i < p->spatial; i++) sizes[2 + i] = extent[3 - p->spatial + i];
}

/* x is what the result's kind of layout follows. */
static bool wants_visible(const msa_tensor *x, const msa_tensor *weight) {
    return (x->ndim == 4 || x->ndim == 5) && (msa_visibly_channels_last(x) || (weight && msa_visibly_channels_last(weight)));
}

/* dst = conv(x, weight), or diff_src of it, with `into_input`; empty extents give zeros. */
static msa_tensor *apply(const plan *p, bool into_input, msa_tensor *x, msa_tensor *weight, msa_tensor *bias, bool visible) {
    const msa_conv *c = &p->conv;
    int64_t sizes[5];
    if (into_input) shape_of(p, c->n, c->ci, c->in, sizes);
    else shape_of(p, c->n, c->co, c->out, sizes);
    msa_image_out out;
    if (msa_image_out_new((msa_ints){sizes, 2 + p->spatial}, (msa_dtype)x->dtype, visible, &out) != 0) return NULL;
    int status = 0;
    bool added = false; /* the bias, by oneDNN */
    const bool fused = bias && !into_input && x->dtype == MSA_FLOAT32 && bias->contiguous;
    if (x->numel == 0 || weight->numel == 0) memset(out.data, 0, (size_t)out.result->numel * msa_dtype_size((msa_dtype)x->dtype));
    else if (out.result->numel) {
        msa_auto msa_tensor *w = msa_contiguous_values(weight);
        msa_auto_image from = {NULL, NULL};
        status = w ? msa_image_channels_last(x, &from) : -1;
        if (!status)
            status = into_input ? backward_data(c, (msa_dtype)x->dtype, from.data, w, out.data)
                                : forward(c, (msa_dtype)x->dtype, from.data, w, fused ? msa_data(bias) : NULL, out.data, &added);
    }
    if (status) {
        msa_image_out_drop(&out);
        return NULL;
    }
    msa_auto msa_tensor *result = msa_image_out_finish(&out);
    if (!bias || added || !result->numel) return msa_take(result);
    int64_t shape[5] = {1, bias->sizes[0], 1, 1, 1};
    msa_auto msa_tensor *wide = msa_reshape(bias, (msa_ints){shape, 2 + p->spatial});
    return wide ? msa_add_(result, wide, msa_int(1)) : NULL;
}

msa_tensor *convolution_cpu(msa_tensor *input, msa_tensor *weight, msa_tensor *bias, msa_ints stride, msa_ints padding,
                            msa_ints dilation, bool transposed, msa_ints output_padding, int64_t groups) {
    plan p;
    msa_dtype type = MSA_NO_DTYPE;
    if (make_plan(input, weight, bias ? msa_sizes(bias) : MSA_NO_INTS, stride, padding, dilation, transposed, output_padding, groups, &p) != 0 ||
        computing_type(input, weight, bias, &type) != 0)
        return NULL;
    msa_auto msa_tensor *x = msa_cast_values(input, type), *w = msa_cast_values(weight, type), *b = bias ? msa_cast_values(bias, type) : NULL;
    if (!x || !w || (bias && !b)) return NULL;
    msa_auto msa_tensor *result = apply(&p, transposed, x, w, b, !transposed && wants_visible(input, weight));
    return result ? msa_cast_values(result, (msa_dtype)input->dtype) : NULL;
}

/* dims 0 and 2.. summed. */
static msa_tensor *channel_sums(msa_tensor *t) {
    static const int64_t dims[] = {0, 2, 3, 4};
    return msa_sum_dim_IntList(t, (msa_ints){dims, t->ndim - 1}, false, MSA_NO_DTYPE);
}

static msa_tensor *weight_gradient(const plan *p, msa_tensor *src, msa_tensor *diff_dst, msa_tensor *weight) {
    msa_auto msa_tensor *out = msa_tensor_new(msa_sizes(weight), (msa_dtype)src->dtype);
    if (!out) return NULL;
    if (src->numel == 0 || diff_dst->numel == 0) return msa_fill_values(out, msa_int(0)) == 0 ? msa_take(out) : NULL;
    if (out->numel == 0) return msa_take(out);
    msa_auto_image from = {NULL, NULL}, to = {NULL, NULL};
    if (msa_image_channels_last(src, &from) != 0 || msa_image_channels_last(diff_dst, &to) != 0) return NULL;
    return backward_weights(&p->conv, (msa_dtype)src->dtype, from.data, to.data, out->storage->data) == 0 ? msa_take(out) : NULL;
}

int convolution_backward_cpu(msa_tensor *grad_output, msa_tensor *input, msa_tensor *weight, msa_ints bias_sizes, msa_ints stride,
                             msa_ints padding, msa_ints dilation, bool transposed, msa_ints output_padding, int64_t groups,
                             msa_ints output_mask, msa_tensor **results) {
    plan p;
    msa_dtype type = MSA_NO_DTYPE;
    if (output_mask.n != 3) return msa_fail(MSA_RUNTIME_ERROR, "convolution_backward: output_mask has 3 entries");
    if (make_plan(input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, &p) != 0 ||
        computing_type(input, weight, NULL, &type) != 0)
        return -1;
    int64_t sizes[5];
    shape_of(&p, p.conv.n, transposed ? p.conv.ci : p.conv.co, transposed ? p.conv.in : p.conv.out, sizes);
    if (grad_output->ndim != input->ndim || memcmp(grad_output->sizes, sizes, sizeof(int64_t) * input->ndim) != 0)
        return msa_fail(MSA_RUNTIME_ERROR, "convolution_backward: expected grad_output of shape %s, but got %s",
                        msa_sizes_text((msa_ints){sizes, input->ndim}), msa_sizes_text(msa_sizes(grad_output)));
    msa_auto msa_tensor *g = msa_cast_values(grad_output, type), *x = msa_cast_values(input, type), *w = msa_cast_values(weight, type);
    if (!g || !x || !w) return -1;
    if (msa_is_complex(type)) { /* of a holomorphic product: the other factor's conjugate */
        msa_auto msa_tensor *xc = msa_conj_physical(x), *wc = msa_conj_physical(w);
        if (!xc || !wc) return -1;
        msa_tensor *t = x;
        x = xc, xc = t;
        t = w, w = wc, wc = t;
    }
    const msa_dtype own = (msa_dtype)input->dtype;
    if (output_mask.data[0]) {
        msa_auto msa_tensor *r = apply(&p, !transposed, g, w, NULL, wants_visible(input, weight));
        if (!r || !(results[0] = msa_cast_values(r, own))) return -1;
    }
    if (output_mask.data[1]) {
        msa_auto msa_tensor *r = transposed ? weight_gradient(&p, g, x, w) : weight_gradient(&p, x, g, w);
        if (!r || !(results[1] = msa_cast_values(r, own))) return -1;
    }
    if (output_mask.data[2]) {
        msa_auto msa_tensor *r = channel_sums(g);
        if (!r || !(results[2] = msa_cast_values(r, own))) return -1;
    }
    return 0;
}
