/* Normalisation: the user's operators, and gradients that are kernels in an ordinary backward pass and compositions of
 * operators when the backward pass is itself recorded (second derivatives follow from those). */
#include "autograd/internal.h"
#include "msadapter/autograd.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

static bool recorded(msa_tensor *a, msa_tensor *b, msa_tensor *c) {
    return msa_grad_mode && (a->requires_grad || b->requires_grad || (c && c->requires_grad));
}

/* Dimensions [from, to), and those that are not. */
static msa_ints range(int64_t *to_fill, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) to_fill[i - from] = i;
    return (msa_ints){to_fill, to - from};
}

/* x normalised over dims: (x - mean) * rstd, both from x; *rstd_out is handed out. NULL arguments pass an error on. */
static msa_tensor *normalised(msa_tensor *x, msa_ints dims, double eps, msa_tensor **rstd_out) {
    msa_auto msa_tensor *mean = msa_mean_dim(x, dims, true, MSA_NO_DTYPE), *centred = msa_sub(x, mean, msa_int(1));
    msa_auto msa_tensor *squares = msa_mul(centred, centred), *variance = msa_mean_dim(squares, dims, true, MSA_NO_DTYPE);
    msa_auto msa_tensor *small = msa_wrap_number(msa_float(eps)), *shifted = msa_add(variance, small, msa_int(1));
    *rstd_out = msa_rsqrt(shifted);
    return msa_mul(centred, *rstd_out);
}

/* (g - mean(g) - xhat * mean(g * xhat)) * rstd over dims. */
static msa_tensor *through_statistics(msa_tensor *g, msa_tensor *xhat, msa_tensor *rstd, msa_ints dims) {
    msa_auto msa_tensor *product = msa_mul(g, xhat), *slope = msa_mean_dim(product, dims, true, MSA_NO_DTYPE), *mean = msa_mean_dim(g, dims, true, MSA_NO_DTYPE);
    msa_auto msa_tensor *along = msa_mul(xhat, slope), *centred = msa_sub(g, mean, msa_int(1)), *rest = msa_sub(centred, along, msa_int(1));
    return msa_mul(rest, rstd);
}

/* ---- batch ------------------------------------------------------------------------------------------------------ */

/* A vector over dimension 1 of a tensor of `ndim` dimensions. */
static msa_tensor *channel_view(msa_tensor *v, int ndim) {
    int64_t sizes[MSA_MAX_DIMS];
    for (int i = 0; i < ndim; i++) sizes[i] = i == 1 ? -1 : 1;
    return msa_reshape(v, (msa_ints){sizes, ndim});
}

int batch_norm_gradients(msa_tensor *grad, msa_tensor *input, msa_tensor *weight, msa_tensor *mean, msa_tensor *invstd, bool training,
                         double eps, msa_ints needs, msa_tensor **results) {
    if (!recorded(grad, input, weight)) return msa_batch_norm_backward(grad, input, weight, mean, invstd, training, needs, results);
    int64_t dims[MSA_MAX_DIMS] = {0};
    for (int i = 2; i < input->ndim; i++) dims[i - 1] = i;
    const msa_ints over = {dims, input->ndim - 1};
    msa_auto msa_tensor *xhat = NULL, *rstd = NULL, *wide = weight ? channel_view(weight, input->ndim) : NULL;
    if (training) xhat = normalised(input, over, eps, &rstd);
    else {
        msa_auto msa_tensor *m = channel_view(mean, input->ndim), *centred = msa_sub(input, m, msa_int(1));
        rstd = channel_view(invstd, input->ndim);
        xhat = msa_mul(centred, rstd);
    }
    if (needs.data[0]) {
        msa_auto msa_tensor *g = weight ? msa_mul(grad, wide) : msa_tensor_retain(grad);
        results[0] = training ? through_statistics(g, xhat, rstd, over) : msa_mul(g, rstd);
        if (!results[0]) return -1;
    }
    if (needs.data[1]) {
        msa_auto msa_tensor *product = msa_mul(grad, xhat);
        if (!(results[1] = msa_sum_dim_IntList(product, over, false, MSA_NO_DTYPE))) return -1;
    }
    return needs.data[2] && !(results[2] = msa_sum_dim_IntList(grad, over, false, MSA_NO_DTYPE)) ? -1 : 0;
}

msa_tensor *batch_norm_values(msa_tensor *input, msa_tensor *weight, msa_tensor *bias, msa_tensor *running_mean, msa_tensor *running_var,
                              bool training, double momentum, double eps, bool cudnn_enabled) {
    msa_tensor *three[3] = {NULL};
    if (input->numel == 0 && input->ndim < 2) return msa_clone(input, -1); /* nothing to normalise, no channels to check */
    if (msa_batch_norm_normalized(input, weight, bias, running_mean, running_var, training, momentum, eps, three) != 0) return NULL;
    msa_tensor_release(three[1]);
    msa_tensor_release(three[2]);
    return three[0];
}

int native_batch_norm_values(msa_tensor *input, msa_tensor *weight, msa_tensor *bias, msa_tensor *running_mean, msa_tensor *running_var,
                             bool training, double momentum, double eps, msa_tensor **results) {
    if (msa_batch_norm_normalized(input, weight, bias, running_mean, running_var, training, momentum, eps, results) != 0) return -1;
    for (int i = 1; i < 3 && !training; i++) { /* nothing was computed */
        msa_tensor *none = msa_tensor_new(MSA_INTS(0), (msa_dtype)results[i]->dtype);
        msa_tensor_release(results[i]);
        results[i] = none;
    }
    return results[1] && results[2] ? 0 : -1;
}

/* Every image and channel by itself: batch normalisation of one image with n * c channels. */
msa_tensor *instance_norm_values(msa_tensor *input, msa_tensor *weight, msa_tensor *bias, msa_tensor *running_mean, msa_tensor *running_var,
                                 bool use_input_stats, double momentum, double eps, bool cudnn_enabled) {
    if (!use_input_stats && !(running_mean && running_var))
        return msa_fail_null(MSA_RUNTIME_ERROR, "Expected running_mean and running_var to be defined when use_input_stats is false");
    if (input->ndim < 3) return msa_fail_null(MSA_RUNTIME_ERROR, "instance_norm: expected an input of at least 3 dimensions, got %d", input->ndim);
    const int64_t n = input->sizes[0], c = input->sizes[1];
    int64_t sizes[MSA_MAX_DIMS];
    memcpy(sizes, input->sizes, sizeof(int64_t) * input->ndim);
    sizes[0] = 1;
    sizes[1] = n * c;
    msa_auto msa_tensor *flat = msa_reshape(input, (msa_ints){sizes, input->ndim});
    msa_auto msa_tensor *w = weight ? msa_repeat(weight, MSA_INTS(n)) : NULL, *b = bias ? msa_repeat(bias, MSA_INTS(n)) : NULL;
    msa_auto msa_tensor *mean = running_mean ? msa_repeat(running_mean, MSA_INTS(n)) : NULL, *var = running_var ? msa_repeat(running_var, MSA_INTS(n)) : NULL;
    if ((weight && !w) || (bias && !b) || (running_mean && !mean) || (running_var && !var)) return NULL;
    msa_auto msa_tensor *out = msa_batch_norm(flat, w, b, mean, var, use_input_stats, momentum, eps, false);
    if (!out) return NULL;
    msa_tensor *const running[] = {running_mean, running_var}, *const fresh[] = {mean, var};
    for (int i = 0; i < 2 && use_input_stats; i++) {
        if (!running[i]) continue;
        msa_auto msa_tensor *rows = msa_reshape((msa_tensor *)fresh[i], MSA_INTS(n, c)), *average = msa_mean_dim(rows, MSA_INTS(0), false, MSA_NO_DTYPE);
        if (!average || msa_copy_values((msa_tensor *)running[i], average) != 0) return NULL;
        msa_bump_version((msa_tensor *)running[i]);
    }
    return msa_reshape(out, msa_sizes(input));
}

/* ---- layer ------------------------------------------------------------------------------------------------------ */

int layer_norm_gradients(msa_tensor *grad, msa_tensor *input, msa_ints normalized_shape, msa_tensor *mean, msa_tensor *rstd, msa_tensor *weight,
                         double eps, msa_ints needs, msa_tensor **results) {
    if (!recorded(grad, input, weight)) return msa_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, needs, results);
    int64_t inner[MSA_MAX_DIMS], outer[MSA_MAX_DIMS];
    const int64_t kept = input->ndim - normalized_shape.n;
    const msa_ints over = range(inner, kept, input->ndim), others = range(outer, 0, kept);
    msa_auto msa_tensor *root = NULL, *xhat = normalised(input, over, eps, &root);
    if (needs.data[0]) {
        msa_auto msa_tensor *g = weight ? msa_mul(grad, weight) : msa_tensor_retain(grad);
        if (!(results[0] = through_statistics(g, xhat, root, over))) return -1;
    }
    if (needs.data[1]) {
        msa_auto msa_tensor *product = msa_mul(grad, xhat);
        results[1] = others.n ? msa_sum_dim_IntList(product, others, false, MSA_NO_DTYPE) : msa_take(product);
        if (!results[1]) return -1;
    }
    if (needs.data[2]) results[2] = others.n ? msa_sum_dim_IntList(grad, others, false, MSA_NO_DTYPE) : msa_tensor_retain(grad);
    return needs.data[2] && !results[2] ? -1 : 0;
}

msa_tensor *layer_norm_values(msa_tensor *input, msa_ints normalized_shape, msa_tensor *weight, msa_tensor *bias, double eps, bool cudnn_enable) {
    msa_tensor *three[3] = {NULL};
    if (msa_native_layer_norm(input, normalized_shape, weight, bias, eps, three) != 0) return NULL;
    msa_tensor_release(three[1]);
    msa_tensor_release(three[2]);
    return three[0];
}

/* ---- group ------------------------------------------------------------------------------------------------------ */

int group_norm_gradients(msa_tensor *grad, msa_tensor *input, int64_t num_groups, msa_tensor *mean, msa_tensor *rstd, msa_tensor *weight,
                         double eps, msa_ints needs, msa_tensor **results) {
    if (!recorded(grad, input, weight)) return msa_group_norm_backward(grad, input, num_groups, mean, rstd, weight, needs, results);
    int64_t dims[MSA_MAX_DIMS] = {0};
    for (int i = 2; i < input->ndim; i++) dims[i - 1] = i;
    int64_t inner = input->sizes[1] / num_groups; /* elements of a group; given, because -1 cannot stand for it in an empty batch */
    for (int i = 2; i < input->ndim; i++) inner *= input->sizes[i];
    const msa_ints channels = {dims, input->ndim - 1}, over = MSA_INTS(2), grouped = MSA_INTS(input->sizes[0], num_groups, inner);
    msa_auto msa_tensor *x = msa_reshape(input, grouped), *root = NULL, *xhat = normalised(x, over, eps, &root);
    if (needs.data[0]) {
        msa_auto msa_tensor *wide = weight ? channel_view(weight, input->ndim) : NULL;
        msa_auto msa_tensor *g = weight ? msa_mul(grad, wide) : msa_tensor_retain(grad), *flat = msa_reshape(g, grouped);
        msa_auto msa_tensor *dx = through_statistics(flat, xhat, root, over);
        if (!(results[0] = msa_reshape(dx, msa_sizes(input)))) return -1;
    }
    if (needs.data[1]) {
        msa_auto msa_tensor *shaped = msa_reshape(xhat, msa_sizes(input)), *product = msa_mul(grad, shaped);
        if (!(results[1] = msa_sum_dim_IntList(product, channels, false, MSA_NO_DTYPE))) return -1;
    }
    return needs.data[2] && !(results[2] = msa_sum_dim_IntList(grad, channels, false, MSA_NO_DTYPE)) ? -1 : 0;
}

msa_tensor *group_norm_values(msa_tensor *input, int64_t num_groups, msa_tensor *weight, msa_tensor *bias, double eps, bool cudnn_enabled) {
    msa_tensor *three[3] = {NULL};
    if (msa_group_norm_normalized(input, num_groups, weight, bias, eps, three) != 0) return NULL;
    msa_tensor_release(three[1]);
    msa_tensor_release(three[2]);
    return three[0];
}

int native_group_norm_values(msa_tensor *input, msa_tensor *weight, msa_tensor *bias, int64_t N, int64_t C, int64_t HxW, int64_t group,
                             double eps, msa_tensor **results) {
    if (input->ndim < 2 || N != input->sizes[0] || C != input->sizes[1] || N * C * HxW != input->numel)
        return msa_fail(MSA_RUNTIME_ERROR, "native_group_norm: N, C and HxW do not fit an input of size %s", msa_sizes_text(msa_sizes(input)));
    return msa_group_norm_normalized(input, group, weight, bias, eps, results);
}
