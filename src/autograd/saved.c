/* Values that a node keeps for its backward function, and the check that nobody has changed them since. */
#include "autograd/internal.h"

_Thread_local const msa_packer *msa_packer_now;

/* A tensor that a packer holds, and the edge that its history hangs on. */
struct msa_packed {
    void *value;
    msa_tensor *(*unpack)(void *packed);
    void (*release)(void *packed);
    msa_edge history; /* no node: none, or the saving node's own output */
    bool own_output;
};

static int pack(msa_saved *s, msa_tensor *t, const msa_node *node) {
    const msa_packer *packer = msa_packer_now;
    struct msa_packed *box = msa_calloc(1, sizeof *box);
    msa_auto msa_tensor *bare = box ? msa_tensor_alias(t) : NULL; /* without history */
    if (!bare) {
        free(box);
        return -1;
    }
    box->own_output = t->autograd && t->autograd->grad_fn == node;
    box->unpack = packer->unpack;
    box->release = packer->release;
    box->value = packer->pack(packer->context, bare);
    if (!box->value || (!box->own_output && t->requires_grad && msa_gradient_edge(t, &box->history) != 0)) {
        if (box->value) box->release(box->value);
        free(box);
        return -1;
    }
    s->kind = MSA_SAVED_PACKED;
    s->output = box->own_output ? (uint8_t)t->autograd->output : 0;
    s->packed = box;
    return 0;
}

void msa_packed_release(struct msa_packed *box) {
    if (!box) return;
    box->release(box->value);
    msa_node_release(box->history.node);
    free(box);
}

/* t as another handle on the same memory that hangs on output `output` of `node`. */
static msa_tensor *with_history(msa_tensor *t, msa_node *node, uint32_t output) {
    msa_auto msa_tensor *alias = msa_tensor_alias(t);
    struct msa_autograd *a = alias ? msa_autograd_of(alias) : NULL;
    if (!a) return NULL;
    a->grad_fn = msa_node_retain(node);
    a->output = output;
    alias->requires_grad = true;
    return msa_take(alias);
}

static int unpack(msa_node *node, const msa_saved *s, msa_tensor **t) {
    const struct msa_packed *box = s->packed;
    msa_auto msa_tensor *bare = box->unpack(box->value);
    if (!bare) return -1;
    msa_node *from = box->own_output ? node : box->history.node;
    *t = from && msa_grad_mode ? with_history(bare, from, box->own_output ? s->output : box->history.input) : msa_take(bare);
    return *t ? 0 : -1;
}

int msa_node_save_tensor(msa_node *node, uint32_t slot, msa_tensor *t) {
    msa_saved *s = &node->saved[slot];
    if (!t) {
        s->kind = MSA_SAVED_TENSOR;
        return 0;
    }
    if (msa_packer_now && !t->inference) return pack(s, t, node);
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
    if (msa_packer_now) return pack(s, t, node);
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
    if (s->kind == MSA_SAVED_PACKED) return unpack(node, s, t);
    if (!s->tensor) return 0;
    if (check_version(node, s, s->tensor, s->version) != 0) return -1;
    if (s->kind == MSA_SAVED_TENSOR) {
        *t = msa_tensor_retain(s->tensor);
        return 0;
    }
    /* An output comes back with its history, for second derivatives. */
    *t = msa_grad_mode ? with_history(s->tensor, node, s->output) : msa_tensor_alias(s->tensor);
    return *t ? 0 : -1;
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
