"""PyTorch's own namespace, on msadapter's engine: `import msadapter.pytorch as torch`."""

import math as _math

from msadapter import _C
from msadapter import __version__ as _msadapter_version

__version__ = "1.12.1"  # of the PyTorch whose names and behaviour these are
inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None

# Types and functions of the extension, then every operator that torch itself has.
globals().update({_name: _value for _name, _value in vars(_C).items() if not _name.startswith("_")})
globals().update({_name: _value for _name, _value in vars(_C._ops).items() if not _name.startswith("__")})

float, double, half = _C.float32, _C.float64, _C.float16  # noqa: A001
int, long, short = _C.int32, _C.int64, _C.int16  # noqa: A001
cfloat, cdouble = _C.complex64, _C.complex128

from msadapter.pytorch._tensor import Tensor, as_method as _as_method  # noqa: E402

_C.set_tensor_class(Tensor)

from msadapter.pytorch._checked import takes_tensors as _takes_tensors  # noqa: E402
from msadapter.pytorch import _absent, _composed, _composed_more, _settings, functional  # noqa: E402

globals().update({_name: _takes_tensors(getattr(functional, _name)) for _name in functional.__all__})
globals().update({_name: getattr(_settings, _name) for _name in _settings.__all__})
globals().update(_absent.each(_absent.FUNCTIONS, "torch."))
legacy_contiguous_format = _C.contiguous_format
for _module in (_composed, _composed_more):
    for _name in _module.__all__:
        globals().setdefault(_name, _takes_tensors(getattr(_module, _name)))
    for _name in _module.TENSOR_METHODS:
        if not hasattr(Tensor, _name):
            setattr(Tensor, _name, _as_method(getattr(_module, _name)))
from msadapter.pytorch import linalg  # noqa: E402
from msadapter.pytorch.linalg import _classic  # noqa: E402

globals().update({_name: getattr(_classic, _name) for _name in _classic.__all__})
for _name in _classic.TENSOR_METHODS:
    setattr(Tensor, _name, _as_method(getattr(_classic, _name)))
for _name in functional.TENSOR_METHODS:
    if _name not in vars(Tensor):
        setattr(Tensor, _name, _as_method(getattr(functional, _name)))

from msadapter.pytorch import autograd, cuda, fft, random, special  # noqa: E402
from msadapter.pytorch.autograd import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: E402
from msadapter.pytorch.random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: E402

from msadapter.pytorch import sparse  # noqa: E402
from msadapter.pytorch.sparse._make import _sparse_coo_tensor_unsafe, hspmm, smm, sparse_coo_tensor, sparse_csr_tensor, sspaddmm  # noqa: E402

Tensor.smm, Tensor.sspaddmm = _as_method(smm), _as_method(sspaddmm)

from msadapter.pytorch import nn, optim, serialization, utils  # noqa: E402
from msadapter.pytorch.serialization import load, save  # noqa: E402

nn._functional.operators.add_to_torch(globals())


def cast_to_adapter_tensor(value):
    """`value` with everything in it that is a tensor of MindSpore's kind made a plain torch tensor over the same memory.

    Lists, tuples and dictionaries are gone through.
    """
    if type(value) is Tensor or isinstance(value, nn.Parameter):
        return value
    if isinstance(value, Tensor):
        return value.as_subclass(Tensor)
    if isinstance(value, dict):
        return type(value)((key, cast_to_adapter_tensor(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return type(value)(map(cast_to_adapter_tensor, value))
    if hasattr(value, "asnumpy"):
        return from_numpy(value.asnumpy())  # noqa: F821
    return value


# Loaded when they are first asked for: modules, and names out of modules.
_LATER = dict.fromkeys(("amp", "backends", "cpu", "distributed", "distributions", "futures", "hub", "jit", "masked", "multiprocessing", "onnx",
                        "profiler", "testing"))
_LATER.update(dict.fromkeys(("autocast", "is_autocast_enabled", "is_autocast_cpu_enabled", "set_autocast_enabled", "set_autocast_cpu_enabled",
                             "get_autocast_gpu_dtype", "get_autocast_cpu_dtype", "set_autocast_gpu_dtype", "set_autocast_cpu_dtype"),
                            "amp.autocast_mode"))
for _name in ("autocast_increment_nesting", "autocast_decrement_nesting", "clear_autocast_cache", "is_autocast_cache_enabled",
              "set_autocast_cache_enabled"):
    globals()[_name] = getattr(_C, _name)


def __getattr__(name):
    """A part of torch that is loaded when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = importlib.import_module(f"{__name__}.{_LATER[name] or name}")
    if _LATER[name]:
        found = getattr(found, name)
    globals()[name] = found
    return found


torch = __import__("sys").modules[__name__]  # torch.torch, as PyTorch's own package has it
del _name
