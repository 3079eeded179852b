/* See autocast.h. Conversions are recorded, so that gradients come back in the leaves' dtype. */
#include "autograd/autocast.h"

#include "base/memory.h"
#include "msadapter/ops.h"
#include "tensor/internal.h"

_Thread_local bool msa_autocast_on;

enum { DEVICES = 2 };
static _Thread_local struct {
    bool enabled[DEVICES];
    bool set[DEVICES]; /* whether dtype was ever set */
    msa_dtype dtype[DEVICES];
    bool no_cache;
    int nesting;
} state;

/* Leaves that were converted, for as long as the outermost autocast lasts. */
typedef struct kept {
    struct kept *next;
    msa_tensor *leaf, *cast;
    uint32_t version;
} kept;
static _Thread_local kept *cache;

static msa_dtype dtype_of(int device) { return state.set[device] ? state.dtype[device] : device ? MSA_FLOAT16 : MSA_BFLOAT16; }

static void refresh(void) { msa_autocast_on = state.enabled[0] || state.enabled[1]; }

bool msa_autocast_enabled(int device) { return device >= 0 && device < DEVICES && state.enabled[device]; }

void msa_set_autocast_enabled(int device, bool enabled) {
    if (device < 0 || device >= DEVICES) return;
    state.enabled[device] = enabled;
    refresh();
}

msa_dtype msa_autocast_dtype(int device) { return device >= 0 && device < DEVICES ? dtype_of(device) : MSA_NO_DTYPE; }

void msa_set_autocast_dtype(int device, msa_dtype dtype) {
    if (device < 0 || device >= DEVICES) return;
    state.dtype[device] = dtype;
    state.set[device] = true;
}

bool msa_autocast_cache_enabled(void) { return !state.no_cache; }
void msa_set_autocast_cache_enabled(bool enabled) { state.no_cache = !enabled; }

int msa_autocast_nest(int change) { return state.nesting += change; }

void msa_clear_autocast_cache(void) {
    while (cache) {
        kept *k = cache;
        cache = k->next;
        msa_tensor_release(k->leaf);
        msa_tensor_release(k->cast);
        free(k);
    }
}

static bool eligible(const msa_tensor *t) {
    return t && (t->dtype == MSA_FLOAT32 || t->dtype == MSA_FLOAT16 || t->dtype == MSA_BFLOAT16);
}

static msa_dtype widest(msa_tensors tensors, msa_dtype lower) {
    msa_dtype found = MSA_NO_DTYPE;
    bool mixed = false;
    for (int64_t i = 0; i < tensors.n; i++) {
        const msa_tensor *t = tensors.data[i];
        if (t && t->dtype == MSA_FLOAT64) return MSA_NO_DTYPE; /* ordinary promotion does it */
        if (!eligible(t)) continue;
        const msa_dtype d = (msa_dtype)t->dtype;
        mixed = mixed || (found != MSA_NO_DTYPE && d != found);
        if (found == MSA_NO_DTYPE || d == MSA_FLOAT32) found = d;
    }
    return mixed ? found : MSA_NO_DTYPE;
}

msa_dtype msa_autocast_target(msa_autocast_policy policy, msa_tensors tensors) {
    const int device = state.enabled[1];
    const msa_dtype lower = dtype_of(device);
    switch (policy) {
    case MSA_AUTOCAST_CUDA_LOWER:
        if (!device) return MSA_NO_DTYPE; /* fall through */
    case MSA_AUTOCAST_LOWER: return lower;
    case MSA_AUTOCAST_CPU_FLOAT32: return device ? MSA_NO_DTYPE : MSA_FLOAT32;
    case MSA_AUTOCAST_CUDA_FLOAT32: return device ? MSA_FLOAT32 : MSA_NO_DTYPE;
    case MSA_AUTOCAST_FLOAT32: return MSA_FLOAT32;
    case MSA_AUTOCAST_CUDA_PROMOTE:
        if (!device) return MSA_NO_DTYPE; /* fall through */
    case MSA_AUTOCAST_PROMOTE: return widest(tensors, lower);
    }
    return MSA_NO_DTYPE;
}

/* A leaf's conversion out of the cache, made where it is missing or the leaf was written since. */
static msa_tensor *cached(msa_tensor *t, msa_dtype to) {
    kept **at = &cache;
    for (; *at; at = &(*at)->next) {
        if ((*at)->leaf != t || (*at)->cast->dtype != to) continue;
        if ((*at)->version == t->storage->version) return msa_tensor_retain((*at)->cast);
        kept *stale = *at;
        *at = stale->next;
        msa_tensor_release(stale->leaf);
        msa_tensor_release(stale->cast);
        free(stale);
        break;
    }
    msa_auto msa_tensor *cast = msa__to_copy(t, to, -1);
    kept *k = cast ? msa_malloc(sizeof *k) : NULL;
    if (!k) return NULL;
    *k = (kept){cache, msa_tensor_retain(t), msa_tensor_retain(cast), t->storage->version};
    cache = k;
    return msa_take(cast);
}

int msa_autocast_tensor(msa_tensor *t, msa_dtype to, msa_tensor **result) {
    *result = NULL;
    if (!t) return 0;
    if (!eligible(t) || t->dtype == to) {
        *result = msa_tensor_retain(t);
        return 0;
    }
    const bool keep = !state.no_cache && state.nesting > 0 && to != MSA_FLOAT32 && t->dtype == MSA_FLOAT32 && msa_grad_enabled() &&
                      t->requires_grad && msa_tensor_is_leaf(t);
    *result = keep ? cached(t, to) : msa__to_copy(t, to, -1);
    return *result ? 0 : -1;
}

msa_list *msa_autocast_list(msa_tensors tensors, msa_dtype to) {
    msa_auto_list msa_list *list = msa_list_new(tensors.n);
    if (!list) return NULL;
    for (int64_t i = 0; i < tensors.n; i++)
        if (msa_autocast_tensor(tensors.data[i], to, &list->items[i]) != 0) return NULL;
    msa_list *taken = list;
    list = NULL;
    return taken;
}
