/* Tensors: counted references to strided views of shared storages.
 *
 * Arguments are borrowed, results are owned by the caller (one reference, to be given back with msa_tensor_release).
 * Sizes, strides and offsets are in elements. */
#ifndef MSADAPTER_TENSOR_H
#define MSADAPTER_TENSOR_H

#include "msadapter/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct msa_tensor msa_tensor;
typedef struct msa_storage msa_storage;
typedef struct msa_generator msa_generator;

enum { MSA_MAX_DIMS = 64 };

/* Borrowed lists, as operators take them. `none` lists (int[]?) have data == NULL and n == -1. */
typedef struct {
    const int64_t *data;
    int64_t n;
} msa_ints;
typedef struct {
    msa_tensor *const *data; /* entries may be NULL where an operator takes optional tensors */
    int64_t n;
} msa_tensors;
typedef struct {
    bool has;
    int64_t v;
} msa_opt_int;
typedef struct {
    bool has;
    double v;
} msa_opt_double;
typedef struct {
    bool has;
    msa_scalar v;
} msa_opt_scalar;

#define MSA_INTS(...) \
    ((msa_ints){(const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))})
#define MSA_TENSORS(...) \
    ((msa_tensors){(msa_tensor *const[]){__VA_ARGS__}, \
                   (int64_t)(sizeof((msa_tensor *[]){__VA_ARGS__}) / sizeof(msa_tensor *))})
#define MSA_NO_INTS ((msa_ints){NULL, -1})
#define MSA_SOME(value) {true, (value)}

/* An owned list of owned tensors: what split, unbind and meshgrid return. */
typedef struct msa_list {
    int64_t n;
    msa_tensor *items[];
} msa_list;
MSA_API msa_list *msa_list_new(int64_t n); /* all NULL */
MSA_API void msa_list_release(msa_list *list);
static inline msa_tensors msa_list_view(const msa_list *list) { return (msa_tensors){list->items, list->n}; }

/* References. */
MSA_API msa_tensor *msa_tensor_retain(msa_tensor *t); /* NULL is allowed, and returned */
MSA_API void msa_tensor_release(msa_tensor *t);       /* NULL is allowed */

/* Creation. msa_tensor_new gives uninitialised memory, contiguous. */
MSA_API msa_tensor *msa_tensor_new(msa_ints sizes, msa_dtype dtype);
MSA_API msa_tensor *msa_tensor_new_strided(msa_ints sizes, msa_ints strides, msa_dtype dtype);
MSA_API msa_tensor *msa_tensor_scalar(msa_scalar value, msa_dtype dtype); /* 0-dim */
/* A tensor over foreign memory: `release(context)` is called when the last reference to its storage goes. */
MSA_API msa_tensor *msa_tensor_from_memory(void *data, msa_ints sizes, msa_ints strides, msa_dtype dtype,
                                           void (*release)(void *), void *context);

/* What a tensor is. */
MSA_API int msa_tensor_ndim(const msa_tensor *t);
MSA_API int64_t msa_tensor_numel(const msa_tensor *t);
MSA_API const int64_t *msa_tensor_sizes(const msa_tensor *t);
/* Looking at the strides or the data of a tensor in a hidden layout makes it plain first (see storage.h). */
MSA_API const int64_t *msa_tensor_strides(const msa_tensor *t);
MSA_API int64_t msa_tensor_offset(const msa_tensor *t);
MSA_API msa_dtype msa_tensor_dtype(const msa_tensor *t);
MSA_API bool msa_tensor_is_contiguous(const msa_tensor *t);
MSA_API void *msa_tensor_data(const msa_tensor *t); /* its first element; NULL only on failure or when empty */
MSA_API int msa_tensor_item(const msa_tensor *t, msa_scalar *value); /* of a one-element tensor */

/* A view of the same storage, no gradient recorded. Checks that it stays inside the storage. */
MSA_API msa_tensor *msa_tensor_view_strided(msa_tensor *t, msa_ints sizes, msa_ints strides, int64_t offset);

static inline void msa_tensor_release_at(msa_tensor **t) { msa_tensor_release(*t); }
static inline void msa_list_release_at(msa_list **l) { msa_list_release(*l); }
/* A tensor (list) reference given back at the end of its scope; msa_take hands it out instead. */
#define msa_auto __attribute__((cleanup(msa_tensor_release_at)))
#define msa_auto_list __attribute__((cleanup(msa_list_release_at)))
#define msa_take(variable) \
    __extension__({ \
        __typeof__(variable) taken_ = (variable); \
        (variable) = NULL; \
        taken_; \
    })

#ifdef __cplusplus
}
#endif
#endif
