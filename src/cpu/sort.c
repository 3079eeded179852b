/* Order statistics along a dimension: sort, topk, kthvalue, median, mode. All sort rows of (value, place) stably; NaN is the
 * largest. */
#include <math.h>
#include <stdlib.h>

#include "cpu/rows.h"
#include "ops/kernels.h"

/* Keys are made comparable as int64: floats by their bits, turned so that the order of integers is the order of values and
 * every NaN comes last. */
typedef struct {
    int64_t key;
    int64_t place;
} item;

static int64_t key_of_double(double d) {
    if (d != d) return INT64_MAX;
    int64_t bits;
    if (d == 0) d = 0; /* -0 and 0 are equal */
    memcpy(&bits, &d, sizeof bits);
    return bits < 0 ? INT64_MIN - bits : bits;
}

static void load(item *items, const void *from, msa_dtype working, int64_t n, bool descending) {
    for (int64_t k = 0; k < n; k++) {
        int64_t key = working == MSA_FLOAT32   ? key_of_double(((const float *)from)[k])
                      : working == MSA_FLOAT64 ? key_of_double(((const double *)from)[k])
                                               : ((const int64_t *)from)[k];
        items[k] = (item){descending ? ~key : key, k};
    }
}

/* Merge sort, bottom up, from runs sorted by insertion. */
static void sort_items(item *items, item *scratch, int64_t n) {
    enum { RUN = 16 };
    for (int64_t i = 0; i < n; i += RUN) {
        int64_t end = i + RUN < n ? i + RUN : n;
        for (int64_t j = i + 1; j < end; j++) {
            item x = items[j];
            int64_t k = j;
            for (; k > i && items[k - 1].key > x.key; k--) items[k] = items[k - 1];
            items[k] = x;
        }
    }
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t middle = i + width < n ? i + width : n, end = i + 2 * width < n ? i + 2 * width : n;
            int64_t a = i, b = middle, k = i;
            while (a < middle && b < end) scratch[k++] = items[b].key < items[a].key ? items[b++] : items[a++];
            while (a < middle) scratch[k++] = items[a++];
            while (b < end) scratch[k++] = items[b++];
        }
        memcpy(items, scratch, sizeof *items * (size_t)n);
    }
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

/* Sorts each row and lets `pick` choose where in the sorted order the results begin. */
typedef int64_t (*picker)(const item *sorted, int64_t n, int64_t argument);

static int ordering_run(ordering *o, bool descending, picker pick, int64_t argument) {
    int64_t n = o->rows.inner;
    size_t size = msa_dtype_size(o->working);
    const char *from = msa_data(o->rows.matrix);
    char *values = o->values->storage->data;
    int64_t *places = o->places->storage->data;
    int failed = 0;
#pragma omp parallel num_threads(msa_threads_for(o->rows.outer *n, MSA_GRAIN / 8))
    {
        item *items = malloc(sizeof *items * 2 * (size_t)(n ? n : 1));
        if (!items) {
#pragma omp atomic write
            failed = 1;
        } else {
#pragma omp for schedule(static)
            for (int64_t row = 0; row < o->rows.outer; row++) {
                const char *p = from + (size_t)(row * n) * size;
                load(items, p, o->working, n, descending);
                sort_items(items, items + n, n);
                int64_t start = pick ? pick(items, n, argument) : 0;
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

int sort_cpu(msa_tensor *self, int64_t dim, bool descending, msa_tensor **results) {
    auto_ordering ordering o = {0};
    int d = msa_wrap_dim("sort", dim, self->ndim);
    if (d < 0 || ordering_open(&o, "sort", self, MSA_INTS(d), -1) != 0 || ordering_run(&o, descending, NULL, 0) != 0) return -1;
    results[0] = msa_lines_result(self, d, o.values, (msa_dtype)self->dtype);
    results[1] = msa_lines_result(self, d, o.places, MSA_INT64);
    return results[0] && results[1] ? 0 : -1;
}

int stable_sort_cpu(msa_tensor *self, msa_opt_int stable, int64_t dim, bool descending, msa_tensor **results) {
    return sort_cpu(self, dim, descending, results); /* this sort is always stable */
}

msa_tensor *argsort_cpu(msa_tensor *self, int64_t dim, bool descending) {
    msa_tensor *results[2] = {NULL, NULL};
    int status = sort_cpu(self, dim, descending, results);
    msa_tensor_release(results[0]);
    if (status == 0) return results[1];
    msa_tensor_release(results[1]);
    return NULL;
}

msa_tensor *argsort_stable_cpu(msa_tensor *self, bool stable, int64_t dim, bool descending) { return argsort_cpu(self, dim, descending); }

int topk_cpu(msa_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted, msa_tensor **results) {
    int d = msa_wrap_dim("topk", dim, self->ndim);
    if (d < 0) return -1;
    if (k < 0 || k > (self->ndim ? self->sizes[d] : 1)) return msa_fail(MSA_RUNTIME_ERROR, "selected index k out of range");
    auto_ordering ordering o = {0};
    if (ordering_open(&o, "topk", self, MSA_INTS(d), k) != 0 || ordering_run(&o, largest, NULL, 0) != 0) return -1;
    results[0] = msa_lines_result(self, d, o.values, (msa_dtype)self->dtype);
    results[1] = msa_lines_result(self, d, o.places, MSA_INT64);
    return results[0] && results[1] ? 0 : -1;
}

static int64_t pick_argument(const item *sorted, int64_t n, int64_t argument) { return argument; }

static bool is_nan_key(const item *x) { return x->key == INT64_MAX; }

/* The lower median; NaN where there is one. Integers may hold the key of NaN: the caller says whether to look. */
static int64_t pick_median(const item *sorted, int64_t n, int64_t floating) {
    if (floating && is_nan_key(&sorted[n - 1])) {
        int64_t k = n - 1;
        while (k > 0 && is_nan_key(&sorted[k - 1])) k--;
        return k;
    }
    return (n - 1) / 2;
}

static int64_t pick_nanmedian(const item *sorted, int64_t n, int64_t floating) {
    int64_t count = n;
    while (floating && count > 1 && is_nan_key(&sorted[count - 1])) count--;
    return (count - 1) / 2;
}

/* The most frequent value, the smallest of equally frequent ones; of its places the last. */
static int64_t pick_mode(const item *sorted, int64_t n, int64_t argument) {
    int64_t best = 0, best_count = 0;
    for (int64_t i = 0; i < n;) {
        int64_t j = i;
        while (j < n && sorted[j].key == sorted[i].key) j++;
        if (j - i > best_count) {
            best_count = j - i;
            best = j - 1;
        }
        i = j;
    }
    return best;
}

/* One result for each row, in the shape of a reduction. */
static int choose(const char *op, msa_tensor *self, int64_t dim, bool keepdim, picker pick, int64_t argument, msa_tensor **results) {
    int d = msa_wrap_dim(op, dim, self->ndim);
    if (d < 0) return -1;
    if (self->ndim && self->sizes[d] == 0)
        return msa_fail(MSA_INDEX_ERROR, "%s(): Expected reduction dim %d to have non-zero size.", op, d);
    auto_ordering ordering o = {0};
    if (ordering_open(&o, op, self, MSA_INTS(d), 1) != 0 || ordering_run(&o, false, pick, argument) != 0) return -1;
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
    return choose("kthvalue", self, dim, keepdim, pick_argument, k - 1, results);
}

int median_cpu(msa_tensor *self, int64_t dim, bool keepdim, msa_tensor **results) {
    return choose("median", self, dim, keepdim, pick_median, msa_is_floating((msa_dtype)self->dtype), results);
}

int nanmedian_cpu(msa_tensor *self, int64_t dim, bool keepdim, msa_tensor **results) {
    return choose("nanmedian", self, dim, keepdim, pick_nanmedian, msa_is_floating((msa_dtype)self->dtype), results);
}

int mode_cpu(msa_tensor *self, int64_t dim, bool keepdim, msa_tensor **results) {
    return choose("mode", self, dim, keepdim, pick_mode, 0, results);
}

static msa_tensor *median_of_all(const char *op, msa_tensor *self, picker pick) {
    if (self->numel == 0) {
        if (!msa_is_floating((msa_dtype)self->dtype)) return msa_fail_null(MSA_RUNTIME_ERROR, "%s() operation does not have an identity.", op);
        return msa_tensor_scalar(msa_float(NAN), (msa_dtype)self->dtype);
    }
    msa_auto msa_tensor *plain = msa_contiguous_values(self);
    if (!plain) return NULL;
    int64_t n = plain->numel, one = 1;
    msa_auto msa_tensor *flat = msa_tensor_over(plain->storage, (msa_dtype)plain->dtype, plain->offset, 1, &n, &one);
    msa_tensor *results[2] = {NULL, NULL};
    if (!flat || choose(op, flat, 0, false, pick, msa_is_floating((msa_dtype)self->dtype), results) != 0) return NULL;
    msa_tensor_release(results[1]);
    return results[0];
}

msa_tensor *median_all_cpu(msa_tensor *self) { return median_of_all("median", self, pick_median); }

msa_tensor *nanmedian_all_cpu(msa_tensor *self) { return median_of_all("nanmedian", self, pick_nanmedian); }
