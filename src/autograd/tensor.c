/* What tensors know about gradients: flags, leaves' accumulators, views, hooks, and the checks around in-place writes. */
#include "autograd/internal.h"

#include "msadapter/ops.h"

bool msa_grad_enabled(void) { return msa_grad_mode; }

bool msa_set_grad_enabled(bool enabled) {
    bool before = msa_grad_mode;
    msa_grad_mode = enabled;
    return before;
}

struct msa_autograd *msa_autograd_of(msa_tensor *t) {
    if (!t->autograd) t->autograd = msa_calloc(1, sizeof *t->autograd);
    return t->autograd;
}

void msa_autograd_free(struct msa_autograd *a) {
    if (a->retains_grad && a->grad_fn) {
        /* The hook points at the tensor that is going. */
        for (msa_hook **h = &a->grad_fn->hooks; *h;) {
            msa_hook *hook = *h;
            if (hook->kind == MSA_RETAIN_HOOK && hook->context == a) {
                *h = hook->next;
                free(hook);
            } else {
                h = &hook->next;
            }
        }
    }
    msa_hooks_free(&a->hooks);
    msa_tensor_release(a->grad);
    msa_tensor_release(a->base);
    msa_node_release(a->grad_fn);
    free(a);
}

/* The accumulator: adds what arrives to the leaf's grad. */
static int accumulate(msa_node *node, msa_tensor *const *grads, msa_tensor **results) {
    msa_tensor *leaf = node->context;
    msa_tensor *grad = grads[0];
    if (!grad) return 0;
    struct msa_autograd *a = leaf->autograd;
    if (grad->layout || (a->grad && a->grad->layout)) {
        msa_tensor *sum = !a->grad ? msa_grad_mode ? msa_clone(grad, -1) : msa_detach(grad)
                          : msa_grad_mode || a->grad->layout ? msa_add_layouts(a->grad, grad) : msa_add_(a->grad, grad, msa_int(1));
        if (!sum) return -1;
        msa_tensor_release(a->grad);
        a->grad = sum;
        return 0;
    }
    if (!a->grad) {
        /* Nobody else holds it and it lies as the leaf does: take it over instead of copying. */
        bool ours = !msa_grad_mode && grad->references == 1 && !grad->requires_grad && grad->storage->references == 1 &&
                    grad->contiguous && leaf->contiguous;
        if (ours) {
            a->grad = msa_tensor_retain(grad);
        } else if (msa_grad_mode) {
            a->grad = msa_clone(grad, -1);
        } else {
            msa_auto msa_tensor *copy = msa_new_like_values(leaf, (msa_dtype)grad->dtype);
            if (!copy || msa_copy_values(copy, grad) != 0) return -1;
            a->grad = msa_take(copy);
        }
        return a->grad ? 0 : -1;
    }
    if (msa_grad_mode) {
        msa_tensor *sum = msa_add(a->grad, grad, msa_int(1));
        if (!sum) return -1;
        msa_tensor_release(a->grad);
        a->grad = sum;
        return 0;
    }
    msa_auto msa_tensor *sum = msa_add_(a->grad, grad, msa_int(1));
    return sum ? 0 : -1;
}

static void forget_accumulator(msa_node *node) {
    msa_tensor *leaf = node->context;
    if (leaf->autograd && leaf->autograd->accumulator == node) leaf->autograd->accumulator = NULL;
    msa_tensor_release(leaf);
}

static const msa_node_class accumulator_class = {"AccumulateGrad", accumulate, forget_accumulator, true};

bool msa_node_is_accumulator(const msa_node *node) { return node->cls == &accumulator_class; }

msa_tensor *msa_node_leaf(const msa_node *node) { return node->context; }

static msa_node *accumulator_of(msa_tensor *leaf) {
    struct msa_autograd *a = msa_autograd_of(leaf);
    if (!a) return NULL;
    if (a->accumulator) return msa_node_retain(a->accumulator);
    msa_node *node = msa_node_new(&accumulator_class, 0, 0);
    if (!node) return NULL;
    node->context = msa_tensor_retain(leaf);
    node->sequence = UINT64_MAX; /* runs as soon as it is ready */
    node->n_inputs = 1;
    node->inputs = msa_calloc(1, sizeof *node->inputs);
    if (!node->inputs) {
        node->n_inputs = 0;
        msa_node_release(node);
        return NULL;
    }
    node->inputs[0] = (msa_output_shape){.defined = true, .dtype = leaf->dtype, .ndim = leaf->ndim};
    node->inputs[0].sizes = leaf->ndim > MSA_INLINE_DIMS ? msa_malloc(sizeof(int64_t) * leaf->ndim) : node->inputs[0].inline_sizes;
    if (!node->inputs[0].sizes) {
        node->inputs[0].ndim = 0;
        msa_node_release(node);
        return NULL;
    }
    memcpy(node->inputs[0].sizes, leaf->sizes, sizeof(int64_t) * leaf->ndim);
    a->accumulator = node;
    return node;
}

int msa_gradient_edge(msa_tensor *t, msa_edge *edge) {
    *edge = (msa_edge){NULL, 0};
    int status;
    msa_node *grad_fn = msa_tensor_grad_fn(t, &status);
    if (status != 0) return -1;
    if (grad_fn) {
        *edge = (msa_edge){msa_node_retain(grad_fn), t->autograd->output};
        return 0;
    }
    if (!t->requires_grad) return 0;
    edge->node = accumulator_of(t);
    return edge->node ? 0 : -1;
}

bool msa_tensor_requires_grad(const msa_tensor *t) { return t->requires_grad; }

bool msa_tensor_is_leaf(msa_tensor *t) {
    int status;
    return !t->requires_grad || !msa_tensor_grad_fn(t, &status);
}

int msa_tensor_set_requires_grad(msa_tensor *t, bool requires_grad) {
    if (!msa_tensor_is_leaf(t)) {
        if (requires_grad) return 0;
        return msa_fail(MSA_RUNTIME_ERROR,
                        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                        "a subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    }
    if (requires_grad && !msa_is_inexact((msa_dtype)t->dtype))
        return msa_fail(MSA_RUNTIME_ERROR, "only Tensors of floating point and complex dtype can require gradients");
    if (requires_grad && t->inference && !msa_inference_mode)
        return msa_fail(MSA_RUNTIME_ERROR, "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    if (requires_grad && !msa_autograd_of(t)) return -1;
    if (t->autograd) t->autograd->requires_grad = requires_grad;
    t->requires_grad = requires_grad;
    return 0;
}

msa_tensor *msa_tensor_grad(const msa_tensor *t) { return t->autograd ? t->autograd->grad : NULL; }

int msa_tensor_set_grad(msa_tensor *t, msa_tensor *grad) {
    if (grad == t) return msa_fail(MSA_RUNTIME_ERROR, "can't assign Variable as its own grad");
    if (grad && grad->dtype != t->dtype)
        return msa_fail(MSA_RUNTIME_ERROR, "assigned grad has data of a different type");
    if (grad && !msa_same_sizes(grad, t)) return msa_fail(MSA_RUNTIME_ERROR, "assigned grad has data of a different size");
    if (!grad && !t->autograd) return 0;
    struct msa_autograd *a = msa_autograd_of(t);
    if (!a) return -1;
    msa_tensor_retain(grad);
    msa_tensor_release(a->grad);
    a->grad = grad;
    return 0;
}

static int retain_hook(void *context, msa_tensor **grads, uint32_t n, msa_tensor **results, uint32_t m) {
    struct msa_autograd *a = context;
    if (!grads[0]) return 0;
    msa_tensor *grad = msa_grad_mode || grads[0]->layout ? msa_clone(grads[0], -1) : msa_clone_values(grads[0]);
    if (!grad) return -1;
    if (a->grad) {
        msa_tensor *sum = msa_add(a->grad, grad, msa_int(1));
        msa_tensor_release(grad);
        if (!sum) return -1;
        grad = sum;
    }
    msa_tensor_release(a->grad);
    a->grad = grad;
    return 0;
}

int msa_tensor_retain_grad(msa_tensor *t) {
    if (!t->requires_grad)
        return msa_fail(MSA_RUNTIME_ERROR, "can't retain_grad on Tensor that has requires_grad=False");
    int status;
    msa_node *node = msa_tensor_grad_fn(t, &status);
    if (status != 0) return -1;
    if (!node || t->autograd->retains_grad) return 0;
    msa_hook hook = {.kind = MSA_RETAIN_HOOK, .output = t->autograd->output, .call = retain_hook, .context = t->autograd};
    if (!msa_hook_add(&node->hooks, hook)) return -1;
    t->autograd->retains_grad = true;
    return 0;
}

int msa_tensor_detach_(msa_tensor *t) {
    struct msa_autograd *a = t->autograd;
    if (a && a->is_view)
        return msa_fail(MSA_RUNTIME_ERROR,
                        "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                        "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets.");
    if (a) {
        msa_node_release(msa_take(a->grad_fn));
        a->output = 0;
        a->requires_grad = false;
    }
    t->requires_grad = false;
    return 0;
}

int msa_view_mark(msa_tensor *view, msa_tensor *of) {
    if (view == of || view->storage != of->storage || of->layout) return 0; /* a copy where PyTorch may copy as well */
    if (of->inference) view->inference = true;
    struct msa_autograd *a = msa_autograd_of(view);
    if (!a) return -1;
    msa_tensor *base = of->autograd && of->autograd->is_view ? of->autograd->base : of;
    msa_tensor_release(a->base);
    a->base = msa_tensor_retain(base);
    a->is_view = true;
    a->view_version = view->storage->version;
    return 0;
}

int msa_check_inplace(const char *op, msa_tensor *self, bool others_require_grad) {
    if (self->inference && !msa_inference_mode)
        return msa_fail(MSA_RUNTIME_ERROR, "Inplace update to inference tensor outside InferenceMode is not allowed."
                                           "You can make a clone to get a normal tensor before doing inplace update.");
    if (self->storage->read_only)
        return 0; /* as in PyTorch: the warning was given when the tensor was made */
    if (!msa_grad_mode || !self->requires_grad) return 0;
    int status;
    msa_node *node = msa_tensor_grad_fn(self, &status);
    if (status != 0) return -1;
    if (!node)
        return msa_fail(MSA_RUNTIME_ERROR, "a leaf Variable that requires grad is being used in an in-place operation.");
    struct msa_autograd *a = self->autograd;
    if (a->is_view && a->base && a->base->requires_grad && !msa_tensor_grad_fn(a->base, &status))
        return msa_fail(MSA_RUNTIME_ERROR,
                        "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    return status;
}

int msa_check_written(const char *op, msa_tensor *self, msa_tensor *result) {
    if (!msa_same_sizes(self, result))
        return msa_fail(MSA_RUNTIME_ERROR, "%s: output with shape %s doesn't match the broadcast shape %s", op,
                        msa_sizes_text(msa_sizes(self)), msa_sizes_text(msa_sizes(result)));
    if (!msa_dtype_can_cast((msa_dtype)result->dtype, (msa_dtype)self->dtype))
        return msa_fail(MSA_RUNTIME_ERROR, "result type %s can't be cast to the desired output type %s",
                        msa_dtype_type_name((msa_dtype)result->dtype), msa_dtype_type_name((msa_dtype)self->dtype));
    return 0;
}

/* A sparse result becomes what a sparse `to` is; no layout is changed. */
static int write_sparse(const char *op, msa_tensor *to, const msa_tensor *result) {
    if (!to->layout || to->layout != result->layout)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: a %s result cannot be written to a %s tensor", op, result->layout ? "sparse" : "dense",
                        to->layout ? "sparse" : "dense");
    msa_sparse *s = msa_sparse_of(result);
    if (result->dtype == to->dtype) return msa_sparse_assign(to, result);
    msa_auto msa_tensor *cast = msa_cast_values(s->values, (msa_dtype)to->dtype);
    msa_auto msa_tensor *same = cast ? msa_sparse_new((msa_layout)result->layout, msa_sizes(result), s->indices, s->columns, cast, s->coalesced) : NULL;
    return same ? msa_sparse_assign(to, same) : -1;
}

int msa_write_inplace(const char *op, msa_tensor *self, msa_tensor *result) {
    if (self->layout | result->layout) return msa_check_written(op, self, result) != 0 ? -1 : write_sparse(op, self, result);
    return msa_check_written(op, self, result) != 0 ? -1 : msa_copy_values(self, result);
}

int msa_write_resized(const char *op, msa_tensor *self, msa_tensor *result) {
    if (self->layout | result->layout) return write_sparse(op, self, result);
    if (!msa_same_sizes(self, result) && msa_tensor_resize(self, msa_sizes(result)) != 0) return -1;
    return msa_write_inplace(op, self, result);
}

int msa_check_out(const char *op, msa_tensor *out, bool requires_grad) {
    if (!out) return msa_fail(MSA_TYPE_ERROR, "%s(): argument 'out' must be Tensor, not None", op);
    if (msa_grad_mode && (requires_grad || out->requires_grad))
        return msa_fail(MSA_RUNTIME_ERROR,
                        "%s(): functions with out=... arguments don't support automatic differentiation, but one of the "
                        "arguments requires grad.", op);
    return 0;
}

int msa_write_out(const char *op, msa_tensor *out, msa_tensor *result) {
    if (!msa_dtype_can_cast((msa_dtype)result->dtype, (msa_dtype)out->dtype))
        return msa_fail(MSA_RUNTIME_ERROR, "%s: result type %s can't be cast to the desired output type %s", op,
                        msa_dtype_type_name((msa_dtype)result->dtype), msa_dtype_type_name((msa_dtype)out->dtype));
    if (out->layout | result->layout) {
        if (write_sparse(op, out, result) != 0) return -1;
        msa_bump_version(out);
        return 0;
    }
    if (!msa_same_sizes(out, result) && msa_tensor_resize(out, msa_sizes(result)) != 0) return -1;
    if (msa_copy_values(out, result) != 0) return -1;
    msa_bump_version(out);
    return 0;
}

/* The bytes from the first to behind the last element. */
static void span_of(const msa_tensor *t, int64_t *begin, int64_t *end) {
    const int64_t size = (int64_t)msa_dtype_size((msa_dtype)t->dtype);
    int64_t last = t->offset;
    for (int i = 0; i < t->ndim; i++) last += (t->sizes[i] - 1) * t->strides[i];
    *begin = t->offset * size;
    *end = (last + 1) * size;
}

int msa_check_out_apart(const char *op, const msa_tensor *out, msa_tensors operands) {
    if (!out || !out->numel || out->layout) return 0;
    for (int i = 0; i < out->ndim; i++)
        if (out->strides[i] == 0 && out->sizes[i] > 1)
            return msa_fail(MSA_RUNTIME_ERROR,
                            "%s: unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                            "Please clone() the tensor before performing the operation.", op);
    int64_t begin, end, from, to;
    span_of(out, &begin, &end);
    for (int64_t k = 0; k < operands.n; k++) {
        const msa_tensor *t = operands.data[k];
        if (!t || !t->numel || t->storage != out->storage) continue;
        span_of(t, &from, &to);
        if (from < end && begin < to)
            return msa_fail(MSA_RUNTIME_ERROR,
                            "%s: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                            "location. Please clone() the tensor before performing the operation.", op);
    }
    return 0;
}

int msa_write_out_exactly(const char *op, msa_tensor *out, msa_tensor *result) {
    if (out->dtype != result->dtype)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: Expected out tensor to have dtype %s, but got %s instead", op, msa_dtype_name((msa_dtype)result->dtype),
                        msa_dtype_name((msa_dtype)out->dtype));
    return msa_write_out(op, out, result);
}

int msa_missing_argument(const char *op, const char *name) {
    /* A NULL that came out of a failed call keeps that call's error. */
    if (msa_error_get() != MSA_OK) return -1;
    return msa_fail(MSA_TYPE_ERROR, "%s(): argument '%s' must be Tensor, not None", op, name);
}
