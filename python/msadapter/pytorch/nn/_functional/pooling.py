"""Pooling: average, maximum, power, adaptive, fractional, and unpooling."""

import math

from msadapter import pytorch as torch
from msadapter.pytorch.nn._functional.operators import find
from msadapter.pytorch.nn.modules.utils import _list_with_default

avg_pool1d, _avg_pool2d, _avg_pool3d = find("avg_pool1d"), find("avg_pool2d"), find("avg_pool3d")
_max_pool1d, _max_pool2d, _max_pool3d = find("max_pool1d"), find("max_pool2d"), find("max_pool3d")
_max_pool1d_with_indices, _max_pool2d_with_indices, _max_pool3d_with_indices = (
    find("max_pool1d_with_indices"), find("max_pool2d_with_indices"), find("max_pool3d_with_indices"))
adaptive_avg_pool1d, _adaptive_avg_pool2d, _adaptive_avg_pool3d = (
    find("adaptive_avg_pool1d"), find("adaptive_avg_pool2d"), find("adaptive_avg_pool3d"))
_adaptive_max_pool1d, _adaptive_max_pool2d, _adaptive_max_pool3d = (
    find("adaptive_max_pool1d"), find("adaptive_max_pool2d"), find("adaptive_max_pool3d"))
_fractional_max_pool2d, _fractional_max_pool3d = find("fractional_max_pool2d"), find("fractional_max_pool3d")
_max_unpool2d, _max_unpool3d = find("max_unpool2d"), find("max_unpool3d")


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, *, out=None):
    """The mean over windows of (N, C, H, W) or (C, H, W)."""
    return _avg_pool2d(input, kernel_size, kernel_size if stride is None else stride, padding, ceil_mode, count_include_pad, divisor_override, out=out)


def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, *, out=None):
    """The mean over windows of (N, C, D, H, W) or (C, D, H, W)."""
    return _avg_pool3d(input, kernel_size, kernel_size if stride is None else stride, padding, ceil_mode, count_include_pad, divisor_override, out=out)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum over windows of (N, C, L) or (C, L); with its positions if return_indices."""
    return (_max_pool1d_with_indices if return_indices else _max_pool1d)(
        input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum over windows of (N, C, H, W) or (C, H, W); with its positions if return_indices."""
    return (_max_pool2d_with_indices if return_indices else _max_pool2d)(
        input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The maximum over windows of (N, C, D, H, W) or (C, D, H, W); with its positions if return_indices."""
    return (_max_pool3d_with_indices if return_indices else _max_pool3d)(
        input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool1d with its positions."""
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool2d with its positions."""
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """max_pool3d with its positions."""
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def adaptive_avg_pool2d(input, output_size):
    """The mean over windows chosen so that the result is (*, output_size); None keeps a size."""
    return _adaptive_avg_pool2d(input, _list_with_default(output_size, input.shape))


def adaptive_avg_pool3d(input, output_size):
    """The mean over windows chosen so that the result is (*, output_size); None keeps a size."""
    return _adaptive_avg_pool3d(input, _list_with_default(output_size, input.shape))


def _adaptive_max_pool(operator, input, output_size, return_indices):
    values, indices = operator(input, output_size)
    return (values, indices) if return_indices else values


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """The maximum over windows chosen so that the result is (*, output_size)."""
    return _adaptive_max_pool(_adaptive_max_pool1d, input, output_size, return_indices)


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """The maximum over windows chosen so that the result is (*, output_size); None keeps a size."""
    return _adaptive_max_pool(_adaptive_max_pool2d, input, _list_with_default(output_size, input.shape), return_indices)


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """The maximum over windows chosen so that the result is (*, output_size); None keeps a size."""
    return _adaptive_max_pool(_adaptive_max_pool3d, input, _list_with_default(output_size, input.shape), return_indices)


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool1d with its positions."""
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool2d with its positions."""
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """adaptive_max_pool3d with its positions."""
    return adaptive_max_pool3d(input, output_size, True)


def _fractional(name, operator, n, input, kernel_size, output_size, output_ratio, return_indices, samples):
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        ratio = (output_ratio,) * n if isinstance(output_ratio, (int, float)) else output_ratio
        output_size = [int(size * r) for size, r in zip(input.shape[-n:], ratio)]
    if samples is None:
        batch = 1 if input.dim() == n + 1 else input.size(0)
        samples = torch.rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
    values, indices = operator(input, kernel_size, output_size, samples)
    return (values, indices) if return_indices else values


def fractional_max_pool2d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """The maximum over windows at random steps (Graham 2014), output_size or output_ratio times as large."""
    return _fractional("fractional_max_pool2d", _fractional_max_pool2d, 2, input, kernel_size, output_size, output_ratio, return_indices,
                       _random_samples)


def fractional_max_pool3d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """The maximum over windows at random steps (Graham 2014), output_size or output_ratio times as large."""
    return _fractional("fractional_max_pool3d", _fractional_max_pool3d, 3, input, kernel_size, output_size, output_ratio, return_indices,
                       _random_samples)


def fractional_max_pool2d_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """fractional_max_pool2d with its positions."""
    return fractional_max_pool2d(input, kernel_size, output_size, output_ratio, True, _random_samples)


def fractional_max_pool3d_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """fractional_max_pool3d with its positions."""
    return fractional_max_pool3d(input, kernel_size, output_size, output_ratio, True, _random_samples)


def _unpool_size(input, kernel_size, stride, padding, output_size):
    """The size of what was pooled: output_size where it is possible, else the smallest one."""
    sizes = input.shape
    n = len(kernel_size)
    default = [(sizes[-n + d] - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(n)]
    if output_size is None:
        return default
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(output_size)}'")
    for d in range(n):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(f"invalid output_size \"{output_size}\" (dim {d} must be between {low} and {high})")
    return list(output_size)


def _unpool_arguments(n, input, kernel_size, stride, padding, output_size):
    def spread(value):
        return tuple(value) if hasattr(value, "__iter__") else (value,) * n

    kernel_size = spread(kernel_size)
    stride = kernel_size if stride is None else spread(stride)
    padding = spread(padding)
    return _unpool_size(input, kernel_size, stride, padding, output_size), stride, padding


def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Undo max_pool1d: each value at its position, zero elsewhere."""
    size, _, _ = _unpool_arguments(1, input, kernel_size, stride, padding, output_size)
    return _max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), list(size) + [1]).squeeze(-1)


def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Undo max_pool2d: each value at its position, zero elsewhere."""
    return _max_unpool2d(input, indices, _unpool_arguments(2, input, kernel_size, stride, padding, output_size)[0])


def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Undo max_pool3d: each value at its position, zero elsewhere."""
    size, stride, padding = _unpool_arguments(3, input, kernel_size, stride, padding, output_size)
    return _max_unpool3d(input, indices, size, stride, padding)


def _power_mean(mean, norm_type, count):
    from msadapter.pytorch.nn._functional.activation import relu

    return (torch.sign(mean) * relu(torch.abs(mean))).mul(count).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The sum of norm_type-th powers over windows of (N, C, L), to the power of 1 / norm_type."""
    mean = avg_pool1d(input.pow(norm_type), kernel_size, kernel_size if stride is None else stride, 0, ceil_mode)
    return _power_mean(mean, norm_type, kernel_size if isinstance(kernel_size, int) else kernel_size[0])


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """The sum of norm_type-th powers over windows of (N, C, H, W), to the power of 1 / norm_type."""
    mean = avg_pool2d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _power_mean(mean, norm_type, kernel_size ** 2 if isinstance(kernel_size, int) else math.prod(kernel_size))
