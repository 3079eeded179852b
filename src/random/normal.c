/* Normal and log-normal numbers by Box and Muller's transformation, in PyTorch's two arrangements.
 *
 * The blocks of float32 use polynomials for logarithm, sine and cosine (S. Moshier's Cephes, single precision) with the
 * fused steps that PyTorch's AVX2 build has, so that the values agree to the last bit; the portable form rounds in the
 * same places. */
#include "random/internal.h"

#include <string.h>

enum { BLOCK = 16, HALF = BLOCK / 2 };

/* The logarithm of u in (0, 1]. */
static inline __attribute__((always_inline)) float log_cephes(float u) {
    uint32_t bits;
    memcpy(&bits, &u, sizeof bits);
    float e = (float)((int32_t)(bits >> 23) - 126);
    bits = (bits & 0x007fffffu) | 0x3f000000u; /* the significand, in [1/2, 1) */
    float x;
    memcpy(&x, &bits, sizeof x);
    float small = x < 0.707106781186547524f ? 1.f : 0.f;
    e -= small;
    x = (x - 1) + small * x; /* exact: the product is 0 or x */
    float z = x * x, y = 7.0376836292e-2f;
    y = fmaf(y, x, -1.1514610310e-1f);
    y = fmaf(y, x, 1.1676998740e-1f);
    y = fmaf(y, x, -1.2420140846e-1f);
    y = fmaf(y, x, 1.4249322787e-1f);
    y = fmaf(y, x, -1.6668057665e-1f);
    y = fmaf(y, x, 2.0000714765e-1f);
    y = fmaf(y, x, -2.4999993993e-1f);
    y = fmaf(y, x, 3.3333331174e-1f);
    y = y * x;
    y = fmaf(y, z, e * -2.12194440e-4f);
    y = fmaf(z, -0.5f, y);
    return fmaf(e, 0.693359375f, x + y);
}

/* Sine and cosine of x in [0, 2 pi]. */
static inline __attribute__((always_inline)) void sincos_cephes(float x, float *sine, float *cosine) {
    int32_t octant = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
    float y = (float)octant;
    x = fmaf(y, -0.78515625f, x);
    x = fmaf(y, -2.4187564849853515625e-4f, x);
    x = fmaf(y, -3.77489497744594108e-8f, x);
    float z = x * x;
    float c = fmaf(2.443315711809948e-5f, z, -1.388731625493765e-3f);
    c = fmaf(c, z, 4.166664568298827e-2f);
    c = c * z;
    c = fmaf(c, z, -(z * 0.5f)) + 1;
    float s = fmaf(-1.9515295891e-4f, z, 8.3321608736e-3f);
    s = fmaf(s, z, -1.6666654611e-1f);
    s = s * z;
    s = fmaf(s, x, x);
    float sine_size = octant & 2 ? c : s, cosine_size = octant & 2 ? s : c;
    *sine = octant & 4 ? -sine_size : sine_size;
    *cosine = (octant - 2) & 4 ? cosine_size : -cosine_size;
}

/* 16 uniform numbers become 16 normal ones, `blocks` times. */
static inline __attribute__((always_inline)) void blocks_float(float *data, int64_t blocks, float mean, float std) {
    for (int64_t b = 0; b < blocks; b++, data += BLOCK) {
        for (int j = 0; j < HALF; j++) {
            float sine, cosine, radius = sqrtf(-2.f * log_cephes(1 - data[j]));
            sincos_cephes(2.f * (float)M_PI * data[j + HALF], &sine, &cosine);
            data[j] = fmaf(radius * cosine, std, mean);
            data[j + HALF] = fmaf(radius * sine, std, mean);
        }
    }
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void blocks_float_fma(float *data, int64_t blocks, float mean, float std) {
    blocks_float(data, blocks, mean, std);
}
#endif

static void normal_blocks_float(float *data, int64_t blocks, float mean, float std) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        blocks_float_fma(data, blocks, mean, std);
        return;
    }
#endif
    blocks_float(data, blocks, mean, std);
}

static void normal_blocks_double(double *data, int64_t blocks, double mean, double std) {
    for (int64_t b = 0; b < blocks; b++, data += BLOCK) {
        for (int j = 0; j < HALF; j++) {
            double radius = sqrt(-2 * log(1 - data[j])), angle = 2 * M_PI * data[j + HALF];
            data[j] = fma(radius * cos(angle), std, mean);
            data[j + HALF] = fma(radius * sin(angle), std, mean);
        }
    }
}

/* The half types: float16 computes in float between few roundings, bfloat16 rounds after every step. */
static void normal_block_half(float *data, msa_dtype dtype, float mean, float std) {
#define ROUND(x) ((float)round_to(dtype, (x)))
#define STEP(x) (dtype == MSA_BFLOAT16 ? ROUND(x) : (float)(x))
    for (int j = 0; j < HALF; j++) {
        float u = ROUND(1 - data[j]);
        float radius = ROUND(sqrtf(STEP(-2 * STEP(logf(u))))), angle = ROUND(2 * M_PI * (double)data[j + HALF]);
        data[j] = ROUND(STEP(STEP(radius * STEP(cosf(angle))) * std) + mean);
        data[j + HALF] = ROUND(STEP(STEP(radius * STEP(sinf(angle))) * std) + mean);
    }
#undef STEP
#undef ROUND
}

static void draw_block_half(msa_generator *g, void *data, int64_t first, msa_dtype dtype, float mean, float std) {
    int bits = significand_bits(dtype);
    float block[BLOCK], scale = 1 / (float)(1u << bits);
    for (int j = 0; j < BLOCK; j++) block[j] = (float)(draw32(g) & ((1u << bits) - 1)) * scale;
    normal_block_half(block, dtype, mean, std);
    msa_convert(dtype, element(data, dtype, first), 1, MSA_FLOAT32, block, 1, BLOCK);
}

/* n >= BLOCK. All whole blocks and the rest are drawn first, in order; then the last BLOCK elements are drawn anew
 * where a rest was left. */
static void normal_blocks(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double mean, double std) {
    int64_t blocks = n / BLOCK, rest = n % BLOCK;
    if (dtype == MSA_FLOAT32) {
        float *p = data;
        for (int64_t i = 0; i < n; i++) p[i] = draw_float(g);
        normal_blocks_float(p, blocks, (float)mean, (float)std);
        if (!rest) return;
        p += n - BLOCK;
        for (int j = 0; j < BLOCK; j++) p[j] = draw_float(g);
        normal_blocks_float(p, 1, (float)mean, (float)std);
    } else if (dtype == MSA_FLOAT64) {
        double *p = data;
        for (int64_t i = 0; i < n; i++) p[i] = draw_double(g);
        normal_blocks_double(p, blocks, mean, std);
        if (!rest) return;
        p += n - BLOCK;
        for (int j = 0; j < BLOCK; j++) p[j] = draw_double(g);
        normal_blocks_double(p, 1, mean, std);
    } else {
        float m = (float)round_to(dtype, mean), s = (float)round_to(dtype, std);
        for (int64_t b = 0; b < blocks; b++) draw_block_half(g, data, b * BLOCK, dtype, m, s);
        if (!rest) return;
        for (int64_t i = 0; i < rest; i++) draw32(g);
        draw_block_half(g, data, n - BLOCK, dtype, m, s);
    }
}

double msa_draw_normal(msa_generator *g) {
    if (g->has_double) {
        g->has_double = false;
        return g->next_double;
    }
    double u = draw_double(g), v = draw_double(g);
    double radius = sqrt(-2 * log(1 - v)), angle = 2 * M_PI * u;
    g->has_double = true;
    g->next_double = radius * sin(angle);
    return radius * cos(angle);
}

int msa_random_normal(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double mean, double std, bool serial) {
    if (!(std >= 0)) return msa_fail(MSA_RUNTIME_ERROR, "normal expects std >= 0.0, but found std %g", std);
    if (msa_is_complex(dtype))
        return msa_random_normal(g, data, 2 * n, msa_dtype_real(dtype), mean, std / sqrt(2), serial);
    if (!msa_is_floating(dtype)) return not_implemented("normal_kernel_cpu", dtype);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    if (n >= BLOCK && !serial)
        normal_blocks(locked, data, n, dtype, mean, std);
    else
        FILL_DOUBLES(data, n, dtype, fma(msa_draw_normal(locked), std, mean));
    return 0;
}

int msa_random_log_normal(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double mean, double std) {
    if (!(std > 0)) return msa_fail(MSA_RUNTIME_ERROR, "log_normal_ expects std > 0.0, but found std=%g", std);
    if (!msa_is_floating(dtype)) return not_implemented("log_normal_cpu", dtype);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    FILL_DOUBLES(data, n, dtype, exp(fma(msa_draw_normal(locked), std, mean)));
    return 0;
}
