/* Matrix products on bare memory, any strides, any type. */
#ifndef MSA_CPU_GEMM_H
#define MSA_CPU_GEMM_H

#include "msadapter/dtype.h"

/* A matrix: element (i, j) is at data[i * row + j * column], strides in elements. */
typedef struct {
    const void *data;
    int64_t row, column;
} msa_matrix;

/* c = alpha * a @ b + beta * c, with a (m, k), b (k, n) and c (m, n), c's rows contiguous and `ldc` apart. Where beta is 0, c is not
 * read. Types: float32, float64, complex, integers (wrapping). 0, or -1 with an error. */
int msa_gemm(msa_dtype dtype, int64_t m, int64_t n, int64_t k, msa_scalar alpha, msa_matrix a, msa_matrix b,
             msa_scalar beta, void *c, int64_t ldc);

/* `batch` products: matrix t starts at data + t * step (elements). Shares them out between threads where that pays. */
typedef struct {
    int64_t a, b, c;
} msa_batch_steps;
int msa_gemm_batched(msa_dtype dtype, int64_t batch, msa_batch_steps steps, int64_t m, int64_t n, int64_t k, msa_scalar alpha,
                     msa_matrix a, msa_matrix b, msa_scalar beta, void *c, int64_t ldc);

#endif
