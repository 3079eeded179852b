"""What pickles of tensors name."""

from msadapter import pytorch as torch


def _rebuild_sparse_tensor(layout, data):
    """A tensor out of (indices, values, size), or for torch.sparse_csr (crow_indices, col_indices, values, size)."""
    if layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(*data)
    if layout is torch.sparse_csr:
        return torch.sparse_csr_tensor(*data)
    raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")


_rebuild_sparse_csr_tensor = _rebuild_sparse_tensor

__all__ = ["_rebuild_sparse_csr_tensor", "_rebuild_sparse_tensor"]
