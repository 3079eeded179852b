/* scatter_reduce, index_reduce and put: elements of a source folded into places of a copy of self. */
#include "base/parallel.h"
#include "cpu/element.h"
#include "cpu/scatter.h"
#include "msadapter/ops.h"
#include "ops/kernels.h"

typedef enum { SUM, PRODUCT, MEAN, LARGEST, SMALLEST } fold_mode;

/* The running results, contiguous: float32 and float64 as they are, the short floats in float32, integers and bool in int64. */
typedef struct {
    fold_mode mode;
    msa_dtype working;
    msa_tensor *result, *source; /* owned */
    msa_tensor *counts;          /* owned; how many elements went to each place, self's own among them; NULL where nobody asks */
} fold;

static void fold_close(fold *f) {
    msa_tensor_release(f->result);
    msa_tensor_release(f->source);
    msa_tensor_release(f->counts);
}
#define auto_fold __attribute__((cleanup(fold_close)))

static msa_tensor *copy_as(msa_tensor *t, msa_dtype type) {
    msa_auto msa_tensor *copy = msa_tensor_new(msa_sizes(t), type);
    return copy && msa_copy_values(copy, t) == 0 ? msa_take(copy) : NULL;
}

static int fold_open(fold *f, const char *op, msa_tensor *self, msa_tensor *source, const char *reduce, bool include_self, bool with_sum) {
    static const char *const names[] = {"sum", "prod", "mean", "amax", "amin"};
    const msa_dtype have = (msa_dtype)self->dtype;
    int mode = with_sum ? 0 : 1;
    while (mode < 5 && strcmp(reduce, names[mode]) != 0) mode++;
    if (mode == 5)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: reduce argument must be %sprod, mean, amax or amin, got %s", op, with_sum ? "sum, " : "", reduce);
    if (msa_is_complex(have)) return msa_fail(MSA_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", op, msa_dtype_type_name(have));
    f->mode = (fold_mode)mode;
    f->working = msa_is_integral(have, true) ? MSA_INT64 : have == MSA_FLOAT64 ? MSA_FLOAT64 : MSA_FLOAT32;
    msa_auto msa_tensor *wide = msa_cast_values(source, f->working);
    f->result = copy_as(self, f->working);
    f->source = wide ? msa_contiguous_values(wide) : NULL;
    if (!f->result || !f->source) return -1;
    if (include_self && mode != MEAN) return 0;
    f->counts = msa_tensor_new(msa_sizes(self), MSA_INT64);
    return f->counts ? msa_fill_values(f->counts, msa_int(include_self ? 1 : 0)) : -1;
}

/* One element folded into *to; `first` when nothing was there. NaN wins among the extremes. */
#define FOLD(T, SUMMED) \
    static inline __attribute__((always_inline)) void fold_##T(fold_mode mode, T *to, T value, bool first) { \
        const T old = *to; \
        T folded = mode == PRODUCT ? (T)((SUMMED)old * (SUMMED)value) : mode == SUM || mode == MEAN ? (T)((SUMMED)old + (SUMMED)value) : old; \
        if (mode == LARGEST) folded = value > old || value != value ? value : old; \
        if (mode == SMALLEST) folded = value < old || value != value ? value : old; \
        *to = first ? value : folded; \
    } \
    static inline __attribute__((always_inline)) void fold_run_of_##T(fold_mode mode, const fold *f, int64_t n, int64_t here, const int64_t *p, int64_t along, \
                                                                      int64_t here_step, int64_t there, int64_t there_step) { \
        T *to = f->result->storage->data; \
        const T *from = msa_data(f->source); \
        int64_t *counts = f->counts ? f->counts->storage->data : NULL; \
        for (int64_t j = 0; j < n; j++) { \
            const int64_t k = here + (p ? p[j] * along : 0) + j * here_step; \
            fold_##T(mode, to + k, from[there + j * there_step], counts && counts[k] == 0); \
            if (counts) counts[k]++; \
        } \
    } \
    /* `n` elements of a row; p NULL: places one behind the other. */ \
    static void fold_run_##T(const fold *f, int64_t n, int64_t here, const int64_t *p, int64_t along, int64_t here_step, int64_t there, int64_t there_step) { \
        switch (f->mode) { \
        case PRODUCT: fold_run_of_##T(PRODUCT, f, n, here, p, along, here_step, there, there_step); break; \
        case LARGEST: fold_run_of_##T(LARGEST, f, n, here, p, along, here_step, there, there_step); break; \
        case SMALLEST: fold_run_of_##T(SMALLEST, f, n, here, p, along, here_step, there, there_step); break; \
        default: fold_run_of_##T(SUM, f, n, here, p, along, here_step, there, there_step); break; \
        } \
    }
FOLD(float, float)
FOLD(double, double)
FOLD(int64_t, uint64_t)

static void fold_run(const fold *f, int64_t n, int64_t here, const int64_t *p, int64_t along, int64_t here_step, int64_t there, int64_t there_step) {
    if (f->working == MSA_FLOAT32) fold_run_float(f, n, here, p, along, here_step, there, there_step);
    else if (f->working == MSA_FLOAT64) fold_run_double(f, n, here, p, along, here_step, there, there_step);
    else fold_run_int64_t(f, n, here, p, along, here_step, there, there_step);
}

static msa_tensor *fold_finish(fold *f, msa_dtype dtype) {
    const int64_t *counts = f->mode == MEAN ? f->counts->storage->data : NULL;
    void *to = f->result->storage->data;
    for (int64_t k = 0; counts && k < f->result->numel; k++) {
        if (counts[k] < 2) continue;
        if (f->working == MSA_FLOAT32) ((float *)to)[k] /= (float)counts[k];
        else if (f->working == MSA_FLOAT64) ((double *)to)[k] /= (double)counts[k];
        else { /* rounded down */
            const int64_t sum = ((int64_t *)to)[k];
            ((int64_t *)to)[k] = sum / counts[k] - (sum % counts[k] < 0);
        }
    }
    return msa_cast_values(f->result, dtype);
}

msa_tensor *scatter_reduce_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *src, const char *reduce, bool include_self) {
    if (src->dtype != self->dtype) return msa_fail_null(MSA_RUNTIME_ERROR, "scatter(): Expected self.dtype to be equal to src.dtype");
    auto_fold fold f = {0};
    if (fold_open(&f, "scatter_reduce", self, src, reduce, include_self, true) != 0) return NULL;
    msa_auto_scatter_rows msa_scatter_rows r = {0};
    if (msa_scatter_rows_open(&r, "scatter_reduce", f.result, dim, index, f.source, true) != 0) return NULL;
    const int64_t *p = r.rows ? msa_data(r.index) : NULL;
    for (int64_t row = 0; row < r.rows; row++) {
        int64_t here, there;
        msa_scatter_row(&r, row, &here, &there);
        fold_run(&f, r.inner, here, p + row * r.inner, r.along, r.self_step, there, r.other_step);
    }
    return fold_finish(&f, (msa_dtype)self->dtype);
}

static int check_index_reduce(msa_tensor *self, int d, msa_tensor *index, msa_tensor *source) {
    if (index->ndim > 1) return msa_fail(MSA_INDEX_ERROR, "index_reduce(): Index is supposed to be a vector");
    if (index->dtype != MSA_INT64 && index->dtype != MSA_INT32) return msa_fail(MSA_RUNTIME_ERROR, "index_reduce(): Expected dtype int32/int64 for index");
    if (source->dtype != self->dtype) return msa_fail(MSA_RUNTIME_ERROR, "index_reduce(): self and source expected to have the same dtype");
    if (index->numel != (source->ndim ? source->sizes[d < source->ndim ? d : 0] : 1))
        return msa_fail(MSA_RUNTIME_ERROR, "index_reduce(): Number of indices should be equal to self.size(dim)");
    if ((source->ndim ? source->ndim : 1) != (self->ndim ? self->ndim : 1))
        return msa_fail(MSA_RUNTIME_ERROR, "index_reduce(): source and self must have the same number of dimensions");
    for (int i = 0; i < self->ndim && source->ndim; i++)
        if (i != d && source->sizes[i] != self->sizes[i])
            return msa_fail(MSA_RUNTIME_ERROR, "index_reduce(): source %s does not fit self %s outside dimension %d", msa_sizes_text(msa_sizes(source)),
                            msa_sizes_text(msa_sizes(self)), d);
    return 0;
}

msa_tensor *index_reduce_cpu(msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *source, const char *reduce, bool include_self) {
    const int d = msa_wrap_dim("index_reduce", dim, self->ndim);
    if (d < 0 || check_index_reduce(self, d, index, source) != 0) return NULL;
    msa_auto msa_tensor *wide = msa_cast_values(index, MSA_INT64), *places = wide ? msa_contiguous_values(wide) : NULL;
    auto_fold fold f = {0};
    if (!places || fold_open(&f, "index_reduce", self, source, reduce, include_self, false) != 0) return NULL;
    const int64_t *p = msa_data(places), n = places->numel, size = self->ndim ? self->sizes[d] : 1;
    for (int64_t k = 0; k < n; k++)
        if ((uint64_t)p[k] >= (uint64_t)size)
            return msa_fail_null(MSA_RUNTIME_ERROR, "index %lld is out of bounds for dimension %d with size %lld", (long long)p[k], d, (long long)size);
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < self->ndim; i++) {
        if (i < d) outer *= self->sizes[i];
        if (i > d) inner *= self->sizes[i];
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < n; k++) fold_run(&f, inner, (o * size + p[k]) * inner, NULL, 0, 1, (o * n + k) * inner, 1);
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
    msa_auto msa_tensor *result = places && values ? copy_as(self, (msa_dtype)self->dtype) : NULL;
    if (!result) return NULL;
    const int64_t size = (int64_t)msa_dtype_size((msa_dtype)self->dtype), *p = msa_data(places);
    const char *from = msa_data(values);
    char *to = result->storage->data;
    for (int64_t k = 0; k < places->numel; k++) {
        const int64_t i = p[k] < 0 ? p[k] + result->numel : p[k];
        if (i < 0 || i >= result->numel)
            return msa_fail_null(MSA_INDEX_ERROR, "out of range: tried to access index %lld on a tensor of %lld elements.", (long long)p[k], (long long)result->numel);
        if (accumulate) msa_element_add((msa_dtype)self->dtype, to + i * size, from + k * size);
        else msa_copy_block(to + i * size, from + k * size, size);
    }
    return msa_take(result);
}
