"""What a profile recorded, as events, and as averages of events of one kind; times are microseconds, memory is bytes."""

import json
from collections import namedtuple
from enum import Enum
from operator import attrgetter

DeviceType = Enum("DeviceType", "CPU CUDA", start=0)
Interval = namedtuple("Interval", "start end")
Interval.elapsed_us = lambda self: self.end - self.start

_STACK_LINES = 5  # of a row of a table
_COLUMN = 12


def format_time(us):
    """A time in the unit that suits it."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def format_share(us, total):
    """A time in per cent of a total."""
    return "NaN" if total == 0 else f"{us * 100.0 / total:.2f}%"


def format_memory(n):
    """Bytes in the unit that suits them."""
    for power, unit in ((30, "Gb"), (20, "Mb"), (10, "Kb")):
        if abs(n) >= 1 << power:
            return f"{n / (1 << power):.2f} {unit}"
    return f"{n} b"


class _Times:
    """What events and their averages have in common. There is no device but the CPU, so the times and the memory of CUDA are 0."""

    node_id, device_type, device_index, is_async, is_remote, is_legacy, flops = -1, DeviceType.CPU, 0, False, False, False, 0
    cuda_time_total = self_cuda_time_total = cuda_memory_usage = self_cuda_memory_usage = 0
    cuda_time = 0.0

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count if self.count else 0.0

    def __getattr__(self, name):
        if name.endswith("_str"):
            return format_time(getattr(self, name[:-4]))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class FunctionEvent(_Times):
    """One run of an operator, of a backward function or of a user's block.

    Has id, name (key), time_range (start, end), thread, cpu_parent, cpu_children, input_shapes, stack, sequence_nr (the same for an operator
    and its backward function), cpu_time_total, self_cpu_time_total, cpu_memory_usage and self_cpu_memory_usage.
    """

    count = 1

    def __init__(self, id, name, thread, start_us, end_us, input_shapes=None, stack=None, scope=0, cpu_memory_usage=0, sequence_nr=-1):
        self.id, self.thread, self.fwd_thread = id, thread, thread
        self.trace_name, self.name = name, "ProfilerStep*" if name.startswith("ProfilerStep#") else name
        self.time_range = Interval(start_us, end_us)
        self.input_shapes, self.stack, self.scope = input_shapes, stack, scope
        self.cpu_memory_usage, self.sequence_nr = cpu_memory_usage, sequence_nr
        self.cpu_children, self.cpu_parent, self.kernels = [], None, []

    @property
    def key(self):
        return self.name

    @property
    def cpu_time_total(self):
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self):
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self):
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self):
        return (f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
                f"start_us={self.time_range.start} end_us={self.time_range.end} cpu_children={[child.id for child in self.cpu_children]} "
                f"cuda_time={self.cuda_time_str} name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage={self.cuda_memory_usage} is_async={self.is_async} "
                f"is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>")


class FunctionEventAvg(_Times):
    """The sums over `count` events of one key."""

    _SUMS = ("cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count")

    def __init__(self):
        self.key = self.input_shapes = self.stack = self.scope = self.cpu_children = self.cpu_parent = None
        self.cpu_time_total = self.self_cpu_time_total = self.cpu_memory_usage = self.self_cpu_memory_usage = self.count = 0

    def add(self, other):
        """Add an event or an average of the same key. Raises AssertionError for another key."""
        if self.key is None:
            for name in ("key", "input_shapes", "stack", "scope", "cpu_children", "cpu_parent"):
                setattr(self, name, getattr(other, name))
        assert isinstance(other, _Times) and other.key == self.key
        for name in self._SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self):
        return (f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}  "
                f"self_cuda_time={self.self_cuda_time_total_str} cuda_time={self.cuda_time_str} input_shapes={self.input_shapes} "
                f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage={self.cuda_memory_usage}>")


class EventList(list):
    """A list of FunctionEvent or FunctionEventAvg, which prints as a table."""

    def __init__(self, *args, profile_memory=False):
        super().__init__(*args)
        self._profile_memory = profile_memory

    def __str__(self):
        return self.table()

    @property
    def self_cpu_time_total(self):
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, max_shapes_column_width=80, header=None,
              top_level_events_only=False):
        """The events as text, at most row_limit of them, by falling `sort_by` (an attribute, such as "cpu_time_total" or "count")."""
        if not self:
            return ""
        events = sorted(self, key=attrgetter(sort_by), reverse=True) if sort_by is not None else list(self)
        total = self.self_cpu_time_total
        columns = [("Name", _width((e.key for e in events), max_name_column_width), ">"), *((title, _COLUMN, ">") for title in (
            "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", *(("CPU Mem", "Self CPU Mem") if self._profile_memory else ()), "# of Calls"))]
        shapes_width = source_width = 0
        if any(e.input_shapes for e in events):
            shapes_width = _width((str(e.input_shapes) for e in events), max_shapes_column_width)
            columns.append(("Input Shapes", shapes_width, ">"))
        if any(e.stack for e in events):
            source_width = _width((line for e in events for line in e.stack or ()), max_src_column_width)
            columns.append(("Source Location", source_width, "<"))
        row = "".join(f"{{: {side}{width}}}  " for _, width, side in columns)
        rule = "".join("-" * width + "  " for _, width, _ in columns)
        wide = "=" * (len(rule) - 2)
        lines = [] if header is None else [wide, header]
        lines += [wide, "This report only display top-level ops statistics"] if top_level_events_only else []
        lines += [rule, row.format(*(title for title, _, _ in columns)), rule]
        shown = [e for e in events if not (top_level_events_only and e.cpu_parent is not None)]
        for e in shown if row_limit < 0 else shown[:row_limit]:
            name = e.key
            if max_name_column_width is not None and len(name) >= max_name_column_width - 3:
                name = name[:max_name_column_width - 3] + "..."
            values = [name, format_share(e.self_cpu_time_total, total), e.self_cpu_time_total_str, format_share(e.cpu_time_total, total),
                      e.cpu_time_total_str, e.cpu_time_str]
            values += [format_memory(e.cpu_memory_usage), format_memory(e.self_cpu_memory_usage)] if self._profile_memory else []
            values += [e.count, *([str(e.input_shapes)[:shapes_width]] if shapes_width else [])]
            sources = [_tail(line, source_width) for line in (e.stack or [])[:_STACK_LINES]] if source_width else []
            lines.append(row.format(*values, *([sources[0] if sources else ""] if source_width else [])))
            lines += [row.format(*[""] * (len(columns) - 1), line) for line in [*sources[1:], *([""] if sources else [])]]
        return "\n".join([*lines, rule, f"Self CPU time total: {format_time(total)}"]) + "\n"

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0):
        """An EventList of FunctionEventAvg, one for each name (and input shapes, and topmost group_by_stack_n lines of the stack)."""
        groups = {}
        for event in self:
            key = (event.key, str(event.input_shapes) if group_by_input_shapes else None, *((event.stack or [])[:group_by_stack_n]))
            groups.setdefault(key, FunctionEventAvg()).add(event)
        for group in groups.values():
            group.stack = (group.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                group.input_shapes = ""
        return EventList(groups.values(), profile_memory=self._profile_memory)

    def total_average(self):
        """A FunctionEventAvg of all events, called "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key
            total += event
        total.key = "Total"
        return total

    def export_chrome_trace(self, path):
        """Write the events for chrome://tracing, as a JSON list."""
        with open(path, "w") as f:
            json.dump(self._trace(), f)

    def _trace(self):
        return [{"name": e.trace_name, "ph": "X", "ts": e.time_range.start, "dur": e.time_range.elapsed_us(), "tid": e.thread, "pid": "CPU functions",
                 "args": {} if e.input_shapes is None else {"Input Dims": e.input_shapes}} for e in self]

    def supported_export_stacks_metrics(self):
        """The names that export_stacks takes."""
        return ["self_cpu_time_total", "self_cuda_time_total"]

    def export_stacks(self, path, metric):
        """Write one line for each event with a stack and a value above zero, for tools that draw flame graphs. Raises ValueError for another metric."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        plain = str.maketrans(" ;\t\n", "____")
        with open(path, "w") as f:
            for e in self:
                value = int(getattr(e, metric))
                if e.stack and value > 0:
                    f.write(";".join(line.translate(plain) for line in reversed(e.stack)) + f" {value}\n")


def _width(texts, limit):
    width = max(map(len, texts)) + 4
    return width if limit is None else min(width, limit)


def _tail(text, width):
    return text if len(text) <= width else "..." + text[len(text) - width + 3:]


def events_of(records, profile_memory):
    """An EventList of what the engine recorded. A backward function gets the stack of the operator that made it."""
    start = records[0][2] if records else 0
    events = [FunctionEvent(i + 1, name, thread, (begin - start) // 1000, (end - start) // 1000, shapes, stack, int(kind == 1), size, sequence)
              for i, (name, kind, begin, end, _, thread, size, sequence, shapes, stack) in enumerate(records)]
    places = {}
    for event, record in zip(events, records):
        if record[4] >= 0:
            event.cpu_parent = events[record[4]]
            event.cpu_parent.cpu_children.append(event)
        if record[7] >= 0 and record[1] == 0:
            places.setdefault(record[7], event.stack)
    for event in events:  # parents come before their children
        if event.stack is not None and (event.scope == 1 or event.cpu_parent is not None and event.cpu_parent._backward_stack is not None):
            event._backward_stack = places.get(event.sequence_nr, []) if event.scope == 1 else event.cpu_parent._backward_stack
            event.stack = event._backward_stack
        else:
            event._backward_stack = None
    return EventList(events, profile_memory=profile_memory)
