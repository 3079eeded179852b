/* Samples of a discrete distribution given by weights, with and without replacement. */
#include "random/internal.h"

#include <stdlib.h>

#include "base/memory.h"

typedef struct {
    double key;
    int64_t category;
} keyed;

/* Larger keys first, equal ones in the order of categories. */
static int by_key(const void *a, const void *b) {
    const keyed *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return (x->category > y->category) - (x->category < y->category);
}

static int check_weights(const double *p, int64_t categories) {
    double sum = 0;
    for (int64_t j = 0; j < categories; j++) {
        if (!(p[j] >= 0 && p[j] < INFINITY))
            return msa_fail(MSA_RUNTIME_ERROR, "probability tensor contains either `inf`, `nan` or element < 0");
        sum += p[j];
    }
    if (sum == 0) return msa_fail(MSA_RUNTIME_ERROR, "invalid multinomial distribution (sum of probabilities <= 0)");
    return 0;
}

static void take_largest(int64_t *out, keyed *keys, int64_t categories, int64_t samples) {
    if (samples == 1) {
        int64_t best = 0;
        for (int64_t j = 1; j < categories; j++)
            if (keys[j].key > keys[best].key) best = j;
        out[0] = best;
        return;
    }
    qsort(keys, (size_t)categories, sizeof *keys, by_key);
    for (int64_t k = 0; k < samples; k++) out[k] = keys[k].category;
}

/* Every row is checked before anything is drawn. */
static int without_replacement(msa_generator *g, int64_t *out, const void *p, msa_dtype dtype, int64_t rows,
                               int64_t categories, int64_t samples, double *weights) {
    msa_auto_free keyed *keys = msa_malloc((size_t)categories * sizeof *keys);
    if (!keys) return -1;
    for (int64_t i = 0; i < rows; i++) {
        load_doubles(weights, p, dtype, i * categories, categories);
        if (check_weights(weights, categories)) return -1;
    }
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    for (int64_t i = 0; i < rows; i++) {
        load_doubles(weights, p, dtype, i * categories, categories);
        for (int64_t j = 0; j < categories; j++) {
            double exponential = round_to(dtype, msa_draw_exponential(locked));
            keys[j] = (keyed){round_to(dtype, weights[j] / exponential), j};
        }
        take_largest(out + i * samples, keys, categories, samples);
    }
    return 0;
}

/* The cumulative distribution in place, every step rounded to float32 but for float64. */
static int accumulate(double *p, int64_t categories, msa_dtype dtype) {
    if (dtype != MSA_FLOAT64) dtype = MSA_FLOAT32;
    double sum = 0;
    for (int64_t j = 0; j < categories; j++) {
        if (!(p[j] >= 0))
            return msa_fail(MSA_RUNTIME_ERROR, "invalid multinomial distribution (encountering probability entry < 0)");
        if (!isfinite(p[j]))
            return msa_fail(MSA_RUNTIME_ERROR,
                            "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
        p[j] = sum = round_to(dtype, sum + p[j]);
    }
    if (!(sum > 0)) return msa_fail(MSA_RUNTIME_ERROR, "invalid multinomial distribution (sum of probabilities <= 0)");
    for (int64_t j = 0; j < categories; j++) p[j] = round_to(dtype, p[j] / sum);
    p[categories - 1] = 1;
    return 0;
}

static int64_t bisect(const double *cumulative, int64_t categories, double u) {
    int64_t left = 0, right = categories;
    while (left < right) {
        int64_t middle = left + (right - left) / 2;
        if (cumulative[middle] < u)
            left = middle + 1;
        else
            right = middle;
    }
    return left;
}

int msa_random_multinomial(msa_generator *g, int64_t *out, const void *p, msa_dtype dtype, int64_t rows,
                           int64_t categories, int64_t samples, bool replacement) {
    if (!msa_is_floating(dtype))
        return msa_fail(MSA_RUNTIME_ERROR, "multinomial only supports floating-point dtypes for input, got: %s",
                        msa_dtype_type_name(dtype));
    if (samples <= 0) return msa_fail(MSA_RUNTIME_ERROR, "cannot sample n_sample <= 0 samples");
    if (!replacement && samples > categories)
        return msa_fail(MSA_RUNTIME_ERROR, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    if (rows <= 0) return 0;
    if (categories <= 0)
        return msa_fail(MSA_RUNTIME_ERROR, "invalid multinomial distribution (sum of probabilities <= 0)");
    if (categories > (1ll << 24)) return msa_fail(MSA_RUNTIME_ERROR, "number of categories cannot exceed 2^24");
    msa_auto_free double *weights = msa_malloc((size_t)categories * sizeof *weights);
    if (!weights) return -1;
    if (!replacement) return without_replacement(g, out, p, dtype, rows, categories, samples, weights);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    for (int64_t i = 0; i < rows; i++) {
        load_doubles(weights, p, dtype, i * categories, categories);
        if (accumulate(weights, categories, dtype)) return -1;
        for (int64_t k = 0; k < samples; k++) out[i * samples + k] = bisect(weights, categories, draw_double(locked));
    }
    return 0;
}
