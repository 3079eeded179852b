/* The only file that calls oneDNN: single precision products, convolutions, and the caches around them.
 *
 * Primitives are made once for each geometry and kept. Weights reordered to the layout that an implementation wants are kept by
 * storage, version and offset; a storage that such an entry knows is `watched`, and its end drops the entry. */
#include "cpu/onednn.h"

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>

#include "base/memory.h"
#include "base/parallel.h"

static dnnl_engine_t engine;
static dnnl_stream_t stream; /* a CPU stream has no state of its own */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int failed(const char *what, dnnl_status_t status) {
    if (status == dnnl_out_of_memory) return msa_fail(MSA_MEMORY_ERROR, "%s: oneDNN is out of memory", what);
    return msa_fail(MSA_RUNTIME_ERROR, "%s: oneDNN failed with status %d", what, (int)status);
}

int msa_onednn_sgemm(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                     const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
    dnnl_status_t status = dnnl_sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return status == dnnl_success ? 0 : failed("matrix product", status);
}

/* ---- primitives -------------------------------------------------------------------------------------------------- */

typedef enum { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS } direction;

typedef struct {
    msa_conv conv;
    int64_t direction, bias;
} conv_key;

typedef struct {
    conv_key key;
    uint64_t hash;
    bool slow; /* only a reference implementation exists */
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t src, weight, bias, dst; /* as the implementation wants them */
    dnnl_memory_desc_t plain_weight;
    dnnl_primitive_t reorder; /* of the weight, in or out; NULL when it is plain */
} conv_entry;

enum { CONVS = 1024 };
static conv_entry *convs[CONVS];
static int conv_count;

static uint64_t hash_bytes(const void *data, size_t bytes) {
    const uint64_t *p = data;
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < bytes / 8; i++) {
        h = (h ^ p[i]) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

/* Spatial dimensions that oneDNN is shown: 3 only where depth is used. */
static int spatial(const msa_conv *c) { return c->in[0] == 1 && c->out[0] == 1 && c->kernel[0] == 1 ? 2 : 3; }

static dnnl_status_t describe(const msa_conv *c, conv_entry *e, dnnl_memory_desc_t *any_weight) {
    const int s = spatial(c), first = 3 - s;
    dnnl_dims_t src = {c->n, c->ci}, dst = {c->n, c->co}, weight, bias = {c->co};
    int w = 0;
    if (c->groups > 1) weight[w++] = c->groups;
    weight[w++] = c->co / c->groups;
    weight[w++] = c->ci / c->groups;
    for (int i = 0; i < s; i++) {
        src[2 + i] = c->in[first + i];
        dst[2 + i] = c->out[first + i];
        weight[w++] = c->kernel[first + i];
    }
    const dnnl_format_tag_t last = s == 2 ? dnnl_nhwc : dnnl_ndhwc;
    const dnnl_format_tag_t plain[] = {[4] = dnnl_abcd, [5] = dnnl_abcde, [6] = dnnl_abcdef};
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(&e->src, s + 2, src, dnnl_f32, last);
    if (!status) status = dnnl_memory_desc_init_by_tag(&e->dst, s + 2, dst, dnnl_f32, last);
    if (!status) status = dnnl_memory_desc_init_by_tag(&e->bias, 1, bias, dnnl_f32, dnnl_a);
    if (!status) status = dnnl_memory_desc_init_by_tag(&e->plain_weight, w, weight, dnnl_f32, plain[w]);
    if (!status) status = dnnl_memory_desc_init_by_tag(any_weight, w, weight, dnnl_f32, dnnl_format_tag_any);
    return status;
}

static dnnl_status_t make_conv(const conv_key *key, conv_entry *e) {
    const msa_conv *c = &key->conv;
    const int s = spatial(c), first = 3 - s;
    dnnl_memory_desc_t weight;
    dnnl_status_t status = describe(c, e, &weight);
    if (status) return status;
    dnnl_dims_t stride, dilation, before, after;
    for (int i = 0; i < s; i++) {
        stride[i] = c->stride[first + i];
        dilation[i] = c->dilation[first + i] - 1;
        before[i] = c->padding[first + i];
        /* What the window really reaches: a remainder that no step covers is negative padding at the end. */
        after[i] = (c->out[first + i] - 1) * stride[i] + (c->kernel[first + i] - 1) * (dilation[i] + 1) + 1 - c->in[first + i] - before[i];
    }
    const dnnl_memory_desc_t *bias = key->bias ? &e->bias : NULL;
    dnnl_convolution_desc_t forward, desc;
    dnnl_primitive_desc_t forward_pd, pd = NULL;
    status = dnnl_dilated_convolution_forward_desc_init(&forward, key->direction == FORWARD ? dnnl_forward_inference : dnnl_forward_training,
                                                        dnnl_convolution_direct, &e->src, &weight, key->direction == FORWARD ? bias : NULL,
                                                        &e->dst, stride, dilation, before, after);
    if (!status) status = dnnl_primitive_desc_create(&forward_pd, &forward, NULL, engine, NULL);
    if (status) return status;
    if (key->direction == BACKWARD_DATA)
        status = dnnl_dilated_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, &e->src, &weight, &e->dst, stride,
                                                                  dilation, before, after);
    else if (key->direction == BACKWARD_WEIGHTS)
        status = dnnl_dilated_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, &e->src, &weight, bias, &e->dst,
                                                                     stride, dilation, before, after);
    if (key->direction != FORWARD) {
        if (!status) status = dnnl_primitive_desc_create(&pd, &desc, NULL, engine, forward_pd);
        dnnl_primitive_desc_destroy(forward_pd);
        if (status) return status;
    } else pd = forward_pd;
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    e->slow = strncmp(name, "ref", 3) == 0;
    const dnnl_memory_desc_t *wanted =
        dnnl_primitive_desc_query_md(pd, key->direction == BACKWARD_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    e->weight = *wanted;
    status = e->slow ? dnnl_success : dnnl_primitive_create(&e->primitive, pd);
    dnnl_primitive_desc_destroy(pd);
    if (!status && !e->slow && !dnnl_memory_desc_equal(&e->weight, &e->plain_weight)) {
        const bool out = key->direction == BACKWARD_WEIGHTS;
        dnnl_primitive_desc_t reorder;
        status = dnnl_reorder_primitive_desc_create(&reorder, out ? &e->weight : &e->plain_weight, engine,
                                                    out ? &e->plain_weight : &e->weight, engine, NULL);
        if (!status) {
            status = dnnl_primitive_create(&e->reorder, reorder);
            dnnl_primitive_desc_destroy(reorder);
        }
    }
    return status;
}

/* The entry for a geometry; NULL with an error. An entry once made stays: its number is bounded by CONVS, beyond which the
 * place of an older one's hash is reused only when it is free, and the caller computes without oneDNN. */
static conv_entry *find_conv(const msa_conv *c, direction d, bool bias) {
    conv_key key;
    memset(&key, 0, sizeof key);
    key.conv = *c;
    key.direction = d;
    key.bias = bias;
    const uint64_t hash = hash_bytes(&key, sizeof key);
    pthread_mutex_lock(&lock);
    size_t at = hash % CONVS;
    for (int tries = 0; tries < CONVS && convs[at]; tries++, at = (at + 1) % CONVS)
        if (convs[at]->hash == hash && memcmp(&convs[at]->key, &key, sizeof key) == 0) {
            conv_entry *found = convs[at];
            pthread_mutex_unlock(&lock);
            return found;
        }
    conv_entry *e = NULL;
    dnnl_status_t status = dnnl_success;
    if (!engine) {
        status = dnnl_engine_create(&engine, dnnl_cpu, 0);
        if (!status) status = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    }
    if (!status && (e = calloc(1, sizeof *e))) {
        status = make_conv(&key, e);
        e->key = key;
        e->hash = hash;
        if (status == dnnl_unimplemented || status == dnnl_invalid_arguments) {
            e->slow = true;
            status = dnnl_success;
        }
        if (!status && conv_count < CONVS - 1) {
            convs[at] = e;
            conv_count++;
        } else if (!status) {
            static conv_entry full = {.slow = true};
            dnnl_primitive_destroy(e->primitive);
            dnnl_primitive_destroy(e->reorder);
            free(e);
            e = &full;
        } else {
            free(e);
            e = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    if (!e) failed("convolution", status ? status : dnnl_out_of_memory);
    return e;
}

static dnnl_status_t run(dnnl_primitive_t primitive, int n, const int *names, const dnnl_memory_desc_t *const *descs, void *const *data) {
    dnnl_exec_arg_t args[4] = {{0}};
    dnnl_status_t status = dnnl_success;
    int made = 0;
    for (; made < n && !status; made++) {
        args[made].arg = names[made];
        status = dnnl_memory_create(&args[made].memory, descs[made], engine, data[made]);
    }
    if (!status) status = dnnl_primitive_execute(primitive, stream, n, args);
    if (!status) status = dnnl_stream_wait(stream);
    for (int i = 0; i < made; i++) dnnl_memory_destroy(args[i].memory);
    return status;
}

static dnnl_status_t run_reorder(dnnl_primitive_t primitive, const dnnl_memory_desc_t *from, const void *from_data,
                                 const dnnl_memory_desc_t *to, void *to_data) {
    return run(primitive, 2, (int[]){DNNL_ARG_FROM, DNNL_ARG_TO}, (const dnnl_memory_desc_t *[]){from, to},
               (void *[]){(void *)(uintptr_t)from_data, to_data});
}

/* ---- reordered weights ------------------------------------------------------------------------------------------- */

typedef struct {
    const msa_storage *storage;
    uint32_t version, data_version;
    int64_t offset;
    const conv_entry *entry; /* whose layout it is */
    void *data;
    int users; /* kernels reading it now */
    bool dropped;
} reordered;

enum { WEIGHTS = 256 };
static reordered weights[WEIGHTS];
static int next_weight;

static void drop(reordered *r) {
    if (r->users) {
        r->dropped = true;
        return;
    }
    msa_data_free(r->data);
    *r = (reordered){0};
}

static void forget_storage(const msa_storage *s) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < WEIGHTS; i++)
        if (weights[i].storage == s) {
            weights[i].storage = NULL;
            drop(&weights[i]);
        }
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_storages(void) { msa_storage_on_release(forget_storage); }

/* A weight as an implementation wants it: as it is, out of the cache, or in memory of its own. */
typedef struct {
    void *data;
    reordered *held;
    void *owned;
} ready_weight;

/* The weight in the entry's layout, held until release_cached. A weight that changed since it was reordered is done anew in the
 * same memory. NULL with an error. */
static reordered *cached_weight(const conv_entry *e, const msa_tensor *w) {
    msa_storage *s = w->storage;
    pthread_mutex_lock(&lock);
    reordered *r = NULL;
    for (int i = 0; i < WEIGHTS && !r; i++)
        if (weights[i].storage == s && weights[i].offset == w->offset && weights[i].entry == e) r = &weights[i];
    const bool current = r && r->version == s->version && r->data_version == s->data_version;
    if (r && !current && r->users) r = NULL; /* another thread reads the old one */
    if (!r) {
        for (int tries = 0; tries < WEIGHTS && (!r || r->users); tries++) r = &weights[next_weight++ % WEIGHTS];
        if (r->users) r = NULL;
        else drop(r);
    }
    bool ok = r != NULL;
    if (r && !current) {
        if (!r->data) r->data = msa_data_alloc(dnnl_memory_desc_get_size(&e->weight));
        const void *from = msa_data(w);
        dnnl_status_t status = r->data && from ? run_reorder(e->reorder, &e->plain_weight, from, &e->weight, r->data) : dnnl_out_of_memory;
        ok = status == dnnl_success;
        if (ok) {
            s->watched = true;
            r->storage = s;
            r->offset = w->offset;
            r->entry = e;
            r->version = s->version;
            r->data_version = s->data_version;
        } else {
            r->storage = NULL;
            drop(r);
        }
    }
    if (ok) r->users++;
    pthread_mutex_unlock(&lock);
    if (!ok) msa_fail(MSA_MEMORY_ERROR, "convolution: no memory for the reordered weight");
    return ok ? r : NULL;
}

static void release_cached(reordered *r) {
    pthread_mutex_lock(&lock);
    if (--r->users == 0 && r->dropped) drop(r);
    pthread_mutex_unlock(&lock);
}

/* Memory that others can write to unnoticed (numpy's view of it, say) is reordered every time. */
static int prepare_weight(const conv_entry *e, const msa_tensor *w, ready_weight *ready) {
    *ready = (ready_weight){NULL, NULL, NULL};
    if (!e->reorder) ready->data = msa_data(w);
    else if (!w->storage->lent && !w->storage->release) {
        ready->held = cached_weight(e, w);
        ready->data = ready->held ? ready->held->data : NULL;
    } else {
        const void *from = msa_data(w);
        ready->data = ready->owned = from ? msa_data_alloc(dnnl_memory_desc_get_size(&e->weight)) : NULL;
        dnnl_status_t status = ready->owned ? run_reorder(e->reorder, &e->plain_weight, from, &e->weight, ready->owned) : dnnl_success;
        if (status) {
            msa_data_free(ready->owned);
            return failed("convolution", status);
        }
    }
    return ready->data ? 0 : -1;
}

static void release_weight(ready_weight *w) {
    if (w->held) release_cached(w->held);
    msa_data_free(w->owned);
}

/* ---- convolutions ------------------------------------------------------------------------------------------------ */

int msa_onednn_conv_forward(const msa_conv *c, const float *src, const msa_tensor *weight, const float *bias, float *dst) {
    const conv_entry *e = find_conv(c, FORWARD, bias != NULL);
    if (!e) return -1;
    if (e->slow) return 1;
    ready_weight w;
    if (prepare_weight(e, weight, &w) != 0) return -1;
    dnnl_status_t status =
        run(e->primitive, bias ? 4 : 3, (int[]){DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS},
            (const dnnl_memory_desc_t *[]){&e->src, &e->weight, &e->dst, &e->bias},
            (void *[]){(void *)(uintptr_t)src, w.data, dst, (void *)(uintptr_t)bias});
    release_weight(&w);
    return status ? failed("convolution", status) : 0;
}

int msa_onednn_conv_backward_data(const msa_conv *c, const float *diff_dst, const msa_tensor *weight, float *diff_src) {
    const conv_entry *e = find_conv(c, BACKWARD_DATA, false);
    if (!e) return -1;
    if (e->slow) return 1;
    ready_weight w;
    if (prepare_weight(e, weight, &w) != 0) return -1;
    dnnl_status_t status = run(e->primitive, 3, (int[]){DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                               (const dnnl_memory_desc_t *[]){&e->src, &e->weight, &e->dst},
                               (void *[]){diff_src, w.data, (void *)(uintptr_t)diff_dst});
    release_weight(&w);
    return status ? failed("convolution_backward", status) : 0;
}

int msa_onednn_conv_backward_weights(const msa_conv *c, const float *src, const float *diff_dst, float *diff_weight,
                                     float *diff_bias) {
    const conv_entry *e = find_conv(c, BACKWARD_WEIGHTS, diff_bias != NULL);
    if (!e) return -1;
    if (e->slow) return 1;
    void *blocked = e->reorder ? msa_data_alloc(dnnl_memory_desc_get_size(&e->weight)) : NULL;
    if (e->reorder && !blocked) return -1;
    dnnl_status_t status =
        run(e->primitive, diff_bias ? 4 : 3, (int[]){DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_BIAS},
            (const dnnl_memory_desc_t *[]){&e->src, &e->weight, &e->dst, &e->bias},
            (void *[]){(void *)(uintptr_t)src, blocked ? blocked : (void *)diff_weight, (void *)(uintptr_t)diff_dst, diff_bias});
    if (!status && blocked) status = run_reorder(e->reorder, &e->weight, blocked, &e->plain_weight, diff_weight);
    msa_data_free(blocked);
    return status ? failed("convolution_backward", status) : 0;
}
