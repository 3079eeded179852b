/* What the kernels over batches of matrices share: checks, column-major copies, and messages about LAPACK's info. */
#ifndef MSA_CPU_LINALG_H
#define MSA_CPU_LINALG_H

#include "tensor/internal.h"

/* Kernels name themselves as Python does: "linalg.inv". -1 with the error set. */
int msa_matrices_check(const char *name, const msa_tensor *t); /* two dimensions or more, a type that LAPACK has */
int msa_matrices_check_square(const char *name, const msa_tensor *t);
int64_t msa_matrices_count(const msa_tensor *t); /* product of the leading sizes */
/* (batch of `like`..., rows, columns), each matrix column-major, uninitialised. */
msa_tensor *msa_matrices_new(const msa_tensor *like, int64_t rows, int64_t columns, msa_dtype dtype);
msa_tensor *msa_matrices_copy(msa_tensor *t);
/* (batch of `like`..., n), or without n for n < 0; zeros. */
msa_tensor *msa_batch_new(const msa_tensor *like, int64_t n, msa_dtype dtype);
/* t's matrices expanded to the leading sizes `batch`. */
msa_tensor *msa_matrices_expanded(msa_tensor *t, msa_ints batch);
static inline char *msa_matrix_at(const msa_tensor *t, int64_t index, int64_t elements) {
    return (char *)msa_data(t) + index * elements * (int64_t)msa_dtype_size((msa_dtype)t->dtype);
}

#endif
