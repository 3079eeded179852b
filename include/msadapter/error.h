/* Errors: every failing call of the library leaves a kind and a message in thread-local storage.
 *
 * A function that makes an object returns NULL on failure, any other returns -1. The kind says which exception
 * PyTorch raises in the same place; the message names the operator and shows the shapes or types. */
#ifndef MSADAPTER_ERROR_H
#define MSADAPTER_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#define MSA_API __attribute__((visibility("default")))

typedef enum {
    MSA_OK = 0,
    MSA_RUNTIME_ERROR,
    MSA_TYPE_ERROR,
    MSA_VALUE_ERROR,
    MSA_INDEX_ERROR,
    MSA_NOT_IMPLEMENTED,
    MSA_MEMORY_ERROR,
    MSA_OS_ERROR,
    MSA_LINALG_ERROR,
    MSA_FOREIGN_ERROR, /* the caller's language (Python) already holds the exception */
    MSA_PICKLE_ERROR,  /* a pickle that is damaged or names what it may not: pickle.UnpicklingError */
    MSA_EOF_ERROR,
} msa_error_kind;

/* Set the error; the message is formatted as by printf. Always returns -1. */
MSA_API int msa_fail(msa_error_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for functions that return pointers: always NULL. */
#define msa_fail_null(...) (msa_fail(__VA_ARGS__), NULL)

MSA_API msa_error_kind msa_error_get(void);    /* MSA_OK when there is none */
MSA_API const char *msa_error_message(void);   /* valid until the next failure on this thread */
MSA_API void msa_error_clear(void);

#ifdef __cplusplus
}
#endif
#endif
