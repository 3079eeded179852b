/* Checkpoint files of PyTorch (.pth), read and written without running code from them.
 *
 * A file becomes a document: a tree of objects of a fixed set of kinds, which the document owns and frees together.
 * Objects are borrowed from their document everywhere. Whatever a file holds beyond these kinds is refused with
 * MSA_PICKLE_ERROR; a damaged file gives MSA_RUNTIME_ERROR, MSA_PICKLE_ERROR or MSA_EOF_ERROR. */
#ifndef MSADAPTER_IO_H
#define MSADAPTER_IO_H

#include "msadapter/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct msa_document msa_document;
typedef struct msa_object msa_object;

typedef enum {
    MSA_OBJECT_NONE,
    MSA_OBJECT_BOOL,
    MSA_OBJECT_INT,
    MSA_OBJECT_BIG_INT, /* bytes: two's complement, least significant byte first */
    MSA_OBJECT_FLOAT,
    MSA_OBJECT_COMPLEX,
    MSA_OBJECT_STR, /* UTF-8 */
    MSA_OBJECT_BYTES,
    MSA_OBJECT_BYTE_ARRAY,
    MSA_OBJECT_LIST,
    MSA_OBJECT_TUPLE,
    MSA_OBJECT_DICT,
    MSA_OBJECT_ORDERED_DICT,
    MSA_OBJECT_COUNTER,
    MSA_OBJECT_DEFAULT_DICT, /* its factory: msa_object_factory */
    MSA_OBJECT_SET,
    MSA_OBJECT_FROZEN_SET,
    MSA_OBJECT_SLICE, /* three items, as of RANGE */
    MSA_OBJECT_RANGE,
    MSA_OBJECT_SIZE,   /* torch.Size: a list of integers */
    MSA_OBJECT_DEVICE, /* text */
    MSA_OBJECT_DTYPE,
    MSA_OBJECT_LAYOUT, /* text: "strided", the only one there is */
    MSA_OBJECT_TENSOR,
    MSA_OBJECT_STORAGE,
    MSA_OBJECT_NUMPY_DTYPE,  /* text such as "<f8" */
    MSA_OBJECT_NUMPY_SCALAR, /* items: dtype, bytes */
    MSA_OBJECT_NUMPY_ARRAY,  /* items: dtype, shape (tuple), bytes, whether in Fortran order */
    MSA_OBJECT_GLOBAL,       /* a reference to one of the known types, as an argument of others */
    MSA_OBJECT_SPARSE, /* a sparse tensor: [layout, (indices, values, size)] */
} msa_object_kind;

MSA_API msa_document *msa_document_new(void);
MSA_API void msa_document_free(msa_document *document); /* NULL is allowed */
MSA_API msa_object *msa_document_root(const msa_document *document);
MSA_API void msa_document_set_root(msa_document *document, msa_object *root);

/* Looking at objects. Accessors of another kind than the object's give 0 or NULL. */
MSA_API msa_object_kind msa_object_kind_of(const msa_object *o);
MSA_API int64_t msa_object_int(const msa_object *o);   /* of INT and BOOL */
MSA_API double msa_object_float(const msa_object *o);  /* of FLOAT, INT and BOOL; the real part of COMPLEX */
MSA_API const char *msa_object_text(const msa_object *o, size_t *length); /* STR, BYTES, DEVICE, ...; ends with NUL */
MSA_API size_t msa_object_length(const msa_object *o); /* items, or pairs of a dictionary */
MSA_API msa_object *msa_object_at(const msa_object *o, size_t i);     /* the item, or the value of pair i */
MSA_API msa_object *msa_object_key_at(const msa_object *o, size_t i); /* of a dictionary */
MSA_API msa_object *msa_object_get(const msa_object *dict, const char *key); /* the last value set; NULL: none */
MSA_API msa_tensor *msa_object_tensor(const msa_object *o);                  /* borrowed */
MSA_API bool msa_object_is_parameter(const msa_object *o);
MSA_API msa_dtype msa_object_dtype(const msa_object *o); /* of DTYPE and STORAGE; else MSA_NO_DTYPE */
MSA_API msa_object *msa_object_attributes(const msa_object *o); /* a dictionary, such as {"_metadata": ...}, or NULL */

/* Making objects. NULL with an error on failure; a NULL argument gives NULL, so that calls can be nested. */
MSA_API msa_object *msa_object_new_none(msa_document *document);
MSA_API msa_object *msa_object_new_bool(msa_document *document, bool value);
MSA_API msa_object *msa_object_new_int(msa_document *document, int64_t value);
MSA_API msa_object *msa_object_new_float(msa_document *document, double value);
MSA_API msa_object *msa_object_new_complex(msa_document *document, double re, double im);
/* STR, BYTES, BYTE_ARRAY, BIG_INT, DEVICE, LAYOUT or NUMPY_DTYPE; the bytes are copied. */
MSA_API msa_object *msa_object_new_text(msa_document *document, msa_object_kind kind, const char *text, size_t length);
MSA_API msa_object *msa_object_new_str(msa_document *document, const char *text);
/* LIST, TUPLE, SET, FROZEN_SET, SIZE, SLICE, RANGE or a kind of dictionary, empty. */
MSA_API msa_object *msa_object_new_container(msa_document *document, msa_object_kind kind);
MSA_API msa_object *msa_object_new_dtype(msa_document *document, msa_dtype dtype);
/* Takes a reference of its own; requires_grad is the tensor's. */
MSA_API msa_object *msa_object_new_tensor(msa_document *document, msa_tensor *tensor, bool parameter);
MSA_API int msa_object_append(msa_object *container, msa_object *item);
MSA_API int msa_object_set(msa_object *dict, msa_object *key, msa_object *value);
MSA_API int msa_object_set_named(msa_document *document, msa_object *dict, const char *key, msa_object *value);
MSA_API int msa_object_set_attributes(msa_object *o, msa_object *dict);

/* Reading. `map` leaves the data of storages in the file and reads it when it is touched; the file must then stay. */
MSA_API msa_document *msa_pth_load(const char *path, bool map);
MSA_API msa_document *msa_pth_load_memory(const void *data, size_t size);

/* Writing, as a zip archive (PyTorch 1.6 and later) or in the format before it. The file appears whole or not at all:
 * it is written under another name, synced, then renamed. */
MSA_API int msa_pth_save(const char *path, const msa_document *document, bool zip);

#ifdef __cplusplus
}
#endif
#endif
