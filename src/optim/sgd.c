/* Stochastic gradient descent. */
#include "optim/internal.h"

typedef struct {
    msa_sgd_options options;
    const bool *first;
} sgd;

#define UPDATE(NAME, T) \
    static void NAME(void *const *at, int64_t n, int64_t index, const void *context) { \
        const sgd *s = context; \
        T *restrict p = at[0]; \
        const T *restrict g = at[1]; \
        T *restrict b = at[2]; \
        const T lr = (T)s->options.lr, decay = (T)s->options.weight_decay, momentum = (T)s->options.momentum; \
        const T sign = s->options.maximize ? -1 : 1; \
        const bool nesterov = s->options.nesterov; \
        if (!b) { \
            for (int64_t i = 0; i < n; i++) p[i] -= lr * (decay != 0 ? sign * g[i] + decay * p[i] : sign * g[i]); \
            return; \
        } \
        const bool fresh = s->first && s->first[index]; \
        const T keep = fresh ? 0 : momentum, add = fresh ? 1 : (T)(1 - s->options.dampening); \
        for (int64_t i = 0; i < n; i++) { \
            T d = decay != 0 ? sign * g[i] + decay * p[i] : sign * g[i]; \
            T m = fresh ? d : keep * b[i] + add * d; \
            b[i] = m; \
            p[i] -= lr * (nesterov ? d + momentum * m : m); \
        } \
    }
UPDATE(update_float, float)
UPDATE(update_double, double)

int msa_sgd_step(msa_tensors params, msa_tensors grads, msa_tensors buffers, const bool *first, const msa_sgd_options *options) {
    const msa_tensors lists[] = {params, grads, buffers};
    const sgd s = {*options, first};
    return msa_optim_run("sgd", lists, 3, options->momentum == 0 ? 1u << 2 : 0, (const msa_optim_update[]){update_float, update_double}, &s);
}
