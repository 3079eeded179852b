"""make_tensor."""

import math

from msadapter import pytorch as torch

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def make_tensor(*shape, dtype, device, low=None, high=None, requires_grad=False, noncontiguous=False, exclude_zero=False):
    """A tensor of `shape`, drawn uniformly from [low, high).

    The bounds are [-9, 9) unless given, [-9, 10) for integers, [0, 10) for uint8, and are held to what the dtype can express; bool is drawn from
    both values. exclude_zero replaces zeros by 1, in floating point by the smallest normal number. Raises ValueError for bounds that are nan or in
    the wrong order and for requires_grad of integers.
    """
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = shape[0]
    shape = tuple(shape)
    differentiable = dtype.is_floating_point or dtype.is_complex
    if requires_grad and not differentiable:
        raise ValueError("make_tensor: requires_grad must be False for integral dtype")
    real = torch.empty(0, dtype=dtype).real.dtype if dtype.is_complex else dtype
    if dtype is torch.bool:
        result = torch.randint(0, 2, shape, device=device, dtype=dtype)
    elif dtype in _INTEGERS:
        low, high = _bounds(low, high, torch.iinfo(dtype), (0, 10) if dtype is torch.uint8 else (-9, 10))
        result = torch.randint(math.floor(low), math.ceil(high), shape, device=device, dtype=dtype)
    elif differentiable:
        low, high = _bounds(low, high, torch.finfo(real), (-9, 9))
        parts = []
        for _ in range(2 if dtype.is_complex else 1):
            drawn = torch.rand(shape, device=device, dtype=real)
            parts.append(high * drawn + low * (1 - drawn))
        result = torch.complex(*parts) if dtype.is_complex else parts[0]
    else:
        raise TypeError(f"make_tensor: dtype {dtype} is not supported")
    if noncontiguous and result.numel() > 1:
        result = torch.repeat_interleave(result, 2, dim=-1)[..., ::2]
    if exclude_zero:
        least = torch.tensor(torch.finfo(real).tiny, dtype=real, device=device) if differentiable else torch.tensor(1, dtype=dtype, device=device)
        result[result == 0] = torch.complex(least, least) if dtype.is_complex else least
    return result.requires_grad_(requires_grad) if differentiable else result


def _bounds(low, high, limits, default):
    low, high = (given if given is not None else own for given, own in zip((low, high), default))
    if low != low or high != high:
        raise ValueError("make_tensor: one of low or high was NaN!")
    if low > high:
        raise ValueError("make_tensor: low must be weakly less than high!")
    return tuple(min(max(bound, limits.min), limits.max) for bound in (low, high))
