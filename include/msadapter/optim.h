/* Optimizer steps: each updates all parameters in one call.
 *
 * Parameters, gradients and state buffers are lists of equal length; entries belong together and have the same sizes. They
 * may be of any floating or complex type and layout; of the parameter's, and without gaps, they are updated in place, else
 * through copies. Complex numbers are stepped as pairs of real ones. Nothing is recorded. All return 0, or -1 with an error:
 * ValueError for lists of other lengths, TypeError and RuntimeError for entries that do not fit. */
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

/* Multiplies gradients by `factor`, one over the scale of a loss; *found tells whether one of them was not finite. */
MSA_API int msa_unscale_gradients(msa_tensors grads, double factor, bool *found);

/* Adam (Kingma and Ba, 2015); `decoupled` makes it AdamW (Loshchilov and Hutter, 2019). */
typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
    bool decoupled, amsgrad, maximize;
} msa_adam_options;

/* steps[i] is the number of this step, from 1. `max_exp_avg_sqs` may be empty without amsgrad. */
MSA_API int msa_adam_step(msa_tensors params, msa_tensors grads, msa_tensors exp_avgs, msa_tensors exp_avg_sqs,
                          msa_tensors max_exp_avg_sqs, const double *steps, const msa_adam_options *options);

/* Adagrad (Duchi, Hazan and Singer, 2011): s += g^2; p -= lr / (1 + (step - 1) lr_decay) g / (sqrt(s) + eps). */
typedef struct {
    double lr, lr_decay, weight_decay, eps;
    bool maximize;
} msa_adagrad_options;
MSA_API int msa_adagrad_step(msa_tensors params, msa_tensors grads, msa_tensors sums, const double *steps,
                             const msa_adagrad_options *options);

/* RMSprop (Tieleman and Hinton, 2012), centred as in Graves (2013). `grad_avgs` may be empty unless centred, `buffers`
 * without momentum. */
typedef struct {
    double lr, alpha, eps, weight_decay, momentum;
    bool centered, maximize;
} msa_rmsprop_options;
MSA_API int msa_rmsprop_step(msa_tensors params, msa_tensors grads, msa_tensors square_avgs, msa_tensors grad_avgs,
                             msa_tensors buffers, const msa_rmsprop_options *options);

/* Adadelta (Zeiler, 2012): steps in the ratio of the running means of past steps and of past gradients. */
typedef struct {
    double lr, rho, eps, weight_decay;
    bool maximize;
} msa_adadelta_options;
MSA_API int msa_adadelta_step(msa_tensors params, msa_tensors grads, msa_tensors square_avgs, msa_tensors acc_deltas,
                              const msa_adadelta_options *options);

/* Adamax (Kingma and Ba, 2015): Adam with the largest recent gradient in the place of the root of the mean square. */
typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
    bool maximize;
} msa_adamax_options;
MSA_API int msa_adamax_step(msa_tensors params, msa_tensors grads, msa_tensors exp_avgs, msa_tensors exp_infs,
                            const double *steps, const msa_adamax_options *options);

/* NAdam (Dozat, 2016). Of each parameter two numbers in a row: its step, and the product of the momenta up to this step,
 * beta1 (1 - 0.5 0.96^(step momentum_decay)) each. */
typedef struct {
    double lr, beta1, beta2, eps, weight_decay, momentum_decay;
} msa_nadam_options;
MSA_API int msa_nadam_step(msa_tensors params, msa_tensors grads, msa_tensors exp_avgs, msa_tensors exp_avg_sqs,
                           const double *steps_and_products, const msa_nadam_options *options);

/* RAdam (Liu et al., 2020). */
typedef struct {
    double lr, beta1, beta2, eps, weight_decay;
} msa_radam_options;
MSA_API int msa_radam_step(msa_tensors params, msa_tensors grads, msa_tensors exp_avgs, msa_tensors exp_avg_sqs,
                           const double *steps, const msa_radam_options *options);

/* Rprop (Riedmiller and Braun, 1993): only the signs of the gradients count. */
typedef struct {
    double eta_minus, eta_plus, step_min, step_max;
    bool maximize;
} msa_rprop_options;
MSA_API int msa_rprop_step(msa_tensors params, msa_tensors grads, msa_tensors prevs, msa_tensors step_sizes,
                           const msa_rprop_options *options);

/* Averaged descent (Polyak and Juditsky, 1992). Of each parameter two numbers in a row: the rate eta of this step, and the
 * share mu of the new iterate in the mean. */
typedef struct {
    double lambd, weight_decay;
    bool maximize;
} msa_asgd_options;
MSA_API int msa_asgd_step(msa_tensors params, msa_tensors grads, msa_tensors means, const double *etas_and_mus,
                          const msa_asgd_options *options);

#ifdef __cplusplus
}
#endif
#endif
