/* Small functions that the table's expressions call by F(name), for each computing type that needs them. */
#ifndef MSA_CPU_POINTWISE_HELPERS_H
#define MSA_CPU_POINTWISE_HELPERS_H

#include <stdbool.h>

#include "cpu/pointwise_math.h"

/* Integers. Division by zero gives 0 here: the entry point has refused it. */
static inline int64_t i64_div_trunc(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; }
static inline int64_t i64_fmod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
static inline int64_t i64_div_floor(int64_t a, int64_t b) {
    int64_t q = i64_div_trunc(a, b);
    return q - (b != 0 && b != -1 && (a % b != 0) && ((a < 0) != (b < 0)));
}
static inline int64_t i64_remainder(int64_t a, int64_t b) {
    int64_t r = i64_fmod(a, b);
    return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}
static inline int64_t i64_pow(int64_t a, int64_t b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    uint64_t result = 1, base = (uint64_t)a;
    for (uint64_t e = (uint64_t)b; e; e >>= 1) {
        if (e & 1) result *= base;
        base *= base;
    }
    return (int64_t)result;
}
static inline int64_t i64_gcd(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t t = x % y;
        x = y;
        y = t;
    }
    return (int64_t)x;
}
static inline int64_t i64_lcm(int64_t a, int64_t b) {
    int64_t g = i64_gcd(a, b);
    int64_t m = g == 0 ? 0 : (int64_t)((uint64_t)(a / g) * (uint64_t)b);
    return m < 0 ? -m : m;
}
static inline int64_t i64_isclose(int64_t a, int64_t b, double rtol, double atol) {
    return a == b || fabs((double)a - (double)b) <= atol + fabs(rtol * (double)b);
}
static inline int64_t i64_clamp(int64_t a, int64_t low, bool has_low, int64_t high, bool has_high) {
    if (has_low && a < low) a = low;
    return has_high && a > high ? high : a;
}
/* To a multiple of 10^-decimals (decimals negative), half to even in floating point as PyTorch does it. */
static inline int64_t i64_round_decimals(int64_t a, int64_t decimals) {
    double ten = pow(10.0, (double)-decimals);
    return (int64_t)(rint((double)a / ten) * ten);
}

/* Floating point, both widths. */
#define REAL(P, T, S) \
    static inline int P##_isinf(T a) { return fabs##S(a) == (T)INFINITY; } \
    static inline int P##_isfinite(T a) { return fabs##S(a) < (T)INFINITY; } \
    static inline int P##_signbit(T a) { return __builtin_signbit(a) != 0; } \
    static inline T P##_maximum(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; } \
    static inline T P##_minimum(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; } \
    /* The quotient rounded down, from the exact remainder as Python does it. */ \
    static inline T P##_div_floor(T a, T b) { \
        if (b == 0) return a / b; \
        T mod = fmod##S(a, b), q = (a - mod) / b; \
        if (mod != 0 && (b < 0) != (mod < 0)) q -= 1; \
        if (q == 0) return copysign##S(0, a / b); \
        T down = floor##S(q); \
        return q - down > (T)0.5 ? down + 1 : down; \
    } \
    static inline T P##_remainder(T a, T b) { \
        T mod = fmod##S(a, b); \
        return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod; \
    } \
    static inline T P##_lerp(T a, T b, T w) { return fabs##S(w) < (T)0.5 ? a + w * (b - a) : b - (b - a) * (1 - w); } \
    MSA_INLINE T P##_logaddexp(T a, T b) { \
        const T gap = a == b ? 0 : fabs##S(a - b); /* infinities of one sign have none either */ \
        return P##_max(a, b) + P##_log1p(P##_exp(-gap)); \
    } \
    MSA_INLINE T P##_logaddexp2(T a, T b) { \
        const T gap = a == b ? 0 : fabs##S(a - b); \
        return P##_max(a, b) + P##_log1p(P##_exp2(-gap)) * (T)1.4426950408889634; \
    } \
    static inline T P##_xlogy(T a, T b) { return b != b ? (T)NAN : a == 0 ? 0 : a * log##S(b); } \
    static inline T P##_clamp(T a, T low, bool has_low, T high, bool has_high) { \
        if (has_low) a = a < low || low != low ? low : a; \
        if (has_high) a = a > high || high != high ? high : a; \
        return a; \
    } \
    static inline T P##_nan_to_num(T a, T nan_, T pos, T neg, bool has_pos, bool has_neg) { \
        T most = sizeof(T) == 4 ? (T)3.4028234663852886e38 : (T)1.7976931348623157e308; \
        if (a != a) return nan_; \
        if (a == (T)INFINITY) return has_pos ? pos : most; \
        return a == -(T)INFINITY ? (has_neg ? neg : -most) : a; \
    } \
    MSA_INLINE T P##_logsigmoid(T a) { return P##_min(a, 0) - P##_log1p(P##_exp(-fabs##S(a))); } \
    static inline T P##_logit(T a, bool clip, T eps) { \
        if (clip) a = a < eps ? eps : a > 1 - eps ? 1 - eps : a; \
        return log##S(a / (1 - a)); \
    } \
    static inline T P##_fake_quantize_level(T a, T scale, T zero, T low, T high) { \
        T level = rint##S(a * (1 / scale)) + zero; \
        return level < low ? low : level > high ? high : level; \
    } \
    static inline T P##_sinc(T a) { return a == 0 ? 1 : sin##S((T)M_PI * a) / ((T)M_PI * a); } \
    static inline T P##_sinc_slope(T a) { \
        T x = (T)M_PI * a; \
        return a == 0 ? 0 : (cos##S(x) * x - sin##S(x)) / (x * a); \
    } \
    static inline T P##_round_decimals(T a, int64_t decimals) { \
        T ten = pow##S(10, fabs##S((T)decimals)); \
        return decimals < 0 ? rint##S(a / ten) * ten : rint##S(a * ten) / ten; \
    }
REAL(f32, float, f)
REAL(f64, double, )
#undef REAL

/* Complex. */
#define COMPLEX(P, Z, S) \
    static inline Z P##_conj(Z a) { return conj##S(a); } \
    static inline int P##_isnan(Z a) { return creal##S(a) != creal##S(a) || cimag##S(a) != cimag##S(a); } \
    static inline int P##_isinf(Z a) { return isinf(creal##S(a)) || isinf(cimag##S(a)); } \
    static inline int P##_isfinite(Z a) { return isfinite(creal##S(a)) && isfinite(cimag##S(a)); } \
    static inline Z P##_pow(Z a, Z b) { return b == 0 ? 1 : a == 0 ? 0 : cpow##S(a, b); }
COMPLEX(c64, c64, f)
COMPLEX(c128, c128, )
#undef COMPLEX
static inline float c64_abs(c64 a) { return hypotf(crealf(a), cimagf(a)); }
static inline double c128_abs(c128 a) { return hypot(creal(a), cimag(a)); }
static inline float c64_arg(c64 a) { return cargf(a); }
static inline double c128_arg(c128 a) { return carg(a); }
static inline float c64_imag(c64 a) { return cimagf(a); }
static inline double c128_imag(c128 a) { return cimag(a); }

/* Special functions, in double for both widths. */
#include "cpu/special.h"

#endif
