/* Kernels of the matrix products: mm, bmm, their sums with a third operand, products with vectors, linear.
 *
 * Operands of any strides are handed to the product as they are; float16 and bfloat16 compute in float32. */
#include "base/parallel.h"
#include "cpu/gemm.h"
#include "cpu/vector.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

static int same_types(msa_tensor *a, msa_tensor *b) {
    if (a->dtype == b->dtype) return 0;
    return msa_fail(MSA_RUNTIME_ERROR, "expected scalar type %s but found %s", msa_dtype_type_name((msa_dtype)a->dtype),
                    msa_dtype_type_name((msa_dtype)b->dtype));
}

static int refuse_bool(const char *op, const msa_tensor *t) {
    if (t->dtype != MSA_BOOL) return 0;
    return msa_fail(MSA_NOT_IMPLEMENTED, "\"%s\" not implemented for 'Bool'", op);
}

static bool is_half(const msa_tensor *t) { return t->dtype == MSA_FLOAT16 || t->dtype == MSA_BFLOAT16; }

/* The last two dimensions as a matrix. */
static msa_matrix matrix_of(const msa_tensor *t) {
    return (msa_matrix){msa_data(t), t->strides[t->ndim - 2], t->strides[t->ndim - 1]};
}

/* out = alpha * a @ b + beta * out for 2-D, or 3-D with equal batches; out contiguous, all of one type. */
static int multiply(msa_tensor *out, msa_tensor *a, msa_tensor *b, msa_scalar alpha, msa_scalar beta) {
    if (out->numel == 0) return 0;
    if (is_half(out)) {
        msa_auto msa_tensor *a32 = msa_cast_values(a, MSA_FLOAT32), *b32 = msa_cast_values(b, MSA_FLOAT32);
        msa_auto msa_tensor *out32 = msa_scalar_is_zero(beta) ? msa_tensor_new(msa_sizes(out), MSA_FLOAT32) : msa_cast_values(out, MSA_FLOAT32);
        if (!a32 || !b32 || !out32 || multiply(out32, a32, b32, alpha, beta) != 0) return -1;
        return msa_copy_values(out, out32);
    }
    const int last = out->ndim - 1;
    const int64_t m = out->sizes[last - 1], n = out->sizes[last], k = a->sizes[last];
    const msa_matrix am = matrix_of(a), bm = matrix_of(b);
    void *c = msa_data(out);
    if (!c || (a->numel && !am.data) || (b->numel && !bm.data)) return -1;
    if (last == 1) return msa_gemm((msa_dtype)out->dtype, m, n, k, alpha, am, bm, beta, c, n);
    return msa_gemm_batched((msa_dtype)out->dtype, out->sizes[0], (msa_batch_steps){a->strides[0], b->strides[0], m * n}, m, n, k, alpha, am,
                            bm, beta, c, n);
}

/* A new contiguous tensor that holds `self` broadcast to `sizes`: what alpha * a @ b is added to. */
static msa_tensor *broadcast_copy(msa_tensor *self, msa_ints sizes) {
    msa_auto msa_tensor *view = msa_expand(self, sizes, false);
    msa_auto msa_tensor *out = view ? msa_tensor_new(sizes, (msa_dtype)self->dtype) : NULL;
    return out && msa_copy_values(out, view) == 0 ? msa_take(out) : NULL;
}

/* beta * self + alpha * a @ b; self may be NULL. */
static msa_tensor *product(msa_tensor *self, msa_tensor *a, msa_tensor *b, msa_ints sizes, msa_scalar beta, msa_scalar alpha) {
    const bool used = self && !msa_scalar_is_zero(beta);
    msa_auto msa_tensor *out = NULL;
    if (self && !used) { /* still checked */
        msa_auto msa_tensor *view = msa_expand(self, sizes, false);
        if (!view) return NULL;
    }
    out = used ? broadcast_copy(self, sizes) : msa_tensor_new(sizes, (msa_dtype)a->dtype);
    return out && multiply(out, a, b, alpha, used ? beta : msa_int(0)) == 0 ? msa_take(out) : NULL;
}

static int check_mm(msa_tensor *a, msa_tensor *b) {
    if (a->sizes[1] != b->sizes[0])
        return msa_fail(MSA_RUNTIME_ERROR, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", (long long)a->sizes[0],
                        (long long)a->sizes[1], (long long)b->sizes[0], (long long)b->sizes[1]);
    return same_types(a, b) != 0 || refuse_bool("addmm_impl_cpu_", a) != 0 ? -1 : 0;
}

msa_tensor *mm_cpu(msa_tensor *self, msa_tensor *mat2) {
    if (self->ndim != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "self must be a matrix");
    if (mat2->ndim != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "mat2 must be a matrix");
    if (check_mm(self, mat2) != 0) return NULL;
    return product(NULL, self, mat2, MSA_INTS(self->sizes[0], mat2->sizes[1]), msa_int(0), msa_int(1));
}

msa_tensor *addmm_cpu(msa_tensor *self, msa_tensor *mat1, msa_tensor *mat2, msa_scalar beta, msa_scalar alpha) {
    if (mat1->ndim != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "mat1 must be a matrix, got %d-D tensor", mat1->ndim);
    if (mat2->ndim != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "mat2 must be a matrix, got %d-D tensor", mat2->ndim);
    if (check_mm(mat1, mat2) != 0) return NULL;
    if (self->dtype != mat2->dtype) return msa_fail_null(MSA_RUNTIME_ERROR, "self and mat2 must have the same dtype");
    return product(self, mat1, mat2, MSA_INTS(mat1->sizes[0], mat2->sizes[1]), beta, alpha);
}

static int check_bmm(msa_tensor *a, msa_tensor *b) {
    if (a->ndim != 3) return msa_fail(MSA_RUNTIME_ERROR, "batch1 must be a 3D tensor");
    if (b->ndim != 3) return msa_fail(MSA_RUNTIME_ERROR, "batch2 must be a 3D tensor");
    if (a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1])
        return msa_fail(MSA_RUNTIME_ERROR, "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
                        (long long)a->sizes[0], (long long)a->sizes[2], (long long)b->sizes[0], (long long)b->sizes[1]);
    return same_types(a, b) != 0 || refuse_bool("bmm", a) != 0 ? -1 : 0;
}

msa_tensor *bmm_cpu(msa_tensor *self, msa_tensor *mat2) {
    if (check_bmm(self, mat2) != 0) return NULL;
    return product(NULL, self, mat2, MSA_INTS(self->sizes[0], self->sizes[1], mat2->sizes[2]), msa_int(0), msa_int(1));
}

msa_tensor *baddbmm_cpu(msa_tensor *self, msa_tensor *batch1, msa_tensor *batch2, msa_scalar beta, msa_scalar alpha) {
    if (check_bmm(batch1, batch2) != 0) return NULL;
    if (self->dtype != batch1->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
                             msa_dtype_name((msa_dtype)self->dtype), msa_dtype_name((msa_dtype)batch1->dtype), msa_dtype_name((msa_dtype)batch2->dtype));
    return product(self, batch1, batch2, MSA_INTS(batch1->sizes[0], batch1->sizes[1], batch2->sizes[2]), beta, alpha);
}

/* The sum of the products of a batch is one product over the batch and the inner dimension together. */
msa_tensor *addbmm_cpu(msa_tensor *self, msa_tensor *batch1, msa_tensor *batch2, msa_scalar beta, msa_scalar alpha) {
    if (batch1->ndim != 3) return msa_fail_null(MSA_RUNTIME_ERROR, "batch1 must be a 3D tensor");
    if (batch2->ndim != 3) return msa_fail_null(MSA_RUNTIME_ERROR, "batch2 must be a 3D tensor");
    if (batch1->sizes[0] != batch2->sizes[0])
        return msa_fail_null(MSA_RUNTIME_ERROR, "batch1 and batch2 must have same number of batches, got %lld and %lld",
                             (long long)batch1->sizes[0], (long long)batch2->sizes[0]);
    if (batch1->sizes[2] != batch2->sizes[1])
        return msa_fail_null(MSA_RUNTIME_ERROR, "Incompatible matrix sizes for bmm (%lldx%lld and %lldx%lld)", (long long)batch1->sizes[1],
                             (long long)batch1->sizes[2], (long long)batch2->sizes[1], (long long)batch2->sizes[2]);
    if (same_types(batch1, batch2) != 0 || same_types(batch1, self) != 0 || refuse_bool("addbmm", self) != 0) return NULL;
    const int64_t b = batch1->sizes[0], n = batch1->sizes[1], k = batch1->sizes[2], p = batch2->sizes[2];
    msa_auto msa_tensor *turned = msa_transpose_int(batch1, 0, 1);
    msa_auto msa_tensor *left = turned ? msa_reshape(turned, MSA_INTS(n, b * k)) : NULL;
    msa_auto msa_tensor *right = msa_reshape(batch2, MSA_INTS(b * k, p));
    return left && right ? product(self, left, right, MSA_INTS(n, p), beta, alpha) : NULL;
}

/* A column: (n, 1). */
static msa_tensor *column(msa_tensor *v) {
    return msa_tensor_view_strided(v, MSA_INTS(v->sizes[0], 1), MSA_INTS(v->strides[0], 1), v->offset);
}

static msa_tensor *mv_product(msa_tensor *self, msa_tensor *mat, msa_tensor *vec, msa_scalar beta, msa_scalar alpha) {
    if (mat->ndim != 2 || vec->ndim != 1 || (self && self->ndim > 1))
        return msa_fail_null(MSA_RUNTIME_ERROR, "vector + matrix @ vector expected, got %d, %d, %d", self ? self->ndim : 1, mat->ndim, vec->ndim);
    if (mat->sizes[1] != vec->sizes[0] || (self && self->numel != 1 && self->sizes[0] != mat->sizes[0]))
        return msa_fail_null(MSA_RUNTIME_ERROR, "size mismatch, got %lld, %lldx%lld,%lld", (long long)(self && self->ndim ? self->sizes[0] : mat->sizes[0]),
                             (long long)mat->sizes[0], (long long)mat->sizes[1], (long long)vec->sizes[0]);
    if (same_types(mat, vec) != 0 || (self && same_types(mat, self) != 0) || refuse_bool("addmv_impl_cpu", mat) != 0) return NULL;
    msa_auto msa_tensor *right = column(vec), *sum = NULL, *wide = NULL;
    if (!right) return NULL;
    if (self) {
        wide = msa_expand(self, MSA_INTS(mat->sizes[0]), false);
        sum = wide ? column(wide) : NULL;
        if (!sum) return NULL;
    }
    msa_auto msa_tensor *out = product(sum, mat, right, MSA_INTS(mat->sizes[0], 1), beta, alpha);
    return out ? msa_tensor_view_strided(out, MSA_INTS(mat->sizes[0]), MSA_INTS(1), 0) : NULL;
}

msa_tensor *mv_cpu(msa_tensor *self, msa_tensor *vec) { return mv_product(NULL, self, vec, msa_int(0), msa_int(1)); }

msa_tensor *addmv_cpu(msa_tensor *self, msa_tensor *mat, msa_tensor *vec, msa_scalar beta, msa_scalar alpha) {
    return mv_product(self, mat, vec, beta, alpha);
}

msa_tensor *dot_cpu(msa_tensor *self, msa_tensor *tensor) {
    if (self->ndim != 1 || tensor->ndim != 1)
        return msa_fail_null(MSA_RUNTIME_ERROR, "1D tensors expected, but got %dD and %dD tensors", self->ndim, tensor->ndim);
    if (self->dtype != tensor->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "dot : expected both vectors to have same dtype, but found %s and %s",
                             msa_dtype_type_name((msa_dtype)self->dtype), msa_dtype_type_name((msa_dtype)tensor->dtype));
    if (self->numel != tensor->numel)
        return msa_fail_null(MSA_RUNTIME_ERROR,
                             "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number of elements, but got "
                             "%lld and %lld elements respectively",
                             (long long)self->numel, (long long)tensor->numel, (long long)self->numel, (long long)tensor->numel);
    if (refuse_bool("dot", self) != 0) return NULL;
    msa_auto msa_tensor *row = msa_tensor_view_strided(self, MSA_INTS(1, self->numel), MSA_INTS(self->numel, self->strides[0]), self->offset);
    msa_auto msa_tensor *right = column(tensor);
    msa_auto msa_tensor *out = row && right ? product(NULL, row, right, MSA_INTS(1, 1), msa_int(0), msa_int(1)) : NULL;
    return out ? msa_tensor_view_strided(out, (msa_ints){out->sizes, 0}, (msa_ints){out->strides, 0}, 0) : NULL;
}

/* ---- batched products with broadcast batches ------------------------------------------------------------------- */

msa_tensor *matmul_batched_cpu(msa_tensor *self, msa_tensor *other) {
    if (same_types(self, other) != 0 || refuse_bool("bmm", self) != 0) return NULL;
    const int an = self->ndim, bn = other->ndim;
    if (self->sizes[an - 1] != other->sizes[bn - 2])
        return msa_fail_null(MSA_RUNTIME_ERROR, "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
                             (long long)msa_product((msa_ints){self->sizes, an - 2}), (long long)self->sizes[an - 1],
                             (long long)msa_product((msa_ints){other->sizes, bn - 2}), (long long)other->sizes[bn - 2]);
    int64_t sizes[MSA_MAX_DIMS];
    int nb;
    if (msa_broadcast_sizes("matmul", (msa_ints){self->sizes, an - 2}, (msa_ints){other->sizes, bn - 2}, sizes, &nb) != 0) return NULL;
    const int64_t m = self->sizes[an - 2], k = self->sizes[an - 1], n = other->sizes[bn - 1];
    sizes[nb] = m;
    sizes[nb + 1] = n;
    msa_auto msa_tensor *out = msa_tensor_new((msa_ints){sizes, nb + 2}, (msa_dtype)self->dtype);
    if (!out || out->numel == 0) return msa_take(out);
    if (is_half(out)) {
        msa_auto msa_tensor *a32 = msa_cast_values(self, MSA_FLOAT32), *b32 = msa_cast_values(other, MSA_FLOAT32);
        msa_auto msa_tensor *out32 = a32 && b32 ? matmul_batched_cpu(a32, b32) : NULL;
        return out32 ? msa_cast_values(out32, (msa_dtype)self->dtype) : NULL;
    }
    /* Offsets of each matrix; the two innermost batch dimensions of attention, (batch, head), rarely merge. */
    int64_t as[MSA_MAX_DIMS], bs[MSA_MAX_DIMS], batch = 1;
    for (int d = 0; d < nb; d++) {
        const int da = d - (nb - (an - 2)), db = d - (nb - (bn - 2));
        as[d] = da < 0 || self->sizes[da] == 1 ? 0 : self->strides[da];
        bs[d] = db < 0 || other->sizes[db] == 1 ? 0 : other->strides[db];
        batch *= sizes[d];
    }
    const msa_dtype dtype = (msa_dtype)self->dtype;
    const int64_t size = (int64_t)msa_dtype_size(dtype);
    const msa_matrix a = matrix_of(self), b = matrix_of(other);
    char *c = msa_data(out);
    if (!c || (k && (!a.data || !b.data))) return NULL;
    const int threads = batch > 1 ? msa_threads_for(batch * m * n * (k ? k : 1), 32768) : 1;
    int failed = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t t = 0; t < batch; t++) {
        int64_t rest = t, ao = 0, bo = 0;
        for (int d = nb - 1; d >= 0; d--) {
            ao += rest % sizes[d] * as[d];
            bo += rest % sizes[d] * bs[d];
            rest /= sizes[d];
        }
        const msa_matrix at = {(const char *)a.data + ao * size, a.row, a.column}, bt = {(const char *)b.data + bo * size, b.row, b.column};
        if (msa_gemm(dtype, m, n, k, msa_int(1), at, bt, msa_int(0), c + t * m * n * size, n) != 0) failed = 1;
    }
    if (failed) return msa_fail_null(MSA_RUNTIME_ERROR, "matrix product failed: out of memory or oneDNN refused it");
    return msa_take(out);
}

/* ---- linear ------------------------------------------------------------------------------------------------------ */

/* input (..., in), weight (out, in) or (in), bias (out): input @ weight^T + bias. */
msa_tensor *linear_cpu(msa_tensor *input, msa_tensor *weight, msa_tensor *bias) {
    if (input->ndim < 1 || weight->ndim != 2)
        return msa_fail_null(MSA_RUNTIME_ERROR, "linear: expected an input of at least 1 dimension and a 2-D weight, got %d-D and %d-D",
                             input->ndim, weight->ndim);
    const int64_t k = input->sizes[input->ndim - 1], n = weight->sizes[0], m = k ? input->numel / k : msa_product((msa_ints){input->sizes, input->ndim - 1});
    if (k != weight->sizes[1])
        return msa_fail_null(MSA_RUNTIME_ERROR, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", (long long)m, (long long)k,
                             (long long)weight->sizes[1], (long long)n);
    if (same_types(input, weight) != 0 || refuse_bool("addmm_impl_cpu_", input) != 0) return NULL;
    if (bias) {
        if (same_types(input, bias) != 0) return NULL;
        if (bias->ndim > 1 || (bias->numel != 1 && bias->sizes[0] != n))
            return msa_fail_null(MSA_RUNTIME_ERROR,
                                 "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton dimension 1.  "
                                 "Target sizes: [%lld, %lld].  Tensor sizes: %s",
                                 (long long)n, (long long)(bias->ndim ? bias->sizes[bias->ndim - 1] : 1), (long long)m, (long long)n,
                                 msa_sizes_text(msa_sizes(bias)));
    }
    int64_t sizes[MSA_MAX_DIMS];
    memcpy(sizes, input->sizes, sizeof(int64_t) * input->ndim);
    sizes[input->ndim - 1] = n;
    const msa_ints shape = {sizes, input->ndim};
    msa_auto msa_tensor *flat = input->ndim == 2 ? msa_tensor_retain(input) : msa_reshape(input, MSA_INTS(m, k));
    msa_auto msa_tensor *turned = msa_tensor_view_strided(weight, MSA_INTS(k, n), MSA_INTS(weight->strides[1], weight->strides[0]), weight->offset);
    msa_auto msa_tensor *out = flat && turned ? product(bias, flat, turned, MSA_INTS(m, n), msa_int(1), msa_int(1)) : NULL;
    return !out || input->ndim == 2 ? msa_take(out) : msa_reshape(out, shape);
}
