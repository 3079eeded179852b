/* The regularised incomplete gamma functions.
 *
 * The power series where x < a + 1 (A&S 6.5.29), Legendre's continued fraction by Lentz's method beyond (DLMF 8.9.2); both slow
 * down where x is near a large a, and there Temme's uniform expansion (DLMF 8.12.3) is used with its first two terms. */
#include <math.h>

#include "cpu/special_functions.h"

/* x^a e^-x / Gamma(a + 1). For large a by Stirling's series, because the logarithms of the three factors nearly cancel. */
static double factor(double a, double x) {
    if (a < 20) return exp(a * log(x) - x - lgamma(a + 1));
    const double mu = (x - a) / a, z = 1 / (a * a);
    const double stirling = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z / 1188)))) / a;
    const double deviation = mu > -0.5 ? mu - log1p(mu) : (x - a) / a - log(x / a);
    return exp(-a * deviation - stirling) / sqrt(2 * M_PI * a);
}

static double p_series(double a, double x) {
    double sum = 1, term = 1;
    for (int64_t k = 1; k < 100000; k++) {
        term *= x / (a + (double)k);
        sum += term;
        if (term < 1e-17 * sum) break;
    }
    return factor(a, x) * sum;
}

static double q_fraction(double a, double x) {
    const double tiny = 1e-300;
    double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (int64_t k = 1; k < 100000; k++) {
        const double numerator = -(double)k * ((double)k - a);
        b += 2;
        d = numerator * d + b;
        if (fabs(d) < tiny) d = tiny;
        c = b + numerator / c;
        if (fabs(c) < tiny) c = tiny;
        d = 1 / d;
        const double change = d * c;
        h *= change;
        if (fabs(change - 1) < 1e-16) break;
    }
    return factor(a, x) * a * h;
}

/* Q for x near a large a; `lower` gives P. */
static double temme(double a, double x, int lower) {
    const double mu = (x - a) / a;
    const double eta = copysign(sqrt(2 * (fabs(mu) < 1e-3 ? mu * mu * (0.5 - mu * (1.0 / 3 - mu * (0.25 - mu * (0.2 - mu / 6)))) : mu - log1p(mu))), mu);
    const double first = fabs(eta) < 0.02 ? -1.0 / 3 + eta * (1.0 / 12 - eta * (2.0 / 135 - eta * (1.0 / 864 + eta / 2835))) : 1 / mu - 1 / eta;
    const double second = -1.0 / 540 - eta / 288;
    const double rest = exp(-a * eta * eta / 2) / sqrt(2 * M_PI * a) * (first + second / a);
    const double side = eta * sqrt(a / 2);
    return lower ? 0.5 * erfc(-side) - rest : 0.5 * erfc(side) + rest;
}

/* Whether the arguments are at the border of the domain or outside; then *p is P. */
static int border(double a, double x, double *p) {
    if (a < 0 || x < 0) *p = NAN;
    else if (a == 0) *p = x > 0 ? 1 : NAN;
    else if (x == 0) *p = 0;
    else if (isinf(a)) *p = isinf(x) ? NAN : 0;
    else if (isinf(x)) *p = 1;
    else if (a != a || x != x) *p = NAN;
    else return 0;
    return 1;
}

static int near_large(double a, double x) { return a > 1e5 && fabs(x - a) < 0.3 * a; }

double msa_special_gamma_p(double a, double x) {
    double p;
    if (border(a, x, &p)) return p;
    if (near_large(a, x)) return temme(a, x, 1);
    return x < a + 1 ? p_series(a, x) : 1 - q_fraction(a, x);
}

double msa_special_gamma_q(double a, double x) {
    double p;
    if (border(a, x, &p)) return 1 - p;
    if (near_large(a, x)) return temme(a, x, 0);
    return x < a + 1 ? 1 - p_series(a, x) : q_fraction(a, x);
}
