/* What pointwise rows need beyond an expression: choices between rows, and gradients with conditions. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

msa_tensor *positive_values(msa_tensor *self) {
    if (self->dtype == MSA_BOOL) return msa_fail_null(MSA_RUNTIME_ERROR, "The `+` operator, on a bool tensor is not supported.");
    return msa_tensor_retain(self);
}

int check_divisor(msa_tensor *self, msa_tensor *other) {
    if (!msa_is_integral((msa_dtype)other->dtype, true) || msa_is_inexact((msa_dtype)self->dtype) || other->numel == 0) return 0;
    msa_auto msa_tensor *all = msa_all(other);
    msa_scalar value;
    if (!all || msa_tensor_item(all, &value) != 0) return -1;
    return value.i ? 0 : msa_fail(MSA_RUNTIME_ERROR, "ZeroDivisionError");
}

msa_tensor *div_mode(msa_tensor *self, msa_tensor *other, const char *rounding_mode) {
    if (!rounding_mode) return msa_div(self, other);
    if (strcmp(rounding_mode, "trunc") == 0) return msa_div_trunc(self, other);
    if (strcmp(rounding_mode, "floor") == 0) return msa_div_floor(self, other);
    return msa_fail_null(MSA_RUNTIME_ERROR, "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'", rounding_mode);
}

msa_tensor *pow_scalar(msa_tensor *self, msa_scalar exponent) {
    if (exponent.kind != MSA_COMPLEX128 && msa_is_integral((msa_dtype)self->dtype, true) && exponent.kind == MSA_INT64 && exponent.i < 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Integers to negative integer powers are not allowed.");
    msa_auto msa_tensor *number = msa_wrap_number(exponent);
    if (!number) return NULL;
    msa_tensor *operands[] = {self, number};
    bool same = msa_result_type((msa_tensors){operands, 2}) == (msa_dtype)self->dtype;
    if (same && exponent.kind != MSA_COMPLEX128 && msa_scalar_double(exponent) == 2) return msa_square(self);
    if (same && exponent.kind != MSA_COMPLEX128 && msa_scalar_double(exponent) == 0.5 && msa_is_floating((msa_dtype)self->dtype))
        return msa_sqrt(self);
    return msa_pow_values(self, number);
}

msa_tensor *pow_tensor(msa_tensor *self, msa_tensor *exponent) { return msa_pow_values(self, exponent); }

msa_tensor *float_power_tensor(msa_tensor *self, msa_tensor *exponent) {
    bool complex = msa_is_complex((msa_dtype)self->dtype) || msa_is_complex((msa_dtype)exponent->dtype);
    msa_dtype type = complex ? MSA_COMPLEX128 : MSA_FLOAT64;
    msa_auto msa_tensor *base = msa_to_dtype(self, type, false, false, -1);
    msa_auto msa_tensor *power = msa_to_dtype(exponent, type, false, false, -1);
    return base && power ? msa_pow_values(base, power) : NULL;
}

msa_tensor *float_power_inplace(msa_tensor *self, msa_tensor *exponent) {
    bool complex = msa_is_complex((msa_dtype)self->dtype) || msa_is_complex((msa_dtype)exponent->dtype);
    msa_dtype type = complex ? MSA_COMPLEX128 : MSA_FLOAT64;
    if ((msa_dtype)self->dtype != type)
        return msa_fail_null(MSA_RUNTIME_ERROR, "the base given to float_power_ has dtype %s but the operation's result requires dtype %s",
                             msa_dtype_type_name((msa_dtype)self->dtype), msa_dtype_type_name(type));
    msa_auto msa_tensor *power = msa_to_dtype(exponent, type, false, false, -1);
    return power ? msa_pow_Tensor_Tensor_(self, power) : NULL;
}

/* log pi p (p - 1) / 4 + the sum of lgamma(self - i / 2) for i < p. */
msa_tensor *mvlgamma_values(msa_tensor *self, int64_t p) {
    if (p < 1) return msa_fail_null(MSA_RUNTIME_ERROR, "p has to be greater than or equal to 1");
    if (self->dtype == MSA_BOOL || msa_is_complex((msa_dtype)self->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "mvlgamma: %s is not supported", msa_dtype_type_name((msa_dtype)self->dtype));
    if (p > INT32_MAX || p * self->numel > INT64_C(1) << 36) /* PyTorch makes them all at once */
        return msa_fail_null(MSA_RUNTIME_ERROR, "mvlgamma: p=%lld is too large for %lld elements", (long long)p, (long long)self->numel);
    msa_dtype type = msa_is_inexact((msa_dtype)self->dtype) ? (msa_dtype)self->dtype : msa_default_dtype();
    msa_auto msa_tensor *x = msa_to_dtype(self, type, false, false, -1);
    msa_auto msa_tensor *sum = x ? msa_lgamma(x) : NULL;
    for (int64_t i = 1; sum && i < p; i++) {
        msa_auto msa_tensor *shift = msa_wrap_number(msa_float((double)i / 2));
        msa_auto msa_tensor *less = shift ? msa_sub(x, shift, msa_int(1)) : NULL;
        msa_auto msa_tensor *term = less ? msa_lgamma(less) : NULL;
        msa_tensor *next = term ? msa_add(sum, term, msa_int(1)) : NULL;
        msa_tensor_release(sum);
        sum = next;
    }
    msa_auto msa_tensor *constant = msa_wrap_number(msa_float((double)p * ((double)p - 1) / 4 * 1.1447298858494002)); /* log pi */
    return sum && constant ? msa_add(sum, constant, msa_int(1)) : NULL;
}

/* self^2 with an integer exponent: truth values become integers. */
msa_tensor *square_values(msa_tensor *self) {
    if (self->dtype != MSA_BOOL) return msa_square_values(self);
    return msa_to_dtype(self, MSA_INT64, false, true, -1);
}

/* d(a^b)/da = b a^(b-1), and 0 where b is 0. */
msa_tensor *pow_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *exponent) {
    msa_auto msa_tensor *one = msa_wrap_number(msa_int(1)), *zero = msa_wrap_number(msa_int(0));
    if (!one || !zero) return NULL;
    msa_auto msa_tensor *less = msa_sub(exponent, one, msa_int(1));
    msa_auto msa_tensor *power = less ? msa_pow_values(self, less) : NULL;
    msa_auto msa_tensor *slope = power ? msa_mul(exponent, power) : NULL;
    msa_auto msa_tensor *conjugate = slope ? msa_conj(slope) : NULL;
    msa_auto msa_tensor *product = conjugate ? msa_mul(grad, conjugate) : NULL;
    msa_auto msa_tensor *is_zero = product ? msa_eq(exponent, zero) : NULL;
    return is_zero ? msa_where(is_zero, zero, product) : NULL;
}

/* d(a^b)/db = a^b log a, and 0 where a is 0 and b is not negative. */
msa_tensor *pow_exponent_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *exponent, msa_tensor *result) {
    msa_auto msa_tensor *zero = msa_wrap_number(msa_int(0));
    msa_auto msa_tensor *self_zero = zero ? msa_eq(self, zero) : NULL;
    msa_auto msa_tensor *real_exponent = self_zero ? msa_real(exponent) : NULL;
    msa_auto msa_tensor *not_negative = real_exponent ? msa_ge(real_exponent, zero) : NULL;
    msa_auto msa_tensor *excluded = not_negative ? msa_logical_and(self_zero, not_negative) : NULL;
    msa_auto msa_tensor *logarithm = excluded ? msa_log(self) : NULL;
    msa_auto msa_tensor *slope = logarithm ? msa_mul(result, logarithm) : NULL;
    msa_auto msa_tensor *conjugate = slope ? msa_conj(slope) : NULL;
    msa_auto msa_tensor *product = conjugate ? msa_mul(grad, conjugate) : NULL;
    return product ? msa_where(excluded, zero, product) : NULL;
}

msa_tensor *share_of_extreme(msa_tensor *grad, msa_tensor *wins, msa_tensor *ties) {
    msa_auto msa_tensor *zero = msa_wrap_number(msa_int(0)), *two = msa_wrap_number(msa_int(2));
    msa_auto msa_tensor *half = zero && two ? msa_div(grad, two) : NULL;
    msa_auto msa_tensor *tied = half ? msa_where(ties, half, zero) : NULL;
    return tied ? msa_where(wins, grad, tied) : NULL;
}

msa_tensor *masked_grad(msa_tensor *grad, msa_tensor *mask) {
    msa_auto msa_tensor *zero = msa_wrap_number(msa_int(0));
    return zero ? msa_where(mask, grad, zero) : NULL;
}

msa_tensor *copysign_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *result) {
    msa_auto msa_tensor *zero = msa_wrap_number(msa_int(0));
    msa_auto msa_tensor *ratio = msa_div(result, self);
    msa_auto msa_tensor *is_zero = ratio && zero ? msa_eq(self, zero) : NULL;
    msa_auto msa_tensor *slope = is_zero ? msa_where(is_zero, zero, ratio) : NULL;
    return slope ? msa_mul(grad, slope) : NULL;
}

msa_tensor *abs_gradient(msa_tensor *grad, msa_tensor *self) {
    msa_auto msa_tensor *direction = msa_sgn(self);
    return direction ? msa_mul(grad, direction) : NULL;
}

/* Complex: (grad/|z| - sgn Re(conj(sgn) grad)/|z|); real: 0. */
msa_tensor *sgn_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *result) {
    if (!msa_is_complex((msa_dtype)self->dtype)) return msa_zeros_like(grad, -1, MSA_NO_DTYPE, -1, -1, (msa_opt_int){0}, false);
    msa_auto msa_tensor *zero = msa_wrap_number(msa_int(0));
    msa_auto msa_tensor *length = msa_abs(self);
    msa_auto msa_tensor *conjugate = msa_conj(result);
    msa_auto msa_tensor *along = conjugate ? msa_mul(conjugate, grad) : NULL;
    msa_auto msa_tensor *along_real = along ? msa_real(along) : NULL;
    msa_auto msa_tensor *parallel = along_real ? msa_mul(result, along_real) : NULL;
    msa_auto msa_tensor *across = parallel ? msa_sub(grad, parallel, msa_int(1)) : NULL;
    msa_auto msa_tensor *scaled_down = across && length ? msa_div(across, length) : NULL;
    msa_auto msa_tensor *is_zero = scaled_down && zero ? msa_eq(length, zero) : NULL;
    return is_zero ? msa_where(is_zero, zero, scaled_down) : NULL;
}

/* Complex z = x + iy: (-y + ix) / |z|^2 times grad; real: 0. */
msa_tensor *angle_gradient(msa_tensor *grad, msa_tensor *self) {
    msa_auto msa_tensor *zero = msa_wrap_number(msa_int(0)), *turn = msa_wrap_number(msa_complex(0, 1));
    if (!zero || !turn) return NULL;
    if (!msa_is_complex((msa_dtype)self->dtype)) return msa_mul(grad, zero);
    msa_auto msa_tensor *length = msa_abs(self), *turned = msa_mul(self, turn);
    msa_auto msa_tensor *square = length ? msa_square(length) : NULL;
    msa_auto msa_tensor *slope = square && turned ? msa_div(turned, square) : NULL;
    msa_auto msa_tensor *is_zero = slope ? msa_eq(length, zero) : NULL;
    msa_auto msa_tensor *safe = is_zero ? msa_where(is_zero, zero, slope) : NULL;
    return safe ? msa_mul(grad, safe) : NULL;
}

static int check_tolerances(const char *op, double rtol, double atol) {
    if (rtol < 0) return msa_fail(MSA_RUNTIME_ERROR, "%s: rtol must be greater than or equal to zero, but got %g", op, rtol);
    if (atol < 0) return msa_fail(MSA_RUNTIME_ERROR, "%s: atol must be greater than or equal to zero, but got %g", op, atol);
    return 0;
}

msa_tensor *isclose_values(msa_tensor *self, msa_tensor *other, double rtol, double atol, bool equal_nan) {
    if (self->dtype != other->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "%s did not match %s", msa_dtype_type_name((msa_dtype)self->dtype),
                             msa_dtype_type_name((msa_dtype)other->dtype));
    if (check_tolerances("isclose", rtol, atol) != 0) return NULL;
    return msa_isclose_values(self, other, rtol, atol, equal_nan);
}

int allclose_values(msa_tensor *self, msa_tensor *other, double rtol, double atol, bool equal_nan, msa_scalar *result) {
    msa_auto msa_tensor *close = isclose_values(self, other, rtol, atol, equal_nan);
    msa_auto msa_tensor *plain = close ? msa_contiguous_values(close) : NULL;
    if (!plain) return -1;
    const uint8_t *p = msa_data(plain);
    bool all = true;
    for (int64_t i = 0; i < plain->numel; i++) all = all && p[i];
    *result = msa_bool_scalar(all);
    return 0;
}

int equal_cpu(msa_tensor *self, msa_tensor *other, msa_scalar *result) {
    *result = msa_bool_scalar(false);
    if (!msa_same_sizes(self, other)) return 0;
    if (self->dtype != other->dtype)
        return msa_fail(MSA_RUNTIME_ERROR, "Expected object of scalar type %s but got scalar type %s for argument 'other'",
                        msa_dtype_type_name((msa_dtype)self->dtype), msa_dtype_type_name((msa_dtype)other->dtype));
    msa_auto msa_tensor *differs = msa_ne(self, other);
    msa_auto msa_tensor *plain = differs ? msa_contiguous_values(differs) : NULL;
    if (!plain) return -1;
    const uint8_t *p = msa_data(plain);
    bool any = false;
    for (int64_t i = 0; i < plain->numel; i++) any = any || p[i];
    *result = msa_bool_scalar(!any);
    return 0;
}

static int check_mask(msa_tensor *mask) {
    if (mask->dtype == MSA_BOOL || mask->dtype == MSA_UINT8) return 0;
    return msa_fail(MSA_RUNTIME_ERROR, "masked_fill_ only supports boolean masks, but got mask with dtype %s",
                    msa_dtype_name((msa_dtype)mask->dtype));
}

msa_tensor *masked_fill_scalar(msa_tensor *self, msa_tensor *mask, msa_scalar value) {
    if (check_mask(mask) != 0) return NULL;
    if (value.kind == MSA_COMPLEX128 && !msa_is_complex((msa_dtype)self->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "value cannot be converted to type %s without overflow", msa_dtype_name((msa_dtype)self->dtype));
    return msa_masked_fill_values(self, mask, value);
}

msa_tensor *masked_fill_tensor(msa_tensor *self, msa_tensor *mask, msa_tensor *value) {
    if (check_mask(mask) != 0) return NULL;
    if (value->ndim != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).", value->ndim);
    msa_auto msa_tensor *cast = msa_to_dtype(value, (msa_dtype)self->dtype, false, false, -1);
    return cast ? msa_where(mask, cast, self) : NULL;
}

msa_tensor *clamp_scalar(msa_tensor *self, msa_opt_scalar min, msa_opt_scalar max) {
    if (!min.has && !max.has) return msa_fail_null(MSA_RUNTIME_ERROR, "torch.clamp: At least one of 'min' or 'max' must not be None");
    if (msa_is_complex((msa_dtype)self->dtype)) return msa_fail_null(MSA_RUNTIME_ERROR, "clamp is not supported for complex types");
    return msa_clamp_values(self, min, max);
}

msa_tensor *clamp_tensor(msa_tensor *self, msa_tensor *min, msa_tensor *max) {
    if (!min && !max) return msa_fail_null(MSA_RUNTIME_ERROR, "torch.clamp: At least one of 'min' or 'max' must not be None");
    if (msa_is_complex((msa_dtype)self->dtype)) return msa_fail_null(MSA_RUNTIME_ERROR, "clamp is not supported for complex types");
    if (min && max) return msa_clamp_between(self, min, max);
    return min ? msa_clamp_from(self, min) : msa_clamp_to(self, max);
}

msa_tensor *celu_values(msa_tensor *self, msa_scalar alpha) {
    if (msa_scalar_is_zero(alpha)) return msa_fail_null(MSA_RUNTIME_ERROR, "ZeroDivisionError: alpha cannot be 0 for CELU");
    return msa_elu(self, alpha, msa_float(1), msa_float(1 / msa_scalar_double(alpha)));
}

msa_tensor *gelu_values(msa_tensor *self, const char *approximate) {
    if (strcmp(approximate, "none") == 0) return msa_gelu_erf(self);
    if (strcmp(approximate, "tanh") == 0) return msa_gelu_tanh(self);
    return msa_fail_null(MSA_RUNTIME_ERROR, "approximate argument must be either none or tanh.");
}

/* With u = k (x + c x^3), t = tanh u: grad * (0.5 (1 + t) + 0.5 x (1 - t^2) k (1 + 3 c x^2)). */
msa_tensor *gelu_tanh_gradient(msa_tensor *grad_output, msa_tensor *self) {
    msa_auto msa_tensor *k = msa_wrap_number(msa_float(0.7978845608028654)), *c = msa_wrap_number(msa_float(0.044715)),
                        *c3 = msa_wrap_number(msa_float(3 * 0.044715)), *half = msa_wrap_number(msa_float(0.5)),
                        *one = msa_wrap_number(msa_float(1));
    if (!k || !c || !c3 || !half || !one) return NULL;
    msa_auto msa_tensor *square = msa_mul(self, self);
    msa_auto msa_tensor *cubic = square ? msa_mul(square, c) : NULL;
    msa_auto msa_tensor *bracket = cubic ? msa_add(cubic, one, msa_int(1)) : NULL;
    msa_auto msa_tensor *inner = bracket ? msa_mul(self, bracket) : NULL;
    msa_auto msa_tensor *u = inner ? msa_mul(inner, k) : NULL;
    msa_auto msa_tensor *t = u ? msa_tanh(u) : NULL;
    msa_auto msa_tensor *t_plus = t ? msa_add(t, one, msa_int(1)) : NULL;
    msa_auto msa_tensor *first = t_plus ? msa_mul(t_plus, half) : NULL;
    msa_auto msa_tensor *t_square = t ? msa_mul(t, t) : NULL;
    msa_auto msa_tensor *slope = t_square ? msa_sub(one, t_square, msa_int(1)) : NULL;
    msa_auto msa_tensor *du = square ? msa_mul(square, c3) : NULL;
    msa_auto msa_tensor *du_plus = du ? msa_add(du, one, msa_int(1)) : NULL;
    msa_auto msa_tensor *du_k = du_plus ? msa_mul(du_plus, k) : NULL;
    msa_auto msa_tensor *chain = du_k && slope ? msa_mul(slope, du_k) : NULL;
    msa_auto msa_tensor *half_x = msa_mul(self, half);
    msa_auto msa_tensor *second = chain && half_x ? msa_mul(half_x, chain) : NULL;
    msa_auto msa_tensor *sum = second && first ? msa_add(first, second, msa_int(1)) : NULL;
    return sum ? msa_mul(grad_output, sum) : NULL;
}

msa_tensor *softshrink_checked(msa_tensor *self, msa_scalar lambd) {
    if (msa_scalar_double(lambd) < 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "lambda must be greater or equal to 0, but found to be %g.", msa_scalar_double(lambd));
    return msa_softshrink_values(self, lambd);
}

msa_tensor *prelu_values(msa_tensor *self, msa_tensor *weight) {
    if (self->dtype != weight->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "prelu: Type promoting not supported. Got %s and %s", msa_dtype_name((msa_dtype)self->dtype),
                             msa_dtype_name((msa_dtype)weight->dtype));
    if (weight->ndim > 1)
        return msa_fail_null(MSA_RUNTIME_ERROR, "prelu: Expected `weight` to be a scalar or 1D tensor, but got ndim = %d", (int)weight->ndim);
    if (weight->numel == 1) {
        msa_auto msa_tensor *one = msa_reshape(weight, (msa_ints){NULL, 0});
        return one ? msa_prelu_pointwise(self, one) : NULL;
    }
    if (self->ndim == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Not allow zero-dim input tensor.");
    int64_t channels = self->ndim > 1 ? self->sizes[1] : 1;
    if (channels != weight->numel)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Mismatch of parameter numbers and input channel size. Found parameter numbers = %lld and channel size = %lld.",
                             (long long)weight->numel, (long long)channels);
    int64_t sizes[MSA_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++) sizes[i] = i == 1 ? channels : 1;
    msa_auto msa_tensor *shaped = msa_reshape(weight, (msa_ints){sizes, self->ndim});
    return shaped ? msa_prelu_pointwise(self, shaped) : NULL;
}

msa_tensor *glu_values(msa_tensor *self, int64_t dim) {
    if (self->ndim == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "glu does not support 0-dimensional tensors");
    int d = msa_wrap_dim("glu", dim, self->ndim);
    if (d < 0) return NULL;
    int64_t size = self->sizes[d];
    if (size % 2 != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Halving dimension must be even, but dimension %d is size %lld", d, (long long)size);
    msa_auto msa_tensor *left = msa_narrow(self, d, 0, size / 2), *right = msa_narrow(self, d, size / 2, size / 2);
    msa_auto msa_tensor *gate = right ? msa_sigmoid(right) : NULL;
    return left && gate ? msa_mul(left, gate) : NULL;
}

static int check_levels(int64_t quant_min, int64_t quant_max, int64_t zero_point) {
    if (quant_min > quant_max) return msa_fail(MSA_RUNTIME_ERROR, "`quant_min` should be less than or equal to `quant_max`.");
    if (zero_point < quant_min || zero_point > quant_max) return msa_fail(MSA_RUNTIME_ERROR, "`zero_point` must be between `quant_min` and `quant_max`.");
    return 0;
}

msa_tensor *fake_quantize_numbers(msa_tensor *self, double scale, int64_t zero_point, int64_t quant_min, int64_t quant_max) {
    if (check_levels(quant_min, quant_max, zero_point) != 0) return NULL;
    msa_auto msa_tensor *step = msa_wrap_number(msa_float(scale)), *zero = msa_wrap_number(msa_int(zero_point));
    return step && zero ? msa__fake_quantize(self, step, zero, quant_min, quant_max) : NULL;
}

msa_tensor *fake_quantize_tensors(msa_tensor *self, msa_tensor *scale, msa_tensor *zero_point, int64_t quant_min, int64_t quant_max) {
    if (scale->numel != 1 || zero_point->numel != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "scale and zero_point need to have one element");
    if (quant_min > quant_max) return msa_fail_null(MSA_RUNTIME_ERROR, "`quant_min` should be less than or equal to `quant_max`.");
    return msa__fake_quantize(self, scale, zero_point, quant_min, quant_max);
}

msa_tensor *fake_quantize_channels(msa_tensor *self, msa_tensor *scale, msa_tensor *zero_point, int64_t axis, int64_t quant_min, int64_t quant_max) {
    if (scale->dtype != MSA_FLOAT32) return msa_fail_null(MSA_RUNTIME_ERROR, "Scale must be Float, found %s", msa_dtype_type_name((msa_dtype)scale->dtype));
    if (scale->ndim != 1 || zero_point->ndim != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "scale and zero_point should be 1-D tensors");
    if (scale->numel != zero_point->numel) return msa_fail_null(MSA_RUNTIME_ERROR, "scale and zero-point need to have the same dimensions");
    if (axis < 0 || axis >= self->ndim) return msa_fail_null(MSA_RUNTIME_ERROR, "`axis` must be between 0 and number of dimensions of input");
    if (scale->numel != self->sizes[axis]) return msa_fail_null(MSA_RUNTIME_ERROR, "dimensions of scale and zero-point are not consistent with input tensor");
    if (zero_point->numel) {
        msa_auto msa_tensor *least = msa_min(zero_point), *most = msa_max(zero_point);
        msa_scalar low, high;
        if (!least || !most || msa_tensor_item(least, &low) != 0 || msa_tensor_item(most, &high) != 0) return NULL;
        if (check_levels(quant_min, quant_max, msa_scalar_int(low)) != 0 || check_levels(quant_min, quant_max, msa_scalar_int(high)) != 0) return NULL;
    }
    int64_t sizes[MSA_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++) sizes[i] = i == axis ? scale->numel : 1;
    msa_auto msa_tensor *steps = msa_reshape(scale, (msa_ints){sizes, self->ndim}), *zeros = msa_reshape(zero_point, (msa_ints){sizes, self->ndim});
    return steps && zeros ? msa__fake_quantize(self, steps, zeros, quant_min, quant_max) : NULL;
}
