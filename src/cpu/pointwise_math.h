/* Elementary functions for the pointwise loops, named TYPE_function so that F(name) finds the computing type's.
 *
 * exp, log, tanh, sigmoid and erf in float are written without branches or calls, so that the compiler vectorises the loops
 * around them; coefficients are minimax fits on the reduced range. The others call libm. */
#ifndef MSA_CPU_POINTWISE_MATH_H
#define MSA_CPU_POINTWISE_MATH_H

#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef float _Complex c64;
typedef double _Complex c128;

static inline float f32_from_bits(int32_t bits) {
    union {
        int32_t i;
        float f;
    } u = {bits};
    return u.f;
}

static inline int32_t f32_bits(float f) {
    union {
        float f;
        int32_t i;
    } u = {f};
    return u.i;
}

/* e^x = 2^n e^r with |r| <= ln2/2; ln2 in two parts (Cody and Waite); e^r by a polynomial of degree 6. 2^n in two factors, so
 * that results below the normal range come out right. Error below 1 ulp. */
static inline float f32_exp(float x) {
    float clipped = x > 88.8f ? 88.8f : x < -104.0f ? -104.0f : x;
    float n = __builtin_rintf(clipped * 1.44269504088896341f);
    float r = __builtin_fmaf(n, -0.693359375f, clipped);
    r = __builtin_fmaf(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = __builtin_fmaf(p, r, 1.3981999507e-3f);
    p = __builtin_fmaf(p, r, 8.3334519073e-3f);
    p = __builtin_fmaf(p, r, 4.1665795894e-2f);
    p = __builtin_fmaf(p, r, 1.6666665459e-1f);
    p = __builtin_fmaf(p, r, 5.0000001201e-1f);
    p = __builtin_fmaf(p, r * r, r) + 1.0f;
    int32_t k = (int32_t)n, half = k >> 1;
    float result = p * f32_from_bits((half + 127) << 23) * f32_from_bits((k - half + 127) << 23);
    result = x > 88.72283935546875f ? (float)INFINITY : result;
    return x != x ? x : result;
}

/* x = 2^k m with m in [sqrt(1/2), sqrt(2)); log m by a polynomial in m - 1. */
static inline float f32_log(float x) {
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x; /* subnormal numbers */
    float shift = x < 1.17549435e-38f ? -23.0f : 0.0f;
    int32_t bits = f32_bits(scaled);
    int32_t k = (bits - 0x3f3504f3) >> 23;
    float m = f32_from_bits(bits - (k << 23)) - 1.0f;
    float e = (float)k + shift;
    float z = m * m;
    float p = 7.0376836292e-2f;
    p = __builtin_fmaf(p, m, -1.1514610310e-1f);
    p = __builtin_fmaf(p, m, 1.1676998740e-1f);
    p = __builtin_fmaf(p, m, -1.2420140846e-1f);
    p = __builtin_fmaf(p, m, 1.4249322787e-1f);
    p = __builtin_fmaf(p, m, -1.6668057665e-1f);
    p = __builtin_fmaf(p, m, 2.0000714765e-1f);
    p = __builtin_fmaf(p, m, -2.4999993993e-1f);
    p = __builtin_fmaf(p, m, 3.3333331174e-1f);
    float y = p * m * z;
    y = __builtin_fmaf(e, -2.12194440e-4f, y);
    y = __builtin_fmaf(-0.5f, z, y);
    float result = __builtin_fmaf(e, 0.693359375f, m + y);
    result = x == (float)INFINITY ? x : result;
    result = x == 0 ? -(float)INFINITY : result;
    return x < 0 || x != x ? (float)NAN : result;
}

/* e^x - 1: by the polynomial of exp near zero, where the subtraction would cancel. */
static inline float f32_expm1(float x) {
    float r = x, p = 1.9875691500e-4f;
    p = __builtin_fmaf(p, r, 1.3981999507e-3f);
    p = __builtin_fmaf(p, r, 8.3334519073e-3f);
    p = __builtin_fmaf(p, r, 4.1665795894e-2f);
    p = __builtin_fmaf(p, r, 1.6666665459e-1f);
    p = __builtin_fmaf(p, r, 5.0000001201e-1f);
    float near = __builtin_fmaf(p, r * r, r);
    float far = f32_exp(x) - 1.0f;
    return x > -0.34f && x < 0.34f ? near : far;
}

/* tanh x = u / (u + 2) with u = e^(2|x|) - 1, an odd function. */
static inline float f32_tanh(float x) {
    float a = __builtin_fabsf(x), clipped = a > 10.0f ? 10.0f : a;
    float u = f32_expm1(2.0f * clipped);
    float t = u / (u + 2.0f);
    float result = __builtin_copysignf(t, x);
    return x != x ? x : result;
}

static inline float f32_sigmoid(float x) { return 1.0f / (1.0f + f32_exp(-x)); }

/* erf: x P(x^2) near zero; 1 - e^(-Q) beyond 0.92, Q a polynomial in |x|. */
static inline float f32_erf(float a) {
    float t = __builtin_fabsf(a), s = a * a;
    float r = __builtin_fmaf(-1.72853470e-5f, t, 3.83197126e-4f);
    float u = __builtin_fmaf(-3.88396438e-3f, t, 2.42546219e-2f);
    r = __builtin_fmaf(r, s, u);
    r = __builtin_fmaf(r, t, -1.06777877e-1f);
    r = __builtin_fmaf(r, t, -6.34846687e-1f);
    r = __builtin_fmaf(r, t, -1.28717512e-1f);
    r = __builtin_fmaf(r, t, -t);
    float far = __builtin_copysignf(1.0f - f32_exp(r > 0 ? 0 : r), a);
    float q = -5.96761703e-4f;
    q = __builtin_fmaf(q, s, 4.99119423e-3f);
    q = __builtin_fmaf(q, s, -2.67681349e-2f);
    q = __builtin_fmaf(q, s, 1.12819925e-1f);
    q = __builtin_fmaf(q, s, -3.76125336e-1f);
    q = __builtin_fmaf(q, s, 1.28379166e-1f);
    float near = __builtin_fmaf(q, a, a);
    far = t > 4.0f ? __builtin_copysignf(1.0f, a) : far;
    float result = t > 0.927734375f ? far : near;
    return a != a ? a : result;
}

static inline double f64_exp(double x) { return exp(x); }
static inline double f64_log(double x) { return log(x); }
static inline double f64_expm1(double x) { return expm1(x); }
static inline double f64_tanh(double x) { return tanh(x); }
static inline double f64_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }
static inline double f64_erf(double x) { return erf(x); }

/* Straight from libm. */
#define BOTH(NAME) \
    static inline float f32_##NAME(float x) { return NAME##f(x); } \
    static inline double f64_##NAME(double x) { return NAME(x); }
#define BOTH2(NAME) \
    static inline float f32_##NAME(float x, float y) { return NAME##f(x, y); } \
    static inline double f64_##NAME(double x, double y) { return NAME(x, y); }
BOTH(exp2) BOTH(log2) BOTH(log10) BOTH(log1p) BOTH(sqrt) BOTH(sin) BOTH(cos) BOTH(tan) BOTH(asin) BOTH(acos) BOTH(atan)
BOTH(sinh) BOTH(cosh) BOTH(asinh) BOTH(acosh) BOTH(atanh) BOTH(erfc) BOTH(lgamma) BOTH(floor) BOTH(ceil) BOTH(trunc)
BOTH(rint) BOTH(fabs)
BOTH2(atan2) BOTH2(pow) BOTH2(fmod) BOTH2(hypot) BOTH2(nextafter) BOTH2(copysign) BOTH2(fmax) BOTH2(fmin)
#undef BOTH
#undef BOTH2

#define COMPLEX(NAME) \
    static inline c64 c64_##NAME(c64 z) { return (c64)c##NAME((c128)z); } \
    static inline c128 c128_##NAME(c128 z) { return c##NAME(z); }
COMPLEX(exp) COMPLEX(log) COMPLEX(sqrt) COMPLEX(sin) COMPLEX(cos) COMPLEX(tan) COMPLEX(asin) COMPLEX(acos) COMPLEX(atan)
COMPLEX(sinh) COMPLEX(cosh) COMPLEX(tanh) COMPLEX(asinh) COMPLEX(acosh) COMPLEX(atanh)
#undef COMPLEX

#endif
