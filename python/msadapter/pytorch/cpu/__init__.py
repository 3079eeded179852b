"""torch.cpu: mixed precision on the CPU."""

from msadapter.pytorch.cpu import amp

__all__ = ["amp"]
