"""torch.utils."""

from msadapter.pytorch.utils import data

__all__ = ["data"]
