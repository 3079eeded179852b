/* Helpers of the formulas of networks' operators: products, convolutions, normalisations, losses. */
#ifndef MSA_OPS_HELPERS_NN_H
#define MSA_OPS_HELPERS_NN_H

#include "ops/internal.h"

/* matmul.c: grad is (..., out), input (..., in), weight (out, in). */
msa_tensor *linear_input_gradient(msa_tensor *grad, msa_tensor *weight);
msa_tensor *linear_weight_gradient(msa_tensor *grad, msa_tensor *input);
msa_tensor *linear_bias_gradient(msa_tensor *grad);

#endif
