/* Mixed precision: which operators run in a lower precision, which in float32, and the converted weights that are kept meanwhile.
 *
 * An entry point whose row has an `autocast` policy asks, while autocast is on, what its tensors should be converted to. There is one
 * setting for "cpu" and one for "cuda", with the lists that PyTorch has for each; the latter wins where both are on. */
#ifndef MSA_AUTOGRAD_AUTOCAST_H
#define MSA_AUTOGRAD_AUTOCAST_H

#include "msadapter/autograd.h"

typedef enum {
    MSA_AUTOCAST_LOWER,
    MSA_AUTOCAST_CUDA_LOWER,
    MSA_AUTOCAST_FLOAT32,
    MSA_AUTOCAST_CPU_FLOAT32,
    MSA_AUTOCAST_CUDA_FLOAT32,
    MSA_AUTOCAST_PROMOTE,
    MSA_AUTOCAST_CUDA_PROMOTE
} msa_autocast_policy;

extern _Thread_local bool msa_autocast_on; /* whether entry points ask at all */

/* The dtype that the policy converts these tensors to, or MSA_NO_DTYPE to leave them. */
msa_dtype msa_autocast_target(msa_autocast_policy policy, msa_tensors tensors);
/* t, or its conversion where it is a floating tensor of at most 32 bits and of another dtype; NULL stays NULL. */
int msa_autocast_tensor(msa_tensor *t, msa_dtype to, msa_tensor **result);
msa_list *msa_autocast_list(msa_tensors tensors, msa_dtype to);

#endif
