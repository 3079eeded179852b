/* Functions of one number for the loops of pointwise operators, by computing type: f32_exp, f64_exp, c64_exp, ...
 *
 * The float32 functions that networks spend their time in (exp, log, tanh, erf, sigmoid and their kin) are polynomials without
 * branches or calls, so that the compiler turns a loop over them into vector code; they stay within 2 ulp. The rest call
 * libm. Coefficients are minimax fits made for this file. */
#ifndef MSA_CPU_POINTWISE_MATH_H
#define MSA_CPU_POINTWISE_MATH_H

#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float _Complex c64;
typedef double _Complex c128;

#define MSA_INLINE static inline __attribute__((always_inline, unused))

/* ---- float32, vectorisable ------------------------------------------------------------------------------------ */

MSA_INLINE int32_t f32_bits(float x) {
    int32_t i;
    memcpy(&i, &x, 4);
    return i;
}
MSA_INLINE float f32_from_bits(int32_t i) {
    float x;
    memcpy(&x, &i, 4);
    return x;
}
MSA_INLINE float f32_fabs(float x) { return __builtin_fabsf(x); }
MSA_INLINE float f32_copysign(float x, float s) { return __builtin_copysignf(x, s); }
MSA_INLINE float f32_sqrt(float x) { return __builtin_sqrtf(x); }
MSA_INLINE float f32_rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
MSA_INLINE float f32_floor(float x) { return __builtin_floorf(x); }
MSA_INLINE float f32_ceil(float x) { return __builtin_ceilf(x); }
MSA_INLINE float f32_trunc(float x) { return __builtin_truncf(x); }
MSA_INLINE float f32_rint(float x) { return __builtin_rintf(x); }

/* 2^n for n in [-126, 127]; anything, without overflow, elsewhere. */
MSA_INLINE float f32_power_of_two(int32_t n) { return f32_from_bits((int32_t)(((uint32_t)n + 127u) << 23)); }
/* Adding this rounds to an integer, which then stands in the low bits. */
#define MSA_F32_ROUNDER 12582912.0f

/* exp(r) - 1 for |r| <= ln(2)/2. */
MSA_INLINE float f32_expm1_core(float r) {
    float q = 0.000199193804f;
    q = q * r + 0.00139472249f;
    q = q * r + 0.00833326299f;
    q = q * r + 0.0416662544f;
    q = q * r + 0.166666672f;
    q = q * r + 0.5f;
    return r + r * r * q;
}

MSA_INLINE float f32_exp(float x) {
    float c = x > 89.0f ? 89.0f : x;
    c = c < -104.0f ? -104.0f : c;
    const float shifted = c * 1.44269504f + MSA_F32_ROUNDER, n = shifted - MSA_F32_ROUNDER;
    const int32_t whole = f32_bits(shifted) - f32_bits(MSA_F32_ROUNDER), half = whole >> 1;
    const float r = (c - n * 0.693145752f) - n * 1.42860677e-6f;
    return ((1.0f + f32_expm1_core(r)) * f32_power_of_two(half)) * f32_power_of_two(whole - half);
}

MSA_INLINE float f32_exp2(float x) {
    float c = x > 129.0f ? 129.0f : x;
    c = c < -151.0f ? -151.0f : c;
    const float shifted = c + MSA_F32_ROUNDER, n = shifted - MSA_F32_ROUNDER;
    const int32_t whole = f32_bits(shifted) - f32_bits(MSA_F32_ROUNDER), half = whole >> 1;
    return ((1.0f + f32_expm1_core((c - n) * 0.693147181f)) * f32_power_of_two(half)) * f32_power_of_two(whole - half);
}

MSA_INLINE float f32_expm1(float x) {
    float c = x > 89.0f ? 89.0f : x;
    c = c < -40.0f ? -40.0f : c;
    const float shifted = c * 1.44269504f + MSA_F32_ROUNDER, n = shifted - MSA_F32_ROUNDER;
    const int32_t whole = f32_bits(shifted) - f32_bits(MSA_F32_ROUNDER);
    const float r = (c - n * 0.693145752f) - n * 1.42860677e-6f;
    const float s = f32_power_of_two(whole - 1); /* halved: 2^128 does not exist */
    const float y = 2.0f * (s * f32_expm1_core(r) + (s - 0.5f));
    return x == 0.0f ? x : y;
}

/* log(x) as high + low, high = exponent * ln 2 (its leading bits); x positive and finite. */
MSA_INLINE float f32_log_core(float x, float *exponent) {
    const float tiny = x < 1.17549435e-38f ? 8388608.0f : 1.0f;
    const int32_t bits = f32_bits(x * tiny), steps = bits - 0x3f3504f3; /* sqrt(1/2) */
    const int32_t e = steps >> 23;
    const float f = f32_from_bits(bits - e * (1 << 23)) - 1.0f;
    float p = 0.0691559538f;
    p = p * f - 0.117940918f;
    p = p * f + 0.118750758f;
    p = p * f - 0.123838f;
    p = p * f + 0.142183259f;
    p = p * f - 0.166692704f;
    p = p * f + 0.200022429f;
    p = p * f - 0.249999866f;
    p = p * f + 0.333333105f;
    *exponent = (float)e - (x < 1.17549435e-38f ? 23.0f : 0.0f);
    return f + (f * f * f * p - 0.5f * f * f);
}
MSA_INLINE float f32_log_special(float x, float y) {
    y = x < INFINITY ? y : x;      /* inf, nan */
    y = x == 0.0f ? -INFINITY : y;
    return x < 0.0f ? NAN : y;
}
MSA_INLINE float f32_log(float x) {
    float e;
    const float m = f32_log_core(x, &e);
    return f32_log_special(x, e * 0.693359375f + (m - e * 2.12194440e-4f));
}
MSA_INLINE float f32_log2(float x) {
    float e;
    const float m = f32_log_core(x, &e);
    return f32_log_special(x, e + (m * 0.442695041f + m)); /* 1/ln 2 = 1.4427 */
}
MSA_INLINE float f32_log10(float x) {
    float e;
    const float m = f32_log_core(x, &e);
    return f32_log_special(x, e * 0.301025391f + (m * 0.434294482f + e * 4.60503907e-6f));
}
MSA_INLINE float f32_log1p(float x) {
    const float u = 1.0f + x;
    float lost = (x - (u - 1.0f)) / u; /* one choice at a time: compilers make no vectors of conditions with && */
    lost = u > 0.0f ? lost : 0.0f;
    lost = u < INFINITY ? lost : 0.0f;
    return x == 0.0f ? x : f32_log(u) + lost;
}

MSA_INLINE float f32_tanh(float x) {
    const float a = f32_fabs(x), y = x * x;
    float p = 0.00190179935f;
    p = p * y - 0.00789218303f;
    p = p * y + 0.0215758383f;
    p = p * y - 0.0539221242f;
    p = p * y + 0.133329958f;
    p = p * y - 0.333333254f;
    const float near = f32_copysign(x + x * y * p, x); /* keeps -0 */
    const float far = 1.0f - 2.0f / (f32_exp(2.0f * (a > 10.0f ? 10.0f : a)) + 1.0f);
    const float big = f32_copysign(far, x);
    return a < 0.625f ? near : (a == a ? big : x);
}

MSA_INLINE float f32_sigmoid(float x) { return 1.0f / (1.0f + f32_exp(-x)); }

/* -log(erfc(a)) for a in [0.95, 4]. */
MSA_INLINE float f32_erfc_exponent(float a) {
    float p = -0.000191505038f;
    p = p * a + 0.00299954903f;
    p = p * a - 0.0220520291f;
    p = p * a + 0.103566952f;
    p = p * a + 0.637599945f;
    p = p * a + 1.12742615f;
    return p * a + 0.000256436644f;
}
MSA_INLINE float f32_erf(float x) {
    const float a = f32_fabs(x), y = x * x, c = a > 4.0f ? 4.0f : a;
    float p = 7.8891193e-05f;
    p = p * y - 0.000802084105f;
    p = p * y + 0.00518953521f;
    p = p * y - 0.0268544443f;
    p = p * y + 0.112836003f;
    p = p * y - 0.37612626f;
    const float near = x + x * (p * y + 0.128379167f);
    const float far = f32_copysign(1.0f - f32_exp(-f32_erfc_exponent(c)), x);
    return a < 0.975f ? near : (a == a ? far : x);
}

/* The larger and the smaller; NaN wins. */
MSA_INLINE float f32_max(float a, float b) { return a > b || a != a ? a : b; }
MSA_INLINE float f32_min(float a, float b) { return a < b || a != a ? a : b; }
/* NaN loses. */
MSA_INLINE float f32_fmax(float a, float b) { return a >= b || b != b ? a : b; }
MSA_INLINE float f32_fmin(float a, float b) { return a <= b || b != b ? a : b; }

MSA_INLINE double f64_fabs(double x) { return __builtin_fabs(x); }
MSA_INLINE double f64_copysign(double x, double s) { return __builtin_copysign(x, s); }
MSA_INLINE double f64_sqrt(double x) { return __builtin_sqrt(x); }
MSA_INLINE double f64_rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
MSA_INLINE double f64_floor(double x) { return __builtin_floor(x); }
MSA_INLINE double f64_ceil(double x) { return __builtin_ceil(x); }
MSA_INLINE double f64_trunc(double x) { return __builtin_trunc(x); }
MSA_INLINE double f64_rint(double x) { return __builtin_rint(x); }
MSA_INLINE double f64_max(double a, double b) { return a > b || a != a ? a : b; }
MSA_INLINE double f64_min(double a, double b) { return a < b || a != a ? a : b; }
MSA_INLINE double f64_fmax(double a, double b) { return a >= b || b != b ? a : b; }
MSA_INLINE double f64_fmin(double a, double b) { return a <= b || b != b ? a : b; }
MSA_INLINE double f64_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

MSA_INLINE int64_t i64_max(int64_t a, int64_t b) { return a > b ? a : b; }
MSA_INLINE int64_t i64_min(int64_t a, int64_t b) { return a < b ? a : b; }
MSA_INLINE int64_t i64_fmax(int64_t a, int64_t b) { return a > b ? a : b; }
MSA_INLINE int64_t i64_fmin(int64_t a, int64_t b) { return a < b ? a : b; }
MSA_INLINE int64_t i64_fabs(int64_t a) { return a < 0 ? -a : a; }

/* ---- by libm --------------------------------------------------------------------------------------------------- */

#define MSA_LIBM_BOTH(name) \
    MSA_INLINE float f32_##name(float x) { return name##f(x); } \
    MSA_INLINE double f64_##name(double x) { return name(x); }
#define MSA_LIBM_DOUBLE(name) \
    MSA_INLINE double f64_##name(double x) { return name(x); }
#define MSA_LIBM_TWO(name) \
    MSA_INLINE float f32_##name(float x, float y) { return name##f(x, y); } \
    MSA_INLINE double f64_##name(double x, double y) { return name(x, y); }
#define MSA_LIBM_COMPLEX(name) \
    MSA_INLINE c64 c64_##name(c64 x) { return c##name##f(x); } \
    MSA_INLINE c128 c128_##name(c128 x) { return c##name(x); }

MSA_LIBM_BOTH(sin)
MSA_LIBM_BOTH(cos)
MSA_LIBM_BOTH(tan)
MSA_LIBM_BOTH(asin)
MSA_LIBM_BOTH(acos)
MSA_LIBM_BOTH(atan)
MSA_LIBM_BOTH(sinh)
MSA_LIBM_BOTH(cosh)
MSA_LIBM_BOTH(asinh)
MSA_LIBM_BOTH(acosh)
MSA_LIBM_BOTH(atanh)
MSA_LIBM_BOTH(erfc)
MSA_LIBM_BOTH(cbrt)
MSA_LIBM_DOUBLE(exp)
MSA_LIBM_DOUBLE(exp2)
MSA_LIBM_DOUBLE(expm1)
MSA_LIBM_DOUBLE(log)
MSA_LIBM_DOUBLE(log2)
MSA_LIBM_DOUBLE(log10)
MSA_LIBM_DOUBLE(log1p)
MSA_LIBM_DOUBLE(tanh)
MSA_LIBM_DOUBLE(erf)
MSA_LIBM_TWO(atan2)
MSA_LIBM_TWO(pow)
MSA_LIBM_TWO(fmod)
MSA_LIBM_TWO(hypot)
MSA_LIBM_TWO(nextafter)

MSA_LIBM_COMPLEX(exp)
MSA_LIBM_COMPLEX(log)
MSA_LIBM_COMPLEX(sqrt)
MSA_LIBM_COMPLEX(sin)
MSA_LIBM_COMPLEX(cos)
MSA_LIBM_COMPLEX(tan)
MSA_LIBM_COMPLEX(asin)
MSA_LIBM_COMPLEX(acos)
MSA_LIBM_COMPLEX(atan)
MSA_LIBM_COMPLEX(sinh)
MSA_LIBM_COMPLEX(cosh)
MSA_LIBM_COMPLEX(tanh)
MSA_LIBM_COMPLEX(asinh)
MSA_LIBM_COMPLEX(acosh)
MSA_LIBM_COMPLEX(atanh)
MSA_INLINE c64 c64_log2(c64 x) { return clogf(x) * 1.44269504088896340736f; }
MSA_INLINE c128 c128_log2(c128 x) { return clog(x) * 1.44269504088896340736; }
MSA_INLINE c64 c64_log10(c64 x) { return clogf(x) * 0.43429448190325182765f; }
MSA_INLINE c128 c128_log10(c128 x) { return clog(x) * 0.43429448190325182765; }
MSA_INLINE c64 c64_exp2(c64 x) { return cexpf(x * 0.69314718055994530942f); }
MSA_INLINE c128 c128_exp2(c128 x) { return cexp(x * 0.69314718055994530942); }
MSA_INLINE c64 c64_rsqrt(c64 x) { return 1.0f / csqrtf(x); }
MSA_INLINE c128 c128_rsqrt(c128 x) { return 1.0 / csqrt(x); }
MSA_INLINE c64 c64_sigmoid(c64 x) { return 1.0f / (1.0f + cexpf(-x)); }
MSA_INLINE c128 c128_sigmoid(c128 x) { return 1.0 / (1.0 + cexp(-x)); }
MSA_INLINE float c64_fabs(c64 x) { return cabsf(x); }
MSA_INLINE double c128_fabs(c128 x) { return cabs(x); }

MSA_INLINE double f64_lgamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}
MSA_INLINE float f32_lgamma(float x) {
    int sign;
    return lgammaf_r(x, &sign);
}

#endif
