/* The logarithm and the inverse of the normal distribution function, and the scaled complementary error function. */
#include <math.h>

#include "cpu/special_functions.h"

/* By erfc with the rounding of x^2 made good up to 10, by the asymptotic expansion (A&S 7.1.23) beyond. */
double msa_special_erfcx(double x) {
    if (x < 10) {
        const double square = x * x, lost = fma(x, x, -square);
        const double growth = exp(square);
        return isinf(growth) ? growth : growth * (1 + lost) * erfc(x);
    }
    if (isinf(x)) return 0;
    const double z = 1 / (2 * x * x);
    double sum = 1, term = 1;
    for (int k = 1; k < 40; k++) {
        term *= -(2.0 * k - 1) * z;
        sum += term;
        if (fabs(term) < 1e-17) break;
    }
    return sum / (x * 1.7724538509055160273);
}

double msa_special_log_ndtr(double x) {
    if (x < -1) return log(msa_special_erfcx(-x * M_SQRT1_2) / 2) - x * x / 2;
    return log1p(-erfc(x * M_SQRT1_2) / 2);
}

/* The inverse normal distribution to nine digits, by rational functions of the distance q from the middle and, below 0.02425, of
 * sqrt(-2 log p) (Acklam 2003). */
static double middle_start(double q) {
    const double r = q * q;
    const double above = (((((-3.969683028665376e+01 * r + 2.209460984245205e+02) * r - 2.759285104469687e+02) * r + 1.383577518672690e+02) * r -
                           3.066479806614716e+01) * r + 2.506628277459239e+00) * q;
    const double below = ((((-5.447609879822406e+01 * r + 1.615858368580409e+02) * r - 1.556989798598866e+02) * r + 6.680131188771972e+01) * r -
                          1.328068155288572e+01) * r + 1;
    return above / below;
}

static double tail_start(double p) {
    const double t = sqrt(-2 * log(p));
    const double above = ((((-7.784894002430293e-03 * t - 3.223964580411365e-01) * t - 2.400758277161838e+00) * t - 2.549732539343734e+00) * t +
                          4.374664141464968e+00) * t + 2.938163982698783e+00;
    return above / ((((7.784695709041462e-03 * t + 3.224671290700398e-01) * t + 2.445134137142996e+00) * t + 3.754408661907416e+00) * t + 1);
}

static const double tail = 0.02425, root_two_pi = 2.5066282746310005024;

/* For p in (0, 0.5], q = 0.5 - p given exactly: the start, then one step of Halley's method, on the logarithm (Newton's) in the tail,
 * where that keeps its digits. Not positive. */
static double lower_quantile(double p, double q, int narrow) {
    if (p >= tail) {
        double x = middle_start(-q);
        if (narrow) return x;
        /* Phi(x) - p without cancellation near the middle */
        const double error = q < 0.25 ? q + erf(x * M_SQRT1_2) / 2 : erfc(-x * M_SQRT1_2) / 2 - p;
        const double u = error * root_two_pi * exp(x * x / 2);
        return x - u / (1 + x * u / 2);
    }
    double x = tail_start(p);
    for (int i = 0; i < (narrow ? 0 : 2); i++) {
        const double scaled = msa_special_erfcx(-x * M_SQRT1_2);
        x -= (log(scaled / 2) - x * x / 2 - log(p)) * scaled * (root_two_pi / 2);
    }
    return x;
}

double msa_special_ndtri(double p, int narrow) {
    if (p == 0) return -INFINITY;
    if (p == 1) return INFINITY;
    if (!(p > 0 && p < 1)) return NAN;
    return p <= 0.5 ? lower_quantile(p, 0.5 - p, narrow) : -lower_quantile(1 - p, p - 0.5, narrow);
}

/* erf(y) = x where Phi(y sqrt 2) = (1 + x) / 2. */
double msa_special_erfinv(double x, int narrow) {
    const double a = fabs(x);
    if (!(a < 1)) return a == 1 ? copysign(INFINITY, x) : NAN;
    return copysign(lower_quantile((1 - a) / 2, a / 2, narrow) * M_SQRT1_2, x);
}
