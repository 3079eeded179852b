/* The engine: runs the nodes that the outputs depend on, latest first, and hands gradients on.
 *
 * A task is one call of backward or grad. It keeps what it knows about each node in a table of its own, so that tasks may
 * nest (a backward function that calls backward) and run on several threads over shared graphs. */
#include "autograd/autocast.h"
#include "autograd/internal.h"
#include "autograd/profile.h"

#include <stdio.h>

#include "msadapter/ops.h"

typedef struct {
    msa_node *node;
    uint32_t dependencies; /* edges into it that have not delivered yet */
    bool needed;           /* it leads to one of the inputs asked for */
    bool captures;
    bool visited;
    msa_tensor **grads; /* n_inputs, made on first arrival */
} entry;

typedef struct {
    entry *slots;
    size_t capacity, count;
    size_t *heap; /* ready nodes: indices into slots, latest sequence first */
    size_t ready;
    bool selective; /* only nodes that are needed run */
    bool keep_graph;
} task;

static size_t hash(const msa_node *node) { return (size_t)(((uintptr_t)node >> 4) * 0x9E3779B97F4A7C15ull); }

static entry *find(task *t, const msa_node *node) {
    for (size_t i = hash(node) & (t->capacity - 1);; i = (i + 1) & (t->capacity - 1))
        if (!t->slots[i].node || t->slots[i].node == node) return &t->slots[i];
}

static int grow(task *t) {
    size_t capacity = t->capacity ? 2 * t->capacity : 64;
    entry *old = t->slots, *slots = msa_calloc(capacity, sizeof *slots);
    if (!slots) return -1;
    size_t old_capacity = t->capacity;
    t->slots = slots;
    t->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].node) *find(t, old[i].node) = old[i];
    free(old);
    return 0;
}

static entry *ensure(task *t, msa_node *node) {
    if (2 * (t->count + 1) > t->capacity && grow(t) != 0) return NULL;
    entry *e = find(t, node);
    if (!e->node) {
        e->node = node;
        t->count++;
    }
    return e;
}

/* Count, for every node reachable from `roots`, the edges that lead to it. */
static int count_dependencies(task *t, const msa_edge *roots, int64_t n_roots) {
    msa_node **stack = NULL;
    size_t depth = 0, room = 0;
    int status = -1;
    for (int64_t i = 0; i < n_roots; i++) {
        entry *e = ensure(t, roots[i].node);
        if (!e) goto done;
        if (e->visited) continue;
        e->visited = true;
        for (msa_node *node = roots[i].node;;) {
            for (uint32_t k = 0; k < node->n_edges; k++) {
                msa_node *next = node->edges[k].node;
                if (!next) continue;
                entry *to = ensure(t, next);
                if (!to) goto done;
                to->dependencies++;
                if (to->visited) continue;
                to->visited = true;
                if (depth == room) {
                    room = room ? 2 * room : 256;
                    msa_node **grown = realloc(stack, room * sizeof *stack);
                    if (!grown) {
                        msa_fail(MSA_MEMORY_ERROR, "cannot allocate the stack of backward");
                        goto done;
                    }
                    stack = grown;
                }
                stack[depth++] = next;
            }
            if (!depth) break;
            node = stack[--depth];
        }
    }
    status = 0;
done:
    free(stack);
    return status;
}

static int by_sequence(const void *a, const void *b) {
    uint64_t x = (*(entry *const *)a)->node->sequence, y = (*(entry *const *)b)->node->sequence;
    bool x_leaf = x == UINT64_MAX, y_leaf = y == UINT64_MAX;
    if (x_leaf || y_leaf) return x_leaf == y_leaf ? 0 : x_leaf ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Mark what leads to a capture. A node's edges point to earlier sequences, but for graphs that in-place writes rewired:
 * so repeat until nothing changes. */
static int mark_needed(task *t) {
    entry **order = msa_malloc(sizeof *order * t->count);
    if (!order) return -1;
    size_t n = 0;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->slots[i].node) order[n++] = &t->slots[i];
    qsort(order, n, sizeof *order, by_sequence);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < n; i++) {
            entry *e = order[i];
            bool needed = e->captures;
            for (uint32_t k = 0; k < e->node->n_edges && !needed; k++)
                needed = e->node->edges[k].node && find(t, e->node->edges[k].node)->needed;
            if (needed && !e->needed) e->needed = changed = true;
        }
    }
    free(order);
    return 0;
}

static bool later(const task *t, size_t a, size_t b) { return t->slots[a].node->sequence > t->slots[b].node->sequence; }

static void push(task *t, size_t slot) {
    size_t i = t->ready++;
    t->heap[i] = slot;
    while (i && later(t, t->heap[i], t->heap[(i - 1) / 2])) {
        size_t swap = t->heap[i];
        t->heap[i] = t->heap[(i - 1) / 2];
        t->heap[(i - 1) / 2] = swap;
        i = (i - 1) / 2;
    }
}

static size_t pop(task *t) {
    size_t top = t->heap[0];
    t->heap[0] = t->heap[--t->ready];
    for (size_t i = 0;;) {
        size_t child = 2 * i + 1;
        if (child >= t->ready) break;
        if (child + 1 < t->ready && later(t, t->heap[child + 1], t->heap[child])) child++;
        if (!later(t, t->heap[child], t->heap[i])) break;
        size_t swap = t->heap[i];
        t->heap[i] = t->heap[child];
        t->heap[child] = swap;
        i = child;
    }
    return top;
}

/* Add an owned gradient to a slot of an entry. */
static int deliver(entry *e, uint32_t input, msa_tensor *grad) {
    msa_auto msa_tensor *owned = grad;
    if (!e->grads) {
        e->grads = msa_calloc(e->node->n_inputs ? e->node->n_inputs : 1, sizeof *e->grads);
        if (!e->grads) return -1;
    }
    msa_tensor **slot = &e->grads[input];
    if (!*slot) {
        *slot = msa_take(owned);
        return 0;
    }
    if ((*slot)->layout | owned->layout) {
        msa_tensor *sum = msa_add_layouts(owned, *slot);
        if (!sum) return -1;
        msa_tensor_release(*slot);
        *slot = sum;
        return 0;
    }
    bool expanded = false; /* one element standing for many cannot be written to */
    for (int64_t d = 0; d < (*slot)->ndim; d++) expanded |= (*slot)->strides[d] == 0 && (*slot)->sizes[d] > 1;
    if (!msa_grad_mode && !expanded && (*slot)->references == 1 && (*slot)->storage->references == 1 && msa_same_sizes(*slot, owned) &&
        (*slot)->dtype == owned->dtype) {
        msa_tensor *sum = msa_add_(*slot, owned, msa_int(1));
        msa_tensor_release(sum);
        return sum ? 0 : -1;
    }
    msa_tensor *sum = msa_add(*slot, owned, msa_int(1));
    if (!sum) return -1;
    msa_tensor_release(*slot);
    *slot = sum;
    return 0;
}

/* Make a gradient fit the output it belongs to: sum over broadcast dimensions, convert the type. */
static msa_tensor *fit(const msa_node *from, uint32_t index, const msa_node *to, uint32_t input, msa_tensor *grad) {
    msa_auto msa_tensor *owned = grad;
    if (input >= to->n_inputs || !to->inputs[input].defined) return msa_take(owned);
    const msa_output_shape *want = &to->inputs[input];
    msa_ints sizes = {want->sizes, want->ndim};
    if (owned->ndim != want->ndim || memcmp(owned->sizes, want->sizes, sizeof(int64_t) * want->ndim) != 0) {
        bool reducible = owned->ndim >= want->ndim;
        for (int i = 0; i < want->ndim && reducible; i++) {
            int64_t have = owned->sizes[owned->ndim - want->ndim + i];
            reducible = want->sizes[i] == 1 || want->sizes[i] == have;
        }
        if (!reducible)
            return msa_fail_null(MSA_RUNTIME_ERROR,
                                 "Function %s returned an invalid gradient at index %u - got %s but expected shape compatible "
                                 "with %s", from ? from->name : "backward", index, msa_sizes_text(msa_sizes(owned)),
                                 msa_sizes_text(sizes));
        msa_tensor *summed = msa_sum_to_size(owned, sizes);
        if (!summed) return NULL;
        msa_tensor_release(owned);
        owned = summed;
    }
    if (owned->dtype != want->dtype) {
        msa_tensor *cast;
        if (msa_is_complex((msa_dtype)owned->dtype) && !msa_is_complex((msa_dtype)want->dtype)) {
            msa_auto msa_tensor *real = msa_real(owned);
            cast = real ? msa_to_dtype(real, (msa_dtype)want->dtype, false, false, -1) : NULL;
        } else {
            cast = msa_to_dtype(owned, (msa_dtype)want->dtype, false, false, -1);
        }
        if (!cast) return NULL;
        msa_tensor_release(owned);
        owned = cast;
    }
    return msa_take(owned);
}

static int run_hooks(msa_hook *hooks, msa_hook_kind kind, uint32_t output, msa_tensor **grads, uint32_t n,
                     msa_tensor **results, uint32_t m) {
    for (msa_hook *h = hooks, *next; h; h = next) {
        next = h->next;
        if (h->kind != kind) continue;
        bool single = kind == MSA_TENSOR_HOOK || kind == MSA_RETAIN_HOOK;
        if (single && h->output != output) continue;
        if (h->call(h->context, single ? &grads[output] : grads, single ? 1 : n, results, m) != 0) return -1;
    }
    return 0;
}

static int run_grad_hooks(msa_node *node, msa_tensor **grads) {
    msa_hook *hooks = msa_node_is_accumulator(node) ? msa_node_leaf(node)->autograd->hooks : node->hooks;
    if (!hooks) return 0;
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (grads[i] && run_hooks(hooks, MSA_TENSOR_HOOK, i, grads, 1, NULL, 0) != 0) return -1;
    for (uint32_t i = 0; i < node->n_inputs; i++)
        if (grads[i] && run_hooks(hooks, MSA_RETAIN_HOOK, i, grads, 1, NULL, 0) != 0) return -1;
    return run_hooks(node->hooks, MSA_PRE_HOOK, 0, grads, node->n_inputs, NULL, 0);
}

typedef struct {
    msa_node *node; /* borrowed from the task's roots or graph */
    uint32_t input;
    msa_tensor *grad;
} capture;

enum { ON_STACK = 16 };

_Thread_local bool msa_backward_selective;

/* -1 where a result is nan. */
static int check_nan(const msa_node *node, msa_tensor **results) {
    for (uint32_t k = 0; k < node->n_edges; k++) {
        if (!results[k] || !(msa_is_floating((msa_dtype)results[k]->dtype) || msa_is_complex((msa_dtype)results[k]->dtype))) continue;
        msa_tensor *seen = results[k]->layout ? msa_sparse_of(results[k])->values : results[k];
        msa_auto msa_tensor *odd = msa_ne(seen, seen), *any = odd ? msa_any(odd) : NULL;
        if (!any) return -1;
        if (*(const bool *)msa_data(any))
            return msa_fail(MSA_RUNTIME_ERROR, "Function '%s' returned nan values in its %uth output.", node->name, k);
    }
    return 0;
}

/* The node's backward function, as two events while somebody profiles: the engine's and the function's own. */
static int call_node(msa_node *node, msa_tensor **grads, msa_tensor **results) {
    if (!msa_is_profiling()) return node->cls->backward(node, grads, results);
    char name[160];
    snprintf(name, sizeof name, "autograd::engine::evaluate_function: %s", node->name);
    const int64_t engine = msa_profile_enter(MSA_PROFILE_BACKWARD, name, NULL, 0);
    msa_profile_sequence(node->sequence);
    const int64_t own = msa_profile_enter(MSA_PROFILE_BACKWARD, node->name, grads, (int)node->n_inputs);
    msa_profile_sequence(node->sequence);
    const int status = node->cls->backward(node, grads, results);
    msa_profile_leave(own);
    msa_profile_leave(engine);
    return status;
}

static int run_node(task *t, msa_node *node, msa_tensor **grads) {
    msa_tensor *few[ON_STACK] = {NULL};
    msa_tensor **results = few;
    if (node->n_edges > ON_STACK) {
        results = msa_calloc(node->n_edges, sizeof *results);
        if (!results) return -1;
    }
    int status = msa_node_check_alive(node);
    if (status == 0 && !node->cls->sparse && msa_any_sparse((msa_tensors){grads, node->n_inputs})) status = msa_refuse_sparse(node->name);
    if (status == 0) status = call_node(node, grads, results);
    if (msa_anomaly_watched) {
        if (status == 0 && msa_anomaly_watched->check_nan) status = check_nan(node, results);
        if (status != 0) msa_anomaly_watched->report(node->name, node->trace);
    }
    if (status == 0) status = run_hooks(node->hooks, MSA_POST_HOOK, 0, grads, node->n_inputs, results, node->n_edges);
    for (uint32_t k = 0; k < node->n_edges; k++) {
        msa_edge edge = node->edges[k];
        msa_tensor *grad = results[k];
        if (!edge.node) {
            msa_tensor_release(grad);
            continue;
        }
        entry *to = find(t, edge.node);
        bool wanted = !t->selective || to->needed;
        if (status == 0 && grad && wanted) {
            grad = fit(node, k, edge.node, edge.input, grad);
            if (!grad || deliver(to, edge.input, grad) != 0) status = -1;
        } else {
            msa_tensor_release(grad);
        }
        if (status == 0 && --to->dependencies == 0 && wanted) push(t, (size_t)(to - t->slots));
    }
    if (results != few) free(results);
    if (status == 0 && !t->keep_graph) msa_node_free_saved(node);
    return status;
}

static int run(task *t, capture *captures, int64_t n_captures, bool accumulate_captured) {
    t->heap = msa_malloc(sizeof *t->heap * (t->count + 1));
    if (!t->heap) return -1;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->slots[i].node && t->slots[i].grads && t->slots[i].dependencies == 0 && (!t->selective || t->slots[i].needed))
            push(t, i);
    while (t->ready) {
        entry *e = &t->slots[pop(t)];
        msa_node *node = e->node;
        if (!e->grads) {
            e->grads = msa_calloc(node->n_inputs ? node->n_inputs : 1, sizeof *e->grads);
            if (!e->grads) return -1;
        }
        if (run_grad_hooks(node, e->grads) != 0) return -1;
        bool leads_on = false;
        for (uint32_t k = 0; k < node->n_edges && !leads_on; k++)
            leads_on = node->edges[k].node && (!t->selective || find(t, node->edges[k].node)->needed);
        if (e->captures)
            for (int64_t i = 0; i < n_captures; i++)
                if (captures[i].node == node && e->grads[captures[i].input])
                    captures[i].grad = msa_tensor_retain(e->grads[captures[i].input]);
        bool accumulates = msa_node_is_accumulator(node) && (!t->selective || (e->captures && accumulate_captured));
        int status = accumulates || leads_on || (!t->selective && !msa_node_is_accumulator(node)) ? run_node(t, node, e->grads) : 0;
        e = find(t, node);
        for (uint32_t i = 0; i < node->n_inputs; i++) msa_tensor_release(e->grads[i]);
        free(msa_take(e->grads));
        if (status != 0) return -1;
    }
    return 0;
}

static void task_free(task *t) {
    for (size_t i = 0; i < t->capacity; i++)
        if (t->slots[i].grads) {
            for (uint32_t k = 0; k < t->slots[i].node->n_inputs; k++) msa_tensor_release(t->slots[i].grads[k]);
            free(t->slots[i].grads);
        }
    free(t->slots);
    free(t->heap);
}

/* What comes into an output: the caller's cotangent, or one. */
static msa_tensor *first_gradient(msa_tensor *output, msa_tensor *given) {
    if (given) {
        if (msa_same_sizes(output, given)) return msa_tensor_retain(given);
        return msa_fail_null(MSA_RUNTIME_ERROR,
                             "Mismatch in shape: grad_output[0] has a shape of torch.Size(%s) and output[0] has a shape of "
                             "torch.Size(%s).", msa_sizes_text(msa_sizes(given)), msa_sizes_text(msa_sizes(output)));
    }
    if (output->numel != 1)
        return msa_fail_null(MSA_RUNTIME_ERROR, "grad can be implicitly created only for scalar outputs");
    msa_tensor *one = msa_tensor_new(msa_sizes(output), (msa_dtype)output->dtype);
    if (one && msa_fill_values(one, msa_int(1)) != 0) {
        msa_tensor_release(one);
        return NULL;
    }
    return one;
}

static int execute(msa_tensors outputs, msa_tensors cotangents, bool retain_graph, bool create_graph, msa_tensors inputs,
                   bool accumulate_captured, bool allow_unused, msa_tensor **results) {
    if (cotangents.n > 0 && cotangents.n != outputs.n)
        return msa_fail(MSA_RUNTIME_ERROR, "got %lld tensors and %lld gradients", (long long)outputs.n, (long long)cotangents.n);
    const bool mode_before = msa_grad_mode, autocast_before = msa_autocast_on;
    task t = {.keep_graph = retain_graph, .selective = inputs.n > 0};
    msa_edge *roots = msa_calloc((size_t)(outputs.n ? outputs.n : 1), sizeof *roots);
    capture *captures = msa_calloc((size_t)(inputs.n ? inputs.n : 1), sizeof *captures);
    int status = -1;
    if (!roots || !captures) goto done;
    for (int64_t i = 0; i < outputs.n; i++) {
        if (!outputs.data[i]->requires_grad) {
            msa_fail(MSA_RUNTIME_ERROR, "element %lld of tensors does not require grad and does not have a grad_fn", (long long)i);
            goto done;
        }
        if (msa_gradient_edge(outputs.data[i], &roots[i]) != 0) goto done;
    }
    if (count_dependencies(&t, roots, outputs.n) != 0) goto done;
    for (int64_t i = 0; i < inputs.n; i++) {
        msa_tensor *input = inputs.data[i];
        if (!input->requires_grad) {
            if (allow_unused && results) continue;
            msa_fail(MSA_RUNTIME_ERROR, "One of the differentiated Tensors does not require grad");
            goto done;
        }
        msa_edge edge;
        if (msa_gradient_edge(input, &edge) != 0) goto done;
        /* A node that the outputs do not reach is not in the table; the reference is kept till the end either way. */
        captures[i] = (capture){edge.node, edge.input, NULL};
        entry *e = t.capacity ? find(&t, edge.node) : NULL;
        if (e && e->node) e->captures = true;
    }
    if (t.selective && mark_needed(&t) != 0) goto done;
    msa_grad_mode = create_graph;
    msa_autocast_on = false; /* gradients have the types of what they belong to */
    for (int64_t i = 0; i < outputs.n; i++) {
        msa_tensor *given = cotangents.n > 0 ? cotangents.data[i] : NULL;
        msa_tensor *grad = first_gradient(outputs.data[i], given);
        if (grad) grad = fit(NULL, (uint32_t)i, roots[i].node, roots[i].input, grad);
        if (!grad || deliver(find(&t, roots[i].node), roots[i].input, grad) != 0) goto done;
    }
    const bool selective_before = msa_backward_selective;
    msa_backward_selective |= t.selective;
    const int ran = run(&t, captures, inputs.n, accumulate_captured);
    msa_backward_selective = selective_before;
    if (ran != 0) goto done;
    status = 0;
    if (results)
        for (int64_t i = 0; i < inputs.n && status == 0; i++) {
            if (captures[i].grad || allow_unused) continue;
            status = msa_fail(MSA_RUNTIME_ERROR,
                              "One of the differentiated Tensors appears to not have been used in the graph. Set "
                              "allow_unused=True if this is the desired behavior.");
        }
    if (results && status == 0)
        for (int64_t i = 0; i < inputs.n; i++) results[i] = msa_take(captures[i].grad);
done:
    msa_grad_mode = mode_before;
    msa_autocast_on = autocast_before;
    task_free(&t);
    for (int64_t i = 0; i < outputs.n && roots; i++) msa_node_release(roots[i].node);
    for (int64_t i = 0; i < inputs.n && captures; i++) {
        msa_tensor_release(captures[i].grad);
        msa_node_release(captures[i].node);
    }
    free(roots);
    free(captures);
    return status;
}

int msa_backward(msa_tensors outputs, msa_tensors cotangents, bool retain_graph, bool create_graph, msa_tensors inputs) {
    for (int64_t i = 0; i < inputs.n; i++)
        if (!msa_tensor_is_leaf(inputs.data[i]))
            return msa_fail(MSA_RUNTIME_ERROR, "One of the differentiated Tensors given as 'inputs' to backward is not a leaf Tensor");
    return execute(outputs, cotangents, retain_graph, create_graph, inputs, true, false, NULL);
}

int msa_grad(msa_tensors outputs, msa_tensors inputs, msa_tensors cotangents, bool retain_graph, bool create_graph,
             bool allow_unused, msa_tensor **results) {
    for (int64_t i = 0; i < inputs.n; i++) results[i] = NULL;
    if (inputs.n == 0) return msa_fail(MSA_VALUE_ERROR, "grad requires non-empty inputs.");
    return execute(outputs, cotangents, retain_graph, create_graph, inputs, false, allow_unused, results);
}
