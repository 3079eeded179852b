/* Random numbers: the generator and the distributions that give PyTorch's own streams on the CPU.
 *
 * A seed gives here the numbers that PyTorch 1.12 and 1.13 (built without MKL) give for it on the CPU: the same draws
 * from the same Mersenne twister, in the same order, with the same arithmetic. The functions fill contiguous buffers of
 * n elements and know nothing of tensors; a strided tensor is filled in the order of its memory. Everything takes a
 * generator, NULL meaning the default one, locks it for the whole fill, and returns 0 or -1 with the error set.
 *
 * Below, u is a uniform number of [0, 1) with 53 bits made from two draws (the first one is the high half), and
 * "rounded" means rounded to the buffer's type at the end. */
#ifndef MSADAPTER_RANDOM_H
#define MSADAPTER_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "msadapter/dtype.h"
#include "msadapter/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* MT19937: M. Matsumoto and T. Nishimura, "Mersenne Twister: A 623-dimensionally equidistributed uniform pseudo-random
 * number generator", ACM TOMACS 8 (1998). A generator also holds the second half of the last pair of normal numbers. */
typedef struct msa_generator msa_generator;

enum {
    MSA_GENERATOR_STATE_BYTES = 5056,  /* what torch.get_rng_state() returns */
    MSA_GENERATOR_LEGACY_BYTES = 5048, /* the older form, accepted by msa_generator_set_state */
};
#define MSA_GENERATOR_DEFAULT_SEED UINT64_C(67280421310721) /* of torch.Generator() */

MSA_API msa_generator *msa_generator_new(uint64_t seed);
MSA_API msa_generator *msa_generator_clone(msa_generator *g); /* an independent copy of the state */
MSA_API void msa_generator_free(msa_generator *g);            /* NULL and the default generator are left alone */
MSA_API msa_generator *msa_generator_default(void);           /* seeded from the system at first use */

MSA_API void msa_generator_manual_seed(msa_generator *g, uint64_t seed);
MSA_API uint64_t msa_generator_seed(msa_generator *g); /* seed from the system; returns the 53-bit seed */
MSA_API uint64_t msa_generator_initial_seed(msa_generator *g);
/* `state` has MSA_GENERATOR_STATE_BYTES bytes, in the layout of torch.get_rng_state(). */
MSA_API void msa_generator_get_state(msa_generator *g, void *state);
MSA_API int msa_generator_set_state(msa_generator *g, const void *state, size_t bytes);

MSA_API uint32_t msa_generator_random(msa_generator *g);
MSA_API uint64_t msa_generator_random64(msa_generator *g); /* two draws, the first one is the high half */

/* Floating and complex (each part): from + (to - from) * v, v having as many bits as the type's significand (24 for
 * float32, 53 for float64, 11 and 8 for the half types), the low bits of one draw (two for float64). */
MSA_API int msa_random_uniform(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double from, double to);

/* Floating and complex (each part with mean and std / sqrt 2). G. Box and M. Muller, "A note on the generation of
 * random normal deviates", Annals of Mathematical Statistics 29 (1958), in two arrangements: with 16 elements and more,
 * blocks of 16 uniform numbers of the buffer's type, the radius from the first 8, the angle from the last 8, and the
 * last 16 drawn anew where n is not a multiple of 16; with fewer, or where `serial` (the tensor is not contiguous),
 * pairs in float64 whose sine is kept for the next element. */
MSA_API int msa_random_normal(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double mean, double std,
                              bool serial);
/* exp(normal(mean, std)), always in pairs. */
MSA_API int msa_random_log_normal(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double mean, double std);
/* -log(1 - u) / lambda by inversion. */
MSA_API int msa_random_exponential(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double lambda);
/* median + sigma * tan(pi * (u - 1/2)) by inversion. */
MSA_API int msa_random_cauchy(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double median, double sigma);
/* ceil(log(u) / log(1 - p)) by inversion; integers and floating types. */
MSA_API int msa_random_geometric(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double p);

/* 1 where u < p, else 0; every type that is not complex. */
MSA_API int msa_random_bernoulli(msa_generator *g, void *data, int64_t n, msa_dtype dtype, double p);
/* The same with a probability for each element (n of them, floating type p_dtype): one draw of 24 bits each, u for
 * float64. */
MSA_API int msa_random_bernoulli_each(msa_generator *g, void *data, int64_t n, msa_dtype dtype, const void *p,
                                      msa_dtype p_dtype);
/* The factors of dropout with probability p in [0, 1]: bernoulli(1 - p) / (1 - p), in a floating type. With p = 1 all
 * zeros. */
MSA_API int msa_random_dropout(msa_generator *g, void *factors, int64_t n, msa_dtype dtype, double p);
/* The noise of rrelu in training: uniform(lower, upper) in float64, rounded, where x <= 0 (only there is a number
 * drawn) and 1 elsewhere. x and noise have n elements of one floating type. */
MSA_API int msa_random_rrelu_noise(msa_generator *g, const void *x, void *noise, int64_t n, msa_dtype dtype,
                                   double lower, double upper);

/* random_(): integers from 0 to the type's largest value, or to 2^significand in a floating type. */
MSA_API int msa_random_integers(msa_generator *g, void *data, int64_t n, msa_dtype dtype);
/* random_(from, to): integers of [from, to), one draw each, two where the range is 2^32 or more. */
MSA_API int msa_random_integers_between(msa_generator *g, void *data, int64_t n, msa_dtype dtype, int64_t from,
                                        int64_t to);
/* random_(from, None): integers from `from` up to the largest; from = INT64_MIN gives all 64 bits. */
MSA_API int msa_random_integers_from(msa_generator *g, void *data, int64_t n, msa_dtype dtype, int64_t from);

/* A permutation of 0..n-1, in any type but bool and complex. R. Durstenfeld, "Algorithm 235: Random permutation",
 * Communications of the ACM 7 (1964); one 32-bit draw a step. */
MSA_API int msa_random_permutation(msa_generator *g, void *data, int64_t n, msa_dtype dtype);

/* p is (rows, categories) of a floating type, not necessarily normalised; out is (rows, samples). With replacement, by
 * bisection of the cumulative sums, u each; without it, the largest p / Exp(1) (P. Efraimidis and P. Spirakis,
 * "Weighted random sampling with a reservoir", Information Processing Letters 97 (2006)), equal ones in the order of
 * categories. */
MSA_API int msa_random_multinomial(msa_generator *g, int64_t *out, const void *p, msa_dtype dtype, int64_t rows,
                                   int64_t categories, int64_t samples, bool replacement);

/* Elementwise over n elements of one floating type; out may be the first input.
 * Poisson: W. Hoermann, "The transformed rejection method for generating Poisson random variables", Insurance:
 * Mathematics and Economics 12 (1993), for rates of 10 and more; products of uniform numbers below. */
MSA_API int msa_random_poisson(msa_generator *g, void *out, const void *rate, int64_t n, msa_dtype dtype);
/* Binomial: W. Hoermann, "The generation of binomial random variates", Journal of Statistical Computation and
 * Simulation 46 (1993), where count * min(p, 1 - p) >= 10; sums of geometric numbers below. */
MSA_API int msa_random_binomial(msa_generator *g, void *out, const void *count, const void *p, int64_t n,
                                msa_dtype dtype);
/* Gamma with unit scale: G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26
 * (2000). */
MSA_API int msa_random_gamma(msa_generator *g, void *out, const void *alpha, int64_t n, msa_dtype dtype);
/* Dirichlet: gamma numbers over their sum, for each of the rows; alpha and out are (rows, columns). */
MSA_API int msa_random_dirichlet(msa_generator *g, void *out, const void *alpha, int64_t rows, int64_t columns,
                                 msa_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
