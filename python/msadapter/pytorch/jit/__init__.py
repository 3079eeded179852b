"""torch.jit: what training scripts call without noticing. Functions and modules stay what they are, and run as Python.

Compiling, tracing and saving compiled functions raise NotImplementedError.
"""

import contextlib

from msadapter import pytorch as torch

__all__ = ["Attribute", "annotate", "export", "fork", "ignore", "is_scripting", "is_tracing", "isinstance", "load", "optimized_execution", "save",
           "script", "script_if_tracing", "trace", "trace_module", "unused", "wait"]

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


@contextlib.contextmanager
def optimized_execution(should_optimize):
    """A block in which a compiler may optimise, or not: there is none."""
    yield


def _missing(name):
    raise NotImplementedError(f"torch.jit.{name}: recording and saving compiled functions is not implemented")


def trace(func, example_inputs=None, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True, **kwargs):
    """Not implemented: raises NotImplementedError."""
    _missing("trace")


def trace_module(mod, inputs, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True, **kwargs):
    """Not implemented: raises NotImplementedError."""
    _missing("trace_module")


def save(m, f, _extra_files=None):
    """Not implemented: raises NotImplementedError."""
    _missing("save")


def load(f, map_location=None, _extra_files=None, **kwargs):
    """Not implemented: raises NotImplementedError."""
    _missing("load")
