/* Memory: an aligned caching allocator for tensor data, and plain allocation that reports failure.
 *
 * Tensor data comes from msa_data_alloc: 64-byte aligned, rounded up to a size class, kept in per-class free lists
 * when released so that a training step allocates nothing from the system after its first run. */
#ifndef MSA_BASE_MEMORY_H
#define MSA_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "msadapter/error.h"

/* Data of at least `bytes` bytes, 64-byte aligned, not cleared; NULL with MSA_MEMORY_ERROR. Zero bytes are allowed. */
void *msa_data_alloc(size_t bytes);
void msa_data_free(void *data);
/* Give every cached block back to the system. */
MSA_API void msa_data_trim(void);
/* Bytes handed out now, and the most there have been at once. */
MSA_API size_t msa_data_in_use(void);
MSA_API size_t msa_data_peak(void);
MSA_API void msa_data_reset_peak(void); /* the most from now on */

/* Bytes that this thread has asked for less those it has given back. */
int64_t msa_data_thread_balance(void);

/* malloc and calloc that set MSA_MEMORY_ERROR. */
void *msa_malloc(size_t bytes);
void *msa_calloc(size_t count, size_t size);

static inline void msa_free_pointer(void *p) { free(*(void **)p); }
/* A pointer from malloc that is freed at the end of its scope. */
#define msa_auto_free __attribute__((cleanup(msa_free_pointer)))

#endif
