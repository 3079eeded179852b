/* Special functions that libm lacks, computed in double.
 *
 * digamma and polygamma: recurrence up to where the asymptotic series holds (Abramowitz and Stegun 6.3.18, 6.4.11), reflection
 * below zero. Hurwitz zeta: Euler and Maclaurin's sum. Bessel I0 and I1: the series for small and the asymptotic expansion for
 * large arguments (A&S 9.6.10, 9.7.1). */
#ifndef MSA_CPU_SPECIAL_H
#define MSA_CPU_SPECIAL_H

#include <math.h>
#include <stdint.h>

#include "cpu/special_functions.h"

static inline double special_digamma(double x) {
    if (x == 0) return copysign(INFINITY, -x);
    double shift = 0;
    if (x < 0) {
        if (x == floor(x)) return NAN;
        double whole;
        shift = -M_PI / tan(M_PI * modf(x, &whole));
        x = 1 - x;
    }
    double sum = 0;
    while (x < 10) {
        sum -= 1 / x;
        x += 1;
    }
    double z = 1 / (x * x);
    double series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
    return shift + sum + log(x) - 0.5 / x - (x < 1e17 ? series : 0);
}

static inline double special_zeta(double x, double q) {
    static const double coefficients[] = {12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9,
                                          7.47242496e10, -2.950130727918164224e12, 1.1646782814350067249e14,
                                          -4.5979787224074726105e15, 1.8152105401943546773e17, -7.1661652561756670113e18};
    if (x == 1) return INFINITY;
    if (x < 1) return NAN;
    if (q <= 0) {
        if (q == floor(q)) return INFINITY;
        if (x != floor(x)) return NAN;
    }
    double s = pow(q, -x), a = q, b = 0;
    for (int i = 0; i < 9 || a <= 9; i++) {
        a += 1;
        b = pow(a, -x);
        s += b;
        if (fabs(b) < 1e-17 * fabs(s)) return s;
    }
    double w = a;
    s += b * w / (x - 1) - 0.5 * b;
    a = 1;
    double k = 0;
    for (int i = 0; i < 12; i++) {
        a *= x + k;
        b /= w;
        double t = a * b / coefficients[i];
        s += t;
        if (fabs(t / s) < 1e-17) return s;
        k += 1;
        a *= x + k;
        b /= w;
        k += 1;
    }
    return s;
}

/* The trigamma function of x > 0 (A&S 6.4.12). */
static inline double special_trigamma(double x) {
    if (x == 0) return INFINITY;
    double sum = 0;
    for (; x < 12; x += 1) sum += 1 / (x * x);
    const double z = 1 / (x * x);
    return sum + 1 / x + z / 2 +
           z / x * (1.0 / 6 - z * (1.0 / 30 - z * (1.0 / 42 - z * (1.0 / 30 - z * (5.0 / 66 - z * (691.0 / 2730 - z * (7.0 / 6)))))));
}

/* `narrow`: the sine of the reflection in float32, whose rounding next to the poles is then the same as PyTorch's. */
static inline double special_polygamma(int64_t n, double x, int narrow) {
    if (n == 0) return special_digamma(x);
    if (n == 1 && x < 0) { /* reflection, which keeps the digits of the trigamma function */
        double s = narrow ? sinf((float)M_PI * (float)x) : sin(M_PI * x);
        return -special_trigamma(1 - x) + (M_PI * M_PI) / (s * s);
    }
    if (n == 1) return special_trigamma(x);
    return (n % 2 ? 1 : -1) * tgamma((double)n + 1) * special_zeta((double)n + 1, x);
}

/* sum_k (x/2)^(2k+v) / (k! (k+v)!) for |x| < 20, e^x / sqrt(2 pi x) (1 - ...) beyond; scaled gives e^-|x| times it. */
static inline double special_bessel_i(int v, double x, int scaled) {
    double a = fabs(x), result;
    if (a < 20) {
        double quarter = a * a / 4, term = v ? a / 2 : 1, sum = term;
        for (int k = 1; k < 200; k++) {
            term *= quarter / ((double)k * (k + v));
            sum += term;
            if (term < 1e-17 * sum) break;
        }
        result = scaled ? sum * exp(-a) : sum;
    } else {
        double mu = 4.0 * v * v, term = 1, sum = 1;
        for (int k = 1; k < 60; k++) {
            double next = -term * (mu - (2.0 * k - 1) * (2.0 * k - 1)) / (k * 8 * a);
            if (fabs(next) >= fabs(term) || fabs(next) < 1e-17) break;
            term = next;
            sum += term;
        }
        result = sum / sqrt(2 * M_PI * a) * (scaled ? 1 : exp(a));
    }
    return v && x < 0 ? -result : result;
}

#define SPECIAL(P, T) \
    static inline T P##_digamma(T a) { return (T)special_digamma(a); } \
    static inline T P##_polygamma(int64_t n, T a) { return (T)special_polygamma(n, a, sizeof(T) == 4); } \
    static inline T P##_zeta(T x, T q) { return (T)special_zeta(x, q); } \
    static inline T P##_i0(T a) { return (T)special_bessel_i(0, a, 0); } \
    static inline T P##_i0e(T a) { return (T)special_bessel_i(0, a, 1); } \
    static inline T P##_i1(T a) { return (T)special_bessel_i(1, a, 0); } \
    static inline T P##_i1e(T a) { return (T)special_bessel_i(1, a, 1); } \
    static inline T P##_erfinv(T a) { return (T)msa_special_erfinv(a, sizeof(T) == 4); } \
    static inline T P##_bessel_j0(T a) { return (T)j0(a); } \
    static inline T P##_bessel_j1(T a) { return (T)j1(a); } \
    static inline T P##_bessel_y0(T a) { return a < 0 ? (T)NAN : (T)y0(a); } \
    static inline T P##_bessel_y1(T a) { return a < 0 ? (T)NAN : (T)y1(a); } \
    static inline T P##_bessel_k(int order, T a, int scaled) { return (T)msa_special_bessel_k(order, a, scaled); } \
    static inline T P##_airy_ai(T a) { return (T)msa_special_airy_ai(a); } \
    static inline T P##_spherical_bessel_j0(T a) { return (T)msa_special_spherical_bessel_j0(a); } \
    static inline T P##_igamma(T a, T x) { return (T)msa_special_gamma_p(a, x); } \
    static inline T P##_igammac(T a, T x) { return (T)msa_special_gamma_q(a, x); } \
    static inline T P##_standard_gamma_grad(T a, T x) { return (T)msa_special_gamma_gradient(a, x); } \
    static inline T P##_dirichlet_grad(T x, T a, T total) { return (T)msa_special_dirichlet_gradient(x, a, total); } \
    static inline T P##_erfcx(T a) { return (T)msa_special_erfcx(a); } \
    static inline T P##_log_ndtr(T a) { return (T)msa_special_log_ndtr(a); } \
    static inline T P##_ndtri(T a) { return (T)msa_special_ndtri(a, sizeof(T) == 4); } \
    static inline T P##_xlog1py(T a, T b) { return b != b ? (T)NAN : a == 0 ? 0 : (T)(a * log1p(b)); } \
    static inline T P##_entr(T a) { return a > 0 ? (T)(-a * log(a)) : a == 0 ? 0 : a != a ? a : -(T)INFINITY; }
SPECIAL(f32, float)
SPECIAL(f64, double)
#undef SPECIAL

/* A degree given as a number of the operand's type; what no integer can hold counts as none. */
static inline int64_t special_degree(double n) { return n > -1e18 && n < 1e18 ? (int64_t)n : -1; }
#define POLYNOMIAL(name) \
    static inline float f32_##name(float x, float n) { return (float)msa_special_##name(x, special_degree(n)); } \
    static inline double f64_##name(double x, double n) { return msa_special_##name(x, special_degree(n)); }
POLYNOMIAL(chebyshev_t)
POLYNOMIAL(chebyshev_u)
POLYNOMIAL(chebyshev_v)
POLYNOMIAL(chebyshev_w)
POLYNOMIAL(hermite_h)
POLYNOMIAL(hermite_he)
POLYNOMIAL(laguerre_l)
POLYNOMIAL(legendre_p)
#undef POLYNOMIAL

#endif
