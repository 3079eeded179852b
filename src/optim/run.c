/* One parallel walk over all parameters, whatever their layout. */
#include "optim/internal.h"

#include "base/parallel.h"

/* One parameter and what belongs to it. tensors[] owns a reference to the list's own tensor, or the copy that stands
 * for it. */
typedef struct {
    msa_tensor *tensors[MSA_OPTIM_LISTS];
    void *at[MSA_OPTIM_LISTS];
    int64_t n;
    bool is_double;
} entry;

static int check_lengths(const char *op, const msa_tensors *lists, int n_lists, unsigned optional) {
    for (int k = 1; k < n_lists; k++) {
        if (lists[k].n == 0 && optional >> k & 1) continue;
        if (lists[k].n != lists[0].n)
            return msa_fail(MSA_VALUE_ERROR, "%s: %lld parameters but %lld of their %s", op, (long long)lists[0].n,
                            (long long)lists[k].n, k == 1 ? "gradients" : "states");
    }
    return 0;
}

static int check_tensor(const char *op, const msa_tensor *p, const msa_tensor *t, int k, int64_t i) {
    const char *name = k == 0 ? "parameter" : k == 1 ? "gradient" : "state";
    if (t->layout) return msa_fail(MSA_RUNTIME_ERROR, "%s: %s %lld is sparse", op, name, (long long)i);
    if (!msa_is_inexact((msa_dtype)t->dtype) ||
        msa_is_complex((msa_dtype)t->dtype) != msa_is_complex((msa_dtype)p->dtype))
        return msa_fail(MSA_TYPE_ERROR, "%s: %s %lld is %s, its parameter %s", op, name, (long long)i,
                        msa_dtype_name((msa_dtype)t->dtype), msa_dtype_name((msa_dtype)p->dtype));
    if (!msa_same_sizes(t, p))
        return msa_fail(MSA_RUNTIME_ERROR, "%s: %s %lld has shape %s, its parameter %s", op, name, (long long)i,
                        msa_sizes_text(msa_sizes(t)), msa_sizes_text(msa_sizes(p)));
    for (int d = 0; k != 1 && d < t->ndim; d++)
        if (t->strides[d] == 0 && t->sizes[d] > 1)
            return msa_fail(MSA_RUNTIME_ERROR,
                            "%s: several elements of %s %lld share one place in memory; clone() it first", op, name,
                            (long long)i);
    return 0;
}

/* Whether the elements of t fill a stretch of memory, in any order of the dimensions. */
static bool is_dense(const msa_tensor *t) {
    if (t->contiguous) return true;
    int64_t reached = 1;
    for (bool grown = true; grown;) {
        grown = false;
        for (int d = 0; d < t->ndim && !grown; d++)
            if (t->sizes[d] > 1 && t->strides[d] == reached) {
                reached *= t->sizes[d];
                grown = true;
            }
    }
    return reached == t->numel;
}

static bool has_strides(const msa_tensor *t, const int64_t *strides) {
    for (int d = 0; d < t->ndim; d++)
        if (t->sizes[d] > 1 && t->strides[d] != strides[d]) return false;
    return true;
}

/* The type that a parameter and its states are computed in: the widest among them, at least float. */
static msa_dtype working_type(const msa_tensors *lists, int n_lists, int64_t i) {
    bool is_double = false;
    for (int k = 0; k < n_lists; k++)
        if (lists[k].n)
            is_double |= lists[k].data[i]->dtype == MSA_FLOAT64 || lists[k].data[i]->dtype == MSA_COMPLEX128;
    if (msa_is_complex((msa_dtype)lists[0].data[i]->dtype)) return is_double ? MSA_COMPLEX128 : MSA_COMPLEX64;
    return is_double ? MSA_FLOAT64 : MSA_FLOAT32;
}

static int prepare(const char *op, const msa_tensors *lists, int n_lists, int64_t i, entry *e) {
    const msa_tensor *p = lists[0].data[i];
    int64_t plain[MSA_MAX_DIMS];
    const int64_t *strides = p->strides;
    if (!is_dense(p)) {
        msa_contiguous_strides(p->ndim, p->sizes, plain);
        strides = plain;
    }
    for (int k = 0; k < n_lists; k++)
        if (lists[k].n && check_tensor(op, p, lists[k].data[i], k, i) != 0) return -1;
    const msa_dtype type = working_type(lists, n_lists, i);
    for (int k = 0; k < n_lists; k++) {
        if (lists[k].n == 0) continue;
        msa_tensor *t = lists[k].data[i];
        if (t->dtype == type && has_strides(t, strides)) {
            e->tensors[k] = msa_tensor_retain(t);
        } else {
            e->tensors[k] = msa_tensor_new_strided(msa_sizes(p), (msa_ints){strides, p->ndim}, type);
            if (!e->tensors[k] || msa_copy_values(e->tensors[k], t) != 0) return -1;
        }
        e->at[k] = msa_data(e->tensors[k]);
        if (p->numel && !e->at[k]) return -1;
    }
    e->n = p->numel * (msa_is_complex(type) ? 2 : 1);
    e->is_double = type == MSA_FLOAT64 || type == MSA_COMPLEX128;
    return 0;
}

static void run_share(const entry *entries, int64_t n, const msa_optim_update update[2], const void *context,
                      int64_t begin, int64_t end) {
    int64_t start = 0;
    for (int64_t i = 0; i < n && start < end; i++) {
        const entry *e = &entries[i];
        int64_t from = begin > start ? begin - start : 0, to = end - start < e->n ? end - start : e->n;
        if (from < to) {
            void *at[MSA_OPTIM_LISTS];
            int64_t skip = from * (int64_t)(e->is_double ? sizeof(double) : sizeof(float));
            for (int k = 0; k < MSA_OPTIM_LISTS; k++) at[k] = e->at[k] ? (char *)e->at[k] + skip : NULL;
            update[e->is_double](at, to - from, i, context);
        }
        start += e->n;
    }
}

static void run_all(const entry *entries, int64_t n, const msa_optim_update update[2], const void *context) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) total += entries[i].n;
    int threads = msa_threads_for(total, MSA_GRAIN);
    if (threads == 1) {
        run_share(entries, n, update, context, 0, total);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        int64_t begin, end;
        msa_share(total, omp_get_num_threads(), omp_get_thread_num(), &begin, &end);
        run_share(entries, n, update, context, begin, end);
    }
}

static int write_back(const msa_tensors *lists, int n_lists, int64_t i, const entry *e) {
    for (int k = 0; k < n_lists; k++) {
        if (k == 1 || lists[k].n == 0) continue;
        if (e->tensors[k] != lists[k].data[i] && msa_copy_values(lists[k].data[i], e->tensors[k]) != 0) return -1;
        msa_bump_version(lists[k].data[i]);
    }
    return 0;
}

int msa_optim_run(const char *op, const msa_tensors *lists, int n_lists, unsigned optional,
                  const msa_optim_update update[2], const void *context) {
    if (check_lengths(op, lists, n_lists, optional) != 0) return -1;
    const int64_t n = lists[0].n;
    entry *entries = msa_calloc((size_t)(n ? n : 1), sizeof *entries);
    if (!entries) return -1;
    int status = 0;
    for (int64_t i = 0; i < n && status == 0; i++) status = prepare(op, lists, n_lists, i, &entries[i]);
    if (status == 0) run_all(entries, n, update, context);
    for (int64_t i = 0; i < n && status == 0; i++) status = write_back(lists, n_lists, i, &entries[i]);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < n_lists; k++) msa_tensor_release(entries[i].tensors[k]);
    free(entries);
    return status;
}
