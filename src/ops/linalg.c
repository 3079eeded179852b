/* Gradients of matrix decompositions, and determinants from LU factors. X^H is the conjugate transpose; <X, Y> = tr(X^H Y).
 *
 * Formulas are written over a `scope`, which keeps every tensor made on the way and gives all of them back at its end; an operation on
 * NULL is NULL, so that only the end of a formula is checked. Sources: Giles, "An extended collection of matrix derivative results"
 * (2008); Seeger et al., "Auto-differentiating linear algebra" (2017). */
#include <math.h>

#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

typedef msa_tensor *T;
typedef struct {
    T kept[64];
    int n;
} scope;

static void close_scope(scope *s) {
    for (int i = 0; i < s->n; i++) msa_tensor_release(s->kept[i]);
}
#define SCOPE \
    __attribute__((cleanup(close_scope))) scope scoped = {.n = 0}; \
    scope *const s = &scoped

static T keep(scope *s, T t) {
    if (t && s->n == 64) {
        msa_tensor_release(t);
        return msa_fail_null(MSA_RUNTIME_ERROR, "linalg: a formula keeps too many tensors");
    }
    if (t) s->kept[s->n++] = t;
    return t;
}
static T out(T t) { return msa_tensor_retain(t); }

static T times(scope *s, T a, T b) { return a && b ? keep(s, msa_matmul(a, b)) : NULL; }
static T scale(scope *s, T a, T b) { return a && b ? keep(s, msa_mul(a, b)) : NULL; }
static T ratio(scope *s, T a, T b) { return a && b ? keep(s, msa_div(a, b)) : NULL; }
static T plus(scope *s, T a, T b) { return a && b ? keep(s, msa_add(a, b, msa_int(1))) : NULL; }
static T minus(scope *s, T a, T b) { return a && b ? keep(s, msa_sub(a, b, msa_int(1))) : NULL; }
static T negated(scope *s, T a) { return a ? keep(s, msa_neg(a)) : NULL; }
static T by_number(scope *s, T a, msa_scalar n) { return scale(s, a, keep(s, msa_wrap_number(n))); }
static T conjugate(scope *s, T a) { return a ? keep(s, msa_conj(a)) : NULL; }
static T adjoint(scope *s, T a) { return conjugate(s, a ? keep(s, msa_transpose_int(a, -2, -1)) : NULL); }
static T lower(scope *s, T a, int64_t k) { return a ? keep(s, msa_tril(a, k)) : NULL; }
static T upper_part(scope *s, T a, int64_t k) { return a ? keep(s, msa_triu(a, k)) : NULL; }
static T diagonal(scope *s, T a) { return a ? keep(s, msa_diagonal(a, 0, -2, -1)) : NULL; }
static T embedded(scope *s, T a) { return a ? keep(s, msa_diag_embed(a, 0, -2, -1)) : NULL; }
static T row(scope *s, T a) { return a ? keep(s, msa_unsqueeze(a, -2)) : NULL; }
static T column(scope *s, T a) { return a ? keep(s, msa_unsqueeze(a, -1)) : NULL; }
static T part(scope *s, T a, int64_t dim, int64_t start, int64_t length) { return a ? keep(s, msa_narrow(a, dim, start, length)) : NULL; }
static T real_part(scope *s, T a) { return !a || !msa_is_complex((msa_dtype)a->dtype) ? a : keep(s, msa_real(a)); }
static T imaginary(scope *s, T a) { return a ? keep(s, msa_imag(a)) : NULL; }
static T identity(scope *s, int64_t n, const msa_tensor *like) {
    return keep(s, msa_eye(n, (msa_dtype)like->dtype, -1, -1, (msa_opt_int){0}, false));
}
/* a^-1 b and b a^-1 for a triangle a. */
static T solved(scope *s, T a, T b, bool upper, bool left, bool unit) {
    return a && b ? keep(s, msa_linalg_solve_triangular(a, b, upper, left, unit)) : NULL;
}
static T solved_any(scope *s, T a, T b) {
    T results[2] = {NULL, NULL};
    if (!a || !b || msa_linalg_solve_matrices(a, b, true, results) != 0) return NULL;
    msa_tensor_release(results[1]);
    return keep(s, results[0]);
}
static int64_t rows_of(const msa_tensor *t) { return t->sizes[t->ndim - 2]; }
static int64_t columns_of(const msa_tensor *t) { return t->sizes[t->ndim - 1]; }

/* A = L L^H: L^H gA L is the lower triangle of L^H gL, made symmetric and halved. The imaginary part of its diagonal, on which nothing
 * depends because L's is real, stays as PyTorch has it. */
msa_tensor *cholesky_gradient(msa_tensor *grad, msa_tensor *L, bool upper) {
    SCOPE;
    T low = upper ? adjoint(s, L) : L, g = upper ? adjoint(s, grad) : grad, lh = adjoint(s, low);
    T phi = times(s, lh, g);
    T both = by_number(s, plus(s, lower(s, phi, 0), adjoint(s, lower(s, phi, -1))), msa_float(0.5));
    T half = solved(s, lh, both, true, true, false);
    return out(solved(s, low, half, false, false, false));
}

/* L with its unit diagonal out of the square part of LU. */
static T unit_lower(scope *s, T square) { return plus(s, lower(s, square, -1), identity(s, columns_of(square), square)); }

/* A = P L U. The columns (rows) beyond the square part are solves with L (with U), whose gradients join those of the square part. */
msa_tensor *lu_factor_gradient(msa_tensor *grad, msa_tensor *LU, msa_tensor *pivots) {
    SCOPE;
    const int64_t m = rows_of(LU), n = columns_of(LU), k = m < n ? m : n;
    T square = part(s, part(s, LU, -2, 0, k), -1, 0, k), g = part(s, part(s, grad, -2, 0, k), -1, 0, k);
    if (!square || !g) return NULL;
    T L = unit_lower(s, square), U = upper_part(s, square, 0), gL = lower(s, g, -1), gU = upper_part(s, g, 0), rest = NULL;
    T lh = adjoint(s, L), uh = adjoint(s, U);
    if (n > m) {
        T right = part(s, LU, -1, k, n - k);
        rest = solved(s, lh, part(s, grad, -1, k, n - k), true, true, true);
        gL = minus(s, gL, lower(s, times(s, rest, adjoint(s, right)), -1));
    } else if (m > n) {
        T below = part(s, LU, -2, k, m - k);
        rest = solved(s, uh, part(s, grad, -2, k, m - k), false, false, false);
        gU = minus(s, gU, upper_part(s, times(s, adjoint(s, below), rest), 0));
    }
    T phi = plus(s, lower(s, times(s, lh, gL), -1), upper_part(s, times(s, gU, uh), 0));
    T inner = solved(s, uh, solved(s, lh, phi, true, true, true), false, false, false);
    if (rest && inner) inner = keep(s, msa_cat(MSA_TENSORS(inner, rest), n > m ? -1 : -2));
    return out(times(s, keep(s, msa_linalg_lu_permutation(pivots, m, (msa_dtype)LU->dtype)), inner));
}

msa_tensor *inverse_gradient(msa_tensor *grad, msa_tensor *inverse) {
    SCOPE;
    T h = adjoint(s, inverse);
    return out(negated(s, times(s, h, times(s, grad, h))));
}

int solve_gradients(msa_tensor *grad, msa_tensor *A, msa_tensor *X, msa_ints needs, msa_tensor **results) {
    SCOPE;
    T g = solved_any(s, adjoint(s, A), grad), g_A = needs.data[0] ? negated(s, times(s, g, adjoint(s, X))) : NULL;
    if (!g || (needs.data[0] && !g_A)) return -1;
    results[0] = out(g_A);
    results[1] = needs.data[1] ? out(g) : NULL;
    return 0;
}

int lu_solve_gradients(msa_tensor *grad, msa_tensor *LU, msa_tensor *pivots, msa_tensor *B, msa_tensor *X, bool adjoint_, msa_ints needs, msa_tensor **results) {
    SCOPE;
    T g = keep(s, msa_linalg_lu_solve_matrices(LU, pivots, grad, !adjoint_)), g_LU = NULL;
    if (!g) return -1;
    if (needs.data[0]) {
        T P = keep(s, msa_linalg_lu_permutation(pivots, rows_of(LU), (msa_dtype)LU->dtype)), L = unit_lower(s, LU), U = upper_part(s, LU, 0);
        T g_A = negated(s, adjoint_ ? times(s, X, adjoint(s, g)) : times(s, g, adjoint(s, X)));
        T turned = times(s, adjoint(s, P), g_A);
        g_LU = plus(s, lower(s, times(s, turned, adjoint(s, U)), -1), upper_part(s, times(s, adjoint(s, L), turned), 0));
        if (!g_LU) return -1;
    }
    results[0] = out(g_LU);
    results[1] = needs.data[1] ? out(g) : NULL;
    return 0;
}

int triangular_gradients(msa_tensor *grad, msa_tensor *A, msa_tensor *X, bool upper, bool left, bool unitriangular, msa_ints needs, msa_tensor **results) {
    SCOPE;
    T g = solved(s, adjoint(s, A), grad, !upper, left, unitriangular), g_A = NULL;
    if (!g) return -1;
    if (needs.data[0]) {
        T whole = negated(s, left ? times(s, g, adjoint(s, X)) : times(s, adjoint(s, X), g));
        g_A = upper ? upper_part(s, whole, unitriangular) : lower(s, whole, unitriangular ? -1 : 0);
        if (!g_A) return -1;
    }
    results[0] = out(g_A);
    results[1] = needs.data[1] ? out(g) : NULL;
    return 0;
}

/* +1 or -1 for the parity of the row swaps. */
static T parity(scope *s, T pivots, msa_dtype dtype) {
    msa_auto msa_tensor *plain = msa_contiguous_values(pivots);
    const int64_t n = pivots->sizes[pivots->ndim - 1], count = msa_product((msa_ints){pivots->sizes, pivots->ndim - 1});
    msa_auto msa_tensor *signs = msa_tensor_new((msa_ints){pivots->sizes, pivots->ndim - 1}, MSA_FLOAT64);
    if (!plain || !signs) return NULL;
    const int32_t *rows = msa_data(plain);
    for (int64_t b = 0; b < count; b++) {
        int swaps = 0;
        for (int64_t i = 0; i < n; i++) swaps += rows[b * n + i] != i + 1;
        ((double *)msa_data(signs))[b] = swaps % 2 ? -1 : 1;
    }
    return keep(s, msa__to_copy(signs, dtype, -1));
}

static int factored(scope *s, msa_tensor *A, const char *name, T *LU, T *pivots) {
    if (A->ndim < 2) return msa_fail(MSA_RUNTIME_ERROR, "%s: The input tensor A must have at least 2 dimensions.", name);
    if (rows_of(A) != columns_of(A))
        return msa_fail(MSA_RUNTIME_ERROR, "%s: A must be batches of square matrices, but they are %lld by %lld matrices", name, (long long)rows_of(A), (long long)columns_of(A));
    if (A->dtype < MSA_FLOAT32) return msa_fail(MSA_RUNTIME_ERROR, "%s: Expected a floating point or complex tensor as input. Got %s", name, msa_dtype_type_name((msa_dtype)A->dtype));
    T results[3] = {NULL, NULL, NULL};
    if (msa_linalg_lu_factor_ex(A, true, false, results) != 0) return -1;
    *LU = keep(s, results[0]);
    *pivots = keep(s, results[1]);
    keep(s, results[2]);
    return 0;
}

int det_values(msa_tensor *A, msa_tensor **results) {
    SCOPE;
    T LU, pivots;
    if (factored(s, A, "linalg.det", &LU, &pivots) != 0) return -1;
    T product = keep(s, msa_prod_dim_int(diagonal(s, LU), -1, false, MSA_NO_DTYPE)), det = scale(s, product, parity(s, pivots, (msa_dtype)A->dtype));
    if (!det) return -1;
    results[0] = out(det), results[1] = out(LU), results[2] = out(pivots);
    return 0;
}

int slogdet_values(msa_tensor *A, msa_tensor **results) {
    SCOPE;
    T LU, pivots;
    if (factored(s, A, "linalg.slogdet", &LU, &pivots) != 0) return -1;
    T d = diagonal(s, LU), signs = d ? keep(s, msa_sgn(d)) : NULL, sizes = d ? keep(s, msa_abs(d)) : NULL, logs = sizes ? keep(s, msa_log(sizes)) : NULL;
    T sign = signs ? scale(s, keep(s, msa_prod_dim_int(signs, -1, false, MSA_NO_DTYPE)), parity(s, pivots, (msa_dtype)A->dtype)) : NULL;
    T sum = logs ? keep(s, msa_sum_dim_IntList(logs, MSA_INTS(-1), false, MSA_NO_DTYPE)) : NULL;
    if (!sign || !sum) return -1;
    results[0] = out(sign), results[1] = out(sum), results[2] = out(LU), results[3] = out(pivots);
    return 0;
}

/* A^-H diag(g). Where nothing is recorded the factors serve, zeros among the pivots made small: det is smooth there. */
static T inverse_adjoint_scaled(scope *s, T A, T LU, T pivots, T g, bool perturb) {
    T eye = identity(s, columns_of(A), A), d = scale(s, column(s, column(s, g)), eye);
    if (msa_grad_mode) return solved_any(s, adjoint(s, A), d);
    if (perturb) {
        T zero = keep(s, msa_wrap_number(msa_int(0))), on = diagonal(s, LU), none = on && zero ? keep(s, msa_eq(on, zero)) : NULL;
        const bool single = msa_dtype_real((msa_dtype)A->dtype) == MSA_FLOAT32;
        T small = none ? keep(s, msa__to_copy(none, (msa_dtype)A->dtype, -1)) : NULL;
        LU = plus(s, LU, by_number(s, embedded(s, small), msa_float(single ? 1.1920928955078125e-07 : 2.220446049250313e-16)));
    }
    return LU && d ? keep(s, msa_linalg_lu_solve_matrices(LU, pivots, d, true)) : NULL;
}

msa_tensor *det_gradient(msa_tensor *grad, msa_tensor *A, msa_tensor *result, msa_tensor *LU, msa_tensor *pivots) {
    SCOPE;
    if (!msa_grad_mode) { /* the determinant of the factors that the solve uses, so that a zero cancels */
        T zero = keep(s, msa_wrap_number(msa_int(0))), on = diagonal(s, LU), none = on && zero ? keep(s, msa_eq(on, zero)) : NULL;
        const bool single = msa_dtype_real((msa_dtype)A->dtype) == MSA_FLOAT32;
        T small = none ? keep(s, msa__to_copy(none, (msa_dtype)A->dtype, -1)) : NULL;
        T nudge = by_number(s, small, msa_float(single ? 1.1920928955078125e-07 : 2.220446049250313e-16)), d = plus(s, on, nudge);
        T product = d ? keep(s, msa_prod_dim_int(d, -1, false, MSA_NO_DTYPE)) : NULL, det = scale(s, product, parity(s, pivots, (msa_dtype)A->dtype));
        return out(inverse_adjoint_scaled(s, A, LU, pivots, scale(s, grad, conjugate(s, det)), true));
    }
    return out(inverse_adjoint_scaled(s, A, LU, pivots, scale(s, grad, conjugate(s, result)), true));
}

/* d log|det A| = Re tr(A^-1 dA), d arg det A = Im tr(A^-1 dA). */
msa_tensor *slogdet_gradient(msa_tensor *grad_sign, msa_tensor *grad_logarithm, msa_tensor *A, msa_tensor *sign, msa_tensor *LU, msa_tensor *pivots) {
    SCOPE;
    T g = grad_logarithm;
    if (grad_sign && msa_is_complex((msa_dtype)A->dtype)) {
        T turn = by_number(s, imaginary(s, scale(s, conjugate(s, grad_sign), sign)), msa_complex(0, -1));
        g = g ? plus(s, turn, g) : turn;
    }
    if (!g) return zeros_shaped(msa_sizes(A), (msa_dtype)A->dtype);
    return out(inverse_adjoint_scaled(s, A, LU, pivots, g, false));
}

/* X + X^H of the upper triangle, its diagonal the real part of X's. */
static T hermitian_of_upper(scope *s, T x) {
    T strict = upper_part(s, x, 1);
    return plus(s, plus(s, strict, adjoint(s, strict)), embedded(s, real_part(s, diagonal(s, x))));
}

/* A = Q R. Where A is wide, its right part is Q R2: R2 = Q^H A2 gives its gradient and a share of Q's. */
msa_tensor *qr_gradient(msa_tensor *grad_Q, msa_tensor *grad_R, msa_tensor *Q, msa_tensor *R, const char *mode) {
    SCOPE;
    if (strcmp(mode, "r") == 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') "
                             "if you are going to require gradients");
    const int64_t m = rows_of(Q), n = columns_of(R), k = m < n ? m : n;
    if (strcmp(mode, "complete") == 0 && m > n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "The QR decomposition is not differentiable when mode='complete' and nrows > ncols");
    T R1 = R, gR = grad_R, gQ = grad_Q, rest = NULL;
    if (n > m) {
        R1 = part(s, R, -1, 0, k);
        if (grad_R) {
            T right = part(s, grad_R, -1, k, n - k), add = times(s, Q, times(s, part(s, R, -1, k, n - k), adjoint(s, right)));
            gR = part(s, grad_R, -1, 0, k);
            gQ = grad_Q ? plus(s, grad_Q, add) : add;
            rest = times(s, Q, right);
        }
    }
    T x = NULL;
    if (gR) x = times(s, gR, adjoint(s, R1));
    if (gQ) {
        T turn = times(s, adjoint(s, Q), gQ);
        x = x ? minus(s, x, turn) : negated(s, turn);
    }
    T inner = times(s, Q, hermitian_of_upper(s, x));
    if (gQ) inner = plus(s, gQ, inner);
    T g = solved(s, adjoint(s, R1), inner, false, false, false);
    if (n > m && g) {
        int64_t sizes[MSA_MAX_DIMS];
        memcpy(sizes, g->sizes, sizeof(int64_t) * g->ndim);
        sizes[g->ndim - 1] = n - k;
        if (!rest) rest = keep(s, zeros_shaped((msa_ints){sizes, g->ndim}, (msa_dtype)g->dtype));
        return rest ? msa_cat(MSA_TENSORS(g, rest), -1) : NULL;
    }
    return out(g);
}

/* x_j - x_i, 1 on the diagonal. */
static T gaps(scope *s, T x) {
    T d = minus(s, row(s, x), column(s, x));
    return d ? plus(s, d, identity(s, columns_of(d), d)) : NULL;
}

/* A complex vector has a free phase: a loss that depends on it has no gradient. -1 with an error then. */
static int check_phase(scope *s, const char *name, T d) {
    T im = imaginary(s, d), zero = im ? keep(s, zeros_shaped(msa_sizes(im), (msa_dtype)im->dtype)) : NULL;
    msa_scalar close;
    if (!zero || msa_allclose(im, zero, 1e-2, 1e-2, false, &close) != 0) return -1;
    if (!close.i) return msa_fail(MSA_RUNTIME_ERROR, "%s: complex vectors are defined up to a phase e^{i phi}, and the loss depends on it: it is ill-defined", name);
    return 0;
}

static T eigenvector_gradient(scope *s, T gL, T gV, T L, T V, bool hermitian) {
    T vh = adjoint(s, V), inner = NULL;
    if (gV) {
        T turn = times(s, vh, gV), d = diagonal(s, turn);
        if (!d || (msa_is_complex((msa_dtype)d->dtype) && check_phase(s, hermitian ? "linalg_eigh_backward" : "linalg_eig_backward", d) != 0)) return NULL;
        T tangent = hermitian ? by_number(s, minus(s, turn, adjoint(s, turn)), msa_float(0.5))
                              : minus(s, turn, times(s, vh, scale(s, V, row(s, real_part(s, d)))));
        inner = ratio(s, tangent, gaps(s, hermitian ? L : conjugate(s, L)));
        inner = minus(s, inner, embedded(s, diagonal(s, inner)));
        if (gL) inner = plus(s, inner, embedded(s, gL));
    } else if (gL) {
        inner = embedded(s, gL);
        if (inner && inner->dtype != V->dtype) inner = keep(s, msa__to_copy(inner, (msa_dtype)V->dtype, -1));
    }
    return hermitian ? times(s, V, times(s, inner, vh)) : solved_any(s, vh, times(s, inner, vh));
}

msa_tensor *eigh_gradient(msa_tensor *grad_L, msa_tensor *grad_V, msa_tensor *L, msa_tensor *V) {
    SCOPE;
    return out(eigenvector_gradient(s, grad_L, grad_V, L, V, true));
}

msa_tensor *eig_gradient(msa_tensor *grad_L, msa_tensor *grad_V, msa_tensor *L, msa_tensor *V) {
    SCOPE;
    return out(eigenvector_gradient(s, grad_L, grad_V, L, V, false));
}

/* Of the first k columns of U and rows of Vh; those that full_matrices adds have no gradient. */
msa_tensor *svd_gradient(msa_tensor *grad_U, msa_tensor *grad_S, msa_tensor *grad_Vh, msa_tensor *U, msa_tensor *S, msa_tensor *Vh) {
    SCOPE;
    const int64_t m = rows_of(U), n = columns_of(Vh), k = columns_of(row(s, S));
    const bool is_complex = msa_is_complex((msa_dtype)U->dtype);
    U = part(s, U, -1, 0, k);
    Vh = part(s, Vh, -2, 0, k);
    T gU = grad_U ? part(s, grad_U, -1, 0, k) : NULL, gVh = grad_Vh ? part(s, grad_Vh, -2, 0, k) : NULL, inner = NULL;
    T squared = scale(s, S, S), E = gU || gVh ? gaps(s, squared) : NULL, u = NULL, v = NULL;
    if (gU) {
        T turn = times(s, adjoint(s, U), gU);
        u = minus(s, turn, adjoint(s, turn));
        inner = scale(s, ratio(s, u, E), row(s, S));
    }
    if (gVh) {
        T turn = times(s, Vh, adjoint(s, gVh));
        v = minus(s, turn, adjoint(s, turn));
        T add = scale(s, column(s, S), ratio(s, v, E));
        inner = inner ? plus(s, inner, add) : add;
    }
    if (is_complex && (u || v)) {
        T d = u && v ? plus(s, diagonal(s, u), diagonal(s, v)) : diagonal(s, u ? u : v);
        if (!d || check_phase(s, "svd_backward", d) != 0) return NULL;
        if (u && v) inner = plus(s, inner, embedded(s, by_number(s, ratio(s, minus(s, diagonal(s, u), diagonal(s, v)), S), msa_float(0.25))));
    }
    if (grad_S) inner = inner ? plus(s, inner, embedded(s, grad_S)) : embedded(s, grad_S);
    if (inner && inner->dtype != U->dtype) inner = keep(s, msa__to_copy(inner, (msa_dtype)U->dtype, -1));
    T g = times(s, U, times(s, inner, Vh));
    if (gU && m > k) {
        T w = ratio(s, gU, row(s, S));
        g = plus(s, g, times(s, minus(s, w, times(s, U, times(s, adjoint(s, U), w))), Vh));
    }
    if (gVh && n > k) {
        T w = ratio(s, gVh, column(s, S));
        g = plus(s, g, times(s, U, minus(s, w, times(s, times(s, w, adjoint(s, Vh)), Vh))));
    }
    return out(g);
}

/* The pseudo-inverse as an operator of its own: its value has been made by singular values, whose own derivatives would not exist. */
msa_tensor *pinv_given_values(msa_tensor *A, msa_tensor *value) { return msa_clone_values(value); }

/* Golub and Pereyra (1973): dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P. */
msa_tensor *pinv_gradient(msa_tensor *grad, msa_tensor *A, msa_tensor *P) {
    SCOPE;
    T gh = adjoint(s, grad), ph = adjoint(s, P);
    T first = negated(s, times(s, ph, times(s, grad, ph)));
    T left = times(s, gh, times(s, P, ph)), second = minus(s, left, times(s, A, times(s, P, left)));
    T right = times(s, ph, times(s, P, gh)), third = minus(s, right, times(s, times(s, right, P), A));
    return out(plus(s, first, plus(s, second, third)));
}
