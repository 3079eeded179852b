"""Decompositions and solvers of torch.linalg, made of the operator table's."""

from msadapter import _C
from msadapter.pytorch.linalg._results import adjoint, given, named, need_matrix, need_square, values_of

_linalg, _ops = _C._linalg, _C._ops


def cholesky(A, *, upper=False, out=None):
    """L of A = L L^H (upper: U of U^H U). A: (..., n, n). Raises LinAlgError where A is not positive-definite."""
    L, info = _linalg.cholesky_ex(A, upper=upper)
    _linalg._check_errors(info, "linalg.cholesky", "cholesky")
    return given(out, L)


def inv(A, *, out=None):
    """The inverse of A (..., n, n). Raises LinAlgError where A is singular."""
    result, info = _linalg.inv_ex(A)
    _linalg._check_errors(info, "linalg.inv", "inv")
    return given(out, result)


def _solve(A, B, left, check):
    need_square("linalg.solve", A)
    if B.dim() == 0:
        raise RuntimeError("linalg.solve: The tensor B must have at least 1 dimension")
    vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    if vector and not left:
        raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / "
                           "A.squeeze(-1)")
    if vector:
        X, info = _linalg._solve_matrices(A, B.unsqueeze(-1), check)
        return X.squeeze(-1), info
    if left:
        return _linalg._solve_matrices(A, B, check)
    X, info = _linalg._solve_matrices(A.transpose(-2, -1), B.transpose(-2, -1), check)
    return X.transpose(-2, -1), info


def solve(A, B, *, left=True, out=None):
    """X of A X = B, or of X A = B. A: (..., n, n), B: vectors or matrices. Raises LinAlgError where A is singular."""
    return given(out, _solve(A, B, left, True)[0])


def solve_ex(A, B, *, left=True, check_errors=False, out=None):
    """solve(A, B) and LAPACK's info, which is not looked at unless check_errors."""
    return named("linalg_solve_ex", ["result", "info"], _solve(A, B, left, check_errors), out)


def det(A, *, out=None):
    """Determinants (...) of A (..., n, n)."""
    return given(out, _linalg._det(A)[0])


def slogdet(A, *, out=None):
    """Sign (phase) of the determinant and the logarithm of its absolute value. A: (..., n, n)."""
    return named("linalg_slogdet", ["sign", "logabsdet"], _linalg._slogdet(A)[:2], out)


def lu_factor(A, *, pivot=True, out=None):
    """L and U in one matrix, and the row swaps. A: (..., m, n)."""
    LU, pivots, info = _linalg.lu_factor_ex(A, pivot=pivot)
    _linalg._check_errors(info, "torch.linalg.lu_factor", "lu")
    return named("linalg_lu_factor", ["LU", "pivots"], (LU, pivots), out)


def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None):
    """P (..., m, m), L (..., m, k) and U (..., k, n) from what lu_factor returns; empty tensors for what is not asked for."""
    if unpack_pivots and LU_pivots.dtype is not _C.int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function is intended to be used with the output "
                           "produced by torch.linalg.lu_factor")
    need_matrix("torch.lu_unpack", LU_data, "LU_data")
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    nothing = LU_data.new_empty(0)
    P = _linalg._lu_permutation(LU_pivots, m, LU_data.dtype) if unpack_pivots else nothing
    L = U = nothing
    if unpack_data:
        L = LU_data[..., :, :k].tril(-1) + _ops.eye(m, k, dtype=LU_data.dtype)
        U = LU_data[..., :k, :].triu()
    return named("lu_unpack", ["P", "L", "U"], (P, L, U), out)


def lu(A, *, pivot=True, out=None):
    """P, L and U of A = P L U. A: (..., m, n)."""
    LU, pivots, _ = _linalg.lu_factor_ex(A, pivot=pivot)
    return named("linalg_lu", ["P", "L", "U"], lu_unpack(LU, pivots), out)


def lu_solve(LU, pivots, B, *, left=True, adjoint=False, out=None):  # noqa: A002
    """X of A X = B (left=False: X A = B; adjoint: A^H for A), A given by lu_factor."""
    return given(out, _lu_solve(LU, pivots, B, left, adjoint))


def _lu_solve(LU, pivots, B, left, flip):
    if left:
        return _linalg._lu_solve_matrices(LU, pivots, B, flip)
    return adjoint(_linalg._lu_solve_matrices(LU, pivots, adjoint(B), not flip))


def eigh(A, UPLO="L", *, out=None):
    """Eigenvalues (..., n), ascending, and eigenvectors of symmetric (Hermitian) A, of which one triangle is read."""
    return named("linalg_eigh", ["eigenvalues", "eigenvectors"], _linalg._eigh(A, UPLO, True), out)


def eigvalsh(A, UPLO="L", *, out=None):
    """Eigenvalues (..., n), ascending, of symmetric (Hermitian) A."""
    return given(out, _linalg._eigh(A, UPLO, _C.is_grad_enabled() and A.requires_grad)[0])


def eig(A, *, out=None):
    """Complex eigenvalues (..., n) and eigenvectors (..., n, n) of A."""
    return named("linalg_eig", ["eigenvalues", "eigenvectors"], _linalg._eig(A, True), out)


def eigvals(A, *, out=None):
    """Complex eigenvalues (..., n) of A."""
    return given(out, _linalg._eig(A, _C.is_grad_enabled() and A.requires_grad)[0])


def _check_driver(name, driver):
    if driver is not None:
        raise RuntimeError(f"{name}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")


def svd(A, full_matrices=True, *, driver=None, out=None):
    """U, S and Vh of A = U diag(S) Vh. A: (..., m, n); S descending."""
    _check_driver("torch.linalg.svd", driver)
    return named("linalg_svd", ["U", "S", "Vh"], _linalg._svd(A, full_matrices, True), out)


def svdvals(A, *, driver=None, out=None):
    """Singular values (..., min(m, n)), descending, of A (..., m, n)."""
    _check_driver("torch.linalg.svdvals", driver)
    return given(out, _linalg._svd(A, False, _C.is_grad_enabled() and A.requires_grad)[1])


def _reflect(column, i, tau, matrix):
    """(1 - tau v v^H) matrix, v being `column` below its diagonal element at i, which is 1."""
    v = column.unsqueeze(-1).tril(-1 - i)
    unit = _ops.zeros([matrix.size(-2), 1], dtype=matrix.dtype)
    unit[i] = 1
    v = v + unit
    return matrix - tau.unsqueeze(-1).unsqueeze(-1) * v @ (adjoint(v) @ matrix)


def householder_product(A, tau, *, out=None):  # noqa: N803
    """The first n columns of the product of reflections (..., m, n), as geqrf leaves them."""
    if not (_C.is_grad_enabled() and (A.requires_grad or tau.requires_grad)):
        return given(out, _linalg._householder_product(A, tau))
    _linalg._householder_product(A.detach(), tau.detach())  # for its checks
    Q = _ops.eye(*A.shape[-2:], dtype=A.dtype)
    Q = Q.expand(A.shape) if tau.size(-1) else values_of(Q, A + tau.sum(-1).unsqueeze(-1).unsqueeze(-1))
    for i in reversed(range(tau.size(-1))):
        Q = _reflect(A[..., i], i, tau[..., i], Q)
    return given(out, Q)


def ormqr(input, tau, other, left=True, transpose=False, *, out=None):
    """other multiplied, from the left or the right, by the orthogonal matrix of geqrf's reflections or by its adjoint."""
    if not (_C.is_grad_enabled() and (input.requires_grad or tau.requires_grad or other.requires_grad)):
        return given(out, _linalg._ormqr(input, tau, other, left, transpose))
    _linalg._ormqr(input.detach(), tau.detach(), other.detach(), left, transpose)  # for its checks
    # From the right: (C Q)^H = Q^H C^H.
    matrix = other if left else adjoint(other)
    flip = transpose if left else not transpose
    order = range(tau.size(-1)) if flip else reversed(range(tau.size(-1)))
    for i in order:
        t = tau[..., i]
        matrix = _reflect(input[..., i], i, t.conj() if flip and t.is_complex() else t, matrix)
    return given(out, matrix if left else adjoint(matrix))


def ldl_factor(A, *, hermitian=False, out=None):
    """L and D in one matrix, and pivots, of symmetric (Hermitian) A. Raises LinAlgError where D is singular."""
    LD, pivots, info = _linalg.ldl_factor_ex(A, hermitian=hermitian)
    _linalg._check_errors(info, "torch.linalg.ldl_factor", "ldl")
    return named("linalg_ldl_factor", ["LD", "pivots"], (LD, pivots), out)
