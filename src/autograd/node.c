/* Nodes of the tape: making, connecting and releasing them. */
#include "autograd/internal.h"
#include "autograd/profile.h"

#include "msadapter/ops.h"

_Thread_local bool msa_grad_mode = true;

static atomic_ullong next_sequence = 1;

const msa_anomaly_watch *msa_anomaly_watched;
static void (*release_trace)(void *trace); /* kept: traces outlive the watch */

void msa_watch_anomalies(const msa_anomaly_watch *watch) {
    if (watch) release_trace = watch->release;
    msa_anomaly_watched = watch;
}

msa_node *msa_node_new(const msa_node_class *cls, uint32_t n_edges, uint32_t n_saved) {
    size_t edges = sizeof(msa_edge) * n_edges, saved = sizeof(msa_saved) * n_saved;
    msa_node *node = calloc(1, sizeof *node + saved + edges);
    if (!node) return msa_fail_null(MSA_MEMORY_ERROR, "cannot allocate a node of the autograd graph");
    node->references = 1;
    node->cls = cls;
    node->name = cls->name;
    node->n_edges = n_edges;
    node->n_saved = n_saved;
    node->sequence = atomic_fetch_add_explicit(&next_sequence, 1, memory_order_relaxed);
    if (msa_anomaly_watched) node->trace = msa_anomaly_watched->note();
    if (msa_is_profiling()) msa_profile_sequence(node->sequence);
    node->saved = (msa_saved *)(node + 1);
    node->edges = (msa_edge *)((char *)(node + 1) + saved);
    return node;
}

msa_tensor *msa_node_named(msa_tensor *owned, const char *name) {
    if (owned && owned->autograd && owned->autograd->grad_fn) owned->autograd->grad_fn->name = name;
    return owned;
}

msa_node *msa_node_retain(msa_node *node) {
    if (node) atomic_fetch_add_explicit(&node->references, 1, memory_order_relaxed);
    return node;
}

static void free_saved_of_slices(msa_node *node);

void msa_node_free_saved(msa_node *node) {
    free_saved_of_slices(node);
    for (uint32_t i = 0; i < node->n_saved; i++) {
        msa_saved *s = &node->saved[i];
        switch (s->kind) {
        case MSA_SAVED_TENSOR:
        case MSA_SAVED_OUTPUT: msa_tensor_release(s->tensor); break;
        case MSA_SAVED_LIST:
            msa_list_release(s->list);
            free(s->versions);
            break;
        case MSA_SAVED_BUFFER: free(s->buffer.data); break;
        case MSA_SAVED_PACKED: msa_packed_release(s->packed); break;
        default: break;
        }
        memset(s, 0, sizeof *s);
    }
    node->freed = true;
}

static void free_shapes(msa_node *node) {
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i].ndim > MSA_INLINE_DIMS) free(node->inputs[i].sizes);
    free(node->inputs);
}

/* Long chains must not be released recursively: what a dying node lets go of waits in a list. */
static _Thread_local msa_node *dying;
static _Thread_local bool draining;

static void destroy(msa_node *node) {
    msa_hooks_free(&node->hooks);
    if (node->trace) release_trace(node->trace);
    if (node->cls->release) node->cls->release(node);
    msa_node_free_saved(node);
    for (uint32_t i = 0; i < node->n_edges; i++) msa_node_release(node->edges[i].node);
    free_shapes(node);
    free(node);
}

void msa_node_release(msa_node *node) {
    if (!node || atomic_fetch_sub_explicit(&node->references, 1, memory_order_acq_rel) != 1) return;
    node->python = dying; /* no Python object can be left: the field links the list */
    dying = node;
    if (draining) return;
    draining = true;
    while (dying) {
        msa_node *next = dying;
        dying = next->python;
        next->python = NULL;
        destroy(next);
    }
    draining = false;
}

void msa_node_connect(msa_node *node, uint32_t edge, msa_tensor *argument) {
    if (!argument || !argument->requires_grad) return;
    /* Failure to make an accumulator leaves the edge empty: the gradient would be lost, so the error stays set and the
     * next check of the engine reports it. */
    msa_gradient_edge(argument, &node->edges[edge]);
}

static msa_output_shape *input_shape(msa_node *node, uint32_t output) {
    if (output >= node->n_inputs) {
        uint32_t n = output + 1;
        msa_output_shape *grown = calloc(n, sizeof *grown);
        if (!grown) return msa_fail_null(MSA_MEMORY_ERROR, "cannot allocate a node of the autograd graph");
        for (uint32_t i = 0; i < node->n_inputs; i++) {
            grown[i] = node->inputs[i];
            if (grown[i].ndim <= MSA_INLINE_DIMS) grown[i].sizes = grown[i].inline_sizes;
        }
        free(node->inputs);
        node->inputs = grown;
        node->n_inputs = n;
    }
    return &node->inputs[output];
}

static int note_shape(msa_node *node, uint32_t output, const msa_tensor *t) {
    msa_output_shape *shape = input_shape(node, output);
    if (!shape) return -1;
    if (shape->defined && shape->ndim > MSA_INLINE_DIMS) free(shape->sizes);
    shape->defined = true;
    shape->dtype = t->dtype;
    shape->ndim = t->ndim;
    shape->sizes = shape->inline_sizes;
    if (t->ndim > MSA_INLINE_DIMS) {
        shape->sizes = msa_malloc(sizeof(int64_t) * t->ndim);
        if (!shape->sizes) {
            shape->ndim = 0;
            return -1;
        }
    }
    memcpy(shape->sizes, t->sizes, sizeof(int64_t) * t->ndim);
    return 0;
}

static int set_grad_fn(msa_tensor *t, msa_node *node, uint32_t output) {
    struct msa_autograd *a = msa_autograd_of(t);
    if (!a) return -1;
    msa_node_retain(node);
    msa_node_release(a->grad_fn);
    a->grad_fn = node;
    a->output = output;
    a->requires_grad = false;
    t->requires_grad = true;
    if (a->is_view) a->view_version = t->storage->version;
    return 0;
}

int msa_node_attach(msa_node *node, uint32_t output, msa_tensor *result) {
    if (!result || !msa_is_inexact((msa_dtype)result->dtype)) return input_shape(node, output) ? 0 : -1;
    if (note_shape(node, output, result) != 0) return -1;
    return set_grad_fn(result, node, output);
}

int msa_node_skip(msa_node *node, uint32_t output, msa_tensor *result) {
    return input_shape(node, output) ? 0 : -1;
}

/* CopySlices: the gradient of a base one of whose views has been written in place. */
typedef struct {
    msa_node *function; /* of the write, as if the view had been the whole */
    int base_ndim, view_ndim;
    int64_t base_sizes[MSA_MAX_DIMS], base_strides[MSA_MAX_DIMS];
    int64_t view_sizes[MSA_MAX_DIMS], view_strides[MSA_MAX_DIMS];
    int64_t offset; /* of the view in the base */
} slices;

static int copy_slices_backward(msa_node *node, msa_tensor *const *grads, msa_tensor **results);

static void copy_slices_release(msa_node *node) {
    slices *s = node->context;
    node->context = NULL;
    msa_node_release(s->function);
    free(s);
}

static const msa_node_class copy_slices_class = {"CopySlices", copy_slices_backward, copy_slices_release};

static void free_saved_of_slices(msa_node *node) {
    if (node->cls != &copy_slices_class || !node->context) return;
    slices *s = node->context;
    /* Shared with nobody: the write's node lives for this one. */
    if (!s->function->freed) msa_node_free_saved(s->function);
}

static int copy_slices_backward(msa_node *node, msa_tensor *const *grads, msa_tensor **results) {
    slices *s = node->context;
    if (!grads[0]) return 0;
    if (s->function->freed)
        return msa_fail(MSA_RUNTIME_ERROR,
                        "Trying to backward through the graph a second time: saved intermediate values have been freed. "
                        "Specify retain_graph=True if you need to backward through the graph a second time");
    msa_ints base_sizes = {s->base_sizes, s->base_ndim}, base_strides = {s->base_strides, s->base_ndim};
    msa_auto msa_tensor *whole = msa_tensor_new_strided(base_sizes, base_strides, (msa_dtype)grads[0]->dtype);
    if (!whole) return -1;
    msa_auto msa_tensor *copied = msa_copy_(whole, grads[0], false);
    if (!copied) return -1;
    msa_auto msa_tensor *slice = msa_as_strided(whole, (msa_ints){s->view_sizes, s->view_ndim},
                                                (msa_ints){s->view_strides, s->view_ndim}, (msa_opt_int){true, s->offset});
    msa_auto msa_tensor *own = slice ? msa_clone(slice, -1) : NULL;
    if (!own) return -1;
    msa_tensor *into[] = {own};
    if (s->function->cls->backward(s->function, into, results) != 0) return -1;
    msa_auto msa_tensor *old = results[0];
    results[0] = NULL;
    msa_auto msa_tensor *filled = old ? msa_copy_(slice, old, false) : msa_zero_(slice);
    if (!filled) return -1;
    results[0] = msa_take(whole);
    return 0;
}

/* The view's own gradient function after a write: the base's, seen through the view. */
static int as_strided_backward(msa_node *node, msa_tensor *const *grads, msa_tensor **results) {
    slices *s = node->context;
    if (!grads[0]) return 0;
    msa_ints base_sizes = {s->base_sizes, s->base_ndim}, base_strides = {s->base_strides, s->base_ndim};
    results[0] = msa_as_strided_backward(grads[0], base_sizes, base_strides, (msa_ints){s->view_sizes, s->view_ndim},
                                         (msa_ints){s->view_strides, s->view_ndim}, s->offset);
    return results[0] ? 0 : -1;
}

static const msa_node_class as_strided_class = {"AsStridedBackward0", as_strided_backward, copy_slices_release};

static slices *slices_of(const msa_tensor *base, const msa_tensor *view) {
    slices *s = msa_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->base_ndim = base->ndim;
    s->view_ndim = view->ndim;
    memcpy(s->base_sizes, base->sizes, sizeof(int64_t) * base->ndim);
    memcpy(s->base_strides, base->strides, sizeof(int64_t) * base->ndim);
    memcpy(s->view_sizes, view->sizes, sizeof(int64_t) * view->ndim);
    memcpy(s->view_strides, view->strides, sizeof(int64_t) * view->ndim);
    s->offset = view->offset - base->offset;
    return s;
}

static int rebase_view(msa_node *node, msa_tensor *self) {
    msa_tensor *base = self->autograd->base;
    slices *s = slices_of(base, self);
    if (!s) return -1;
    if (note_shape(node, 0, self) != 0) {
        free(s);
        return -1;
    }
    msa_node *copy = msa_node_new(&copy_slices_class, node->n_edges, 0);
    if (!copy) {
        free(s);
        return -1;
    }
    s->function = msa_node_retain(node);
    copy->context = s;
    /* The first edge goes to the base as it was, the others where the write's own edges go. */
    int status = base->requires_grad ? msa_gradient_edge(base, &copy->edges[0]) : 0;
    for (uint32_t i = 1; i < node->n_edges; i++)
        copy->edges[i] = (msa_edge){msa_node_retain(node->edges[i].node), node->edges[i].input};
    if (status == 0) status = note_shape(copy, 0, base);
    if (status == 0) status = set_grad_fn(base, copy, 0);
    msa_node_release(copy);
    if (status != 0) return -1;
    self->requires_grad = true;
    self->autograd->view_version = self->storage->version - 1; /* stale: made anew when asked for */
    int ignored;
    return msa_tensor_grad_fn(self, &ignored) ? 0 : -1;
}

int msa_node_rebase(msa_node *node, msa_tensor *self) {
    if (!msa_is_inexact((msa_dtype)self->dtype)) return 0;
    if (self->autograd && self->autograd->is_view) {
        /* The write's edge towards self is served by CopySlices; without one, slot 0 is still the view's. */
        return rebase_view(node, self);
    }
    return msa_node_attach(node, 0, self);
}

msa_node *msa_tensor_grad_fn(msa_tensor *t, int *status) {
    *status = 0;
    struct msa_autograd *a = t->autograd;
    if (!a) return NULL;
    if (!a->is_view || !a->base || !a->base->requires_grad || a->view_version == t->storage->version) return a->grad_fn;
    *status = -1;
    slices *s = slices_of(a->base, t);
    msa_node *node = s ? msa_node_new(&as_strided_class, 1, 0) : NULL;
    if (!node) {
        free(s);
        return NULL;
    }
    node->context = s;
    if (msa_gradient_edge(a->base, &node->edges[0]) == 0 && note_shape(node, 0, t) == 0 && set_grad_fn(t, node, 0) == 0)
        *status = 0;
    msa_node_release(node);
    return *status == 0 ? a->grad_fn : NULL;
}

static int no_derivative(msa_node *node, msa_tensor *const *grads, msa_tensor **results) {
    return msa_fail(MSA_NOT_IMPLEMENTED, "derivative for %s is not implemented", (const char *)node->context);
}

static const msa_node_class no_derivative_class = {"NotImplemented", no_derivative, NULL};

msa_node *msa_node_without_derivative(const char *op) {
    msa_node *node = msa_node_new(&no_derivative_class, 0, 0);
    if (node) node->context = (void *)(uintptr_t)op;
    return node;
}
