/* Storages: counted blocks of memory that tensors view. */
#include "tensor/internal.h"

#include "tensor/reorder.h"

msa_storage *msa_storage_new(size_t bytes) {
    msa_storage *s = malloc(sizeof *s);
    if (!s) return msa_fail_null(MSA_MEMORY_ERROR, "cannot allocate a storage");
    memset(s, 0, sizeof *s);
    s->references = 1;
    s->resizable = true;
    s->bytes = bytes;
    s->data = msa_data_alloc(bytes);
    if (!s->data) {
        free(s);
        return NULL;
    }
    return s;
}

msa_storage *msa_storage_retain(msa_storage *s) {
    atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
    return s;
}

void msa_storage_release(msa_storage *s) {
    if (!s || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1) return;
    msa_storage_forget(s);
    if (s->release) s->release(s->context);
    else msa_data_free(s->data);
    free(s);
}

int msa_storage_resize(msa_storage *s, size_t bytes) {
    if (s->layout) return msa_refuse_sparse("resizing of the storage");
    if (bytes <= s->bytes && s->data) {
        s->bytes = bytes;
        return 0;
    }
    if (!s->resizable) return msa_fail(MSA_RUNTIME_ERROR, "Trying to resize storage that is not resizable");
    if (msa_storage_make_plain(s) != 0) return -1;
    void *data = msa_data_alloc(bytes);
    if (!data) return -1;
    memcpy(data, s->data, s->bytes);
    msa_data_free(s->data);
    s->data = data;
    s->bytes = bytes;
    return 0;
}

int msa_storage_make_plain(msa_storage *s) {
    if (!s->hidden.on) return 0;
    if (s->layout) return msa_refuse_sparse("access to the storage");
    msa_hidden h = s->hidden;
    void *plain = msa_data_alloc(s->bytes);
    if (!plain) return -1;
    msa_reorder_nhwc_to_nchw(plain, s->data, h.n, h.c, h.h * h.w, s->itemsize);
    msa_data_free(s->data);
    s->data = plain;
    s->hidden.on = false;
    return 0;
}

static void (*forget)(const msa_storage *);

void msa_storage_on_release(void (*function)(const msa_storage *)) { forget = function; }

void msa_storage_forget(const msa_storage *s) {
    if (s->watched && forget) forget(s);
}
