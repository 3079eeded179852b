/* The methods that give each element a rate of its own, and averaged descent: what they are called with. Their loops
 * are in loops.h. */
#include <math.h>

#include "optim/internal.h"

typedef struct {
    const void *options;
    const double *numbers; /* of each parameter: one, or two in a row */
} step;

/* The momentum of NAdam's step t, after Dozat (2016). */
static double nadam_momentum(const msa_nadam_options *o, double t) {
    return o->beta1 * (1 - 0.5 * pow(0.96, t * o->momentum_decay));
}

#define T float
#define NAMED(x) x##_float
#define SQRT sqrtf
#define ABS fabsf
#include "optim/loops.h"

#define T double
#define NAMED(x) x##_double
#define SQRT sqrt
#define ABS fabs
#include "optim/loops.h"

#define LOOPS(METHOD) ((const msa_optim_update[]){METHOD##_float, METHOD##_double})

int msa_adagrad_step(msa_tensors params, msa_tensors grads, msa_tensors sums, const double *steps,
                     const msa_adagrad_options *options) {
    return msa_optim_run("adagrad", (const msa_tensors[]){params, grads, sums}, 3, 0, LOOPS(adagrad),
                         &(step){options, steps});
}

int msa_rmsprop_step(msa_tensors params, msa_tensors grads, msa_tensors square_avgs, msa_tensors grad_avgs,
                     msa_tensors buffers, const msa_rmsprop_options *options) {
    /* what is given decides in the loops, so what is not wanted must not be there */
    if (!options->centered) grad_avgs = (msa_tensors){0};
    if (!(options->momentum > 0)) buffers = (msa_tensors){0};
    const msa_tensors lists[] = {params, grads, square_avgs, grad_avgs, buffers};
    const unsigned optional = (options->centered ? 0 : 1u << 3) | (options->momentum > 0 ? 0 : 1u << 4);
    return msa_optim_run("rmsprop", lists, 5, optional, LOOPS(rmsprop), &(step){options, NULL});
}

int msa_adadelta_step(msa_tensors params, msa_tensors grads, msa_tensors square_avgs, msa_tensors acc_deltas,
                      const msa_adadelta_options *options) {
    return msa_optim_run("adadelta", (const msa_tensors[]){params, grads, square_avgs, acc_deltas}, 4, 0,
                         LOOPS(adadelta), &(step){options, NULL});
}

int msa_adamax_step(msa_tensors params, msa_tensors grads, msa_tensors exp_avgs, msa_tensors exp_infs,
                    const double *steps, const msa_adamax_options *options) {
    return msa_optim_run("adamax", (const msa_tensors[]){params, grads, exp_avgs, exp_infs}, 4, 0, LOOPS(adamax),
                         &(step){options, steps});
}

int msa_nadam_step(msa_tensors params, msa_tensors grads, msa_tensors exp_avgs, msa_tensors exp_avg_sqs,
                   const double *steps_and_products, const msa_nadam_options *options) {
    return msa_optim_run("nadam", (const msa_tensors[]){params, grads, exp_avgs, exp_avg_sqs}, 4, 0, LOOPS(nadam),
                         &(step){options, steps_and_products});
}

int msa_radam_step(msa_tensors params, msa_tensors grads, msa_tensors exp_avgs, msa_tensors exp_avg_sqs,
                   const double *steps, const msa_radam_options *options) {
    return msa_optim_run("radam", (const msa_tensors[]){params, grads, exp_avgs, exp_avg_sqs}, 4, 0, LOOPS(radam),
                         &(step){options, steps});
}

int msa_rprop_step(msa_tensors params, msa_tensors grads, msa_tensors prevs, msa_tensors step_sizes,
                   const msa_rprop_options *options) {
    return msa_optim_run("rprop", (const msa_tensors[]){params, grads, prevs, step_sizes}, 4, 0, LOOPS(rprop),
                         &(step){options, NULL});
}

int msa_asgd_step(msa_tensors params, msa_tensors grads, msa_tensors means, const double *etas_and_mus,
                  const msa_asgd_options *options) {
    return msa_optim_run("asgd", (const msa_tensors[]){params, grads, means}, 3, 0, LOOPS(asgd),
                         &(step){options, etas_and_mus});
}
