/* Derivatives of gamma and beta variables by their shape, along the path that keeps their cumulative probability.
 *
 * dx/da = -(dF(x; a)/da) / f(x; a). With f's normalisation gone, what remains is an integral from x to the nearer end of the support of
 * f(t)/f(x) (log t - E log t); either side of x serves, since the whole integral is zero, and the one whose integrand falls from the start is
 * taken. Exponential-sinh quadrature (H. Takahasi and M. Mori, "Double exponential formulas for numerical integration", 1974) scaled
 * by the integrand's length of decay leaves errors below 1e-6 of the result. */
#include <math.h>

#include "cpu/special.h"

enum { NODES = 65 };
static const double STEP = 0.11;

typedef struct {
    double a, b, x, centre;
} shape;

/* Sum of f(u) du over [0, inf), f decaying over lengths of `length`. */
static double half_line(double (*f)(const shape *, double), const shape *s, double length) {
    double sum = 0;
    for (int k = 0; k < NODES; k++) {
        const double t = (k - NODES * 5 / 8) * STEP, u = length * exp(M_PI_2 * sinh(t));
        const double value = f(s, u);
        if (value != 0) sum += value * u * M_PI_2 * cosh(t);
    }
    return sum * STEP;
}

/* t = x e^-u below x. */
static double gamma_below(const shape *s, double u) {
    return exp(-s->x * expm1(-u) - s->a * u) * (s->centre + u);
}

/* t = x + u above x. */
static double gamma_above(const shape *s, double u) {
    const double ratio = log1p(u / s->x);
    return exp((s->a - 1) * ratio - u) * (ratio - s->centre);
}

double msa_special_gamma_gradient(double a, double x) {
    if (!(a > 0) || !(x > 0) || isinf(a) || isinf(x)) return x == 0 ? 0 : NAN;
    const shape s = {.a = a, .x = x, .centre = special_digamma(a) - log(x)}; /* E log t - log x */
    if (x < a) return x * half_line(gamma_below, &s, 1 / (a - x + sqrt(x)));
    const double slope = 1 - (a - 1) / x;
    return half_line(gamma_above, &s, 1 / (slope + sqrt(fabs(a - 1)) / x));
}

/* t = x e^-u below x. */
static double beta_below(const shape *s, double u) {
    const double rest = log1p(s->x * -expm1(-u) / (1 - s->x)); /* log((1 - t) / (1 - x)) */
    return exp((s->b - 1) * rest - s->a * u) * (s->centre + u);
}

/* 1 - t = (1 - x) e^-u above x. */
static double beta_above(const shape *s, double u) {
    const double ratio = log1p((1 - s->x) * -expm1(-u) / s->x); /* log(t / x) */
    return exp((s->a - 1) * ratio - s->b * u) * (ratio - s->centre);
}

double msa_special_dirichlet_gradient(double x, double a, double total) {
    const double b = total - a;
    if (!(a > 0) || !(b > 0) || !(x >= 0 && x <= 1) || isinf(total)) return NAN;
    if (x == 0) return 0;
    const shape s = {.a = a, .b = b, .x = x, .centre = special_digamma(a) - special_digamma(total) - log(x)};
    if (x < a / total) {
        const double odds = x / (1 - x), slope = fabs(a - (b - 1) * odds), bend = fabs(b - 1) * odds / (1 - x);
        return odds * half_line(beta_below, &s, 1 / (slope + sqrt(bend) + 1e-3));
    }
    const double odds = (1 - x) / x, slope = fabs(b - (a - 1) * odds), bend = fabs(a - 1) * odds / x;
    return half_line(beta_above, &s, 1 / (slope + sqrt(bend) + 1e-3));
}
