/* A process group: a mesh, and a thread that runs the collectives one after the other, in the order in which they were
 * started. */
#ifndef MSA_PARALLEL_GROUP_H
#define MSA_PARALLEL_GROUP_H

#include "parallel/combine.h"
#include "parallel/mesh.h"
#include "tensor/internal.h"

typedef struct msa_group msa_group;
typedef struct msa_work msa_work;

typedef enum {
    MSA_BROADCAST,      /* outputs[0], root */
    MSA_ALL_REDUCE,     /* outputs[0], op */
    MSA_REDUCE,         /* outputs[0], op, root */
    MSA_ALL_GATHER,     /* outputs[size], inputs[0] */
    MSA_GATHER,         /* outputs[size] on root, inputs[0] */
    MSA_SCATTER,        /* outputs[0], inputs[size] on root */
    MSA_REDUCE_SCATTER, /* outputs[0], inputs[size], op */
    MSA_ALL_TO_ALL,     /* outputs[size], inputs[size] */
    MSA_BARRIER,
    MSA_COLLECTIVES,
} msa_collective;

/* Takes over the mesh. */
MSA_API msa_group *msa_group_new(msa_mesh *mesh, int64_t timeout_ms);
/* Waits for nothing: what has not run fails. Works that are held stay valid. */
MSA_API void msa_group_release(msa_group *group);

/* Start; tensors are contiguous, held until the work is released, and not to be touched before it is done. NULL with an
 * error. */
MSA_API msa_work *msa_group_start(msa_group *group, msa_collective what, msa_reduce_op op, int root,
                                  msa_tensors outputs, msa_tensors inputs);
MSA_API msa_work *msa_group_send(msa_group *group, int to, uint32_t tag, msa_tensor *tensor);
MSA_API msa_work *msa_group_receive(msa_group *group, int from, uint32_t tag, msa_tensor *tensor); /* MSA_ANY_PEER */

MSA_API bool msa_work_done(msa_work *work);
/* 0, -1 with an error, 1 when it is not done by the deadline. */
MSA_API int msa_work_wait(msa_work *work, int64_t deadline);
MSA_API int msa_work_source(const msa_work *work); /* of a receive that is done */
/* A message that is not done is given up. */
MSA_API void msa_work_cancel(msa_work *work);
MSA_API bool msa_work_is_send(const msa_work *work);
/* May be called before it is done: the group then keeps it until it is. Tensors are only released by threads that call
 * into this file, never by the group's own. */
MSA_API void msa_work_release(msa_work *work);

#endif
