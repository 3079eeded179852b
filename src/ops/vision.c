/* Padding, resizing, and moving between channels and space: all but constant padding is made of selections along single
 * dimensions, which record their own gradients. */
#include <math.h>

#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

/* ---- padding -------------------------------------------------------------------------------------------------------- */

/* `pad` is (before, after) of the last dimension, then of the one before, ...; negative numbers crop. */
msa_tensor *constant_pad_cpu(msa_tensor *self, msa_ints pad, msa_scalar value) {
    if (pad.n % 2) return msa_fail_null(MSA_RUNTIME_ERROR, "Length of pad must be even but instead it equals %lld", (long long)pad.n);
    if (pad.n / 2 > self->ndim)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Length of pad should be no more than twice the number of dimensions of the input. Pad length is %lld"
                             " while the input has %d dimensions.", (long long)pad.n, self->ndim);
    int64_t sizes[MSA_MAX_DIMS], common[MSA_MAX_DIMS], from = self->offset, to = 0;
    memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
    memcpy(common, self->sizes, sizeof(int64_t) * self->ndim);
    for (int i = 0; i < pad.n / 2; i++) {
        const int64_t before = pad.data[2 * i], after = pad.data[2 * i + 1], limit = INT64_C(1) << 48;
        const int d = self->ndim - 1 - i;
        if (before > limit || after > limit || before < -limit || after < -limit)
            return msa_fail_null(MSA_RUNTIME_ERROR, "constant_pad_nd: padding %lld, %lld is too large", (long long)before, (long long)after);
        sizes[d] = self->sizes[d] + before + after;
        if (sizes[d] < 0)
            return msa_fail_null(MSA_RUNTIME_ERROR, "The input size %lld, plus negative padding %lld and %lld, resulted in a negative output size, which is"
                                 " invalid. Check dimension %d of your input.", (long long)self->sizes[d], (long long)before, (long long)after, d);
        common[d] = self->sizes[d] + (before < 0 ? before : 0) + (after < 0 ? after : 0);
    }
    msa_auto msa_tensor *out = msa_tensor_new((msa_ints){sizes, self->ndim}, (msa_dtype)self->dtype);
    if (!out || msa_fill_values(out, value) != 0) return NULL;
    for (int i = 0; i < pad.n / 2; i++) {
        const int d = self->ndim - 1 - i;
        const int64_t before = pad.data[2 * i];
        if (common[d] <= 0) return msa_take(out);
        if (before < 0) from += -before * self->strides[d];
        else to += before * out->strides[d];
    }
    if (out->numel == 0 || self->numel == 0) return msa_take(out);
    msa_auto msa_tensor *source = msa_tensor_view_strided(self, (msa_ints){common, self->ndim}, msa_strides(self), from);
    msa_auto msa_tensor *place = msa_tensor_view_strided(out, (msa_ints){common, self->ndim}, msa_strides(out), to);
    return source && place && msa_copy_values(place, source) == 0 ? msa_take(out) : NULL;
}

msa_tensor *constant_pad_gradient(msa_tensor *grad, msa_ints pad) {
    int64_t back[2 * MSA_MAX_DIMS];
    for (int64_t i = 0; i < pad.n; i++) back[i] = -pad.data[i];
    return msa_constant_pad_nd(grad, (msa_ints){back, pad.n}, msa_int(0));
}

/* Positions along one dimension as an index tensor of n elements, to be filled in. */
static msa_tensor *index_tensor(int64_t n, int64_t **at) {
    msa_auto msa_tensor *t = msa_tensor_new(MSA_INTS(n), MSA_INT64);
    if (!t) return NULL;
    *at = msa_data(t);
    return *at || n == 0 ? msa_take(t) : NULL;
}

static msa_tensor *pad_by_index(const char *name, msa_tensor *self, msa_ints padding, int spatial, bool reflect) {
    if (padding.n != 2 * spatial) return msa_fail_null(MSA_RUNTIME_ERROR, "padding size is expected to be %d", 2 * spatial);
    bool valid = self->ndim == spatial + 1 || self->ndim == spatial + 2;
    for (int d = self->ndim == spatial + 2 ? 1 : 0; valid && d < self->ndim; d++) valid = self->sizes[d] != 0;
    if (!valid)
        return msa_fail_null(MSA_RUNTIME_ERROR, "%s: Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for"
                             " input, but got: %s", name, spatial + 1, spatial + 2, msa_sizes_text(msa_sizes(self)));
    msa_auto msa_tensor *x = msa_tensor_retain(self);
    for (int i = 0; i < spatial; i++) {
        const int d = self->ndim - 1 - i;
        const int64_t size = self->sizes[d], before = padding.data[2 * i], after = padding.data[2 * i + 1], limit = INT64_C(1) << 40;
        if (reflect && (before >= size || after >= size))
            return msa_fail_null(MSA_RUNTIME_ERROR, "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (%lld, %lld)"
                                 " at dimension %d of input %s", (long long)before, (long long)after, d, msa_sizes_text(msa_sizes(self)));
        const int64_t n = before > limit || after > limit || before < -limit || after < -limit ? -1 : size + before + after;
        if (n < 1) return msa_fail_null(MSA_RUNTIME_ERROR, "input (%s: %lld) is too small. Calculated output %lld", i == 0 ? "W" : i == 1 ? "H" : "D", (long long)size, (long long)n);
        if (before == 0 && after == 0) continue;
        int64_t *at;
        msa_auto msa_tensor *index = index_tensor(n, &at);
        if (!index) return NULL;
        for (int64_t j = 0; j < n; j++) {
            int64_t p = j - before;
            if (p < 0) p = reflect ? -p : 0;
            if (p >= size) p = reflect ? 2 * (size - 1) - p : size - 1;
            at[j] = p;
        }
        msa_tensor *padded = msa_index_select(x, d, index);
        if (!padded) return NULL;
        msa_tensor_release(x);
        x = padded;
    }
    return x == self ? msa_clone(self, -1) : msa_take(x);
}

msa_tensor *reflection_pad1d_values(msa_tensor *self, msa_ints padding) { return pad_by_index("reflection_pad1d", self, padding, 1, true); }
msa_tensor *reflection_pad2d_values(msa_tensor *self, msa_ints padding) { return pad_by_index("reflection_pad2d", self, padding, 2, true); }
msa_tensor *reflection_pad3d_values(msa_tensor *self, msa_ints padding) { return pad_by_index("reflection_pad3d", self, padding, 3, true); }
msa_tensor *replication_pad1d_values(msa_tensor *self, msa_ints padding) { return pad_by_index("replication_pad1d", self, padding, 1, false); }
msa_tensor *replication_pad2d_values(msa_tensor *self, msa_ints padding) { return pad_by_index("replication_pad2d", self, padding, 2, false); }
msa_tensor *replication_pad3d_values(msa_tensor *self, msa_ints padding) { return pad_by_index("replication_pad3d", self, padding, 3, false); }

/* ---- channels and space -------------------------------------------------------------------------------------------- */

/* Splits the trailing (c, h, w) into five sizes, puts them in `order` and joins them to `joined`. */
static msa_tensor *rearranged(msa_tensor *self, const int64_t *five, const int *order, const int64_t *joined) {
    const int lead = self->ndim - 3;
    int64_t sizes[MSA_MAX_DIMS], dims[MSA_MAX_DIMS];
    if (lead + 6 > MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "pixel_shuffle: too many dimensions");
    int n = lead;
    for (int i = 0; i < lead; i++) {
        sizes[i] = self->sizes[i];
        dims[i] = i;
    }
    for (int i = 0; i < 5; i++, n++) {
        sizes[n] = five[i];
        dims[n] = lead + order[i];
    }
    msa_auto msa_tensor *split = msa_reshape(self, (msa_ints){sizes, n}), *moved = msa_permute(split, (msa_ints){dims, n});
    memcpy(sizes + lead, joined, 3 * sizeof(int64_t));
    return msa_reshape(moved, (msa_ints){sizes, lead + 3});
}

msa_tensor *pixel_shuffle_values(msa_tensor *self, int64_t r) {
    if (self->ndim < 3) return msa_fail_null(MSA_RUNTIME_ERROR, "pixel_shuffle expects input to have at least 3 dimensions, but got input with %d dimension(s)", self->ndim);
    if (r <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "pixel_shuffle expects a positive upscale_factor, but got %lld", (long long)r);
    const int64_t *size = self->sizes + self->ndim - 3;
    if (r > INT32_MAX || size[0] % (r * r) != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but"
                             " input.size(-3)=%lld is not divisible by %lld", (long long)size[0], (long long)(r > INT32_MAX ? r : r * r));
    const int64_t c = size[0] / (r * r), h = size[1], w = size[2];
    return rearranged(self, (int64_t[]){c, r, r, h, w}, (int[]){0, 3, 1, 4, 2}, (int64_t[]){c, h * r, w * r});
}

msa_tensor *pixel_unshuffle_values(msa_tensor *self, int64_t r) {
    if (self->ndim < 3) return msa_fail_null(MSA_RUNTIME_ERROR, "pixel_unshuffle expects input to have at least 3 dimensions, but got input with %d dimension(s)", self->ndim);
    if (r <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "pixel_unshuffle expects a positive downscale_factor, but got %lld", (long long)r);
    const int64_t *size = self->sizes + self->ndim - 3;
    if (size[1] % r != 0) return msa_fail_null(MSA_RUNTIME_ERROR, "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=%lld is not"
                                               " divisible by %lld", (long long)size[1], (long long)r);
    if (size[2] % r != 0) return msa_fail_null(MSA_RUNTIME_ERROR, "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=%lld is not"
                                               " divisible by %lld", (long long)size[2], (long long)r);
    const int64_t c = size[0], h = size[1] / r, w = size[2] / r;
    return rearranged(self, (int64_t[]){c, h, r, w, r}, (int[]){0, 2, 4, 1, 3}, (int64_t[]){c * r * r, h, w});
}

msa_tensor *channel_shuffle_values(msa_tensor *self, int64_t groups) {
    if (self->ndim <= 2) return msa_fail_null(MSA_RUNTIME_ERROR, "channel_shuffle expects input with > 2 dims, but got input with sizes %s", msa_sizes_text(msa_sizes(self)));
    if (groups <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Number of groups to divide channels in must be positive. Value of groups:%lld", (long long)groups);
    if (self->sizes[1] % groups != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Number of channels must be divisible by groups. Got %lld channels and %lld groups.", (long long)self->sizes[1],
                             (long long)groups);
    if (self->numel == 0) return msa_clone(self, -1);
    msa_auto msa_tensor *split = msa_reshape(self, MSA_INTS(self->sizes[0], groups, self->sizes[1] / groups, -1)), *moved = msa_transpose_int(split, 1, 2);
    return msa_reshape(moved, msa_sizes(self));
}

/* ---- resizing ------------------------------------------------------------------------------------------------------- */

typedef enum { NEAREST, NEAREST_EXACT, LINEAR, CUBIC } resize_mode;

/* Dimension `dim` resized to n: every output element is a weighted sum of `taps` selected input elements. `scale` is the user's
 * factor, 0 where the sizes decide. */
static msa_tensor *resize_dim(msa_tensor *x, int dim, int64_t n, double scale, resize_mode mode, bool align_corners) {
    const int64_t size = x->sizes[dim];
    if (mode != CUBIC && n == size) return msa_tensor_retain(x);
    const int taps = mode == CUBIC ? 4 : mode == LINEAR ? 2 : 1;
    const double step = align_corners ? n > 1 ? (double)(size - 1) / (double)(n - 1) : 0 : scale > 0 ? 1 / scale : (double)size / (double)n;
    int64_t *at[4], shape[MSA_MAX_DIMS];
    double *weight[4] = {NULL};
    msa_auto msa_tensor *sum = NULL;
    for (int i = 0; i < x->ndim; i++) shape[i] = i == dim ? n : 1;
    msa_tensor *indices[4] = {NULL}, *weights[4] = {NULL};
    bool ready = true;
    for (int t = 0; t < taps; t++) {
        indices[t] = index_tensor(n, &at[t]);
        weights[t] = msa_tensor_new((msa_ints){shape, x->ndim}, MSA_FLOAT64);
        weight[t] = weights[t] ? msa_data(weights[t]) : NULL;
        ready = ready && indices[t] && weight[t];
    }
    for (int64_t i = 0; ready && i < n; i++) {
        if (mode == NEAREST || mode == NEAREST_EXACT) {
            /* the rounding of float32 decides between neighbours */
            const float place = mode == NEAREST ? (float)i * (float)step : ((float)i + 0.5f) * (float)step;
            const int64_t p = (int64_t)floorf(place);
            at[0][i] = p < size ? p : size - 1;
            continue;
        }
        double place = align_corners ? (double)i * step : ((double)i + 0.5) * step - 0.5;
        if (mode == LINEAR && place < 0) place = 0;
        int64_t p = (int64_t)floor(place);
        const double f = place - (double)p;
        if (mode == LINEAR) {
            if (p > size - 1) p = size - 1;
            at[0][i] = p;
            at[1][i] = p < size - 1 ? p + 1 : p;
            weight[0][i] = 1 - f;
            weight[1][i] = f;
            continue;
        }
        for (int t = 0; t < 4; t++) {
            const double d = fabs(f - (t - 1)), a = -0.75;
            const int64_t q = p + t - 1;
            at[t][i] = q < 0 ? 0 : q < size ? q : size - 1;
            weight[t][i] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
        }
    }
    for (int t = 0; ready && t < taps; t++) {
        msa_auto msa_tensor *taken = msa_index_select(x, dim, indices[t]), *product = NULL;
        if (taps == 1) {
            sum = msa_take(taken);
            break;
        }
        msa_auto msa_tensor *w = msa_cast_values(weights[t], (msa_dtype)x->dtype);
        product = msa_mul(taken, w);
        msa_tensor *next = t ? msa_add(sum, product, msa_int(1)) : msa_tensor_retain(product);
        msa_tensor_release(sum);
        sum = next;
    }
    for (int t = 0; t < taps; t++) {
        msa_tensor_release(indices[t]);
        msa_tensor_release(weights[t]);
    }
    return msa_take(sum);
}

static msa_tensor *resized(msa_tensor *input, msa_ints output_size, msa_doubles scales, resize_mode mode, bool align_corners) {
    const int spatial = input->ndim - 2;
    const bool by_size = output_size.n >= 0, by_scale = scales.n >= 0;
    if (spatial < 1) return msa_fail_null(MSA_RUNTIME_ERROR, "upsample: expected an input with batch and channel dimensions, but got sizes %s", msa_sizes_text(msa_sizes(input)));
    if (by_size == by_scale) return msa_fail_null(MSA_RUNTIME_ERROR, "Must specify exactly one of output_size and scale_factors");
    if ((by_size ? output_size.n : scales.n) != spatial)
        return msa_fail_null(MSA_RUNTIME_ERROR, "It is expected output_size equals to %d, but got size %lld", spatial, (long long)(by_size ? output_size.n : scales.n));
    if (input->numel == 0 && input->sizes[0] != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Non-empty %dD data tensor expected but got a tensor with sizes %s", spatial + 2, msa_sizes_text(msa_sizes(input)));
    msa_auto msa_tensor *x = msa_tensor_retain(input);
    for (int i = spatial - 1; i >= 0; i--) {
        const double wanted = by_size ? (double)output_size.data[i] : floor((double)input->sizes[i + 2] * scales.data[i]);
        if (!(wanted >= 1 && wanted < 1e12))
            return msa_fail_null(MSA_RUNTIME_ERROR, "Input and output sizes should be greater than 0, but got input (dimension %d: %lld) output (dimension %d: %g)", i + 2,
                                 (long long)input->sizes[i + 2], i + 2, wanted);
        msa_tensor *next = resize_dim(x, i + 2, (int64_t)wanted, by_scale ? scales.data[i] : 0, mode, align_corners);
        if (!next) return NULL;
        msa_tensor_release(x);
        x = next;
    }
    return x == input ? msa_clone(input, -1) : msa_take(x);
}

msa_tensor *upsample_nearest_values(msa_tensor *input, msa_ints output_size, msa_doubles scale_factors) {
    return resized(input, output_size, scale_factors, NEAREST, false);
}

msa_tensor *upsample_nearest_exact_values(msa_tensor *input, msa_ints output_size, msa_doubles scale_factors) {
    return resized(input, output_size, scale_factors, NEAREST_EXACT, false);
}

msa_tensor *upsample_linear_values(msa_tensor *input, msa_ints output_size, bool align_corners, msa_doubles scale_factors) {
    return resized(input, output_size, scale_factors, LINEAR, align_corners);
}

msa_tensor *upsample_cubic_values(msa_tensor *input, msa_ints output_size, bool align_corners, msa_doubles scale_factors) {
    return resized(input, output_size, scale_factors, CUBIC, align_corners);
}

/* ---- blocks --------------------------------------------------------------------------------------------------------- */

/* How many places a kernel has along a dimension, padding counted. */
static int64_t places(int64_t size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride) {
    if (size < 0 || kernel < 1 || dilation < 1 || padding < 0 || stride < 1 || kernel > INT32_MAX || dilation > INT32_MAX || padding > INT32_MAX) return 0;
    const int64_t room = size + 2 * padding - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
}

/* The position in the padded input of every (tap of the kernel, place). */
static msa_tensor *tap_index(int64_t kernel, int64_t count, int64_t dilation, int64_t stride) {
    int64_t *at;
    msa_auto msa_tensor *index = index_tensor(kernel * count, &at);
    for (int64_t k = 0; index && k < kernel; k++)
        for (int64_t i = 0; i < count; i++) at[k * count + i] = k * dilation + i * stride;
    return msa_take(index);
}

msa_tensor *im2col_values(msa_tensor *self, msa_ints k, msa_ints dilation, msa_ints padding, msa_ints stride) {
    if (self->ndim != 3 && self->ndim != 4)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: %s",
                             msa_sizes_text(msa_sizes(self)));
    if (k.n != 2 || dilation.n != 2 || padding.n != 2 || stride.n != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "im2col: kernel_size, dilation, padding and stride need two numbers each");
    msa_auto msa_tensor *batch = self->ndim == 4 ? msa_tensor_retain(self) : msa_unsqueeze(self, 0);
    if (!batch) return NULL;
    const int64_t n = batch->sizes[0], c = batch->sizes[1];
    const int64_t oh = places(batch->sizes[2], k.data[0], dilation.data[0], padding.data[0], stride.data[0]);
    const int64_t ow = places(batch->sizes[3], k.data[1], dilation.data[1], padding.data[1], stride.data[1]);
    if (oh < 1 || ow < 1)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Given input with spatial size (%lld, %lld), kernel_size=%s, dilation=%s, padding=%s, calculated shape of the array of sliding"
                             " blocks as (%lld, %lld), but its components must be at least one.", (long long)batch->sizes[2], (long long)batch->sizes[3],
                             msa_sizes_text(k), msa_sizes_text(dilation), msa_sizes_text(padding), (long long)oh, (long long)ow);
    msa_auto msa_tensor *padded = msa_constant_pad_nd(batch, MSA_INTS(padding.data[1], padding.data[1], padding.data[0], padding.data[0]), msa_int(0));
    msa_auto msa_tensor *rows = tap_index(k.data[0], oh, dilation.data[0], stride.data[0]), *columns = tap_index(k.data[1], ow, dilation.data[1], stride.data[1]);
    msa_auto msa_tensor *by_row = msa_index_select(padded, 2, rows), *by_both = msa_index_select(by_row, 3, columns);
    msa_auto msa_tensor *split = msa_reshape(by_both, MSA_INTS(n, c, k.data[0], oh, k.data[1], ow)), *moved = msa_permute(split, MSA_INTS(0, 1, 2, 4, 3, 5));
    return self->ndim == 4 ? msa_reshape(moved, MSA_INTS(n, c * k.data[0] * k.data[1], oh * ow)) : msa_reshape(moved, MSA_INTS(c * k.data[0] * k.data[1], oh * ow));
}

msa_tensor *col2im_values(msa_tensor *self, msa_ints size, msa_ints k, msa_ints dilation, msa_ints padding, msa_ints stride) {
    if (self->ndim != 2 && self->ndim != 3)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: %s",
                             msa_sizes_text(msa_sizes(self)));
    if (size.n != 2 || k.n != 2 || dilation.n != 2 || padding.n != 2 || stride.n != 2)
        return msa_fail_null(MSA_RUNTIME_ERROR, "col2im: output_size, kernel_size, dilation, padding and stride need two numbers each");
    const int64_t oh = places(size.data[0], k.data[0], dilation.data[0], padding.data[0], stride.data[0]);
    const int64_t ow = places(size.data[1], k.data[1], dilation.data[1], padding.data[1], stride.data[1]);
    const int64_t n = self->ndim == 3 ? self->sizes[0] : 1, block = self->sizes[self->ndim - 2], kernel = k.data[0] * k.data[1];
    if (kernel < 1 || block % kernel != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=%lld and"
                             " kernel_size=%s.", (long long)block, msa_sizes_text(k));
    if (oh < 1 || ow < 1 || self->sizes[self->ndim - 1] != oh * ow)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Given output_size=%s, kernel_size=%s, dilation=%s, padding=%s, stride=%s, expected size of input's dimension 2 to match the"
                             " calculated number of sliding blocks %lld * %lld = %lld, but got input.size(2)=%lld.", msa_sizes_text(size), msa_sizes_text(k),
                             msa_sizes_text(dilation), msa_sizes_text(padding), msa_sizes_text(stride), (long long)oh, (long long)ow, (long long)(oh * ow),
                             (long long)self->sizes[self->ndim - 1]);
    const int64_t c = block / kernel, high = size.data[0] + 2 * padding.data[0], wide = size.data[1] + 2 * padding.data[1];
    msa_auto msa_tensor *split = msa_reshape(self, MSA_INTS(n, c, k.data[0], k.data[1], oh, ow)), *moved = msa_permute(split, MSA_INTS(0, 1, 2, 4, 3, 5));
    msa_auto msa_tensor *flat = msa_reshape(moved, MSA_INTS(n, c, k.data[0] * oh, k.data[1] * ow));
    msa_auto msa_tensor *rows = tap_index(k.data[0], oh, dilation.data[0], stride.data[0]), *columns = tap_index(k.data[1], ow, dilation.data[1], stride.data[1]);
    msa_auto msa_tensor *strips = zeros_shaped(MSA_INTS(n, c, k.data[0] * oh, wide), (msa_dtype)self->dtype), *image = zeros_shaped(MSA_INTS(n, c, high, wide), (msa_dtype)self->dtype);
    msa_auto msa_tensor *by_column = msa_index_add(strips, 3, columns, flat, msa_int(1)), *by_both = msa_index_add(image, 2, rows, by_column, msa_int(1));
    msa_auto msa_tensor *cropped = msa_constant_pad_nd(by_both, MSA_INTS(-padding.data[1], -padding.data[1], -padding.data[0], -padding.data[0]), msa_int(0));
    return self->ndim == 3 ? msa_take(cropped) : msa_squeeze_dim(cropped, 0);
}
