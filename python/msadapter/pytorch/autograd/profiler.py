"""torch.autograd.profiler: which operators ran, for how long, and what memory they took. One thread is profiled at a time."""

import functools
import sys

from msadapter import _C
from msadapter.pytorch.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, events_of

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "emit_nvtx", "load_nvprof", "profile", "record_function"]


def _stack():
    """The caller's lines, innermost first."""
    frame, lines = sys._getframe(1), []
    while frame is not None:
        lines.append(f"{frame.f_code.co_filename}({frame.f_lineno}): {frame.f_code.co_name}")
        frame = frame.f_back
    return lines


def _refuse_options(with_flops, experimental_config):
    if with_flops:
        raise NotImplementedError("profile: with_flops is not supported")
    if experimental_config is not None:
        raise NotImplementedError("profile: experimental_config is not supported")


class record_function:
    """A block, or a function's calls, under a name of the user's own in the profile: `with record_function("forward"): ...`."""

    def __init__(self, name, args=None):
        self.name, self.args = name, args
        self._number = 0

    def __enter__(self):
        self._number = _C._profile_enter(self.name if self.args is None else f"{self.name}, {self.args}")
        return self

    def __exit__(self, *error):
        _C._profile_leave(self._number)

    def __call__(self, function):
        @functools.wraps(function)
        def recorded(*args, **kwargs):
            with type(self)(self.name, self.args):
                return function(*args, **kwargs)
        return recorded


class profile:
    """Record the operators of the block. `function_events` and the tables are there once it is left.

    record_shapes notes the sizes of the inputs, profile_memory the bytes taken and given back, with_stack the lines of Python. There is no CUDA
    device, so use_cuda records nothing more; with_modules concerns ScriptModules, of which there are none. Raises RuntimeError when a block is
    entered twice or another profile is on.
    """

    def __init__(self, enabled=True, *, use_cuda=False, record_shapes=False, with_flops=False, profile_memory=False, with_stack=False,
                 with_modules=False, use_kineto=False, use_cpu=True, experimental_config=None):
        _refuse_options(with_flops, experimental_config)
        self.enabled, self.use_cuda, self.use_cpu, self.with_modules = enabled, use_cuda, use_cpu, with_modules
        self.record_shapes, self.profile_memory, self.with_stack = record_shapes, profile_memory, with_stack
        self.entered, self.function_events = False, None

    def __enter__(self):
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        _C._profile_start(self.record_shapes, _stack if self.with_stack else None)
        self.entered = True
        return self

    def __exit__(self, *error):
        if self.enabled:
            self.function_events = events_of(_C._profile_stop(), self.profile_memory)
        return False

    def _events(self):
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def __repr__(self):
        return "<unfinished torch.autograd.profile>" if self.function_events is None else repr(self.function_events)

    def __str__(self):
        return "<unfinished torch.autograd.profile>" if self.function_events is None else str(self.function_events)

    # What EventList says, of the events of the block.

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80, header=None,
              top_level_events_only=False):
        return self._events().table(sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header, top_level_events_only)

    def export_chrome_trace(self, path):
        self._events().export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        assert self.with_stack, "export_stacks() requires with_stack=True"
        self._events().export_stacks(path, metric)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        return self._events().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self):
        return self._events().total_average()

    @property
    def self_cpu_time_total(self):
        """Microseconds, of all events together."""
        return self._events().self_cpu_time_total


class emit_nvtx:
    """Ranges for NVIDIA's tools. Raises RuntimeError on entry, since there is no CUDA device; does nothing when not `enabled`."""

    def __init__(self, enabled=True, record_shapes=False):
        self.enabled, self.record_shapes = enabled, record_shapes

    def __enter__(self):
        if self.enabled:
            raise RuntimeError("emit_nvtx: there is no CUDA device")
        return self

    def __exit__(self, *error):
        return False


def load_nvprof(path):
    """Raises NotImplementedError: files of nvprof are not read."""
    raise NotImplementedError("load_nvprof: files of nvprof are not read")
