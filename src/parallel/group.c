/* Process groups: the queue of collectives, and works. See group.h. */
#include "parallel/group.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "parallel/collectives.h"

struct msa_work {
    msa_work *next; /* in the queue */
    msa_work *next_dropped;
    msa_group *group;
    msa_collective what;
    msa_reduce_op op;
    int root;
    uint64_t tag;
    msa_request *request; /* of a message; NULL once it is released */
    bool sends, done, failed;
    int source;
    char error[256];
    int n_outputs, n_inputs;
    msa_tensor *tensors[]; /* outputs, then inputs */
};

struct msa_group {
    msa_mesh *mesh;
    pid_t process;
    int64_t timeout_ms;
    uint64_t count; /* of collectives */
    bool closing, running;
    int held; /* works, and the caller's own reference */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    msa_work *queue, **queue_end;
    msa_work *dropped; /* released by their owners before they were done */
};

static int run_work(msa_group *g, msa_work *w) {
    msa_call call = {g->mesh, w->tag, msa_deadline(g->timeout_ms), g->timeout_ms};
    int size = msa_mesh_size(g->mesh), me = msa_mesh_rank(g->mesh);
    msa_tensor *first = w->tensors[0], **inputs = w->tensors + w->n_outputs;
    msa_dtype dtype = first ? (msa_dtype)first->dtype : MSA_FLOAT32;
    msa_auto_free msa_block *blocks = msa_calloc(2 * (size_t)size, sizeof *blocks);
    msa_auto_free void **data = msa_calloc((size_t)size, sizeof *data);
    if (!blocks || !data) return -1;
    msa_block *to = blocks, *from = blocks + size;
    /* Empty tensors still are messages: their address is never NULL then. */
#define BLOCK(t)                                                                                                       \
    ((msa_block){(t)->numel ? msa_data(t) : (void *)&call, (size_t)(t)->numel * msa_dtype_size((msa_dtype)(t)->dtype)})
    switch (w->what) {
    case MSA_BROADCAST:
        return msa_broadcast_blocks(&call, BLOCK(first), w->root);
    case MSA_ALL_REDUCE:
        return msa_all_reduce_blocks(&call, w->op, dtype, msa_data(first), first->numel);
    case MSA_REDUCE:
        return msa_reduce_blocks(&call, w->op, dtype, msa_data(first), first->numel, w->root);
    case MSA_REDUCE_SCATTER:
        for (int i = 0; i < size; i++) data[i] = msa_data(inputs[i]);
        return msa_reduce_scatter_blocks(&call, w->op, dtype, msa_data(first), data, first->numel);
    case MSA_ALL_GATHER:
    case MSA_GATHER:
        for (int i = 0; i < size; i++) {
            if (w->what == MSA_ALL_GATHER || i == w->root) to[i] = BLOCK(inputs[0]);
            if (w->what == MSA_ALL_GATHER || me == w->root) from[i] = BLOCK(w->tensors[i]);
        }
        return msa_exchange_blocks(&call, to, from);
    case MSA_SCATTER:
        for (int i = 0; i < size && me == w->root; i++) to[i] = BLOCK(inputs[i]);
        from[w->root] = BLOCK(first);
        return msa_exchange_blocks(&call, to, from);
    case MSA_ALL_TO_ALL:
        for (int i = 0; i < size; i++) {
            to[i] = BLOCK(inputs[i]);
            from[i] = BLOCK(w->tensors[i]);
        }
        return msa_exchange_blocks(&call, to, from);
    default:
        return msa_barrier_blocks(&call);
    }
}

static void finish(msa_work *w, const char *error) {
    w->failed = error != NULL;
    if (error) snprintf(w->error, sizeof w->error, "%s", error);
    w->done = true;
    pthread_cond_broadcast(&w->group->changed);
}

static void *run(void *group) {
    msa_group *g = group;
    pthread_mutex_lock(&g->lock);
    for (;;) {
        while (!g->queue && !g->closing) pthread_cond_wait(&g->changed, &g->lock);
        msa_work *w = g->queue;
        if (!w) break;
        g->queue = w->next;
        if (!g->queue) g->queue_end = &g->queue;
        if (g->closing) {
            finish(w, "the process group has been destroyed");
            continue;
        }
        g->running = true;
        pthread_mutex_unlock(&g->lock);
        int status = run_work(g, w);
        char why[200];
        if (status != 0) {
            snprintf(why, sizeof why, "a collective failed on rank %d: %s", msa_mesh_rank(g->mesh),
                     msa_error_message());
            msa_mesh_abort(g->mesh, w->tag, why);
        }
        pthread_mutex_lock(&g->lock);
        g->running = false;
        finish(w, status == 0 ? NULL : msa_error_message());
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

msa_group *msa_group_new(msa_mesh *mesh, int64_t timeout_ms) {
    msa_group *g = msa_calloc(1, sizeof *g);
    if (!g) {
        msa_mesh_close(mesh);
        return NULL;
    }
    g->mesh = mesh;
    g->process = getpid();
    g->timeout_ms = timeout_ms;
    g->held = 1;
    g->queue_end = &g->queue;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&g->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&g->lock, NULL);
    if (pthread_create(&g->thread, NULL, run, g) == 0) return g;
    msa_mesh_close(mesh);
    free(g);
    return msa_fail_null(MSA_RUNTIME_ERROR, "cannot start a thread");
}

static void free_work(msa_work *w) {
    for (int i = 0; i < w->n_outputs + w->n_inputs; i++) msa_tensor_release(w->tensors[i]);
    free(w);
}

/* With the lock held: those that nobody holds and that are done. */
static msa_work *take_dropped(msa_group *g, bool all) {
    msa_work *taken = NULL;
    for (msa_work **at = &g->dropped; *at;) {
        msa_work *w = *at;
        if (!all && !(w->request ? msa_request_done(w->request) : w->done)) {
            at = &w->next_dropped;
            continue;
        }
        *at = w->next_dropped;
        w->next_dropped = taken;
        taken = w;
        g->held--;
    }
    return taken;
}

static void free_taken(msa_work *w) {
    for (msa_work *next; w; w = next) {
        next = w->next_dropped;
        msa_request_release(w->request);
        free_work(w);
    }
}

static void unhold(msa_group *g) {
    pthread_mutex_lock(&g->lock);
    int held = --g->held;
    pthread_mutex_unlock(&g->lock);
    if (held) return;
    msa_mesh_close(g->mesh);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->changed);
    free(g);
}

void msa_group_release(msa_group *g) {
    if (g->process != getpid()) return;
    pthread_mutex_lock(&g->lock);
    g->closing = true;
    bool running = g->running;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    if (running) msa_mesh_hang_up(g->mesh, "the process group has been destroyed");
    pthread_join(g->thread, NULL);
    pthread_mutex_lock(&g->lock);
    msa_work *dropped = take_dropped(g, true);
    pthread_mutex_unlock(&g->lock);
    /* Messages whose works were dropped are still delivered, if that takes no longer than a moment. */
    for (msa_work *w = dropped; w; w = w->next_dropped)
        if (w->request && w->sends && msa_request_wait(w->request, msa_deadline(1000)) != 0) msa_error_clear();
    free_taken(dropped);
    msa_mesh_stop(g->mesh);
    unhold(g);
}

static msa_work *new_work(msa_group *g, msa_collective what, msa_tensors outputs, msa_tensors inputs) {
    if (g->process != getpid())
        return msa_fail_null(MSA_RUNTIME_ERROR, "this process group belongs to the parent of a forked process");
    if (g->closing) return msa_fail_null(MSA_RUNTIME_ERROR, "the process group has been destroyed");
    for (int64_t i = 0; i < outputs.n + inputs.n; i++) {
        msa_tensor *t = i < outputs.n ? outputs.data[i] : inputs.data[i - outputs.n];
        if (!t->contiguous) return msa_fail_null(MSA_RUNTIME_ERROR, "Tensors must be contiguous");
        if (t->numel && !msa_data(t)) return NULL;
    }
    msa_work *w = msa_calloc(1, sizeof *w + (size_t)(outputs.n + inputs.n + 1) * sizeof *w->tensors);
    if (!w) return NULL;
    w->group = g;
    w->what = what;
    w->n_outputs = (int)outputs.n;
    w->n_inputs = (int)inputs.n;
    for (int i = 0; i < w->n_outputs; i++) w->tensors[i] = msa_tensor_retain(outputs.data[i]);
    for (int i = 0; i < w->n_inputs; i++) w->tensors[w->n_outputs + i] = msa_tensor_retain(inputs.data[i]);
    pthread_mutex_lock(&g->lock);
    g->held++;
    msa_work *taken = take_dropped(g, false);
    pthread_mutex_unlock(&g->lock);
    free_taken(taken);
    return w;
}

/* Lists as long as the operation needs them, of sizes and types that fit. */
static int check(msa_group *g, msa_collective what, msa_reduce_op op, int root, msa_tensors outputs,
                 msa_tensors inputs) {
    int size = msa_mesh_size(g->mesh), me = msa_mesh_rank(g->mesh);
    static const struct {
        signed char outputs, inputs; /* -1: one for each process */
        bool reduces, rooted;
    } shapes[MSA_COLLECTIVES] = {
        [MSA_BROADCAST] = {1, 0, false, true},
        [MSA_ALL_REDUCE] = {1, 0, true, false},
        [MSA_REDUCE] = {1, 0, true, true},
        [MSA_ALL_GATHER] = {-1, 1},
        [MSA_GATHER] = {-1, 1, false, true},
        [MSA_SCATTER] = {1, -1, false, true},
        [MSA_ALL_TO_ALL] = {-1, -1},
        [MSA_REDUCE_SCATTER] = {1, -1, true, false},
        [MSA_BARRIER] = {0, 0},
    };
    if ((unsigned)what >= MSA_COLLECTIVES || (unsigned)op >= MSA_REDUCE_OPS)
        return msa_fail(MSA_RUNTIME_ERROR, "there is no such collective");
    if (shapes[what].rooted && (root < 0 || root >= size))
        return msa_fail(MSA_RUNTIME_ERROR, "invalid root rank: %d", root);
    int64_t n_out = shapes[what].outputs < 0 ? size : shapes[what].outputs,
            n_in = shapes[what].inputs < 0 ? size : shapes[what].inputs;
    if (what == MSA_GATHER && me != root) n_out = 0;
    if (what == MSA_SCATTER && me != root) n_in = 0;
    if (outputs.n != n_out || inputs.n != n_in)
        return msa_fail(MSA_RUNTIME_ERROR, "%lld outputs and %lld inputs are needed, %lld and %lld are there",
                        (long long)n_out, (long long)n_in, (long long)outputs.n, (long long)inputs.n);
    const msa_tensor *first = n_out ? outputs.data[0] : n_in ? inputs.data[0] : NULL;
    for (int64_t i = 0; i < n_out + n_in; i++) {
        const msa_tensor *t = i < n_out ? outputs.data[i] : inputs.data[i - n_out];
        if (t->dtype != first->dtype)
            return msa_fail(MSA_RUNTIME_ERROR, "the tensors of a collective must have one dtype");
        if (what != MSA_ALL_TO_ALL && t->numel != first->numel)
            return msa_fail(MSA_RUNTIME_ERROR, "the tensors of a collective must have one size");
    }
    if (shapes[what].reduces && !msa_can_combine(op, (msa_dtype)first->dtype))
        return msa_fail(MSA_RUNTIME_ERROR, "this reduction is not defined for %s",
                        msa_dtype_name((msa_dtype)first->dtype));
    return 0;
}

msa_work *msa_group_start(msa_group *g, msa_collective what, msa_reduce_op op, int root, msa_tensors outputs,
                          msa_tensors inputs) {
    if (check(g, what, op, root, outputs, inputs) != 0) return NULL;
    msa_work *w = new_work(g, what, outputs, inputs);
    if (!w) return NULL;
    for (int i = 0; i < w->n_outputs; i++) msa_bump_version(w->tensors[i]);
    w->op = op;
    w->root = root;
    pthread_mutex_lock(&g->lock);
    w->tag = MSA_TAG_COLLECTIVE | ++g->count;
    *g->queue_end = w;
    g->queue_end = &w->next;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
    return w;
}

static msa_work *start_message(msa_group *g, int peer, uint32_t tag, msa_tensor *tensor, bool sends) {
    msa_work *w = new_work(g, MSA_BARRIER, (msa_tensors){&tensor, 1}, (msa_tensors){NULL, 0});
    if (!w) return NULL;
    size_t bytes = (size_t)tensor->numel * msa_dtype_size((msa_dtype)tensor->dtype);
    void *data = bytes ? msa_data(tensor) : NULL;
    w->sends = sends;
    w->request =
        sends ? msa_mesh_send(g->mesh, peer, tag, data, bytes) : msa_mesh_receive(g->mesh, peer, tag, data, bytes);
    if (w->request) {
        if (!sends) msa_bump_version(tensor);
        return w;
    }
    free_work(w);
    unhold(g);
    return NULL;
}

msa_work *msa_group_send(msa_group *g, int to, uint32_t tag, msa_tensor *t) {
    return start_message(g, to, tag, t, true);
}
msa_work *msa_group_receive(msa_group *g, int from, uint32_t tag, msa_tensor *t) {
    return start_message(g, from, tag, t, false);
}

bool msa_work_is_send(const msa_work *w) {
    return w->sends;
}
int msa_work_source(const msa_work *w) {
    return w->source;
}

/* A message is done: what became of it is kept, and the request goes. */
static int settle(msa_work *w, int64_t deadline) {
    int status = msa_request_wait(w->request, deadline);
    if (status == 1) return 1;
    w->source = msa_request_peer(w->request);
    w->failed = status != 0;
    if (w->failed) snprintf(w->error, sizeof w->error, "%s", msa_error_message());
    msa_request_release(w->request);
    w->request = NULL;
    w->done = true;
    return status;
}

bool msa_work_done(msa_work *w) {
    if (w->group->process != getpid()) return true;
    if (w->request) {
        if (!msa_request_done(w->request)) return false;
        if (settle(w, 0) != 0) msa_error_clear();
        return true;
    }
    pthread_mutex_lock(&w->group->lock);
    bool done = w->done;
    pthread_mutex_unlock(&w->group->lock);
    return done;
}

int msa_work_wait(msa_work *w, int64_t deadline) {
    msa_group *g = w->group;
    if (g->process != getpid())
        return msa_fail(MSA_RUNTIME_ERROR, "this process group belongs to the parent of a forked process");
    if (w->request) return settle(w, deadline);
    pthread_mutex_lock(&g->lock);
    while (!w->done) {
        struct timespec until = {deadline / 1000, deadline % 1000 * 1000000};
        if (deadline == INT64_MAX)
            pthread_cond_wait(&g->changed, &g->lock);
        else if (pthread_cond_timedwait(&g->changed, &g->lock, &until) == ETIMEDOUT)
            break;
    }
    int status = !w->done ? 1 : w->failed ? msa_fail(MSA_RUNTIME_ERROR, "%s", w->error) : 0;
    pthread_mutex_unlock(&g->lock);
    return status;
}

void msa_work_cancel(msa_work *w) {
    if (!w->request) return;
    msa_request_release(w->request);
    w->request = NULL;
    w->failed = w->done = true;
    snprintf(w->error, sizeof w->error, "the message was given up");
}

void msa_work_release(msa_work *w) {
    msa_group *g = w->group;
    if (g->process != getpid()) return;
    bool done = msa_work_done(w);
    if (!done && g->closing) { /* nobody will sweep it up any more */
        msa_work_cancel(w);
        done = true;
    }
    if (done) {
        free_work(w);
        unhold(g);
        return;
    }
    pthread_mutex_lock(&g->lock);
    w->next_dropped = g->dropped;
    g->dropped = w;
    pthread_mutex_unlock(&g->lock);
}
