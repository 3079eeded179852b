/* Optimizer steps: each updates all parameters in one call.
 *
 * Parameters, gradients and state buffers are lists of equal length; entries belong together and have the same sizes and
 * element type (float32 or float64), contiguous. Nothing is recorded. */
#ifndef MSADAPTER_OPTIM_H
#define MSADAPTER_OPTIM_H

#include "msadapter/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stochastic gradient descent with momentum, as PyTorch writes it: g += weight_decay p; b = momentum b + (1 - dampening) g;
 * p -= lr (nesterov ? g + momentum b : b). */
typedef struct {
    double lr, momentum, dampening, weight_decay;
    bool nesterov, maximize;
} msa_sgd_options;

/* `buffers` may be empty without momentum. first[i] (may be NULL: all false): the buffer is new and takes g as it is. */
MSA_API int msa_sgd_step(msa_tensors params, msa_tensors grads, msa_tensors buffers, const bool *first,
                         const msa_sgd_options *options);

/* Adam (Kingma and Ba, 2015); `decoupled` makes it AdamW (Loshchilov and Hutter, 2019). */
typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
    bool decoupled, amsgrad, maximize;
} msa_adam_options;

/* steps[i] is the number of this step, from 1. `max_exp_avg_sqs` may be empty without amsgrad. */
MSA_API int msa_adam_step(msa_tensors params, msa_tensors grads, msa_tensors exp_avgs, msa_tensors exp_avg_sqs,
                          msa_tensors max_exp_avg_sqs, const double *steps, const msa_adam_options *options);

#ifdef __cplusplus
}
#endif
#endif
