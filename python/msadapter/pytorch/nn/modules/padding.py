"""Padding as modules: sizes are (left, right) of the last dimension, then of the one before, or one number for all."""

from msadapter.pytorch.nn import functional as F
from msadapter.pytorch.nn.modules.module import Module
from msadapter.pytorch.nn.modules.utils import _ntuple, _pair, _quadruple

__all__ = ["ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
           "ReplicationPad2d", "ReplicationPad3d", "ZeroPad2d"]

_sextuple = _ntuple(6)


class _ConstantPadNd(Module):
    _to_tuple = None

    def __init__(self, padding, value):
        super().__init__()
        self.padding = type(self)._to_tuple(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """The last dimension padded with value."""

    _to_tuple = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """The last two dimensions padded with value."""

    _to_tuple = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """The last three dimensions padded with value."""

    _to_tuple = staticmethod(_sextuple)


class ZeroPad2d(ConstantPad2d):
    """The last two dimensions padded with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _PadNd(Module):
    _to_tuple = _mode = None

    def __init__(self, padding):
        super().__init__()
        self.padding = type(self)._to_tuple(padding)

    def forward(self, input):
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """(N, C, L) or (C, L), mirrored at its ends."""

    _to_tuple = staticmethod(_pair)


class ReflectionPad2d(_ReflectionPadNd):
    """(N, C, H, W) or (C, H, W), mirrored at its edges."""

    _to_tuple = staticmethod(_quadruple)


class ReflectionPad3d(_ReflectionPadNd):
    """(N, C, D, H, W) or (C, D, H, W), mirrored at its faces."""

    _to_tuple = staticmethod(_sextuple)


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """(N, C, L) or (C, L), its ends repeated."""

    _to_tuple = staticmethod(_pair)


class ReplicationPad2d(_ReplicationPadNd):
    """(N, C, H, W) or (C, H, W), its edges repeated."""

    _to_tuple = staticmethod(_quadruple)


class ReplicationPad3d(_ReplicationPadNd):
    """(N, C, D, H, W) or (C, D, H, W), its faces repeated."""

    _to_tuple = staticmethod(_sextuple)
