"""Pooling as modules."""

from msadapter.pytorch.nn import functional as F
from msadapter.pytorch.nn.modules.module import Module
from msadapter.pytorch.nn.modules.utils import _pair, _single, _triple

__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
           "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "MaxPool1d",
           "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]


class _MaxPoolNd(Module):
    """What all maximum poolings share."""

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input):
        return type(self)._function(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)

    def extra_repr(self):
        return (f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
                f"ceil_mode={self.ceil_mode}")


class MaxPool1d(_MaxPoolNd):
    """The maximum over windows of (N, C, L) or (C, L)."""

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPoolNd):
    """The maximum over windows of (N, C, H, W) or (C, H, W)."""

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPoolNd):
    """The maximum over windows of (N, C, D, H, W) or (C, D, H, W)."""

    _function = staticmethod(F.max_pool3d)


class _MaxUnpoolNd(Module):
    """What all unpoolings share."""

    _to_tuple = _function = None

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        as_tuple = type(self)._to_tuple
        self.kernel_size = as_tuple(kernel_size)
        self.stride = as_tuple(stride if stride is not None else kernel_size)
        self.padding = as_tuple(padding)

    def forward(self, input, indices, output_size=None):
        return type(self)._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Undoes MaxPool1d: each value at its position, zero elsewhere."""

    _to_tuple, _function = staticmethod(_single), staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpoolNd):
    """Undoes MaxPool2d: each value at its position, zero elsewhere."""

    _to_tuple, _function = staticmethod(_pair), staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpoolNd):
    """Undoes MaxPool3d: each value at its position, zero elsewhere."""

    _to_tuple, _function = staticmethod(_triple), staticmethod(F.max_unpool3d)


class _AvgPoolNd(Module):
    """What all average poolings share."""

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean over windows of (N, C, L) or (C, L)."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolWithDivisor(_AvgPoolNd):
    """The average poolings of two and three dimensions."""

    _function = None

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        return type(self)._function(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad,
                                    self.divisor_override)

    def __setstate__(self, state):
        super().__setstate__(state)
        for name, value in (("padding", 0), ("ceil_mode", False), ("count_include_pad", True), ("divisor_override", None)):
            self.__dict__.setdefault(name, value)


class AvgPool2d(_AvgPoolWithDivisor):
    """The mean over windows of (N, C, H, W) or (C, H, W)."""

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPoolWithDivisor):
    """The mean over windows of (N, C, D, H, W) or (C, D, H, W)."""

    _function = staticmethod(F.avg_pool3d)


class _FractionalMaxPoolNd(Module):
    """What the fractional poolings share. Raises ValueError unless exactly one of output_size and output_ratio is given."""

    _to_tuple = _function = None

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        as_tuple = type(self)._to_tuple
        self.kernel_size = as_tuple(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = as_tuple(output_size) if output_size is not None else None
        self.output_ratio = as_tuple(output_ratio) if output_ratio is not None else None
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        return type(self)._function(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The maximum over windows at random steps (Graham 2014)."""

    _to_tuple, _function = staticmethod(_pair), staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The maximum over windows at random steps (Graham 2014)."""

    _to_tuple, _function = staticmethod(_triple), staticmethod(F.fractional_max_pool3d)


class _LPPoolNd(Module):
    """What the power poolings share."""

    _function = None

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input):
        return type(self)._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self):
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPoolNd):
    """The sum of norm_type-th powers over windows of (N, C, L), to the power of 1 / norm_type."""

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPoolNd):
    """The sum of norm_type-th powers over windows of (N, C, H, W), to the power of 1 / norm_type."""

    _function = staticmethod(F.lp_pool2d)


class _AdaptiveAvgPoolNd(Module):
    """What the adaptive average poolings share."""

    _function = None

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return type(self)._function(input, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The mean over windows chosen so that the result is (*, output_size)."""

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The mean over windows chosen so that the result is (*, output_size); None keeps a size."""

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The mean over windows chosen so that the result is (*, output_size); None keeps a size."""

    _function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPoolNd(Module):
    """What the adaptive maximum poolings share."""

    _function = None

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input):
        return type(self)._function(input, self.output_size, self.return_indices)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maximum over windows chosen so that the result is (*, output_size)."""

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maximum over windows chosen so that the result is (*, output_size); None keeps a size."""

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maximum over windows chosen so that the result is (*, output_size); None keeps a size."""

    _function = staticmethod(F.adaptive_max_pool3d)
