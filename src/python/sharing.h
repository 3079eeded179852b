/* Storages in memory that processes share, as torch.multiprocessing sends them. */
#ifndef MSA_PYTHON_SHARING_H
#define MSA_PYTHON_SHARING_H

#include "python/internal.h"
#include "tensor/shared.h"

extern msa_sharing msa_python_sharing; /* the strategy of share_memory_() */

/* Give a storage type its methods (_share_fd_cpu_, _new_shared, ...). */
int msa_python_add_sharing(PyObject *module, PyTypeObject *type);

#endif
