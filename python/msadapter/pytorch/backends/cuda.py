"""torch.backends.cuda: settings of the GPU libraries, which are not there. Settings are kept."""


class _Settings:
    """Attributes that may be read and set, and no others."""

    def __init__(self, **settings):
        self.__dict__.update(settings)

    def __setattr__(self, name, value):
        if name not in self.__dict__:
            raise AttributeError(f"Unknown attribute {name}")
        self.__dict__[name] = value


matmul = _Settings(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)
cufft_plan_cache = _Settings(max_size=0, size=0)
_preferred = "default"


def is_built():
    """Whether there is a GPU backend: no."""
    return False


def preferred_linalg_library(backend=None):
    """The library for decompositions on a GPU: "default", "cusolver" or "magma"; sets it where one is given."""
    global _preferred
    if backend is not None:
        if backend not in ("default", "cusolver", "magma"):
            raise RuntimeError("Unknown input value. Choose from: [default, cusolver, magma].")
        _preferred = backend
    return _preferred
