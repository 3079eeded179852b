"""torch.utils."""

import importlib as _importlib

from msadapter.pytorch.utils import data

__all__ = ["data"]
_LATER = ("checkpoint", "dlpack", "model_zoo", "tensorboard")  # loaded when they are first asked for


def __getattr__(name):
    if name in _LATER:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
