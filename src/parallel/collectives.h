/* Collective operations over a mesh, on contiguous buffers. Each returns when its part is done; all processes call the
 * same ones in the same order, numbered by `tag`. -1 with an error; the caller then tells the others (msa_mesh_abort).
 */
#ifndef MSA_PARALLEL_COLLECTIVES_H
#define MSA_PARALLEL_COLLECTIVES_H

#include "parallel/combine.h"
#include "parallel/mesh.h"

typedef struct {
    void *data;
    size_t bytes;
} msa_block;

typedef struct {
    msa_mesh *mesh;
    uint64_t tag;
    int64_t deadline, timeout_ms; /* timeout_ms for messages */
} msa_call;

/* Everybody has root's block. A binomial tree. */
int msa_broadcast_blocks(const msa_call *call, msa_block block, int root);
/* Everybody has the same combination of all blocks, bit for bit. A ring: each part of the block goes round twice. */
int msa_all_reduce_blocks(const msa_call *call, msa_reduce_op op, msa_dtype dtype, void *data, int64_t n);
/* Root has the combination; the other blocks stay. A binomial tree. */
int msa_reduce_blocks(const msa_call *call, msa_reduce_op op, msa_dtype dtype, void *data, int64_t n, int root);
/* Process r has the combination of all the r-th blocks of n elements. A ring. `out` is none of `in`. */
int msa_reduce_scatter_blocks(const msa_call *call, msa_reduce_op op, msa_dtype dtype, void *out, void *const *in,
                              int64_t n);
/* The block `send[r]` goes to process r, and comes to rest in `receive[own rank]` there. NULL: nothing is sent or
 * received. Gathering, scattering and exchanging are all of this kind. */
int msa_exchange_blocks(const msa_call *call, const msa_block *send, const msa_block *receive);
/* Nobody returns before everybody has called. */
int msa_barrier_blocks(const msa_call *call);

#endif
