"""torch.sparse: products, sums and softmax of sparse tensors."""

from msadapter import _C
from msadapter import pytorch as torch

sampled_addmm = _C._sparse.sampled_addmm


def mm(mat1, mat2):
    """The product of matrices the first (or both) of which are sparse; dense when either is. The gradient of a sparse one is sparse."""
    return torch.mm(mat1, mat2)


def addmm(mat, mat1, mat2, *, beta=1.0, alpha=1.0):
    """beta * mat + alpha * (mat1 @ mat2) with mat1 sparse."""
    return torch.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input, dim=None, dtype=None):
    """The sum of a sparse tensor's elements, or over dimensions: sparse as long as a sparse dimension is left.

    Raises IndexError for dimensions that are not there, RuntimeError for repeated ones.
    """
    if dim is None:
        return torch.sum(input, dtype=dtype)
    ndim = input.dim()
    given = [dim] if isinstance(dim, int) else list(dim)
    for d in given:
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
    dims = sorted({d % ndim for d in given})
    if len(dims) != len(given):
        raise RuntimeError("dim appears multiple times in the list of dims")
    if not input.is_sparse:
        raise RuntimeError("torch.sparse.sum: the tensor must be sparse COO")
    input = input.coalesce() if input.requires_grad else input
    indices, values = input._indices(), input.values() if input.requires_grad else input._values()
    values = values if dtype is None else values.to(dtype)
    n_sparse = input.sparse_dim()
    within = [d - n_sparse + 1 for d in dims if d >= n_sparse]
    if within:
        values = values.sum(within)
    kept = [d for d in range(n_sparse) if d not in dims]
    if not kept:
        return values.sum(0)
    size = [s for d, s in enumerate(input.shape) if d not in dims]
    result = _C._ops._sparse_coo_tensor_unsafe(indices[kept], values, tuple(size), len(kept) == n_sparse and input.is_coalesced())
    return result.coalesce() if len(kept) < n_sparse else result


def _groups(indices, shape, dim):
    """For each element, the number of the line along `dim` that it lies on, and how many lines there are."""
    key = torch.zeros(indices.size(1), dtype=torch.int64)
    for d in range(indices.size(0)):
        if d != dim:
            key = key * shape[d] + indices[d]
    lines, group = key.unique(return_inverse=True)
    return group, lines.numel()


def _softmax(name, input, dim, dtype):
    if not input.is_sparse:
        raise RuntimeError(f"torch.sparse.{name}: the tensor must be sparse COO")
    if not -input.dim() <= dim < input.dim():
        raise IndexError(f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but got {dim})")
    dim = dim % input.dim()
    input = input.coalesce()
    indices, values = input.indices(), input.values()
    values = values if dtype is None else values.to(dtype)
    n_sparse = input.sparse_dim()
    if dim >= n_sparse:
        values = getattr(torch, name)(values, dim - n_sparse + 1)
    elif values.numel():
        group, n = _groups(indices, input.shape, dim)
        spread = group.reshape(-1, *[1] * (values.dim() - 1)).expand_as(values)
        start = values.new_full((n, *values.shape[1:]), -torch.inf)
        most = start.scatter_reduce(0, spread, values.detach(), "amax").index_select(0, group)
        shifted = values - most
        power = shifted.exp()
        total = values.new_zeros(n, *values.shape[1:]).index_add(0, group, power).index_select(0, group)
        values = power / total if name == "softmax" else shifted - total.log()
    return _C._ops._sparse_coo_tensor_unsafe(indices, values, tuple(input.shape), True)


def softmax(input, dim, dtype=None):
    """exp(x) over its sum along `dim`, of the specified elements alone: those that are not there count as minus infinity."""
    return _softmax("softmax", input, dim, dtype)


def log_softmax(input, dim, dtype=None):
    """The logarithm of softmax()."""
    return _softmax("log_softmax", input, dim, dtype)


__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "sum"]
