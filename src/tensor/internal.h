/* What a tensor and a storage are made of. Hot paths of every layer read the fields; only this layer writes the
 * reference counts. */
#ifndef MSA_TENSOR_INTERNAL_H
#define MSA_TENSOR_INTERNAL_H

#include <stdatomic.h>
#include <string.h>

#include "base/memory.h"
#include "msadapter/tensor.h"

struct msa_autograd; /* autograd/internal.h */
void msa_autograd_free(struct msa_autograd *autograd);

/* Hidden layout: the bytes of the storage hold one dense 4-D tensor (N,C,H,W) as N,H,W,C, although every tensor over
 * it shows the strides of contiguous N,C,H,W. Convolutions leave their results so, because the next convolution,
 * normalisation, pooling or pointwise operator works faster there. msa_data() ends it by reordering in place;
 * kernels that can read it as it is ask msa_hidden_nhwc() first. */
typedef struct {
    bool on;
    int64_t n, c, h, w;
} msa_hidden;

struct msa_storage {
    atomic_int references;
    uint32_t version;      /* counts in-place writes: saved values remember it */
    uint32_t data_version; /* the same for tensors that came out of `.data` */
    bool resizable;        /* false over foreign memory */
    bool read_only;        /* memory that numpy lends as read-only */
    bool watched;          /* some cache is keyed by this storage: tell it of the end (msa_storage_on_release) */
    uint8_t layout;        /* msa_layout of every tensor over it; other than MSA_STRIDED: `context` is an msa_sparse, and there are no data */
    bool lent;             /* its address is known outside the library, so writes may go unnoticed */
    uint8_t itemsize;      /* of the hidden layout's elements */
    msa_hidden hidden;
    size_t bytes;
    void *data;
    void (*release)(void *context); /* NULL: msa_data_free(data) */
    void *context;
};

/* A tensor that is not strided has sizes, but neither strides nor data of its own. */
typedef enum { MSA_STRIDED, MSA_SPARSE_COO, MSA_SPARSE_CSR } msa_layout;
typedef struct {
    msa_tensor *indices; /* COO: (sparse dims, nnz) of int64. CSR: the rows' beginnings, (rows + 1) of int64 or int32 */
    msa_tensor *columns; /* CSR: (nnz) of the same type; NULL otherwise */
    msa_tensor *values;  /* COO: (nnz, dense sizes), CSR: (nnz) */
    bool coalesced;      /* COO: indices are unique and ascend */
} msa_sparse;

extern _Thread_local bool msa_inference_mode; /* new tensors can never be recorded */

enum { MSA_INLINE_DIMS = 5 };

struct msa_tensor {
    atomic_int references;
    uint8_t dtype; /* msa_dtype */
    uint8_t ndim;
    uint8_t device; /* msa_device_kind; only the CPU has memory of ours */
    bool contiguous;
    bool requires_grad; /* as the user sees it: a leaf's flag, or "has a grad_fn" */
    bool wrapped_number; /* made from a Python number: weak in type promotion */
    bool detached_data;  /* came out of `.data`: counts its in-place writes apart */
    bool inference;
    uint8_t layout; /* msa_layout, the storage's */
    msa_storage *storage;
    int64_t offset;
    int64_t numel;
    int64_t *sizes;   /* ndim sizes, then ndim strides at `strides` */
    int64_t *strides;
    struct msa_autograd *autograd; /* NULL while nothing is known about gradients */
    void *python; /* the Python object that stands for this tensor, borrowed unless python_owned */
    bool python_owned;
    int64_t inline_dims[2 * MSA_INLINE_DIMS];
};

/* What gives up the Python object of a dying tensor that owns it (python_owned). */
MSA_API void msa_tensor_on_python_release(void (*function)(void *python));

/* The layer's only ways to touch raw memory. `msa_data` ends a hidden layout. */
int msa_storage_make_plain(msa_storage *s);
static inline void *msa_data(const msa_tensor *t) {
    if (__builtin_expect(t->storage->hidden.on, 0) && msa_storage_make_plain(t->storage) != 0) return NULL;
    return (char *)t->storage->data + t->offset * (int64_t)msa_dtype_size((msa_dtype)t->dtype);
}
/* Whether the bytes can be read as N,H,W,C: t covers a whole hidden storage. `t->storage->data` is then the data. */
static inline bool msa_hidden_nhwc(const msa_tensor *t) {
    const msa_hidden *h = &t->storage->hidden;
    return h->on && t->ndim == 4 && t->contiguous && t->offset == 0 && t->sizes[0] == h->n && t->sizes[1] == h->c &&
           t->sizes[2] == h->h && t->sizes[3] == h->w;
}
/* An uninitialised (n, c, h, w) tensor in the hidden layout. */
MSA_API msa_tensor *msa_tensor_new_hidden(int64_t n, int64_t c, int64_t h, int64_t w, msa_dtype dtype);

static inline msa_ints msa_sizes(const msa_tensor *t) { return (msa_ints){t->sizes, t->ndim}; }
static inline msa_ints msa_strides(const msa_tensor *t) { return (msa_ints){t->strides, t->ndim}; }
static inline uint32_t msa_version(const msa_tensor *t) {
    return t->detached_data ? t->storage->data_version : t->storage->version;
}
/* Note an in-place write. */
static inline void msa_bump_version(msa_tensor *t) {
    if (t->detached_data) t->storage->data_version++;
    else t->storage->version++;
}

msa_storage *msa_storage_new(size_t bytes);
msa_storage *msa_storage_retain(msa_storage *s);
void msa_storage_release(msa_storage *s);
int msa_storage_resize(msa_storage *s, size_t bytes);
/* The engine's cache of reordered weights hears of the end of every `watched` storage. */
void msa_storage_on_release(void (*function)(const msa_storage *));
void msa_storage_forget(const msa_storage *s);

/* A bare tensor over `storage` (a new reference is taken), sizes and strides copied, nothing checked. */
msa_tensor *msa_tensor_over(msa_storage *storage, msa_dtype dtype, int64_t offset, int ndim, const int64_t *sizes,
                            const int64_t *strides);
/* Another tensor of the same geometry over the same storage, without autograd: detach(). */
msa_tensor *msa_tensor_alias(const msa_tensor *t);
/* Change what `t` is (out=, resize_, set_, .data =). Recomputes numel and contiguity. */
int msa_tensor_set_geometry(msa_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset);
void msa_tensor_set_storage(msa_tensor *t, msa_storage *storage, msa_dtype dtype);
/* Make `t` have `sizes`, contiguous, growing its storage where needed; contents beyond are undefined. */
int msa_tensor_resize(msa_tensor *t, msa_ints sizes);

/* Geometry helpers. */
void msa_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides);
int64_t msa_product(msa_ints sizes);
bool msa_is_channels_last(const msa_tensor *t); /* visible strides are those of N,H,W,C */
bool msa_same_sizes(const msa_tensor *a, const msa_tensor *b);
/* Strides that view `t` as `sizes` without copying, or false. */
bool msa_view_strides(const msa_tensor *t, msa_ints sizes, int64_t *strides);
/* The broadcast shape of a and b written to out (MSA_MAX_DIMS long); -1 with an error naming `op` when there is none. */
int msa_broadcast_sizes(const char *op, msa_ints a, msa_ints b, int64_t *out, int *ndim);
/* `dim` in [-ndim, ndim) made non-negative; -1 with IndexError. A 0-dim tensor counts as 1-dim. */
int msa_wrap_dim(const char *op, int64_t dim, int ndim);
/* "[2, 3]" for messages; a thread-local buffer out of a small ring. */
MSA_API const char *msa_sizes_text(msa_ints sizes);

/* Sparse tensors (sparse.c). What is given is seen without its gradients; nothing is checked. */
MSA_API msa_tensor *msa_sparse_new(msa_layout layout, msa_ints sizes, msa_tensor *indices, msa_tensor *columns, msa_tensor *values, bool coalesced);
/* Make the sparse `t` be what the sparse `source` is, of the same sizes or others. */
MSA_API int msa_sparse_assign(msa_tensor *t, const msa_tensor *source);
static inline msa_sparse *msa_sparse_of(const msa_tensor *t) { return t->storage->context; }
static inline bool msa_any_sparse(msa_tensors list) {
    for (int64_t i = 0; i < list.n; i++)
        if (list.data[i] && list.data[i]->layout) return true;
    return false;
}
int msa_refuse_sparse(const char *op); /* NotImplementedError; -1 */

/* Copy values with conversion and broadcasting, no autograd: dst[...] = src. */
MSA_API int msa_copy_values(msa_tensor *dst, const msa_tensor *src);
/* New contiguous copies / possibly the same tensor, no autograd. */
MSA_API msa_tensor *msa_contiguous_values(msa_tensor *t);                  /* t itself when contiguous */
MSA_API msa_tensor *msa_cast_values(msa_tensor *t, msa_dtype dtype);       /* t itself when of that dtype */
MSA_API msa_tensor *msa_clone_values(msa_tensor *t);                       /* always a copy, dense strides kept */
/* Uninitialised, of t's sizes; strides kept where t is dense, the hidden layout too. */
MSA_API msa_tensor *msa_new_like_values(const msa_tensor *t, msa_dtype dtype);
MSA_API int msa_fill_values(msa_tensor *t, msa_scalar value);

/* Result type of operands in PyTorch's three priorities (dimensioned tensors, 0-dim tensors, wrapped numbers). */
MSA_API msa_dtype msa_result_type(msa_tensors operands);

#endif
