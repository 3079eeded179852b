/* Composites and gradients of reductions. */
#include <math.h>

#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

msa_tensor *zeros_shaped(msa_ints sizes, msa_dtype dtype) {
    msa_auto msa_tensor *t = msa_tensor_new(sizes, dtype);
    return t && msa_fill_values(t, msa_int(0)) == 0 ? msa_take(t) : NULL;
}

/* Equal extremes share the gradient. */
msa_tensor *extreme_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *result, msa_ints dim, bool keepdim) {
    msa_auto msa_tensor *wide = unreduced(result, msa_sizes(self), dim, keepdim);
    msa_auto msa_tensor *wide_grad = unreduced(grad, msa_sizes(self), dim, keepdim);
    msa_auto msa_tensor *hit = wide ? msa_eq(self, wide) : NULL;
    if (!hit || !wide_grad) return NULL;
    if (wide->numel && msa_is_floating((msa_dtype)result->dtype)) {
        /* A NaN equals nothing: it wins where the result is one. */
        msa_auto msa_tensor *nan_result = msa_isnan(wide), *nan_self = msa_isnan(self);
        msa_auto msa_tensor *nan_hit = nan_result && nan_self ? msa_logical_and(nan_result, nan_self) : NULL;
        msa_tensor *any = nan_hit ? msa_logical_or(hit, nan_hit) : NULL;
        if (!any) return NULL;
        msa_tensor_release(hit);
        hit = any;
    }
    msa_auto msa_tensor *counts = dim.n > 0 ? msa_sum_dim_IntList(hit, dim, true, MSA_NO_DTYPE) : msa_sum(hit, MSA_NO_DTYPE);
    msa_auto msa_tensor *share = counts ? msa_div(wide_grad, counts) : NULL;
    return share ? masked_grad(share, hit) : NULL;
}

msa_tensor *scattered(msa_tensor *grad, msa_ints sizes, int64_t dim, msa_tensor *indices, bool keepdim) {
    msa_auto msa_tensor *zeros = zeros_shaped(sizes, (msa_dtype)grad->dtype);
    if (!zeros) return NULL;
    if (sizes.n == 0) return msa_add(zeros, grad, msa_int(1));
    msa_auto msa_tensor *g = keepdim ? msa_tensor_retain(grad) : msa_unsqueeze(grad, dim);
    msa_auto msa_tensor *i = keepdim ? msa_tensor_retain(indices) : msa_unsqueeze(indices, dim);
    return g && i ? msa_scatter_src(zeros, dim, i, g) : NULL;
}

msa_tensor *scatter_added(msa_tensor *grad, msa_ints sizes, int64_t dim, msa_tensor *indices) {
    msa_auto msa_tensor *zeros = zeros_shaped(sizes, (msa_dtype)grad->dtype);
    if (!zeros) return NULL;
    return sizes.n == 0 ? msa_add(zeros, grad, msa_int(1)) : msa_scatter_add(zeros, dim, indices, grad);
}

msa_tensor *reversed_cumsum(msa_tensor *grad, int64_t dim) {
    if (grad->ndim == 0) return msa_tensor_retain(grad);
    msa_auto msa_tensor *flipped = msa_flip(grad, MSA_INTS(dim));
    msa_auto msa_tensor *sum = flipped ? msa_cumsum(flipped, dim, MSA_NO_DTYPE) : NULL;
    return sum ? msa_flip(sum, MSA_INTS(dim)) : NULL;
}

/* One sign's part of the gradient: exp(self + reversed logcumsumexp(log |grad| - result)) where grad has that sign. */
static msa_tensor *logcumsumexp_part(msa_tensor *size, msa_tensor *self, msa_tensor *result, int64_t dim) {
    msa_auto msa_tensor *logarithm = msa_log(size), *shifted = logarithm ? msa_sub(logarithm, result, msa_int(1)) : NULL;
    msa_auto msa_tensor *flipped = shifted ? msa_flip(shifted, self->ndim ? MSA_INTS(dim) : (msa_ints){NULL, 0}) : NULL;
    msa_auto msa_tensor *sum = flipped ? msa_logcumsumexp(flipped, dim) : NULL;
    msa_auto msa_tensor *back = sum ? msa_flip(sum, self->ndim ? MSA_INTS(dim) : (msa_ints){NULL, 0}) : NULL;
    msa_auto msa_tensor *exponent = back ? msa_add(back, self, msa_int(1)) : NULL;
    return exponent ? msa_exp(exponent) : NULL;
}

msa_tensor *logcumsumexp_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *result, int64_t dim) {
    msa_auto msa_tensor *negative = msa_neg(grad);
    msa_auto msa_tensor *up = msa_relu(grad), *down = negative ? msa_relu(negative) : NULL;
    msa_auto msa_tensor *plus = up ? logcumsumexp_part(up, self, result, dim) : NULL;
    msa_auto msa_tensor *minus = down ? logcumsumexp_part(down, self, result, dim) : NULL;
    return plus && minus ? msa_sub(plus, minus, msa_int(1)) : NULL;
}

msa_tensor *var_gradient(msa_tensor *grad, msa_tensor *self, msa_ints dim, int64_t correction, bool keepdim) {
    int64_t count = reduced_count(msa_sizes(self), dim);
    msa_auto msa_tensor *wide = unreduced(grad, msa_sizes(self), dim, keepdim);
    msa_auto msa_tensor *mean = dim.n > 0 ? msa_mean_dim(self, dim, true, MSA_NO_DTYPE) : msa_mean(self, MSA_NO_DTYPE);
    msa_auto msa_tensor *centred = mean ? msa_sub(self, mean, msa_int(1)) : NULL;
    msa_auto msa_tensor *factor = msa_wrap_number(msa_float(count > correction ? 2.0 / (double)(count - correction) : NAN));
    msa_auto msa_tensor *slope = centred && factor ? msa_mul(centred, factor) : NULL;
    return slope && wide ? msa_mul(wide, slope) : NULL;
}

/* d|x|_p / dx = sgn(x) |x|^(p-1) / |x|_p^(p-1), with the limits at 0 and at infinity. */
msa_tensor *vector_norm_gradient(msa_tensor *grad, msa_tensor *self, msa_scalar ord, msa_tensor *result, msa_ints dim, bool keepdim) {
    double order = msa_scalar_double(ord);
    msa_auto msa_tensor *wide_grad = unreduced(grad, msa_sizes(self), dim, keepdim);
    msa_auto msa_tensor *wide = unreduced(result, msa_sizes(self), dim, keepdim);
    msa_auto msa_tensor *zero = msa_wrap_number(msa_int(0));
    if (!wide_grad || !wide || !zero) return NULL;
    if (order == 0) return msa_mul(self, zero);
    msa_auto msa_tensor *direction = msa_sgn(self), *length = msa_abs(self);
    if (!direction || !length) return NULL;
    if (order == 1) return msa_mul(direction, wide_grad);
    if (order == 2) {
        msa_auto msa_tensor *ratio = msa_div(self, wide), *none = msa_eq(wide, zero);
        msa_auto msa_tensor *safe = ratio && none ? msa_where(none, zero, ratio) : NULL;
        return safe ? msa_mul(safe, wide_grad) : NULL;
    }
    if (isinf(order)) {
        msa_auto msa_tensor *hit = msa_eq(length, wide);
        msa_auto msa_tensor *counts = !hit ? NULL : dim.n > 0 ? msa_sum_dim_IntList(hit, dim, true, MSA_NO_DTYPE) : msa_sum(hit, MSA_NO_DTYPE);
        msa_auto msa_tensor *share = counts ? msa_div(wide_grad, counts) : NULL;
        msa_auto msa_tensor *signed_share = share ? msa_mul(direction, share) : NULL;
        return signed_share ? msa_where(hit, signed_share, zero) : NULL;
    }
    msa_auto msa_tensor *power = msa_pow_Tensor_Scalar(length, msa_float(order - 1));
    msa_auto msa_tensor *scale = msa_pow_Tensor_Scalar(wide, msa_float(order - 1));
    msa_auto msa_tensor *ratio = power && scale ? msa_div(power, scale) : NULL;
    msa_auto msa_tensor *signed_ratio = ratio ? msa_mul(direction, ratio) : NULL;
    msa_auto msa_tensor *none = msa_eq(order < 1 ? length : wide, zero);
    msa_auto msa_tensor *safe = signed_ratio && none ? msa_where(none, zero, signed_ratio) : NULL;
    return safe ? msa_mul(safe, wide_grad) : NULL;
}

int aminmax_values(msa_tensor *self, msa_opt_int dim, bool keepdim, msa_tensor **results) {
    results[0] = results[1] = NULL;
    msa_ints dims = dim.has ? MSA_INTS(dim.v) : (msa_ints){NULL, 0};
    msa_auto msa_tensor *least = msa_amin(self, dims, keepdim), *most = least ? msa_amax(self, dims, keepdim) : NULL;
    if (!most) return -1;
    if (self->ndim == 0 && dim.has && keepdim) { /* unlike amin and amax this makes a 0-dim tensor a vector */
        results[0] = msa_reshape(least, MSA_INTS(1));
        results[1] = results[0] ? msa_reshape(most, MSA_INTS(1)) : NULL;
        return results[1] ? 0 : -1;
    }
    results[0] = msa_take(least);
    results[1] = msa_take(most);
    return 0;
}

static int variance_and_mean(msa_tensor *self, msa_ints dim, int64_t correction, bool keepdim, bool root, msa_tensor **results) {
    results[0] = results[1] = NULL;
    msa_auto msa_tensor *variance = msa__var(self, dim, correction, keepdim);
    if (!variance) return -1;
    results[0] = root ? msa_root_of_variance(variance) : msa_tensor_retain(variance);
    if (dim.n > 0) results[1] = msa_mean_dim(self, dim, keepdim, MSA_NO_DTYPE);
    else results[1] = msa_mean_dim(self, MSA_NO_INTS, keepdim, MSA_NO_DTYPE);
    return results[0] && results[1] ? 0 : -1;
}

int var_mean_all(msa_tensor *self, bool unbiased, msa_tensor **results) {
    return variance_and_mean(self, MSA_NO_INTS, unbiased, false, false, results);
}

int var_mean_dim(msa_tensor *self, msa_ints dim, bool unbiased, bool keepdim, msa_tensor **results) {
    return variance_and_mean(self, dim, unbiased, keepdim, false, results);
}

int var_mean_correction(msa_tensor *self, msa_ints dim, msa_opt_int correction, bool keepdim, msa_tensor **results) {
    return variance_and_mean(self, dim, correction.has ? correction.v : 1, keepdim, false, results);
}

int std_mean_all(msa_tensor *self, bool unbiased, msa_tensor **results) {
    return variance_and_mean(self, MSA_NO_INTS, unbiased, false, true, results);
}

int std_mean_dim(msa_tensor *self, msa_ints dim, bool unbiased, bool keepdim, msa_tensor **results) {
    return variance_and_mean(self, dim, unbiased, keepdim, true, results);
}

int std_mean_correction(msa_tensor *self, msa_ints dim, msa_opt_int correction, bool keepdim, msa_tensor **results) {
    return variance_and_mean(self, dim, correction.has ? correction.v : 1, keepdim, true, results);
}

msa_tensor *msort_values(msa_tensor *self) {
    if (self->ndim == 0) return msa_clone(self, -1);
    msa_tensor *results[2];
    if (msa_sort(self, 0, false, results) != 0) return NULL;
    msa_tensor_release(results[1]);
    return results[0];
}
