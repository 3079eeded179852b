/* Rows of a table by index, the gradient of the table, and its renormalisation. */
#include <math.h>

#include "base/parallel.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

static int check_indices(const msa_tensor *indices) {
    if (indices->dtype == MSA_INT64 || indices->dtype == MSA_INT32) return 0;
    return msa_fail(MSA_RUNTIME_ERROR,
                    "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.%sTensor instead (while "
                    "checking arguments for embedding)",
                    msa_dtype_type_name((msa_dtype)indices->dtype));
}

/* Contiguous int64 indices, all inside [0, rows). */
static msa_tensor *checked_indices(msa_tensor *indices, int64_t rows) {
    if (check_indices(indices) != 0) return NULL;
    msa_auto msa_tensor *wide = msa_cast_values(indices, MSA_INT64), *t = wide ? msa_contiguous_values(wide) : NULL;
    const int64_t *at = t ? msa_data(t) : NULL;
    if (!t || (!at && t->numel)) return NULL;
    for (int64_t i = 0; i < t->numel; i++)
        if (at[i] < 0 || at[i] >= rows) return msa_fail_null(MSA_INDEX_ERROR, "index out of range in self");
    return msa_take(t);
}

msa_tensor *embedding_cpu(msa_tensor *weight, msa_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq, bool sparse) {
    if (weight->ndim != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "'weight' must be 2-D");
    msa_auto msa_tensor *index = checked_indices(indices, weight->sizes[0]), *table = msa_contiguous_values(weight);
    int64_t sizes[MSA_MAX_DIMS];
    if (indices->ndim >= MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "embedding: indices have too many dimensions");
    memcpy(sizes, indices->sizes, sizeof(int64_t) * indices->ndim);
    sizes[indices->ndim] = weight->sizes[1];
    msa_auto msa_tensor *out = msa_tensor_new((msa_ints){sizes, indices->ndim + 1}, (msa_dtype)weight->dtype);
    if (!index || !table || !out) return NULL;
    const size_t row = (size_t)weight->sizes[1] * msa_dtype_size((msa_dtype)weight->dtype);
    const int64_t *at = msa_data(index), n = index->numel;
    const char *from = msa_data(table);
    char *to = out->storage->data;
    if (!row || !n) return msa_take(out);
#pragma omp parallel for num_threads(msa_threads_for(n *(int64_t)row, 8 * MSA_GRAIN))
    for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)i * row, from + (size_t)at[i] * row, row);
    return msa_take(out);
}

/* Threads share out the columns, so that no two add to one element. */
#define TABLE_GRADIENT(NAME, T) \
    static void NAME##_add_rows(int64_t n, int64_t d, const int64_t *index, int64_t padding, const int64_t *counts, const T *grad, T *out) { \
        const int threads = d >= 32 ? msa_threads_for(n * d, MSA_GRAIN) : 1; \
        _Pragma("omp parallel for num_threads(threads)") for (int t = 0; t < threads; t++) { \
            int64_t begin, end; \
            msa_share(d, threads, t, &begin, &end); \
            for (int64_t i = 0; i < n; i++) { \
                if (index[i] == padding) continue; \
                T *row = out + index[i] * d; \
                const T *from = grad + i * d; \
                if (counts) { \
                    const T scale = (T)1 / (T)counts[index[i]]; \
                    for (int64_t k = begin; k < end; k++) row[k] += from[k] * scale; \
                } else \
                    for (int64_t k = begin; k < end; k++) row[k] += from[k]; \
            } \
        } \
    }
TABLE_GRADIENT(f32, float)
TABLE_GRADIENT(f64, double)

msa_tensor *embedding_dense_backward_cpu(msa_tensor *grad_output, msa_tensor *indices, int64_t num_weights, int64_t padding_idx, bool scale_grad_by_freq) {
    const msa_dtype given = (msa_dtype)grad_output->dtype, type = given == MSA_FLOAT64 || given == MSA_COMPLEX128 ? MSA_FLOAT64 : MSA_FLOAT32;
    if (!msa_is_floating(given)) return msa_fail_null(MSA_NOT_IMPLEMENTED, "\"embedding_backward\" not implemented for '%s'", msa_dtype_type_name(given));
    if (num_weights < 0 || grad_output->ndim != indices->ndim + 1 || memcmp(grad_output->sizes, indices->sizes, sizeof(int64_t) * indices->ndim) != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "embedding_dense_backward: grad_output of another size");
    const int64_t d = grad_output->sizes[grad_output->ndim - 1];
    msa_auto msa_tensor *index = checked_indices(indices, num_weights), *typed = msa_cast_values(grad_output, type), *grad = typed ? msa_contiguous_values(typed) : NULL;
    msa_auto msa_tensor *out = msa_tensor_new(MSA_INTS(num_weights, d), type);
    if (!index || !grad || !out || msa_fill_values(out, msa_int(0)) != 0) return NULL;
    const int64_t n = index->numel, *at = msa_data(index);
    msa_auto_free int64_t *counts = scale_grad_by_freq ? msa_calloc((size_t)num_weights, sizeof *counts) : NULL;
    if (scale_grad_by_freq && !counts) return NULL;
    for (int64_t i = 0; i < n && counts; i++) counts[at[i]]++;
    if (n && d) {
        if (type == MSA_FLOAT64) f64_add_rows(n, d, at, padding_idx, counts, msa_data(grad), out->storage->data);
        else f32_add_rows(n, d, at, padding_idx, counts, msa_data(grad), out->storage->data);
    }
    return msa_cast_values(out, given);
}

/* Rows that `indices` name and whose norm is above max_norm are scaled down to it. */
int embedding_renorm_cpu(msa_tensor *self, msa_tensor *indices, double max_norm, double norm_type) {
    if (self->ndim != 2) return msa_fail(MSA_RUNTIME_ERROR, "'self' must be 2-D");
    if (!msa_is_floating((msa_dtype)self->dtype)) return msa_fail(MSA_NOT_IMPLEMENTED, "embedding_renorm_ not implemented for '%s'", msa_dtype_type_name((msa_dtype)self->dtype));
    msa_auto msa_tensor *index = checked_indices(indices, self->sizes[0]), *wide = msa_cast_values(self, MSA_FLOAT64);
    msa_auto msa_tensor *values = wide ? (wide == self ? msa_clone_values(wide) : msa_contiguous_values(wide)) : NULL;
    msa_auto_free bool *done = msa_calloc((size_t)self->sizes[0], sizeof *done);
    if (!index || !values || !done) return -1;
    msa_auto msa_tensor *table = msa_contiguous_values(values);
    if (!table) return -1;
    double *v = msa_data(table);
    const int64_t *at = msa_data(index), d = self->sizes[1];
    for (int64_t i = 0; i < index->numel; i++) {
        if (done[at[i]]) continue;
        done[at[i]] = true;
        double *row = v + at[i] * d, norm = 0;
        for (int64_t k = 0; k < d; k++)
            norm = isinf(norm_type) ? fmax(norm, fabs(row[k])) : norm_type == 2 ? norm + row[k] * row[k] : norm + pow(fabs(row[k]), norm_type);
        if (!isinf(norm_type)) norm = norm_type == 2 ? sqrt(norm) : pow(norm, 1 / norm_type);
        if (norm > max_norm)
            for (int64_t k = 0; k < d; k++) row[k] *= max_norm / (norm + 1e-7);
    }
    return msa_copy_values(self, table);
}
