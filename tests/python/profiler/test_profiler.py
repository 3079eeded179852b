"""Profiles: what is recorded, how it is nested, what the tables and files say; against torch where it is installed."""

import gzip
import json
import re
import threading

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

reference = pytest.importorskip("torch")


def work(torch, record_function):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 3))
    x = torch.randn(4, 10)

    def step():
        with record_function("forward"):
            loss = model(x).sum()
        loss.backward()
    return step


@pytest.fixture
def recorded():
    step = work(torch, record_function)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True, with_stack=True) as p:
        step()
    return p


def test_events_nest_and_carry_shapes_memory_and_places(recorded):
    events = recorded.events()
    by_name = {e.name: e for e in reversed(events)}
    forward, linear = by_name["forward"], by_name["aten::linear"]
    assert linear.cpu_parent is forward and linear in forward.cpu_children
    assert linear.input_shapes == [[4, 10], [20, 10], [20]]
    assert linear.cpu_memory_usage == 4 * 20 * 4
    assert any("test_profiler.py" in line and line.endswith(": step") for line in linear.stack)
    for e in events:
        assert 0 <= e.time_range.start <= e.time_range.end and e.self_cpu_time_total >= 0
        for child in e.cpu_children:
            assert e.time_range.start <= child.time_range.start and child.time_range.end <= e.time_range.end
    backward = by_name["ReluBackward0"]
    assert backward.cpu_parent.name == "autograd::engine::evaluate_function: ReluBackward0"
    relu = by_name["aten::relu"]
    assert backward.sequence_nr == relu.sequence_nr and backward.stack == relu.stack
    with reference.autograd.profiler.profile() as theirs:
        work(reference, reference.autograd.profiler.record_function)()
    names = {e.name for e in theirs.function_events}
    assert {"aten::linear", "aten::relu", "aten::sum", "forward", "autograd::engine::evaluate_function: SumBackward0"} <= names & set(by_name)


def test_averages_and_tables_read_as_torch_prints_them(recorded):
    averages = recorded.key_averages()
    linear = next(a for a in averages if a.key == "aten::linear")
    assert linear.count == 2 and linear.input_shapes == "" and linear.cpu_time == linear.cpu_time_total / 2
    by_shape = recorded.key_averages(group_by_input_shape=True)
    assert len([a for a in by_shape if a.key == "aten::linear"]) == 2
    assert recorded.key_averages(group_by_stack_n=2)[0].stack == recorded.events()[0].stack[:2]
    total = recorded.events().total_average()
    assert total.key == "Total" and total.count == len(recorded.events())
    with reference.profiler.profile(record_shapes=True, profile_memory=True) as theirs:
        work(reference, reference.profiler.record_function)()

    def shape(table):
        head = table.split("\n")
        return re.split(r"\s{2,}", head[1].strip()), [len(c) for c in head[0].split()][1:-1], re.sub(r"[\d.]+", "N", head[-2])
    theirs = theirs.key_averages().table(sort_by="cpu_time_total", row_limit=3)
    ours = averages.table(sort_by="cpu_time_total", row_limit=3)
    assert shape(ours)[:2] == shape(theirs)[:2] and len(ours.split("\n")) == len(theirs.split("\n"))
    assert "forward" in ours and re.search(r"\d K?b  ", ours) and "Self CPU time total: " in ours
    assert repr(linear).startswith("<FunctionEventAvg key=aten::linear self_cpu_time=")
    times = [a.cpu_time_total for a in averages]
    rows = [re.split(r"\s{2,}", line.strip())[0] for line in averages.table(sort_by="cpu_time_total").split("\n")[3:-3]]
    assert rows[0] == averages[times.index(max(times))].key
    assert "top-level" in recorded.events().table(top_level_events_only=True)


def test_files(recorded, tmp_path):
    recorded.add_metadata("who", "me")
    recorded.add_metadata_json("many", "[1, 2]")
    recorded.export_chrome_trace(str(tmp_path / "t.json"))
    trace = json.loads((tmp_path / "t.json").read_text())
    assert trace["who"] == "me" and trace["many"] == [1, 2]
    assert {"name", "ph", "ts", "dur", "tid", "pid", "args"} <= set(trace["traceEvents"][0])
    tensorboard_trace_handler(str(tmp_path / "log"), "w", use_gzip=True)(recorded)
    (packed,) = (tmp_path / "log").iterdir()
    assert re.fullmatch(r"w\.\d+\.pt\.trace\.json\.gz", packed.name) and json.loads(gzip.decompress(packed.read_bytes())) == trace
    recorded.export_stacks(str(tmp_path / "stacks"))
    assert "test_profiler.py" in (tmp_path / "stacks").read_text()
    with pytest.raises(ValueError, match="metric should be one of"):
        recorded.export_stacks(str(tmp_path / "stacks"), "count")
    with pytest.raises(ValueError):
        recorded.add_metadata_json("bad", "{")


@pytest.mark.parametrize("options", [{"wait": 1, "warmup": 1, "active": 2}, {"wait": 0, "warmup": 0, "active": 1, "repeat": 2},
                                     {"wait": 2, "warmup": 1, "active": 3, "repeat": 1, "skip_first": 3}])
@pytest.mark.filterwarnings("ignore:Profiler won't")
def test_schedules(options):
    mine, other = schedule(**options), reference.profiler.schedule(**options)
    assert [mine(i).name for i in range(30)] == [other(i).name for i in range(30)]

    def run(library, steps):
        ready = []
        with library.profiler.profile(schedule=library.profiler.schedule(**options), on_trace_ready=lambda p: ready.append(
                (p.step_num, sorted(e.name for e in p.events() if e.name.startswith("Prof"))))) as p:
            for _ in range(steps):
                library.ones(3).relu()
                p.step()
        return ready
    assert run(torch, 9) == run(reference, 9)


def test_the_older_form_and_errors():
    with torch.autograd.profiler.profile(record_shapes=True) as p:
        (torch.ones(2) + 1).sum()
    assert [e.name for e in p.function_events if e.cpu_parent is None] == ["aten::ones", "aten::add", "aten::sum"]
    assert "aten::add" in str(p) and p.self_cpu_time_total == p.function_events.self_cpu_time_total
    with pytest.raises(RuntimeError, match="not reentrant"):
        p.__enter__()
    with torch.autograd.profiler.profile(enabled=False) as off:
        torch.ones(2)
    assert off.function_events is None and str(off) == "<unfinished torch.autograd.profile>"
    with pytest.raises(RuntimeError, match="didn't finish"):
        off.key_averages()
    with profile():
        with pytest.raises(RuntimeError, match="already enabled"):
            with profile():
                pass
        thread = threading.Thread(target=lambda: torch.ones(100).sum())  # not of the thread that is profiled
        thread.start(), thread.join()
    with pytest.raises(NotImplementedError, match="with_flops"):
        profile(with_flops=True)
    with pytest.raises(AssertionError, match="Invalid profiler schedule"):
        schedule(wait=0, warmup=1, active=0)
    with pytest.raises(AssertionError):
        profile(use_cuda=False, activities=[ProfilerActivity.CUDA])
    with pytest.raises(RuntimeError, match="not running"):
        from msadapter import _C
        _C._profile_stop()
    assert ProfilerAction.RECORD_AND_SAVE.value == 3


def test_a_failing_operator_leaves_the_nesting_whole():
    with profile() as p:
        with pytest.raises(RuntimeError):
            torch.ones(2, 3) @ torch.ones(2, 3)
        torch.ones(1)
    assert [e.name for e in p.events() if e.cpu_parent is None][-1] == "aten::ones"


def test_functions_may_be_named():
    @record_function("mine")
    def f(x):
        return x + 1
    with profile() as p:
        f(torch.ones(1))
    assert {"mine"} == {e.cpu_parent.name for e in p.events() if e.name == "aten::add"}
