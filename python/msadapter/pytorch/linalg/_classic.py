"""The decompositions that torch itself has, by the names and conventions of before torch.linalg."""

from msadapter import _C
from msadapter.pytorch import linalg as _new
from msadapter.pytorch.linalg._decompositions import lu_unpack, ormqr
from msadapter.pytorch.linalg._lobpcg import lobpcg
from msadapter.pytorch.linalg._results import adjoint, given, named, need_matrix, need_square

_linalg, _ops = _C._linalg, _C._ops

__all__ = ["cholesky", "cholesky_solve", "cholesky_inverse", "inverse", "det", "logdet", "slogdet", "qr", "svd", "symeig", "lu", "lu_solve", "lu_unpack",
           "triangular_solve", "pinverse", "ormqr", "orgqr", "matrix_exp", "matrix_power", "eig", "lstsq", "solve", "matrix_rank", "svd_lowrank",
           "pca_lowrank", "chain_matmul", "lobpcg"]
TENSOR_METHODS = ["cholesky", "cholesky_solve", "cholesky_inverse", "inverse", "det", "logdet", "slogdet", "qr", "svd", "symeig", "lu", "lu_solve",
                  "triangular_solve", "pinverse", "ormqr", "orgqr", "matrix_exp", "matrix_power"]

matrix_exp = _new.matrix_exp


def matrix_power(input, n, *, out=None):
    """linalg.matrix_power(input, n)."""
    return _new.matrix_power(input, n, out=out)


def inverse(input, *, out=None):
    """The inverse of matrices (..., n, n). Raises LinAlgError where one is singular."""
    return _new.inv(input, out=out)


def det(input):
    """Determinants (...) of matrices (..., n, n)."""
    return _linalg._det(input)[0]


def slogdet(input):
    """Sign of the determinant and the logarithm of its absolute value. input: (..., n, n)."""
    return named("slogdet", ["sign", "logabsdet"], _linalg._slogdet(input)[:2])


def logdet(input):
    """Logarithms of determinants (...), NaN where a real one is negative. input: (..., n, n)."""
    sign, size = _linalg._slogdet(input)[:2]
    if input.is_complex():
        return sign.log() + size
    return _ops.where(sign == -1, _ops.full([], float("nan"), dtype=size.dtype), size)


def pinverse(input, rcond=1e-15):
    """The pseudo-inverse (..., n, m); singular values up to rcond times the greatest count as zero."""
    return _new.pinv(input, rcond)


def cholesky(input, upper=False, *, out=None):
    """L of A = L L^H (upper: U of U^H U). Raises LinAlgError where A is not positive-definite."""
    L, info = _linalg.cholesky_ex(input, upper=upper)
    _linalg._check_errors(info, "cholesky", "cholesky")
    return given(out, L)


def _product_of_factor(factor, upper):
    """L L^H of the triangle, whose gradient reaches all of `factor`, as PyTorch's does; None where none is wanted."""
    if not (_C.is_grad_enabled() and factor.requires_grad):
        return None
    change = factor - factor.detach()
    L = adjoint(factor.triu() + change.tril(-1)) if upper else factor.tril() + change.triu(1)
    return L @ adjoint(L)


def cholesky_solve(input, input2, upper=False, *, out=None):
    """X of A X = B (..., n, k), A given by its Cholesky factor input2 (..., n, n)."""
    need_matrix("cholesky_solve", input, "B")
    need_square("cholesky_solve", input2)
    A = _product_of_factor(input2, upper)
    if A is not None:
        return given(out, _linalg._solve_matrices(A, input, True)[0])
    L = adjoint(input2) if upper else input2
    half = _linalg.solve_triangular(L, input, upper=False)
    return given(out, _linalg.solve_triangular(adjoint(L), half, upper=True))


def cholesky_inverse(input, upper=False, *, out=None):
    """The inverse of A, given by its Cholesky factor (..., n, n)."""
    need_square("cholesky_inverse", input)
    A = _product_of_factor(input, upper)
    if A is not None:
        return given(out, _linalg.inv_ex(A)[0])
    L = adjoint(input.triu()) if upper else input.tril()
    half = _linalg.solve_triangular(L, _ops.eye(L.size(-1), dtype=L.dtype), upper=False)
    return given(out, adjoint(half) @ half)


def qr(input, some=True, *, out=None):
    """Q and R of A = Q R: reduced, or with some=False complete."""
    return named("qr", ["Q", "R"], _linalg.qr(input, "reduced" if some else "complete"), out)


def svd(input, some=True, compute_uv=True, *, out=None):
    """U, S and V of A = U diag(S) V^H; zeros for U and V without compute_uv."""
    need_matrix("svd", input)
    if not compute_uv:
        S = _new.svdvals(input)
        m, n = input.shape[-2:]
        values = (input.new_zeros((*input.shape[:-2], m, m)), S, input.new_zeros((*input.shape[:-2], n, n)))
    else:
        U, S, Vh = _linalg._svd(input, not some, True)
        values = (U, S, adjoint(Vh))
    return named("svd", ["U", "S", "V"], values, out)


def symeig(input, eigenvectors=False, upper=True, *, out=None):
    """Eigenvalues, and eigenvectors if asked for, of symmetric matrices (deprecated for linalg.eigh)."""
    import warnings

    warnings.warn("torch.symeig is deprecated in favor of torch.linalg.eigh and will be removed in a future PyTorch release.", stacklevel=2)
    UPLO = "U" if upper else "L"
    if eigenvectors:
        values = _linalg._eigh(input, UPLO, True)
    else:
        values = (_new.eigvalsh(input, UPLO), input.new_empty(0))
    return named("symeig", ["eigenvalues", "eigenvectors"], values, out)


def lu(A, pivot=True, get_infos=False, out=None):
    """L and U in one matrix and the row swaps; with get_infos LAPACK's info too, otherwise LinAlgError where U is singular."""
    LU, pivots, info = _linalg.lu_factor_ex(A, pivot=pivot)
    if not get_infos:
        _linalg._check_errors(info, "torch.linalg.lu_factor", "lu")
    if get_infos:
        return named("_lu_with_info", ["LU", "pivots", "info"], (LU, pivots, info), out)
    return named("linalg_lu_factor", ["LU", "pivots"], (LU, pivots), out)


def lu_solve(input, LU_data, LU_pivots, *, out=None):
    """X of A X = B, A given by lu's factors."""
    need_matrix("lu_solve", input, "B")
    return _new.lu_solve(LU_data, LU_pivots, input, out=out)


def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False, *, out=None):
    """X of A X = B for a triangle A, and a copy of A (deprecated for linalg.solve_triangular)."""
    need_matrix("torch.triangular_solve", input, "b")
    need_square("torch.triangular_solve", A)
    batch = _broadcast(input.shape[:-2], A.shape[:-2])
    A = A.expand(*batch, *A.shape[-2:])
    matrix, up = (A.transpose(-2, -1), not upper) if transpose else (A, upper)
    X = _linalg.solve_triangular(matrix, input, upper=up, unitriangular=unitriangular)
    return named("triangular_solve", ["solution", "cloned_coefficient"], (X, A.clone()), out)


def _broadcast(a, b):
    from msadapter.pytorch.functional import broadcast_shapes

    return broadcast_shapes(a, b)


def orgqr(input, tau, *, out=None):
    """linalg.householder_product(input, tau)."""
    return _new.householder_product(input, tau, out=out)


def _removed(name, instead):
    def function(*args, **kwargs):
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. `torch.{name}` is deprecated in favor of `torch.linalg.{instead}`.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises RuntimeError: removed from PyTorch in favour of linalg.{instead}."
    return function


eig, lstsq, solve, matrix_rank = _removed("eig", "eig"), _removed("lstsq", "lstsq"), _removed("solve", "solve"), _removed("matrix_rank", "matrix_rank")


def chain_matmul(*matrices, out=None):
    """linalg.multi_dot of the matrices."""
    return _new.multi_dot(matrices, out=out) if len(matrices) != 1 else given(out, matrices[0])


def get_lowrank_basis(A, q, niter=2, M=None):
    """q orthonormal columns that nearly span the range of A - M (Halko et al., 2009, algorithm 4.4)."""
    product = A if M is None else A - M
    Q = _linalg.qr(product @ _ops.randn(A.size(-1), q, dtype=A.dtype))[0]
    for _ in range(niter or 0):
        Q = _linalg.qr(adjoint(product) @ Q)[0]
        Q = _linalg.qr(product @ Q)[0]
    return Q


def svd_lowrank(A, q=6, niter=2, M=None):
    """U (..., m, q), S (..., q), V (..., n, q) of the best approximation of A - M of rank q, nearly (Halko et al., 2009, algorithm 5.1)."""
    q = 6 if q is None else q
    m, n = A.shape[-2:]
    M = None if M is None else M.expand(A.shape)
    if m < n:
        V, S, U = svd_lowrank(adjoint(A), q, niter, None if M is None else adjoint(M))
        return U, S, V
    Q = get_lowrank_basis(A, q, niter, M)
    product = A if M is None else A - M
    U, S, Vh = _linalg._svd(adjoint(Q) @ product, False, True)
    return Q @ U, S, adjoint(Vh)


def pca_lowrank(A, q=None, center=True, niter=2):
    """U, S and V of the nearly best approximation of rank q of A, its columns centred first unless told otherwise."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)
