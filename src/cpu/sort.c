/* Order statistics along a dimension: sort, topk, kthvalue, median, mode. Rows of (value, place) are sorted or selected from by
 * select.h; NaN is the largest. */
#include <math.h>
#include <stdlib.h>

#include "cpu/rows.h"
#include "cpu/select.h"
#include "ops/kernels.h"

/* Keys are made comparable as int64: floats by their bits, turned so that the order of integers is the order of values (-0 and 0
 * are equal) and every NaN comes last. `flip` is -1 for the opposite order. */
static void load_keys(int64_t *keys, const void *from, msa_dtype working, int64_t start, int64_t n, int64_t flip) {
    if (working == MSA_FLOAT32) {
        const int32_t *bits = (const int32_t *)from + start;
        for (int64_t k = 0; k < n; k++) {
            const int64_t b = bits[k], key = b < 0 ? INT32_MIN - b : b;
            keys[k] = ((b & INT32_MAX) > 0x7f800000 ? INT64_MAX : key) ^ flip;
        }
    } else if (working == MSA_FLOAT64) {
        const int64_t *bits = (const int64_t *)from + start;
        for (int64_t k = 0; k < n; k++) keys[k] = msa_key_of_double(bits[k]) ^ flip;
    } else {
        const int64_t *values = (const int64_t *)from + start;
        for (int64_t k = 0; k < n; k++) keys[k] = values[k] ^ flip;
    }
}

enum { BLOCK = 256 };

static void load(msa_item *items, const void *from, msa_dtype working, int64_t n, int64_t flip) {
    int64_t keys[BLOCK];
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t count = n - at < BLOCK ? n - at : BLOCK;
        load_keys(keys, from, working, at, count, flip);
        for (int64_t k = 0; k < count; k++) items[at + k] = (msa_item){keys[k], at + k};
    }
}

/* The first `few` of all in order, the rest of the row never written down. */
static void load_front(msa_item *items, int64_t few, const void *from, msa_dtype working, int64_t n, int64_t flip) {
    int64_t keys[BLOCK];
    load(items, from, working, few, flip);
    msa_heap_make(items, few);
    for (int64_t at = few; few > 0 && at < n; at += BLOCK) {
        const int64_t count = n - at < BLOCK ? n - at : BLOCK;
        load_keys(keys, from, working, at, count, flip);
        for (int64_t k = 0; k < count; k++)
            if (keys[k] < items[0].key) msa_heap_replace_top(items, few, (msa_item){keys[k], at + k});
    }
    msa_heap_sort(items, few);
}

typedef struct {
    msa_rows rows;
    msa_dtype working;
    int64_t width; /* results a row */
    msa_tensor *values, *places; /* (outer, width) */
} ordering;

static void ordering_close(ordering *o) {
    msa_tensor_release(o->rows.matrix);
    msa_tensor_release(o->values);
    msa_tensor_release(o->places);
}
#define auto_ordering __attribute__((cleanup(ordering_close)))

static int ordering_open(ordering *o, const char *op, msa_tensor *self, msa_ints dims, int64_t width) {
    memset(o, 0, sizeof *o);
    msa_dtype have = (msa_dtype)self->dtype;
    if (msa_is_complex(have)) return msa_fail(MSA_RUNTIME_ERROR, "Sort does not support complex dtypes on CPU");
    o->working = msa_working_type(have);
    if (msa_rows_open(&o->rows, op, self, dims, false, o->working) != 0) return -1;
    o->width = width < 0 ? o->rows.inner : width;
    o->values = msa_tensor_new(MSA_INTS(o->rows.outer, o->width), o->working);
    o->places = msa_tensor_new(MSA_INTS(o->rows.outer, o->width), MSA_INT64);
    return o->values && o->places ? 0 : -1;
}

/* Puts the items of a row in some order; where the results begin in it. `scratch` holds as many items. NULL: the results are the
 * first few in order. */
typedef int64_t (*arranger)(msa_item *items, msa_item *scratch, int64_t n, int64_t argument);

static int ordering_run(ordering *o, bool descending, arranger arrange, int64_t argument) {
    int64_t n = o->rows.inner;
    size_t size = msa_dtype_size(o->working);
    const char *from = msa_data(o->rows.matrix);
    char *values = o->values->storage->data;
    int64_t *places = o->places->storage->data;
    int failed = 0;
#pragma omp parallel num_threads(msa_threads_for(o->rows.outer *n, MSA_GRAIN / 8))
    {
        msa_item *items = malloc(sizeof *items * (size_t)(arrange ? 2 * n + 1 : o->width + 1));
        if (!items) {
#pragma omp atomic write
            failed = 1;
        } else {
#pragma omp for schedule(static)
            for (int64_t row = 0; row < o->rows.outer; row++) {
                const char *p = from + (size_t)(row * n) * size;
                int64_t start = 0;
                if (arrange) {
                    load(items, p, o->working, n, descending ? -1 : 0);
                    start = arrange(items, items + n, n, argument);
                } else {
                    load_front(items, o->width, p, o->working, n, descending ? -1 : 0);
                }
                for (int64_t k = 0; k < o->width; k++) {
                    int64_t place = items[start + k].place;
                    memcpy(values + (size_t)(row * o->width + k) * size, p + (size_t)place * size, size);
                    places[row * o->width + k] = place;
                }
            }
            free(items);
        }
    }
    return failed ? msa_fail(MSA_MEMORY_ERROR, "cannot allocate memory for sorting") : 0;
}

static int64_t in_stable_order(msa_item *items, msa_item *scratch, int64_t n, int64_t argument) {
    msa_items_merge_sort(items, scratch, n);
    return 0;
}

static int64_t in_order(msa_item *items, msa_item *scratch, int64_t n, int64_t argument) {
    msa_items_sort(items, n);
    return 0;
}

static int sort_lines(msa_tensor *self, int64_t dim, bool descending, bool stable, msa_tensor **results) {
    auto_ordering ordering o = {0};
    int d = msa_wrap_dim("sort", dim, self->ndim);
    if (d < 0 || ordering_open(&o, "sort", self, MSA_INTS(d), -1) != 0 || ordering_run(&o, descending, stable ? in_stable_order : in_order, 0) != 0)
        return -1;
    results[0] = msa_lines_result(self, d, o.values, (msa_dtype)self->dtype);
    results[1] = msa_lines_result(self, d, o.places, MSA_INT64);
    return results[0] && results[1] ? 0 : -1;
}

int sort_cpu(msa_tensor *self, int64_t dim, bool descending, msa_tensor **results) { return sort_lines(self, dim, descending, false, results); }

int stable_sort_cpu(msa_tensor *self, msa_opt_int stable, int64_t dim, bool descending, msa_tensor **results) {
    return sort_lines(self, dim, descending, stable.has && stable.v, results);
}

msa_tensor *argsort_stable_cpu(msa_tensor *self, bool stable, int64_t dim, bool descending) {
    msa_tensor *results[2] = {NULL, NULL};
    int status = sort_lines(self, dim, descending, stable, results);
    msa_tensor_release(results[0]);
    if (status == 0) return results[1];
    msa_tensor_release(results[1]);
    return NULL;
}

msa_tensor *argsort_cpu(msa_tensor *self, int64_t dim, bool descending) { return argsort_stable_cpu(self, false, dim, descending); }

/* The first k by selection, for where they are many. */
static int64_t first_sorted(msa_item *items, msa_item *scratch, int64_t n, int64_t k) {
    msa_items_select(items, n, k - 1);
    msa_items_sort(items, k - 1);
    return 0;
}

static int64_t first_unsorted(msa_item *items, msa_item *scratch, int64_t n, int64_t k) {
    msa_items_select(items, n, k - 1);
    return 0;
}

int topk_cpu(msa_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted, msa_tensor **results) {
    int d = msa_wrap_dim("topk", dim, self->ndim);
    if (d < 0) return -1;
    if (k < 0 || k > (self->ndim ? self->sizes[d] : 1)) return msa_fail(MSA_RUNTIME_ERROR, "selected index k out of range");
    auto_ordering ordering o = {0};
    if (ordering_open(&o, "topk", self, MSA_INTS(d), k) != 0) return -1;
    const arranger arrange = k * 64 <= o.rows.inner ? NULL : sorted ? first_sorted : first_unsorted;
    if (ordering_run(&o, largest, arrange, k) != 0) return -1;
    results[0] = msa_lines_result(self, d, o.values, (msa_dtype)self->dtype);
    results[1] = msa_lines_result(self, d, o.places, MSA_INT64);
    return results[0] && results[1] ? 0 : -1;
}

static int64_t kth(msa_item *items, msa_item *scratch, int64_t n, int64_t k) {
    msa_items_quickselect(items, n, k);
    return k;
}

/* Integers may hold the key of NaN: the caller says whether to look. */
static int64_t nans_among(const msa_item *items, int64_t n, bool floating, int64_t *first) {
    int64_t count = 0;
    for (int64_t k = n - 1; floating && k >= 0; k--)
        if (items[k].key == INT64_MAX) {
            *first = k;
            count++;
        }
    return count;
}

/* Where in the row the item lies that a stable sort puts at nth. */
static int64_t stable_nth(const msa_item *items, msa_item *scratch, int64_t n, int64_t nth) {
    memcpy(scratch, items, sizeof *items * (size_t)n);
    msa_items_select(scratch, n, nth);
    const int64_t key = scratch[nth].key;
    int64_t before = nth, at = 0; /* equal ones that come before it */
    for (int64_t k = 0; k < n; k++) before -= items[k].key < key;
    for (at = 0; items[at].key != key || before-- > 0; at++) continue;
    return at;
}

/* The lower median; the first NaN where there is one. */
static int64_t middle(msa_item *items, msa_item *scratch, int64_t n, int64_t floating) {
    int64_t first = 0;
    if (nans_among(items, n, floating, &first)) return first;
    return stable_nth(items, scratch, n, (n - 1) / 2);
}

static int64_t middle_of_numbers(msa_item *items, msa_item *scratch, int64_t n, int64_t floating) {
    int64_t first = 0, numbers = n - nans_among(items, n, floating, &first), nth = numbers ? (numbers - 1) / 2 : 0;
    return stable_nth(items, scratch, n, nth);
}

/* The most frequent value, the smallest of equally frequent ones; of its places the last after sorting. */
static int64_t most_frequent(msa_item *items, msa_item *scratch, int64_t n, int64_t argument) {
    msa_items_sort(items, n);
    int64_t best = 0, best_count = 0;
    for (int64_t i = 0; i < n;) {
        int64_t j = i;
        while (j < n && items[j].key == items[i].key) j++;
        if (j - i > best_count) {
            best_count = j - i;
            best = j - 1;
        }
        i = j;
    }
    return best;
}

/* One result for each row, in the shape of a reduction. */
static int choose(const char *op, msa_tensor *self, int64_t dim, bool keepdim, arranger arrange, int64_t argument, msa_tensor **results) {
    int d = msa_wrap_dim(op, dim, self->ndim);
    if (d < 0) return -1;
    if (self->ndim && self->sizes[d] == 0)
        return msa_fail(MSA_INDEX_ERROR, "%s(): Expected reduction dim %d to have non-zero size.", op, d);
    auto_ordering ordering o = {0};
    if (ordering_open(&o, op, self, MSA_INTS(d), 1) != 0 || ordering_run(&o, false, arrange, argument) != 0) return -1;
    int64_t sizes[MSA_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < self->ndim; i++)
        if (i != d || keepdim) sizes[n++] = i == d ? 1 : self->sizes[i];
    int64_t strides[MSA_MAX_DIMS];
    msa_contiguous_strides(n, sizes, strides);
    msa_auto msa_tensor *values = msa_tensor_over(o.values->storage, o.working, 0, n, sizes, strides);
    results[0] = values ? msa_cast_values(values, (msa_dtype)self->dtype) : NULL;
    results[1] = results[0] ? msa_tensor_over(o.places->storage, MSA_INT64, 0, n, sizes, strides) : NULL;
    return results[1] ? 0 : -1;
}

int kthvalue_cpu(msa_tensor *self, int64_t k, int64_t dim, bool keepdim, msa_tensor **results) {
    int d = msa_wrap_dim("kthvalue", dim, self->ndim);
    if (d < 0) return -1;
    if (k < 1 || k > (self->ndim ? self->sizes[d] : 1)) return msa_fail(MSA_RUNTIME_ERROR, "kthvalue(): selected number k out of range for dimension %d", d);
    return choose("kthvalue", self, dim, keepdim, kth, k - 1, results);
}

int median_cpu(msa_tensor *self, int64_t dim, bool keepdim, msa_tensor **results) {
    return choose("median", self, dim, keepdim, middle, msa_is_floating((msa_dtype)self->dtype), results);
}

int nanmedian_cpu(msa_tensor *self, int64_t dim, bool keepdim, msa_tensor **results) {
    return choose("nanmedian", self, dim, keepdim, middle_of_numbers, msa_is_floating((msa_dtype)self->dtype), results);
}

int mode_cpu(msa_tensor *self, int64_t dim, bool keepdim, msa_tensor **results) {
    return choose("mode", self, dim, keepdim, most_frequent, 0, results);
}

static msa_tensor *median_of_all(const char *op, msa_tensor *self, arranger arrange) {
    if (self->numel == 0) {
        if (!msa_is_floating((msa_dtype)self->dtype)) return msa_fail_null(MSA_RUNTIME_ERROR, "%s() operation does not have an identity.", op);
        return msa_tensor_scalar(msa_float(NAN), (msa_dtype)self->dtype);
    }
    msa_auto msa_tensor *plain = msa_contiguous_values(self);
    if (!plain) return NULL;
    int64_t n = plain->numel, one = 1;
    msa_auto msa_tensor *flat = msa_tensor_over(plain->storage, (msa_dtype)plain->dtype, plain->offset, 1, &n, &one);
    msa_tensor *results[2] = {NULL, NULL};
    if (!flat || choose(op, flat, 0, false, arrange, msa_is_floating((msa_dtype)self->dtype), results) != 0) return NULL;
    msa_tensor_release(results[1]);
    return results[0];
}

msa_tensor *median_all_cpu(msa_tensor *self) { return median_of_all("median", self, middle); }

msa_tensor *nanmedian_all_cpu(msa_tensor *self) { return median_of_all("nanmedian", self, middle_of_numbers); }
