"""Norms of matrices and what their singular values say: condition, rank, pseudo-inverse."""

from math import inf

from msadapter import _C
from msadapter.pytorch.linalg._decompositions import eigh, eigvalsh, svd, svdvals
from msadapter.pytorch.linalg._results import adjoint, given, need_inexact, need_matrix

_ops = _C._ops


def _matrix_norm(A, ord, dim, keepdim, dtype):  # noqa: A002
    need_inexact("linalg.matrix_norm", A)
    need_matrix("linalg.matrix_norm", A)
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim}")
    n = A.dim()
    for d in dim:
        if not -n <= d < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})")
    first, second = (d % n for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got {tuple(dim)}")
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    elif abs(ord) not in (1, 2, inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "fro":
        return _ops.linalg_vector_norm(A, 2, [first, second], keepdim, dtype=dtype)
    if dtype is not None:
        A = A.to(dtype)
    if ord == "nuc" or abs(ord) == 2:
        values = svdvals(A.movedim((first, second), (-2, -1)))
        result = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord > 0 else values.amin(-1)
    else:
        summed, left = (first, second) if abs(ord) == 1 else (second, first)
        sums = _ops.linalg_vector_norm(A, 1, [summed])
        left -= left > summed
        result = sums.amax(left) if ord > 0 else sums.amin(left)
    if keepdim:
        low, high = sorted((first, second))
        result = result.unsqueeze(low).unsqueeze(high)
    return result


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):  # noqa: A002
    """Norms of the matrices along two dims: 'fro', 'nuc', 1, 2, inf and their negatives."""
    return given(out, _matrix_norm(A, ord, dim, keepdim, dtype))


def norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):  # noqa: A002
    """A vector's norm (one dim, or no ord: all elements) or a matrix's (two dims)."""
    if isinstance(dim, int):
        dim = [dim]
    if ord is not None:
        if dim is not None and len(dim) not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
        if dim is None and A.dim() not in (1, 2):
            raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D")
    if ord is not None and (len(dim) == 2 if dim is not None else A.dim() == 2):
        return given(out, _matrix_norm(A, ord, (0, 1) if dim is None else dim, keepdim, dtype))
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: Order {ord} is for matrices; the input or dim is of one dimension")
    return given(out, _ops.linalg_vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype))


def _cond(A, p):
    need_matrix("linalg.cond", A)
    need_inexact("linalg.cond", A)
    if p is None or p in (2, -2):
        values = svdvals(A)
        high, low = values[..., 0], values[..., -1]
        return low / high if p == -2 else high / low
    if A.size(-1) != A.size(-2):
        raise RuntimeError(f"linalg.cond: A must be batches of square matrices, but they are {A.size(-2)} by {A.size(-1)} matrices")
    if A.numel() == 0:
        return A.new_zeros(A.shape[:-2], dtype=A.abs().dtype)
    inverse, info = _C._linalg.inv_ex(A)
    result = _matrix_norm(A, p, (-2, -1), False, None) * _matrix_norm(inverse, p, (-2, -1), False, None)
    return _ops.where(info == 0, result, _ops.full([], inf, dtype=result.dtype))


def cond(A, p=None, *, out=None):
    """Condition numbers of A (..., m, n) in the norm p (None: 2); infinite where A is singular."""
    return given(out, _cond(A, p))


def _tolerances(A, values, atol, rtol):
    """The bound below which singular values (..., k) count as zero: the larger of atol and rtol times the greatest."""
    if rtol is None:
        precision = _C.finfo(values.dtype).eps * max(A.shape[-2:])
        rtol = 0.0 if atol is not None and not isinstance(atol, _C.TensorBase) and atol > 0 else precision
        if isinstance(atol, _C.TensorBase):
            rtol = _ops.where(atol > 0, _ops.zeros([], dtype=values.dtype), _ops.full([], precision, dtype=values.dtype))
    atol = 0.0 if atol is None else atol
    atol, rtol = (t.to(values.dtype) if isinstance(t, _C.TensorBase) else _ops.full([], t, dtype=values.dtype) for t in (atol, rtol))
    greatest = values.amax(-1) if values.size(-1) else values.new_zeros(values.shape[:-1])
    return _ops.maximum(atol, rtol * greatest).unsqueeze(-1)


def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """How many singular values of A (..., m, n) are above max(atol, rtol * the greatest)."""
    need_matrix("linalg.matrix_rank", A)
    A = A.detach()
    if tol is not None:
        atol, rtol = tol, 0.0
    values = eigvalsh(A).abs() if hermitian else svdvals(A)
    return given(out, (values > _tolerances(A, values, atol, rtol)).sum(-1))


def _pinv_by_values(A, atol, rtol, hermitian):
    if hermitian:
        L, V = eigh(A)
        size = L.abs()
        inverse = _ops.where(size > _tolerances(A, size, atol, rtol), L.reciprocal(), _ops.zeros([], dtype=L.dtype))
        return (V * inverse.unsqueeze(-2)) @ adjoint(V)
    U, S, Vh = svd(A, False)
    inverse = _ops.where(S > _tolerances(A, S, atol, rtol), S.reciprocal(), _ops.zeros([], dtype=S.dtype))
    return adjoint(U * inverse.unsqueeze(-2) @ Vh)


def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """The pseudo-inverse (..., n, m) of A (..., m, n); singular values up to max(atol, rtol * the greatest) count as zero."""
    need_matrix("linalg.pinv", A)
    need_inexact("linalg.pinv", A)
    if rcond is not None:
        rtol = rcond
    if A.numel() == 0:
        return given(out, A.transpose(-2, -1).clone())
    if not (_C.is_grad_enabled() and A.requires_grad):
        return given(out, _pinv_by_values(A, atol, rtol, hermitian))
    return given(out, _C._linalg._pinv_given(A, _pinv_by_values(A.detach(), atol, rtol, hermitian)))
