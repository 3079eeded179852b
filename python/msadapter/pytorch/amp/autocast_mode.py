"""autocast: operators choose their precision; the lists are in the operator table (docs/operators.md, `autocast`)."""

import functools
import warnings

from msadapter import _C, pytorch as torch

DEVICES = {"cpu": 0, "cuda": 1, "npu": 1, "xpu": 1}
HALF = (torch.float16, torch.bfloat16)


def autocast_decorator(instance, function):
    """`function` run inside the autocast."""

    @functools.wraps(function)
    def decorated(*args, **kwargs):
        with instance:
            return function(*args, **kwargs)

    return decorated


class autocast:
    """Within the block, or the function it decorates, operators run in the precision that suits them.

    device_type is "cpu" (its lists, bfloat16 by default) or "cuda" (its lists, float16 by default; the computation is the CPU's where there is
    no GPU). dtype is float16 or bfloat16: another one turns autocast off, with a warning, as in PyTorch. With cache_enabled a weight is
    converted once until the outermost block ends. Raises RuntimeError for an unknown device type.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type not in DEVICES:
            raise RuntimeError(f"User specified autocast device_type must be 'cuda' or 'cpu', but got {device_type}")
        self.device = device_type
        self._index = DEVICES[device_type]
        self.fast_dtype = _C._autocast_dtype(self._index) if dtype is None else dtype
        self._cache_enabled = _C.is_autocast_cache_enabled() if cache_enabled is None else bool(cache_enabled)
        self._enabled = bool(enabled)
        if self._enabled and self.fast_dtype not in HALF:
            warnings.warn(f"In {'CPU' if self._index == 0 else 'CUDA'} autocast, but the target dtype is not supported. Disabling autocast.\n"
                          "Autocast only supports dtype of torch.bfloat16 and torch.float16 currently.", stacklevel=2)
            self._enabled = False
        self._before = []

    def __enter__(self):
        self._before.append((_C._autocast_enabled(self._index), _C._autocast_dtype(self._index), _C.is_autocast_cache_enabled()))
        _C._set_autocast_enabled(self._index, self._enabled)
        if self.fast_dtype in HALF:
            _C._set_autocast_dtype(self._index, self.fast_dtype)
        _C.set_autocast_cache_enabled(self._cache_enabled)
        _C.autocast_increment_nesting()
        return self

    def __exit__(self, kind, value, trace):
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        enabled, dtype, cache = self._before.pop()
        _C._set_autocast_enabled(self._index, enabled)
        _C._set_autocast_dtype(self._index, dtype)
        _C.set_autocast_cache_enabled(cache)
        return False

    def __call__(self, function):
        return autocast_decorator(self, function)


def _cast(value, dtype):
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() and value.dtype != torch.float64 else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, dict):
        return {_cast(k, dtype): _cast(v, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_cast(v, dtype) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def custom_fwd(fwd=None, *, cast_inputs=None):
    """Decorates an autograd.Function's forward: it runs under the autocast of its caller, or without, on inputs cast to `cast_inputs`."""
    if fwd is None:
        return functools.partial(custom_fwd, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx, *args, **kwargs):
        on = [_C._autocast_enabled(index) for index in (0, 1)]
        index = 1 if on[1] else 0
        ctx._autocast = ("cuda" if index else "cpu", _C._autocast_dtype(index), any(on))
        if cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        ctx._autocast = (*ctx._autocast[:2], False)
        if not any(on):
            return fwd(ctx, *args, **kwargs)
        with autocast("cpu", enabled=False), autocast("cuda", enabled=False):
            return fwd(ctx, *_cast(args, cast_inputs), **_cast(kwargs, cast_inputs))

    return decorated


def custom_bwd(bwd):
    """Decorates an autograd.Function's backward: it runs under the autocast that its forward had."""

    @functools.wraps(bwd)
    def decorated(ctx, *args, **kwargs):
        device, dtype, enabled = ctx._autocast
        with autocast(device, dtype=dtype, enabled=enabled):
            return bwd(ctx, *args, **kwargs)

    return decorated


def is_autocast_enabled():
    """Whether autocast for "cuda" is on."""
    return _C._autocast_enabled(1)


def is_autocast_cpu_enabled():
    """Whether autocast for "cpu" is on."""
    return _C._autocast_enabled(0)


def set_autocast_enabled(enabled):
    """Switch autocast for "cuda"."""
    _C._set_autocast_enabled(1, enabled)


def set_autocast_cpu_enabled(enabled):
    """Switch autocast for "cpu"."""
    _C._set_autocast_enabled(0, enabled)


def get_autocast_gpu_dtype():
    """The lower precision of autocast for "cuda"."""
    return _C._autocast_dtype(1)


def get_autocast_cpu_dtype():
    """The lower precision of autocast for "cpu"."""
    return _C._autocast_dtype(0)


def set_autocast_gpu_dtype(dtype):
    """Set the lower precision of autocast for "cuda"."""
    _C._set_autocast_dtype(1, dtype)


def set_autocast_cpu_dtype(dtype):
    """Set the lower precision of autocast for "cpu"."""
    _C._set_autocast_dtype(0, dtype)
