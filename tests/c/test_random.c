/* The random numbers are PyTorch's: every array below was drawn by PyTorch 1.13.1 (Debian's, AVX2) on the CPU after
 * manual_seed(2024). */
#include "msadapter/random.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

static const float uniform_float[] = {
    -0.26679346f, 0.991325259f, 1.5817194f, -1.99893653f, -1.79901063f,
};
static const double uniform_double[] = {
    0.25372732026738665, 0.77470433175433584, 0.33521823650125215, 0.71993965771073121, 0.87880420079308397,
};
static const float uniform_bfloat16[] = {
    0.53125f, 0.9765625f, 0.375f, 0.5f, 0.10546875f,
};
static const float normal_17[] = {
    -1.22623551f,  -2.18068457f, 0.369955152f, 0.414397985f,  1.8567189f,    1.97758257f,
    -0.432155997f, 1.3667177f,   0.713076174f, -0.042119123f, 1.65792346f,   -1.30846882f,
    0.996183276f,  0.939077139f, 1.4147526f,   0.634335816f,  -0.077645123f,
};
static const float normal_5[] = {
    -0.0404291674f, 1.72599208f, -0.814038754f, 1.37216663f, 0.505964816f,
};
static const double normal_double_17[] = {
    -0.70402474203780663,
    -0.91091391769011898,
    0.7266241169549239,
    0.73769944087777684,
};
static const double log_normal[] = {
    3.639746973748661,
    5.1820380458967836,
    3.1180014857531146,
    4.8280049419476008,
};
static const double exponential[] = {
    0.9755474104521622,
    4.967805527782633,
    1.3609882245913256,
    4.2425006361849285,
};
static const double cauchy[] = {
    1.1046298857280692,
    1.5337299424994604,
    1.186103677013973,
    1.4653905373661071,
};
static const int64_t geometric[] = {
    7, 2, 5, 2, 1, 7, 5, 4,
};
static const int64_t bernoulli[] = {
    1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1,
};
static const int64_t bernoulli_each[] = {
    0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0,
};
static const float dropout[] = {
    1.42857146f, 0.0f, 1.42857146f, 0.0f, 0.0f, 1.42857146f, 1.42857146f, 1.42857146f,
};
static const int64_t random_int32[] = {
    378019464,
    1104465402,
    855165536,
    1025411712,
};
static const float random_float[] = {
    8920562.0f,
    13946169.0f,
    16304558.0f,
    2001347.0f,
};
static const int64_t random_small[] = {
    68, 87, 82, 30, 38, 84, 67, 96,
};
static const int64_t random_wide[] = {
    587367501306,
    415489755776,
    118520116772,
    819879395511,
};
static const int64_t random_all[] = {
    -7599790798471377414,
    -5550464023895569792,
    3470791090525271588,
    808125373620338871,
};
static const int64_t permutation[] = {
    8, 10, 6, 11, 7, 1, 5, 0, 9, 4, 3, 2,
};
static const int64_t with_replacement[] = {
    1, 3, 2, 3, 3, 1, 0, 0, 0, 0, 0, 0,
};
static const int64_t without_replacement[] = {
    2, 0, 3, 1, 0, 3,
};
static const float poisson[] = {
    0.0f, 4.0f, 8.0f, 9.0f, 40.0f, 1037.0f,
};
static const float binomial[] = {
    5.0f,
    18.0f,
    23.0f,
    18.0f,
};
static const double gamma_numbers[] = {
    0.047983895284331939,
    0.066512510868373245,
    0.20908723417013106,
    9.1080607065175485,
};
static const float dirichlet[] = {
    0.258334011f, 0.0599432588f, 0.68172276f, 0.418886214f, 0.313161492f, 0.267952293f,
};
static const float rrelu[] = {
    0.177859858f, 1.0f, 0.286396742f, 0.194837138f, 1.0f,
};
static const uint64_t state_hash = UINT64_C(11069138270030290249); /* FNV-1a of the state after three normal numbers */

enum { SEED = 2024, MOST = 64 };

static msa_generator *g;

static msa_generator *seeded(void) {
    msa_generator_manual_seed(g, SEED);
    return g;
}

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof(a)[0]))
/* Draw COUNT(expected) elements of C type T and compare; `call` sees `out` and `n`. */
#define DRAWS_EXPECTED(T, expected, tolerance, call)                                                                   \
    do {                                                                                                               \
        T out[MOST];                                                                                                   \
        int64_t n = COUNT(expected);                                                                                   \
        CHECK((call) == 0);                                                                                            \
        for (int64_t i = 0; i < n; i++)                                                                                \
            CHECK_NEAR(out[i], (expected)[i], (tolerance) * (1 + fabs((double)(expected)[i])));                        \
    } while (0)

static void uniform_numbers_are_pytorchs(void) {
    DRAWS_EXPECTED(float, uniform_float, 1e-7, msa_random_uniform(seeded(), out, n, MSA_FLOAT32, -2.5, 1.7));
    DRAWS_EXPECTED(double, uniform_double, 0, msa_random_uniform(seeded(), out, n, MSA_FLOAT64, 0, 1));
    uint16_t half[5];
    CHECK(msa_random_uniform(seeded(), half, 5, MSA_BFLOAT16, 0, 1) == 0);
    for (int i = 0; i < 5; i++) {
        uint32_t bits = (uint32_t)half[i] << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        CHECK(f == uniform_bfloat16[i]);
    }
}

static void normal_numbers_follow_both_arrangements(void) {
    DRAWS_EXPECTED(float, normal_17, 1e-6, msa_random_normal(seeded(), out, n, MSA_FLOAT32, 0, 1, false));
    DRAWS_EXPECTED(float, normal_5, 1e-7, msa_random_normal(seeded(), out, n, MSA_FLOAT32, 0, 1, false));
    DRAWS_EXPECTED(float, normal_5, 1e-7, msa_random_normal(seeded(), out, 17, MSA_FLOAT32, 0, 1, true));
    DRAWS_EXPECTED(double, normal_double_17, 1e-14, msa_random_normal(seeded(), out, 17, MSA_FLOAT64, 0, 1, false));
    DRAWS_EXPECTED(double, log_normal, 1e-14, msa_random_log_normal(seeded(), out, n, MSA_FLOAT64, 1.3, 0.2));
}

static void inversions_are_pytorchs(void) {
    DRAWS_EXPECTED(double, exponential, 1e-14, msa_random_exponential(seeded(), out, n, MSA_FLOAT64, 0.3));
    DRAWS_EXPECTED(double, cauchy, 1e-13, msa_random_cauchy(seeded(), out, n, MSA_FLOAT64, 1.3, 0.2));
    DRAWS_EXPECTED(int64_t, geometric, 0, msa_random_geometric(seeded(), out, n, MSA_INT64, 0.2));
    float x[] = {-1, 2, 0, -3, 4};
    DRAWS_EXPECTED(float, rrelu, 1e-7, msa_random_rrelu_noise(seeded(), x, out, n, MSA_FLOAT32, 1.0 / 8, 1.0 / 3));
}

static void zeros_and_ones_are_pytorchs(void) {
    float p[16];
    for (int i = 0; i < 16; i++) p[i] = 0.4f;
    DRAWS_EXPECTED(int64_t, bernoulli, 0, msa_random_bernoulli(seeded(), out, n, MSA_INT64, 0.4));
    DRAWS_EXPECTED(bool, bernoulli, 0, msa_random_bernoulli(seeded(), out, n, MSA_BOOL, 0.4));
    DRAWS_EXPECTED(int32_t, bernoulli, 0, msa_random_bernoulli(seeded(), out, n, MSA_INT32, 0.4));
    DRAWS_EXPECTED(float, bernoulli, 0, msa_random_bernoulli(seeded(), out, n, MSA_FLOAT32, 0.4));
    DRAWS_EXPECTED(float, bernoulli_each, 0, msa_random_bernoulli_each(seeded(), out, n, MSA_FLOAT32, p, MSA_FLOAT32));
    DRAWS_EXPECTED(float, dropout, 0, msa_random_dropout(seeded(), out, n, MSA_FLOAT32, 0.3));
}

static void integers_are_pytorchs(void) {
    DRAWS_EXPECTED(int32_t, random_int32, 0, msa_random_integers(seeded(), out, n, MSA_INT32));
    DRAWS_EXPECTED(float, random_float, 0, msa_random_integers(seeded(), out, n, MSA_FLOAT32));
    DRAWS_EXPECTED(int64_t, random_small, 0, msa_random_integers_between(seeded(), out, n, MSA_INT64, -3, 100));
    DRAWS_EXPECTED(int64_t, random_wide, 0, msa_random_integers_between(seeded(), out, n, MSA_INT64, 0, 1ll << 40));
    DRAWS_EXPECTED(int64_t, random_all, 0, msa_random_integers_from(seeded(), out, n, MSA_INT64, INT64_MIN));
    DRAWS_EXPECTED(int64_t, permutation, 0, msa_random_permutation(seeded(), out, n, MSA_INT64));
    DRAWS_EXPECTED(float, permutation, 0, msa_random_permutation(seeded(), out, n, MSA_FLOAT32));
}

static void samplers_are_pytorchs(void) {
    float weights[] = {0.1f, 0.2f, 0.3f, 0.4f, 4, 3, 0, 1};
    DRAWS_EXPECTED(int64_t, with_replacement, 0,
                   msa_random_multinomial(seeded(), out, weights, MSA_FLOAT32, 2, 4, 6, true));
    DRAWS_EXPECTED(int64_t, without_replacement, 0,
                   msa_random_multinomial(seeded(), out, weights, MSA_FLOAT32, 2, 4, 3, false));
    float rates[] = {0.5f, 3, 9, 10, 40, 1000}, counts[] = {7, 20, 100, 1000}, chances[] = {0.5f, 0.9f, 0.3f, 0.02f};
    DRAWS_EXPECTED(float, poisson, 0, msa_random_poisson(seeded(), out, rates, n, MSA_FLOAT32));
    DRAWS_EXPECTED(float, binomial, 0, msa_random_binomial(seeded(), out, counts, chances, n, MSA_FLOAT32));
    double shapes[] = {0.1, 0.9, 1, 7.5};
    DRAWS_EXPECTED(double, gamma_numbers, 1e-13, msa_random_gamma(seeded(), out, shapes, n, MSA_FLOAT64));
    float alpha[] = {0.5f, 1, 2, 9, 8, 7};
    DRAWS_EXPECTED(float, dirichlet, 1e-6, msa_random_dirichlet(seeded(), out, alpha, 2, 3, MSA_FLOAT32));
}

static void state_has_pytorchs_bytes_and_restores(void) {
    static unsigned char state[MSA_GENERATOR_STATE_BYTES];
    float three[3], before[40], after[40];
    CHECK(msa_random_normal(seeded(), three, 3, MSA_FLOAT32, 0, 1, false) == 0);
    msa_generator_get_state(g, state);
    uint64_t hash = UINT64_C(1469598103934665603);
    for (size_t i = 0; i < sizeof state; i++) hash = (hash ^ state[i]) * UINT64_C(1099511628211);
    CHECK(hash == state_hash);
    CHECK(msa_random_normal(g, before, 5, MSA_FLOAT32, 0, 1, false) == 0); /* begins with the kept half of a pair */
    msa_generator *copy = msa_generator_new(1);
    CHECK(copy && msa_generator_set_state(copy, state, sizeof state) == 0);
    CHECK(msa_random_normal(copy, after, 5, MSA_FLOAT32, 0, 1, false) == 0);
    CHECK(memcmp(before, after, 5 * sizeof *before) == 0);
    msa_generator_free(copy);
}

static void wrong_states_are_refused(void) {
    static unsigned char state[MSA_GENERATOR_STATE_BYTES];
    CHECK(msa_generator_set_state(g, state, 10) == -1 && msa_error_get() == MSA_RUNTIME_ERROR);
    CHECK(msa_generator_set_state(g, state, sizeof state) == -1); /* not seeded */
    msa_generator_get_state(seeded(), state);
    int32_t left = 600; /* would read past the end of the twister */
    uint64_t next = 600;
    memcpy(state + 8, &left, sizeof left);
    memcpy(state + 16, &next, sizeof next);
    CHECK(msa_generator_set_state(g, state, sizeof state) == -1);
}

static void wrong_arguments_are_refused(void) {
    float x[4] = {0};
    int64_t k[4];
    CHECK(msa_random_normal(g, x, 4, MSA_FLOAT32, 0, -1, false) == -1);
    CHECK(strcmp(msa_error_message(), "normal expects std >= 0.0, but found std -1") == 0);
    CHECK(msa_random_normal(g, x, 1, MSA_INT32, 0, 1, false) == -1);
    CHECK(msa_random_uniform(g, x, 4, MSA_FLOAT32, 2, 1) == -1);
    CHECK(msa_random_bernoulli(g, x, 4, MSA_FLOAT32, NAN) == -1);
    CHECK(msa_random_integers_between(g, x, 4, MSA_INT8, 0, 1000) == -1);
    CHECK(strcmp(msa_error_message(), "to - 1 is out of bounds for signed char") == 0);
    CHECK(msa_random_multinomial(g, k, x, MSA_FLOAT32, 1, 4, 2, false) == -1);
    CHECK(msa_random_multinomial(g, k, x, MSA_FLOAT32, 1, 4, 5, false) == -1);
    CHECK(msa_random_permutation(g, x, -1, MSA_FLOAT32) == -1);
}

int main(void) {
    g = msa_generator_new(SEED);
    CHECK(g != NULL);
    CHECK(msa_generator_initial_seed(g) == SEED);
    uniform_numbers_are_pytorchs();
    normal_numbers_follow_both_arrangements();
    inversions_are_pytorchs();
    zeros_and_ones_are_pytorchs();
    integers_are_pytorchs();
    samplers_are_pytorchs();
    state_has_pytorchs_bytes_and_restores();
    wrong_states_are_refused();
    wrong_arguments_are_refused();
    msa_generator_free(g);
    return check_report();
}
