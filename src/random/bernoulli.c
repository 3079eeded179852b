/* Zeros and ones: one probability for all, one for each element, and dropout's factors. */
#include "random/internal.h"

#include <string.h>

/* Ones of value `one`, an element of the type, where u < p. */
static void fill_ones(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double p, double one) {
    switch (msa_dtype_size(dtype)) {
    case 1: {
        uint8_t *to = data;
        for (int64_t i = 0; i < n; i++) to[i] = draw_double(g) < p;
        break;
    }
    case 4: {
        uint32_t *to = data, bits;
        float f = (float)one;
        if (dtype == MSA_FLOAT32)
            memcpy(&bits, &f, sizeof bits);
        else
            bits = 1;
        for (int64_t i = 0; i < n; i++) to[i] = draw_double(g) < p ? bits : 0;
        break;
    }
    default:
        FILL_DOUBLES(data, n, dtype, draw_double(g) < p ? one : 0.0);
    }
}

int msa_random_bernoulli(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double p) {
    if (!(p >= 0 && p <= 1))
        return msa_fail(MSA_RUNTIME_ERROR, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
    if (msa_is_complex(dtype)) return not_implemented("bernoulli_scalar_cpu_", dtype);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    fill_ones(locked, data, n, dtype, p, 1);
    return 0;
}

int msa_random_bernoulli_each(msa_generator *g, void *data, int64_t n, msa_dtype dtype, const void *p,
                              msa_dtype p_dtype) {
    if (msa_is_complex(dtype)) return not_implemented("bernoulli_tensor_cpu_self_", dtype);
    if (!msa_is_floating(p_dtype)) return not_implemented("bernoulli_tensor_cpu_p_", p_dtype);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    double values[DRAWS];
    for (int64_t first = 0; first < n; first += DRAWS) {
        int64_t count = n - first < DRAWS ? n - first : DRAWS;
        load_doubles(values, p, p_dtype, first, count);
        for (int64_t i = 0; i < count; i++) {
            if (!(values[i] >= 0 && values[i] <= 1))
                return msa_fail(MSA_RUNTIME_ERROR,
                                "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error "
                                "message be improved?  If so, please report an enhancement request to PyTorch.)");
            values[i] =
                p_dtype == MSA_FLOAT64 ? draw_double(locked) < values[i] : draw_float(locked) < (float)values[i];
        }
        store_doubles(data, dtype, first, values, count);
    }
    return 0;
}

int msa_random_dropout(msa_generator *g, void *factors, int64_t n, msa_dtype dtype, double p) {
    if (!(p >= 0 && p <= 1))
        return msa_fail(MSA_RUNTIME_ERROR, "dropout probability has to be between 0 and 1, but got %g", p);
    if (!msa_is_floating(dtype)) return not_implemented("bernoulli_scalar_cpu_", dtype);
    if (p == 1) { /* PyTorch multiplies by zeros here, without a draw */
        memset(factors, 0, (size_t)n * msa_dtype_size(dtype));
        return 0;
    }
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    fill_ones(locked, factors, n, dtype, 1 - p, round_to(dtype, 1 / round_to(dtype, 1 - p)));
    return 0;
}
