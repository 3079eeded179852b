/* Values that a node keeps for its backward function, and the check that nobody has changed them since. */
#include "autograd/internal.h"

int msa_node_save_tensor(msa_node *node, uint32_t slot, msa_tensor *t) {
    msa_saved *s = &node->saved[slot];
    if (!t) {
        s->kind = MSA_SAVED_TENSOR;
        return 0;
    }
    if (t->inference)
        return msa_fail(MSA_RUNTIME_ERROR,
                        "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal "
                        "tensor and use it in autograd.");
    s->kind = MSA_SAVED_TENSOR;
    s->version = msa_version(t);
    s->tensor = msa_tensor_retain(t);
    return 0;
}

int msa_node_save_output(msa_node *node, uint32_t slot, msa_tensor *t) {
    msa_saved *s = &node->saved[slot];
    if (!t) {
        s->kind = MSA_SAVED_TENSOR;
        return 0;
    }
    /* Kept without its history: the node would keep itself alive otherwise. */
    s->tensor = msa_tensor_alias(t);
    if (!s->tensor) return -1;
    const bool attached = t->autograd && t->autograd->grad_fn == node; /* not so for results without a gradient */
    s->kind = attached ? MSA_SAVED_OUTPUT : MSA_SAVED_TENSOR;
    s->output = attached ? (uint8_t)t->autograd->output : 0;
    s->version = msa_version(t);
    return 0;
}

int msa_node_save_tensors(msa_node *node, uint32_t slot, msa_tensors list) {
    msa_saved *s = &node->saved[slot];
    s->list = msa_list_new(list.n);
    s->versions = msa_calloc((size_t)list.n, sizeof *s->versions);
    if (!s->list || !s->versions) {
        msa_list_release(s->list);
        free(s->versions);
        memset(s, 0, sizeof *s);
        return -1;
    }
    s->kind = MSA_SAVED_LIST;
    for (int64_t i = 0; i < list.n; i++) {
        s->list->items[i] = msa_tensor_retain(list.data[i]);
        if (list.data[i]) s->versions[i] = msa_version(list.data[i]);
    }
    return 0;
}

int msa_node_save_shapes(msa_node *node, uint32_t slot, msa_tensors list) {
    msa_saved *s = &node->saved[slot];
    s->list = msa_list_new(list.n);
    if (!s->list) return -1;
    s->kind = MSA_SAVED_LIST;
    for (int64_t i = 0; i < list.n; i++) {
        const msa_tensor *t = list.data[i];
        if (!t) continue;
        /* A tensor of the same geometry over no memory. */
        msa_storage *nothing = msa_storage_new(0);
        if (!nothing) return -1;
        s->list->items[i] = msa_tensor_over(nothing, (msa_dtype)t->dtype, 0, t->ndim, t->sizes, t->strides);
        msa_storage_release(nothing);
        if (!s->list->items[i]) return -1;
    }
    return 0;
}

int msa_node_save_value(msa_node *node, uint32_t slot, msa_value value) {
    node->saved[slot].kind = MSA_SAVED_VALUE;
    node->saved[slot].value = value;
    return 0;
}

static int save_buffer(msa_node *node, uint32_t slot, const void *data, size_t bytes, int64_t n) {
    msa_saved *s = &node->saved[slot];
    s->kind = MSA_SAVED_BUFFER;
    s->buffer.n = n;
    if (!data && n < 0) return 0;
    s->buffer.data = msa_malloc(bytes);
    if (!s->buffer.data) return -1;
    if (bytes) memcpy(s->buffer.data, data, bytes);
    return 0;
}

int msa_node_save_ints(msa_node *node, uint32_t slot, msa_ints ints) {
    return save_buffer(node, slot, ints.data, ints.n > 0 ? sizeof(int64_t) * (size_t)ints.n : 0, ints.data ? ints.n : -1);
}

int msa_node_save_doubles(msa_node *node, uint32_t slot, msa_doubles doubles) {
    return save_buffer(node, slot, doubles.data, doubles.n > 0 ? sizeof(double) * (size_t)doubles.n : 0,
                       doubles.data ? doubles.n : -1);
}

int msa_node_save_text(msa_node *node, uint32_t slot, const char *text) {
    return text ? save_buffer(node, slot, text, strlen(text) + 1, (int64_t)strlen(text)) : save_buffer(node, slot, NULL, 0, -1);
}

int msa_node_check_alive(const msa_node *node) {
    if (!node->freed || !node->n_saved) return 0;
    return msa_fail(MSA_RUNTIME_ERROR,
                    "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                    "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
                    "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
                    "you need to access saved tensors after calling backward.");
}

static int check_version(const msa_node *node, const msa_saved *s, const msa_tensor *t, uint32_t version) {
    if (msa_version(t) == version) return 0;
    return msa_fail(MSA_RUNTIME_ERROR,
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    "[torch.%sTensor %s], which is output %d of %s, is at version %u; expected version %u instead. Hint: "
                    "enable anomaly detection to find the operation that failed to compute its gradient, with "
                    "torch.autograd.set_detect_anomaly(True).",
                    msa_dtype_type_name((msa_dtype)t->dtype), msa_sizes_text(msa_sizes(t)),
                    s->kind == MSA_SAVED_OUTPUT ? s->output : t->autograd ? (int)t->autograd->output : 0,
                    s->kind == MSA_SAVED_OUTPUT ? node->name
                    : t->autograd && t->autograd->grad_fn ? t->autograd->grad_fn->name : "AsStridedBackward0",
                    msa_version(t), version);
}

int msa_node_load_tensor(msa_node *node, uint32_t slot, msa_tensor **t) {
    *t = NULL;
    if (msa_node_check_alive(node) != 0) return -1;
    const msa_saved *s = &node->saved[slot];
    if (!s->tensor) return 0;
    if (check_version(node, s, s->tensor, s->version) != 0) return -1;
    if (s->kind == MSA_SAVED_TENSOR) {
        *t = msa_tensor_retain(s->tensor);
        return 0;
    }
    /* An output comes back with its history, for second derivatives. */
    msa_auto msa_tensor *output = msa_tensor_alias(s->tensor);
    if (!output) return -1;
    if (msa_grad_mode) {
        struct msa_autograd *a = msa_autograd_of(output);
        if (!a) return -1;
        a->grad_fn = msa_node_retain(node);
        a->output = s->output;
        output->requires_grad = true;
    }
    *t = msa_take(output);
    return 0;
}

msa_list *msa_node_load_list(msa_node *node, uint32_t slot) {
    if (msa_node_check_alive(node) != 0) return NULL;
    const msa_saved *s = &node->saved[slot];
    msa_list *list = msa_list_new(s->list->n);
    if (!list) return NULL;
    for (int64_t i = 0; i < list->n; i++) {
        msa_tensor *t = s->list->items[i];
        if (t && s->versions && check_version(node, s, t, s->versions[i]) != 0) {
            msa_list_release(list);
            return NULL;
        }
        list->items[i] = msa_tensor_retain(t);
    }
    return list;
}

msa_tensors msa_node_load_tensors(msa_node *node, uint32_t slot) {
    const msa_saved *s = &node->saved[slot];
    return s->kind == MSA_SAVED_LIST ? msa_list_view(s->list) : (msa_tensors){NULL, 0};
}

msa_value msa_node_load_value(msa_node *node, uint32_t slot) {
    const msa_saved *s = &node->saved[slot];
    /* Text is a buffer, handed out as a pointer. */
    if (s->kind == MSA_SAVED_BUFFER) return (msa_value){.str = s->buffer.data};
    return s->value;
}

msa_ints msa_node_load_ints(msa_node *node, uint32_t slot) {
    const msa_saved *s = &node->saved[slot];
    return (msa_ints){s->buffer.data, s->buffer.data ? s->buffer.n : -1};
}

msa_doubles msa_node_load_doubles(msa_node *node, uint32_t slot) {
    const msa_saved *s = &node->saved[slot];
    return (msa_doubles){s->buffer.data, s->buffer.data ? s->buffer.n : -1};
}
