/* scatter_reduce, index_reduce and put: elements of a source folded into places of a copy of self. */
#include <math.h>

#include "cpu/element.h"
#include "msadapter/ops.h"
#include "ops/kernels.h"

typedef enum { SUM, PRODUCT, MEAN, LARGEST, SMALLEST } fold_mode;

/* The running results in a wide type: int64 for integers and bool, float64 for floats, both contiguous. */
typedef struct {
    fold_mode mode;
    bool floating, include_self;
    msa_tensor *result, *source; /* owned */
    msa_tensor *counts;          /* owned; how many elements went to each place, self's own among them */
} fold;

static void fold_close(fold *f) {
    msa_tensor_release(f->result);
    msa_tensor_release(f->source);
    msa_tensor_release(f->counts);
}
#define auto_fold __attribute__((cleanup(fold_close)))

static msa_tensor *wide_copy(msa_tensor *t, msa_dtype type) {
    msa_auto msa_tensor *copy = msa_tensor_new(msa_sizes(t), type);
    return copy && msa_copy_values(copy, t) == 0 ? msa_take(copy) : NULL;
}

static int fold_open(fold *f, const char *op, msa_tensor *self, msa_tensor *source, const char *reduce, bool include_self, bool with_sum) {
    static const char *const names[] = {"sum", "prod", "mean", "amax", "amin"};
    int mode = with_sum ? 0 : 1;
    while (mode < 5 && strcmp(reduce, names[mode]) != 0) mode++;
    if (mode == 5)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: reduce argument must be %sprod, mean, amax or amin, got %s", op, with_sum ? "sum, " : "", reduce);
    if (msa_is_complex((msa_dtype)self->dtype))
        return msa_fail(MSA_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", op, msa_dtype_type_name((msa_dtype)self->dtype));
    f->mode = (fold_mode)mode;
    f->floating = msa_is_floating((msa_dtype)self->dtype);
    f->include_self = include_self;
    const msa_dtype type = f->floating ? MSA_FLOAT64 : MSA_INT64;
    f->result = wide_copy(self, type);
    f->source = wide_copy(source, type);
    f->counts = msa_tensor_new(msa_sizes(self), MSA_INT64);
    return f->result && f->source && f->counts ? msa_fill_values(f->counts, msa_int(include_self ? 1 : 0)) : -1;
}

/* NaN wins among the extremes. */
static void fold_one(const fold *f, int64_t here, int64_t there) {
    int64_t *count = (int64_t *)f->counts->storage->data + here;
    const bool first = *count == 0;
    ++*count;
    if (f->floating) {
        double *to = (double *)f->result->storage->data + here;
        const double value = ((const double *)f->source->storage->data)[there];
        if (first) *to = value;
        else if (f->mode == SUM || f->mode == MEAN) *to += value;
        else if (f->mode == PRODUCT) *to *= value;
        else if (value != value || (f->mode == LARGEST ? value > *to : value < *to)) *to = value;
    } else {
        int64_t *to = (int64_t *)f->result->storage->data + here;
        const int64_t value = ((const int64_t *)f->source->storage->data)[there];
        if (first) *to = value;
        else if (f->mode == SUM || f->mode == MEAN) *to = (int64_t)((uint64_t)*to + (uint64_t)value);
        else if (f->mode == PRODUCT) *to = (int64_t)((uint64_t)*to * (uint64_t)value);
        else if (f->mode == LARGEST ? value > *to : value < *to) *to = value;
    }
}

static msa_tensor *fold_finish(fold *f, msa_dtype dtype) {
    if (f->mode == MEAN) {
        const int64_t *counts = f->counts->storage->data;
        double *real = f->result->storage->data;
        int64_t *whole = f->result->storage->data;
        for (int64_t k = 0; k < f->result->numel; k++) {
            if (counts[k] < 2) continue;
            if (f->floating) real[k] /= (double)counts[k];
            else whole[k] = whole[k] / counts[k] - (whole[k] % counts[k] < 0); /* rounded down */
        }
    }
    return msa_cast_values(f->result, dtype);
}

static msa_tensor *positions(const char *op, msa_tensor *index, int64_t limit, int dim) {
    if (index->dtype != MSA_INT64) return msa_fail_null(MSA_RUNTIME_ERROR, "%s(): Expected dtype int64 for index", op);
    msa_auto msa_tensor *plain = msa_contiguous_values(index);
    if (!plain) return NULL;
    const int64_t *p = msa_data(plain);
    for (int64_t k = 0; k < plain->numel; k++)
        if (p[k] < 0 || p[k] >= limit)
            return msa_fail_null(MSA_RUNTIME_ERROR, "index %lld is out of bounds for dimension %d with size %lld", (long long)p[k], dim, (long long)limit);
    return msa_take(plain);
}

static int check_scatter(msa_tensor *self, int dim, msa_tensor *index, msa_tensor *src) {
    const int ndim = self->ndim ? self->ndim : 1;
    if (src->dtype != self->dtype) return msa_fail(MSA_RUNTIME_ERROR, "scatter(): Expected self.dtype to be equal to src.dtype");
    if (index->numel == 0) return 0;
    if ((index->ndim ? index->ndim : 1) != ndim) return msa_fail(MSA_RUNTIME_ERROR, "Index tensor must have the same number of dimensions as self tensor");
    if ((src->ndim ? src->ndim : 1) != ndim) return msa_fail(MSA_RUNTIME_ERROR, "Index tensor must have the same number of dimensions as src tensor");
    for (int d = 0; d < index->ndim; d++)
        if ((d != dim && index->sizes[d] > (self->ndim ? self->sizes[d] : 1)) || index->sizes[d] > (src->ndim ? src->sizes[d] : 1))
            return msa_fail(MSA_RUNTIME_ERROR, "Expected index %s to be smaller than self %s apart from dimension %d and to be smaller size than src %s",
                            msa_sizes_text(msa_sizes(index)), msa_sizes_text(msa_sizes(self)), dim, msa_sizes_text(msa_sizes(src)));
    return 0;
}

msa_tensor *scatter_reduce_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *src, const char *reduce, bool include_self) {
    const int d = msa_wrap_dim("scatter_reduce", dim, self->ndim);
    if (d < 0 || check_scatter(self, d, index, src) != 0) return NULL;
    msa_auto msa_tensor *places = positions("scatter_reduce", index, self->ndim ? self->sizes[d] : 1, d);
    auto_fold fold f = {0};
    if (!places || fold_open(&f, "scatter_reduce", self, src, reduce, include_self, true) != 0) return NULL;
    const int64_t *p = msa_data(places);
    int64_t at[MSA_MAX_DIMS] = {0};
    for (int64_t k = 0; k < places->numel; k++) {
        int64_t here = self->ndim ? p[k] * f.result->strides[d] : 0, there = 0;
        for (int i = 0; i < places->ndim; i++) {
            if (i != d) here += at[i] * f.result->strides[i];
            if (src->ndim) there += at[i] * f.source->strides[i];
        }
        fold_one(&f, here, there);
        for (int i = places->ndim - 1; i >= 0 && ++at[i] == places->sizes[i]; i--) at[i] = 0;
    }
    return fold_finish(&f, (msa_dtype)self->dtype);
}

msa_tensor *index_reduce_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *source, const char *reduce, bool include_self) {
    const int d = msa_wrap_dim("index_reduce", dim, self->ndim);
    if (d < 0) return NULL;
    if (index->ndim > 1) return msa_fail_null(MSA_INDEX_ERROR, "index_reduce(): Index is supposed to be a vector");
    if (source->dtype != self->dtype) return msa_fail_null(MSA_RUNTIME_ERROR, "index_reduce(): self and source expected to have the same dtype");
    const int64_t n = index->numel, length = source->ndim ? source->sizes[d < source->ndim ? d : 0] : 1, size = self->ndim ? self->sizes[d] : 1;
    if (n != length) return msa_fail_null(MSA_RUNTIME_ERROR, "index_reduce(): Number of indices should be equal to self.size(dim)");
    if ((source->ndim ? source->ndim : 1) != (self->ndim ? self->ndim : 1))
        return msa_fail_null(MSA_RUNTIME_ERROR, "index_reduce(): source and self must have the same number of dimensions");
    for (int i = 0; i < self->ndim && source->ndim; i++)
        if (i != d && source->sizes[i] != self->sizes[i])
            return msa_fail_null(MSA_RUNTIME_ERROR, "index_reduce(): source %s does not fit self %s outside dimension %d", msa_sizes_text(msa_sizes(source)),
                                 msa_sizes_text(msa_sizes(self)), d);
    msa_auto msa_tensor *wide = index->dtype == MSA_INT32 ? msa_cast_values(index, MSA_INT64) : msa_tensor_retain(index);
    msa_auto msa_tensor *places = wide ? positions("index_reduce", wide, size, d) : NULL;
    auto_fold fold f = {0};
    if (!places || fold_open(&f, "index_reduce", self, source, reduce, include_self, false) != 0) return NULL;
    const int64_t *p = msa_data(places);
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < self->ndim; i++) {
        if (i < d) outer *= self->sizes[i];
        if (i > d) inner *= self->sizes[i];
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t i = 0; i < inner; i++) fold_one(&f, (o * size + p[k]) * inner + i, (o * n + k) * inner + i);
    return fold_finish(&f, (msa_dtype)self->dtype);
}

/* A copy of self, seen as a line, with the elements of source at the places of index. */
msa_tensor *put_cpu(msa_tensor *self, msa_tensor *index, msa_tensor *source, bool accumulate) {
    if (index->dtype != MSA_INT64) return msa_fail_null(MSA_RUNTIME_ERROR, "put_(): Expected a long tensor for index, but got %s", msa_dtype_type_name((msa_dtype)index->dtype));
    if (self->dtype != source->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "put_(): self and source expected to have the same dtype, but got self.dtype = %s and source.dtype = %s",
                             msa_dtype_type_name((msa_dtype)self->dtype), msa_dtype_type_name((msa_dtype)source->dtype));
    if (index->numel != source->numel)
        return msa_fail_null(MSA_RUNTIME_ERROR, "put_(): Expected source and index to have the same number of elements, but got source.numel() = %lld, index.numel() = %lld",
                             (long long)source->numel, (long long)index->numel);
    if (self->numel == 0 && index->numel) return msa_fail_null(MSA_INDEX_ERROR, "put_(): Expected self to be nonempty, as index is not");
    msa_auto msa_tensor *places = msa_contiguous_values(index), *values = msa_contiguous_values(source);
    msa_auto msa_tensor *result = places && values ? wide_copy(self, (msa_dtype)self->dtype) : NULL;
    if (!result) return NULL;
    const size_t size = msa_dtype_size((msa_dtype)self->dtype);
    const int64_t *p = msa_data(places);
    const char *from = msa_data(values);
    char *to = result->storage->data;
    for (int64_t k = 0; k < places->numel; k++) {
        const int64_t i = p[k] < 0 ? p[k] + result->numel : p[k];
        if (i < 0 || i >= result->numel)
            return msa_fail_null(MSA_INDEX_ERROR, "out of range: tried to access index %lld on a tensor of %lld elements.", (long long)p[k], (long long)result->numel);
        if (accumulate) msa_element_add((msa_dtype)self->dtype, to + i * (int64_t)size, from + k * (int64_t)size);
        else memcpy(to + i * (int64_t)size, from + k * (int64_t)size, size);
    }
    return msa_take(result);
}
