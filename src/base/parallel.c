/* Thread count, and what fork does to it: GNU OpenMP's pool does not survive in the child. */
#include "base/parallel.h"

#include <pthread.h>
#include <stdbool.h>

static int configured; /* 0: not yet decided */
static bool forked;

static void after_fork_in_child(void) {
    forked = true;
    omp_set_num_threads(1);
}

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, after_fork_in_child); }

int msa_get_num_threads(void) {
    if (forked) return 1;
    if (!configured) configured = omp_get_max_threads();
    return configured;
}

int msa_threads(void) { return omp_in_parallel() ? 1 : msa_get_num_threads(); }

void msa_set_num_threads(int count) {
    configured = count < 1 ? 1 : count;
    if (!forked) omp_set_num_threads(configured);
}
