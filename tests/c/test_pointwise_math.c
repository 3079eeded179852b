/* The float32 functions of pointwise loops stay within 2 ulp of libm's in double, special values included. */
#include "check.h"
#include "cpu/pointwise_helpers.h"

static double worst(float (*f)(float), double (*exact)(double), float from, float to, int steps) {
    double most = 0;
    for (int i = 0; i <= steps; i++) {
        const float x = (float)(from + ((double)to - from) * i / steps), y = f(x);
        const double want = exact(x);
        if (fabs(want) < 1.2e-38 || fabs(want) > 3.4e38) continue;
        const double ulp = ldexp(1, ilogb(want) - 23), error = fabs((double)y - want) / ulp;
        if (!(error <= most)) most = error;
    }
    return most;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

#define FUNCTION(name) \
    static float loop_##name(float x) { return f32_##name(x); }
FUNCTION(exp)
FUNCTION(exp2)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log2)
FUNCTION(log10)
FUNCTION(log1p)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(sigmoid)

#define ACCURATE(name, exact, from, to) \
    do { \
        const double ulps_ = worst(loop_##name, exact, from, to, 200000); \
        CHECK(ulps_ <= 2.0); \
        if (!(ulps_ <= 2.0)) fprintf(stderr, #name " on [%g, %g]: %g ulp\n", (double)(from), (double)(to), ulps_); \
    } while (0)

int main(void) {
    ACCURATE(exp, exp, -87, 88.7f);
    ACCURATE(exp, exp, -1, 1);
    ACCURATE(exp2, exp2, -125, 127.9f);
    ACCURATE(expm1, expm1, -20, 88.7f);
    ACCURATE(expm1, expm1, -0.5f, 0.5f);
    ACCURATE(log, log, 1e-38f, 4);
    ACCURATE(log, log, 1e-3f, 1e30f);
    ACCURATE(log, log, 0.9f, 1.1f);
    ACCURATE(log2, log2, 1e-3f, 100);
    ACCURATE(log10, log10, 1e-3f, 100);
    ACCURATE(log1p, log1p, -0.999f, 10);
    ACCURATE(log1p, log1p, -1e-3f, 1e-3f);
    ACCURATE(tanh, tanh, -12, 12);
    ACCURATE(tanh, tanh, -0.7f, 0.7f);
    ACCURATE(erf, erf, -5, 5);
    ACCURATE(erf, erf, -1e-3f, 1e-3f);
    CHECK(worst(loop_sigmoid, sigmoid, -80, 80, 200000) <= 2.5); /* a sum and a division after the exp */
    CHECK(f32_exp(INFINITY) == INFINITY && f32_exp(-INFINITY) == 0 && isnan(f32_exp(NAN)) && f32_exp(0) == 1);
    CHECK(f32_exp(-100) == (float)exp(-100) && f32_exp(200) == INFINITY && f32_exp(-200) == 0);
    CHECK(f32_exp2(10) == 1024 && f32_exp2(-149) == 1.40129846e-45f);
    CHECK(f32_log(0) == -INFINITY && isnan(f32_log(-1)) && f32_log(INFINITY) == INFINITY && isnan(f32_log(NAN)) && f32_log(1) == 0);
    CHECK(fabsf(f32_log(1e-40f) - (float)log(1e-40f)) < 1e-5f && f32_log2(8) == 3 && f32_log10(1000) == 3);
    CHECK(f32_log1p(-1) == -INFINITY && isnan(f32_log1p(-2)) && f32_log1p(INFINITY) == INFINITY && signbit(f32_log1p(-0.0f)));
    CHECK(f32_expm1(-INFINITY) == -1 && f32_expm1(INFINITY) == INFINITY && isnan(f32_expm1(NAN)) && signbit(f32_expm1(-0.0f)));
    CHECK(f32_tanh(INFINITY) == 1 && f32_tanh(-INFINITY) == -1 && isnan(f32_tanh(NAN)) && signbit(f32_tanh(-0.0f)));
    CHECK(f32_erf(INFINITY) == 1 && f32_erf(-INFINITY) == -1 && isnan(f32_erf(NAN)));
    CHECK(f32_sigmoid(-INFINITY) == 0 && f32_sigmoid(INFINITY) == 1 && isnan(f32_sigmoid(NAN)));
    CHECK(isnan(f32_max(NAN, 1)) && isnan(f32_max(1, NAN)) && f32_fmax(NAN, 1) == 1 && f32_fmin(1, NAN) == 1);
    CHECK_NEAR(f64_digamma(1), -0.57721566490153286, 1e-14);
    CHECK_NEAR(f64_digamma(-0.5), 0.03648997397857652, 1e-13);
    for (double x = -0.9999999; x < 1; x += 0.03) CHECK_NEAR(erf(f64_erfinv(x)), x, 1e-15);
    CHECK_NEAR(f64_i0(1), 1.2660658777520084, 1e-14);
    CHECK_NEAR(f64_i1(-1), -0.5651591039924851, 1e-14);
    CHECK_NEAR(f64_i0e(25), 0.08019677354743, 1e-12);
    CHECK_NEAR(f64_i1e(25), 0.07857539, 1e-6);
    return check_report();
}
