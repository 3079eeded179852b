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

/* A rational start (A&S 26.2.23), then Newton's method: on the logarithm in the tail, where it keeps its digits, and Halley's on
 * the function itself in the middle. */
double msa_special_ndtri(double p) {
    if (p == 0) return -INFINITY;
    if (p == 1) return INFINITY;
    if (!(p > 0 && p < 1)) return NAN;
    if (p > 0.5) return -msa_special_ndtri(1 - p);
    const double t = sqrt(-2 * log(p));
    double x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
    for (int i = 0; i < 3; i++) {
        if (p < 0.1) {
            const double scaled = msa_special_erfcx(-x * M_SQRT1_2);
            const double error = log(scaled / 2) - x * x / 2 - log(p);
            x -= error * scaled * 1.2533141373155002512; /* sqrt(pi / 2) */
        } else {
            const double error = p == 0.5 ? erf(x * M_SQRT1_2) / 2 : erfc(-x * M_SQRT1_2) / 2 - p;
            const double u = error * 2.5066282746310005024 * exp(x * x / 2);
            x -= u / (1 + x * u / 2);
        }
    }
    return x;
}
