"""torch.backends.cudnn: flags that scripts set before training on a GPU. They are kept; the CPU has one algorithm for each operator."""

import contextlib

enabled, benchmark, deterministic, allow_tf32, benchmark_limit = True, False, False, True, 10


def is_available():
    """Whether cuDNN is there: no."""
    return False


def version():
    """cuDNN's version: None without it."""
    return None


def is_acceptable(tensor):
    """Whether cuDNN could compute with the tensor: no."""
    return False


def set_flags(_enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None):
    """Set the flags that are given; returns what they all were."""
    names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
    before = tuple(globals()[name] for name in names)
    for name, value in zip(names, (_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32)):
        if value is not None:
            globals()[name] = value
    return before


@contextlib.contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True):
    """The flags within a block."""
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32)
    try:
        yield
    finally:
        set_flags(*before)
