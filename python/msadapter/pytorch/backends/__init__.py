"""torch.backends: what scripts ask and set about the libraries underneath."""

from msadapter.pytorch.backends import cuda, cudnn, mkl, mkldnn, mps, openmp

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]
