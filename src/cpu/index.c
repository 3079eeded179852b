/* Indexing by tensors: index, index_put_, index_select, take, nonzero and their relatives. gather and scatter are in scatter.c. */
#include <stdlib.h>

#include "base/parallel.h"
#include "cpu/element.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

static int check_index_type(const char *op, const msa_tensor *index) {
    if (index->dtype == MSA_INT64 || index->dtype == MSA_INT32) return 0;
    return msa_fail(MSA_RUNTIME_ERROR, "%s(): Expected dtype int64 for index", op);
}

/* An index tensor as contiguous int64. */
static msa_tensor *plain_index(msa_tensor *index) {
    msa_auto msa_tensor *wide = msa_cast_values(index, MSA_INT64);
    return wide ? msa_contiguous_values(wide) : NULL;
}

/* Indexing by lists of tensors. */

/* Masks replaced by the positions where they are true; every index int64. `dims[i]` is the dimension of self that indices[i]
 * stands for. */
typedef struct {
    int n;
    msa_tensor *index[MSA_MAX_DIMS]; /* broadcast to `sizes`, contiguous */
    int dim[MSA_MAX_DIMS];
    int ndim; /* of the broadcast shape */
    int64_t sizes[MSA_MAX_DIMS];
    int64_t count;
    bool adjacent;
    /* Self seen as the dimensions that are not indexed; the result's geometry over them and over the indexed shape. */
    int rest;
    int64_t rest_sizes[MSA_MAX_DIMS], rest_strides[MSA_MAX_DIMS];
    int result_ndim, at; /* the indexed shape starts at dimension `at` of the result */
    int64_t result_sizes[MSA_MAX_DIMS];
} advanced;

static void advanced_close(advanced *a) {
    for (int i = 0; i < a->n; i++) msa_tensor_release(a->index[i]);
}
#define auto_advanced __attribute__((cleanup(advanced_close)))

static int add_mask(advanced *a, msa_tensor *self, msa_tensor *mask, int *dim) {
    for (int i = 0; i < mask->ndim; i++)
        if (*dim + i >= self->ndim || mask->sizes[i] != self->sizes[*dim + i])
            return msa_fail(MSA_INDEX_ERROR, "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %d",
                            msa_sizes_text(msa_sizes(mask)), i, msa_sizes_text(msa_sizes(self)), *dim + i);
    msa_auto msa_tensor *places = nonzero_cpu(mask);
    if (!places) return -1;
    for (int i = 0; i < mask->ndim; i++) {
        int64_t n = places->sizes[0], stride = places->sizes[1];
        msa_auto msa_tensor *column = msa_tensor_over(places->storage, MSA_INT64, i, 1, &n, &stride);
        if (!column || !(a->index[a->n] = msa_contiguous_values(column))) return -1;
        a->dim[a->n++] = (*dim)++;
    }
    return 0;
}

static int advanced_open(advanced *a, msa_tensor *self, msa_tensors indices) {
    memset(a, 0, sizeof *a);
    if (indices.n > self->ndim)
        return msa_fail(MSA_INDEX_ERROR, "too many indices for tensor of dimension %d (got %lld)", self->ndim, (long long)indices.n);
    int dim = 0;
    for (int64_t i = 0; i < indices.n; i++) {
        msa_tensor *t = indices.data[i];
        if (!t) {
            dim++;
            continue;
        }
        if (t->dtype == MSA_BOOL || t->dtype == MSA_UINT8) {
            if (add_mask(a, self, t, &dim) != 0) return -1;
            continue;
        }
        if (t->dtype != MSA_INT64 && t->dtype != MSA_INT32 && t->dtype != MSA_INT8 && t->dtype != MSA_INT16)
            return msa_fail(MSA_INDEX_ERROR, "tensors used as indices must be long, byte or bool tensors");
        if (dim >= self->ndim) return msa_fail(MSA_INDEX_ERROR, "too many indices for tensor of dimension %d", self->ndim);
        if (!(a->index[a->n] = msa_cast_values(t, MSA_INT64))) return -1;
        a->dim[a->n++] = dim++;
    }
    for (int i = 0; i < a->n; i++) {
        int64_t merged[MSA_MAX_DIMS];
        int ndim;
        if (msa_broadcast_sizes("index", (msa_ints){a->sizes, a->ndim}, msa_sizes(a->index[i]), merged, &ndim) != 0) {
            msa_error_clear();
            return msa_fail(MSA_INDEX_ERROR, "shape mismatch: indexing tensors could not be broadcast together with shapes %s, %s",
                            msa_sizes_text((msa_ints){a->sizes, a->ndim}), msa_sizes_text(msa_sizes(a->index[i])));
        }
        a->ndim = ndim;
        memcpy(a->sizes, merged, sizeof(int64_t) * (size_t)ndim);
    }
    a->count = 1;
    for (int i = 0; i < a->ndim; i++) a->count *= a->sizes[i];
    for (int i = 0; i < a->n; i++) {
        msa_auto msa_tensor *wide = msa_expand(a->index[i], (msa_ints){a->sizes, a->ndim}, false);
        msa_tensor *plain = wide ? msa_contiguous_values(wide) : NULL;
        if (!plain) return -1;
        msa_tensor_release(a->index[i]);
        a->index[i] = plain;
        int64_t size = self->sizes[a->dim[i]];
        const int64_t *p = msa_data(plain);
        for (int64_t k = 0; k < a->count; k++)
            if (p[k] < -size || p[k] >= size)
                return msa_fail(MSA_INDEX_ERROR, "index %lld is out of bounds for dimension %d with size %lld", (long long)p[k], a->dim[i], (long long)size);
    }
    a->adjacent = true;
    for (int i = 1; i < a->n; i++) a->adjacent = a->adjacent && a->dim[i] == a->dim[i - 1] + 1;
    a->at = a->adjacent && a->n ? a->dim[0] : 0;
    bool indexed[MSA_MAX_DIMS] = {false};
    for (int i = 0; i < a->n; i++) indexed[a->dim[i]] = true;
    for (int d = 0; d < self->ndim; d++)
        if (!indexed[d]) {
            a->rest_sizes[a->rest] = self->sizes[d];
            a->rest_strides[a->rest++] = self->strides[d];
        }
    if (a->rest + a->ndim > MSA_MAX_DIMS) return msa_fail(MSA_RUNTIME_ERROR, "index: the result would have too many dimensions");
    for (int i = 0; i < a->at; i++) a->result_sizes[a->result_ndim++] = a->rest_sizes[i];
    for (int i = 0; i < a->ndim; i++) a->result_sizes[a->result_ndim++] = a->sizes[i];
    for (int i = a->at; i < a->rest; i++) a->result_sizes[a->result_ndim++] = a->rest_sizes[i];
    return 0;
}

/* Whether what is not indexed lies together and in order. */
static bool blocks_behind(const advanced *a, const msa_tensor *self) {
    int64_t step = 1;
    for (int i = a->rest - 1; i >= 0; i--) {
        if (a->rest_sizes[i] != 1 && a->rest_strides[i] != step) return false;
        step *= a->rest_sizes[i];
    }
    return true;
}

/* Visit every (position in self, position in values): values has the result's geometry with any strides. */
static void advanced_walk(const advanced *a, msa_tensor *self, const msa_tensor *values, bool into_self, bool accumulate) {
    size_t size = msa_dtype_size((msa_dtype)self->dtype);
    char *base = msa_data(self), *other = msa_data(values);
    int64_t value_strides[MSA_MAX_DIMS], rest_count = 1;
    for (int i = 0; i < a->rest; i++) {
        value_strides[i] = values->strides[i < a->at ? i : i + a->ndim];
        rest_count *= a->rest_sizes[i];
    }
    if (!into_self && a->at == 0 && values->contiguous && blocks_behind(a, self)) {
        const int64_t block = rest_count * (int64_t)size;
#pragma omp parallel for num_threads(msa_threads_for(a->count * (block / 64 + 1), MSA_GRAIN)) schedule(static)
        for (int64_t k = 0; k < a->count; k++) {
            int64_t here = 0;
            for (int i = 0; i < a->n; i++) {
                const int64_t p = ((const int64_t *)a->index[i]->storage->data)[a->index[i]->offset + k];
                here += (p < 0 ? p + self->sizes[a->dim[i]] : p) * self->strides[a->dim[i]];
            }
            msa_copy_block(other + k * block, base + here * (int64_t)size, block);
        }
        return;
    }
    int64_t index[MSA_MAX_DIMS] = {0};
    for (int64_t k = 0; k < a->count; k++) {
        int64_t here = 0, there = 0;
        for (int i = 0; i < a->n; i++) {
            int64_t p = ((const int64_t *)a->index[i]->storage->data)[a->index[i]->offset + k];
            here += (p < 0 ? p + self->sizes[a->dim[i]] : p) * self->strides[a->dim[i]];
        }
        for (int i = 0; i < a->ndim; i++) there += index[i] * values->strides[a->at + i];
        msa_element_walk(a->rest, a->rest_sizes, rest_count, base + here * (int64_t)size, a->rest_strides, other + there * (int64_t)size,
                         value_strides, (msa_dtype)self->dtype, into_self, accumulate);
        for (int i = a->ndim - 1; i >= 0 && ++index[i] == a->sizes[i]; i--) index[i] = 0;
    }
}

msa_tensor *index_cpu(msa_tensor *self, msa_tensors indices) {
    auto_advanced advanced a = {0};
    if (advanced_open(&a, self, indices) != 0) return NULL;
    msa_auto msa_tensor *result = msa_tensor_new((msa_ints){a.result_sizes, a.result_ndim}, (msa_dtype)self->dtype);
    if (!result) return NULL;
    if (result->numel) advanced_walk(&a, self, result, false, false);
    return msa_take(result);
}

int index_put_cpu(msa_tensor *self, msa_tensors indices, msa_tensor *values, bool accumulate) {
    auto_advanced advanced a = {0};
    if (self->dtype != values->dtype)
        return msa_fail(MSA_RUNTIME_ERROR, "Index put requires the source and destination dtypes match, got %s for the destination and %s for the source.",
                        msa_dtype_type_name((msa_dtype)self->dtype), msa_dtype_type_name((msa_dtype)values->dtype));
    if (advanced_open(&a, self, indices) != 0) return -1;
    msa_ints sizes = {a.result_sizes, a.result_ndim};
    msa_auto msa_tensor *source = values->storage == self->storage ? msa_clone_values(values) : msa_tensor_retain(values);
    /* Leading dimensions of one element too many are dropped, as assignment in Python allows. */
    while (source && source->ndim > a.result_ndim && source->sizes[0] == 1) {
        msa_tensor *less = msa_select_int(source, 0, 0);
        msa_tensor_release(source);
        source = less;
    }
    msa_auto msa_tensor *wide = source ? msa_expand(source, sizes, false) : NULL;
    if (!wide) {
        if (source) {
            msa_error_clear();
            msa_fail(MSA_RUNTIME_ERROR, "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s",
                     msa_sizes_text(msa_sizes(values)), msa_sizes_text(sizes));
        }
        return -1;
    }
    if (wide->numel) advanced_walk(&a, self, wide, true, accumulate);
    return 0;
}

/* One index tensor along one dimension. */

typedef struct {
    int dim;
    msa_tensor *index; /* contiguous int64, owned */
    int64_t n;
} along;

static void along_close(along *a) { msa_tensor_release(a->index); }
#define auto_along __attribute__((cleanup(along_close)))

static int along_open(along *a, const char *op, const msa_tensor *self, int64_t dim, msa_tensor *index) {
    memset(a, 0, sizeof *a);
    a->dim = msa_wrap_dim(op, dim, self->ndim);
    if (a->dim < 0) return -1;
    if (index->ndim > 1) return msa_fail(MSA_INDEX_ERROR, "%s(): Index is supposed to be a vector", op);
    if (check_index_type(op, index) != 0) return -1;
    a->index = plain_index(index);
    if (!a->index) return -1;
    a->n = index->numel;
    int64_t size = self->ndim ? self->sizes[a->dim] : 1;
    const int64_t *p = msa_data(a->index);
    for (int64_t k = 0; k < a->n; k++)
        if (p[k] < -(strcmp(op, "index_select") == 0 ? 0 : size) || p[k] >= size)
            return msa_fail(strcmp(op, "index_select") == 0 ? MSA_INDEX_ERROR : MSA_INDEX_ERROR, "%s(): index out of range in self", op);
    return 0;
}

/* Slices of `whole` along dim by the index, matched with slices 0..n-1 of `parts` (NULL: only visit). */
static void along_walk(const along *a, msa_tensor *whole, const msa_tensor *parts, bool into_whole, bool accumulate) {
    size_t size = msa_dtype_size((msa_dtype)whole->dtype);
    int64_t sizes[MSA_MAX_DIMS], ours[MSA_MAX_DIMS], theirs[MSA_MAX_DIMS], count = 1;
    int rest = 0;
    for (int d = 0; d < whole->ndim; d++) {
        if (d == a->dim) continue;
        sizes[rest] = whole->sizes[d];
        ours[rest] = whole->strides[d];
        theirs[rest++] = d < parts->ndim ? parts->strides[d] : 0;
        count *= whole->sizes[d];
    }
    if (count == 0) return;
    int64_t whole_step = whole->ndim ? whole->strides[a->dim] : 0, part_step = parts->ndim ? parts->strides[a->dim < parts->ndim ? a->dim : 0] : 0;
    int64_t limit = whole->ndim ? whole->sizes[a->dim] : 1;
    char *base = msa_data(whole), *other = msa_data(parts);
    const int64_t *p = msa_data(a->index);
    int threads = into_whole ? 1 : msa_threads_for(a->n * count, MSA_GRAIN);
#pragma omp parallel for num_threads(threads)
    for (int64_t k = 0; k < a->n; k++) {
        int64_t i = p[k] < 0 ? p[k] + limit : p[k];
        msa_element_walk(rest, sizes, count, base + i * whole_step * (int64_t)size, ours, other + k * part_step * (int64_t)size, theirs,
                         (msa_dtype)whole->dtype, into_whole, accumulate);
    }
}

/* index_select of a contiguous tensor: blocks of what lies behind dim. */
static void select_blocks(const along *a, const msa_tensor *whole, msa_tensor *parts) {
    int64_t block = (int64_t)msa_dtype_size((msa_dtype)whole->dtype), outer = 1;
    for (int d = 0; d < whole->ndim; d++) {
        if (d < a->dim) outer *= whole->sizes[d];
        if (d > a->dim) block *= whole->sizes[d];
    }
    const int64_t limit = whole->ndim ? whole->sizes[a->dim] : 1, *p = msa_data(a->index);
    const char *from = msa_data(whole);
    char *to = parts->storage->data;
    const int64_t grain = block < MSA_GRAIN ? MSA_GRAIN / (block / 64 + 1) : 1;
#pragma omp parallel for num_threads(msa_threads_for(outer * a->n, grain)) schedule(static)
    for (int64_t k = 0; k < outer * a->n; k++) msa_copy_block(to + k * block, from + (k / a->n * limit + p[k % a->n]) * block, block);
}

msa_tensor *index_select_cpu(msa_tensor *self, int64_t dim, msa_tensor *index) {
    auto_along along a = {0};
    if (along_open(&a, "index_select", self, dim, index) != 0) return NULL;
    int64_t sizes[MSA_MAX_DIMS];
    memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
    if (self->ndim) sizes[a.dim] = a.n;
    else if (a.n != 1) return msa_fail_null(MSA_INDEX_ERROR, "index_select(): Index to scalar can have only 1 value, got %lld value(s)", (long long)a.n);
    msa_auto msa_tensor *result = msa_tensor_new((msa_ints){sizes, self->ndim}, (msa_dtype)self->dtype);
    if (!result) return NULL;
    if (result->numel) {
        if (self->contiguous) select_blocks(&a, self, result);
        else along_walk(&a, self, result, false, false);
    }
    return msa_take(result);
}

/* index_add and index_copy: a copy of self, written at the index from source. */
static msa_tensor *index_written(const char *op, msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *source, bool add) {
    auto_along along a = {0};
    if (along_open(&a, op, self, dim, index) != 0) return NULL;
    if (source->dtype != self->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "%s(): self and source expected to have the same dtype, but got (self) %s and (source) %s", op,
                             msa_dtype_type_name((msa_dtype)self->dtype), msa_dtype_type_name((msa_dtype)source->dtype));
    int64_t length = source->ndim ? source->sizes[a.dim < source->ndim ? a.dim : 0] : 1;
    if (a.n != length)
        return msa_fail_null(add ? MSA_RUNTIME_ERROR : MSA_INDEX_ERROR, "%s(): Number of indices (%lld) should be equal to source.size(dim): (%lld), for dim: %d", op,
                             (long long)a.n, (long long)length, a.dim);
    if (source->ndim && self->ndim && source->ndim != self->ndim)
        return msa_fail_null(MSA_RUNTIME_ERROR, "%s(): source and self must have the same number of dimensions, got %d and %d", op, source->ndim, self->ndim);
    for (int d = 0; d < self->ndim && source->ndim; d++)
        if (d != a.dim && source->sizes[d] != self->sizes[d])
            return msa_fail_null(MSA_RUNTIME_ERROR, "%s(): source %s does not fit self %s outside dimension %d", op, msa_sizes_text(msa_sizes(source)),
                                 msa_sizes_text(msa_sizes(self)), a.dim);
    msa_auto msa_tensor *result = msa_clone_values(self);
    if (!result) return NULL;
    if (result->numel && a.n) along_walk(&a, result, source, true, add);
    return msa_take(result);
}

msa_tensor *index_add_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *source, msa_scalar alpha) {
    if (msa_scalar_is_one(alpha)) return index_written("index_add", self, dim, index, source, true);
    msa_auto msa_tensor *number = msa_wrap_number(alpha);
    msa_auto msa_tensor *multiplied = number ? msa_mul(source, number) : NULL;
    return multiplied ? index_written("index_add", self, dim, index, multiplied, true) : NULL;
}

msa_tensor *index_copy_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *source) {
    return index_written("index_copy", self, dim, index, source, false);
}

msa_tensor *index_fill_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_scalar value) {
    if (value.kind == MSA_COMPLEX128 && !msa_is_complex((msa_dtype)self->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "index_fill_(): Converting complex Scalar to non-complex type is not supported");
    msa_auto msa_tensor *one = msa_tensor_scalar(value, (msa_dtype)self->dtype);
    return one ? index_fill_tensor_cpu(self, dim, index, one) : NULL;
}

msa_tensor *index_fill_tensor_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *value) {
    if (value->ndim != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).", value->ndim);
    auto_along along a = {0};
    if (along_open(&a, "index_fill", self, dim, index) != 0) return NULL;
    msa_auto msa_tensor *result = msa_clone_values(self), *cast = msa_cast_values(value, (msa_dtype)self->dtype);
    msa_auto msa_tensor *wide = result && cast ? msa_expand(cast, msa_sizes(self), false) : NULL;
    if (!wide) return NULL;
    if (result->numel) along_walk(&a, result, wide, true, false);
    return msa_take(result);
}

/* Places in the tensor seen as a line, and where a mask holds. */

msa_tensor *take_cpu(msa_tensor *self, msa_tensor *index) {
    if (index->dtype != MSA_INT64) return msa_fail_null(MSA_RUNTIME_ERROR, "take(): Expected a long tensor for index, but got %s", msa_dtype_type_name((msa_dtype)index->dtype));
    if (self->numel == 0 && index->numel) return msa_fail_null(MSA_INDEX_ERROR, "take(): tried to take from an empty tensor");
    msa_auto msa_tensor *plain = msa_contiguous_values(self), *places = plain_index(index);
    msa_auto msa_tensor *result = plain && places ? msa_tensor_new(msa_sizes(index), (msa_dtype)self->dtype) : NULL;
    if (!result) return NULL;
    size_t size = msa_dtype_size((msa_dtype)self->dtype);
    const int64_t *p = msa_data(places);
    const char *from = msa_data(plain);
    char *to = result->storage->data;
    for (int64_t k = 0; k < places->numel; k++) {
        int64_t i = p[k] < 0 ? p[k] + plain->numel : p[k];
        if (i < 0 || i >= plain->numel) return msa_fail_null(MSA_INDEX_ERROR, "out of range: tried to access index %lld on a tensor of %lld elements.", (long long)p[k], (long long)plain->numel);
        memcpy(to + k * (int64_t)size, from + i * (int64_t)size, size);
    }
    return msa_take(result);
}

/* Where a tensor is not zero: (count, ndim). */
msa_tensor *nonzero_cpu(msa_tensor *self) {
    msa_auto msa_tensor *mask = msa_cast_values(self, MSA_BOOL);
    msa_auto msa_tensor *plain = mask ? msa_contiguous_values(mask) : NULL;
    if (!plain) return NULL;
    const uint8_t *p = msa_data(plain);
    int64_t count = 0;
    for (int64_t k = 0; k < plain->numel; k++) count += p[k] != 0;
    msa_auto msa_tensor *result = msa_tensor_new(MSA_INTS(count, self->ndim), MSA_INT64);
    if (!result) return NULL;
    int64_t *to = result->storage->data, at[MSA_MAX_DIMS] = {0};
    for (int64_t k = 0; k < plain->numel; k++) {
        if (p[k])
            for (int d = 0; d < self->ndim; d++) *to++ = at[d];
        for (int d = self->ndim - 1; d >= 0 && ++at[d] == self->sizes[d]; d--) at[d] = 0;
    }
    return msa_take(result);
}

msa_tensor *masked_select_cpu(msa_tensor *self, msa_tensor *mask) {
    if (mask->dtype != MSA_BOOL && mask->dtype != MSA_UINT8)
        return msa_fail_null(MSA_RUNTIME_ERROR, "masked_select: expected BoolTensor or ByteTensor for mask");
    int64_t sizes[MSA_MAX_DIMS];
    int ndim;
    if (msa_broadcast_sizes("masked_select", msa_sizes(self), msa_sizes(mask), sizes, &ndim) != 0) return NULL;
    msa_auto msa_tensor *wide = msa_expand(self, (msa_ints){sizes, ndim}, false), *wide_mask = msa_expand(mask, (msa_ints){sizes, ndim}, false);
    msa_auto msa_tensor *plain = wide ? msa_contiguous_values(wide) : NULL, *flags = wide_mask ? msa_contiguous_values(wide_mask) : NULL;
    if (!plain || !flags) return NULL;
    const uint8_t *m = msa_data(flags);
    int64_t count = 0;
    for (int64_t k = 0; k < flags->numel; k++) count += m[k] != 0;
    msa_auto msa_tensor *result = msa_tensor_new(MSA_INTS(count), (msa_dtype)self->dtype);
    if (!result) return NULL;
    size_t size = msa_dtype_size((msa_dtype)self->dtype);
    const char *from = msa_data(plain);
    char *to = result->storage->data;
    for (int64_t k = 0; k < flags->numel; k++)
        if (m[k]) {
            memcpy(to, from + k * (int64_t)size, size);
            to += size;
        }
    return msa_take(result);
}
