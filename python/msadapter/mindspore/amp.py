"""mindspore.amp: mixed precision by level, and loss scalers for functional steps."""

import functools

from msadapter import pytorch as torch
from msadapter.pytorch.amp.autocast_mode import HALF, autocast

__all__ = ["DynamicLossScaler", "LossScaler", "StaticLossScaler", "all_finite", "auto_mixed_precision", "init_status"]

LEVELS = ("O0", "O1", "O2", "O3")


def _cast(value, dtype):
    """Floating tensors of at most 32 bits as `dtype`, inside lists, tuples and dictionaries too."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.dtype in (torch.float32, *HALF) and value.dtype != dtype else value
    if isinstance(value, dict):
        return {k: _cast(v, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_cast(v, dtype) for v in value)
    return value


def _kept_in_float32():
    nn = torch.nn
    return (nn.modules.batchnorm._BatchNorm, nn.LayerNorm)


def _run_in_float32(module, dtype):
    forward = module.forward

    @functools.wraps(forward)
    def wrapped(*args, **kwargs):
        with autocast("cpu", enabled=False):
            return _cast(forward(*_cast(args, torch.float32), **_cast(kwargs, torch.float32)), dtype)

    module.forward = wrapped


def auto_mixed_precision(network, amp_level="O0", dtype=torch.float16):
    """Let a module compute in `dtype` (float16 or bfloat16); its parameters, and their gradients, stay float32.

    O0 changes nothing. O1 does products and convolutions in the lower precision. O2 does everything but batch and layer normalisation, O3
    everything. Returns the module. Raises ValueError for another level and TypeError for another dtype.
    """
    if amp_level not in LEVELS:
        raise ValueError(f"auto_mixed_precision: argument 'amp_level' should be one of {', '.join(LEVELS)}, but got {amp_level!r}")
    if dtype not in HALF:
        raise TypeError(f"auto_mixed_precision: argument 'dtype' should be float16 or bfloat16, but got {dtype}")
    if not isinstance(network, torch.nn.Module):
        raise TypeError(f"auto_mixed_precision: argument 'network' should be a module, but got {type(network).__name__}")
    had = getattr(network, "_amp_level", "O0")
    if had != "O0":
        if had != amp_level:
            raise ValueError(f"auto_mixed_precision: the network already has amp_level {had}, which cannot become {amp_level}")
        return network
    if amp_level == "O0":
        return network
    whole = amp_level != "O1"
    if amp_level == "O2":
        kept = _kept_in_float32()
        for module in network.modules():
            if isinstance(module, kept):
                _run_in_float32(module, dtype)
    forward = network.forward

    @functools.wraps(forward)
    def wrapped(*args, **kwargs):
        if whole:
            args, kwargs = _cast(args, dtype), _cast(kwargs, dtype)
        with autocast("cpu", dtype=dtype):
            return forward(*args, **kwargs)

    network.forward = wrapped
    network._amp_level = amp_level
    return network


def all_finite(inputs):
    """Whether no tensor of the list holds an infinity or NaN, as a bool tensor."""
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    return torch.tensor(all(bool(torch.isfinite(t).all()) for t in inputs))


def init_status():
    """What all_finite needs on some devices: nothing here."""
    return torch.zeros(8)


def _map(inputs, function):
    if isinstance(inputs, torch.Tensor):
        return function(inputs)
    if isinstance(inputs, (list, tuple)):
        return type(inputs)(_map(value, function) for value in inputs)
    raise TypeError(f"loss scaler: expected a tensor or a list of them, but got {type(inputs).__name__}")


class LossScaler:
    """What loss scalers have in common: scale(inputs), unscale(inputs), adjust(grads_finite)."""

    def __init__(self, scale_value):
        if isinstance(scale_value, bool) or not isinstance(scale_value, (int, float)) or scale_value < 1:
            raise ValueError(f"{type(self).__name__}: argument 'scale_value' should be a number of at least 1, but got {scale_value!r}")
        self.scale_value = torch.tensor(float(scale_value))

    def scale(self, inputs):
        """The inputs times the scale."""
        return _map(inputs, lambda t: t * self.scale_value.to(t.dtype))

    def unscale(self, inputs):
        """The inputs divided by the scale."""
        return _map(inputs, lambda t: t * self.scale_value.reciprocal().to(t.dtype))

    def adjust(self, grads_finite):
        """Adapt the scale; returns whether it did."""
        raise NotImplementedError


class StaticLossScaler(LossScaler):
    """A scale that stays."""

    def adjust(self, grads_finite):
        """Leave the scale as it is."""
        return False


class DynamicLossScaler(LossScaler):
    """A scale divided by scale_factor after an overflow and multiplied by it after scale_window good steps; never below 1."""

    def __init__(self, scale_value, scale_factor, scale_window):
        super().__init__(scale_value)
        if isinstance(scale_factor, bool) or not isinstance(scale_factor, (int, float)) or scale_factor <= 1:
            raise ValueError(f"DynamicLossScaler: argument 'scale_factor' should be greater than 1, but got {scale_factor!r}")
        if isinstance(scale_window, bool) or not isinstance(scale_window, int) or scale_window < 1:
            raise ValueError(f"DynamicLossScaler: argument 'scale_window' should be a positive int, but got {scale_window!r}")
        self.scale_factor, self.scale_window, self.counter = float(scale_factor), scale_window, 0

    def adjust(self, grads_finite):
        """Adapt the scale to whether the gradients were finite."""
        if not bool(grads_finite):
            self.scale_value = torch.clamp(self.scale_value / self.scale_factor, min=1.0)
            self.counter = 0
            return True
        self.counter += 1
        if self.counter < self.scale_window:
            return True
        self.counter = 0
        grown = self.scale_value * self.scale_factor
        if bool(torch.isfinite(grown)):
            self.scale_value = grown
        return True
