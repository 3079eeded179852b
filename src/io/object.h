/* What documents and objects are made of; for the readers and writers of this layer and for the Python extension. */
#ifndef MSA_IO_OBJECT_H
#define MSA_IO_OBJECT_H

#include "msadapter/io.h"
#include "tensor/internal.h"

enum {
    MSA_OBJECT_DEPTH = 900,         /* of nesting: what walks a checked tree may recurse */
    MSA_OBJECT_KEY_WEIGHT = 100000, /* of a dictionary's key, written out: hashing takes no longer */
};

/* Types and functions a pickle may name. The code says which; storage types carry their dtype in `detail`. */
typedef enum {
    MSA_GLOBAL_STORAGE_TYPE,
    MSA_GLOBAL_DTYPE,
    MSA_GLOBAL_REBUILD_TENSOR,
    MSA_GLOBAL_REBUILD_TENSOR_V2,
    MSA_GLOBAL_REBUILD_PARAMETER,
    MSA_GLOBAL_REBUILD_SPARSE,
    MSA_GLOBAL_REBUILD_PARAMETER_STATE,
    MSA_GLOBAL_REBUILD_FROM_TYPE,
    MSA_GLOBAL_LOAD_FROM_BYTES,
    MSA_GLOBAL_TENSOR_TYPE,
    MSA_GLOBAL_PARAMETER_TYPE,
    MSA_GLOBAL_SIZE,
    MSA_GLOBAL_DEVICE,
    MSA_GLOBAL_GET_LAYOUT,
    MSA_GLOBAL_ORDERED_DICT,
    MSA_GLOBAL_DEFAULT_DICT,
    MSA_GLOBAL_COUNTER,
    MSA_GLOBAL_SET,
    MSA_GLOBAL_FROZEN_SET,
    MSA_GLOBAL_COMPLEX,
    MSA_GLOBAL_BYTE_ARRAY,
    MSA_GLOBAL_BYTES,
    MSA_GLOBAL_SLICE,
    MSA_GLOBAL_RANGE,
    MSA_GLOBAL_LIST,
    MSA_GLOBAL_DICT,
    MSA_GLOBAL_INT,
    MSA_GLOBAL_FLOAT,
    MSA_GLOBAL_STR,
    MSA_GLOBAL_ENCODE,
    MSA_GLOBAL_NUMPY_SCALAR,
    MSA_GLOBAL_NUMPY_RECONSTRUCT,
    MSA_GLOBAL_NUMPY_ARRAY,
    MSA_GLOBAL_NUMPY_DTYPE,
} msa_global;

struct msa_object {
    uint8_t kind;    /* msa_object_kind */
    uint8_t detail;  /* a dtype, an msa_global, or whether a tensor is a parameter */
    uint8_t untyped; /* a storage or storage type of plain bytes */
    uint32_t index;  /* among the document's objects */
    uint32_t weight; /* objects in it, shared ones as often as they appear; of tuples and frozen sets only */
    union {
        int64_t integer;
        double real[2];
        struct {
            char *text;
            size_t length;
        };
        struct {
            msa_object **items; /* of dictionaries: key, value, key, value */
            size_t count, capacity;
        };
        msa_tensor *tensor;
        struct {
            msa_storage *storage;
            int64_t offset; /* elements; not 0 in the format before zip only */
            int64_t numel;
        };
    };
    msa_object *attributes; /* or the factory of a DEFAULT_DICT */
};

/* A storage the document's tensors share. */
typedef struct {
    msa_storage *storage;
    msa_dtype dtype;
    char *key, *location;
} msa_stored;

struct msa_document {
    msa_object *root;
    msa_object **chunks; /* of OBJECT_CHUNK objects */
    uint32_t count;
    msa_object *none, *truth[2];
    msa_stored *stored;
    size_t stored_count, stored_capacity;
    uint32_t *stored_table; /* hash table of stored_count keys: position + 1, or 0 */
    size_t stored_slots;
    uint64_t consumed; /* bytes of the file that were read, in the format before zip */
    size_t budget;     /* items and bytes that constructors may still copy */
};

msa_object *msa_object_new(msa_document *document, msa_object_kind kind);
MSA_API msa_object *msa_object_new_global(msa_document *document, msa_global code, int dtype);
MSA_API msa_object *msa_object_new_storage(msa_document *document, msa_storage *storage, msa_dtype dtype, int64_t offset,
                                           int64_t numel); /* takes a reference of its own */
msa_object *msa_object_new_view(msa_document *document, msa_object_kind kind, msa_object *const *items, size_t count);
MSA_API msa_object *msa_object_factory(const msa_object *o);
static inline bool msa_object_is_dict(const msa_object *o) {
    return o->kind >= MSA_OBJECT_DICT && o->kind <= MSA_OBJECT_DEFAULT_DICT;
}
static inline bool msa_object_is_text(const msa_object *o) {
    return o->kind == MSA_OBJECT_BIG_INT || (o->kind >= MSA_OBJECT_STR && o->kind <= MSA_OBJECT_BYTE_ARRAY) ||
           o->kind == MSA_OBJECT_DEVICE || o->kind == MSA_OBJECT_LAYOUT || o->kind == MSA_OBJECT_NUMPY_DTYPE;
}
static inline bool msa_object_is_container(const msa_object *o) {
    return (o->kind >= MSA_OBJECT_LIST && o->kind <= MSA_OBJECT_SIZE) || o->kind == MSA_OBJECT_NUMPY_SCALAR ||
           o->kind == MSA_OBJECT_NUMPY_ARRAY || o->kind == MSA_OBJECT_SPARSE;
}
/* Whether text equals the C string. */
bool msa_object_says(const msa_object *o, const char *text);

/* Fails on cycles and on nesting beyond MSA_OBJECT_DEPTH. Then, where `uses` is not NULL, it holds for each object how
 * often others refer to it. Iterative. */
MSA_API int msa_document_check(const msa_document *document, uint32_t *uses);
/* What stored keys: NULL without an error when there is none yet. Adding takes over the reference to the storage. */
msa_stored *msa_document_find_stored(const msa_document *document, const char *key, size_t length);
msa_stored *msa_document_add_stored(msa_document *document, msa_storage *storage, msa_dtype dtype, const char *key,
                                    size_t length, const char *location);

#endif
