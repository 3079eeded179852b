/* Modified Bessel functions of the third kind, the Airy function, and the spherical Bessel function of order 0.
 *
 * K by its power series up to 2 (A&S 9.6.10-9.6.13), beyond by the trapezoid rule on its integral over hyperbolic cosines
 * (DLMF 10.32.9): the integrand falls doubly exponentially, so that a few dozen points give all digits. Ai from K of order 1/3 on
 * the right (DLMF 9.6.2), by its Maclaurin series around zero, by its asymptotic expansion far on the left (DLMF 9.7.9). */
#include <math.h>

#include "cpu/special.h"
#include "cpu/special_functions.h"

/* e^x K_order(x) = integral over t > 0 of exp(-x (cosh t - 1)) cosh(order t), for x >= 1. The step follows the width of the
 * integrand, 1 / sqrt(x). */
static double scaled_k(double order, double x) {
    const double step = fmin(0.2, 0.7 / sqrt(x));
    double sum = 0.5;
    for (int i = 1; i < 200; i++) {
        const double t = i * step, s = sinh(t / 2), term = exp(-2 * x * s * s) * cosh(order * t);
        sum += term;
        if (term < 1e-18 * sum) break;
    }
    return sum * step;
}

static double k_series(int order, double x) {
    const double q = x * x / 4, gamma = 0.57721566490153286061, logarithm = log(x / 2);
    if (order == 0) {
        double sum = 0, term = 1, harmonic = 0;
        for (int k = 1; k < 30; k++) {
            term *= q / ((double)k * k);
            harmonic += 1.0 / k;
            sum += term * harmonic;
        }
        return -(logarithm + gamma) * special_bessel_i(0, x, 0) + sum;
    }
    double sum = 0, term = 1, psi = -gamma; /* psi(k + 1) */
    for (int k = 0; k < 30; k++) {
        const double next = psi + 1.0 / (k + 1);
        sum += term * (psi + next);
        psi = next;
        term *= q / ((k + 1.0) * (k + 2.0));
    }
    return 1 / x + logarithm * special_bessel_i(1, x, 0) - x / 4 * sum;
}

double msa_special_bessel_k(int order, double x, int scaled) {
    if (x == 0) return INFINITY;
    if (!(x > 0)) return NAN;
    if (x == INFINITY) return 0;
    if (x <= 2) return k_series(order, x) * (scaled ? exp(x) : 1);
    return scaled_k(order, x) * (scaled ? 1 : exp(-x));
}

/* Maclaurin: Ai(0) f(x) + Ai'(0) g(x). Left of zero the terms are far larger than the sum, hence the wide type. */
static double airy_series(double x) {
    const long double cube = (long double)x * x * x;
    long double f = 1, g = x, f_term = 1, g_term = x;
    for (int k = 1; k < 200; k++) {
        const long double m = 3.0L * k;
        f_term *= cube / (m * (m - 1));
        g_term *= cube / (m * (m + 1));
        f += f_term;
        g += g_term;
        if (fabsl(f_term) + fabsl(g_term) < 1e-25L) break;
    }
    return (double)(0.355028053887817239260063186004183177L * f - 0.258819403792806798405183560189203963L * g);
}

/* (cos(z - pi/4) P + sin(z - pi/4) Q) / (sqrt(pi) |x|^(1/4)), z = 2/3 |x|^(3/2). */
static double airy_oscillating(double x) {
    const double z = 2.0 / 3 * x * sqrt(x);
    double even = 0, odd = 0, term = 1, last = INFINITY;
    for (int k = 0; k < 40 && fabs(term) < last; k++) {
        const double sign = k / 2 % 2 ? -1 : 1;
        if (k % 2) odd += sign * term;
        else even += sign * term;
        last = fabs(term);
        if (last < 1e-18) break;
        term *= (6.0 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216 * (k + 1.0) * (2 * k + 1) * z);
    }
    const double s = sin(z), c = cos(z);
    return ((c + s) * even + (s - c) * odd) * M_SQRT1_2 / (sqrt(M_PI) * sqrt(sqrt(x)));
}

double msa_special_airy_ai(double x) {
    if (!isfinite(x)) return NAN;
    if (x < -9) return airy_oscillating(-x);
    if (x < 2) return airy_series(x);
    const double z = 2.0 / 3 * x * sqrt(x);
    return z > 800 ? 0 : sqrt(x / 3) / M_PI * scaled_k(1.0 / 3, z) * exp(-z);
}

double msa_special_spherical_bessel_j0(double x) {
    if (isinf(x)) return 0;
    if (fabs(x) < 0.5) {
        const double y = x * x;
        return 1 - y / 6 * (1 - y / 20 * (1 - y / 42 * (1 - y / 72 * (1 - y / 110 * (1 - y / 156)))));
    }
    return sin(x) / x;
}
