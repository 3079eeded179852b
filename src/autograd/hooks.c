/* Lists of hooks, on nodes and on leaves. */
#include "autograd/internal.h"

static atomic_ullong next_id = 1;

uint64_t msa_hook_add(msa_hook **list, msa_hook hook) {
    msa_hook *made = msa_malloc(sizeof *made);
    if (!made) return 0;
    *made = hook;
    made->id = atomic_fetch_add(&next_id, 1);
    made->next = NULL;
    while (*list) list = &(*list)->next;
    *list = made;
    return made->id;
}

static void free_hook(msa_hook *hook) {
    if (hook->release) hook->release(hook->context);
    free(hook);
}

void msa_hook_remove(msa_hook **list, uint64_t id) {
    for (; *list; list = &(*list)->next)
        if ((*list)->id == id) {
            msa_hook *hook = *list;
            *list = hook->next;
            free_hook(hook);
            return;
        }
}

void msa_hooks_free(msa_hook **list) {
    while (*list) {
        msa_hook *hook = *list;
        *list = hook->next;
        free_hook(hook);
    }
}

static msa_hook **list_of(msa_tensor *t, uint32_t *output) {
    int status;
    msa_node *node = msa_tensor_grad_fn(t, &status);
    if (status != 0) return NULL;
    struct msa_autograd *a = msa_autograd_of(t);
    if (!a) return NULL;
    *output = a->output;
    return node ? &node->hooks : &a->hooks;
}

uint64_t msa_tensor_add_hook(msa_tensor *t, msa_hook hook) {
    if (!t->requires_grad) {
        msa_fail(MSA_RUNTIME_ERROR, "cannot register a hook on a tensor that doesn't require gradient");
        return 0;
    }
    msa_hook **list = list_of(t, &hook.output);
    return list ? msa_hook_add(list, hook) : 0;
}

void msa_tensor_remove_hook(msa_tensor *t, uint64_t id) {
    uint32_t output;
    msa_hook **list = list_of(t, &output);
    if (list) msa_hook_remove(list, id);
}
