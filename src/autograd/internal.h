/* The tape: nodes that operators leave behind, what they save, and the engine that walks them backwards.
 *
 * A node stands for one recorded operator call. It has an edge for each differentiable argument (to the node and output
 * that made the argument, or to the accumulator of a leaf), and a slot for each output's incoming gradient. */
#ifndef MSA_AUTOGRAD_INTERNAL_H
#define MSA_AUTOGRAD_INTERNAL_H

#include "msadapter/autograd.h"
#include "ops/internal.h"
#include "tensor/internal.h"

/* Not of the initial-exec model: that would put all thread-local data of the library into the few hundred bytes that a program keeps for
 * libraries loaded later, and importing the extension would fail. */
extern _Thread_local bool msa_backward_selective; /* whether a backward is running that gives gradients to certain tensors only */
extern _Thread_local bool msa_grad_mode;      /* whether operators record */

typedef struct {
    const char *name;
    /* grads has n_inputs entries (NULL: no gradient arrived), results n_edges, all NULL at first; 0 or -1. */
    int (*backward)(msa_node *node, msa_tensor *const *grads, msa_tensor **results);
    void (*release)(msa_node *node); /* what the class keeps in `context`; NULL when nothing */
    bool sparse;                     /* backward takes sparse gradients; without it the engine refuses them */
} msa_node_class;

typedef struct {
    msa_node *node; /* NULL: no gradient wanted */
    uint32_t input;
} msa_edge;

/* What an output of the recorded call was like: its gradient has to fit. */
typedef struct {
    bool defined;
    uint8_t dtype, ndim;
    int64_t *sizes; /* at inline_sizes, or allocated */
    int64_t inline_sizes[MSA_INLINE_DIMS];
} msa_output_shape;

typedef enum { MSA_SAVED_NOTHING, MSA_SAVED_TENSOR, MSA_SAVED_OUTPUT, MSA_SAVED_VALUE, MSA_SAVED_BUFFER, MSA_SAVED_LIST, MSA_SAVED_PACKED } msa_saved_kind;

/* Takes saved tensors over: what pack() makes of one is kept in its place, and unpack() makes it again. Each returns NULL with an error set. */
typedef struct {
    void *(*pack)(void *context, msa_tensor *t);
    msa_tensor *(*unpack)(void *packed);
    void (*release)(void *packed);
    void *context;
} msa_packer;
extern _Thread_local const msa_packer *msa_packer_now; /* of this thread; NULL for none */

typedef struct {
    uint8_t kind;
    uint8_t output; /* MSA_SAVED_OUTPUT: which */
    uint32_t version;
    uint32_t *versions; /* MSA_SAVED_LIST */
    union {
        msa_tensor *tensor;
        msa_value value;
        msa_list *list;
        struct msa_packed *packed;
        struct {
            void *data; /* NULL with n == -1 for None */
            int64_t n;
        } buffer;
    };
} msa_saved;

/* A callback. Tensor hooks see the gradient of one output before the node runs and may replace it; pre hooks see all of
 * them, post hooks the results as well. */
typedef enum { MSA_TENSOR_HOOK, MSA_RETAIN_HOOK, MSA_PRE_HOOK, MSA_POST_HOOK } msa_hook_kind;
typedef struct msa_hook {
    struct msa_hook *next;
    uint64_t id;
    uint8_t kind;
    uint32_t output; /* tensor hooks */
    /* MSA_TENSOR_HOOK: grads[0] may be replaced. MSA_PRE_HOOK: any of grads. MSA_POST_HOOK: any of results. */
    int (*call)(void *context, msa_tensor **grads, uint32_t n_grads, msa_tensor **results, uint32_t n_results);
    void (*release)(void *context);
    void *context;
} msa_hook;

struct msa_node {
    atomic_int references;
    void *trace; /* where the call was made, while anomalies are looked for */
    bool freed;  /* saved values are gone */
    uint32_t n_edges, n_inputs, n_saved;
    uint64_t sequence;
    const msa_node_class *cls;
    const char *name; /* what is printed: the class's, unless the row says otherwise */
    msa_edge *edges;
    msa_output_shape *inputs; /* of the gradients that come in */
    msa_saved *saved;
    msa_hook *hooks;
    void *context; /* of classes with a release function */
    void *python;  /* the Python object for it, borrowed */
};

/* What a tensor knows about gradients; made on demand. */
struct msa_autograd {
    msa_node *grad_fn;
    uint32_t output;
    bool requires_grad; /* of a leaf */
    bool retains_grad;
    bool is_view;
    uint32_t view_version; /* of the storage when grad_fn was made: older than the storage's means made anew */
    msa_tensor *grad;
    msa_node *accumulator; /* of a leaf, not counted: it clears this when it goes */
    msa_tensor *base;      /* of a view */
    msa_hook *hooks;       /* of a leaf */
};

/* Nodes. */
msa_node *msa_node_new(const msa_node_class *cls, uint32_t n_edges, uint32_t n_saved);
/* The tensor, with its node called `name` from now on; for results that an operator has just made. */
msa_tensor *msa_node_named(msa_tensor *owned, const char *name);
msa_node *msa_node_retain(msa_node *node);
void msa_node_release(msa_node *node);
void msa_node_free_saved(msa_node *node);
void msa_node_connect(msa_node *node, uint32_t edge, msa_tensor *argument); /* NULL argument: no edge */
int msa_node_attach(msa_node *node, uint32_t output, msa_tensor *result); /* integers are skipped */
int msa_node_skip(msa_node *node, uint32_t output, msa_tensor *result);   /* that output has no gradient */
int msa_node_rebase(msa_node *node, msa_tensor *self);                    /* self has been written in place */
msa_node *msa_node_without_derivative(const char *op);
bool msa_node_is_accumulator(const msa_node *node);
msa_tensor *msa_node_leaf(const msa_node *node); /* of an accumulator, borrowed */
static inline bool msa_node_wants(const msa_node *node, uint32_t edge) { return node->edges[edge].node != NULL; }
static inline bool msa_node_wants_any(const msa_node *node, uint32_t from) {
    for (uint32_t i = from; i < node->n_edges; i++)
        if (node->edges[i].node) return true;
    return false;
}

/* Looking for anomalies: a node notes where it was made, tells it when its backward fails, and fails where a gradient is nan. */
typedef struct {
    void *(*note)(void); /* NULL for nothing noted */
    void (*report)(const char *name, const void *trace);
    void (*release)(void *trace);
    bool check_nan;
} msa_anomaly_watch;
extern const msa_anomaly_watch *msa_anomaly_watched; /* NULL: not looking */
void msa_watch_anomalies(const msa_anomaly_watch *watch);

/* Saved values. */
int msa_node_save_tensor(msa_node *node, uint32_t slot, msa_tensor *t);
int msa_node_save_output(msa_node *node, uint32_t slot, msa_tensor *t);
int msa_node_save_tensors(msa_node *node, uint32_t slot, msa_tensors list);
int msa_node_save_shapes(msa_node *node, uint32_t slot, msa_tensors list); /* only sizes and dtypes will be asked for */
int msa_node_save_value(msa_node *node, uint32_t slot, msa_value value);
int msa_node_save_ints(msa_node *node, uint32_t slot, msa_ints ints);
int msa_node_save_doubles(msa_node *node, uint32_t slot, msa_doubles doubles);
int msa_node_save_text(msa_node *node, uint32_t slot, const char *text);
void msa_packed_release(struct msa_packed *packed);
int msa_node_check_alive(const msa_node *node); /* an error once its saved values have been freed */
int msa_node_load_tensor(msa_node *node, uint32_t slot, msa_tensor **t); /* owned; NULL where None was saved */
msa_list *msa_node_load_list(msa_node *node, uint32_t slot);
msa_tensors msa_node_load_tensors(msa_node *node, uint32_t slot);
msa_value msa_node_load_value(msa_node *node, uint32_t slot);
msa_ints msa_node_load_ints(msa_node *node, uint32_t slot);
msa_doubles msa_node_load_doubles(msa_node *node, uint32_t slot);

/* Tensors. */
struct msa_autograd *msa_autograd_of(msa_tensor *t); /* makes it; NULL on failure */
int msa_gradient_edge(msa_tensor *t, msa_edge *edge); /* counted reference in edge->node, NULL when none is wanted */
int msa_view_mark(msa_tensor *view, msa_tensor *of);
msa_node *msa_tensor_grad_fn(msa_tensor *t, int *status); /* borrowed; brings a view's up to date */
static inline bool msa_any_requires_grad(msa_tensors list) {
    for (int64_t i = 0; i < list.n; i++)
        if (list.data[i] && list.data[i]->requires_grad) return true;
    return false;
}

/* Called by entry points. */
int msa_check_inplace(const char *op, msa_tensor *self, bool others_require_grad);
int msa_check_written(const char *op, msa_tensor *self, msa_tensor *result);
int msa_write_inplace(const char *op, msa_tensor *self, msa_tensor *result);
/* The same for an operator whose in-place form gives self the result's shape. */
int msa_write_resized(const char *op, msa_tensor *self, msa_tensor *result);
int msa_check_out(const char *op, msa_tensor *out, bool requires_grad);
int msa_write_out(const char *op, msa_tensor *out, msa_tensor *result);
/* For operators that convert nothing on the way: `out` has the result's type, and shares no element with the operands (entries
 * may be NULL) or with itself. */
int msa_check_out_apart(const char *op, const msa_tensor *out, msa_tensors operands);
int msa_write_out_exactly(const char *op, msa_tensor *out, msa_tensor *result);
int msa_missing_argument(const char *op, const char *name);

/* Hooks. The list owns the hook. */
uint64_t msa_hook_add(msa_hook **list, msa_hook hook); /* its id, 0 on failure */
void msa_hook_remove(msa_hook **list, uint64_t id);
void msa_hooks_free(msa_hook **list);
uint64_t msa_tensor_add_hook(msa_tensor *t, msa_hook hook); /* MSA_TENSOR_HOOK */
void msa_tensor_remove_hook(msa_tensor *t, uint64_t id);

/* a + b where either is sparse: the dense one first, for only that way round is there a sum. */
msa_tensor *msa_add_layouts(msa_tensor *a, msa_tensor *b);

#endif
