/* Helpers of the formulas of networks' operators: products, convolutions, normalisations, losses. */
#ifndef MSA_OPS_HELPERS_NN_H
#define MSA_OPS_HELPERS_NN_H

#include "ops/internal.h"

/* matmul.c: grad is (..., out), input (..., in), weight (out, in). */
msa_tensor *linear_input_gradient(msa_tensor *grad, msa_tensor *weight);
msa_tensor *linear_weight_gradient(msa_tensor *grad, msa_tensor *input);
msa_tensor *linear_bias_gradient(msa_tensor *grad);

/* convolution.c */
int convolution_second_gradients(msa_tensor *gg_input, msa_tensor *gg_weight, msa_tensor *gg_bias, msa_tensor *grad_output,
                                 msa_tensor *input, msa_tensor *weight, msa_ints stride, msa_ints padding, msa_ints dilation,
                                 bool transposed, msa_ints output_padding, int64_t groups, msa_ints needs, msa_tensor **results);

/* vision.c */
msa_tensor *constant_pad_gradient(msa_tensor *grad, msa_ints pad);

/* pooling.c: grad added at flat positions of the last `spatial` dimensions of a tensor of zeros; sizes behind N and C. */
msa_tensor *pooled_scatter(msa_tensor *grad, msa_tensor *indices, msa_ints sizes, int64_t spatial);
msa_ints spatial_sizes(msa_ints sizes);

/* normalisation.c: each by a kernel, or by operators where the backward pass is recorded. */
int batch_norm_gradients(msa_tensor *grad, msa_tensor *input, msa_tensor *weight, msa_tensor *mean, msa_tensor *invstd, bool training,
                         double eps, msa_ints needs, msa_tensor **results);
int layer_norm_gradients(msa_tensor *grad, msa_tensor *input, msa_ints normalized_shape, msa_tensor *mean, msa_tensor *rstd, msa_tensor *weight,
                         double eps, msa_ints needs, msa_tensor **results);
int group_norm_gradients(msa_tensor *grad, msa_tensor *input, int64_t num_groups, msa_tensor *mean, msa_tensor *rstd, msa_tensor *weight,
                         double eps, msa_ints needs, msa_tensor **results);

/* recurrent.c */
int recurrent_layer_gradients(msa_tensor *grad_output, msa_tensor *grad_hn, msa_tensor *grad_cn, msa_tensor *input, msa_tensor *hx, msa_tensor *cx,
                              msa_tensor *w_ih, msa_tensor *w_hh, msa_tensor *b_ih, msa_tensor *b_hh, msa_tensor *w_hr, msa_tensor *kept,
                              msa_ints batch_sizes, int64_t mode, bool reverse, msa_ints needs, msa_tensor **results);

/* loss.c */
msa_tensor *softmax_gradient(msa_tensor *grad, msa_tensor *result, int64_t dim);
msa_tensor *log_softmax_gradient(msa_tensor *grad, msa_tensor *result, int64_t dim);
msa_tensor *nll_loss_alone(msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index);
msa_tensor *cross_entropy_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index,
                                   msa_tensor *log_sums, msa_tensor *total_weight);
msa_tensor *embedding_second_gradient(msa_tensor *grad, msa_tensor *indices, int64_t padding_idx);

/* sparse.c: the gradient of a table of `sizes`, sparse on request. */
msa_tensor *embedding_gradient(msa_tensor *grad, msa_tensor *indices, msa_ints sizes, int64_t padding_idx, bool scale_grad_by_freq, bool sparse);
/* What of `grad`, sparse or dense, lies where `like` has elements: as a sparse tensor, and its values alone. */
msa_tensor *sparse_gradient_like(msa_tensor *grad, msa_tensor *like);
msa_tensor *sparse_gradient_values(msa_tensor *grad, msa_tensor *like);
/* `values` where `like` has its own. */
msa_tensor *sparse_with_values(msa_tensor *like, msa_tensor *values);
msa_tensor *sparse_dense_gradient(msa_tensor *grad);

#endif
