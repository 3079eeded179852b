/* The profiler's record. One thread at a time is profiled; its events lie in one growing array, in the order of their beginning. */
#include "autograd/profile.h"

#include <time.h>

#include "base/memory.h"

atomic_bool msa_profiling;

static msa_profile_event *events;
static int64_t n_events, room;
static bool want_shapes;
static void *(*stack_function)(void);
static _Thread_local bool here; /* this thread is the one */
static _Thread_local int64_t innermost; /* index + 1 of the open event, 0 for none */
static atomic_ulong next_thread = 1;
static _Thread_local uint64_t thread_number;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int msa_profile_start(bool shapes, void *(*stack)(void)) {
    bool off = false;
    if (!atomic_compare_exchange_strong(&msa_profiling, &off, true))
        return msa_fail(MSA_RUNTIME_ERROR, "profiler is already enabled on this thread");
    events = NULL;
    n_events = room = innermost = 0;
    want_shapes = shapes;
    stack_function = stack;
    here = true;
    if (!thread_number) thread_number = atomic_fetch_add(&next_thread, 1);
    return 0;
}

msa_profile_event *msa_profile_stop(int64_t *n) {
    *n = 0;
    if (!here) return msa_fail_null(MSA_RUNTIME_ERROR, "can't disable profiler when it's not running");
    const int64_t end = now();
    for (int64_t i = 0; i < n_events; i++)
        if (!events[i].end) events[i].end = end;
    *n = n_events;
    here = false;
    msa_profile_event *list = events ? events : msa_calloc(1, sizeof *events);
    events = NULL;
    n_events = room = innermost = 0;
    atomic_store(&msa_profiling, false);
    return list;
}

void msa_profile_free(msa_profile_event *list, int64_t n, void (*release_stack)(void *)) {
    for (int64_t i = 0; i < n; i++) {
        free(list[i].name);
        free(list[i].shapes);
        if (list[i].stack && release_stack) release_stack(list[i].stack);
    }
    free(list);
}

/* A failure leaves the shapes out: a profile must not change what runs. */
static void note_shapes(msa_profile_event *e, msa_tensor *const *inputs, int n) {
    size_t length = 0;
    for (int i = 0; i < n; i++) length += 1 + (size_t)(inputs[i] ? inputs[i]->ndim : 0);
    int64_t *at = e->shapes = malloc(sizeof *at * (length ? length : 1));
    if (!at) return;
    for (int i = 0; i < n; i++) {
        *at++ = inputs[i] ? inputs[i]->ndim : -1;
        for (int d = 0; inputs[i] && d < inputs[i]->ndim; d++) *at++ = inputs[i]->sizes[d];
    }
    e->n_inputs = n;
}

int64_t msa_profile_enter(msa_profile_kind kind, const char *name, msa_tensor *const *inputs, int n) {
    if (!here) return 0;
    if (n_events == room) {
        int64_t more = room ? 2 * room : 1024;
        msa_profile_event *grown = realloc(events, sizeof *events * (size_t)more);
        if (!grown) return 0;
        events = grown;
        room = more;
    }
    msa_profile_event *e = &events[n_events];
    *e = (msa_profile_event){.name = strdup(name), .parent = innermost - 1, .thread = thread_number, .kind = (uint8_t)kind, .sequence = -1, .n_inputs = -1};
    if (!e->name) return 0;
    if (want_shapes) note_shapes(e, inputs, n);
    if (stack_function) e->stack = stack_function();
    e->bytes = msa_data_thread_balance();
    innermost = ++n_events;
    e->start = now();
    return innermost;
}

void msa_profile_leave(int64_t number) {
    if (!here || number > n_events || number < 1 || events[number - 1].end) return; /* of a profile that has ended */
    msa_profile_event *e = &events[number - 1];
    e->end = now();
    e->bytes = msa_data_thread_balance() - e->bytes;
    innermost = e->parent + 1;
}

void msa_profile_sequence(uint64_t sequence) {
    if (!here || !innermost || sequence == UINT64_MAX) return;
    msa_profile_event *e = &events[innermost - 1];
    if (e->sequence < 0) e->sequence = (int64_t)sequence; /* accumulators of leaves are made after the operator's node */
}
