"""Normalisation: batch, instance, layer, group, local response, norms along a dimension."""

from msadapter import pytorch as torch
from msadapter.pytorch.nn._functional.operators import find
from msadapter.pytorch.nn._functional.pooling import avg_pool2d, avg_pool3d
from msadapter.pytorch.nn._functional.vision import pad

_batch_norm, _instance_norm, _layer_norm, _group_norm = find("batch_norm"), find("instance_norm"), find("layer_norm"), find("group_norm")


def _check_values_per_channel(size):
    count = size[0]
    for length in size[2:]:
        count *= length
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05):
    """Channels of (N, C, *) made zero mean and unit variance, by the batch in training, by the running values otherwise."""
    if training:
        _check_values_per_channel(input.shape)
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05):
    """Channels of each sample of (N, C, *) made zero mean and unit variance."""
    if use_input_stats:
        size = input.shape
        count = 1
        for length in size[2:]:
            count *= length
        if count == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    """The last dimensions, of sizes normalized_shape, made zero mean and unit variance."""
    return _layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """The last dimensions, of sizes normalized_shape, divided by their root mean square; eps defaults to the type's."""
    normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if tuple(input.shape[input.dim() - len(normalized_shape):]) != normalized_shape:
        raise RuntimeError(f"Given normalized_shape={list(normalized_shape)}, expected input with shape [*, "
                           f"{', '.join(map(str, normalized_shape))}], but got input of size{list(input.shape)}")
    if eps is None:
        eps = torch.finfo(input.dtype).eps
    dims = tuple(range(-len(normalized_shape), 0))
    result = input * torch.rsqrt(input.square().mean(dims, keepdim=True) + eps)
    return result if weight is None else result * weight


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    """Groups of channels of (N, C, *) made zero mean and unit variance."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    _check_values_per_channel([input.size(0) * input.size(1) // num_groups, num_groups] + list(input.shape[2:]))
    return _group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Each channel divided by a power of the squares of `size` channels around it (Krizhevsky et al. 2012)."""
    dim = input.dim()
    if dim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input).unsqueeze(1)
    if dim == 3:
        squares = avg_pool2d(pad(squares, (0, 0, size // 2, (size - 1) // 2)), (size, 1), stride=1).squeeze(1)
    else:
        sizes = input.shape
        squares = squares.view(sizes[0], 1, sizes[1], sizes[2], -1)
        squares = pad(squares, (0, 0, 0, 0, size // 2, (size - 1) // 2))
        squares = avg_pool3d(squares, (size, 1, 1), stride=1).squeeze(1).view(sizes)
    return input / squares.mul(alpha).add(k).pow(beta)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input over its p-norm along dim (or eps, if that is more)."""
    if out is None:
        return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return torch.div(input, input.norm(p, dim, keepdim=True).clamp_min_(eps).expand_as(input), out=out)
