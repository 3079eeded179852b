/* Storages in memory that several processes map: PyTorch's two strategies.
 *
 * By descriptor: the file is nameless (memfd) and lives as long as some process has it open or mapped. By name: the
 * file lies in /dev/shm, begins with a count of the references in all processes, and is removed by whoever brings the
 * count to 0. A reference is a mapping, or a message under way that names the file (msa_shared_count). */
#ifndef MSA_TENSOR_SHARED_H
#define MSA_TENSOR_SHARED_H

#include "tensor/internal.h"

typedef enum { MSA_SHARED_BY_DESCRIPTOR, MSA_SHARED_BY_NAME } msa_sharing;

/* Move the elements to shared memory, where they lie otherwise or are shared in the other way. Foreign memory is left
 * behind. */
MSA_API int msa_storage_share(msa_storage *s, msa_sharing how);
MSA_API bool msa_storage_is_shared(const msa_storage *s);
MSA_API int msa_storage_shared_descriptor(const msa_storage *s);   /* borrowed; -1 when it isn't shared by descriptor */
MSA_API const char *msa_storage_shared_name(const msa_storage *s); /* NULL when it isn't shared by name */

/* New shared memory, cleared. */
MSA_API msa_storage *msa_storage_new_shared(size_t bytes, msa_sharing how);
/* The storage over memory that another process shares: the one that this process has already, or a new mapping. The
 * descriptor stays the caller's. By name, the caller's reference (of the message) passes to the storage. */
MSA_API msa_storage *msa_storage_from_descriptor(int descriptor, size_t bytes);
MSA_API msa_storage *msa_storage_from_name(const char *name, size_t bytes);

/* Count a message under way (1) or one that will not come (-1). Nothing happens where memory isn't shared by name. */
MSA_API void msa_shared_count(const msa_storage *s, int change);
/* This process ends: its references by name go. The memory stays mapped. */
MSA_API void msa_shared_leave(void);

#endif
