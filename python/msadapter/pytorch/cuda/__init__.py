"""torch.cuda: what scripts ask before they choose a device. There is no GPU backend, so the answers are no and none."""


def is_available():
    """Whether there is a GPU that tensors can live on."""
    return False


def device_count():
    """How many GPUs there are."""
    return 0


def is_initialized():
    """Whether the GPU backend has been started."""
    return False


def synchronize(device=None):
    """Wait for the device: the CPU has always finished."""


def empty_cache():
    """Give cached memory back to the system."""
    from msadapter import _C

    _C._empty_cache()


def manual_seed(seed):
    """Seeds all GPUs: there are none, and the CPU's generator is not touched, as in PyTorch."""
    int(seed)


def manual_seed_all(seed):
    """Seeds all GPUs: there are none, and the CPU's generator is not touched, as in PyTorch."""
    int(seed)


def __getattr__(name):
    """torch.cuda.amp is loaded when it is asked for."""
    if name == "amp":
        import importlib

        return importlib.import_module("msadapter.pytorch.cuda.amp")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
