"""torch.jit: what training scripts call without noticing. Functions and modules stay what they are, and run as Python.

Compiling, tracing and saving compiled functions raise NotImplementedError.
"""

import contextlib
import copy
import warnings

from msadapter import pytorch as torch
from msadapter.pytorch.futures import Future

__all__ = ["Attribute", "Future", "ScriptFunction", "ScriptModule", "annotate", "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze",
           "fuser", "ignore", "is_scripting", "is_tracing", "isinstance", "last_executed_optimized_graph", "load", "onednn_fusion_enabled",
           "optimize_for_inference", "optimized_execution", "run_frozen_optimizations", "save", "save_jit_module_to_flatbuffer", "script",
           "script_if_tracing", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait"]

_isinstance = isinstance


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The function, module or class itself: there is nothing between it and the engine that a compiler could take away.

    Raises TypeError for what is neither callable nor a module.
    """
    if not callable(obj) and not _isinstance(obj, torch.nn.Module):
        raise TypeError(f"jit.script: expected a function, module or class, but got {type(obj).__name__}")
    return obj


def script_if_tracing(fn):
    """The function itself."""
    return fn


def export(fn):
    """The method itself."""
    return fn


def unused(fn):
    """The function itself."""
    return fn


def ignore(drop=False, **kwargs):
    """The function itself; with arguments, a decorator that keeps it."""
    if callable(drop):
        return drop
    if not _isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    return lambda fn: fn


def is_scripting():
    """Whether this runs as compiled code: no."""
    return False


def is_tracing():
    """Whether this is being traced: no."""
    return False


def annotate(the_type, the_value):
    """The value."""
    return the_value


def isinstance(obj, target_type):  # noqa: A001
    """Whether obj is of a type, also of List[int], Dict[str, Tensor], Optional[...], Tuple[...] and Union[...] by its contents."""
    import typing

    if _isinstance(target_type, tuple):
        return any(isinstance(obj, t) for t in target_type)
    origin, arguments = typing.get_origin(target_type), typing.get_args(target_type)
    if target_type is typing.Any:
        return True
    if target_type is None:
        return obj is None
    if origin is None:
        return _isinstance(obj, target_type)
    if origin is typing.Union:
        return any(isinstance(obj, t) if t is not type(None) else obj is None for t in arguments)
    if not _isinstance(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(k, arguments[0]) and isinstance(v, arguments[1]) for k, v in obj.items())
    if origin is tuple:
        return len(obj) == len(arguments) and all(map(isinstance, obj, arguments))
    return all(isinstance(item, arguments[0]) for item in obj)


class Attribute:
    """A value with the type that a compiler should take it for."""

    def __init__(self, value, type):  # noqa: A002
        self.value, self.type = value, type


def fork(func, *args, **kwargs):
    """Start func and hand out a future of its result: it runs at once."""
    return torch.futures._run(func, args, kwargs)


def wait(future):
    """The result of a future that fork() gave."""
    return future.wait()


class ScriptModule(torch.nn.Module):
    """A module that a compiler made, or a base class for one: a Module as any other. What script() gives back is not one."""


class ScriptFunction:
    """A function that a compiler made: there are none. Raises NotImplementedError when called."""

    def __init__(self, *args, **kwargs):
        _missing("ScriptFunction")


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """A copy of a module in evaluation mode, for inference: its parameters need no gradients and no longer follow the original's.

    Attributes stay, preserved or not. Raises RuntimeError for what is no module or is in training mode.
    """
    if not _isinstance(mod, torch.nn.Module):
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'.")
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before freezing.")
    return copy.deepcopy(mod).requires_grad_(False)


def run_frozen_optimizations(mod, optimize_numerics=True, preserved_methods=None):
    """Optimise the graph of a frozen module, which has none: the module stays as it is. Raises TypeError for what is no module."""
    if not _isinstance(mod, torch.nn.Module):
        raise TypeError(f"run_frozen_optimizations: expected a module, but got {type(mod).__name__}")


def optimize_for_inference(mod, other_methods=None):
    """The module frozen, as `freeze` does it, in evaluation mode."""
    if not _isinstance(mod, torch.nn.Module):
        raise RuntimeError("optimize_for_inference expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your 'nn.Module'.")
    return freeze(mod.eval())


_fusion = {"strategy": [("STATIC", 2), ("DYNAMIC", 10)], "onednn": False}


def set_fusion_strategy(strategy):
    """Note how often a compiler may specialise fused code: pairs of "STATIC" or "DYNAMIC" and a depth. Returns what was noted before."""
    for kind, depth in strategy:
        if kind not in ("STATIC", "DYNAMIC"):
            raise RuntimeError(f"FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: {kind}")
        int(depth)
    before, _fusion["strategy"] = _fusion["strategy"], [tuple(pair) for pair in strategy]
    return before


def enable_onednn_fusion(enabled):
    """Note whether a compiler may fuse by oneDNN. The operators of the engine use it in any case."""
    _fusion["onednn"] = bool(enabled)


def onednn_fusion_enabled():
    """What enable_onednn_fusion noted."""
    return _fusion["onednn"]


@contextlib.contextmanager
def fuser(name):
    """A block in which a compiler's fuser "fuser0" to "fuser3" serves: there is no compiler. Raises Exception for other names."""
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


class strict_fusion:
    """A block in which a compiler must fuse everything. Warns that there is no compiler."""

    def __init__(self):
        warnings.warn("Only works in script mode")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """A block in which a compiler may optimise, or not: there is none."""
    yield


def _missing(name):
    raise NotImplementedError(f"torch.jit.{name}: recording and saving compiled functions is not implemented")


def trace(func, example_inputs=None, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True, _force_outplace=False,
          _module_class=None, _compilation_unit=None, **kwargs):
    """Not implemented: raises NotImplementedError."""
    _missing("trace")


def trace_module(mod, inputs, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True, _force_outplace=False,
          _module_class=None, _compilation_unit=None, **kwargs):
    """Not implemented: raises NotImplementedError."""
    _missing("trace_module")


def save(m, f, _extra_files=None):
    """Not implemented: raises NotImplementedError."""
    _missing("save")


def load(f, map_location=None, _extra_files=None, **kwargs):
    """Not implemented: raises NotImplementedError."""
    _missing("load")


def export_opnames(m):
    """Not implemented: raises NotImplementedError."""
    _missing("export_opnames")


def last_executed_optimized_graph():
    """Not implemented: raises NotImplementedError."""
    _missing("last_executed_optimized_graph")


def save_jit_module_to_flatbuffer(m, f, _extra_files=None):
    """Not implemented: raises NotImplementedError."""
    _missing("save_jit_module_to_flatbuffer")
