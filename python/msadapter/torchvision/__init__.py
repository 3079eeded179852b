"""torchvision over msadapter's tensors: data sets, transforms, models and operators."""

import importlib as _importlib

from msadapter.torchvision import datasets, transforms  # noqa: F401

__version__ = "0.13.1"
_LATER = ("models", "ops")  # loaded when they are first asked for


def __getattr__(name):
    if name in _LATER:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_LATER])
