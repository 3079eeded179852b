/* The profiler's record: which operators, backward functions and blocks of the user's ran when, one inside another.
 *
 * Every entry point opens with MSA_PROFILED. It costs one load while nobody profiles. */
#ifndef MSA_AUTOGRAD_PROFILE_H
#define MSA_AUTOGRAD_PROFILE_H

#include <stdatomic.h>

#include "autograd/internal.h"

typedef enum { MSA_PROFILE_OPERATOR, MSA_PROFILE_BACKWARD, MSA_PROFILE_USER } msa_profile_kind;

typedef struct {
    char *name;        /* owned */
    int64_t start, end; /* nanoseconds of the monotonic clock; end is 0 while it runs */
    int64_t parent;    /* index of the event around it, -1 for none */
    uint64_t thread;   /* a small number */
    int64_t bytes;     /* tensor memory taken less memory given back meanwhile, by this thread */
    int64_t sequence;  /* of the node that it made or ran, -1 for none */
    uint8_t kind;
    int32_t n_inputs;  /* -1: shapes were not asked for */
    int64_t *shapes;   /* for each input the number of dimensions (-1: no tensor), then the sizes */
    void *stack;       /* what the stack function gave */
} msa_profile_event;

MSA_API extern atomic_bool msa_profiling; /* somebody, in some thread */

/* Events of the calling thread from now on. `stack` (may be NULL) is asked for the place of each operator. */
MSA_API int msa_profile_start(bool shapes, void *(*stack)(void));
/* The events, to be given back to msa_profile_free. */
MSA_API msa_profile_event *msa_profile_stop(int64_t *n);
MSA_API void msa_profile_free(msa_profile_event *events, int64_t n, void (*release_stack)(void *));

/* A number for leave, 0 where nothing is recorded. `inputs` may hold NULL for what is no tensor. */
MSA_API int64_t msa_profile_enter(msa_profile_kind kind, const char *name, msa_tensor *const *inputs, int n);
MSA_API void msa_profile_leave(int64_t number);
/* A node has been made by, or is run by, the innermost open event. */
void msa_profile_sequence(uint64_t sequence);

static inline bool msa_is_profiling(void) { return __builtin_expect(atomic_load_explicit(&msa_profiling, memory_order_relaxed), 0); }

static inline void msa_profile_end_scope(int64_t *number) {
    if (__builtin_expect(*number != 0, 0)) msa_profile_leave(*number);
}
#define MSA_PROFILED(name, n, ...)                                                                                          \
    __attribute__((cleanup(msa_profile_end_scope), unused)) int64_t profiled_ =                                              \
        msa_is_profiling() ? msa_profile_enter(MSA_PROFILE_OPERATOR, name, (msa_tensor *const[]){__VA_ARGS__}, n) : 0

#endif
