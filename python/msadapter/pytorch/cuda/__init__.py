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


def _absent(*args, **kwargs):
    raise AssertionError("Torch not compiled with CUDA enabled")


def _make_absent(name):
    def function(*args, **kwargs):
        _absent()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises AssertionError: there is no GPU."
    return function


# What only a GPU could answer.
globals().update((_name, _make_absent(_name)) for _name in (
    "caching_allocator_alloc", "caching_allocator_delete", "can_device_access_peer", "current_blas_handle", "current_stream", "default_stream",
    "get_device_capability", "get_device_name", "get_device_properties", "get_sync_debug_mode", "graph_pool_handle", "init", "ipc_collect",
    "is_bf16_supported", "is_current_stream_capturing", "list_gpu_processes", "make_graphed_callables", "mem_get_info", "memory_snapshot",
    "memory_summary", "memory_usage", "set_per_process_memory_fraction", "set_sync_debug_mode", "utilization"))


class _AbsentClass:
    def __init__(self, *args, **kwargs):
        _absent()


class Stream(_AbsentClass):
    """A queue of work on a GPU. AssertionError without one."""

    query = record_event = synchronize = wait_event = wait_stream = _absent


class ExternalStream(Stream):
    """A stream that another library made. AssertionError without a GPU."""


class Event(_AbsentClass):
    """A mark in a stream. AssertionError without a GPU."""

    elapsed_time = from_ipc_handle = ipc_handle = query = record = synchronize = wait = _absent


class CUDAGraph(_AbsentClass):
    """Recorded GPU work. AssertionError without a GPU."""

    capture_begin = capture_end = pool = replay = reset = _absent


class graph(_AbsentClass):
    """A block whose GPU work is recorded. AssertionError without a GPU."""


def current_device():
    """The index of the chosen device. "cuda" means the CPU here, which is number 0."""
    return 0


def set_device(device):
    """Choose a device by its index: there is number 0, the CPU that "cuda" stands for. RuntimeError for another."""
    from msadapter import pytorch as torch

    index = device if isinstance(device, int) else torch.device(device).index
    if index is not None and index > 0:
        raise RuntimeError(f"set_device: there is no device {index}")


class device:
    """A block in which a device is chosen; for number 0, a negative number or None nothing changes."""

    def __init__(self, device):
        self.idx = device if device is None or isinstance(device, int) else getattr(device, "index", None)

    def __enter__(self):
        if self.idx is not None and self.idx > 0:
            set_device(self.idx)
        return self

    def __exit__(self, kind, value, trace):
        return False


class device_of(device):
    """The same for the device of a tensor."""

    def __init__(self, obj):
        super().__init__(None)


class StreamContext:
    """A block in which a stream is chosen: None changes nothing, and there are no others."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return None

    def __exit__(self, kind, value, trace):
        return False


def stream(stream):
    """A block in which a stream is chosen."""
    return StreamContext(stream)


def set_stream(stream):
    """Choose a stream: None changes nothing, and there are no others."""


def get_arch_list():
    """GPU architectures that were compiled for: none."""
    return []


def get_gencode_flags():
    """The compiler's flags for them: none."""
    return ""


def get_rng_state(device="cuda"):
    """The generator's state. "cuda" means the CPU here, whose generator this is."""
    from msadapter import pytorch as torch

    return torch.get_rng_state()


def set_rng_state(new_state, device="cuda"):
    """Set the generator's state. "cuda" means the CPU here, whose generator this is."""
    from msadapter import pytorch as torch

    torch.set_rng_state(new_state)


def get_rng_state_all():
    """The states of all GPUs' generators: none."""
    return []


def set_rng_state_all(new_states):
    """Set the states of all GPUs' generators: there are none."""
    if len(list(new_states)):
        raise RuntimeError("set_rng_state_all: there are no GPUs")


def initial_seed():
    """The generator's seed. "cuda" means the CPU here, whose generator this is."""
    from msadapter import pytorch as torch

    return torch.initial_seed()


def seed():
    """Seeds the GPU's generator at random: there is none, and the CPU's is not touched."""


seed_all = seed


def memory_allocated(device=None):
    """Bytes of tensor data in use. "cuda" means the CPU here, whose memory this is."""
    from msadapter import _C

    return _C._memory_in_use()[0]


def max_memory_allocated(device=None):
    """The most bytes of tensor data that were in use at once."""
    from msadapter import _C

    return _C._memory_in_use()[1]


memory_reserved = memory_cached = memory_allocated
max_memory_reserved = max_memory_cached = max_memory_allocated


def reset_peak_memory_stats(device=None):
    """Let max_memory_allocated() count from now."""
    from msadapter import _C

    _C._reset_peak_memory()


reset_accumulated_memory_stats = reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def memory_stats(device=None):
    """Bytes in use and at most, under PyTorch's keys."""
    from collections import OrderedDict

    now, most = memory_allocated(), max_memory_allocated()
    return OrderedDict([("allocated_bytes.all.current", now), ("allocated_bytes.all.peak", most), ("reserved_bytes.all.current", now),
                        ("reserved_bytes.all.peak", most)])


def memory_stats_as_nested_dict(device=None):
    """The same as dictionaries in dictionaries."""
    result = {}
    for key, value in memory_stats().items():
        *path, last = key.split(".")
        inner = result
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return result


def __getattr__(name):
    """torch.cuda.amp is loaded when it is asked for."""
    if name == "amp":
        import importlib

        return importlib.import_module("msadapter.pytorch.cuda.amp")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
