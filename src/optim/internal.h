/* The walk over all elements of all parameters that the steps share. */
#ifndef MSA_OPTIM_INTERNAL_H
#define MSA_OPTIM_INTERNAL_H

#include "msadapter/optim.h"
#include "tensor/internal.h"

enum { MSA_OPTIM_LISTS = 5 };

/* Update n elements; at[k] points into list k (0: the parameter), NULL where the list is empty. `index` is the
 * parameter's. */
typedef void (*msa_optim_update)(void *const *at, int64_t n, int64_t index, const void *context);

/* lists[0] are the parameters, lists[1] the gradients, which alone are only read. Bit k of `optional` lets list k be
 * empty. `update` has a function for float and one for double; complex numbers are pairs of them. Tensors whose layout
 * or element type does not fit their parameter's go through copies, and so do parameters with gaps or of 16-bit types.
 * Work is cut among the threads without regard to where one tensor ends and the next begins. */
int msa_optim_run(const char *op, const msa_tensors *lists, int n_lists, unsigned optional,
                  const msa_optim_update update[2], const void *context);

#endif
