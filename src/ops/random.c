/* Random tensors: checks and shapes around the distributions of src/random. */
#include "msadapter/random.h"

#include <math.h>

#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

/* Run a fill over a tensor's memory: in place where it is contiguous, through a dense tensor of its strides otherwise. */
typedef struct {
    msa_tensor *target, *dense;
} filling;

static void *filling_open(filling *f, msa_tensor *t) {
    *f = (filling){t, t->contiguous ? msa_tensor_retain(t) : msa_new_like_values(t, (msa_dtype)t->dtype)};
    return f->dense ? msa_data(f->dense) : NULL;
}

static int filling_close(filling *f, int status) {
    if (status == 0 && f->dense != f->target) status = msa_copy_values(f->target, f->dense);
    msa_tensor_release(f->dense);
    return status;
}

#define FILL(self, CALL) \
    filling f; \
    void *data = filling_open(&f, self); \
    if (!data) return filling_close(&f, -1); \
    int64_t n = (self)->numel; \
    msa_dtype dtype = (msa_dtype)(self)->dtype; \
    return filling_close(&f, CALL)

int uniform_fill(msa_tensor *self, double from, double to, msa_generator *generator) {
    if (!msa_is_inexact((msa_dtype)self->dtype))
        return msa_fail(MSA_RUNTIME_ERROR, "uniform_: only floating-point types are supported, got %s", msa_dtype_type_name((msa_dtype)self->dtype));
    if (from > to) return msa_fail(MSA_RUNTIME_ERROR, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
    FILL(self, msa_random_uniform(generator, data, n, dtype, from, to));
}

int normal_fill(msa_tensor *self, double mean, double std, msa_generator *generator) {
    if (!(std >= 0)) return msa_fail(MSA_RUNTIME_ERROR, "normal_ expects std >= 0.0, but found std %g", std);
    if (!msa_is_inexact((msa_dtype)self->dtype))
        return msa_fail(MSA_NOT_IMPLEMENTED, "\"normal_kernel_cpu\" not implemented for '%s'", msa_dtype_type_name((msa_dtype)self->dtype));
    FILL(self, msa_random_normal(generator, data, n, dtype, mean, std, !self->contiguous));
}

int log_normal_fill(msa_tensor *self, double mean, double std, msa_generator *generator) {
    if (!(std > 0)) return msa_fail(MSA_RUNTIME_ERROR, "log_normal_ expects std > 0.0, but found std=%g", std);
    FILL(self, msa_random_log_normal(generator, data, n, dtype, mean, std));
}

int exponential_fill(msa_tensor *self, double lambd, msa_generator *generator) {
    if (!(lambd > 0)) return msa_fail(MSA_RUNTIME_ERROR, "exponential_ expects lambda > 0.0, but found lambda=%g", lambd);
    FILL(self, msa_random_exponential(generator, data, n, dtype, lambd));
}

int cauchy_fill(msa_tensor *self, double median, double sigma, msa_generator *generator) {
    FILL(self, msa_random_cauchy(generator, data, n, dtype, median, sigma));
}

int geometric_fill(msa_tensor *self, double p, msa_generator *generator) {
    if (!(p > 0 && p < 1)) return msa_fail(MSA_RUNTIME_ERROR, "geometric_ expects p to be in (0, 1), but got p=%g", p);
    FILL(self, msa_random_geometric(generator, data, n, dtype, p));
}

int random_fill(msa_tensor *self, msa_generator *generator) { FILL(self, msa_random_integers(generator, data, n, dtype)); }

int random_to_fill(msa_tensor *self, int64_t to, msa_generator *generator) {
    if (to <= 0) return msa_fail(MSA_RUNTIME_ERROR, "random_ expects 'from' to be less than 'to', but got from=0 >= to=%lld", (long long)to);
    FILL(self, msa_random_integers_between(generator, data, n, dtype, 0, to));
}

int random_from_fill(msa_tensor *self, int64_t from, msa_opt_int to, msa_generator *generator) {
    if (to.has && from >= to.v)
        return msa_fail(MSA_RUNTIME_ERROR, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld", (long long)from, (long long)to.v);
    FILL(self, to.has ? msa_random_integers_between(generator, data, n, dtype, from, to.v) : msa_random_integers_from(generator, data, n, dtype, from));
}

int bernoulli_fill(msa_tensor *self, double p, msa_generator *generator) {
    if (!(p >= 0 && p <= 1)) return msa_fail(MSA_RUNTIME_ERROR, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
    FILL(self, msa_random_bernoulli(generator, data, n, dtype, p));
}

int bernoulli_tensor_fill(msa_tensor *self, msa_tensor *p, msa_generator *generator) {
    if (!msa_is_floating((msa_dtype)p->dtype)) return msa_fail(MSA_RUNTIME_ERROR, "bernoulli_: expected a floating point tensor of probabilities");
    msa_auto msa_tensor *wide = msa_expand(p, msa_sizes(self), false);
    msa_auto msa_tensor *each = wide ? msa_contiguous_values(wide) : NULL;
    if (!each) return -1;
    FILL(self, msa_random_bernoulli_each(generator, data, n, dtype, msa_data(each), (msa_dtype)each->dtype));
}

static msa_dtype or_default(msa_dtype dtype) { return dtype == MSA_NO_DTYPE ? msa_default_dtype() : dtype; }

/* `t` after a fill that answered `status`. */
static msa_tensor *after(msa_tensor *t, int status) {
    if (status == 0) return t;
    msa_tensor_release(t);
    return NULL;
}

msa_tensor *rand_cpu(msa_ints size, msa_generator *generator, msa_dtype dtype) {
    msa_tensor *t = msa_tensor_new(size, or_default(dtype));
    return t ? after(t, uniform_fill(t, 0, 1, generator)) : NULL;
}

msa_tensor *randn_cpu(msa_ints size, msa_generator *generator, msa_dtype dtype) {
    msa_tensor *t = msa_tensor_new(size, or_default(dtype));
    return t ? after(t, normal_fill(t, 0, 1, generator)) : NULL;
}

msa_tensor *randint_low_cpu(int64_t low, int64_t high, msa_ints size, msa_generator *generator, msa_dtype dtype) {
    msa_tensor *t = msa_tensor_new(size, dtype == MSA_NO_DTYPE ? MSA_INT64 : dtype);
    return t ? after(t, random_from_fill(t, low, (msa_opt_int){true, high}, generator)) : NULL;
}

msa_tensor *randint_cpu(int64_t high, msa_ints size, msa_generator *generator, msa_dtype dtype) {
    return randint_low_cpu(0, high, size, generator, dtype);
}

msa_tensor *randperm_cpu(int64_t n, msa_generator *generator, msa_dtype dtype) {
    if (n < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "n must be non-negative, got %lld", (long long)n);
    msa_tensor *t = msa_tensor_new(MSA_INTS(n), dtype == MSA_NO_DTYPE ? MSA_INT64 : dtype);
    return t ? after(t, msa_random_permutation(generator, msa_data(t), n, (msa_dtype)t->dtype)) : NULL;
}

msa_tensor *rand_like_cpu(msa_tensor *self, int memory_format, msa_dtype dtype) {
    msa_tensor *t = empty_like_cpu(self, memory_format, dtype);
    return t ? after(t, uniform_fill(t, 0, 1, NULL)) : NULL;
}

msa_tensor *randn_like_cpu(msa_tensor *self, int memory_format, msa_dtype dtype) {
    msa_tensor *t = empty_like_cpu(self, memory_format, dtype);
    return t ? after(t, normal_fill(t, 0, 1, NULL)) : NULL;
}

msa_tensor *randint_like_low_cpu(msa_tensor *self, int64_t low, int64_t high, int memory_format, msa_dtype dtype) {
    msa_tensor *t = empty_like_cpu(self, memory_format, dtype);
    return t ? after(t, random_from_fill(t, low, (msa_opt_int){true, high}, NULL)) : NULL;
}

msa_tensor *randint_like_cpu(msa_tensor *self, int64_t high, int memory_format, msa_dtype dtype) {
    return randint_like_low_cpu(self, 0, high, memory_format, dtype);
}

/* mean + std * z with z standard normal, as PyTorch makes it. */
static msa_tensor *normal_of(msa_tensor *z, msa_tensor *mean, msa_tensor *std) {
    msa_auto msa_tensor *owned = z;
    msa_auto msa_tensor *wide = owned ? msa_mul(owned, std) : NULL;
    return wide ? msa_add(wide, mean, msa_int(1)) : NULL;
}

static int check_std(msa_tensor *std) {
    if (msa_is_complex((msa_dtype)std->dtype)) return msa_fail(MSA_RUNTIME_ERROR, "normal expects standard deviation to be non-complex");
    if (std->numel == 0) return 0;
    msa_auto msa_tensor *least = msa_min(std);
    msa_scalar value;
    if (!least || msa_tensor_item(least, &value) != 0) return -1;
    return msa_scalar_double(value) >= 0 ? 0 : msa_fail(MSA_RUNTIME_ERROR, "normal expects all elements of std >= 0.0");
}

msa_tensor *normal_tensor_float_cpu(msa_tensor *mean, double std, msa_generator *generator) {
    if (!(std >= 0)) return msa_fail_null(MSA_RUNTIME_ERROR, "normal expects std >= 0.0, but found std %g", std);
    msa_auto msa_tensor *z = msa_new_like_values(mean, (msa_dtype)mean->dtype);
    if (!z || normal_fill(z, 0, std, generator) != 0) return NULL;
    return msa_add(z, mean, msa_int(1));
}

msa_tensor *normal_float_tensor_cpu(double mean, msa_tensor *std, msa_generator *generator) {
    if (check_std(std) != 0) return NULL;
    msa_tensor *z = msa_new_like_values(std, (msa_dtype)std->dtype);
    if (!z || normal_fill(z, 0, 1, generator) != 0) {
        msa_tensor_release(z);
        return NULL;
    }
    msa_auto msa_tensor *number = msa_wrap_number(msa_float(mean));
    return number ? normal_of(z, number, std) : NULL;
}

msa_tensor *normal_tensor_tensor_cpu(msa_tensor *mean, msa_tensor *std, msa_generator *generator) {
    if (check_std(std) != 0) return NULL;
    int64_t sizes[MSA_MAX_DIMS];
    int ndim;
    if (msa_broadcast_sizes("normal", msa_sizes(mean), msa_sizes(std), sizes, &ndim) != 0) return NULL;
    msa_tensor *z = msa_tensor_new((msa_ints){sizes, ndim}, msa_result_type(MSA_TENSORS(mean, std)));
    if (!z || normal_fill(z, 0, 1, generator) != 0) {
        msa_tensor_release(z);
        return NULL;
    }
    return normal_of(z, mean, std);
}

msa_tensor *normal_float_float_cpu(double mean, double std, msa_ints size, msa_generator *generator, msa_dtype dtype) {
    msa_tensor *t = msa_tensor_new(size, or_default(dtype));
    return t ? after(t, normal_fill(t, mean, std, generator)) : NULL;
}

msa_tensor *bernoulli_cpu(msa_tensor *self, msa_generator *generator) {
    if (!msa_is_floating((msa_dtype)self->dtype))
        return msa_fail_null(MSA_NOT_IMPLEMENTED, "\"bernoulli_tensor_cpu_p_\" not implemented for '%s'", msa_dtype_type_name((msa_dtype)self->dtype));
    msa_tensor *t = msa_new_like_values(self, (msa_dtype)self->dtype);
    return t ? after(t, bernoulli_tensor_fill(t, self, generator)) : NULL;
}

msa_tensor *bernoulli_p_cpu(msa_tensor *self, double p, msa_generator *generator) {
    msa_tensor *t = msa_new_like_values(self, (msa_dtype)self->dtype);
    return t ? after(t, bernoulli_fill(t, p, generator)) : NULL;
}

msa_tensor *multinomial_cpu(msa_tensor *self, int64_t num_samples, bool replacement, msa_generator *generator) {
    if (self->ndim != 1 && self->ndim != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "prob_dist must be 1 or 2 dim");
    if (!msa_is_floating((msa_dtype)self->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "multinomial only supports floating-point dtypes for input, got: %s", msa_dtype_type_name((msa_dtype)self->dtype));
    if (num_samples <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "cannot sample n_sample <= 0 samples");
    int64_t categories = self->sizes[self->ndim - 1], rows = self->ndim == 2 ? self->sizes[0] : 1;
    if (!replacement && num_samples > categories)
        return msa_fail_null(MSA_RUNTIME_ERROR, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    msa_auto msa_tensor *p = msa_contiguous_values(self);
    msa_tensor *out = self->ndim == 2 ? msa_tensor_new(MSA_INTS(rows, num_samples), MSA_INT64) : msa_tensor_new(MSA_INTS(num_samples), MSA_INT64);
    if (!p || !out) {
        msa_tensor_release(out);
        return NULL;
    }
    return after(out, msa_random_multinomial(generator, msa_data(out), msa_data(p), (msa_dtype)p->dtype, rows, categories, num_samples, replacement));
}

msa_tensor *poisson_cpu(msa_tensor *self, msa_generator *generator) {
    msa_auto msa_tensor *rate = msa_contiguous_values(self);
    msa_tensor *out = rate ? msa_tensor_new(msa_sizes(self), (msa_dtype)self->dtype) : NULL;
    return out ? after(out, msa_random_poisson(generator, msa_data(out), msa_data(rate), out->numel, (msa_dtype)out->dtype)) : NULL;
}

msa_tensor *standard_gamma_cpu(msa_tensor *self, msa_generator *generator) {
    msa_auto msa_tensor *alpha = msa_contiguous_values(self);
    msa_tensor *out = alpha ? msa_tensor_new(msa_sizes(self), (msa_dtype)self->dtype) : NULL;
    return out ? after(out, msa_random_gamma(generator, msa_data(out), msa_data(alpha), out->numel, (msa_dtype)out->dtype)) : NULL;
}

msa_tensor *sample_dirichlet_cpu(msa_tensor *self, msa_generator *generator) {
    if (self->ndim == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "_sample_dirichlet: expected concentrations with at least one dimension, got a scalar");
    msa_auto msa_tensor *alpha = msa_contiguous_values(self);
    msa_tensor *out = alpha ? msa_tensor_new(msa_sizes(self), (msa_dtype)self->dtype) : NULL;
    if (!out) return NULL;
    const int64_t columns = self->sizes[self->ndim - 1], rows = columns ? self->numel / columns : 0;
    return after(out, msa_random_dirichlet(generator, msa_data(out), msa_data(alpha), rows, columns, (msa_dtype)out->dtype));
}

/* Each part moves along its own marginal beta variable, the others keep their proportions. */
msa_tensor *sample_dirichlet_gradient(msa_tensor *grad, msa_tensor *alpha, msa_tensor *x) {
    msa_auto msa_tensor *total = msa_sum_dim_IntList(alpha, MSA_INTS(-1), true, MSA_NO_DTYPE);
    msa_auto msa_tensor *slope = total ? msa__dirichlet_grad(x, alpha, total) : NULL, *weighted = slope ? msa_mul(x, grad) : NULL;
    msa_auto msa_tensor *mean = weighted ? msa_sum_dim_IntList(weighted, MSA_INTS(-1), true, MSA_NO_DTYPE) : NULL;
    msa_auto msa_tensor *apart = mean ? msa_sub(grad, mean, msa_int(1)) : NULL;
    return apart ? msa_mul(slope, apart) : NULL;
}

msa_tensor *binomial_cpu(msa_tensor *count, msa_tensor *prob, msa_generator *generator) {
    if (count->dtype != prob->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "binomial: expected count and prob of one dtype, got %s and %s",
                             msa_dtype_type_name((msa_dtype)count->dtype), msa_dtype_type_name((msa_dtype)prob->dtype));
    int64_t sizes[MSA_MAX_DIMS];
    int ndim = 0;
    if (msa_broadcast_sizes("binomial", msa_sizes(count), msa_sizes(prob), sizes, &ndim) != 0) return NULL;
    const msa_ints shape = {sizes, ndim};
    msa_auto msa_tensor *n = msa_expand(count, shape, false), *p = n ? msa_expand(prob, shape, false) : NULL;
    msa_auto msa_tensor *counts = p ? msa_contiguous_values(n) : NULL, *chances = counts ? msa_contiguous_values(p) : NULL;
    msa_tensor *out = chances ? msa_tensor_new(shape, (msa_dtype)count->dtype) : NULL;
    if (!out) return NULL;
    return after(out, msa_random_binomial(generator, msa_data(out), msa_data(counts), msa_data(chances), out->numel, (msa_dtype)out->dtype));
}

/* Dropout. */

msa_tensor *dropout_factors_cpu(msa_tensor *self, double p) {
    msa_tensor *t = msa_new_like_values(self, (msa_dtype)self->dtype);
    if (!t) return NULL;
    return after(t, msa_random_dropout(NULL, t->storage->data, t->numel, (msa_dtype)t->dtype, p));
}

static int check_p(const char *op, double p) {
    if (p >= 0 && p <= 1) return 0;
    return msa_fail(MSA_RUNTIME_ERROR, "%s: dropout probability has to be between 0 and 1, but got %g", op, p);
}

static msa_tensor *zeroed(msa_tensor *self) {
    msa_auto msa_tensor *zero = msa_wrap_number(msa_int(0));
    return zero ? msa_mul(self, zero) : NULL;
}

msa_tensor *dropout_values(msa_tensor *self, double p, bool train) {
    if (check_p("dropout", p) != 0) return NULL;
    if (p == 0 || !train || self->numel == 0) return msa_tensor_retain(self);
    if (p == 1) return zeroed(self);
    msa_auto msa_tensor *factors = msa_dropout_factors(self, p);
    return factors ? msa_mul(self, factors) : NULL;
}

/* A tensor of ones in the sizes of the noise of whole features: (N, C, 1, ...). */
static msa_tensor *feature_noise(msa_tensor *self) {
    if (self->ndim < 2) return msa_fail_null(MSA_RUNTIME_ERROR, "Feature dropout requires at least 2 dimensions in the input");
    int64_t sizes[MSA_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++) sizes[i] = i < 2 ? self->sizes[i] : 1;
    return msa_tensor_new((msa_ints){sizes, self->ndim}, (msa_dtype)self->dtype);
}

msa_tensor *feature_dropout_values(msa_tensor *self, double p, bool train) {
    if (check_p("feature_dropout", p) != 0) return NULL;
    if (p == 0 || !train || self->numel == 0) return msa_tensor_retain(self);
    if (p == 1) return zeroed(self);
    msa_auto msa_tensor *model = feature_noise(self);
    msa_auto msa_tensor *factors = model ? msa_dropout_factors(model, p) : NULL;
    return factors ? msa_mul(self, factors) : NULL;
}

/* Self-normalising dropout (Klambauer et al., 2017): dropped values become alpha', then an affine map keeps mean and variance. */
static msa_tensor *alpha_dropped(msa_tensor *self, msa_tensor *noise, double p) {
    static const double alpha = 1.7580993408473766;
    msa_auto msa_tensor *owned = noise;
    if (!owned || bernoulli_fill(owned, 1 - p, NULL) != 0) return NULL;
    double a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
    msa_auto msa_tensor *one = msa_wrap_number(msa_float(1)), *level = msa_wrap_number(msa_float(alpha * a)),
                        *centre = msa_wrap_number(msa_float(alpha * a * p)), *gain = msa_wrap_number(msa_float(a));
    if (!one || !level || !centre || !gain) return NULL;
    msa_auto msa_tensor *less = msa_sub(owned, one, msa_int(1));
    msa_auto msa_tensor *shift = less ? msa_mul(less, level) : NULL;
    msa_auto msa_tensor *b = shift ? msa_add(shift, centre, msa_int(1)) : NULL;
    msa_auto msa_tensor *scale = b ? msa_mul(owned, gain) : NULL;
    msa_auto msa_tensor *kept = scale ? msa_mul(self, scale) : NULL;
    return kept ? msa_add(kept, b, msa_int(1)) : NULL;
}

msa_tensor *alpha_dropout_values(msa_tensor *self, double p, bool train) {
    if (check_p("alpha_dropout", p) != 0) return NULL;
    if (p == 0 || !train || self->numel == 0) return msa_tensor_retain(self);
    if (p == 1) return zeroed(self);
    return alpha_dropped(self, msa_new_like_values(self, (msa_dtype)self->dtype), p);
}

msa_tensor *feature_alpha_dropout_values(msa_tensor *self, double p, bool train) {
    if (check_p("feature_alpha_dropout", p) != 0) return NULL;
    if (p == 0 || !train || self->numel == 0) return msa_tensor_retain(self);
    if (p == 1) return zeroed(self);
    return alpha_dropped(self, feature_noise(self), p);
}

msa_tensor *rrelu_noise_cpu(msa_tensor *self, double lower, double upper, msa_generator *generator) {
    msa_auto msa_tensor *x = msa_contiguous_values(self);
    msa_tensor *noise = x ? msa_tensor_new(msa_sizes(self), (msa_dtype)self->dtype) : NULL;
    return noise ? after(noise, msa_random_rrelu_noise(generator, msa_data(x), msa_data(noise), x->numel, (msa_dtype)x->dtype, lower, upper)) : NULL;
}

msa_tensor *rrelu_values(msa_tensor *self, double lower, double upper, bool training, msa_generator *generator) {
    if (lower > upper) return msa_fail_null(MSA_RUNTIME_ERROR, "rrelu: lower bound should be less than or equal to the upper bound");
    if (!training) return msa_leaky_relu(self, msa_float((lower + upper) / 2));
    msa_auto msa_tensor *noise = msa_rrelu_noise(self, lower, upper, generator);
    return noise ? msa_mul(self, noise) : NULL;
}
