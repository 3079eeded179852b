/* Unique elements, or slices along a dimension: the values, where each input went, how often each came. */
#include <stdlib.h>

#include "cpu/hash_order.h"
#include "cpu/select.h"
#include "msadapter/ops.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

typedef struct {
    const char *data;
    int64_t width; /* doubles or int64s a slice */
    bool floating;
} slice_order;

static int compare_slices(const void *a, const void *b, void *context) {
    const slice_order *o = context;
    int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    for (int64_t k = 0; k < o->width; k++) {
        if (o->floating) {
            double x = ((const double *)o->data)[i * o->width + k], y = ((const double *)o->data)[j * o->width + k];
            if (x != x && y == y) return 1;
            if (y != y && x == x) return -1;
            if (x < y) return -1;
            if (x > y) return 1;
        } else {
            int64_t x = ((const int64_t *)o->data)[i * o->width + k], y = ((const int64_t *)o->data)[j * o->width + k];
            if (x != y) return x < y ? -1 : 1;
        }
    }
    return i < j ? -1 : i > j;
}

static bool same_slice(const slice_order *o, int64_t i, int64_t j) {
    for (int64_t k = 0; k < o->width; k++) {
        if (o->floating ? ((const double *)o->data)[i * o->width + k] != ((const double *)o->data)[j * o->width + k]
                        : ((const int64_t *)o->data)[i * o->width + k] != ((const int64_t *)o->data)[j * o->width + k])
            return false;
    }
    return true;
}

/* Integers of a narrow range are counted instead of compared. Whether that was done. */
static bool count_integers(int64_t *permutation, int64_t n, const int64_t *values) {
    int64_t low = values[0], high = values[0];
    for (int64_t i = 0; i < n; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    const uint64_t range = (uint64_t)high - (uint64_t)low;
    if (range > 4 * (uint64_t)n + 1024) return false;
    int64_t *starts = calloc((size_t)range + 2, sizeof *starts);
    if (!starts) return false;
    for (int64_t i = 0; i < n; i++) starts[values[i] - low + 1]++;
    for (uint64_t k = 0; k < range; k++) starts[k + 1] += starts[k];
    for (int64_t i = 0; i < n; i++) permutation[starts[values[i] - low]++] = i;
    free(starts);
    return true;
}

/* The slices in order, equal ones as they came. */
static int sort_slices(int64_t *permutation, int64_t n, const slice_order *o) {
    for (int64_t i = 0; i < n; i++) permutation[i] = i;
    if (o->width != 1) {
        qsort_r(permutation, (size_t)n, sizeof *permutation, compare_slices, (void *)o);
        return 0;
    }
    const int64_t *values = (const int64_t *)o->data;
    if (n && !o->floating && count_integers(permutation, n, values)) return 0;
    msa_item *items = malloc(sizeof *items * (size_t)(2 * n + 1));
    if (!items) return msa_fail(MSA_MEMORY_ERROR, "unique: out of memory");
    for (int64_t i = 0; i < n; i++) items[i] = (msa_item){o->floating ? msa_key_of_double(values[i]) : values[i], i};
    msa_items_merge_sort(items, items + n, n);
    for (int64_t i = 0; i < n; i++) permutation[i] = items[i].place;
    free(items);
    return 0;
}

static int compare_places(const void *a, const void *b) {
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    return i < j ? -1 : i > j;
}

/* Lists the distinct values as a hash set does: `firsts` says where each of `count` first stands among `values`, `counts` how
   often it came, `to` which of them each of `n` inputs is. */
static int order_by_hash(int64_t *firsts, int64_t *counts, int64_t count, int64_t *to, int64_t n, const slice_order *values, msa_dtype dtype) {
    int64_t *met = malloc(sizeof *met * (size_t)(4 * count + 1));
    if (!met) return msa_fail(MSA_MEMORY_ERROR, "unique: out of memory");
    int64_t *listed = met + count, *kept = listed + count, *place = kept + count;
    memcpy(met, firsts, sizeof *met * (size_t)count);
    qsort(met, (size_t)count, sizeof *met, compare_places);
    for (int64_t k = 0; k < count; k++) memcpy(&kept[k], values->data + 8 * met[k], 8);
    if (msa_hash_order(listed, (const char *)kept, values->floating, dtype, count) != 0) {
        free(met);
        return -1;
    }
    memcpy(kept, counts, sizeof *kept * (size_t)count);
    for (int64_t k = 0; k < count; k++) {
        firsts[k] = met[listed[k]];
        counts[k] = kept[to[firsts[k]]];
        place[to[firsts[k]]] = k;
    }
    for (int64_t i = 0; i < n; i++) to[i] = place[to[i]];
    free(met);
    return 0;
}

int unique_cpu(msa_tensor *self, msa_opt_int dim, bool sorted, bool consecutive, msa_tensor **results) {
    bool floating = msa_is_floating((msa_dtype)self->dtype);
    if (msa_is_complex((msa_dtype)self->dtype)) return msa_fail(MSA_NOT_IMPLEMENTED, "\"unique\" not implemented for '%s'", msa_dtype_type_name((msa_dtype)self->dtype));
    int d = dim.has ? msa_wrap_dim("unique", dim.v, self->ndim) : 0;
    if (d < 0) return -1;
    /* A slice lists its elements as the exchange of the two dimensions does (PyTorch 1.12). */
    msa_auto msa_tensor *moved = dim.has ? msa_transpose_int(self, d, 0) : msa_reshape(self, MSA_INTS(-1));
    msa_auto msa_tensor *wide = moved ? msa_cast_values(moved, floating ? MSA_FLOAT64 : MSA_INT64) : NULL;
    msa_auto msa_tensor *plain = wide ? msa_contiguous_values(wide) : NULL;
    if (!plain) return -1;
    int64_t n = moved->ndim ? moved->sizes[0] : 1;
    slice_order order = {msa_data(plain), n ? plain->numel / n : 1, floating};
    int64_t *permutation = malloc(sizeof *permutation * (size_t)(2 * n + 1));
    if (!permutation) return msa_fail(MSA_MEMORY_ERROR, "unique: out of memory");
    int64_t *firsts = permutation + n, count = 0;
    if (consecutive) {
        for (int64_t i = 0; i < n; i++) permutation[i] = i;
    } else if (sort_slices(permutation, n, &order) != 0) {
        free(permutation);
        return -1;
    }
    int64_t inverse_sizes[MSA_MAX_DIMS] = {n};
    msa_ints inverse_shape = dim.has ? (msa_ints){inverse_sizes, 1} : msa_sizes(self);
    msa_auto msa_tensor *inverse = msa_tensor_new(inverse_shape, MSA_INT64);
    msa_auto msa_tensor *many = msa_tensor_new(MSA_INTS(n), MSA_INT64);
    if (!inverse || !many) {
        free(permutation);
        return -1;
    }
    int64_t *to = inverse->storage->data, *counts = many->storage->data;
    for (int64_t k = 0; k < n; k++) {
        if (k == 0 || !same_slice(&order, permutation[k], permutation[k - 1])) {
            counts[count] = 0;
            firsts[count++] = permutation[k];
        }
        counts[count - 1]++;
        to[permutation[k]] = count - 1;
    }
    const bool hashed = !sorted && !consecutive && !dim.has && self->dtype != MSA_BOOL;
    if (hashed && order_by_hash(firsts, counts, count, to, n, &order, (msa_dtype)self->dtype) != 0) {
        free(permutation);
        return -1;
    }
    msa_auto msa_tensor *index = msa_tensor_new(MSA_INTS(count), MSA_INT64);
    if (index) memcpy(index->storage->data, firsts, sizeof *firsts * (size_t)count);
    free(permutation);
    msa_auto msa_tensor *line = !index || moved->ndim ? msa_tensor_retain(moved) : msa_reshape(moved, MSA_INTS(1));
    msa_auto msa_tensor *values = index && line ? msa_index_select(line, 0, index) : NULL;
    if (!values) return -1;
    results[0] = dim.has ? msa_transpose_int(values, 0, d) : msa_tensor_retain(values);
    results[1] = msa_take(inverse);
    int64_t one = 1;
    results[2] = msa_tensor_over(many->storage, MSA_INT64, 0, 1, &count, &one);
    return results[0] && results[2] ? 0 : -1;
}
