/* Operators on sparse tensors that are made of other operators, and record by them. The kernels are in cpu/sparse.c. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

msa_tensor *to_sparse_values(msa_tensor *self) {
    return self->layout == MSA_SPARSE_COO ? msa_tensor_retain(self) : msa_to_sparse_sparse_dim(self, self->ndim);
}

msa_tensor *to_dense_values(msa_tensor *self, msa_dtype dtype) {
    if (self->layout) return msa__to_dense(self, dtype == MSA_NO_DTYPE ? (msa_dtype)self->dtype : dtype);
    return dtype == MSA_NO_DTYPE ? msa_tensor_retain(self) : msa_to_dtype(self, dtype, false, false, -1);
}

msa_tensor *coalesce_values(msa_tensor *self) {
    return self->layout == MSA_SPARSE_COO && msa_sparse_of(self)->coalesced ? msa_tensor_retain(self) : msa__coalesce(self);
}

msa_tensor *msa_add_layouts(msa_tensor *a, msa_tensor *b) {
    return a->layout && !b->layout ? msa_add(b, a, msa_int(1)) : msa_add(a, b, msa_int(1));
}

msa_tensor *mm_sparse(msa_tensor *self, msa_tensor *mat2) { return msa__sparse_mm(self, mat2); }

msa_tensor *addmm_sparse(msa_tensor *self, msa_tensor *mat1, msa_tensor *mat2, msa_scalar beta, msa_scalar alpha) {
    msa_auto msa_tensor *product = msa_mm(mat1, mat2), *part = product ? multiplied(product, alpha) : NULL, *rest = part ? multiplied(self, beta) : NULL;
    return rest ? msa_add_layouts(rest, part) : NULL;
}

msa_tensor *mv_sparse(msa_tensor *self, msa_tensor *vec) {
    if (self->ndim != 2 || vec->ndim != 1 || vec->layout)
        return msa_fail_null(MSA_RUNTIME_ERROR, "mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: %d Tensor Dim: %d", self->ndim, vec->ndim);
    msa_auto msa_tensor *column = msa_unsqueeze(vec, 1), *product = column ? msa_mm(self, column) : NULL;
    return product ? msa_squeeze_dim(product, 1) : NULL;
}

msa_tensor *matmul_sparse(msa_tensor *self, msa_tensor *other) {
    if (self->ndim == 2 && other->ndim == 1) return msa_mv(self, other);
    if (self->ndim == 2 && other->ndim == 2) return msa_mm(self, other);
    return msa_fail_null(MSA_NOT_IMPLEMENTED, "matmul of sparse tensors is there for matrices, not for %dD and %dD", self->ndim, other->ndim);
}

/* One value for each place, recorded; every other element is a zero. */
static msa_tensor *values_by_place(msa_tensor *self) {
    msa_auto msa_tensor *sums = self->layout == MSA_SPARSE_COO ? msa_coalesce(self) : msa_tensor_retain(self);
    return sums ? msa_values(sums) : NULL;
}

msa_tensor *sum_sparse(msa_tensor *self, msa_dtype dtype) {
    msa_auto msa_tensor *values = values_by_place(self);
    return values ? msa_sum(values, dtype) : NULL;
}

msa_tensor *vector_norm_sparse(msa_tensor *self, msa_scalar ord, msa_ints dim, bool keepdim, msa_dtype dtype) {
    if (dim.n > 0 || keepdim) return msa_fail_null(MSA_RUNTIME_ERROR, "norm_sparse currently only supports full reductions, so 'dim' must be empty or contain all dimensions of the input");
    msa_auto msa_tensor *values = values_by_place(self);
    return values ? msa_linalg_vector_norm(values, ord, dim, keepdim, dtype) : NULL;
}

msa_tensor *embedding_gradient(msa_tensor *grad, msa_tensor *indices, msa_ints sizes, int64_t padding_idx, bool scale_grad_by_freq, bool sparse) {
    if (!sparse) return msa_embedding_dense_backward(grad, indices, sizes.data[0], padding_idx, scale_grad_by_freq);
    if (scale_grad_by_freq) return msa_fail_null(MSA_RUNTIME_ERROR, "embedding_backward: scale_grad_by_freq not supported with sparse gradients");
    msa_auto msa_tensor *wide = msa_to_dtype(indices, MSA_INT64, false, false, -1), *flat = wide ? msa_reshape(wide, MSA_INTS(-1)) : NULL;
    msa_auto msa_tensor *rows = flat ? msa_reshape(grad, MSA_INTS(flat->numel, sizes.data[1])) : NULL;
    if (!rows) return NULL;
    if (padding_idx != -1) {
        msa_auto msa_tensor *padding = msa_wrap_number(msa_int(padding_idx)), *kept = padding ? msa_ne(flat, padding) : NULL;
        msa_auto msa_tensor *found = kept ? msa_nonzero(kept) : NULL, *where = found ? msa_squeeze_dim(found, 1) : NULL;
        msa_tensor *fewer = where ? msa_index_select(flat, 0, where) : NULL, *part = where ? msa_index_select(rows, 0, where) : NULL;
        msa_tensor_release(flat);
        msa_tensor_release(rows);
        flat = fewer;
        rows = part;
    }
    msa_auto msa_tensor *index = flat ? msa_unsqueeze(flat, 0) : NULL;
    return index && rows ? msa__sparse_coo_tensor_unsafe(index, rows, sizes, false) : NULL;
}
