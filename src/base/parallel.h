/* OpenMP helpers. One pool for the whole library, oneDNN's too; a forked worker runs with one thread. */
#ifndef MSA_BASE_PARALLEL_H
#define MSA_BASE_PARALLEL_H

#include <omp.h>
#include <stdint.h>

#include "msadapter/error.h"

/* Threads that a kernel may use; 1 inside a parallel region and in a forked child. */
int msa_threads(void);
MSA_API int msa_get_num_threads(void);
MSA_API void msa_set_num_threads(int count);

/* Threads worth using on `work` elementary steps when a share below `grain` is not worth a thread. */
static inline int msa_threads_for(int64_t work, int64_t grain) {
    if (work < 2 * grain) return 1;
    int64_t most = work / grain;
    int threads = msa_threads();
    return most < threads ? (int)most : threads;
}

/* The half-open share [*begin, *end) of thread `t` of `threads` out of `n` items. */
static inline void msa_share(int64_t n, int threads, int t, int64_t *begin, int64_t *end) {
    *begin = n * t / threads;
    *end = n * (t + 1) / threads;
}

enum { MSA_GRAIN = 32768 }; /* elements of cheap arithmetic that repay waking a thread */

#endif
