/* Softmax, losses over classes and embeddings as the user calls them, and their gradients where the backward pass is recorded. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

/* Where t equals a number. */
static msa_tensor *equals(msa_tensor *t, int64_t number) {
    msa_auto msa_tensor *other = msa_wrap_number(msa_int(number));
    return msa_eq(t, other);
}

static bool recorded(msa_tensor *a, msa_tensor *b) { return msa_grad_mode && (a->requires_grad || b->requires_grad); }

static msa_tensor *cast_first(msa_tensor *self, msa_dtype dtype) {
    return dtype == MSA_NO_DTYPE || (msa_dtype)self->dtype == dtype ? msa_tensor_retain(self) : msa__to_copy(self, dtype, -1);
}

msa_tensor *softmax_values(msa_tensor *self, int64_t dim, msa_dtype dtype) {
    msa_auto msa_tensor *x = cast_first(self, dtype);
    return msa__softmax(x, dim, false);
}

msa_tensor *log_softmax_values(msa_tensor *self, int64_t dim, msa_dtype dtype) {
    msa_auto msa_tensor *x = cast_first(self, dtype);
    return msa__log_softmax(x, dim, false);
}

msa_tensor *softmax_gradient(msa_tensor *grad, msa_tensor *result, int64_t dim) {
    if (!recorded(grad, result)) return msa__softmax_backward_data(grad, result, dim);
    msa_auto msa_tensor *product = msa_mul(grad, result), *sum = msa_sum_dim_IntList(product, MSA_INTS(dim), true, MSA_NO_DTYPE);
    msa_auto msa_tensor *along = msa_mul(result, sum);
    return msa_sub(product, along, msa_int(1));
}

msa_tensor *log_softmax_gradient(msa_tensor *grad, msa_tensor *result, int64_t dim) {
    if (!recorded(grad, result)) return msa__log_softmax_backward_data(grad, result, dim);
    msa_auto msa_tensor *p = msa_exp(result), *sum = msa_sum_dim_IntList(grad, MSA_INTS(dim), true, MSA_NO_DTYPE), *along = msa_mul(p, sum);
    return msa_sub(grad, along, msa_int(1));
}

/* ---- negative log likelihood ------------------------------------------------------------------------------------- */

static msa_tensor *nll(msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index) {
    msa_tensor *pair[2] = {NULL};
    if (msa_nll_loss_forward(self, target, weight, reduction, ignore_index, pair) != 0) return NULL;
    msa_tensor_release(pair[1]);
    return pair[0];
}

msa_tensor *nll_loss_values(msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index) {
    if (self->ndim < 1 || self->ndim > 2) return msa_fail_null(MSA_RUNTIME_ERROR, "input tensor should be 1D or 2D");
    if (target->ndim > 1) return msa_fail_null(MSA_RUNTIME_ERROR, "0D or 1D target tensor expected, multi-target not supported");
    return nll(self, target, weight, reduction, ignore_index);
}

static int check_target(msa_tensor *self, msa_tensor *target) {
    if (self->ndim < 1) return msa_fail(MSA_VALUE_ERROR, "Expected 1 or more dimensions (got 0)");
    if (self->ndim > 1 && (target->ndim < 1 || self->sizes[0] != target->sizes[0]))
        return msa_fail(MSA_VALUE_ERROR, "Expected input batch_size (%lld) to match target batch_size (%lld).", (long long)self->sizes[0],
                        (long long)(target->ndim ? target->sizes[0] : 1));
    if (self->ndim <= 2) {
        if (target->ndim > 1) return msa_fail(MSA_RUNTIME_ERROR, "0D or 1D target tensor expected, multi-target not supported");
        return 0;
    }
    int64_t expected[MSA_MAX_DIMS] = {self->sizes[0]};
    for (int i = 2; i < self->ndim; i++) expected[i - 1] = self->sizes[i];
    if (target->ndim == self->ndim - 1 && memcmp(target->sizes, expected, sizeof(int64_t) * target->ndim) == 0) return 0;
    if (self->ndim == 4)
        return msa_fail(MSA_RUNTIME_ERROR, "size mismatch (got input: %s , target: %s", msa_sizes_text(msa_sizes(self)), msa_sizes_text(msa_sizes(target)));
    return msa_fail(MSA_RUNTIME_ERROR, "Expected target size %s, got %s", msa_sizes_text((msa_ints){expected, self->ndim - 1}), msa_sizes_text(msa_sizes(target)));
}

msa_tensor *nll_loss_nd_values(msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index) {
    return check_target(self, target) == 0 ? nll(self, target, weight, reduction, ignore_index) : NULL;
}

/* The loss alone: what the gradient of the gradient is. */
msa_tensor *nll_loss_alone(msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index) {
    return nll(self, target, weight, reduction, ignore_index);
}

/* ---- cross entropy ----------------------------------------------------------------------------------------------- */

msa_tensor *cross_entropy_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index,
                                   msa_tensor *log_sums, msa_tensor *total_weight) {
    if (!recorded(grad, self)) return msa_cross_entropy_backward(grad, self, target, weight, reduction, ignore_index, log_sums, total_weight);
    msa_auto msa_tensor *g = msa_nll_loss_backward(grad, msa_sizes(self), target, weight, reduction, ignore_index, total_weight);
    msa_auto msa_tensor *p = msa__softmax(self, self->ndim - 1, false), *sum = msa_sum_dim_IntList(g, MSA_INTS(self->ndim - 1), true, MSA_NO_DTYPE);
    msa_auto msa_tensor *along = msa_mul(p, sum);
    return msa_sub(g, along, msa_int(1));
}

static msa_tensor *reduce(msa_tensor *t, int64_t reduction, double count) {
    if (!t || reduction == 0) return msa_tensor_retain(t);
    msa_auto msa_tensor *sum = msa_sum(t, MSA_NO_DTYPE);
    if (!sum || reduction == 2) return msa_take(sum);
    msa_auto msa_tensor *n = msa_wrap_number(msa_float(count));
    return msa_div(sum, n);
}

/* Class weights over dimension `at` of a tensor of `ndim` dimensions. */
static msa_tensor *class_view(msa_tensor *weight, int at, int ndim) {
    int64_t sizes[MSA_MAX_DIMS];
    for (int i = 0; i < ndim; i++) sizes[i] = i == at ? -1 : 1;
    return msa_reshape(weight, (msa_ints){sizes, ndim});
}

/* -sum over classes of log p * target * weight. */
static msa_tensor *with_probabilities(msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, double label_smoothing) {
    const int at = self->ndim == 1 ? 0 : 1;
    const int64_t classes = self->sizes[at];
    if (!msa_is_floating((msa_dtype)target->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "Expected floating point type for target with class probabilities, got %s", msa_dtype_type_name((msa_dtype)target->dtype));
    if (weight && (weight->ndim != 1 || weight->numel != classes))
        return msa_fail_null(MSA_RUNTIME_ERROR, "cross_entropy: weight tensor should be defined either for all %lld classes or no classes but got weight tensor of shape: %s",
                             (long long)classes, msa_sizes_text(msa_sizes(weight)));
    msa_auto msa_tensor *log_p = msa__log_softmax(self, at, false), *smooth = msa_tensor_retain(target);
    if (label_smoothing > 0) {
        msa_auto msa_tensor *keep = msa_wrap_number(msa_float(1 - label_smoothing)), *scaled_target = msa_mul(target, keep);
        msa_auto msa_tensor *even = msa_wrap_number(msa_float(label_smoothing / (double)classes));
        msa_tensor_release(smooth);
        smooth = msa_add(scaled_target, even, msa_int(1));
    }
    msa_auto msa_tensor *product = msa_mul(log_p, smooth), *wide = weight ? class_view(weight, at, self->ndim) : NULL;
    msa_auto msa_tensor *weighted = weight ? msa_mul(product, wide) : msa_tensor_retain(product), *minus = msa_neg(weighted);
    if (reduction == 0) return msa_sum_dim_IntList(minus, MSA_INTS(at), false, MSA_NO_DTYPE);
    return reduce(minus, reduction, (double)self->numel / (double)classes);
}

/* The part that label smoothing spreads over all classes: -sum of log p * weight, ignored targets left out. */
static msa_tensor *smoothed_part(msa_tensor *log_p, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index, msa_tensor *total_weight) {
    const int at = log_p->ndim == 1 ? 0 : 1;
    msa_auto msa_tensor *wide = weight ? class_view(weight, at, log_p->ndim) : NULL, *weighted = weight ? msa_mul(log_p, wide) : msa_tensor_retain(log_p);
    msa_auto msa_tensor *sum = msa_sum_dim_IntList(weighted, MSA_INTS(at), false, MSA_NO_DTYPE), *minus = msa_neg(sum);
    msa_auto msa_tensor *ignored = equals(target, ignore_index), *kept = msa_masked_fill(minus, ignored, msa_int(0));
    if (!kept || reduction == 0) return msa_take(kept);
    msa_auto msa_tensor *all = msa_sum(kept, MSA_NO_DTYPE);
    return reduction == 2 ? msa_take(all) : msa_div(all, total_weight);
}

msa_tensor *cross_entropy_loss_values(msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index,
                                      double label_smoothing) {
    if (label_smoothing < 0 || label_smoothing > 1 || label_smoothing != label_smoothing)
        return msa_fail_null(MSA_RUNTIME_ERROR, "label_smoothing must be between 0.0 and 1.0. Got: %g", label_smoothing);
    if (msa_same_sizes(self, target)) {
        if (self->ndim == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Expected floating point type for target with class probabilities, got %s",
                                                  msa_dtype_type_name((msa_dtype)target->dtype));
        if (ignore_index >= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "ignore_index is not supported for floating point target");
        return with_probabilities(self, target, weight, reduction, label_smoothing);
    }
    if (check_target(self, target) != 0) return NULL;
    if (label_smoothing == 0 && self->ndim == 2) {
        msa_tensor *three[3] = {NULL};
        if (msa_cross_entropy_indexed(self, target, weight, reduction, ignore_index, three) != 0) return NULL;
        msa_tensor_release(three[1]);
        msa_tensor_release(three[2]);
        return three[0];
    }
    msa_auto msa_tensor *log_p = msa__log_softmax(self, self->ndim == 1 ? 0 : 1, false);
    msa_tensor *pair[2] = {NULL};
    if (!log_p || msa_nll_loss_forward(log_p, target, weight, reduction, ignore_index, pair) != 0) return NULL;
    msa_auto msa_tensor *loss = pair[0], *total = pair[1];
    if (label_smoothing == 0) return msa_take(loss);
    msa_auto msa_tensor *smooth = smoothed_part(log_p, target, weight, reduction, ignore_index, total);
    msa_auto msa_tensor *main_part = scaled(loss, msa_float(1 - label_smoothing));
    return msa_add(main_part, smooth, msa_float(label_smoothing / (double)self->sizes[self->ndim == 1 ? 0 : 1]));
}

/* ---- embedding ---------------------------------------------------------------------------------------------------- */

/* Rows of the incoming gradient of the table, nothing for the padding. */
msa_tensor *embedding_second_gradient(msa_tensor *grad, msa_tensor *indices, int64_t padding_idx) {
    msa_auto msa_tensor *rows = msa_embedding(grad, indices, -1, false, false);
    if (!rows || padding_idx < 0) return msa_take(rows);
    msa_auto msa_tensor *padding = equals(indices, padding_idx), *column = msa_unsqueeze(padding, -1);
    return msa_masked_fill(rows, column, msa_int(0));
}

msa_tensor *one_hot_values(msa_tensor *self, int64_t num_classes) {
    if (self->dtype != MSA_INT64) return msa_fail_null(MSA_RUNTIME_ERROR, "one_hot is only applicable to index tensor.");
    if (self->ndim >= MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "one_hot: too many dimensions");
    if (self->numel == 0 && num_classes <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Can not infer total number of classes from empty tensor.");
    if (num_classes == 0 || num_classes < -1) return msa_fail_null(MSA_RUNTIME_ERROR, "num_classes should be positive");
    msa_auto msa_tensor *index = msa_contiguous_values(self);
    const int64_t *at = index ? msa_data(index) : NULL;
    if (!index || (!at && index->numel)) return NULL;
    int64_t most = -1;
    for (int64_t i = 0; i < index->numel; i++) {
        if (at[i] < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Class values must be non-negative.");
        if (at[i] > most) most = at[i];
    }
    if (num_classes == -1) num_classes = most + 1;
    else if (most >= num_classes) return msa_fail_null(MSA_RUNTIME_ERROR, "Class values must be smaller than num_classes.");
    int64_t sizes[MSA_MAX_DIMS];
    memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
    sizes[self->ndim] = num_classes;
    msa_auto msa_tensor *out = zeros_shaped((msa_ints){sizes, self->ndim + 1}, MSA_INT64);
    if (!out) return NULL;
    int64_t *to = msa_data(out);
    for (int64_t i = 0; i < index->numel; i++) to[i * num_classes + at[i]] = 1;
    return msa_take(out);
}
