"""Dropout (Srivastava et al. 2014) as modules."""

from msadapter.pytorch.nn import functional as F
from msadapter.pytorch.nn.modules.module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class _DropoutNd(Module):
    """What all dropouts share. Raises ValueError for a p outside [0, 1]."""

    _function = None

    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input):
        return type(self)._function(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Elements set to zero with probability p, the others divided by 1 - p, in training."""

    _function = staticmethod(F.dropout)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of (N, C, L) or (C, L)."""

    _function = staticmethod(F.dropout1d)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of (N, C, H, W)."""

    _function = staticmethod(F.dropout2d)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    _function = staticmethod(F.dropout3d)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps the mean and variance of selu's outputs; never in place, as in torch."""

    def forward(self, input):
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels."""

    def forward(self, input):
        return F.feature_alpha_dropout(input, self.p, self.training)
