"""torchvision over msadapter's tensors: data sets, transforms, models, operators, pictures and films."""

import importlib as _importlib
import warnings as _warnings

from msadapter.torchvision import datasets, transforms  # noqa: F401

__version__ = "0.13.1"
_LATER = ("io", "models", "ops", "utils")  # loaded when they are first asked for
_image_backend, _video_backend = "PIL", "pyav"


def set_image_backend(backend):
    """Choose what reads pictures: "PIL" or "accimage". Raises ValueError for another name."""
    global _image_backend
    if backend not in ("PIL", "accimage"):
        raise ValueError(f"Invalid backend '{backend}'. Options are 'PIL' and 'accimage'")
    _image_backend = backend


def get_image_backend():
    """What reads pictures."""
    return _image_backend


def set_video_backend(backend):
    """Choose what reads films: "pyav"; "video_reader" isn't here, which is a warning. Raises ValueError for another name."""
    global _video_backend
    if backend not in ("pyav", "video_reader"):
        raise ValueError(f"Invalid video backend '{backend}'. Options are 'pyav' and 'video_reader'")
    if backend == "video_reader":
        _warnings.warn("video_reader video backend is not available. Please compile torchvision from source and try again", stacklevel=2)
    else:
        _video_backend = backend


def get_video_backend():
    """What reads films."""
    return _video_backend


def __getattr__(name):
    if name in _LATER:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_LATER])
