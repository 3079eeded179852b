/* Kernels over batches of matrices: triangular factorisations (Cholesky, LU, LDL) and what solves with them.
 * A is (..., n, n) unless said otherwise, B (..., n, k). Results are column-major, as LAPACK leaves them. */
#include "cpu/linalg.h"

#include <limits.h>
#include <stdio.h>

#include "cpu/lapack.h"
#include "msadapter/ops.h"
#include "ops/kernels.h"

int msa_matrices_check(const char *name, const msa_tensor *t) {
    if (t->ndim < 2) return msa_fail(MSA_RUNTIME_ERROR, "%s: The input tensor A must have at least 2 dimensions.", name);
    if (t->dtype < MSA_FLOAT16)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: Expected a floating point or complex tensor as input. Got %s", name, msa_dtype_type_name((msa_dtype)t->dtype));
    if (t->dtype < MSA_FLOAT32)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: Low precision dtypes not supported. Got %s", name, msa_dtype_type_name((msa_dtype)t->dtype));
    if (t->sizes[t->ndim - 1] > INT_MAX / 8 || t->sizes[t->ndim - 2] > INT_MAX / 8)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: matrices of %lld by %lld are too large for LAPACK", name, (long long)t->sizes[t->ndim - 2],
                        (long long)t->sizes[t->ndim - 1]);
    return 0;
}

int msa_matrices_check_square(const char *name, const msa_tensor *t) {
    if (msa_matrices_check(name, t) != 0) return -1;
    if (t->sizes[t->ndim - 1] != t->sizes[t->ndim - 2])
        return msa_fail(MSA_RUNTIME_ERROR, "%s: A must be batches of square matrices, but they are %lld by %lld matrices", name,
                        (long long)t->sizes[t->ndim - 2], (long long)t->sizes[t->ndim - 1]);
    return 0;
}

int64_t msa_matrices_count(const msa_tensor *t) { return msa_product((msa_ints){t->sizes, t->ndim - 2}); }

msa_tensor *msa_matrices_new(const msa_tensor *like, int64_t rows, int64_t columns, msa_dtype dtype) {
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    const int n = like->ndim;
    memcpy(sizes, like->sizes, sizeof(int64_t) * (size_t)n);
    sizes[n - 2] = columns;
    sizes[n - 1] = rows;
    msa_contiguous_strides(n, sizes, strides);
    sizes[n - 2] = rows;
    sizes[n - 1] = columns;
    const int64_t step = strides[n - 2];
    strides[n - 2] = strides[n - 1];
    strides[n - 1] = step;
    return msa_tensor_new_strided((msa_ints){sizes, n}, (msa_ints){strides, n}, dtype);
}

msa_tensor *msa_matrices_copy(msa_tensor *t) {
    msa_auto msa_tensor *copy = msa_matrices_new(t, t->sizes[t->ndim - 2], t->sizes[t->ndim - 1], (msa_dtype)t->dtype);
    return copy && msa_copy_values(copy, t) == 0 ? msa_take(copy) : NULL;
}

msa_tensor *msa_batch_new(const msa_tensor *like, int64_t n, msa_dtype dtype) {
    int64_t sizes[MSA_MAX_DIMS];
    int ndim = like->ndim - 2;
    memcpy(sizes, like->sizes, sizeof(int64_t) * (size_t)ndim);
    if (n >= 0) sizes[ndim++] = n;
    msa_auto msa_tensor *t = msa_tensor_new((msa_ints){sizes, ndim}, dtype);
    return t && msa_fill_values(t, msa_int(0)) == 0 ? msa_take(t) : NULL;
}

msa_tensor *msa_matrices_expanded(msa_tensor *t, msa_ints batch) {
    int64_t sizes[MSA_MAX_DIMS];
    if (batch.n + 2 > MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "at most %d dimensions are supported", MSA_MAX_DIMS);
    memcpy(sizes, batch.data, sizeof(int64_t) * (size_t)batch.n);
    sizes[batch.n] = t->sizes[t->ndim - 2];
    sizes[batch.n + 1] = t->sizes[t->ndim - 1];
    return msa_expand(t, (msa_ints){sizes, batch.n + 2}, false);
}

/* What LAPACK says about the first matrix that it could not treat. */
int linalg_check_errors_cpu(msa_tensor *info, const char *name, const char *what) {
    msa_auto msa_tensor *plain = msa_contiguous_values(info);
    if (!plain) return -1;
    const int32_t *data = msa_data(plain);
    for (int64_t i = 0; i < plain->numel; i++) {
        if (data[i] == 0) continue;
        char where[48] = "";
        if (info->ndim) snprintf(where, sizeof where, "(Batch element %lld): ", (long long)i);
        const int n = data[i];
        if (n < 0 && strcmp(what, "svd") == 0)
            return msa_fail(MSA_LINALG_ERROR, "%s: %sThe algorithm failed to converge because the input matrix contained non-finite values.", name, where);
        if (n < 0) return msa_fail(MSA_RUNTIME_ERROR, "%s: %sArgument %d has illegal value.", name, where, -n);
        if (strcmp(what, "cholesky") == 0)
            return msa_fail(MSA_LINALG_ERROR, "%s: %sThe factorization could not be completed because the input is not positive-definite (the leading minor of "
                            "order %d is not positive-definite).", name, where, n);
        if (strcmp(what, "inv") == 0)
            return msa_fail(MSA_LINALG_ERROR, "%s: %sThe diagonal element %d is zero, the inversion could not be completed because the input matrix is "
                            "singular.", name, where, n);
        if (strcmp(what, "solve") == 0)
            return msa_fail(MSA_LINALG_ERROR, "%s: %sThe solver failed because the input matrix is singular.", name, where);
        if (strcmp(what, "lu") == 0)
            return msa_fail(MSA_LINALG_ERROR, "%s: %sU[%d,%d] is zero and using it on lu_solve would result in a division by zero. If you still want to perform "
                            "the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)", name, where, n, n);
        if (strcmp(what, "ldl") == 0)
            return msa_fail(MSA_LINALG_ERROR, "%s: %sThe factorization could not be completed because D[%d,%d] is zero.", name, where, n, n);
        if (strcmp(what, "lstsq") == 0)
            return msa_fail(MSA_LINALG_ERROR, "%s: %sThe least squares solution could not be computed because the input matrix does not have full rank (error "
                            "code: %d).", name, where, n);
        return msa_fail(MSA_LINALG_ERROR, "%s: %sThe algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated %s "
                        "(error code: %d).", name, where, strcmp(what, "svd") == 0 ? "singular values" : "eigenvalues", n);
    }
    return 0;
}

int cholesky_cpu(msa_tensor *self, bool upper, bool check_errors, msa_tensor **results) {
    if (msa_matrices_check_square("linalg.cholesky", self) != 0) return -1;
    msa_auto msa_tensor *L = msa_matrices_copy(self), *info = msa_batch_new(self, -1, MSA_INT32);
    if (!L || !info) return -1;
    const msa_dtype type = (msa_dtype)self->dtype;
    const int64_t n = self->sizes[self->ndim - 1], count = msa_matrices_count(self), size = (int64_t)msa_dtype_size(type);
    for (int64_t i = 0; i < count && n; i++) {
        char *a = msa_matrix_at(L, i, n * n);
        ((int32_t *)msa_data(info))[i] = msa_lapack_potrf(type, upper ? 'U' : 'L', (int)n, a);
        for (int64_t j = 0; j < n; j++) /* the other triangle */
            memset(a + (j * n + (upper ? j + 1 : 0)) * size, 0, (size_t)((upper ? n - j - 1 : j) * size));
    }
    if (check_errors && linalg_check_errors_cpu(info, "linalg.cholesky_ex", "cholesky") != 0) return -1;
    results[0] = msa_take(L);
    results[1] = msa_take(info);
    return 0;
}

int lu_factor_cpu(msa_tensor *A, bool pivot, bool check_errors, msa_tensor **results) {
    if (msa_matrices_check("torch.lu_factor", A) != 0) return -1;
    if (!pivot) return msa_fail(MSA_RUNTIME_ERROR, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
    const int64_t m = A->sizes[A->ndim - 2], n = A->sizes[A->ndim - 1], k = m < n ? m : n, count = msa_matrices_count(A);
    msa_auto msa_tensor *LU = msa_matrices_copy(A), *pivots = msa_batch_new(A, k, MSA_INT32), *info = msa_batch_new(A, -1, MSA_INT32);
    if (!LU || !pivots || !info) return -1;
    for (int64_t i = 0; i < count && k; i++)
        ((int32_t *)msa_data(info))[i] = msa_lapack_getrf((msa_dtype)A->dtype, (int)m, (int)n, msa_matrix_at(LU, i, m * n), (int *)msa_data(pivots) + i * k);
    if (check_errors && linalg_check_errors_cpu(info, "linalg.lu_factor_ex", "lu") != 0) return -1;
    results[0] = msa_take(LU);
    results[1] = msa_take(pivots);
    results[2] = msa_take(info);
    return 0;
}

/* Row swaps (..., k), counted from 1, as permutation matrices P (..., m, m) of A = P L U. */
msa_tensor *lu_permutation_cpu(msa_tensor *pivots, int64_t m, msa_dtype dtype) {
    if (pivots->ndim < 1 || pivots->dtype != MSA_INT32)
        return msa_fail_null(MSA_RUNTIME_ERROR, "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.");
    msa_auto msa_tensor *plain = msa_contiguous_values(pivots), *wide = plain ? msa_unsqueeze(plain, -1) : NULL;
    msa_auto msa_tensor *P = wide ? msa_matrices_new(wide, m, m, dtype) : NULL;
    msa_auto_free int64_t *rows = msa_malloc(sizeof(int64_t) * (size_t)(m + 1));
    if (!P || !rows || msa_fill_values(P, msa_int(0)) != 0) return NULL;
    const int64_t k = pivots->sizes[pivots->ndim - 1], count = msa_matrices_count(wide), size = (int64_t)msa_dtype_size(dtype);
    msa_auto msa_tensor *one = msa_tensor_scalar(msa_int(1), dtype);
    if (!one) return NULL;
    for (int64_t b = 0; b < count; b++) {
        const int32_t *swaps = (const int32_t *)msa_data(plain) + b * k;
        for (int64_t i = 0; i < m; i++) rows[i] = i;
        for (int64_t i = 0; i < k; i++) {
            if (swaps[i] < 1 || swaps[i] > m || i >= m)
                return msa_fail_null(MSA_RUNTIME_ERROR, "torch.lu_unpack: LU_pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.");
            const int64_t other = rows[swaps[i] - 1];
            rows[swaps[i] - 1] = rows[i];
            rows[i] = other;
        }
        for (int64_t i = 0; i < m; i++) memcpy(msa_matrix_at(P, b, m * m) + (i * m + rows[i]) * size, msa_data(one), (size_t)size);
    }
    return msa_take(P);
}

int inv_cpu(msa_tensor *A, bool check_errors, msa_tensor **results) {
    if (msa_matrices_check_square("linalg.inv", A) != 0) return -1;
    msa_auto msa_tensor *inverse = msa_matrices_copy(A), *info = msa_batch_new(A, -1, MSA_INT32);
    const int64_t n = A->sizes[A->ndim - 1], count = msa_matrices_count(A);
    msa_auto_free int *pivots = msa_malloc(sizeof(int) * (size_t)(n + 1));
    if (!inverse || !info || !pivots) return -1;
    for (int64_t i = 0; i < count && n; i++) {
        char *a = msa_matrix_at(inverse, i, n * n);
        int *status = (int *)msa_data(info) + i;
        *status = msa_lapack_getrf((msa_dtype)A->dtype, (int)n, (int)n, a, pivots);
        if (*status == 0 && msa_lapack_getri((msa_dtype)A->dtype, (int)n, a, pivots, status) != 0) return -1;
    }
    if (check_errors && linalg_check_errors_cpu(info, "linalg.inv_ex", "inv") != 0) return -1;
    results[0] = msa_take(inverse);
    results[1] = msa_take(info);
    return 0;
}

/* Both sides expanded to a common batch; B copied column-major into *X. */
static int joined(const char *name, msa_tensor *A, msa_tensor *B, bool left, msa_tensor **wide_A, msa_tensor **X) {
    if (msa_matrices_check_square(name, A) != 0 || msa_matrices_check(name, B) != 0) return -1;
    if (A->dtype != B->dtype)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: Expected A and B to have the same dtype, but found A of type %s and B of type %s instead", name,
                        msa_dtype_type_name((msa_dtype)A->dtype), msa_dtype_type_name((msa_dtype)B->dtype));
    const int64_t n = A->sizes[A->ndim - 1];
    if (B->sizes[B->ndim - (left ? 2 : 1)] != n)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: Incompatible shapes of A and B for the equation %s = B (%lldx%lld and %lldx%lld)", name, left ? "AX" : "XA",
                        (long long)n, (long long)n, (long long)B->sizes[B->ndim - 2], (long long)B->sizes[B->ndim - 1]);
    int64_t batch[MSA_MAX_DIMS];
    int ndim;
    if (msa_broadcast_sizes(name, (msa_ints){A->sizes, A->ndim - 2}, (msa_ints){B->sizes, B->ndim - 2}, batch, &ndim) != 0) return -1;
    msa_auto msa_tensor *wide_B = msa_matrices_expanded(B, (msa_ints){batch, ndim});
    if (!wide_B || !(*wide_A = msa_matrices_expanded(A, (msa_ints){batch, ndim}))) return -1;
    return (*X = msa_matrices_copy(wide_B)) ? 0 : -1;
}

/* X = A^-1 B. */
int solve_cpu(msa_tensor *A, msa_tensor *B, bool check_errors, msa_tensor **results) {
    msa_auto msa_tensor *wide = NULL, *X = NULL;
    if (joined("linalg.solve", A, B, true, &wide, &X) != 0) return -1;
    const int64_t n = A->sizes[A->ndim - 1], k = X->sizes[X->ndim - 1], count = msa_matrices_count(X);
    msa_auto msa_tensor *LU = msa_matrices_copy(wide), *info = msa_batch_new(X, -1, MSA_INT32);
    msa_auto_free int *pivots = msa_malloc(sizeof(int) * (size_t)(n + 1));
    if (!LU || !info || !pivots) return -1;
    for (int64_t i = 0; i < count && n; i++) {
        char *a = msa_matrix_at(LU, i, n * n);
        int *status = (int *)msa_data(info) + i;
        *status = msa_lapack_getrf((msa_dtype)A->dtype, (int)n, (int)n, a, pivots);
        if (*status == 0 && k) *status = msa_lapack_getrs((msa_dtype)A->dtype, 'N', (int)n, (int)k, a, pivots, msa_matrix_at(X, i, n * k));
    }
    if (check_errors && linalg_check_errors_cpu(info, "linalg.solve", "solve") != 0) return -1;
    results[0] = msa_take(X);
    results[1] = msa_take(info);
    return 0;
}

/* X = (P L U)^-1 B, or with the adjoint of P L U. */
msa_tensor *lu_solve_cpu(msa_tensor *LU, msa_tensor *pivots, msa_tensor *B, bool adjoint) {
    msa_auto msa_tensor *wide = NULL, *X = NULL;
    if (joined("linalg.lu_solve", LU, B, true, &wide, &X) != 0) return NULL;
    const int64_t n = LU->sizes[LU->ndim - 1], k = X->sizes[X->ndim - 1], count = msa_matrices_count(X);
    if (pivots->dtype != MSA_INT32) return msa_fail_null(MSA_RUNTIME_ERROR, "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32");
    if (pivots->ndim != LU->ndim - 1 || pivots->sizes[pivots->ndim - 1] != n || memcmp(pivots->sizes, LU->sizes, sizeof(int64_t) * (size_t)(LU->ndim - 2)))
        return msa_fail_null(MSA_RUNTIME_ERROR, "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix");
    msa_auto msa_tensor *factors = msa_matrices_copy(wide), *column = msa_unsqueeze(pivots, -1);
    msa_auto msa_tensor *spread = column ? msa_matrices_expanded(column, (msa_ints){X->sizes, X->ndim - 2}) : NULL;
    msa_auto msa_tensor *swaps = spread ? msa_contiguous_values(spread) : NULL;
    if (!factors || !swaps) return NULL;
    const int32_t *rows = msa_data(swaps);
    for (int64_t i = 0; i < swaps->numel; i++)
        if (rows[i] < 1 || rows[i] > n) return msa_fail_null(MSA_RUNTIME_ERROR, "linalg.lu_solve: pivots must be between 1 and %lld inclusive", (long long)n);
    const char trans = !adjoint ? 'N' : msa_is_complex((msa_dtype)LU->dtype) ? 'C' : 'T';
    for (int64_t i = 0; i < count && n && k; i++)
        msa_lapack_getrs((msa_dtype)LU->dtype, trans, (int)n, (int)k, msa_matrix_at(factors, i, n * n), rows + i * n, msa_matrix_at(X, i, n * k));
    return msa_take(X);
}

msa_tensor *solve_triangular_cpu(msa_tensor *self, msa_tensor *B, bool upper, bool left, bool unitriangular) {
    msa_auto msa_tensor *wide = NULL, *X = NULL;
    if (joined("linalg.solve_triangular", self, B, left, &wide, &X) != 0) return NULL;
    const int64_t n = self->sizes[self->ndim - 1], rows = X->sizes[X->ndim - 2], columns = X->sizes[X->ndim - 1], count = msa_matrices_count(X);
    msa_auto msa_tensor *A = msa_matrices_copy(wide);
    if (!A) return NULL;
    for (int64_t i = 0; i < count && rows && columns; i++)
        msa_blas_trsm((msa_dtype)self->dtype, left ? 'L' : 'R', upper ? 'U' : 'L', unitriangular ? 'U' : 'N', (int)rows, (int)columns,
                      msa_matrix_at(A, i, n * n), msa_matrix_at(X, i, rows * columns));
    return msa_take(X);
}

int ldl_factor_cpu(msa_tensor *self, bool hermitian, bool check_errors, msa_tensor **results) {
    if (msa_matrices_check_square("torch.linalg.ldl_factor_ex", self) != 0) return -1;
    const int64_t n = self->sizes[self->ndim - 1], count = msa_matrices_count(self);
    msa_auto msa_tensor *lower = msa_tril(self, 0), *LD = lower ? msa_matrices_copy(lower) : NULL;
    msa_auto msa_tensor *pivots = msa_batch_new(self, n, MSA_INT32), *info = msa_batch_new(self, -1, MSA_INT32);
    if (!LD || !pivots || !info) return -1;
    for (int64_t i = 0; i < count && n; i++)
        if (msa_lapack_sytrf((msa_dtype)self->dtype, hermitian, (int)n, msa_matrix_at(LD, i, n * n), (int *)msa_data(pivots) + i * n,
                             (int *)msa_data(info) + i) != 0)
            return -1;
    if (check_errors && linalg_check_errors_cpu(info, "torch.linalg.ldl_factor_ex", "ldl") != 0) return -1;
    results[0] = msa_take(LD);
    results[1] = msa_take(pivots);
    results[2] = msa_take(info);
    return 0;
}

msa_tensor *ldl_solve_cpu(msa_tensor *LD, msa_tensor *pivots, msa_tensor *B, bool hermitian) {
    msa_auto msa_tensor *wide = NULL, *X = NULL;
    if (joined("torch.linalg.ldl_solve", LD, B, true, &wide, &X) != 0) return NULL;
    const int64_t n = LD->sizes[LD->ndim - 1], k = X->sizes[X->ndim - 1], count = msa_matrices_count(X);
    if (pivots->dtype != MSA_INT32 || pivots->ndim != LD->ndim - 1 || pivots->sizes[pivots->ndim - 1] != n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, and pivots of torch.int32");
    msa_auto msa_tensor *factors = msa_matrices_copy(wide), *column = msa_unsqueeze(pivots, -1);
    msa_auto msa_tensor *spread = column ? msa_matrices_expanded(column, (msa_ints){X->sizes, X->ndim - 2}) : NULL;
    msa_auto msa_tensor *swaps = spread ? msa_contiguous_values(spread) : NULL;
    if (!factors || !swaps) return NULL;
    const int32_t *rows = msa_data(swaps);
    for (int64_t i = 0; i < swaps->numel; i++) {
        const int64_t at = rows[i] < 0 ? -(int64_t)rows[i] : rows[i];
        /* Blocks of two rows come as two equal negative pivots. */
        if (at < 1 || at > n || (rows[i] < 0 && (i + 1) % n == 0 && (n == 1 || rows[i - 1] >= 0)))
            return msa_fail_null(MSA_RUNTIME_ERROR, "torch.linalg.ldl_solve: pivots are not those of a factorization");
        if (rows[i] < 0 && (i + 1) % n != 0) i++;
    }
    for (int64_t i = 0; i < count && n && k; i++)
        msa_lapack_sytrs((msa_dtype)LD->dtype, hermitian, (int)n, (int)k, msa_matrix_at(factors, i, n * n), rows + i * n, msa_matrix_at(X, i, n * k));
    return msa_take(X);
}
