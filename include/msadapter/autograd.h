/* Automatic differentiation: recording, and walking the record backwards. */
#ifndef MSADAPTER_AUTOGRAD_H
#define MSADAPTER_AUTOGRAD_H

#include "msadapter/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct msa_node msa_node;

/* Recording is on at first, thread by thread; each call returns what was set before. */
MSA_API bool msa_grad_enabled(void);
MSA_API bool msa_set_grad_enabled(bool enabled);

MSA_API bool msa_tensor_requires_grad(const msa_tensor *t);
MSA_API int msa_tensor_set_requires_grad(msa_tensor *t, bool requires_grad);
MSA_API bool msa_tensor_is_leaf(msa_tensor *t);
MSA_API msa_tensor *msa_tensor_grad(const msa_tensor *t);              /* borrowed, or NULL */
MSA_API int msa_tensor_set_grad(msa_tensor *t, msa_tensor *grad);      /* NULL clears it */
MSA_API int msa_tensor_retain_grad(msa_tensor *t);                     /* keep a non-leaf's gradient too */
MSA_API int msa_tensor_detach_(msa_tensor *t);

/* Add the gradients of `outputs` to the leaves' grad. `cotangents` holds what comes in for each output (NULL for 1 of a
 * one-element output), or is empty. `inputs` (may be empty) limits it to these leaves. */
MSA_API int msa_backward(msa_tensors outputs, msa_tensors cotangents, bool retain_graph, bool create_graph,
                         msa_tensors inputs);
/* Gradients towards `inputs` into `results` (owned; NULL where unused, an error unless allow_unused). */
MSA_API int msa_grad(msa_tensors outputs, msa_tensors inputs, msa_tensors cotangents, bool retain_graph,
                     bool create_graph, bool allow_unused, msa_tensor **results);

/* Mixed precision, thread by thread; device 0 is "cpu" (bfloat16 at first), 1 is "cuda" (float16). Entering an autocast nests by 1, leaving
 * it by -1; at 0 the converted weights are to be cleared. */
MSA_API bool msa_autocast_enabled(int device);
MSA_API void msa_set_autocast_enabled(int device, bool enabled);
MSA_API msa_dtype msa_autocast_dtype(int device);
MSA_API void msa_set_autocast_dtype(int device, msa_dtype dtype);
MSA_API bool msa_autocast_cache_enabled(void);
MSA_API void msa_set_autocast_cache_enabled(bool enabled);
MSA_API int msa_autocast_nest(int change);
MSA_API void msa_clear_autocast_cache(void);

#ifdef __cplusplus
}
#endif
#endif
