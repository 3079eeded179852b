/* Poisson and binomial numbers: rejection for large means, elementary sums and products for small ones. */
#include "random/internal.h"

/* Hoermann's transformed rejection, PTRS; constants of the paper. */
static double poisson_large(msa_generator *g, double rate) {
    double root = sqrt(rate), log_rate = log(rate);
    double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), box = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = draw_double(g) - 0.5, v = draw_double(g), us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= box) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v) + log(inverse_alpha) - log(a / (us * us) + b) <= -rate + k * log_rate - lgamma(k + 1)) return k;
    }
}

static double poisson(msa_generator *g, double rate) {
    if (rate >= 10) return poisson_large(g, rate);
    if (rate == 0) return 0;
    double limit = exp(-rate), product = 1, count = 0;
    for (;;) {
        product *= draw_double(g);
        if (!(product > limit)) return count;
        count++;
    }
}

int msa_random_poisson(msa_generator *g, void *out, const void *rate, int64_t n, msa_dtype dtype) {
    if (!msa_is_floating(dtype)) return not_implemented("poisson_cpu", dtype);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    double values[DRAWS];
    for (int64_t first = 0; first < n; first += DRAWS) {
        int64_t count = n - first < DRAWS ? n - first : DRAWS;
        load_doubles(values, rate, dtype, first, count);
        for (int64_t i = 0; i < count; i++) {
            if (!(values[i] >= 0))
                return msa_fail(MSA_RUNTIME_ERROR, "invalid Poisson rate, expected rate to be non-negative");
            /* Beyond 2^63 the count has no integer, and the rejection would not end at infinity. */
            values[i] = values[i] < 0x1p63 ? poisson(locked, values[i]) : -0x1p63;
        }
        store_doubles(out, dtype, first, values, count);
    }
    return 0;
}

/* The remainder of Stirling's series for log k!. */
static double stirling_tail(double k) {
    static const double small[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
                                   0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
                                   0.00925546218271273, 0.00833056343336287};
    if (k <= 9) return small[(int)(k < 0 ? 0 : k)];
    double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* Hoermann's BTRS, for p <= 1/2. What is made of count and p alone is, in PyTorch, in the precision of the inputs. */
static double binomial_large(msa_generator *g, double count, double p, bool single) {
    float n = (float)count, f = (float)p; /* exact where `single` */
    double mean = single ? (double)(n * f) : count * p;
    double deviation = single ? (double)sqrtf(n * f * (1 - f)) : sqrt(count * p * (1 - p));
    double r = single ? (double)(f / (1 - f)) : p / (1 - p);
    double m = floor(single ? (double)((n + 1) * f) : (count + 1) * p);
    double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = mean + 0.5;
    double box = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * deviation;
    for (;;) {
        double u = draw_double(g) - 0.5, v = draw_double(g), us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + c);
        if (us >= 0.07 && v <= box) return k;
        if (k < 0 || k > count) continue;
        v = log(v * alpha / (a / (us * us) + b));
        double bound = (m + 0.5) * log((m + 1) / (r * (count - m + 1))) +
                       (count + 1) * log((count - m + 1) / (count - k + 1)) +
                       (k + 0.5) * log(r * (count - k + 1) / (k + 1)) + stirling_tail(m) + stirling_tail(count - m) -
                       stirling_tail(k) - stirling_tail(count - k);
        if (v <= bound) return k;
    }
}

/* How many geometric numbers fit into `count`; their expected number is below 10. */
static double binomial_small(msa_generator *g, double count, double p) {
    double sum = 0, fitted = 0, base = log1p(-p);
    for (;;) {
        sum += ceil(log(draw_double(g)) / base);
        if (!(sum <= count)) return fitted;
        fitted++;
    }
}

/* PyTorch decides between the two, and complements a result, in the precision of the inputs. */
static double binomial(msa_generator *g, double count, double p, bool single) {
    if (count <= 0 || p <= 0) return 0;
    if (p >= 1) return count;
    if (!(isfinite(count) && p == p)) return NAN; /* no such distribution, and the rejection would not end */
    double q = p <= 0.5 ? p : 1 - p;
    bool large = single ? (float)count * (float)q >= 10 : count * q >= 10;
    double drawn = large ? binomial_large(g, count, q, single) : binomial_small(g, count, q);
    return p <= 0.5 ? drawn : count - drawn;
}

int msa_random_binomial(msa_generator *g, void *out, const void *count, const void *p, int64_t n, msa_dtype dtype) {
    if (!msa_is_floating(dtype)) return not_implemented("binomial_cpu", dtype);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    double counts[DRAWS], chances[DRAWS];
    for (int64_t first = 0; first < n; first += DRAWS) {
        int64_t size = n - first < DRAWS ? n - first : DRAWS;
        load_doubles(counts, count, dtype, first, size);
        load_doubles(chances, p, dtype, first, size);
        for (int64_t i = 0; i < size; i++) counts[i] = binomial(locked, counts[i], chances[i], dtype != MSA_FLOAT64);
        store_doubles(out, dtype, first, counts, size);
    }
    return 0;
}
