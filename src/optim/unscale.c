/* The other half of loss scaling: gradients divided by the scale, and whether any of them overflowed. */
#include <math.h>

#include "optim/internal.h"

typedef struct {
    double factor;
    int *found;
} unscaling;

#define UPDATE(NAME, T) \
    static void NAME(void *const *at, int64_t n, int64_t index, const void *context) { \
        const unscaling *u = context; \
        const T factor = (T)u->factor; \
        T *restrict g = at[0]; \
        T sum = 0; /* x - x is 0, or NaN for what is not finite */ \
        for (int64_t i = 0; i < n; i++) { \
            sum += g[i] - g[i]; \
            g[i] *= factor; \
        } \
        if (sum != 0) __atomic_store_n(u->found, 1, __ATOMIC_RELAXED); \
    }
UPDATE(unscale_float, float)
UPDATE(unscale_double, double)

int msa_unscale_gradients(msa_tensors grads, double factor, bool *found) {
    int any = 0;
    const unscaling u = {factor, &any};
    *found = false;
    if (msa_optim_run("unscale_", &grads, 1, 0, (const msa_optim_update[]){unscale_float, unscale_double}, &u) != 0) return -1;
    *found = any;
    return 0;
}
