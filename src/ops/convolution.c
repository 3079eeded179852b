/* The user's convolutions, made of `convolution`: unbatched inputs, padding by name, second gradients. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

static const msa_ints none = {(const int64_t[]){0}, 1};

/* With a batch dimension put in front and taken away again where the input has none. */
static msa_tensor *batched(const char *name, int spatial, msa_tensor *input, msa_tensor *weight, msa_tensor *bias, msa_ints stride,
                           msa_ints padding, msa_ints dilation, bool transposed, msa_ints output_padding, int64_t groups) {
    if (input->ndim != spatial + 2 && input->ndim != spatial + 1 && weight->ndim == spatial + 2)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Expected %dD (unbatched) or %dD (batched) input to %s, but got input of size: %s", spatial + 1,
                             spatial + 2, name, msa_sizes_text(msa_sizes(input)));
    if (input->ndim != spatial + 1)
        return msa_convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
    msa_auto msa_tensor *one = msa_unsqueeze(input, 0);
    msa_auto msa_tensor *result =
        one ? msa_convolution(one, weight, bias, stride, padding, dilation, transposed, output_padding, groups) : NULL;
    return result ? msa_squeeze_dim(result, 0) : NULL;
}

/* padding: "valid", or "same": the output is as large as the input. An odd total pads one more at the end; more on both sides
 * with the first output dropped says the same. */
static msa_tensor *padded(const char *name, int spatial, msa_tensor *input, msa_tensor *weight, msa_tensor *bias, msa_ints stride,
                          const char *padding, msa_ints dilation, int64_t groups) {
    if (strcmp(padding, "valid") == 0) return batched(name, spatial, input, weight, bias, stride, none, dilation, false, none, groups);
    if (strcmp(padding, "same") != 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Invalid padding string: '%s'", padding);
    if (weight->ndim != spatial + 2) return batched(name, spatial, input, weight, bias, stride, none, dilation, false, none, groups);
    for (int64_t i = 0; i < stride.n; i++)
        if (stride.data[i] != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "padding='same' is not supported for strided convolutions");
    int64_t pad[3], odd[3];
    for (int i = 0; i < spatial; i++) {
        const int64_t d = dilation.data[dilation.n == 1 ? 0 : i], total = d * (weight->sizes[2 + i] - 1);
        odd[i] = total % 2 != 0;
        pad[i] = total / 2 + odd[i];
    }
    msa_auto msa_tensor *result = batched(name, spatial, input, weight, bias, stride, (msa_ints){pad, spatial}, dilation, false, none, groups);
    for (int i = 0; i < spatial && result; i++)
        if (odd[i]) {
            const int64_t dim = result->ndim - spatial + i;
            msa_tensor *rest = msa_narrow(result, dim, 1, result->sizes[dim] - 1);
            msa_tensor_release(result);
            result = rest;
        }
    return result && !result->contiguous ? msa_contiguous(result, 0) : msa_take(result);
}

#define CONVOLUTIONS(N) \
    msa_tensor *conv##N##d_values(msa_tensor *input, msa_tensor *weight, msa_tensor *bias, msa_ints stride, msa_ints padding, \
                                  msa_ints dilation, int64_t groups) { \
        return batched("conv" #N "d", N, input, weight, bias, stride, padding, dilation, false, none, groups); \
    } \
    msa_tensor *conv##N##d_named_values(msa_tensor *input, msa_tensor *weight, msa_tensor *bias, msa_ints stride, \
                                        const char *padding, msa_ints dilation, int64_t groups) { \
        return padded("conv" #N "d", N, input, weight, bias, stride, padding, dilation, groups); \
    } \
    msa_tensor *conv_transpose##N##d_values(msa_tensor *input, msa_tensor *weight, msa_tensor *bias, msa_ints stride, \
                                            msa_ints padding, msa_ints output_padding, int64_t groups, msa_ints dilation) { \
        return batched("conv_transpose" #N "d", N, input, weight, bias, stride, padding, dilation, true, output_padding, groups); \
    }
CONVOLUTIONS(1)
CONVOLUTIONS(2)
CONVOLUTIONS(3)

/* self is (time, batch, in), weight (kernel, in, out). */
msa_tensor *conv_tbc_values(msa_tensor *self, msa_tensor *weight, msa_tensor *bias, int64_t pad) {
    if (self->ndim != 3) return msa_fail_null(MSA_RUNTIME_ERROR, "Input must have 3 dims: time, batch, in_channel");
    if (weight->ndim != 3) return msa_fail_null(MSA_RUNTIME_ERROR, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
    if (bias->ndim != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "Bias must be 1-D");
    if (self->sizes[2] != weight->sizes[1])
        return msa_fail_null(MSA_RUNTIME_ERROR, "Input dim 2 (input channels) is not == dim 1 in the weight tensor");
    if (weight->sizes[2] != bias->sizes[0])
        return msa_fail_null(MSA_RUNTIME_ERROR, "Bias size must equal dim 2 in the weight tensor (output channels).");
    msa_auto msa_tensor *x = msa_permute(self, MSA_INTS(1, 2, 0)), *w = msa_permute(weight, MSA_INTS(2, 1, 0));
    msa_auto msa_tensor *y = x && w ? msa_convolution(x, w, bias, MSA_INTS(1), MSA_INTS(pad), MSA_INTS(1), false, none, 1) : NULL;
    return y ? msa_permute(y, MSA_INTS(2, 0, 1)) : NULL;
}

static int add_into(msa_tensor **sum, msa_tensor *owned) {
    if (!owned) return -1;
    msa_tensor *total = *sum ? msa_add(*sum, owned, msa_int(1)) : msa_tensor_retain(owned);
    msa_tensor_release(owned);
    msa_tensor_release(*sum);
    *sum = total;
    return total ? 0 : -1;
}

/* Convolution is linear in the input and in the weight, so its second gradients are convolutions again; gg_* is what comes in for
 * the gradients of input, weight and bias, NULL for none. results: towards grad_output, input, weight. */
int convolution_second_gradients(msa_tensor *gg_input, msa_tensor *gg_weight, msa_tensor *gg_bias, msa_tensor *grad_output,
                                 msa_tensor *input, msa_tensor *weight, msa_ints stride, msa_ints padding, msa_ints dilation,
                                 bool transposed, msa_ints output_padding, int64_t groups, msa_ints needs, msa_tensor **results) {
    if (needs.data[0]) {
        msa_auto msa_tensor *sum = NULL;
        if (gg_input && add_into(&sum, msa_convolution(gg_input, weight, NULL, stride, padding, dilation, transposed, output_padding, groups)) != 0)
            return -1;
        if (gg_weight && add_into(&sum, msa_convolution(input, gg_weight, NULL, stride, padding, dilation, transposed, output_padding, groups)) != 0)
            return -1;
        if (gg_bias) {
            int64_t shape[5] = {1, gg_bias->sizes[0], 1, 1, 1};
            msa_auto msa_tensor *wide = msa_reshape(gg_bias, (msa_ints){shape, input->ndim});
            if (!wide || add_into(&sum, msa_expand(wide, msa_sizes(grad_output), false)) != 0) return -1;
        }
        results[0] = msa_take(sum);
    }
    if (needs.data[1] && gg_weight) {
        msa_tensor *three[3] = {NULL};
        if (msa_convolution_backward(grad_output, input, gg_weight, MSA_NO_INTS, stride, padding, dilation, transposed, output_padding, groups,
                                     MSA_INTS(1, 0, 0), three) != 0)
            return -1;
        results[1] = three[0];
    }
    if (needs.data[2] && gg_input) {
        msa_tensor *three[3] = {NULL};
        if (msa_convolution_backward(grad_output, gg_input, weight, MSA_NO_INTS, stride, padding, dilation, transposed, output_padding, groups,
                                     MSA_INTS(0, 1, 0), three) != 0)
            return -1;
        results[2] = three[1];
    }
    return 0;
}
