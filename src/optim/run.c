/* One parallel walk over all parameters. */
#include "optim/internal.h"

#include "base/parallel.h"

static int check(const char *op, const msa_tensors *lists, int n_lists, unsigned optional) {
    static const char *const names[MSA_OPTIM_LISTS] = {"parameter", "gradient", "state", "state", "state"};
    for (int k = 1; k < n_lists; k++) {
        if (lists[k].n == 0 && optional >> k & 1) continue;
        if (lists[k].n != lists[0].n)
            return msa_fail(MSA_VALUE_ERROR, "%s: %lld parameters but %lld of their %ss", op, (long long)lists[0].n, (long long)lists[k].n, names[k]);
    }
    for (int64_t i = 0; i < lists[0].n; i++) {
        const msa_tensor *p = lists[0].data[i];
        if (p->dtype != MSA_FLOAT32 && p->dtype != MSA_FLOAT64)
            return msa_fail(MSA_NOT_IMPLEMENTED, "%s: parameters of type %s are not implemented", op, msa_dtype_name((msa_dtype)p->dtype));
        for (int k = 0; k < n_lists; k++) {
            if (lists[k].n == 0) continue;
            const msa_tensor *t = lists[k].data[i];
            if (t->dtype != p->dtype)
                return msa_fail(MSA_TYPE_ERROR, "%s: %s %lld is %s, its parameter %s", op, names[k], (long long)i, msa_dtype_name((msa_dtype)t->dtype),
                                msa_dtype_name((msa_dtype)p->dtype));
            if (!msa_same_sizes(t, p))
                return msa_fail(MSA_RUNTIME_ERROR, "%s: %s %lld has shape %s, its parameter %s", op, names[k], (long long)i,
                                msa_sizes_text(msa_sizes(t)), msa_sizes_text(msa_sizes(p)));
            if (!t->contiguous) return msa_fail(MSA_RUNTIME_ERROR, "%s: %s %lld is not contiguous", op, names[k], (long long)i);
            if (t->numel && !msa_data(t)) return -1;
        }
    }
    return 0;
}

static void run_share(const msa_tensors *lists, int n_lists, const msa_optim_update update[2], const void *context, int64_t begin, int64_t end) {
    int64_t start = 0;
    for (int64_t i = 0; i < lists[0].n && start < end; i++) {
        const msa_tensor *p = lists[0].data[i];
        int64_t from = begin > start ? begin - start : 0, to = end - start < p->numel ? end - start : p->numel;
        if (from < to) {
            void *at[MSA_OPTIM_LISTS] = {NULL};
            int64_t skip = from * (int64_t)msa_dtype_size((msa_dtype)p->dtype);
            for (int k = 0; k < n_lists; k++)
                if (lists[k].n) at[k] = (char *)msa_data(lists[k].data[i]) + skip;
            update[p->dtype == MSA_FLOAT64](at, to - from, i, context);
        }
        start += p->numel;
    }
}

int msa_optim_run(const char *op, const msa_tensors *lists, int n_lists, unsigned optional, const msa_optim_update update[2],
                  const void *context) {
    if (check(op, lists, n_lists, optional) != 0) return -1;
    int64_t total = 0;
    for (int64_t i = 0; i < lists[0].n; i++) total += lists[0].data[i]->numel;
    int threads = msa_threads_for(total, MSA_GRAIN);
    if (threads == 1) {
        run_share(lists, n_lists, update, context, 0, total);
    } else {
#pragma omp parallel num_threads(threads)
        {
            int64_t begin, end;
            msa_share(total, omp_get_num_threads(), omp_get_thread_num(), &begin, &end);
            run_share(lists, n_lists, update, context, begin, end);
        }
    }
    for (int64_t i = 0; i < lists[0].n; i++) msa_bump_version(lists[0].data[i]);
    return 0;
}
