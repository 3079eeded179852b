/* Pickles: the machine that reads them (protocols 0 to 5), what it may construct, and the writer (protocol 2). */
#ifndef MSA_IO_PICKLE_H
#define MSA_IO_PICKLE_H

#include "io/file.h"
#include "io/object.h"

typedef enum { MSA_ENCODING_UTF8, MSA_ENCODING_LATIN1, MSA_ENCODING_BYTES } msa_encoding; /* of Python 2's strings */

typedef struct {
    /* The object a persistent id stands for, owned by the document; NULL with an error. NULL: there are none. */
    msa_object *(*persistent)(void *context, msa_object *id);
    void *context;
    msa_encoding encoding;
    int level; /* of pickles within pickles */
} msa_unpickle_options;

/* Reads one pickle; `used` (may be NULL) is how many bytes it took. */
msa_object *msa_unpickle(msa_document *document, const void *data, size_t size, size_t *used,
                         const msa_unpickle_options *options);

/* constructors.c: the allowed names, what calling one gives, and what BUILD does to an object. */
msa_object *msa_pickle_global(msa_document *document, const char *module, size_t module_length, const char *name,
                              size_t name_length);
msa_object *msa_pickle_call(msa_document *document, const msa_object *function, msa_object *arguments,
                            const msa_unpickle_options *options);
int msa_pickle_build(msa_document *document, msa_object *object, msa_object *state);
/* UTF-8 of Latin-1 text. */
msa_object *msa_pickle_latin1(msa_document *document, const char *text, size_t length);
/* numpy.c: the same for numpy's types. */
msa_object *msa_pickle_numpy_call(msa_document *document, msa_global function, msa_object *arguments);
int msa_pickle_numpy_build(msa_document *document, msa_object *object, msa_object *state);
/* Counts what a constructor copies, so that a short pickle cannot ask for much memory. */
int msa_pickle_charge(msa_document *document, size_t amount);

/* The writer. Storages are written as persistent ids, numbered in the order in which they appear. */
typedef struct {
    msa_storage **storages; /* owned references */
    msa_dtype *dtypes;
    size_t count, capacity;
    uint32_t *table; /* by address: position + 1, or 0 */
    size_t slots;
} msa_storage_list;

int msa_storage_list_find(msa_storage_list *list, msa_storage *storage, msa_dtype dtype, size_t *position);
void msa_storage_list_free(msa_storage_list *list);
/* The name of a storage's type, such as "FloatStorage". */
const char *msa_storage_type_name(msa_dtype dtype);

/* Appends a pickle of the document's root. `legacy`: persistent ids as the format before zip has them. */
int msa_pickle_write(msa_bytes *to, const msa_document *document, msa_storage_list *storages, bool legacy);

#endif
