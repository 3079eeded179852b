/* The columns of a deformable convolution (Dai et al., 2017; Zhu et al., 2019, with masks): what each tap of the kernel sees at each place,
 * taken between elements where its offset points, and the gradients. The product with the weight is ops/detection.c's.
 *
 * input is (N, C, H, W), read channels last; offset (N, offset groups * taps * 2, out H, out W), y before x; mask
 * (N, offset groups * taps, out H, out W); the columns (groups, N * out H * out W, taps * C / groups). */
#include <math.h>

#include "base/parallel.h"
#include "cpu/layout.h"
#include "cpu/vector.h"
#include "ops/kernels.h"

typedef struct {
    int64_t images, channels, height, width, groups, offset_groups;
    int64_t taps, kernel_width, out_width, places; /* places: out H * out W */
    int64_t stride[2], padding[2], dilation[2];
    int threads;
} msa_deform;

#define T float
#define N(name) f32_##name
#include "cpu/deform_loops.h"
#undef T
#undef N
#define T double
#define N(name) f64_##name
#include "cpu/deform_loops.h"

static int plan_columns(msa_tensor *input, msa_tensor *offset, msa_tensor *mask, msa_ints kernel, msa_ints stride, msa_ints padding, msa_ints dilation,
                        int64_t groups, msa_deform *d) {
    const char *op = "deform_conv2d";
    if (input->ndim != 4 || offset->ndim != 4 || (mask && mask->ndim != 4))
        return msa_fail(MSA_RUNTIME_ERROR, "%s: input, offset and mask must have 4 dimensions", op);
    if (kernel.n != 2 || stride.n != 2 || padding.n != 2 || dilation.n != 2) return msa_fail(MSA_RUNTIME_ERROR, "%s: kernel, stride, padding and dilation need two numbers each", op);
    int64_t out[2];
    for (int i = 0; i < 2; i++) {
        const int64_t k = kernel.data[i], s = stride.data[i], p = padding.data[i], l = dilation.data[i], most = INT32_MAX / 4;
        if (k <= 0 || k > most) return msa_fail(MSA_RUNTIME_ERROR, "weight_h: %lld weight_w: %lld", (long long)kernel.data[0], (long long)kernel.data[1]);
        if (s <= 0 || s > most) return msa_fail(MSA_RUNTIME_ERROR, "stride_h: %lld stride_w: %lld", (long long)stride.data[0], (long long)stride.data[1]);
        if (p < 0 || p > most) return msa_fail(MSA_RUNTIME_ERROR, "pad_h: %lld pad_w: %lld", (long long)padding.data[0], (long long)padding.data[1]);
        if (l <= 0 || l > most) return msa_fail(MSA_RUNTIME_ERROR, "dil_h: %lld dil_w: %lld", (long long)dilation.data[0], (long long)dilation.data[1]);
        const int64_t room = input->sizes[2 + i] + 2 * p - (l * (k - 1) + 1);
        out[i] = room < 0 ? 0 : room / s + 1;
        d->stride[i] = s;
        d->padding[i] = p;
        d->dilation[i] = l;
    }
    d->images = input->sizes[0];
    d->channels = input->sizes[1];
    d->height = input->sizes[2];
    d->width = input->sizes[3];
    d->groups = groups;
    d->taps = kernel.data[0] * kernel.data[1];
    d->kernel_width = kernel.data[1];
    d->out_width = out[1];
    d->places = out[0] * out[1];
    d->offset_groups = offset->sizes[1] / (2 * d->taps);
    const int64_t sets = d->offset_groups * d->taps;
    if (d->offset_groups < 1)
        return msa_fail(MSA_RUNTIME_ERROR, "the shape of the offset tensor at dimension 1 is not valid. It should be a multiple of 2 * weight.size[2] * weight.size[3].\n"
                        "Got offset.shape[1]=%lld, while 2 * weight.size[2] * weight.size[3]=%lld", (long long)offset->sizes[1], (long long)(2 * d->taps));
    if (offset->sizes[1] != 2 * sets)
        return msa_fail(MSA_RUNTIME_ERROR, "offset.shape[1] is not valid: got: %lld expected: %lld", (long long)offset->sizes[1], (long long)(2 * sets));
    if (mask && mask->sizes[1] != sets)
        return msa_fail(MSA_RUNTIME_ERROR, "mask.shape[1] is not valid: got: %lld expected: %lld", (long long)mask->sizes[1], (long long)sets);
    if (d->channels < 1 || groups < 1 || d->channels % groups || d->channels % d->offset_groups)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: %lld channels cannot be shared out to %lld groups and %lld groups of offsets", op, (long long)d->channels, (long long)groups,
                        (long long)d->offset_groups);
    for (int m = 0; m < (mask ? 2 : 1); m++) {
        const msa_tensor *t = m ? mask : offset;
        const char *name = m ? "mask" : "offset";
        if (t->sizes[0] != d->images) return msa_fail(MSA_RUNTIME_ERROR, "invalid batch size of %s", name);
        if (t->sizes[2] != out[0] || t->sizes[3] != out[1])
            return msa_fail(MSA_RUNTIME_ERROR, "%s output dims: (%lld, %lld) - computed output dims: (%lld, %lld)", name, (long long)t->sizes[2], (long long)t->sizes[3],
                            (long long)out[0], (long long)out[1]);
        if (t->dtype != input->dtype)
            return msa_fail(MSA_RUNTIME_ERROR, "expected scalar type %s but found %s", msa_dtype_type_name((msa_dtype)input->dtype), msa_dtype_type_name((msa_dtype)t->dtype));
    }
    if (d->places == 0) return msa_fail(MSA_RUNTIME_ERROR, "Calculated output size too small - out_h: %lld out_w: %lld", (long long)out[0], (long long)out[1]);
    if (!msa_is_floating((msa_dtype)input->dtype) || input->dtype == MSA_BFLOAT16)
        return msa_fail(MSA_NOT_IMPLEMENTED, "\"deformable_im2col\" not implemented for '%s'", msa_dtype_type_name((msa_dtype)input->dtype));
    d->threads = msa_threads_for(d->images * d->places * d->taps * d->channels * 4, MSA_GRAIN);
    return 0;
}

/* Operands in the working type, contiguous. */
static int plain_operand(msa_tensor *t, msa_tensor **plain, const void **data) {
    msa_auto msa_tensor *typed = t ? msa_cast_values(t, t->dtype == MSA_FLOAT64 ? MSA_FLOAT64 : MSA_FLOAT32) : NULL;
    *plain = typed ? msa_contiguous_values(typed) : NULL;
    *data = *plain && (*plain)->numel ? msa_data(*plain) : NULL;
    return !t || (*plain && (*data || !(*plain)->numel)) ? 0 : -1;
}

msa_tensor *deform_columns_cpu(msa_tensor *input, msa_tensor *offset, msa_tensor *mask, msa_ints kernel, msa_ints stride, msa_ints padding,
                               msa_ints dilation, int64_t groups) {
    msa_deform d;
    if (plan_columns(input, offset, mask, kernel, stride, padding, dilation, groups, &d) != 0) return NULL;
    msa_auto msa_tensor *o = NULL, *m = NULL, *x = msa_cast_values(input, input->dtype == MSA_FLOAT64 ? MSA_FLOAT64 : MSA_FLOAT32);
    const void *offsets, *masks;
    if (!x || plain_operand(offset, &o, &offsets) != 0 || plain_operand(mask, &m, &masks) != 0) return NULL;
    msa_auto msa_tensor *out = msa_tensor_new(MSA_INTS(groups, d.images * d.places, d.taps * d.channels / groups), (msa_dtype)x->dtype);
    msa_auto_image image = {NULL, NULL};
    if (!out) return NULL;
    if (out->numel) {
        if (x->numel == 0) { /* padding alone */
            if (msa_fill_values(out, msa_int(0)) != 0) return NULL;
        } else if (msa_image_channels_last(x, &image) != 0) return NULL;
        else if (x->dtype == MSA_FLOAT64) f64_columns(&d, image.data, offsets, masks, out->storage->data);
        else f32_columns(&d, image.data, offsets, masks, out->storage->data);
    }
    return msa_cast_values(out, (msa_dtype)input->dtype);
}

/* results: towards input, offset and mask, where the output_mask asks for them. */
int deform_columns_backward_cpu(msa_tensor *grad, msa_tensor *input, msa_tensor *offset, msa_tensor *mask, msa_ints kernel, msa_ints stride,
                                msa_ints padding, msa_ints dilation, msa_ints output_mask, msa_tensor **results) {
    msa_deform d;
    if (grad->ndim != 3 || output_mask.n != 3) return msa_fail(MSA_RUNTIME_ERROR, "deform_columns_backward: the gradient has the wrong size");
    if (plan_columns(input, offset, mask, kernel, stride, padding, dilation, grad->sizes[0], &d) != 0) return -1;
    if (grad->sizes[1] != d.images * d.places || grad->sizes[2] != d.taps * d.channels / d.groups)
        return msa_fail(MSA_RUNTIME_ERROR, "deform_columns_backward: the gradient has the wrong size");
    msa_auto msa_tensor *g = NULL, *o = NULL, *m = NULL, *x = msa_cast_values(input, input->dtype == MSA_FLOAT64 ? MSA_FLOAT64 : MSA_FLOAT32);
    const void *grads, *offsets, *masks;
    if (!x || grad->dtype != input->dtype) return x ? msa_fail(MSA_RUNTIME_ERROR, "deform_columns_backward: the gradient has another type") : -1;
    if (plain_operand(grad, &g, &grads) != 0 || plain_operand(offset, &o, &offsets) != 0 || plain_operand(mask, &m, &masks) != 0) return -1;
    const msa_dtype type = (msa_dtype)x->dtype;
    const bool any = x->numel && g->numel, wide = type == MSA_FLOAT64;
    msa_auto msa_tensor *grad_offset = output_mask.data[1] ? msa_tensor_new(msa_sizes(offset), type) : NULL;
    msa_auto msa_tensor *grad_mask = mask && output_mask.data[2] ? msa_tensor_new(msa_sizes(mask), type) : NULL;
    if ((output_mask.data[1] && !grad_offset) || (mask && output_mask.data[2] && !grad_mask)) return -1;
    if (grad_offset || grad_mask) {
        void *to_offset = grad_offset ? grad_offset->storage->data : NULL, *to_mask = grad_mask ? grad_mask->storage->data : NULL;
        msa_auto_image image = {NULL, NULL};
        if (!any) {
            if ((grad_offset && msa_fill_values(grad_offset, msa_int(0)) != 0) || (grad_mask && msa_fill_values(grad_mask, msa_int(0)) != 0)) return -1;
        } else if (msa_image_channels_last(x, &image) != 0) return -1;
        else if (wide) f64_place_gradients(&d, grads, image.data, offsets, masks, to_offset, to_mask);
        else f32_place_gradients(&d, grads, image.data, offsets, masks, to_offset, to_mask);
    }
    if (output_mask.data[0]) {
        msa_image_out out;
        if (msa_image_out_new(msa_sizes(input), type, false, &out) != 0) return -1;
        if (x->numel) memset(out.data, 0, (size_t)x->numel * msa_dtype_size(type));
        if (any && wide) f64_image_gradient(&d, grads, offsets, masks, out.data);
        else if (any) f32_image_gradient(&d, grads, offsets, masks, out.data);
        msa_auto msa_tensor *done = msa_image_out_finish(&out);
        if (!(results[0] = msa_cast_values(done, (msa_dtype)input->dtype))) return -1;
    }
    if (grad_offset && !(results[1] = msa_cast_values(grad_offset, (msa_dtype)input->dtype))) return -1;
    if (grad_mask && !(results[2] = msa_cast_values(grad_mask, (msa_dtype)input->dtype))) return -1;
    return 0;
}
