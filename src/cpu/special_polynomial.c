/* Orthogonal polynomials by their three-term recurrences (A&S 22.7), Chebyshev's of high degree inside [-1, 1] by their
 * trigonometric form (A&S 22.3.15). */
#include <math.h>

#include "cpu/special_functions.h"

enum { RECURRENCE_LIMIT = 8 }; /* degree from which the trigonometric form is as exact and faster */

/* p_(k+1) = 2 x p_k - p_(k-1), which all four kinds share, from p_0 = 1 and p_1. */
static double chebyshev(double x, double first, int64_t n) {
    double before = 1, now = first;
    if (n == 0) return 1;
    for (int64_t k = 1; k < n && isfinite(now); k++) {
        const double next = 2 * x * now - before;
        before = now;
        now = next;
    }
    return now;
}

static double alternating(int64_t n, double size) { return n % 2 ? -size : size; }

double msa_special_chebyshev_t(double x, int64_t n) {
    if (n < 0) return 0;
    if (fabs(x) == 1) return x > 0 ? 1 : alternating(n, 1);
    if (n > RECURRENCE_LIMIT && fabs(x) < 1) return cos((double)n * acos(x));
    return chebyshev(x, x, n);
}

double msa_special_chebyshev_u(double x, int64_t n) {
    if (n < 0) return 0;
    const double size = (double)n + 1;
    if (fabs(x) == 1) return x > 0 ? size : alternating(n, size);
    if (n > RECURRENCE_LIMIT && fabs(x) < 1 && sin(acos(x)) != 0) return sin(size * acos(x)) / sin(acos(x));
    return chebyshev(x, 2 * x, n);
}

double msa_special_chebyshev_v(double x, int64_t n) {
    if (n < 0) return 0;
    const double size = 2 * (double)n + 1;
    if (fabs(x) == 1) return x > 0 ? 1 : alternating(n, size);
    if (n > RECURRENCE_LIMIT && fabs(x) < 1 && cos(acos(x) / 2) != 0) return cos(size * acos(x) / 2) / cos(acos(x) / 2);
    return chebyshev(x, 2 * x - 1, n);
}

double msa_special_chebyshev_w(double x, int64_t n) {
    if (n < 0) return 0;
    const double size = 2 * (double)n + 1;
    if (fabs(x) == 1) return x > 0 ? size : alternating(n, 1);
    if (n > RECURRENCE_LIMIT && fabs(x) < 1 && sin(acos(x) / 2) != 0) return sin(size * acos(x) / 2) / sin(acos(x) / 2);
    return chebyshev(x, 2 * x + 1, n);
}

/* Degree k + 1 from k: (a x + b) p_k - c p_(k-1), with the coefficients of each family. */
#define RECURRENCE(NAME, FIRST, NEXT) \
    double NAME(double x, int64_t n) { \
        if (n < 0) return 0; \
        if (n == 0) return 1; \
        double before = 1, now = FIRST; \
        for (int64_t i = 1; i < n && isfinite(now); i++) { \
            const double k = (double)i, next = NEXT; \
            before = now; \
            now = next; \
        } \
        return now; \
    }
RECURRENCE(msa_special_hermite_h, 2 * x, 2 * (x * now - k * before))
RECURRENCE(msa_special_hermite_he, x, x * now - k * before)
RECURRENCE(msa_special_laguerre_l, 1 - x, ((2 * k + 1 - x) * now - k * before) / (k + 1))
RECURRENCE(msa_special_legendre_p, x, ((2 * k + 1) * x * now - k * before) / (k + 1))
