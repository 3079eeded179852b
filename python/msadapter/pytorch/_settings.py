"""Settings of torch that choose between ways of computing. The engine has one way, which is deterministic and exact, so most only remember."""

from msadapter import _C

__all__ = ["are_deterministic_algorithms_enabled", "compile", "compiled_with_cxx11_abi", "get_default_device",
           "get_deterministic_debug_mode", "get_float32_matmul_precision",
           "get_num_interop_threads", "is_deterministic_algorithms_warn_only_enabled", "is_inference", "is_warn_always_enabled",
           "set_default_device", "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
           "set_num_interop_threads", "set_warn_always", "use_deterministic_algorithms"]

_state = {"deterministic": 0, "precision": "highest", "interop": None, "warn": False, "compile warned": False}
_MODES = ("default", "warn", "error")


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Ask for algorithms that give the same result every time; all of the engine's do."""
    _state["deterministic"] = (1 if warn_only else 2) if mode else 0


def are_deterministic_algorithms_enabled():
    """Whether use_deterministic_algorithms() is on."""
    return _state["deterministic"] > 0


def is_deterministic_algorithms_warn_only_enabled():
    """Whether use_deterministic_algorithms() is on with warn_only."""
    return _state["deterministic"] == 1


def set_deterministic_debug_mode(debug_mode):
    """use_deterministic_algorithms() by number or name: 0 "default", 1 "warn", 2 "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    mode = _MODES.index(debug_mode) if debug_mode in _MODES else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, 2, `default`, `warn` or `error`, but got {debug_mode}")
    _state["deterministic"] = int(mode)


def get_deterministic_debug_mode():
    """0, 1 or 2, as set_deterministic_debug_mode() counts."""
    return _state["deterministic"]


def set_float32_matmul_precision(precision):
    """Allow products of float32 to lose digits ("high", "medium"); the engine never does, and "highest" is the default."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium'")
    _state["precision"] = precision


def get_float32_matmul_precision():
    """What set_float32_matmul_precision() was told."""
    return _state["precision"]


def set_num_interop_threads(n):
    """How many operators may run at once. The engine runs one after the other; the number is only remembered, once."""
    if not isinstance(n, int):
        raise TypeError(f"set_num_interop_threads expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError("Expected a positive number of threads")
    if _state["interop"] is not None:
        raise RuntimeError("Error: cannot set number of interop threads after parallel work has started or set_num_interop_threads called")
    _state["interop"] = n


def get_num_interop_threads():
    """What set_num_interop_threads() was told, or the number of cores."""
    import os

    return _state["interop"] or os.cpu_count() or 1


def set_warn_always(b):
    """Whether warnings that come once only shall come every time. Python's filters decide that here; the flag is only remembered."""
    if not isinstance(b, bool):
        raise TypeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _state["warn"] = b


def is_warn_always_enabled():
    """What set_warn_always() was told."""
    return _state["warn"]


def set_flush_denormal(mode):
    """False: treating denormal numbers as zero is not supported."""
    return False


def set_default_tensor_type(t):
    """The default dtype by the name or class of a floating tensor type: torch.FloatTensor, "torch.DoubleTensor"."""
    name = t if isinstance(t, str) else getattr(t, "__name__", "")
    dtypes = {"FloatTensor": _C.float32, "DoubleTensor": _C.float64, "HalfTensor": _C.float16, "BFloat16Tensor": _C.bfloat16}
    dtype = dtypes.get(name.rpartition(".")[2])
    if dtype is None or "cuda" in name:
        raise TypeError(f"invalid type object: only floating-point types of the CPU are supported as the default type, got {t}")
    _C.set_default_dtype(dtype)


def is_inference(input):
    """Whether the tensor was made in inference mode."""
    return input.is_inference()


def compiled_with_cxx11_abi():
    """True."""
    return True


def set_default_device(device):
    """Choose where new tensors go: there is one place, the CPU, which other devices' names stand for too (with one warning)."""
    if device is not None:
        _C.device(device)  # refuses what is no device


def get_default_device():
    """Where new tensors go: the CPU."""
    return _C.device("cpu")


def compile(model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False):  # noqa: A001
    """The function or module itself, or a decorator that keeps it: there is no compiler yet, which is said once. Results are the same."""
    import warnings

    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if not disable and not _state["compile warned"]:
        _state["compile warned"] = True
        warnings.warn("torch.compile: there is no compiler yet; functions run as they are", stacklevel=2)
    if model is None:
        return lambda function: function
    if not callable(model):
        raise TypeError(f"compile: expected a function or module, but got {type(model).__name__}")
    return model
