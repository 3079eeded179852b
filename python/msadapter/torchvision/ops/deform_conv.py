"""Deformable convolution (Dai et al., 2017; Zhu et al., 2019, with masks)."""

import math

from msadapter import _C
from msadapter import pytorch as torch
from msadapter.pytorch import nn


def deform_conv2d(input, offset, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), mask=None):
    """A convolution whose taps are moved by offsets, and weighed by a mask, at every place.

    input (N, C, H, W), offset (N, 2 * offset groups * taps, out H, out W) with y before x, weight (out C, C / groups, high, wide), mask
    (N, offset groups * taps, out H, out W), bias (out C,); all of one floating type. Raises RuntimeError when sizes don't fit.
    """
    if torch.is_autocast_enabled():
        operands = [t if t is None else t.float() for t in (input, offset, weight, bias, mask)]
        with torch.autocast("cuda", enabled=False):
            return deform_conv2d(*operands[:4], stride, padding, dilation, operands[4]).to(input.dtype)
    return _C._vision.deform_conv2d(input, offset, weight, bias, stride, padding, dilation, mask)


def _pair(value):
    return tuple(value) if isinstance(value, (list, tuple)) else (value, value)


class DeformConv2d(nn.Module):
    """`deform_conv2d` with a weight and bias of its own. Raises ValueError when channels can't be shared out to the groups."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True):
        super().__init__()
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups != 0:
                raise ValueError(f"{name} must be divisible by groups")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.padding, self.dilation = _pair(kernel_size), _pair(stride), _pair(padding), _pair(dilation)
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels // groups, *self.kernel_size))
        if bias:
            self.bias = nn.Parameter(torch.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Weight and bias as those of a convolution."""
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.weight[0].numel())
            nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, input, offset, mask=None):
        return deform_conv2d(input, offset, self.weight, self.bias, self.stride, self.padding, self.dilation, mask)

    def __repr__(self):
        shown = [str(self.in_channels), str(self.out_channels), f"kernel_size={self.kernel_size}", f"stride={self.stride}"]
        for name, plain in (("padding", (0, 0)), ("dilation", (1, 1)), ("groups", 1)):
            if getattr(self, name) != plain:
                shown.append(f"{name}={getattr(self, name)}")
        if self.bias is None:
            shown.append("bias=False")
        return f"{type(self).__name__}({', '.join(shown)})"
