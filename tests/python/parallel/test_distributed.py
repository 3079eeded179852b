"""torch.distributed: stores, groups, messages, collectives, and what happens when a process fails."""

import os
import socket
import struct
import threading
import time
import warnings
from datetime import timedelta

import pytest

import msadapter.pytorch as torch
import msadapter.pytorch.distributed as dist


def raises(text, function, *arguments, kind=RuntimeError, **options):
    with pytest.raises(kind) as caught:
        function(*arguments, **options)
    assert text in str(caught.value)


@pytest.fixture(params=["hash", "file", "tcp", "prefix"])
def store(request, tmp_path):
    if request.param == "file":
        return dist.FileStore(str(tmp_path / "store"), 1)
    if request.param == "tcp":
        return dist.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=5))
    return dist.PrefixStore("name", dist.HashStore()) if request.param == "prefix" else dist.HashStore()


def test_stores_do_what_the_references_do(store):
    assert isinstance(store, dist.Store)
    before = store.num_keys()
    store.set("a", "1")
    assert store.get("a") == b"1" and store.num_keys() == before + 1
    assert store.add("n", 3) == 3 and store.add("n", -1) == 2 and store.get("n") == b"2"
    assert store.compare_set("c", "", "x") == b"x" and store.compare_set("c", "q", "y") == b"x" and store.compare_set("c", "x", "y") == b"y"
    assert store.compare_set("other", "ff", "y") == b"ff"
    assert store.delete_key("a") is True and store.delete_key("a") is False
    store.set("bytes", b"\0\xff")
    assert store.get("bytes") == b"\0\xff"
    store.set_timeout(timedelta(milliseconds=30))
    assert store.timeout == timedelta(milliseconds=30)
    with pytest.raises(RuntimeError, match="[Tt]imeout"):
        store.get("none")
    with pytest.raises(RuntimeError, match="[Tt]imeout"):
        store.wait(["c", "none"], timedelta(milliseconds=20))
    with pytest.raises(TypeError):
        store.set("a", 3)
    threading.Timer(0.05, store.set, ("late", "v")).start()
    store.wait(["late"], timedelta(seconds=5))
    assert store.get("late") == b"v"


def test_a_file_store_is_shared_and_removed_in_the_end(tmp_path):
    path = str(tmp_path / "store")
    one, two = dist.FileStore(path, 2), dist.FileStore(path, 2)
    one.set("k", "v")
    two.add("n", 5)
    assert two.get("k") == b"v" and one.get("n") == b"5" and one.path == path
    two.delete_key("k")
    assert one.num_keys() == 1
    del one
    assert os.path.exists(path)
    del two
    assert not os.path.exists(path)
    damaged = tmp_path / "damaged"
    damaged.write_bytes(struct.pack("<Q", 2**63) + b"x")
    raises("damaged", dist.FileStore, str(damaged))


def test_strangers_do_not_disturb_a_tcp_store():
    store = dist.TCPStore("localhost", 0, 1, True, timedelta(seconds=2))
    for nonsense in (b"GET / HTTP/1.1\r\n\r\n", b"s\xff\xff\xff\xff", b"w\1\0\0\0xx", b"a\1\0\0\0k\1\0\0\0x"):
        with socket.create_connection(("127.0.0.1", store.port)) as stranger:
            stranger.sendall(nonsense)
    assert store.add("n", 1) == 1
    raises("The client socket has timed out", dist.TCPStore, "127.0.0.1", 1, 1, False, timedelta(seconds=0.2), kind=TimeoutError)
    raises("failed to bind", dist.TCPStore, "127.0.0.1", store.port, 1, True, timedelta(seconds=1))
    raises("clients joined", dist.TCPStore, "127.0.0.1", 0, 2, True, timedelta(seconds=0.1))


def test_names_and_errors_before_there_is_a_group():
    assert dist.is_available() and not dist.is_initialized() and dist.is_gloo_available()
    assert not dist.is_mpi_available() and not dist.is_nccl_available() and not dist.is_torchelastic_launched()
    for function in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier, lambda: dist.all_reduce(torch.ones(1))):
        raises("Default process group has not been initialized", function)
    raises("Distributed package doesn't have MPI built in", dist.init_process_group, "mpi")
    raises("environment variable RANK expected", dist.init_process_group, "gloo", kind=ValueError)
    raises("Invalid backend: 'x'", dist.Backend, "x", kind=ValueError)
    raises("must be a string", dist.Backend, 3, kind=ValueError)
    assert dist.Backend("GLOO") == "gloo" == dist.Backend.GLOO
    for url, text, kind in (("foo://", "No rendezvous handler for foo://", RuntimeError), ("tcp://localhost", "port number missing", ValueError),
                            ("tcp://localhost:33", "rank parameter missing", ValueError), ("file://", "path missing", ValueError),
                            (3, "`url` must be a string", RuntimeError)):
        raises(text, lambda u=url: next(dist.rendezvous(u)), kind=kind)
    raises("timeout argument", dist.init_process_group, "gloo", rank=0, world_size=1, store=dist.HashStore(), timeout=3)
    raises("Subgroups can only be created when CUDA is available", dist.new_subgroups, kind=ValueError)
    raises("Subgroups can only be created when CUDA is available", dist.new_subgroups_by_enumeration, [[0]], kind=ValueError)
    assert dist.get_debug_level() is dist.DebugLevel.OFF
    dist.set_debug_level(dist.DebugLevel.INFO)
    assert dist.get_debug_level() is dist.DebugLevel.INFO
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() is dist.DebugLevel.OFF
    dist.register_rendezvous_handler("ready", lambda url, **options: iter([(dist.HashStore(), 0, 1)]))
    dist.init_process_group("gloo", "ready://")
    try:
        raises("twice", dist.init_process_group, "gloo", "ready://")
        raises("already registered", dist.register_rendezvous_handler, "ready", None)
        raises("doesn't have NCCL built in", dist.new_group, backend="nccl")
        x = torch.ones(2)
        dist.all_reduce(x)
        dist.barrier()
        dist.monitored_barrier()
        assert x.tolist() == [1, 1] and dist.get_world_size() == 1
    finally:
        dist.destroy_process_group()


def collectives(rank, package, dist, size):
    """What every collective gives: a list of nested lists and numbers."""
    seen = []

    def values(dtype, n=7):
        t = package.arange(n) % 5 + rank
        return (t > 2) if dtype is package.bool else t.to(dtype)

    ops = dist.ReduceOp
    for dtype in (package.float32, package.float64, package.float16, package.int8, package.uint8, package.int32, package.int64):
        integral = [] if dtype.is_floating_point else [ops.BAND, ops.BOR, ops.BXOR]
        for op in [ops.SUM, ops.PRODUCT, ops.MIN, ops.MAX, *integral]:
            t = values(dtype)
            dist.all_reduce(t, op)
            seen.append(t.tolist())
        t = values(dtype)
        dist.reduce(t, 1, ops.SUM)
        seen.append(t.tolist() if rank == 1 else [])
        t = values(dtype)
        dist.broadcast(t, 1)
        seen.append(t.tolist())
        outputs = [package.empty_like(t) for _ in range(size)]
        dist.all_gather(outputs, values(dtype))
        seen.append([o.tolist() for o in outputs])
        dist.gather(values(dtype), outputs if rank == 1 else None, 1)
        seen.append([o.tolist() for o in outputs])
        t = package.zeros(7, dtype=dtype)
        dist.scatter(t, [values(dtype) + i for i in range(size)] if rank == 0 else None, 0)
        seen.append(t.tolist())
    c = package.tensor([1 + 2j, rank * 1j])
    dist.all_reduce(c)
    seen.append([str(v) for v in c.tolist()])
    t = (package.arange(12.0).view(3, 4) + rank).t()
    dist.all_reduce(t)
    seen.append(t.tolist())
    works = [dist.all_reduce(values(package.float32), async_op=True) for _ in range(4)]
    seen.append([w.wait() for w in works] + [w.result()[0].tolist() for w in works])
    t = package.zeros(2 * size)
    dist.all_to_all_single(t, package.arange(2.0 * size) + 100 * rank)
    seen.append(t.tolist())
    t = package.zeros(sum(range(size)) + size)
    sizes = [i + 1 for i in range(size)]
    t = package.zeros((rank + 1) * size)
    dist.all_to_all_single(t, package.arange(float(sum(sizes))) + 100 * rank, [rank + 1] * size, sizes)
    seen.append(t.tolist())
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "list": list(range(rank * 50))})
    seen.append(objects)
    objects = [None] * size if rank == 1 else None
    dist.gather_object("x" * rank, objects, 1)
    seen.append(objects)
    objects = ["a", 3, {"b": [1]}] if rank == 0 else [None] * 3
    dist.broadcast_object_list(objects, 0)
    seen.append(objects)
    out = [None]
    dist.scatter_object_list(out, [f"to {i}" for i in range(size)] if rank == 0 else None, 0)
    seen.append(out)
    if rank == 0:
        first, other = package.arange(3.0), package.arange(3)
        work = dist.isend(first, 1, tag=2)
        dist.send(other, 1)
        work.wait()
        t = package.zeros(2)
        seen.append([dist.recv(t, 1), t.tolist()])
    elif rank == 1:
        a, b = package.zeros(3, dtype=package.int64), package.zeros(3)
        seen.append([dist.recv(a), a.tolist(), dist.recv(b, 0, tag=2), b.tolist()])
        dist.send(package.ones(2), 0)
    peer = (rank + 1) % size
    a, b = package.full((3,), float(rank)), package.zeros(3)
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, a, peer), dist.P2POp(dist.irecv, b, (rank - 1) % size)]):
        work.wait()
    seen.append(b.tolist())
    part = dist.new_group([0, 1])
    seen.append([dist.get_rank(part), dist.get_world_size(part)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        t = package.full((2,), float(rank))
        dist.all_reduce(t, group=part)
        dist.broadcast(t, 1, group=part)
        dist.all_reduce_multigpu([t])
        both = [t.clone(), t.clone()]
        dist.all_reduce_coalesced(both)
        dist.broadcast_multigpu([t], 0)
        outputs = [package.zeros(2) for _ in range(size)]
        dist.all_gather_multigpu([outputs], [t + rank])
        if rank < 2:
            dist.reduce_multigpu([t], 0, group=part)
    seen.append([str(w.message) for w in caught])
    seen.append([t.tolist() if rank == 0 else [], [b.tolist() for b in both], [o.tolist() for o in outputs]])
    dist.barrier()
    dist.monitored_barrier()
    return seen


def against_reference(rank, path, size):
    import torch as reference
    import torch.distributed as reference_dist

    reference_dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size, timeout=timedelta(seconds=10))
    theirs = collectives(rank, reference, reference_dist, size)
    ours = collectives(rank, torch, dist, size)
    assert len(ours) == len(theirs)
    for mine, yours in zip(ours, theirs):
        assert mine == yours


@pytest.mark.parametrize("size", [2, 3])
def test_collectives_give_what_the_reference_gives(together, tmp_path, size):
    pytest.importorskip("torch")
    together(size, against_reference, tmp_path / "reference", size)


def beyond_the_reference(rank):
    size = dist.get_world_size()
    for dtype in (torch.bool, torch.int16, torch.bfloat16):
        t = torch.tensor([rank, 1, 0]).to(dtype)
        dist.all_reduce(t)
        assert t.tolist() == torch.tensor([3, size, 0]).to(dtype).tolist()
    t = torch.tensor([rank == 0, True, False])
    dist.all_reduce(t, dist.ReduceOp.PRODUCT)
    assert t.tolist() == [False, True, False]
    out = torch.zeros(2)
    dist.reduce_scatter(out, [torch.full((2,), float(10 * i + rank)) for i in range(size)])
    assert out.tolist() == [30 * rank + 3.0] * 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist.reduce_scatter_multigpu([out], [[torch.full((2,), float(10 * i + rank)) for i in range(size)]], dist.ReduceOp.MAX)
        assert out.tolist() == [10 * rank + 2.0] * 2
        lists = [[torch.zeros(1), torch.zeros(2)] for _ in range(size)]
        dist.all_gather_coalesced(lists, [torch.full((1,), float(rank)), torch.full((2,), rank + 5.0)])
        assert [[t.tolist() for t in ts] for ts in lists] == [[[float(i)], [i + 5.0] * 2] for i in range(size)]
    outs = [torch.zeros(i + 1) for i in range(size)]
    dist.all_to_all(outs, [torch.full((rank + 1,), float(rank)) for _ in range(size)])
    assert [o.tolist() for o in outs] == [[float(i)] * (i + 1) for i in range(size)]
    big = torch.arange(1_000_003.0) + rank
    work = dist.all_reduce(big, async_op=True)
    future = dist.all_reduce(torch.ones(2), async_op=True).get_future()
    assert future.wait()[0].tolist() == [3, 3]
    work.wait()
    assert work.is_completed() and work.is_success() and work.exception() is None
    assert torch.equal(big, torch.arange(1_000_003.0) * 3 + 3)
    empty = torch.zeros(0, 3)
    dist.all_reduce(empty)
    dist.broadcast(empty, 0)
    for tensor in (torch.randn(300_000), torch.randn(3)):  # the same bits everywhere, whatever the order of sums
        dist.all_reduce(tensor)
        copies = [torch.empty_like(tensor) for _ in range(size)]
        dist.all_gather(copies, tensor)
        assert all(torch.equal(copy, tensor) for copy in copies)


def test_more_types_and_collectives_than_the_reference(together):
    together(3, beyond_the_reference)


def wrong_calls(rank):
    x = torch.arange(6.0).view(2, 3)
    ops = dist.ReduceOp
    for text, function, *arguments in (
            ("Cannot use ReduceOp.AVG with Gloo", dist.all_reduce, x, ops.AVG),
            ("Cannot use ReduceOp.BAND with non-integral dtype", dist.all_reduce, x, ops.BAND),
            ("on complex tensors", dist.all_reduce, torch.tensor([1j]), ops.MAX),
            ("ProcessGroupGloo::broadcast: invalid root rank: 5", dist.broadcast, x, 5),
            ("ProcessGroupGloo::broadcast: invalid root rank: -1", dist.broadcast, x, -1),
            ("ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length 2, got 1)", dist.all_gather, [x], x),
            ("ProcessGroupGloo::allgather: invalid tensor size at index 1 (expected (2, 3), got (2))", dist.all_gather, [x, torch.ones(2)], x),
            ("Invalid usage of tensors with different dtypesFound torch.float32 and  torch.int32", dist.all_gather, [x, x.int()], x),
            ("Split sizes doesn't match total dim 0 size", dist.all_to_all_single, torch.ones(4), torch.ones(4), [1, 2], [2, 2]),
            ("Number of tensor splits not equal to group size", dist.all_to_all_single, torch.ones(4), torch.ones(4), [4], [2, 2]),
            ("Expected parameter `tensor` to be of type torch.Tensor", dist.all_reduce, [x]),
            ("Expected parameter `input_list`", dist.reduce_scatter, x, x),
            ("Function argument device_ids not supported for the selected backend gloo", dist.barrier, dist.group.WORLD, False, [0]),
            ("The new group's rank should be within", dist.new_group, [5]),
            ("the new group's world size should be less or equal", dist.new_group, [0, 1, 1]),
            ("Invalid process group specified", dist.destroy_process_group, 3),
            ("Tag must be nonnegative", dist.send, x, 1 - rank, None, -1),
            ("cannot exchange messages", dist.send, x, rank),
            ("cannot exchange messages", dist.send, x, 7),
            ("invalid source rank", dist.recv, x, -1),
            ("Expected argument scatter_object_output_list", dist.scatter_object_list, [], []),
            ("Each op is expected", dist.batch_isend_irecv, [3]),
            ("Invalid ``op``", dist.P2POp, dist.send, x, 0)):
        raises(text, function, *arguments)
    raises("ReduceOp", dist.all_reduce, x, "sum", kind=TypeError)
    if rank == 0:
        raises("``gather_list`` must be specified on destination", dist.gather, x, kind=ValueError)
        raises("Incorrect output list size 1", dist.gather, x, [x])
        raises("invalid tensor size at index 1", dist.gather, x, [x, torch.ones(2)])
        raises("``scatter_list`` must be specified on source", dist.scatter, x, kind=ValueError)
        raises("Incorrect input list size 1", dist.scatter, x, [x])
    else:
        raises("``gather_list`` must NOT be specified", dist.gather, x, [x, x], kind=ValueError)
        raises("``scatter_list`` must NOT be specified", dist.scatter, x, [x, x], kind=ValueError)
    dist.barrier()  # none of it has left anything behind
    t = torch.ones(3 + rank)
    raises("bytes", dist.all_reduce, t)
    raises("failed on rank", dist.all_reduce, torch.ones(1))


def test_wrong_calls_are_refused(together):
    together(2, wrong_calls)


def late(rank):
    start = time.monotonic()
    if rank == 0:
        raises("Timed out waiting 300ms for recv operation to complete", lambda: dist.irecv(torch.ones(1), 1, tag=9).wait(timedelta(milliseconds=300)))
        raises("Rank 1 failed to pass monitoredBarrier in 200 ms", dist.monitored_barrier, timeout=timedelta(milliseconds=200))
        raises("Ranks 1, 2 failed to pass monitoredBarrier", dist.monitored_barrier, timeout=timedelta(milliseconds=200), wait_all_ranks=True)
        raises("Timed out waiting 1000ms", dist.all_reduce, torch.ones(3))
        assert time.monotonic() - start < 8
    else:
        time.sleep(2.5)
        raises("a collective failed on rank 0", dist.all_reduce, torch.ones(3))


def test_who_is_late_is_told_and_waiting_ends(together):
    together(3, late, seconds=1)


def lose_one(rank, how, path):
    dist.barrier()
    if rank == 2:
        if how == "killed":
            path.write_text("x")
            os.kill(os.getpid(), 9)
        dist.destroy_process_group()
        return
    start = time.monotonic()
    for _ in range(2):
        raises("", dist.all_reduce, torch.ones(100_000))
    raises("losed by peer", dist.recv, torch.ones(1), 2)
    assert time.monotonic() - start < 5
    if rank == 0:  # these two still have each other
        dist.send(torch.arange(3), 1)
    else:
        t = torch.zeros(3, dtype=torch.int64)
        assert dist.recv(t, 0) == 0 and t.tolist() == [0, 1, 2]
    dist.destroy_process_group()


def test_a_process_that_leaves_is_an_error_for_the_others(together, tmp_path):
    together(3, lose_one, "leaves", None)
    # A killed process ends the others by the rules of spawn, so they say themselves that all was well.
    import msadapter.pytorch.multiprocessing as mp

    def member(rank, path):
        dist.init_process_group("gloo", init_method=f"file://{path}/store", rank=rank, world_size=3)
        if rank == 2:
            child = mp.get_context("fork").Process(target=time.sleep, args=(8,))  # it must not keep the connections open
            child.start()
            (path / "child").write_text(str(child.pid))
        lose_one(rank, "killed", path / "gone")
        (path / f"well{rank}").write_text("x")

    context = mp.get_context("fork")
    processes = [context.Process(target=member, args=(rank, tmp_path)) for rank in range(3)]
    for process in processes:
        process.start()
    for process in processes[:2]:
        process.join(15)
        assert process.exitcode == 0
    os.kill(int((tmp_path / "child").read_text()), 9)
    processes[2].join(5)
    assert processes[2].exitcode == -9 and (tmp_path / "well0").exists() and (tmp_path / "well1").exists()


def forks(rank):
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(1))
        except RuntimeError as error:
            os._exit(0 if "parent of a forked process" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    x = torch.ones(1)
    dist.all_reduce(x)
    assert x == 2


def test_a_forked_child_is_no_member(together):
    together(2, forks)


def by_url(rank, port, path):
    for method in ("tcp", "env", "tcp"):  # the same port again, after the end
        if method == "env":
            os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            dist.init_process_group("gloo", timeout=timedelta(seconds=10))
        else:
            dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}?rank={rank}&world_size=2", timeout=timedelta(seconds=10))
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (rank, 2, "gloo")
        x = torch.tensor([rank])
        dist.all_reduce(x)
        assert x == 1
        (path / f"{method}{rank}").write_text("x")
        while not (path / f"{method}{1 - rank}").exists():
            time.sleep(0.01)
        dist.destroy_process_group()
        (path / f"{method}{rank}ended").write_text("x")
        while not (path / f"{method}{1 - rank}ended").exists():
            time.sleep(0.01)
        if method == "env":
            for name in ("tcp0", "tcp1", "tcp0ended", "tcp1ended"):
                (path / name).unlink(missing_ok=True)
            while any((path / name).exists() for name in ("tcp0", "tcp1", "tcp0ended", "tcp1ended")):
                time.sleep(0.01)


def test_processes_find_each_other_by_urls(tmp_path):
    import msadapter.pytorch.multiprocessing as mp

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.start_processes(by_url, (port, tmp_path), nprocs=2, start_method="fork")


def test_a_mesh_sends_strangers_away_and_does_not_wait_for_ever():
    from msadapter import _C
    from msadapter.pytorch.distributed import ProcessGroupGloo

    store, groups = dist.HashStore(), {}

    def member(rank):
        groups[rank] = ProcessGroupGloo(store, rank, 2, timedelta(seconds=10))

    first = threading.Thread(target=member, args=(0,))
    first.start()
    port = int(store.get("rank_0").decode().split()[0])
    for nonsense in (b"", b"x" * 100, struct.pack("<IIQQ", 0x6D736132, 1, 12345, 0)):  # the last: a greeting with another token
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(nonsense)
    member(1)
    first.join()
    a, b = torch.ones(3), torch.full((3,), 2.0)
    works = [groups[0].allreduce([a]), groups[1].allreduce([b])]
    assert all(work.wait() for work in works) and a.tolist() == b.tolist() == [3, 3, 3]
    groups[1].close()
    raises("losed by peer", groups[0].recv(a, 1).wait)
    raises("destroyed", groups[1].barrier)
    groups[0].close()
    listener, port = _C._mesh_listen("127.0.0.1")
    raises("Connect timeout", _C._ProcessGroup, listener, 0, [("127.0.0.1", port), ("127.0.0.1", 1)], 1, 100)
    listener, port = _C._mesh_listen("127.0.0.1")
    raises("Connect timeout", _C._ProcessGroup, listener, 1, [("127.0.0.1", 1), ("127.0.0.1", port)], 1, 100)
    raises("cannot find the address", _C._mesh_listen, "no such host")


def unfinished(rank):
    if rank == 0:
        work = dist.all_reduce(torch.ones(5), async_op=True)  # rank 1 never comes
        dist.isend(torch.ones(100), 1, tag=3)  # nobody keeps this work, the message arrives all the same
        dist.irecv(torch.ones(1), 1, tag=4)
        time.sleep(0.2)
        dist.destroy_process_group()
        raises("", work.wait)
        assert work.is_completed() and not work.is_success() and isinstance(work.exception(), RuntimeError)
        raises("sourceRank() may only be called", work.source_rank)
    else:
        x = torch.zeros(100)
        dist.recv(x, 0, tag=3)
        assert x.sum() == 100
        raises("losed by peer", dist.recv, x, 0)


def test_destroying_a_group_ends_what_is_under_way(together):
    together(2, unfinished)
