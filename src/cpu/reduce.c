/* Reductions over dimensions. */
#include "base/parallel.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

msa_tensor *sum_cpu(msa_tensor *self, msa_ints dim, bool keepdim, msa_dtype dtype) {
    bool reduce[MSA_MAX_DIMS] = {false};
    for (int64_t i = 0; i < dim.n; i++) {
        int d = msa_wrap_dim("sum", dim.data[i], self->ndim);
        if (d < 0) return NULL;
        if (reduce[d]) return msa_fail_null(MSA_RUNTIME_ERROR, "dim %d appears multiple times in the list of dims", d);
        reduce[d] = self->ndim > 0;
    }
    if (dim.n <= 0)
        for (int d = 0; d < self->ndim; d++) reduce[d] = true;
    msa_dtype have = (msa_dtype)self->dtype;
    msa_dtype result_type = dtype != MSA_NO_DTYPE ? dtype : msa_is_integral(have, true) ? MSA_INT64 : have;
    msa_dtype work = msa_is_complex(result_type) ? MSA_COMPLEX128 : msa_is_inexact(result_type) ? MSA_FLOAT64 : MSA_INT64;
    /* The plain version: everything in the widest type, kept dimensions first. */
    int64_t order[MSA_MAX_DIMS], sizes[MSA_MAX_DIMS], kept_sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    int n = 0, out_n = 0;
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < self->ndim; d++)
        if (!reduce[d]) {
            order[n++] = d;
            outer *= self->sizes[d];
        }
    for (int d = 0; d < self->ndim; d++)
        if (reduce[d]) {
            order[n++] = d;
            inner *= self->sizes[d];
        }
    for (int d = 0; d < self->ndim; d++)
        if (!reduce[d] || keepdim) kept_sizes[out_n++] = reduce[d] ? 1 : self->sizes[d];
    for (int i = 0; i < n; i++) {
        sizes[i] = self->sizes[order[i]];
        strides[i] = self->strides[order[i]];
    }
    if (!msa_data(self) && self->numel) return NULL;
    msa_auto msa_tensor *permuted = msa_tensor_over(self->storage, have, self->offset, n, sizes, strides);
    msa_auto msa_tensor *wide = permuted ? msa_tensor_new(msa_sizes(permuted), work) : NULL;
    msa_auto msa_tensor *out = msa_tensor_new((msa_ints){kept_sizes, out_n}, work);
    if (!wide || !out || msa_copy_values(wide, permuted) != 0) return NULL;
    for (int64_t i = 0; i < outer; i++) {
        if (work == MSA_INT64) {
            const int64_t *p = (const int64_t *)wide->storage->data + i * inner;
            int64_t s = 0;
            for (int64_t k = 0; k < inner; k++) s += p[k];
            ((int64_t *)out->storage->data)[i] = s;
        } else if (work == MSA_FLOAT64) {
            const double *p = (const double *)wide->storage->data + i * inner;
            double s = 0;
            for (int64_t k = 0; k < inner; k++) s += p[k];
            ((double *)out->storage->data)[i] = s;
        } else {
            const double *p = (const double *)wide->storage->data + 2 * i * inner;
            double re = 0, im = 0;
            for (int64_t k = 0; k < inner; k++) re += p[2 * k], im += p[2 * k + 1];
            ((double *)out->storage->data)[2 * i] = re;
            ((double *)out->storage->data)[2 * i + 1] = im;
        }
    }
    return msa_cast_values(out, result_type);
}

msa_tensor *sum_all_cpu(msa_tensor *self, msa_dtype dtype) { return sum_cpu(self, MSA_NO_INTS, false, dtype); }
