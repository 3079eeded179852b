/* Reductions and scans as matrices of rows. */
#include "cpu/rows.h"

int msa_rows_open(msa_rows *rows, const char *op, msa_tensor *self, msa_ints dims, bool keepdim, msa_dtype working) {
    bool reduce[MSA_MAX_DIMS] = {false};
    memset(rows, 0, sizeof *rows);
    for (int64_t i = 0; i < dims.n; i++) {
        int d = msa_wrap_dim(op, dims.data[i], self->ndim);
        if (d < 0) return -1;
        if (reduce[d]) return msa_fail(MSA_RUNTIME_ERROR, "%s: dim %d appears multiple times in the list of dims", op, d);
        reduce[d] = self->ndim > 0;
    }
    if (dims.n <= 0)
        for (int d = 0; d < self->ndim; d++) reduce[d] = true;
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    int n = 0;
    rows->outer = rows->inner = 1;
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < self->ndim; d++) {
            if (reduce[d] != (pass == 1)) continue;
            sizes[n] = self->sizes[d];
            strides[n++] = self->strides[d];
            if (pass) rows->inner *= self->sizes[d];
            else rows->outer *= self->sizes[d];
        }
    for (int d = 0; d < self->ndim; d++)
        if (!reduce[d] || keepdim) rows->sizes[rows->ndim++] = reduce[d] ? 1 : self->sizes[d];
    if (self->numel && !msa_data(self)) return -1;
    msa_auto msa_tensor *permuted = msa_tensor_over(self->storage, (msa_dtype)self->dtype, self->offset, n, sizes, strides);
    if (!permuted) return -1;
    if (permuted->contiguous && (msa_dtype)permuted->dtype == working) {
        rows->matrix = msa_take(permuted);
        return 0;
    }
    rows->matrix = msa_tensor_new(msa_sizes(permuted), working);
    return rows->matrix ? msa_copy_values(rows->matrix, permuted) : -1;
}

int msa_lines_open(msa_rows *rows, const char *op, msa_tensor *self, int64_t dim, msa_dtype working) {
    memset(rows, 0, sizeof *rows); /* the caller's cleanup runs whatever happens here */
    int d = msa_wrap_dim(op, dim, self->ndim);
    return d < 0 ? -1 : msa_rows_open(rows, op, self, MSA_INTS(d), false, working);
}

msa_tensor *msa_lines_result(const msa_tensor *self, int64_t dim, msa_tensor *matrix, msa_dtype dtype) {
    int d = msa_wrap_dim("", dim, self->ndim);
    int64_t n = matrix->sizes[matrix->ndim - 1];
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS], step = n;
    memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
    if (self->ndim) sizes[d] = n;
    for (int i = self->ndim - 1; i >= 0; i--) {
        if (i == d) {
            strides[i] = 1;
            continue;
        }
        strides[i] = step;
        step *= sizes[i];
    }
    msa_auto msa_tensor *seen = msa_tensor_over(matrix->storage, (msa_dtype)matrix->dtype, matrix->offset, self->ndim, sizes, strides);
    if (!seen) return NULL;
    if (seen->contiguous && (msa_dtype)seen->dtype == dtype) return msa_take(seen);
    msa_auto msa_tensor *out = msa_tensor_new(msa_sizes(seen), dtype);
    return out && msa_copy_values(out, seen) == 0 ? msa_take(out) : NULL;
}
