/* gather and scatter, and the geometry that they share with scatter_reduce. */
#include "cpu/scatter.h"

#include "base/parallel.h"
#include "cpu/element.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

static int check_shapes(const msa_tensor *self, int dim, const msa_tensor *index, const msa_tensor *other, bool into_self) {
    const int ndim = self->ndim ? self->ndim : 1;
    if ((index->ndim ? index->ndim : 1) != ndim)
        return msa_fail(MSA_RUNTIME_ERROR, "Index tensor must have the same number of dimensions as %s tensor", into_self ? "self" : "input");
    if (other && (other->ndim ? other->ndim : 1) != ndim)
        return msa_fail(MSA_RUNTIME_ERROR, "Index tensor must have the same number of dimensions as src tensor");
    for (int d = 0; d < index->ndim; d++) {
        if (d != dim && index->sizes[d] > (self->ndim ? self->sizes[d] : 1))
            return msa_fail(MSA_RUNTIME_ERROR, "Expected index %s to be smaller than self %s apart from dimension %d", msa_sizes_text(msa_sizes(index)),
                            msa_sizes_text(msa_sizes(self)), dim);
        if (other && index->sizes[d] > (other->ndim ? other->sizes[d] : 1))
            return msa_fail(MSA_RUNTIME_ERROR, "Expected index %s to be smaller than src %s", msa_sizes_text(msa_sizes(index)), msa_sizes_text(msa_sizes(other)));
    }
    return 0;
}

int msa_scatter_rows_open(msa_scatter_rows *r, const char *op, const msa_tensor *self, int64_t dim, msa_tensor *index, const msa_tensor *other,
                          bool into_self) {
    memset(r, 0, sizeof *r);
    r->dim = msa_wrap_dim(op, dim, self->ndim);
    if (r->dim < 0) return -1;
    if (index->numel == 0) return 0;
    if (index->dtype != MSA_INT64) return msa_fail(MSA_RUNTIME_ERROR, "%s(): Expected dtype int64 for index", op);
    if (check_shapes(self, r->dim, index, other, into_self) != 0) return -1;
    r->index = msa_contiguous_values(index);
    if (!r->index) return -1;
    const int64_t *p = msa_data(r->index), limit = self->ndim ? self->sizes[r->dim] : 1;
    for (int64_t k = 0; k < r->index->numel; k++)
        if ((uint64_t)p[k] >= (uint64_t)limit)
            return msa_fail(MSA_RUNTIME_ERROR, "index %lld is out of bounds for dimension %d with size %lld", (long long)p[k], r->dim, (long long)limit);
    r->ndim = r->index->ndim;
    r->sizes = r->index->sizes;
    r->along = self->ndim ? self->strides[r->dim] : 0;
    for (int d = 0; d < r->ndim; d++) {
        r->self_strides[d] = self->ndim && d != r->dim ? self->strides[d] : 0;
        r->other_strides[d] = other && other->ndim ? other->strides[d] : 0;
    }
    r->inner = r->ndim ? r->sizes[r->ndim - 1] : 1;
    r->rows = r->index->numel / r->inner;
    r->self_step = r->ndim ? r->self_strides[r->ndim - 1] : 0;
    r->other_step = r->ndim ? r->other_strides[r->ndim - 1] : 0;
    return 0;
}

/* The loop over a row: `here` and `there` are the places in self and in the other operand. */
#define OVER_ROW(BODY) \
    do { \
        for (int64_t j = 0; j < r->inner; j++) { \
            const int64_t here = self_at + p[j] * r->along + j * r->self_step, there = other_at + j * r->other_step; \
            BODY; \
        } \
    } while (0)
#define COPY_ROW(T) OVER_ROW(into_self ? (void)(((T *)self)[here] = ((const T *)other)[there]) : (void)(((T *)other)[there] = ((const T *)self)[here]))

typedef struct {
    uint64_t half[2];
} sixteen_bytes;

static void copy_row(const msa_scatter_rows *r, const int64_t *p, size_t size, void *self, int64_t self_at, void *other, int64_t other_at, bool into_self) {
    switch (size) {
    case 1: COPY_ROW(uint8_t); break;
    case 2: COPY_ROW(uint16_t); break;
    case 4: COPY_ROW(uint32_t); break;
    case 8: COPY_ROW(uint64_t); break;
    default: COPY_ROW(sixteen_bytes); break;
    }
}

static void copy_rows(const msa_scatter_rows *r, size_t size, void *self, void *other, bool into_self) {
    if (!r->rows) return;
    const int64_t *p = msa_data(r->index);
    /* Only reading is free of conflicts. */
#pragma omp parallel for num_threads(into_self ? 1 : msa_threads_for(r->rows * r->inner, MSA_GRAIN)) schedule(static)
    for (int64_t row = 0; row < r->rows; row++) {
        int64_t self_at, other_at;
        msa_scatter_row(r, row, &self_at, &other_at);
        copy_row(r, p + row * r->inner, size, self, self_at, other, other_at, into_self);
    }
}

msa_tensor *gather_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, bool sparse_grad) {
    if (sparse_grad) return msa_fail_null(MSA_NOT_IMPLEMENTED, "gather: sparse_grad=True is not implemented");
    msa_auto msa_tensor *result = msa_tensor_new(msa_sizes(index), (msa_dtype)self->dtype);
    msa_auto_scatter_rows msa_scatter_rows r = {0};
    if (!result || msa_scatter_rows_open(&r, "gather", self, dim, index, result, false) != 0) return NULL;
    void *from = r.rows ? msa_data(self) : NULL;
    if (r.rows && !from) return NULL;
    copy_rows(&r, msa_dtype_size((msa_dtype)self->dtype), from, result->storage->data, false);
    return msa_take(result);
}

typedef enum { COPY, ADD, MULTIPLY } scatter_mode;

static void add_rows(const msa_scatter_rows *r, msa_dtype dtype, void *self, const void *other, bool multiply) {
    const int64_t *index = msa_data(r->index), size = (int64_t)msa_dtype_size(dtype);
    for (int64_t row = 0; row < r->rows; row++) {
        const int64_t *p = index + row * r->inner;
        int64_t self_at, other_at;
        msa_scatter_row(r, row, &self_at, &other_at);
        if (multiply) OVER_ROW(msa_element_multiply(dtype, (char *)self + here * size, (const char *)other + there * size));
        else if (dtype == MSA_FLOAT32) OVER_ROW(((float *)self)[here] += ((const float *)other)[there]);
        else if (dtype == MSA_FLOAT64) OVER_ROW(((double *)self)[here] += ((const double *)other)[there]);
        else OVER_ROW(msa_element_add(dtype, (char *)self + here * size, (const char *)other + there * size));
    }
}

static msa_tensor *scattered_copy(msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *src, scatter_mode mode, bool scalar) {
    if (src->dtype != self->dtype) return msa_fail_null(MSA_RUNTIME_ERROR, "scatter(): Expected self.dtype to be equal to src.dtype");
    msa_auto msa_tensor *result = msa_clone_values(self);
    msa_auto_scatter_rows msa_scatter_rows r = {0};
    if (!result || msa_scatter_rows_open(&r, "scatter", result, dim, index, scalar ? NULL : src, true) != 0) return NULL;
    if (!r.rows) return msa_take(result);
    void *to = msa_data(result), *from = msa_data(src);
    if (!to || !from) return NULL;
    if (mode == COPY) copy_rows(&r, msa_dtype_size((msa_dtype)self->dtype), to, from, true);
    else add_rows(&r, (msa_dtype)self->dtype, to, from, mode == MULTIPLY);
    return msa_take(result);
}

msa_tensor *scatter_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *src) {
    return scattered_copy(self, dim, index, src, COPY, false);
}

msa_tensor *scatter_value_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_scalar value) {
    msa_auto msa_tensor *one = msa_tensor_scalar(value, (msa_dtype)self->dtype);
    return one ? scattered_copy(self, dim, index, one, COPY, true) : NULL;
}

static int mode_of(const char *reduce, scatter_mode *mode) {
    if (strcmp(reduce, "add") == 0) *mode = ADD;
    else if (strcmp(reduce, "multiply") == 0) *mode = MULTIPLY;
    else return msa_fail(MSA_RUNTIME_ERROR, "reduce argument must be either add or multiply.");
    return 0;
}

msa_tensor *scatter_reduced_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *src, const char *reduce) {
    scatter_mode mode = COPY;
    return mode_of(reduce, &mode) == 0 ? scattered_copy(self, dim, index, src, mode, false) : NULL;
}

msa_tensor *scatter_value_reduced_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_scalar value, const char *reduce) {
    scatter_mode mode = COPY;
    msa_auto msa_tensor *one = msa_tensor_scalar(value, (msa_dtype)self->dtype);
    return one && mode_of(reduce, &mode) == 0 ? scattered_copy(self, dim, index, one, mode, true) : NULL;
}

msa_tensor *scatter_add_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *src) {
    return scattered_copy(self, dim, index, src, ADD, false);
}
