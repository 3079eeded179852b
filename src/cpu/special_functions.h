/* Special functions that are too long to be part of the pointwise loops, in double. NaN where a function is not defined. */
#ifndef MSA_CPU_SPECIAL_FUNCTIONS_H
#define MSA_CPU_SPECIAL_FUNCTIONS_H

#include <stdint.h>

/* Bessel functions of the third kind of order 0 and 1; `scaled` gives e^x times them (special_bessel.c). */
double msa_special_bessel_k(int order, double x, int scaled);
double msa_special_airy_ai(double x);
double msa_special_spherical_bessel_j0(double x);

/* The regularised incomplete gamma functions P(a, x) and Q(a, x) (special_gamma.c). */
double msa_special_gamma_p(double a, double x);
double msa_special_gamma_q(double a, double x);

/* Derivatives of gamma and beta variables by their shapes, see special_reparameterized.c. The second is of x of Beta(a, total - a), over 1 - x. */
double msa_special_gamma_gradient(double a, double x);
double msa_special_dirichlet_gradient(double x, double a, double total);

/* The normal distribution and the scaled complementary error function e^(x^2) erfc(x) (special_normal.c). */
double msa_special_erfcx(double x);
double msa_special_log_ndtr(double x);
/* `narrow`: to float32's precision only. */
double msa_special_ndtri(double p, int narrow);
double msa_special_erfinv(double x, int narrow);

/* Orthogonal polynomials of degree n, 0 for n < 0 (special_polynomial.c). */
double msa_special_chebyshev_t(double x, int64_t n);
double msa_special_chebyshev_u(double x, int64_t n);
double msa_special_chebyshev_v(double x, int64_t n);
double msa_special_chebyshev_w(double x, int64_t n);
double msa_special_hermite_h(double x, int64_t n);
double msa_special_hermite_he(double x, int64_t n);
double msa_special_laguerre_l(double x, int64_t n);
double msa_special_legendre_p(double x, int64_t n);

#endif
