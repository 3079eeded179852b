/* Copying values between tensors: any strides, any types, the source broadcast to the destination. */
#include <stdlib.h>

#include "base/parallel.h"
#include "tensor/convert.h"
#include "tensor/internal.h"
#include "tensor/reorder.h"

/* One copy after coalescing: dims from outermost to innermost by destination stride. */
typedef struct {
    int ndim;
    int64_t size[MSA_MAX_DIMS], to[MSA_MAX_DIMS], from[MSA_MAX_DIMS];
    msa_dtype to_type, from_type;
} plan;

static int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

static void make_plan(plan *p, const msa_tensor *dst, const msa_tensor *src) {
    p->to_type = (msa_dtype)dst->dtype;
    p->from_type = (msa_dtype)src->dtype;
    p->ndim = 0;
    int missing = dst->ndim - src->ndim;
    for (int i = 0; i < dst->ndim; i++) {
        if (dst->sizes[i] == 1) continue;
        int j = p->ndim++;
        p->size[j] = dst->sizes[i];
        p->to[j] = dst->strides[i];
        p->from[j] = i < missing || src->sizes[i - missing] == 1 ? 0 : src->strides[i - missing];
    }
    /* Insertion sort by falling destination stride: few dimensions, mostly sorted already. */
    for (int i = 1; i < p->ndim; i++)
        for (int j = i; j > 0 && magnitude(p->to[j - 1]) < magnitude(p->to[j]); j--) {
#define SWAP(x) { int64_t x_ = p->x[j]; p->x[j] = p->x[j - 1]; p->x[j - 1] = x_; }
            SWAP(size) SWAP(to) SWAP(from)
#undef SWAP
        }
    int last = 0;
    for (int i = 1; i < p->ndim; i++) {
        if (p->to[last] == p->to[i] * p->size[i] && p->from[last] == p->from[i] * p->size[i]) {
            p->size[last] *= p->size[i];
            p->to[last] = p->to[i];
            p->from[last] = p->from[i];
        } else {
            last++;
            p->size[last] = p->size[i];
            p->to[last] = p->to[i];
            p->from[last] = p->from[i];
        }
    }
    if (p->ndim) p->ndim = last + 1;
    if (p->ndim == 0) {
        p->ndim = 1;
        p->size[0] = 1;
        p->to[0] = p->from[0] = 1;
    }
}

enum { TILE = 16 };

/* A tile of a transposition: rows along the source's contiguous dimension, columns along the destination's. */
#define TRANSPOSE_TILES(T) \
    for (int64_t i0 = 0; i0 < rows; i0 += TILE) \
        for (int64_t j0 = 0; j0 < columns; j0 += TILE) { \
            int64_t i1 = i0 + TILE < rows ? i0 + TILE : rows, j1 = j0 + TILE < columns ? j0 + TILE : columns; \
            for (int64_t i = i0; i < i1; i++) \
                for (int64_t j = j0; j < j1; j++) ((T *)to)[i * to_row + j] = ((const T *)from)[i + j * from_column]; \
        }

static void transpose(size_t itemsize, void *to, const void *from, int64_t rows, int64_t columns, int64_t to_row,
                      int64_t from_column) {
    switch (itemsize) {
    case 1: TRANSPOSE_TILES(uint8_t) break;
    case 2: TRANSPOSE_TILES(uint16_t) break;
    case 4: TRANSPOSE_TILES(uint32_t) break;
    case 8: TRANSPOSE_TILES(uint64_t) break;
    default: TRANSPOSE_TILES(__uint128_t) break;
    }
}

/* Outer indices [begin, end) of the plan's first `outer` dimensions; inner(to, from) does the rest. */
static void run(const plan *p, char *to, const char *from, int outer, int64_t begin, int64_t end, int64_t inner_rows,
                int64_t to_row, bool tiled) {
    size_t to_size = msa_dtype_size(p->to_type), from_size = msa_dtype_size(p->from_type);
    int last = p->ndim - 1;
    int64_t index[MSA_MAX_DIMS];
    for (int64_t r = begin, d = outer - 1; d >= 0; d--) {
        index[d] = r % p->size[d];
        r /= p->size[d];
    }
    for (int64_t k = begin; k < end; k++) {
        int64_t t = 0, f = 0;
        for (int d = 0; d < outer; d++) {
            t += index[d] * p->to[d];
            f += index[d] * p->from[d];
        }
        char *to_here = to + t * (int64_t)to_size;
        const char *from_here = from + f * (int64_t)from_size;
        if (tiled)
            transpose(to_size, to_here, from_here, inner_rows, p->size[last], to_row, p->from[last]);
        else
            msa_convert(p->to_type, to_here, p->to[last], p->from_type, from_here, p->from[last], p->size[last]);
        for (int d = outer - 1; d >= 0 && ++index[d] == p->size[d]; d--) index[d] = 0;
    }
}

/* Move dimension `d` of the plan behind the outer ones, just before the innermost. */
static void move_inward(plan *p, int d) {
    for (int i = d; i < p->ndim - 2; i++) {
#define SWAP(x) { int64_t x_ = p->x[i]; p->x[i] = p->x[i + 1]; p->x[i + 1] = x_; }
        SWAP(size) SWAP(to) SWAP(from)
#undef SWAP
    }
}

static bool overlaps_itself(const msa_tensor *dst) {
    for (int i = 0; i < dst->ndim; i++)
        if (dst->strides[i] == 0 && dst->sizes[i] > 1) return true;
    return false;
}

static bool may_overlap(const msa_tensor *a, const msa_tensor *b) { return a->storage->data == b->storage->data; }

int msa_copy_values(msa_tensor *dst, const msa_tensor *src) {
    if (dst == src) return 0;
    if (dst->layout | src->layout) return msa_refuse_sparse("copying of values");
    int64_t shape[MSA_MAX_DIMS];
    int ndim;
    if (msa_broadcast_sizes("copy_", msa_sizes(dst), msa_sizes(src), shape, &ndim) != 0) return -1;
    if (ndim != dst->ndim || memcmp(shape, dst->sizes, sizeof(int64_t) * (size_t)ndim) != 0)
        return msa_fail(MSA_RUNTIME_ERROR,
                        "output with shape %s doesn't match the broadcast shape %s", msa_sizes_text(msa_sizes(dst)),
                        msa_sizes_text((msa_ints){shape, ndim}));
    if (dst->numel == 0) return 0;
    if (overlaps_itself(dst))
        return msa_fail(MSA_RUNTIME_ERROR,
                        "unsupported operation: more than one element of the written-to tensor refers to a single memory "
                        "location. Please clone() the tensor before performing the operation.");
    if (dst->dtype == src->dtype && msa_hidden_nhwc(src) && msa_hidden_nhwc(dst)) {
        memcpy(dst->storage->data, src->storage->data, (size_t)dst->numel * msa_dtype_size((msa_dtype)dst->dtype));
        return 0;
    }
    msa_auto msa_tensor *aside = NULL;
    if (may_overlap(dst, src) && !(dst->offset == src->offset && msa_same_sizes(dst, src) && dst->dtype == src->dtype &&
                                   memcmp(dst->strides, src->strides, sizeof(int64_t) * dst->ndim) == 0)) {
        aside = msa_clone_values((msa_tensor *)(uintptr_t)src);
        if (!aside) return -1;
        src = aside;
    }
    char *to = msa_data(dst);
    const char *from = msa_data(src);
    if (!to || !from) return -1;
    plan p;
    make_plan(&p, dst, src);
    int outer = p.ndim - 1;
    int64_t rows = 0, to_row = 0;
    bool tiled = false;
    int last = p.ndim - 1;
    if (p.to_type == p.from_type && p.to[last] == 1 && p.from[last] != 1 && p.from[last] != 0)
        for (int d = 0; d < last && !tiled; d++)
            if (p.from[d] == 1 && p.size[d] > 3) {
                tiled = true;
                rows = p.size[d];
                to_row = p.to[d];
                move_inward(&p, d);
                outer = p.ndim - 2;
            }
    int64_t runs = 1, each = p.size[last] * (tiled ? rows : 1);
    for (int d = 0; d < outer; d++) runs *= p.size[d];
    int threads = msa_threads_for(runs * each, MSA_GRAIN);
    if (outer == 0 && !tiled && threads > 1 && p.size[0] > 1) {
        /* One long run: cut it. */
        int64_t n = p.size[0];
#pragma omp parallel num_threads(threads)
        {
            int64_t begin, end;
            msa_share(n, omp_get_num_threads(), omp_get_thread_num(), &begin, &end);
            msa_convert(p.to_type, to + begin * p.to[0] * (int64_t)msa_dtype_size(p.to_type), p.to[0], p.from_type,
                        from + begin * p.from[0] * (int64_t)msa_dtype_size(p.from_type), p.from[0], end - begin);
        }
    } else if (threads > 1 && runs > 1) {
#pragma omp parallel num_threads(threads)
        {
            int64_t begin, end;
            msa_share(runs, omp_get_num_threads(), omp_get_thread_num(), &begin, &end);
            run(&p, to, from, outer, begin, end, rows, to_row, tiled);
        }
    } else {
        run(&p, to, from, outer, 0, runs, rows, to_row, tiled);
    }
    return 0;
}

msa_tensor *msa_contiguous_values(msa_tensor *t) {
    if (t->contiguous) return msa_tensor_retain(t);
    msa_auto msa_tensor *copy = msa_tensor_new(msa_sizes(t), (msa_dtype)t->dtype);
    return copy && msa_copy_values(copy, t) == 0 ? msa_take(copy) : NULL;
}

/* A new tensor of t's sizes: in t's order of strides where t is dense without overlaps, contiguous otherwise. */
static msa_tensor *new_like(const msa_tensor *t, msa_dtype dtype) {
    if (t->layout) {
        msa_refuse_sparse("copying of values");
        return NULL;
    }
    if (msa_hidden_nhwc(t)) return msa_tensor_new_hidden(t->sizes[0], t->sizes[1], t->sizes[2], t->sizes[3], dtype);
    if (t->contiguous) return msa_tensor_new(msa_sizes(t), dtype);
    int order[MSA_MAX_DIMS];
    for (int i = 0; i < t->ndim; i++) order[i] = i;
    for (int i = 1; i < t->ndim; i++)
        for (int j = i; j > 0 && (t->strides[order[j - 1]] < t->strides[order[j]] ||
                                  (t->strides[order[j - 1]] == t->strides[order[j]] &&
                                   t->sizes[order[j - 1]] < t->sizes[order[j]]));
             j--) {
            int o = order[j];
            order[j] = order[j - 1];
            order[j - 1] = o;
        }
    int64_t expected = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->sizes[order[i]] != 1 && t->strides[order[i]] != expected) return msa_tensor_new(msa_sizes(t), dtype);
        expected *= t->sizes[order[i]];
    }
    return msa_tensor_new_strided(msa_sizes(t), msa_strides(t), dtype);
}

msa_tensor *msa_new_like_values(const msa_tensor *t, msa_dtype dtype) { return new_like(t, dtype); }

msa_tensor *msa_cast_values(msa_tensor *t, msa_dtype dtype) {
    if ((msa_dtype)t->dtype == dtype) return msa_tensor_retain(t);
    msa_auto msa_tensor *copy = new_like(t, dtype);
    if (!copy) return NULL;
    if (msa_hidden_nhwc(t)) {
        msa_convert(dtype, copy->storage->data, 1, (msa_dtype)t->dtype, t->storage->data, 1, t->numel);
        return msa_take(copy);
    }
    return msa_copy_values(copy, t) == 0 ? msa_take(copy) : NULL;
}

msa_tensor *msa_clone_values(msa_tensor *t) {
    msa_auto msa_tensor *copy = new_like(t, (msa_dtype)t->dtype);
    return copy && msa_copy_values(copy, t) == 0 ? msa_take(copy) : NULL;
}

int msa_fill_values(msa_tensor *t, msa_scalar value) {
    if (t->layout) return msa_refuse_sparse("filling");
    if (t->numel == 0) return 0;
    char element[16];
    msa_dtype dtype = (msa_dtype)t->dtype;
    if (value.kind == MSA_COMPLEX128) {
        double z[2] = {value.d, value.im};
        msa_convert(dtype, element, 1, MSA_COMPLEX128, z, 1, 1);
    } else if (value.kind == MSA_FLOAT64) {
        msa_convert(dtype, element, 1, MSA_FLOAT64, &value.d, 1, 1);
    } else {
        msa_convert(dtype, element, 1, MSA_INT64, &value.i, 1, 1);
    }
    int64_t none = 0;
    msa_storage constant = {.references = 2, .data = element, .bytes = sizeof element};
    msa_tensor one = {.references = 2, .dtype = (uint8_t)dtype, .contiguous = true, .storage = &constant, .numel = 1,
                      .sizes = &none, .strides = &none};
    if (msa_hidden_nhwc(t)) t->storage->hidden.on = false; /* the same value everywhere: any layout will do */
    return msa_copy_values(t, &one);
}
