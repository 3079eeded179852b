"""torch.profiler: profiles of chosen steps of a training loop, and their traces in files."""

import gzip
import json
import os
import socket
import tempfile
import time
import warnings
from enum import Enum

from msadapter import _C
from msadapter.pytorch.autograd.profiler import _refuse_options, _stack, record_function
from msadapter.pytorch.autograd.profiler_util import events_of

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule", "supported_activities", "tensorboard_trace_handler"]

ProfilerActivity = Enum("ProfilerActivity", "CPU CUDA", start=0)
ProfilerAction = Enum("ProfilerAction", "NONE WARMUP RECORD RECORD_AND_SAVE", start=0)
_RECORDS = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities():
    """What can be recorded: the CPU."""
    return {ProfilerActivity.CPU}


def schedule(*, wait, warmup, active, repeat=0, skip_first=0):
    """A function that tells from a step's number what to do in it.

    After `skip_first` steps come cycles of `wait` steps left alone, `warmup` steps whose record is thrown away and `active` steps that count;
    `repeat` cycles, without end for 0. Raises AssertionError for negative numbers and no active step.
    """
    assert wait >= 0 and warmup >= 0 and active > 0 and repeat >= 0 and skip_first >= 0, "Invalid profiler schedule arguments"
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results")
    length = wait + warmup + active

    def action(step):
        assert step >= 0
        cycle, place = divmod(step - skip_first, length)
        if step < skip_first or (repeat > 0 and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False):
    """An on_trace_ready that writes each trace to a file of its own in dir_name: WORKER.MILLISECONDS.pt.trace.json, or .json.gz.

    The worker is HOST_PROCESS unless it is named. Raises RuntimeError where the directory cannot be made.
    """
    def handler(profiler):
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{int(time.time() * 1000)}.pt.trace.json" + (".gz" if use_gzip else "")
        profiler.export_chrome_trace(os.path.join(dir_name, name))

    return handler


class profile:
    """Record operators, as a block or between start() and stop(); step() ends a step of the training loop.

    `schedule` gives each step's ProfilerAction (without it everything counts), on_trace_ready(self) is called at the end of each cycle.
    record_shapes notes the sizes of inputs, profile_memory the bytes taken and given back, with_stack the lines of Python. The CPU is the only
    activity that there is; with_modules concerns ScriptModules, of which there are none. Raises AssertionError for no activity.
    """

    def __init__(self, *, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, profile_memory=False, with_stack=False,
                 with_flops=False, with_modules=False, experimental_config=None, use_cuda=None):
        _refuse_options(with_flops, experimental_config)
        self.activities = set(activities) if activities else supported_activities()
        if use_cuda is not None:
            warnings.warn("use_cuda is deprecated, use activities argument instead")
            (self.activities.add if use_cuda else self.activities.discard)(ProfilerActivity.CUDA)
        assert self.activities, "No valid profiler activities found"
        self.record_shapes, self.profile_memory, self.with_stack, self.with_modules = record_shapes, profile_memory, with_stack, with_modules
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._events, self._metadata, self._step = None, {}, None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def start(self):
        """Begin with step 0."""
        self._change(ProfilerAction.NONE, self.current_action)
        self._mark(self.step_num)

    def step(self):
        """The next step begins."""
        self._unmark()
        before, number = self.current_action, self.step_num
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._change(before, self.current_action)
        self._mark(number)  # PyTorch's numbers: the first step and the one after both are 0

    def stop(self):
        """End the last step."""
        self._unmark()
        self._change(self.current_action, None)

    def _mark(self, number):
        if self.record_steps:
            self._step = record_function(f"ProfilerStep#{number}")
            self._step.__enter__()

    def _unmark(self):
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def _change(self, before, after):
        """From the action of one step to that of the next; None is the end."""
        if before in _RECORDS and (before is ProfilerAction.RECORD_AND_SAVE or after not in _RECORDS):
            if before is ProfilerAction.RECORD and after is not None:
                warnings.warn(f"Incorrect schedule: RECORD followed by {after.name}")
            self._events = events_of(_C._profile_stop(), self.profile_memory)
            if self.on_trace_ready and (before is ProfilerAction.RECORD_AND_SAVE or after is None):
                self.on_trace_ready(self)
        elif before is ProfilerAction.WARMUP and after is ProfilerAction.NONE:
            warnings.warn("Incorrect schedule: WARMUP followed by NONE")
        if after in _RECORDS and (before not in _RECORDS or before is ProfilerAction.RECORD_AND_SAVE):
            _C._profile_start(self.record_shapes, _stack if self.with_stack else None)

    def events(self):
        """The last cycle's events. Raises AssertionError before the first has ended."""
        assert self._events is not None, "Profiler must be initialized before getting the events: no trace is ready"
        return self._events

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0):
        """The events by name, and where asked by shapes of inputs and topmost lines of the stack."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write stacks and their times for tools that draw flame graphs; needs with_stack."""
        self.events().export_stacks(path, metric)

    def export_chrome_trace(self, path):
        """Write the last cycle for chrome://tracing or TensorBoard, as JSON; packed where path ends in .gz."""
        trace = {"schemaVersion": 1, "deviceProperties": [], **self._metadata, "traceEvents": self.events()._trace()}
        text = json.dumps(trace).encode()
        folder = os.path.dirname(os.path.abspath(path))
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as f:  # whole or not at all
            f.write(gzip.compress(text) if str(path).endswith(".gz") else text)
        os.chmod(f.name, 0o644)
        os.replace(f.name, path)

    def add_metadata(self, key, value):
        """Put the text `value` into the trace under `key`."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key, value):
        """Put `value`, which is JSON, into the trace under `key`. Raises ValueError when it is none."""
        self._metadata[key] = json.loads(value)
