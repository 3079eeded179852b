"""Activations, softmax and dropout."""

from msadapter import pytorch as torch
from msadapter.pytorch.nn._functional.operators import find

_celu, _celu_, _elu, elu_ = find("celu"), find("celu_"), find("elu"), find("elu_")
_hardsigmoid, _hardsigmoid_, _hardswish, _hardswish_ = find("hardsigmoid"), find("hardsigmoid_"), find("hardswish"), find("hardswish_")
_hardtanh, hardtanh_, _leaky_relu, leaky_relu_ = find("hardtanh"), find("hardtanh_"), find("leaky_relu"), find("leaky_relu_")
_mish, _mish_, _relu, relu_, _relu6, _relu6_ = find("mish"), find("mish_"), find("relu"), find("relu_"), find("relu6"), find("relu6_")
_rrelu, _rrelu_, _selu, selu_, _silu, _silu_ = find("rrelu"), find("rrelu_"), find("selu"), find("selu_"), find("silu"), find("silu_")
_threshold, threshold_ = find("threshold"), find("threshold_")
_softmax, _log_softmax, _glu = find("softmax"), find("log_softmax"), find("glu")
_dropout, _dropout_, _feature_dropout, _feature_dropout_ = (
    find("dropout"), find("dropout_"), find("feature_dropout"), find("feature_dropout_"))
_alpha_dropout, _alpha_dropout_, _feature_alpha_dropout, _feature_alpha_dropout_ = (
    find("alpha_dropout"), find("alpha_dropout_"), find("feature_alpha_dropout"), find("feature_alpha_dropout_"))
celu_, rrelu_ = _celu_, _rrelu_
gelu, hardshrink, softshrink, softplus, logsigmoid, prelu = (
    find("gelu"), find("hardshrink"), find("softshrink"), find("softplus"), find("log_sigmoid"), find("prelu"))


def threshold(input, threshold, value, inplace=False):
    """input where it is above threshold, value elsewhere."""
    return threshold_(input, threshold, value) if inplace else _threshold(input, threshold, value)


def relu(input, inplace=False):
    """max(input, 0)."""
    return relu_(input) if inplace else _relu(input)


def relu6(input, inplace=False):
    """min(max(input, 0), 6)."""
    return _relu6_(input) if inplace else _relu6(input)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """input clamped to [min_val, max_val]."""
    return hardtanh_(input, min_val, max_val) if inplace else _hardtanh(input, min_val, max_val)


def elu(input, alpha=1.0, inplace=False):
    """input where positive, alpha (exp(input) - 1) elsewhere."""
    return elu_(input, alpha) if inplace else _elu(input, alpha)


def selu(input, inplace=False):
    """The self-normalising elu (Klambauer et al. 2017)."""
    return selu_(input) if inplace else _selu(input)


def celu(input, alpha=1.0, inplace=False):
    """max(0, input) + min(0, alpha (exp(input / alpha) - 1))."""
    return celu_(input, alpha) if inplace else _celu(input, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """input where positive, negative_slope input elsewhere."""
    return leaky_relu_(input, negative_slope) if inplace else _leaky_relu(input, negative_slope)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu whose slope is drawn from [lower, upper] in training, and their mean otherwise."""
    return (_rrelu_ if inplace else _rrelu)(input, lower, upper, training)


def glu(input, dim=-1):
    """a sigmoid(b), where a and b are the halves of input along dim."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _glu(input, dim)


def tanhshrink(input):
    """input - tanh(input)."""
    return input - input.tanh()


def softsign(input):
    """input / (1 + |input|)."""
    return input / (input.abs() + 1)


def tanh(input):
    """The hyperbolic tangent."""
    return input.tanh()


def sigmoid(input):
    """1 / (1 + exp(-input))."""
    return input.sigmoid()


def hardsigmoid(input, inplace=False):
    """relu6(input + 3) / 6."""
    return _hardsigmoid_(input) if inplace else _hardsigmoid(input)


def hardswish(input, inplace=False):
    """input relu6(input + 3) / 6."""
    return _hardswish_(input) if inplace else _hardswish(input)


def silu(input, inplace=False):
    """input sigmoid(input)."""
    return _silu_(input) if inplace else _silu(input)


def mish(input, inplace=False):
    """input tanh(softplus(input))."""
    return _mish_(input) if inplace else _mish(input)


def _implicit_dim(name, ndim, stacklevel):
    """The dimension that softmax used to choose by itself."""
    import warnings

    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
                  stacklevel=stacklevel)
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(input) over its sum along dim; computed in dtype where that is given."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return _softmax(input, dim) if dtype is None else _softmax(input, dim, dtype=dtype)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-input)."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return _softmax(-input, dim) if dtype is None else _softmax(-input, dim, dtype=dtype)


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """The logarithm of softmax, computed without overflow."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return _log_softmax(input, dim) if dtype is None else _log_softmax(input, dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution (Jang et al. 2016); one-hot, with the soft gradient, if hard."""
    if eps != 1e-10:
        import warnings

        warnings.warn("`eps` parameter is deprecated and has no effect.")
    gumbels = -torch.empty_like(logits).exponential_().log()
    soft = _softmax((logits + gumbels) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = torch.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


def _check_p(p):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input, p=0.5, training=True, inplace=False):
    """Elements set to zero with probability p, the others divided by 1 - p, in training."""
    if p < 0.0 or p > 1.0:
        _check_p(p)
    return _dropout_(input, p, training) if inplace else _dropout(input, p, training)


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps the mean and variance of selu's outputs."""
    _check_p(p)
    return _alpha_dropout_(input, p, training) if inplace else _alpha_dropout(input, p, training)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels."""
    _check_p(p)
    return _feature_alpha_dropout_(input, p, training) if inplace else _feature_alpha_dropout(input, p, training)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels: (N, C, L) or (C, L)."""
    _check_p(p)
    n = input.dim()
    if n not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {n}D input. Note that dropout1d exists to provide channel-wise "
                           "dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension (i.e. 2D or 3D "
                           "inputs).")
    batched = input if n == 3 else input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _feature_dropout_(batched, p, training) if inplace else _feature_dropout(batched, p, training)
    if n == 2:
        result = result.squeeze_(0) if inplace else result.squeeze(0)
    return result


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels: (N, C, H, W)."""
    _check_p(p)
    n = input.dim()
    if n not in (3, 4):
        import warnings

        warnings.warn(f"dropout2d: Received a {n}-D input to dropout2d, which is deprecated and will result in an error in a future release. "
                      "To retain the behavior and silence this warning, please use dropout instead. Note that dropout2d exists to provide "
                      "channel-wise dropout on inputs with 2 spatial dimensions, a channel dimension, and an optional batch dimension "
                      "(i.e. 3D or 4D inputs).")
    elif n == 3:
        import warnings

        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
                      "interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to interpret "
                      "the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise dropout behavior, "
                      "please switch to using dropout1d instead.")
    return _feature_dropout_(input, p, training) if inplace else _feature_dropout(input, p, training)


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels: (N, C, D, H, W) or (C, D, H, W)."""
    _check_p(p)
    n = input.dim()
    if n not in (4, 5):
        import warnings

        warnings.warn(f"dropout3d: Received a {n}-D input to dropout3d, which is deprecated and will result in an error in a future release. "
                      "To retain the behavior and silence this warning, please use dropout instead. Note that dropout3d exists to provide "
                      "channel-wise dropout on inputs with 3 spatial dimensions, a channel dimension, and an optional batch dimension "
                      "(i.e. 4D or 5D inputs).")
    batched = input if n != 4 else input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _feature_dropout_(batched, p, training) if inplace else _feature_dropout(batched, p, training)
    if n == 4:
        result = result.squeeze_(0) if inplace else result.squeeze(0)
    return result
