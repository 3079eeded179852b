/* Products made of other products: matmul's rules for every number of dimensions, and the gradients of linear. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

msa_tensor *vdot_values(msa_tensor *self, msa_tensor *other) {
    if (!msa_is_complex((msa_dtype)self->dtype)) return msa_dot(self, other);
    msa_auto msa_tensor *left = msa_conj(self);
    return left ? msa_dot(left, other) : NULL;
}

msa_tensor *outer_values(msa_tensor *self, msa_tensor *vec2) {
    if (self->ndim != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "outer: Expected 1-D argument self, but got %d-D", self->ndim);
    if (vec2->ndim != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "outer: Expected 1-D argument vec2, but got %d-D", vec2->ndim);
    msa_auto msa_tensor *column = msa_unsqueeze(self, 1);
    return column ? msa_mul(column, vec2) : NULL;
}

msa_tensor *addr_values(msa_tensor *self, msa_tensor *vec1, msa_tensor *vec2, msa_scalar beta, msa_scalar alpha) {
    if (vec1->ndim != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "addr: Expected 1-D argument vec1, but got %d-D", vec1->ndim);
    if (vec2->ndim != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "addr: Expected 1-D argument vec2, but got %d-D", vec2->ndim);
    msa_auto msa_tensor *product = msa_outer(vec1, vec2);
    if (!product) return NULL;
    msa_auto msa_tensor *base = msa_expand(self, msa_sizes(product), false);
    if (!base) return NULL;
    if (base->dtype == MSA_BOOL && product->dtype == MSA_BOOL) { /* and, or */
        msa_auto msa_tensor *zero = msa_mul(product, base), *none = msa_logical_xor(zero, zero);
        return msa_logical_or(msa_scalar_is_zero(beta) ? none : base, msa_scalar_is_zero(alpha) ? none : product);
    }
    if (msa_scalar_is_zero(beta)) { /* self is not read: it may hold NaN */
        msa_dtype type = msa_result_type(MSA_TENSORS(base, product));
        msa_auto msa_tensor *typed = msa__to_copy(product, type, -1);
        return multiplied(typed, alpha);
    }
    msa_auto msa_tensor *left = multiplied(base, beta);
    return left ? msa_add(left, product, alpha) : NULL;
}

msa_tensor *inner_values(msa_tensor *self, msa_tensor *other) {
    if (self->ndim == 0 || other->ndim == 0) return msa_mul(self, other);
    if (self->sizes[self->ndim - 1] != other->sizes[other->ndim - 1])
        return msa_fail_null(MSA_RUNTIME_ERROR,
                             "inner() the last dimension must match on both input tensors but got shapes %s and %s",
                             msa_sizes_text(msa_sizes(self)), msa_sizes_text(msa_sizes(other)));
    if (self->ndim == 1 && other->ndim == 1) return msa_dot(self, other);
    const int64_t k = self->sizes[self->ndim - 1];
    int64_t sizes[2 * MSA_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < self->ndim - 1; i++) sizes[n++] = self->sizes[i];
    for (int i = 0; i < other->ndim - 1; i++) sizes[n++] = other->sizes[i];
    const int64_t rows = msa_product((msa_ints){self->sizes, self->ndim - 1}), columns = msa_product((msa_ints){other->sizes, other->ndim - 1});
    msa_auto msa_tensor *left = msa_reshape(self, MSA_INTS(rows, k)), *right = msa_reshape(other, MSA_INTS(columns, k));
    msa_auto msa_tensor *turned = right ? msa_t(right) : NULL, *product = left && turned ? msa_mm(left, turned) : NULL;
    return product ? msa_reshape(product, (msa_ints){sizes, n}) : NULL;
}

/* (..., m, k) @ (k, n) as one product of matrices. */
static msa_tensor *folded(msa_tensor *self, msa_tensor *other) {
    const int64_t k = self->sizes[self->ndim - 1];
    int64_t sizes[MSA_MAX_DIMS], rows = 1;
    int n = self->ndim - 1;
    for (int i = 0; i < n; i++) rows *= sizes[i] = self->sizes[i];
    msa_auto msa_tensor *flat = msa_reshape(self, MSA_INTS(rows, k));
    if (!flat) return NULL;
    msa_auto msa_tensor *product = other->ndim == 1 ? msa_mv(flat, other) : msa_mm(flat, other);
    if (!product) return NULL;
    if (other->ndim == 2) sizes[n++] = other->sizes[1];
    return msa_reshape(product, (msa_ints){sizes, n});
}

msa_tensor *matmul_values(msa_tensor *self, msa_tensor *other) {
    const int a = self->ndim, b = other->ndim;
    if (a == 0 || b == 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "both arguments to matmul need to be at least 1D, but they are %dD and %dD", a, b);
    if (a == 1 && b == 1) return msa_dot(self, other);
    if (a == 2 && b == 1) return msa_mv(self, other);
    if (a == 2 && b == 2) return msa_mm(self, other);
    if (a == 1 && b == 2) {
        msa_auto msa_tensor *row = msa_unsqueeze(self, 0), *product = row ? msa_mm(row, other) : NULL;
        return product ? msa_squeeze_dim(product, 0) : NULL;
    }
    if (a >= 3 && b <= 2) return folded(self, other);
    if (a == 1) {
        msa_auto msa_tensor *turned = msa_transpose_int(other, -2, -1);
        return turned ? folded(turned, self) : NULL;
    }
    if (a == 2) { /* (B A^T)^T would fold too, but the result would not be contiguous: one product a matrix */
        if (self->sizes[1] != other->sizes[b - 2])
            return msa_fail_null(MSA_RUNTIME_ERROR, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                                 (long long)(other->sizes[b - 1] * msa_product((msa_ints){other->sizes, b - 2})), (long long)other->sizes[b - 2],
                                 (long long)self->sizes[1], (long long)self->sizes[0]);
        return msa_matmul_batched(self, other);
    }
    if (a == 3 && b == 3 && self->sizes[0] == other->sizes[0]) return msa_bmm(self, other);
    return msa_matmul_batched(self, other);
}

msa_tensor *linear_values(msa_tensor *input, msa_tensor *weight, msa_tensor *bias) {
    if (weight->ndim == 2 && input->ndim >= 1) return msa_linear_product(input, weight, bias);
    msa_auto msa_tensor *turned = msa_t(weight), *product = turned ? msa_matmul(input, turned) : NULL;
    return !product || !bias ? msa_take(product) : msa_add(product, bias, msa_int(1));
}

/* (..., n) as (rows, n). */
static msa_tensor *rows_of(msa_tensor *t) {
    if (t->ndim == 2) return msa_tensor_retain(t);
    const int64_t rows = msa_product((msa_ints){t->sizes, t->ndim - 1});
    return msa_reshape(t, MSA_INTS(rows, t->sizes[t->ndim - 1]));
}

msa_tensor *linear_input_gradient(msa_tensor *grad, msa_tensor *weight) {
    msa_auto msa_tensor *conjugate = msa_conj(weight), *flat = rows_of(grad);
    msa_auto msa_tensor *product = conjugate && flat ? msa_mm(flat, conjugate) : NULL;
    if (!product || grad->ndim == 2) return msa_take(product);
    int64_t sizes[MSA_MAX_DIMS];
    memcpy(sizes, grad->sizes, sizeof(int64_t) * grad->ndim);
    sizes[grad->ndim - 1] = weight->sizes[1];
    return msa_reshape(product, (msa_ints){sizes, grad->ndim});
}

msa_tensor *linear_weight_gradient(msa_tensor *grad, msa_tensor *input) {
    msa_auto msa_tensor *g = rows_of(grad), *x = rows_of(input);
    msa_auto msa_tensor *turned = g ? msa_t(g) : NULL, *conjugate = x ? msa_conj(x) : NULL;
    return turned && conjugate ? msa_mm(turned, conjugate) : NULL;
}

msa_tensor *linear_bias_gradient(msa_tensor *grad) {
    msa_auto msa_tensor *flat = rows_of(grad);
    return flat ? msa_sum_dim_IntList(flat, MSA_INTS(0), false, MSA_NO_DTYPE) : NULL;
}

/* result[..., o] = sum over i, j of input1[..., i] weight[o, i, j] input2[..., j] + bias[o] */
msa_tensor *bilinear_values(msa_tensor *input1, msa_tensor *input2, msa_tensor *weight, msa_tensor *bias) {
    const int n = input1->ndim;
    if (n != input2->ndim)
        return msa_fail_null(MSA_RUNTIME_ERROR, "bilinear(): input dimensions do not match: got %d and %d", n, input2->ndim);
    if (n < 1 || weight->ndim != 3)
        return msa_fail_null(MSA_RUNTIME_ERROR, "bilinear(): expected a 3-D weight and inputs of at least 1 dimension, got %d-D and %d-D", weight->ndim, n);
    for (int i = 0; i < n - 1; i++)
        if (input1->sizes[i] != input2->sizes[i])
            return msa_fail_null(MSA_RUNTIME_ERROR, "bilinear(): input batch dimensions do not match at dim %d: got %lld and %lld", i,
                                 (long long)input1->sizes[i], (long long)input2->sizes[i]);
    if (input1->sizes[n - 1] != weight->sizes[1])
        return msa_fail_null(MSA_RUNTIME_ERROR, "bilinear(): input1 size does not match weight size: got %lld but expected %lld",
                             (long long)input1->sizes[n - 1], (long long)weight->sizes[1]);
    if (input2->sizes[n - 1] != weight->sizes[2])
        return msa_fail_null(MSA_RUNTIME_ERROR, "bilinear(): input2 size does not match weight size: got %lld but expected %lld",
                             (long long)input2->sizes[n - 1], (long long)weight->sizes[2]);
    if (bias && (bias->ndim < 1 || bias->sizes[0] != weight->sizes[0]))
        return msa_fail_null(MSA_RUNTIME_ERROR, "bilinear(): bias size does not match weight size: got %lld but expected %lld",
                             (long long)(bias->ndim ? bias->sizes[0] : 1), (long long)weight->sizes[0]);
    const int64_t o = weight->sizes[0], i = weight->sizes[1], j = weight->sizes[2], rows = msa_product((msa_ints){input1->sizes, n - 1});
    msa_auto msa_tensor *x = msa_reshape(input1, MSA_INTS(rows, i)), *y = msa_reshape(input2, MSA_INTS(rows, j, 1));
    msa_auto msa_tensor *by_input = msa_transpose_int(weight, 0, 1), *flat = by_input ? msa_reshape(by_input, MSA_INTS(i, o * j)) : NULL;
    msa_auto msa_tensor *half = x && flat ? msa_mm(x, flat) : NULL, *matrices = half ? msa_reshape(half, MSA_INTS(rows, o, j)) : NULL;
    msa_auto msa_tensor *product = matrices && y ? msa_bmm(matrices, y) : NULL;
    if (!product) return NULL;
    int64_t sizes[MSA_MAX_DIMS];
    memcpy(sizes, input1->sizes, sizeof(int64_t) * (size_t)n);
    sizes[n - 1] = o;
    msa_auto msa_tensor *out = msa_reshape(product, (msa_ints){sizes, n});
    return !out || !bias ? msa_take(out) : msa_add(out, bias, msa_int(1));
}
