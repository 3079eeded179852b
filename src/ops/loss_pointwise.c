/* Losses made of pointwise operators and a reduction, which record their own gradients. Entry points pass a failed (NULL)
 * operand on, so that one check at the end is enough. */
#include <math.h>

#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

static msa_tensor *number(double value) { return msa_wrap_number(msa_float(value)); }

static msa_tensor *times(msa_tensor *t, double factor) {
    msa_auto msa_tensor *n = number(factor);
    return msa_mul(t, n);
}

static msa_tensor *plus(msa_tensor *t, double term) {
    msa_auto msa_tensor *n = number(term);
    return msa_add(t, n, msa_int(1));
}

static msa_tensor *minus(msa_tensor *a, msa_tensor *b) { return msa_sub(a, b, msa_int(1)); }

/* factor * t + term */
static msa_tensor *line(msa_tensor *t, double factor, double term) {
    msa_auto msa_tensor *scaled_t = times(t, factor);
    return plus(scaled_t, term);
}

/* t where `kept` holds, 0 elsewhere. */
static msa_tensor *where_kept(msa_tensor *kept, msa_tensor *t) {
    msa_auto msa_tensor *zero = msa_wrap_number(msa_int(0));
    return msa_where(kept, t, zero);
}

static msa_tensor *positive_part(msa_tensor *t) { return msa_clamp_min(t, msa_int(0)); }

static msa_tensor *reduced(msa_tensor *t, int64_t reduction) {
    if (!t || reduction == 0) return msa_tensor_retain(t);
    return reduction == 1 ? msa_mean(t, MSA_NO_DTYPE) : msa_sum(t, MSA_NO_DTYPE);
}

static msa_tensor *distance(msa_tensor *a, msa_tensor *b) {
    msa_auto msa_tensor *difference = minus(a, b);
    return msa_abs(difference);
}

msa_tensor *mse_loss_values(msa_tensor *self, msa_tensor *target, int64_t reduction) {
    msa_auto msa_tensor *difference = minus(self, target), *loss = msa_square(difference);
    return reduced(loss, reduction);
}

msa_tensor *l1_loss_values(msa_tensor *self, msa_tensor *target, int64_t reduction) {
    msa_auto msa_tensor *loss = distance(self, target);
    return reduced(loss, reduction);
}

msa_tensor *smooth_l1_loss_values(msa_tensor *self, msa_tensor *target, int64_t reduction, double beta) {
    if (beta < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "smooth_l1_loss does not support negative values for beta.");
    if (beta == 0) return l1_loss_values(self, target, reduction);
    msa_auto msa_tensor *d = distance(self, target), *limit = number(beta), *near = msa_lt(d, limit);
    msa_auto msa_tensor *square = msa_square(d), *curve = times(square, 0.5 / beta), *straight = plus(d, -0.5 * beta);
    msa_auto msa_tensor *loss = msa_where(near, curve, straight);
    return reduced(loss, reduction);
}

msa_tensor *huber_loss_values(msa_tensor *self, msa_tensor *target, int64_t reduction, double delta) {
    if (!(delta > 0)) return msa_fail_null(MSA_RUNTIME_ERROR, "huber_loss does not support non-positive values for delta.");
    msa_auto msa_tensor *d = distance(self, target), *limit = number(delta), *near = msa_lt(d, limit);
    msa_auto msa_tensor *square = msa_square(d), *curve = times(square, 0.5), *straight = line(d, delta, -0.5 * delta * delta);
    msa_auto msa_tensor *loss = msa_where(near, curve, straight);
    return reduced(loss, reduction);
}

/* ---- cross entropy of truth values ---------------------------------------------------------------------------------- */

static msa_tensor *weighted(msa_tensor *loss, msa_tensor *weight) { return weight ? msa_mul(loss, weight) : msa_tensor_retain(loss); }

static int check_probabilities(msa_tensor *self) {
    msa_auto msa_tensor *values = msa_cast_values(self, MSA_FLOAT64), *dense = values ? msa_contiguous_values(values) : NULL;
    const double *at = dense ? msa_data(dense) : NULL;
    if (!dense || (!at && dense->numel)) return -1;
    for (int64_t i = 0; i < dense->numel; i++)
        if (!(at[i] >= 0 && at[i] <= 1)) return msa_fail(MSA_RUNTIME_ERROR, "all elements of input should be between 0 and 1");
    return 0;
}

msa_tensor *binary_cross_entropy_values(msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction) {
    if (!msa_same_sizes(self, target))
        return msa_fail_null(MSA_RUNTIME_ERROR, "binary_cross_entropy: input of sizes %s and target of sizes %s must have the same sizes",
                             msa_sizes_text(msa_sizes(self)), msa_sizes_text(msa_sizes(target)));
    if (self->dtype != target->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Found dtype %s but expected %s", msa_dtype_type_name((msa_dtype)target->dtype),
                             msa_dtype_type_name((msa_dtype)self->dtype));
    if (!msa_is_floating((msa_dtype)self->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "\"binary_cross_entropy\" not implemented for '%s'", msa_dtype_type_name((msa_dtype)self->dtype));
    if (check_probabilities(self) != 0) return NULL;
    msa_auto msa_tensor *plain = msa_cross_entropy_of_truth(self, target), *loss = weighted(plain, weight);
    return reduced(loss, reduction);
}

/* (1 - t) x - (1 + (w - 1) t) log sigmoid(x) */
msa_tensor *binary_cross_entropy_with_logits_values(msa_tensor *self, msa_tensor *target, msa_tensor *weight, msa_tensor *pos_weight, int64_t reduction) {
    msa_auto msa_tensor *rest = line(target, -1, 1), *linear = msa_mul(rest, self), *log_p = msa_log_sigmoid(self), *factored = NULL;
    if (pos_weight) {
        msa_auto msa_tensor *excess = plus(pos_weight, -1), *share = msa_mul(excess, target), *factor = plus(share, 1);
        factored = msa_mul(log_p, factor);
    } else {
        factored = msa_tensor_retain(log_p);
    }
    msa_auto msa_tensor *plain = minus(linear, factored), *loss = weighted(plain, weight);
    return reduced(loss, reduction);
}

msa_tensor *kl_div_values(msa_tensor *self, msa_tensor *target, int64_t reduction, bool log_target) {
    msa_auto msa_tensor *loss = NULL;
    if (log_target) {
        msa_auto msa_tensor *p = msa_exp(target), *ratio = minus(target, self);
        loss = msa_mul(p, ratio);
    } else {
        msa_auto msa_tensor *own = msa_xlogy(target, target), *cross = msa_mul(target, self);
        loss = minus(own, cross);
    }
    return reduced(loss, reduction);
}

msa_tensor *poisson_nll_loss_values(msa_tensor *input, msa_tensor *target, bool log_input, bool full, double eps, int64_t reduction) {
    msa_auto msa_tensor *loss = NULL;
    if (log_input) {
        msa_auto msa_tensor *rate = msa_exp(input), *cross = msa_mul(target, input);
        loss = minus(rate, cross);
    } else {
        msa_auto msa_tensor *above = plus(input, eps), *log_rate = msa_log(above), *cross = msa_mul(target, log_rate);
        loss = minus(input, cross);
    }
    if (full) { /* Stirling's approximation of log target!, where the target is above 1 */
        msa_auto msa_tensor *log_t = msa_log(target), *product = msa_mul(target, log_t), *first = minus(product, target);
        msa_auto msa_tensor *circle = times(target, 2 * M_PI), *log_circle = msa_log(circle), *stirling = msa_add(first, log_circle, msa_float(0.5));
        msa_auto msa_tensor *one = msa_wrap_number(msa_int(1)), *large = msa_gt(target, one), *kept = where_kept(large, stirling);
        msa_tensor *sum = msa_add(loss, kept, msa_int(1));
        msa_tensor_release(loss);
        loss = sum;
    }
    return reduced(loss, reduction);
}

/* ---- margins ----------------------------------------------------------------------------------------------------- */

msa_tensor *hinge_embedding_loss_values(msa_tensor *self, msa_tensor *target, double margin, int64_t reduction) {
    msa_auto msa_tensor *one = msa_wrap_number(msa_int(1)), *minus_one = msa_wrap_number(msa_int(-1));
    msa_auto msa_tensor *gap = line(self, -1, margin), *hinge = positive_part(gap);
    msa_auto msa_tensor *not_similar = msa_ne(target, one), *not_different = msa_ne(target, minus_one);
    msa_auto msa_tensor *far = where_kept(not_similar, hinge), *near = where_kept(not_different, self), *loss = msa_add(far, near, msa_int(1));
    return reduced(loss, reduction);
}

msa_tensor *margin_ranking_loss_values(msa_tensor *input1, msa_tensor *input2, msa_tensor *target, double margin, int64_t reduction) {
    msa_auto msa_tensor *difference = minus(input1, input2), *wrong = msa_neg(target), *product = msa_mul(wrong, difference);
    msa_auto msa_tensor *gap = plus(product, margin), *loss = positive_part(gap);
    return reduced(loss, reduction);
}

msa_tensor *cosine_embedding_loss_values(msa_tensor *input1, msa_tensor *input2, msa_tensor *target, double margin, int64_t reduction) {
    if (target->ndim > 1) return msa_fail_null(MSA_RUNTIME_ERROR, "0D or 1D target tensor expected, multi-target not supported");
    if (input1->ndim != target->ndim + 1 || input2->ndim != target->ndim + 1)
        return msa_fail_null(MSA_RUNTIME_ERROR, "%dD target tensor expects %dD input tensors, but found inputs with sizes %s and %s.", target->ndim,
                             target->ndim + 1, msa_sizes_text(msa_sizes(input1)), msa_sizes_text(msa_sizes(input2)));
    const msa_ints dim = MSA_INTS(target->ndim);
    msa_auto msa_tensor *product = msa_mul(input1, input2), *dot = msa_sum_dim_IntList(product, dim, false, MSA_NO_DTYPE);
    msa_auto msa_tensor *square1 = msa_mul(input1, input1), *sum1 = msa_sum_dim_IntList(square1, dim, false, MSA_NO_DTYPE), *length1 = plus(sum1, 1e-12);
    msa_auto msa_tensor *square2 = msa_mul(input2, input2), *sum2 = msa_sum_dim_IntList(square2, dim, false, MSA_NO_DTYPE), *length2 = plus(sum2, 1e-12);
    msa_auto msa_tensor *lengths = msa_mul(length1, length2), *root = msa_sqrt(lengths), *cosine = msa_div(dot, root);
    msa_auto msa_tensor *one = msa_wrap_number(msa_int(1)), *minus_one = msa_wrap_number(msa_int(-1));
    msa_auto msa_tensor *similar = msa_eq(target, one), *different = msa_eq(target, minus_one);
    msa_auto msa_tensor *apart = line(cosine, -1, 1), *beyond = plus(cosine, -margin), *close = positive_part(beyond);
    msa_auto msa_tensor *first = where_kept(similar, apart), *second = where_kept(different, close), *loss = msa_add(first, second, msa_int(1));
    return reduced(loss, reduction);
}

msa_tensor *pairwise_distance_values(msa_tensor *x1, msa_tensor *x2, double p, double eps, bool keepdim) {
    msa_auto msa_tensor *difference = minus(x1, x2), *shifted = plus(difference, eps);
    return shifted ? msa_linalg_vector_norm(shifted, msa_float(p), MSA_INTS(shifted->ndim ? shifted->ndim - 1 : 0), keepdim, MSA_NO_DTYPE) : NULL;
}

static msa_tensor *unit(msa_tensor *x, int64_t dim, double eps) {
    msa_auto msa_tensor *length = msa_linalg_vector_norm(x, msa_float(2), MSA_INTS(dim), true, MSA_NO_DTYPE), *above = msa_clamp_min(length, msa_float(eps));
    return msa_div(x, above);
}

msa_tensor *cosine_similarity_values(msa_tensor *x1, msa_tensor *x2, int64_t dim, double eps) {
    msa_tensor *pair[] = {x1, x2};
    const msa_dtype type = msa_result_type((msa_tensors){pair, 2});
    if (!msa_is_floating(type)) return msa_fail_null(MSA_RUNTIME_ERROR, "expected common dtype to be floating point, yet common dtype is %s", msa_dtype_type_name(type));
    int64_t sizes[MSA_MAX_DIMS];
    int ndim;
    if (msa_broadcast_sizes("cosine_similarity", msa_sizes(x1), msa_sizes(x2), sizes, &ndim) != 0) return NULL;
    msa_auto msa_tensor *a = msa_to_dtype(x1, type, false, false, -1), *b = msa_to_dtype(x2, type, false, false, -1);
    msa_auto msa_tensor *wide_a = msa_expand(a, (msa_ints){sizes, ndim}, false), *wide_b = msa_expand(b, (msa_ints){sizes, ndim}, false);
    msa_auto msa_tensor *unit_a = unit(wide_a, dim, eps), *unit_b = unit(wide_b, dim, eps), *product = msa_mul(unit_a, unit_b);
    return msa_sum_dim_IntList(product, MSA_INTS(dim), false, MSA_NO_DTYPE);
}

msa_tensor *triplet_margin_loss_values(msa_tensor *anchor, msa_tensor *positive, msa_tensor *negative, double margin, double p, double eps, bool swap,
                                       int64_t reduction) {
    if (anchor->ndim != positive->ndim || anchor->ndim != negative->ndim)
        return msa_fail_null(MSA_RUNTIME_ERROR, "All inputs should have same dimension but got %dD, %dD and %dD inputs.", anchor->ndim, positive->ndim,
                             negative->ndim);
    msa_auto msa_tensor *near = pairwise_distance_values(anchor, positive, p, eps, false), *far = pairwise_distance_values(anchor, negative, p, eps, false);
    if (swap) {
        msa_auto msa_tensor *other = pairwise_distance_values(positive, negative, p, eps, false);
        msa_tensor *less = msa_minimum(far, other);
        msa_tensor_release(far);
        far = less;
    }
    msa_auto msa_tensor *difference = minus(near, far), *gap = plus(difference, margin), *loss = positive_part(gap);
    return reduced(loss, reduction);
}

msa_tensor *soft_margin_loss_values(msa_tensor *self, msa_tensor *target, int64_t reduction) {
    if (target->requires_grad)
        return msa_fail_null(MSA_RUNTIME_ERROR, "The function 'soft_margin_loss' is not differentiable with respect to argument 'target'. This input cannot have"
                             " requires_grad True.");
    msa_auto msa_tensor *product = msa_mul(self, target), *opposite = msa_neg(product), *power = msa_exp(opposite), *loss = msa_log1p(power);
    return reduced(loss, reduction);
}

msa_tensor *multi_margin_loss_values(msa_tensor *self, msa_tensor *target, msa_scalar p, msa_scalar margin, msa_tensor *weight, int64_t reduction) {
    const double power = msa_scalar_double(p);
    if (power != 1 && power != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "only p == 1 and p == 2 supported");
    if (self->ndim > 2 || self->numel == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: %s",
                                                                 msa_sizes_text(msa_sizes(self)));
    const int64_t rows = self->ndim == 2 ? self->sizes[0] : 1, classes = self->numel / rows;
    if (target->numel != rows || target->ndim > 1) return msa_fail_null(MSA_RUNTIME_ERROR, "inconsistent target size, got: %s", msa_sizes_text(msa_sizes(target)));
    if (weight && weight->numel != classes) return msa_fail_null(MSA_RUNTIME_ERROR, "inconsistent weight size, got: %s", msa_sizes_text(msa_sizes(weight)));
    msa_auto msa_tensor *x = msa_reshape(self, MSA_INTS(rows, classes)), *index = msa_reshape(target, MSA_INTS(rows, 1));
    msa_auto msa_tensor *own = msa_gather(x, 1, index, false), *difference = minus(x, own), *gap = plus(difference, msa_scalar_double(margin));
    msa_auto msa_tensor *hinge = positive_part(gap), *raised = power == 2 ? msa_square(hinge) : msa_tensor_retain(hinge);
    msa_auto msa_tensor *others = msa_scatter_value(raised, 1, index, msa_int(0)), *share = NULL;
    if (weight) {
        msa_auto msa_tensor *flat = msa_reshape(index, MSA_INTS(rows)), *chosen = msa_index_select(weight, 0, flat), *column = msa_unsqueeze(chosen, 1);
        share = msa_mul(others, column);
    } else {
        share = msa_tensor_retain(others);
    }
    msa_auto msa_tensor *sum = msa_sum_dim_IntList(share, MSA_INTS(1), false, MSA_NO_DTYPE), *loss = times(sum, 1.0 / (double)classes);
    msa_auto msa_tensor *shaped = self->ndim == 2 ? msa_tensor_retain(loss) : msa_reshape(loss, msa_sizes(target));
    return reduced(shaped, reduction);
}

/* Every label of a row, up to the first -1, against every class that is no label of it. */
msa_tensor *multilabel_margin_loss_values(msa_tensor *self, msa_tensor *target, int64_t reduction) {
    if (self->ndim > 2 || self->numel == 0 || !msa_same_sizes(self, target))
        return msa_fail_null(MSA_RUNTIME_ERROR, "inconsistent target size: %s for input of size: %s", msa_sizes_text(msa_sizes(target)), msa_sizes_text(msa_sizes(self)));
    const int64_t rows = self->ndim == 2 ? self->sizes[0] : 1, classes = self->numel / rows;
    msa_auto msa_tensor *x = msa_reshape(self, MSA_INTS(rows, classes)), *labels = msa_reshape(target, MSA_INTS(rows, classes));
    msa_auto msa_tensor *zero = msa_wrap_number(msa_int(0)), *given = msa_ge(labels, zero), *run = msa_cumprod(given, 1, MSA_NO_DTYPE);
    msa_auto msa_tensor *index = msa_clamp_min(labels, msa_int(0)), *none = zeros_shaped(MSA_INTS(rows, classes), MSA_INT64);
    msa_auto msa_tensor *hits = msa_scatter_add(none, 1, index, run), *not_label = msa_eq(hits, zero), *is_label = msa_ne(run, zero);
    msa_auto msa_tensor *own = msa_gather(x, 1, index, false), *own_column = msa_unsqueeze(own, 2), *row = msa_unsqueeze(x, 1);
    msa_auto msa_tensor *difference = minus(row, own_column), *gap = plus(difference, 1), *hinge = positive_part(gap);
    msa_auto msa_tensor *left = msa_unsqueeze(is_label, 2), *right = msa_unsqueeze(not_label, 1), *counted = msa_logical_and(left, right);
    msa_auto msa_tensor *kept = where_kept(counted, hinge), *sum = msa_sum_dim_IntList(kept, MSA_INTS(1, 2), false, MSA_NO_DTYPE);
    msa_auto msa_tensor *loss = times(sum, 1.0 / (double)classes), *shaped = self->ndim == 2 ? msa_tensor_retain(loss) : msa_reshape(loss, (msa_ints){NULL, 0});
    return reduced(shaped, reduction);
}
