"""Linear maps and convolutions."""

from msadapter.pytorch.nn._functional.operators import find

linear, bilinear, conv_tbc = find("linear"), find("bilinear"), find("conv_tbc")
_conv1d, _conv2d, _conv3d = find("conv1d"), find("conv2d"), find("conv3d")
conv_transpose1d, conv_transpose2d, conv_transpose3d = find("conv_transpose1d"), find("conv_transpose2d"), find("conv_transpose3d")


def _with_padding_words(input, weight, stride, padding, dilation, n):
    """(input, padding) for padding='same' or 'valid': the input padded by one more at the end where 'same' is not symmetric."""
    if padding == "valid":
        return input, 0
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in ((stride,) if isinstance(stride, int) else stride)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    dilation = (dilation,) * n if isinstance(dilation, int) else tuple(dilation) * (n if len(dilation) == 1 else 1)
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    extra = [t % 2 for t in total]
    if any(extra):
        from msadapter.pytorch.nn._functional.vision import pad

        input = pad(input, [side for e in reversed(extra) for side in (0, e)])
    return input, [t // 2 for t in total]


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """(N, C, L) or (C, L) with weight (O, C / groups, K); padding may be 'same' or 'valid'."""
    if isinstance(padding, str):
        input, padding = _with_padding_words(input, weight, stride, padding, dilation, 1)
    return _conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """(N, C, H, W) or (C, H, W) with weight (O, C / groups, KH, KW); padding may be 'same' or 'valid'."""
    if isinstance(padding, str):
        input, padding = _with_padding_words(input, weight, stride, padding, dilation, 2)
    return _conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """(N, C, D, H, W) or (C, D, H, W) with weight (O, C / groups, KD, KH, KW); padding may be 'same' or 'valid'."""
    if isinstance(padding, str):
        input, padding = _with_padding_words(input, weight, stride, padding, dilation, 3)
    return _conv3d(input, weight, bias, stride, padding, dilation, groups)
