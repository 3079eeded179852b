/* Adam and AdamW. */
#include <math.h>

#include "optim/internal.h"

typedef struct {
    msa_adam_options options;
    const double *steps;
} adam;

#define UPDATE(NAME, T, SQRT) \
    static void NAME(void *const *at, int64_t n, int64_t index, const void *context) { \
        const adam *a = context; \
        const msa_adam_options *o = &a->options; \
        T *restrict p = at[0]; \
        const T *restrict g = at[1]; \
        T *restrict m = at[2], *restrict v = at[3], *restrict most = at[4]; \
        const double correction1 = 1 - pow(o->beta1, a->steps[index]), correction2 = 1 - pow(o->beta2, a->steps[index]); \
        const T step = (T)(o->lr / correction1), root = (T)sqrt(correction2), eps = (T)o->eps; \
        const T beta1 = (T)o->beta1, beta2 = (T)o->beta2, rest1 = (T)(1 - o->beta1), rest2 = (T)(1 - o->beta2); \
        const T decay = o->decoupled ? 0 : (T)o->weight_decay, shrink = o->decoupled ? (T)(1 - o->lr * o->weight_decay) : 1; \
        const T sign = o->maximize ? -1 : 1; \
        for (int64_t i = 0; i < n; i++) { \
            T value = p[i] * shrink; \
            T d = decay != 0 ? sign * g[i] + decay * value : sign * g[i]; \
            T m_new = beta1 * m[i] + rest1 * d; \
            T v_new = beta2 * v[i] + rest2 * d * d; \
            m[i] = m_new; \
            v[i] = v_new; \
            if (most) { \
                most[i] = most[i] > v_new ? most[i] : v_new; \
                v_new = most[i]; \
            } \
            p[i] = value - step * m_new / (SQRT(v_new) / root + eps); \
        } \
    }
UPDATE(update_float, float, sqrtf)
UPDATE(update_double, double, sqrt)

int msa_adam_step(msa_tensors params, msa_tensors grads, msa_tensors exp_avgs, msa_tensors exp_avg_sqs, msa_tensors max_exp_avg_sqs,
                  const double *steps, const msa_adam_options *options) {
    const msa_tensors lists[] = {params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs};
    const adam a = {*options, steps};
    return msa_optim_run(options->decoupled ? "adamw" : "adam", lists, 5, options->amsgrad ? 0 : 1u << 4,
                         (const msa_optim_update[]){update_float, update_double}, &a);
}
