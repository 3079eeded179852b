/* Uniform numbers, and the distributions made from one of them by inversion: exponential, Cauchy, geometric, rrelu's
 * noise. */
#include "random/internal.h"

static int check_uniform(msa_dtype dtype, double from, double to) {
    double largest = largest_of(dtype);
    const char *kind = dtype == MSA_FLOAT64   ? "double"
                       : dtype == MSA_FLOAT32 ? "float"
                       : dtype == MSA_FLOAT16 ? "c10::Half"
                                              : "c10::BFloat16";
    if (!(from >= -largest && from <= largest))
        return msa_fail(MSA_RUNTIME_ERROR, "from is out of bounds for %s", kind);
    if (!(to >= -largest && to <= largest)) return msa_fail(MSA_RUNTIME_ERROR, "to is out of bounds for %s", kind);
    if (from > to)
        return msa_fail(MSA_RUNTIME_ERROR, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g",
                        from, to);
    if (to - from > largest)
        return msa_fail(MSA_RUNTIME_ERROR,
                        "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and from=%g which "
                        "result in to-from to exceed the limit",
                        msa_dtype_type_name(dtype), to, from);
    return 0;
}

static void uniform_float(msa_generator *g, float *data, int64_t n, float from, float to) {
    float width = to - from;
    if (from == 0 && width == 1)
        for (int64_t i = 0; i < n; i++) data[i] = draw_float(g);
    else
        for (int64_t i = 0; i < n; i++) data[i] = fmaf(draw_float(g), width, from);
}

static void uniform_double(msa_generator *g, double *data, int64_t n, double from, double to) {
    double width = to - from;
    for (int64_t i = 0; i < n; i++) data[i] = fma(draw_double(g), width, from);
}

/* The half types: as many bits as the significand has, the width rounded to the type, the rest in float. */
static void uniform_half(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double from, double to) {
    int bits = significand_bits(dtype);
    uint32_t mask = (1u << bits) - 1;
    float low = (float)round_to(dtype, from), width = (float)round_to(dtype, round_to(dtype, to) - low);
    float scale = 1 / (float)(1u << bits), draws[DRAWS];
    for (int64_t first = 0; first < n; first += DRAWS) {
        int64_t count = n - first < DRAWS ? n - first : DRAWS;
        for (int64_t i = 0; i < count; i++) draws[i] = fmaf((float)(draw32(g) & mask) * scale, width, low);
        msa_convert(dtype, element(data, dtype, first), 1, MSA_FLOAT32, draws, 1, count);
    }
}

int msa_random_uniform(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double from, double to) {
    if (msa_is_complex(dtype)) return msa_random_uniform(g, data, 2 * n, msa_dtype_real(dtype), from, to);
    if (!msa_is_floating(dtype)) return not_implemented("check_uniform_bounds", dtype);
    if (check_uniform(dtype, from, to)) return -1;
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    if (dtype == MSA_FLOAT32)
        uniform_float(locked, data, n, (float)from, (float)to);
    else if (dtype == MSA_FLOAT64)
        uniform_double(locked, data, n, from, to);
    else
        uniform_half(locked, data, n, dtype, from, to);
    return 0;
}

double msa_draw_exponential(msa_generator *g) {
    return -log(1 - draw_double(g));
}

int msa_random_exponential(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double lambda) {
    if (!msa_is_floating(dtype)) return not_implemented("exponential_cpu", dtype);
    if (!(lambda >= 0))
        return msa_fail(MSA_RUNTIME_ERROR, "exponential_ expects lambda >= 0.0, but found lambda=%g", lambda);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    FILL_DOUBLES(data, n, dtype, -1 / lambda * log(1 - draw_double(locked)));
    return 0;
}

int msa_random_cauchy(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double median, double sigma) {
    if (!msa_is_floating(dtype)) return not_implemented("cauchy_cpu", dtype);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    FILL_DOUBLES(data, n, dtype, fma(sigma, tan(M_PI * (draw_double(locked) - 0.5)), median));
    return 0;
}

int msa_random_geometric(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double p) {
    if (!msa_is_floating(dtype) && !msa_is_integral(dtype, false)) return not_implemented("geometric_cpu", dtype);
    if (!(p > 0 && p < 1)) return msa_fail(MSA_RUNTIME_ERROR, "geometric_ expects p to be in (0, 1), but got p=%g", p);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    double base = log(1 - p);
    FILL_DOUBLES(data, n, dtype, ceil(log(draw_double(locked)) / base));
    return 0;
}

int msa_random_rrelu_noise(msa_generator *g, const void *x, void *noise, int64_t n, msa_dtype dtype, double lower,
                           double upper) {
    if (!msa_is_floating(dtype)) return not_implemented("rrelu_with_noise_out_cpu", dtype);
    lower = round_to(dtype, lower);
    upper = round_to(dtype, upper);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    double values[DRAWS];
    for (int64_t first = 0; first < n; first += DRAWS) {
        int64_t count = n - first < DRAWS ? n - first : DRAWS;
        load_doubles(values, x, dtype, first, count);
        for (int64_t i = 0; i < count; i++)
            values[i] = values[i] <= 0 ? draw_double(locked) * (upper - lower) + lower : 1;
        store_doubles(noise, dtype, first, values, count);
    }
    return 0;
}
