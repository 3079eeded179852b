"""torchvision's data sets and transforms, over msadapter's tensors."""

from msadapter.torchvision import datasets, transforms

__version__ = "0.13.1"
__all__ = ["datasets", "transforms"]
