/* Sparse tensors as objects: a storage without data that carries indices and values. What is computed with them is in cpu/sparse.c.
 *
 * Everything over such a storage is sparse, so no view of it can be taken for strided by mistake. The storage counts as one in a
 * hidden layout that cannot be made plain: a kernel that asks for its data gets NULL and an error. */
#include "tensor/internal.h"

int msa_refuse_sparse(const char *op) {
    return msa_fail(MSA_NOT_IMPLEMENTED, "%s is not implemented for sparse tensors", op);
}

static void clear(msa_sparse *s) {
    msa_tensor_release(s->indices);
    msa_tensor_release(s->columns);
    msa_tensor_release(s->values);
}

static void release(void *context) {
    clear(context);
    free(context);
}

/* The tensor without what it knows about gradients. */
static msa_tensor *plain(msa_tensor *t) { return t->autograd || t->python ? msa_tensor_alias(t) : msa_tensor_retain(t); }

msa_tensor *msa_sparse_new(msa_layout layout, msa_ints sizes, msa_tensor *indices, msa_tensor *columns, msa_tensor *values, bool coalesced) {
    if (sizes.n > MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "a tensor can have at most %d dimensions", MSA_MAX_DIMS);
    msa_storage *storage = msa_calloc(1, sizeof *storage);
    msa_sparse *s = msa_calloc(1, sizeof *s);
    if (!storage || !s) {
        free(storage);
        free(s);
        return NULL;
    }
    storage->references = 1;
    storage->layout = (uint8_t)layout;
    storage->hidden = (msa_hidden){true, -1, -1, -1, -1};
    storage->release = release;
    storage->context = s;
    s->indices = plain(indices);
    s->columns = columns ? plain(columns) : NULL;
    s->values = plain(values);
    s->coalesced = coalesced;
    const int64_t none[MSA_MAX_DIMS] = {0};
    msa_tensor *t = s->indices && s->values && (s->columns || !columns)
                        ? msa_tensor_over(storage, (msa_dtype)values->dtype, 0, (int)sizes.n, sizes.data, none) : NULL;
    msa_storage_release(storage);
    return t;
}

int msa_sparse_assign(msa_tensor *t, const msa_tensor *source) {
    msa_sparse *to = msa_sparse_of(t), *from = msa_sparse_of(source);
    if (to == from) return 0;
    if (t->layout != source->layout || t->dtype != source->dtype || !msa_same_sizes(t, source)) {
        /* Aliases keep what they had: their sizes have to go with their indices. */
        msa_tensor *fresh = msa_sparse_new((msa_layout)source->layout, msa_sizes(source), from->indices, from->columns, from->values, from->coalesced);
        if (!fresh) return -1;
        fresh->storage->version = t->storage->version;
        fresh->storage->data_version = t->storage->data_version;
        msa_tensor_set_storage(t, fresh->storage, (msa_dtype)fresh->dtype);
        const int status = msa_tensor_set_geometry(t, fresh->ndim, fresh->sizes, fresh->strides, 0);
        msa_tensor_release(fresh);
        return status;
    }
    msa_sparse old = *to;
    *to = (msa_sparse){msa_tensor_retain(from->indices), msa_tensor_retain(from->columns), msa_tensor_retain(from->values), from->coalesced};
    clear(&old);
    return 0;
}
