"""Initial values of parameters, drawn in place as PyTorch draws them: the same seed gives the same weights."""

import math

from msadapter import pytorch as torch

_LINEAR_KINDS = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")


def calculate_gain(nonlinearity, param=None):
    """The factor that keeps variance through a nonlinearity. Raises ValueError for one that is not known."""
    if nonlinearity in _LINEAR_KINDS:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif not isinstance(param, bool) and isinstance(param, (int, float)):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor, a=0.0, b=1.0):
    """Uniform on [a, b)."""
    with torch.no_grad():
        return tensor.uniform_(a, b)


def normal_(tensor, mean=0.0, std=1.0):
    """Normal with this mean and standard deviation."""
    with torch.no_grad():
        return tensor.normal_(mean, std)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0):
    """Normal, cut off to [a, b]: by inverting the distribution function of the cut part."""
    if mean < a - 2 * std or mean > b + 2 * std:
        import warnings

        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
                      stacklevel=2)

    def below(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    low, high = below((a - mean) / std), below((b - mean) / std)
    with torch.no_grad():
        tensor.uniform_(2 * low - 1, 2 * high - 1)
        tensor.erfinv_()
        tensor.mul_(std * math.sqrt(2.0))
        tensor.add_(mean)
        return tensor.clamp_(min=a, max=b)


def constant_(tensor, val):
    """All elements val."""
    with torch.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """All elements 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """All elements 0."""
    with torch.no_grad():
        return tensor.zero_()


def eye_(tensor):
    """The identity, for a matrix. Raises ValueError for other dimensions."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with torch.no_grad():
        tensor.copy_(torch.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))
    return tensor


def dirac_(tensor, groups=1):
    """Convolution weights that pass as many input channels through unchanged as there are, in each group."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    outputs, inputs, *spatial = tensor.shape
    if outputs % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = outputs // groups
    centre = tuple(size // 2 for size in spatial)
    with torch.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, inputs)):
                tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive_field = 1
    for size in tensor.shape[2:]:
        receptive_field *= size
    return tensor.size(1) * receptive_field, tensor.size(0) * receptive_field


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor, gain=1.0):
    """Uniform with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor, gain=1.0):
    """Normal with variance 2 gain^2 / (fan_in + fan_out) (Glorot and Bengio 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)))


def _is_empty(tensor):
    if 0 not in tensor.shape:
        return False
    import warnings

    warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
    return True


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    """Uniform with variance gain^2 / fan (He et al. 2015); a is the slope of leaky_relu."""
    if _is_empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    """Normal with variance gain^2 / fan (He et al. 2015); a is the slope of leaky_relu."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0, calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode)))


def _orthonormal_columns(matrix):
    """Q of matrix = Q R where R's diagonal is positive, by reflections (Householder 1958); as many rows as columns, or more."""
    rows, columns = matrix.shape
    rest, reflections, signs = matrix.clone(), [], []
    for k in range(columns):
        v = rest[k:, k].clone()
        length = v.norm()
        sign = -1.0 if v[0].item() >= 0 else 1.0
        signs.append(sign)
        v[0] -= sign * length
        norm = v.norm()
        if norm.item() > 0:
            v /= norm
        rest[k:, k:] -= 2 * torch.outer(v, torch.mv(rest[k:, k:].t(), v))
        reflections.append(v)
    q = torch.eye(rows, columns, dtype=matrix.dtype)
    for k in range(columns - 1, -1, -1):
        v = reflections[k]
        q[k:] -= 2 * torch.outer(v, torch.mv(q[k:].t(), v))
    return q * torch.tensor(signs, dtype=matrix.dtype)


def orthogonal_(tensor, gain=1):
    """Orthogonal rows or columns times gain (Saxe et al. 2013); dimensions after the first count as one."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    columns = tensor.numel() // rows
    flattened = tensor.new_empty(rows, columns).normal_(0, 1)
    if rows < columns:
        flattened.t_()
    q = _orthonormal_columns(flattened.double()).to(tensor.dtype)
    if rows < columns:
        q.t_()
    with torch.no_grad():
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor, sparsity, std=0.01):
    """A matrix of normal values with this share of zeros in every column (Martens 2010)."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = int(math.ceil(sparsity * rows))
    with torch.no_grad():
        tensor.normal_(0, std)
        for column in range(columns):
            tensor[torch.randperm(rows)[:zeros], column] = 0
    return tensor


def _old_name(function):
    """The spelling without the underscore, which warns."""
    name = function.__name__

    def old(*args, **kwargs):
        import warnings

        warnings.warn(f"nn.init.{name[:-1]} is now deprecated in favor of nn.init.{name}.", stacklevel=2)
        return function(*args, **kwargs)

    old.__name__ = old.__qualname__ = name[:-1]
    old.__doc__ = f"The old name of {name}."
    return old


uniform, normal, constant, eye, dirac = map(_old_name, (uniform_, normal_, constant_, eye_, dirac_))
xavier_uniform, xavier_normal, kaiming_uniform, kaiming_normal, orthogonal, sparse = map(
    _old_name, (xavier_uniform_, xavier_normal_, kaiming_uniform_, kaiming_normal_, orthogonal_, sparse_))
