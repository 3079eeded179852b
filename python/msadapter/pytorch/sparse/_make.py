"""Sparse tensors out of indices and values, and the old names of their products."""

from msadapter import _C
from msadapter import pytorch as torch


def _as_indices(value):
    indices = value if isinstance(value, torch.Tensor) else torch.tensor(value)
    return indices if indices.dtype in (torch.int64, torch.int32) else indices.long()


def _as_values(values, dtype, requires_grad):
    if not isinstance(values, torch.Tensor):
        values = torch.tensor(values, dtype=dtype)
    elif dtype is not None:
        values = values.to(dtype)
    return values.detach() if requires_grad else values


def _check_device(device):
    if device is not None:
        torch.empty(0, device=device)


def _sparse_coo_tensor_unsafe(indices, values, size, *, dtype=None, device=None, requires_grad=False):
    """sparse_coo_tensor(); indices are checked here as well, since nothing may read beyond its memory."""
    return sparse_coo_tensor(indices, values, size, dtype=dtype, device=device, requires_grad=requires_grad)


def sparse_coo_tensor(indices=None, values=None, size=None, *, dtype=None, device=None, requires_grad=False):
    """A tensor with values (nnz, dense sizes) at indices (sparse dimensions, nnz), zero elsewhere; values at the same place add up.

    Without size it is the smallest that holds all; size alone makes an empty tensor. Raises RuntimeError for indices that lie outside or
    fit the values not.
    """
    _check_device(device)
    if values is None:
        size = indices if size is None else size
        if isinstance(size, torch.Tensor) or size is None:
            raise TypeError("sparse_coo_tensor(): values are missing")
        size = tuple(size)
        result = _C._ops._sparse_coo_tensor_unsafe(torch.empty(len(size), 0, dtype=torch.int64), torch.empty(0, dtype=dtype), size, True)
        return result.requires_grad_() if requires_grad else result
    indices, values = _as_indices(indices).long(), _as_values(values, dtype, requires_grad)
    if values.dim() == 0:
        values = values.expand(1) if indices.dim() == 2 and indices.size(1) == 1 else values.unsqueeze(0)
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if size is None:
        if indices.numel():
            least = indices.min(1).values
            if (least < 0).any():
                dim = int((least < 0).nonzero()[0])
                raise RuntimeError(f"found negative index {int(least[dim])} for dim {dim}")
            size = tuple((indices.max(1).values + 1).tolist()) + tuple(values.shape[1:])
        else:
            size = (0,) * indices.size(0) + tuple(values.shape[1:])
    result = _C._ops._sparse_coo_tensor_unsafe(indices.detach(), values, tuple(size), False)
    return result.requires_grad_() if requires_grad else result


def sparse_csr_tensor(crow_indices, col_indices, values, size=None, *, dtype=None, device=None, requires_grad=False):
    """A matrix with values (nnz) in columns col_indices (nnz); row i has those from crow_indices[i] to crow_indices[i + 1].

    Raises RuntimeError for indices that are no such thing, and NotImplementedError for batches of matrices and dense blocks.
    """
    _check_device(device)
    crow, col, values = _as_indices(crow_indices), _as_indices(col_indices), _as_values(values, dtype, requires_grad)
    if size is None:
        size = (max(crow.numel() - 1, 0), int(col.max()) + 1 if col.numel() else 0)
    result = _C._ops._sparse_csr_tensor_unsafe(crow, col, values, tuple(size))
    return result.requires_grad_() if requires_grad else result


def smm(input, mat):
    """The product of a sparse and a dense matrix, as a sparse one."""
    return hspmm(input, mat)


def hspmm(mat1, mat2, *, out=None):
    """The product of a sparse and a dense matrix, sparse in the rows: values are whole rows."""
    if not mat1.is_sparse:
        raise RuntimeError("hspmm: the first matrix must be sparse COO")
    rows = mat1.coalesce().indices()[0].unique()
    result = torch._sparse_coo_tensor_unsafe(rows.unsqueeze(0), torch.mm(mat1, mat2).index_select(0, rows), (mat1.size(0), mat2.size(1)))
    return result if out is None else out.copy_(result)


def sspaddmm(input, mat1, mat2, *, beta=1, alpha=1, out=None):
    """beta * input + alpha * (mat1 @ mat2), with input and mat1 and the result sparse."""
    if not input.is_sparse or not mat1.is_sparse:
        raise RuntimeError("sspaddmm: the matrices added to and multiplied from the left must be sparse COO")
    result = (input * beta + torch.mm(mat1, mat2).to_sparse() * alpha)
    return result if out is None else out.copy_(result)


__all__ = ["_sparse_coo_tensor_unsafe", "hspmm", "smm", "sparse_coo_tensor", "sparse_csr_tensor", "sspaddmm"]
