/* Kernels over batches of matrices: orthogonal factorisations, eigenvalues, singular values and least squares.
 * A is (..., m, n), k = min(m, n). Results are column-major, as LAPACK leaves them. */
#include <complex.h>

#include "cpu/lapack.h"
#include "cpu/linalg.h"
#include "msadapter/ops.h"
#include "ops/kernels.h"

#define MATRIX_SIZES(T) \
    const int64_t m = (T)->sizes[(T)->ndim - 2], n = (T)->sizes[(T)->ndim - 1], k = m < n ? m : n, count = msa_matrices_count(T); \
    const msa_dtype type = (msa_dtype)(T)->dtype

/* LAPACK's scaling ends the process where a norm is infinite or NaN: such input must not reach it. */
static int check_finite(const char *name, msa_tensor *t) {
    msa_auto msa_tensor *finite = msa_isfinite(t), *all = finite ? msa_all(finite) : NULL;
    if (!all) return -1;
    if (*(const uint8_t *)msa_data(all)) return 0;
    return msa_fail(MSA_LINALG_ERROR, "%s: The algorithm failed to converge because the input matrix contained non-finite values.", name);
}

int geqrf_cpu(msa_tensor *self, msa_tensor **results) {
    if (msa_matrices_check("torch.geqrf", self) != 0) return -1;
    MATRIX_SIZES(self);
    msa_auto msa_tensor *a = msa_matrices_copy(self), *tau = msa_batch_new(self, k, type);
    if (!a || !tau) return -1;
    int info;
    for (int64_t i = 0; i < count && k; i++)
        if (msa_lapack_geqrf(type, (int)m, (int)n, msa_matrix_at(a, i, m * n), msa_matrix_at(tau, i, k), &info) != 0) return -1;
    results[0] = msa_take(a);
    results[1] = msa_take(tau);
    return 0;
}

/* The first n columns of the product of k reflections, column i of `input` holding the i-th below its diagonal. */
msa_tensor *householder_product_cpu(msa_tensor *input, msa_tensor *tau) {
    if (msa_matrices_check("torch.linalg.householder_product", input) != 0) return NULL;
    const int64_t m = input->sizes[input->ndim - 2], n = input->sizes[input->ndim - 1], k = tau->ndim ? tau->sizes[tau->ndim - 1] : 0;
    if (m < n || n < k || tau->ndim != input->ndim - 1 || memcmp(tau->sizes, input->sizes, sizeof(int64_t) * (size_t)(tau->ndim - 1)))
        return msa_fail_null(MSA_RUNTIME_ERROR, "torch.linalg.householder_product: input %s and tau %s do not fit: input.shape[-2] >= input.shape[-1] >= "
                             "tau.shape[-1] and equal batches are expected", msa_sizes_text(msa_sizes(input)), msa_sizes_text(msa_sizes(tau)));
    if (tau->dtype != input->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "torch.linalg.householder_product: tau dtype %s does not match input dtype %s",
                             msa_dtype_type_name((msa_dtype)tau->dtype), msa_dtype_type_name((msa_dtype)input->dtype));
    msa_auto msa_tensor *q = msa_matrices_copy(input), *t = msa_contiguous_values(tau);
    if (!q || !t) return NULL;
    int info;
    for (int64_t i = 0; i < msa_matrices_count(input) && n; i++)
        if (msa_lapack_orgqr((msa_dtype)input->dtype, (int)m, (int)n, (int)k, msa_matrix_at(q, i, m * n), msa_matrix_at(t, i, k), &info) != 0) return NULL;
    return msa_take(q);
}

msa_tensor *ormqr_cpu(msa_tensor *self, msa_tensor *tau, msa_tensor *other, bool left, bool transpose) {
    if (msa_matrices_check("torch.ormqr", self) != 0 || msa_matrices_check("torch.ormqr", other) != 0) return NULL;
    const int64_t rows = other->sizes[other->ndim - 2], columns = other->sizes[other->ndim - 1], order = left ? rows : columns;
    const int64_t k = tau->ndim ? tau->sizes[tau->ndim - 1] : 0, n = self->sizes[self->ndim - 1], batch = self->ndim - 2;
    if (self->sizes[self->ndim - 2] != order || k > n || k > order || tau->ndim != self->ndim - 1 || other->ndim != self->ndim ||
        memcmp(tau->sizes, self->sizes, sizeof(int64_t) * (size_t)batch) || memcmp(other->sizes, self->sizes, sizeof(int64_t) * (size_t)batch))
        return msa_fail_null(MSA_RUNTIME_ERROR, "torch.ormqr: other.shape[%d] must be equal to input.shape[-2], and tau.shape[-1] at most input.shape[-1]; got "
                             "input %s, tau %s and other %s", left ? -2 : -1, msa_sizes_text(msa_sizes(self)), msa_sizes_text(msa_sizes(tau)),
                             msa_sizes_text(msa_sizes(other)));
    if (tau->dtype != self->dtype || other->dtype != self->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "torch.ormqr: Expected input, tau and other to have the same dtype");
    msa_auto msa_tensor *a = msa_matrices_copy(self), *t = msa_contiguous_values(tau), *c = msa_matrices_copy(other);
    if (!a || !t || !c) return NULL;
    int info;
    for (int64_t i = 0; i < msa_matrices_count(other) && rows && columns && k; i++)
        if (msa_lapack_ormqr((msa_dtype)self->dtype, left ? 'L' : 'R', transpose, (int)rows, (int)columns, (int)k, msa_matrix_at(a, i, order * n),
                             msa_matrix_at(t, i, k), msa_matrix_at(c, i, rows * columns), &info) != 0)
            return NULL;
    return msa_take(c);
}

int qr_cpu(msa_tensor *A, const char *mode, msa_tensor **results) {
    if (msa_matrices_check("linalg.qr", A) != 0) return -1;
    const bool complete = strcmp(mode, "complete") == 0, only_r = strcmp(mode, "r") == 0;
    if (!complete && !only_r && strcmp(mode, "reduced") != 0)
        return msa_fail(MSA_RUNTIME_ERROR, "qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or 'complete'", mode);
    MATRIX_SIZES(A);
    msa_tensor *factors[2] = {NULL, NULL};
    if (geqrf_cpu(A, factors) != 0) return -1;
    msa_auto msa_tensor *a = factors[0], *tau = factors[1];
    const int64_t kept = complete ? m : k;
    msa_auto msa_tensor *top = msa_narrow(a, -2, 0, kept), *R = top ? msa_triu(top, 0) : NULL;
    if (!R) return -1;
    if (only_r) {
        msa_auto msa_tensor *none = msa_tensor_new(MSA_INTS(0), type);
        if (!none) return -1;
        results[0] = msa_take(none);
        results[1] = msa_take(R);
        return 0;
    }
    msa_auto msa_tensor *Q = msa_matrices_new(A, m, kept, type);
    if (!Q) return -1;
    int info;
    for (int64_t i = 0; i < count && m && kept; i++) {
        char *q = msa_matrix_at(Q, i, m * kept);
        memset(q, 0, (size_t)(m * kept) * msa_dtype_size(type));
        if (k) memcpy(q, msa_matrix_at(a, i, m * n), (size_t)(m * k) * msa_dtype_size(type));
        if (msa_lapack_orgqr(type, (int)m, (int)kept, (int)k, q, msa_matrix_at(tau, i, k), &info) != 0) return -1;
    }
    results[0] = msa_take(Q);
    results[1] = msa_take(R);
    return 0;
}

int eigh_cpu(msa_tensor *A, const char *UPLO, bool compute_v, msa_tensor **results) {
    if (msa_matrices_check_square("linalg.eigh", A) != 0) return -1;
    const char uplo = (char)(UPLO[0] & ~32);
    if ((uplo != 'L' && uplo != 'U') || UPLO[1]) return msa_fail(MSA_RUNTIME_ERROR, "Expected UPLO argument to be 'L' or 'U', but got %s", UPLO);
    if (check_finite("linalg.eigh", A) != 0) return -1;
    MATRIX_SIZES(A);
    msa_auto msa_tensor *V = msa_matrices_copy(A), *L = msa_batch_new(A, n, msa_dtype_real(type)), *info = msa_batch_new(A, -1, MSA_INT32);
    if (!V || !L || !info) return -1;
    for (int64_t i = 0; i < count && k; i++)
        if (msa_lapack_syevd(type, compute_v, uplo, (int)n, msa_matrix_at(V, i, m * n), msa_matrix_at(L, i, n), (int *)msa_data(info) + i) != 0) return -1;
    if (linalg_check_errors_cpu(info, "linalg.eigh", "eigh") != 0) return -1;
    results[0] = msa_take(L);
    results[1] = compute_v ? msa_take(V) : msa_tensor_new(MSA_INTS(0), type);
    return results[1] ? 0 : -1;
}

static int set_identity(msa_tensor *t) {
    if (msa_fill_values(t, msa_int(0)) != 0) return -1;
    msa_auto msa_tensor *diagonal = msa_diagonal(t, 0, -2, -1);
    return diagonal ? msa_fill_values(diagonal, msa_int(1)) : -1;
}

int svd_cpu(msa_tensor *A, bool full_matrices, bool compute_uv, msa_tensor **results) {
    if (msa_matrices_check("linalg.svd", A) != 0 || check_finite("linalg.svd", A) != 0) return -1;
    MATRIX_SIZES(A);
    const int64_t columns = full_matrices ? m : k, rows = full_matrices ? n : k;
    msa_auto msa_tensor *a = msa_matrices_copy(A), *S = msa_batch_new(A, k, msa_dtype_real(type)), *info = msa_batch_new(A, -1, MSA_INT32);
    msa_auto msa_tensor *U = compute_uv ? msa_matrices_new(A, m, columns, type) : msa_tensor_new(MSA_INTS(0), type);
    msa_auto msa_tensor *Vh = compute_uv ? msa_matrices_new(A, rows, n, type) : msa_tensor_new(MSA_INTS(0), type);
    if (!a || !S || !info || !U || !Vh) return -1;
    if (compute_uv && k == 0 && (set_identity(U) != 0 || set_identity(Vh) != 0)) return -1;
    for (int64_t i = 0; i < count && k; i++)
        if (msa_lapack_gesdd(type, !compute_uv ? 'N' : full_matrices ? 'A' : 'S', (int)m, (int)n, msa_matrix_at(a, i, m * n), msa_matrix_at(S, i, k),
                             compute_uv ? msa_matrix_at(U, i, m * columns) : NULL, (int)m, compute_uv ? msa_matrix_at(Vh, i, rows * n) : NULL,
                             (int)rows, (int *)msa_data(info) + i) != 0)
            return -1;
    if (linalg_check_errors_cpu(info, "linalg.svd", "svd") != 0) return -1;
    results[0] = msa_take(U);
    results[1] = msa_take(S);
    results[2] = msa_take(Vh);
    return 0;
}

/* LAPACK's real columns as complex vectors: for a pair of conjugate eigenvalues, columns j and j + 1 are real and imaginary part. */
#define COMPLEX_COLUMNS(NAME, T) \
    static void NAME(int64_t n, const T complex *w, const T *from, T complex *to) { \
        for (int64_t j = 0; j < n; j++) { \
            const bool pair = cimag(w[j]) != 0 && j + 1 < n; \
            for (int64_t i = 0; i < n; i++) { \
                const T re = from[j * n + i], im = pair ? from[(j + 1) * n + i] : 0; \
                to[j * n + i] = re + im * (T complex)I; \
                if (pair) to[(j + 1) * n + i] = re - im * (T complex)I; \
            } \
            j += pair; \
        } \
    }
COMPLEX_COLUMNS(complex_columns_single, float)
COMPLEX_COLUMNS(complex_columns_double, double)

int eig_cpu(msa_tensor *self, bool compute_v, msa_tensor **results) {
    if (msa_matrices_check_square("linalg.eig", self) != 0) return -1;
    MATRIX_SIZES(self);
    const msa_dtype wide = msa_dtype_complex(type);
    msa_auto msa_tensor *finite = msa_isfinite(self), *all = finite ? msa_all(finite) : NULL;
    if (!all) return -1;
    if (!*(const uint8_t *)msa_data(all)) return msa_fail(MSA_RUNTIME_ERROR, "torch.linalg.eig: input tensor should not contain infs or NaNs.");
    msa_auto msa_tensor *a = msa_matrices_copy(self), *L = msa_batch_new(self, n, wide), *info = msa_batch_new(self, -1, MSA_INT32);
    msa_auto msa_tensor *V = compute_v ? msa_matrices_new(self, n, n, wide) : msa_tensor_new(MSA_INTS(0), wide);
    msa_auto_free void *columns = msa_malloc((size_t)(n * n) * 16 + 16);
    if (!a || !L || !info || !V || !columns) return -1;
    for (int64_t i = 0; i < count && k; i++) {
        void *w = msa_matrix_at(L, i, n), *v = compute_v ? msa_matrix_at(V, i, m * n) : NULL;
        if (msa_lapack_geev(type, (int)n, msa_matrix_at(a, i, m * n), w, !compute_v ? NULL : type == wide ? v : columns, (int *)msa_data(info) + i) != 0)
            return -1;
        if (compute_v && type == MSA_FLOAT32) complex_columns_single(n, w, columns, v);
        if (compute_v && type == MSA_FLOAT64) complex_columns_double(n, w, columns, v);
    }
    if (linalg_check_errors_cpu(info, "torch.linalg.eig", "eig") != 0) return -1;
    results[0] = msa_take(L);
    results[1] = msa_take(V);
    return 0;
}

/* X (..., n, columns) that minimises |A X - B|. X comes as the first n of max(m, n) rows; the others hold what is left of B. */
int lstsq_cpu(msa_tensor *A, msa_tensor *B, double rcond, const char *driver, msa_tensor **results) {
    if (msa_matrices_check("torch.linalg.lstsq", A) != 0 || msa_matrices_check("torch.linalg.lstsq", B) != 0) return -1;
    if (A->dtype != B->dtype) return msa_fail(MSA_RUNTIME_ERROR, "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype %s "
                                              "and other's dtype %s", msa_dtype_type_name((msa_dtype)A->dtype), msa_dtype_type_name((msa_dtype)B->dtype));
    if (check_finite("torch.linalg.lstsq", A) != 0 || check_finite("torch.linalg.lstsq", B) != 0) return -1;
    MATRIX_SIZES(A);
    const char which = strcmp(driver, "gels") == 0 ? 'l' : strcmp(driver, "gelsy") == 0 ? 'y' : strcmp(driver, "gelsd") == 0 ? 'd' :
                       strcmp(driver, "gelss") == 0 ? 's' : 0;
    if (!which) return msa_fail(MSA_RUNTIME_ERROR, "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
    if (B->ndim != A->ndim || B->sizes[B->ndim - 2] != m || memcmp(A->sizes, B->sizes, sizeof(int64_t) * (size_t)(A->ndim - 2)))
        return msa_fail(MSA_RUNTIME_ERROR, "torch.linalg.lstsq: input.size(-2) should match other.size(-2)");
    const int64_t columns = B->sizes[B->ndim - 1], high = m > n ? m : n;
    msa_auto msa_tensor *a = msa_matrices_copy(A), *X = msa_matrices_new(B, high, columns, type), *info = msa_batch_new(A, -1, MSA_INT32);
    msa_auto msa_tensor *rank = which == 'l' ? msa_tensor_new(MSA_INTS(0), MSA_INT64) : msa_batch_new(A, -1, MSA_INT64);
    const bool has_values = which == 'd' || which == 's';
    msa_auto msa_tensor *S = has_values ? msa_batch_new(A, k, msa_dtype_real(type)) : msa_tensor_new(MSA_INTS(0), msa_dtype_real(type));
    if (!a || !X || !info || !rank || !S || msa_fill_values(X, msa_int(0)) != 0) return -1;
    msa_auto msa_tensor *top = msa_narrow(X, -2, 0, m);
    if (!top || msa_copy_values(top, B) != 0) return -1;
    for (int64_t i = 0; i < count && k && columns; i++) {
        int found = 0;
        if (msa_lapack_lstsq(type, which, (int)m, (int)n, (int)columns, msa_matrix_at(a, i, m * n), msa_matrix_at(X, i, high * columns), rcond, &found,
                             has_values ? msa_matrix_at(S, i, k) : NULL, (int *)msa_data(info) + i) != 0)
            return -1;
        if (which != 'l') ((int64_t *)msa_data(rank))[i] = found;
    }
    if (k == 0 && msa_fill_values(X, msa_int(0)) != 0) return -1;
    if (linalg_check_errors_cpu(info, "torch.linalg.lstsq", "lstsq") != 0) return -1;
    results[0] = msa_take(X);
    results[1] = msa_take(rank);
    results[2] = msa_take(S);
    return 0;
}
