"""Products, powers and tensor equations of torch.linalg, and least squares."""

from msadapter import _C
from msadapter.pytorch import _composed
from msadapter.pytorch.linalg._decompositions import inv, solve
from msadapter.pytorch.linalg._norms import pinv
from msadapter.pytorch.linalg._results import given, named, need_inexact, need_square, values_of

_linalg, _ops = _C._linalg, _C._ops


def matrix_power(A, n, *, out=None):
    """A (..., m, m) to the integer power n; of the inverse for a negative one. Raises LinAlgError where that is singular."""
    need_square("linalg.matrix_power", A)
    if n < 0:
        A, n = inv(A), -n
    if n == 0:
        return given(out, values_of(_ops.eye(A.size(-1), dtype=A.dtype), A))
    result = None
    while True:
        if n & 1:
            result = A if result is None else result @ A
        n >>= 1
        if not n:
            return given(out, result.clone() if result is A else result)
        A = A @ A


# Coefficients of the [13/13] Pade approximant of exp (Higham, "The scaling and squaring method for the matrix exponential revisited", 2005).
_PADE = (64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600, 670442572800, 33522128640,
         1323241920, 40840800, 960960, 16380, 182, 1)


def matrix_exp(A):
    """exp of matrices (..., n, n), by scaling and squaring."""
    need_square("linalg.matrix_exp", A)
    need_inexact("linalg.matrix_exp", A)
    if A.numel() == 0:
        return A.clone()
    greatest = A.detach().abs().sum(-2).amax().item()
    if greatest != greatest or greatest == float("inf"):
        return A * float("nan")
    squarings = 0
    while greatest > 3 and squarings < 1100:
        greatest /= 2
        squarings += 1
    A = A * 0.5**squarings
    eye = _ops.eye(A.size(-1), dtype=A.dtype)
    second = A @ A
    fourth = second @ second
    sixth = second @ fourth
    b = [c / _PADE[0] for c in _PADE]
    odd = A @ (sixth @ (b[13] * sixth + b[11] * fourth + b[9] * second) + b[7] * sixth + b[5] * fourth + b[3] * second + b[1] * eye)
    even = sixth @ (b[12] * sixth + b[10] * fourth + b[8] * second) + b[6] * sixth + b[4] * fourth + b[2] * second + b[0] * eye
    result = solve(even - odd, even + odd)
    for _ in range(squarings):
        result = result @ result
    return result


def _order(sizes):
    """Where to split each run of a chain of matrices so that the fewest products are needed."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i][j], split[i][j] = min((cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
    return split


def _multi_dot(tensors):
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(tensors)))
    first, last = tensors[0], tensors[-1]
    if first.dim() not in (1, 2) or last.dim() not in (1, 2):
        raise RuntimeError(f"multi_dot(): the first and last tensors must be 1D or 2D but got {first.dim()}D and {last.dim()}D")
    row, column = first.dim() == 1, last.dim() == 1
    if row:
        tensors[0] = first.unsqueeze(0)
    if column:
        tensors[-1] = last.unsqueeze(-1)
    for i, t in enumerate(tensors):
        if t.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.dim()}D")
        if t.dtype is not first.dtype:
            raise RuntimeError(f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {first.dtype} and tensor {i} {t.dtype}")
        if i and tensors[i - 1].size(1) != t.size(0):
            raise RuntimeError(f"multi_dot(): tensors {i - 1} and {i} with shapes {list(tensors[i - 1].shape)} and {list(t.shape)} cannot be multiplied")
    split = _order([t.size(0) for t in tensors] + [tensors[-1].size(1)])

    def run(i, j):
        return tensors[i] if i == j else run(i, split[i][j]) @ run(split[i][j] + 1, j)

    result = run(0, len(tensors) - 1)
    if row:
        result = result.squeeze(0)
    return result.squeeze(-1) if column else result


def multi_dot(tensors, *, out=None):
    """The product of two or more matrices, the first and last of which may be vectors, in the cheapest order."""
    return given(out, _multi_dot(tensors))


def _count(sizes):
    n = 1
    for size in sizes:
        n *= size
    return n


def tensorinv(A, ind=2, *, out=None):
    """The inverse of tensordot with A over its first `ind` dimensions; they and the others have equal numbers of elements."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    shape = list(A.shape)
    rows, columns = _count(shape[:ind]), _count(shape[ind:])
    if rows != columns:
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {columns} != {rows}")
    return given(out, inv(A.reshape(rows, columns)).reshape(shape[ind:] + shape[:ind]))


def tensorsolve(A, B, dims=None, *, out=None):
    """X with tensordot(A, X, X.dim()) == B; `dims` of A are moved to its end first."""
    if dims is not None:
        A = A.movedim(list(dims), [A.dim() - len(dims) + i for i in range(len(dims))])
    shape = list(A.shape[B.dim():])
    if _count(shape) != _count(A.shape[: B.dim()]) or B.numel() != _count(shape):
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got {_count(shape)} != "
                           f"{_count(A.shape[: B.dim()])}")
    return given(out, solve(A.reshape(B.numel(), -1), B.reshape(-1)).reshape(shape))


def vander(x, N=None):
    """Rows of powers 0 to N - 1 (default: the last size of x) of x's elements."""
    if x.dim() == 0:
        x = x.unsqueeze(0)
    columns = x.size(-1) if N is None else N
    if columns <= 1:
        raise RuntimeError(f"N must be greater than 1. Got {columns}")
    if x.dtype is _C.bool or not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.int64)
    wide = x.unsqueeze(-1).expand(*x.shape, columns - 1)
    return _ops.cat([_ops.ones_like(x).unsqueeze(-1), wide.cumprod(-1)], -1)


def cross(input, other, *, dim=-1, out=None):
    """The cross product of vectors of 3 along dim; the other dimensions broadcast."""
    if input.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    return given(out, _composed._cross(input, other, dim))


def vecdot(x, y, *, dim=-1, out=None):
    """Dot products along dim, x conjugated; the other dimensions broadcast."""
    if x.dtype is not y.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same dtype, but got {x.dtype} and {y.dtype}")
    return given(out, ((x.conj() if x.is_complex() else x) * y).sum(dim))


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """A view of the diagonal along two dims, the last by default."""
    return A.diagonal(offset, dim1, dim2)


def lstsq(A, B, rcond=None, *, driver=None, out=None):
    """X that minimises |A X - B|, with residuals, rank and singular values as `driver` has them. A: (..., m, n), B: (..., m, k) or (..., m)."""
    if A.dim() < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if B.dim() < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if not 0 <= A.dim() - B.dim() <= 1:
        raise RuntimeError(f"torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1, got {A.dim()} and {B.dim()}")
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver}")
    vector = B.dim() < A.dim() and B.shape == A.shape[:-1]
    wide = B.unsqueeze(-1) if vector else B
    m, n = A.shape[-2:]
    if wide.dim() != A.dim() or wide.size(-2) != m:
        raise RuntimeError("torch.linalg.lstsq: input.size(-2) should match other.size(-1)" if vector else "torch.linalg.lstsq: input.size(-2) should match other.size(-2)")
    limit = _C.finfo(A.dtype).eps * max(m, n) if rcond is None else rcond
    rows, rank, values = _linalg._lstsq(A.detach(), wide.detach(), limit, driver)
    solution = rows[..., :n, :]
    if _C.is_grad_enabled() and (A.requires_grad or wide.requires_grad):
        solution = pinv(A) @ wide
    residuals = A.new_empty(0, dtype=values.dtype)
    if m > n and driver != "gelsy":
        full = driver == "gels" or bool((rank == n).all())
        if full:
            rest = rows[..., n:, :]
            residuals = (rest.abs() ** 2).sum(-2)
    if vector:
        solution = solution.squeeze(-1)
        residuals = residuals.squeeze(-1) if residuals.numel() else residuals
    return named("linalg_lstsq", ["solution", "residuals", "rank", "singular_values"], (solution, residuals, rank, values), out)
