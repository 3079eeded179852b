/* The geometry of gather and scatter: for each element of index its place in `self` along dim, the same place elsewhere, and the element
 * of the other operand that it is matched with. */
#ifndef MSA_CPU_SCATTER_H
#define MSA_CPU_SCATTER_H

#include "tensor/internal.h"

/* Seen as rows: the last dimension of index, `inner` long. Steps and strides are in elements. */
typedef struct {
    msa_tensor *index; /* contiguous int64, in range; owned */
    int ndim, dim;
    const int64_t *sizes;
    int64_t self_strides[MSA_MAX_DIMS], other_strides[MSA_MAX_DIMS];
    int64_t along; /* self's stride of dim */
    int64_t rows, inner, self_step, other_step;
} msa_scatter_rows;

/* `other` NULL: one element stands for all. With `into_self` false (gather) only index is checked against self. */
int msa_scatter_rows_open(msa_scatter_rows *r, const char *op, const msa_tensor *self, int64_t dim, msa_tensor *index, const msa_tensor *other,
                          bool into_self);
static inline void msa_scatter_rows_close(msa_scatter_rows *r) { msa_tensor_release(r->index); }
#define msa_auto_scatter_rows __attribute__((cleanup(msa_scatter_rows_close)))

/* Where a row begins in self (without dim) and in the other operand. */
static inline void msa_scatter_row(const msa_scatter_rows *r, int64_t row, int64_t *self_at, int64_t *other_at) {
    int64_t here = 0, there = 0;
    for (int d = r->ndim - 2; d >= 0; d--) {
        const int64_t at = row % r->sizes[d];
        row /= r->sizes[d];
        here += at * r->self_strides[d];
        there += at * r->other_strides[d];
    }
    *self_at = here;
    *other_at = there;
}

#endif
