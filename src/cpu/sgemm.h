/* Our own single precision products: register tiles for each instruction set, and a blocked product made of them. */
#ifndef MSA_CPU_SGEMM_H
#define MSA_CPU_SGEMM_H

#include "cpu/gemm.h"

/* The tiles of one instruction set. A tile of c has up to `rows` x `columns` elements, `ldc` apart; depth k. */
typedef struct {
    const char *name;
    int rows, columns;
    /* a is a panel: k columns of `rows` elements. b is a panel: k rows of `columns` elements. c = alpha * a @ b + beta * c, of which
     * m rows and n columns exist. */
    void (*packed)(int64_t k, const float *a, const float *b, float alpha, float beta, float *c, int64_t ldc, int m, int n);
    /* a lies by rows, `lda` apart; b is a panel. c = a @ b, all columns, m rows. */
    void (*by_rows)(int64_t k, const float *a, int64_t lda, const float *b, float *c, int64_t ldc, int m);
    /* a is (k, m...) and b (k, columns...), rows `lda` and `ldb` apart: c (+)= a^T @ b, all columns, m rows. a may be read up to
     * `rows` elements beyond its row's start. */
    void (*by_columns)(int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, bool add, float *c, int64_t ldc, int m);
    /* Panels of a (m, k) with any strides, and one panel of b: n <= columns. Missing rows and columns are zeros. */
    void (*pack_a)(int64_t m, int64_t k, const float *a, int64_t row, int64_t column, float *to);
    void (*pack_b)(int64_t n, int64_t k, const float *b, int64_t row, int64_t column, float *to);
} msa_sgemm_tiles;

extern const msa_sgemm_tiles *msa_sgemm; /* for this processor */
extern const msa_sgemm_tiles msa_sgemm_baseline, msa_sgemm_avx2, msa_sgemm_avx512;

/* c = alpha * a @ b + beta * c, any strides of a and b. -1 with an error when memory is short. */
int msa_sgemm_run(int64_t m, int64_t n, int64_t k, float alpha, msa_matrix a, msa_matrix b, float beta, float *c, int64_t ldc);

#endif
