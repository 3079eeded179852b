"""torch.multiprocessing: tensors that processes share, and processes that are started together."""

import gc
import glob
import os
import pickle
import signal
import warnings

import pytest

import msadapter.pytorch as torch
import msadapter.pytorch.multiprocessing as mp


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request):
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy("file_descriptor")
    gc.collect()
    assert not glob.glob(f"/dev/shm/msadapter_{os.getpid()}_*")


def forked(target, *args):
    process = mp.get_context("fork").Process(target=target, args=args, daemon=True)
    process.start()
    return process


def ended(process):
    process.join(20)
    return process.exitcode


def answer_doubled(inbox, outbox):
    for tensor in iter(inbox.get, None):
        tensor.detach().mul_(2)
        outbox.put(tensor)
    outbox.put(torch.arange(3.0))
    assert inbox.get() == "enough"


def test_queues_share_the_memory_of_tensors(strategy):
    context = mp.get_context("fork")
    inbox, outbox = context.Queue(), context.SimpleQueue()
    process = forked(answer_doubled, inbox, outbox)
    whole = torch.arange(12.0).view(3, 4)
    half, parameter = whole.half(), torch.nn.Parameter(torch.ones(3), requires_grad=False)
    for sent in (whole, whole.t()[1:], half, parameter, torch.empty(0, 3), torch.tensor(3), torch.ones(2, requires_grad=True)):
        before = sent.detach().clone()
        inbox.put(sent)
        assert outbox._reader.poll(20)
        got = outbox.get()
        assert type(got) is type(sent) and got.requires_grad == sent.requires_grad
        assert got.shape == sent.shape and got.stride() == sent.stride() and got.storage_offset() == sent.storage_offset()
        assert torch.equal(sent.detach(), before * 2) or sent.numel() == 0
        assert sent.numel() == 0 or (sent.is_shared() and got.data_ptr() == sent.data_ptr())  # it is the very storage
    assert whole.tolist()[0] == [0, 4, 8, 12]
    inbox.put(None)
    assert outbox.get().tolist() == [0, 1, 2]
    inbox.put("enough")
    assert ended(process) == 0


def add_one(module):
    for tensor in module.state_dict().values():
        tensor += 1


def test_modules_share_their_memory(strategy):
    module = torch.nn.BatchNorm1d(2)
    assert not module.weight.is_shared()
    assert module.share_memory() is module and all(t.is_shared() for t in module.state_dict().values())
    assert ended(forked(add_one, module)) == 0
    assert module.weight.tolist() == [2, 2] and module.num_batches_tracked == 1


def test_pipes_keep_views_of_one_storage_together(strategy):
    ours, theirs = mp.Pipe()
    base = torch.zeros(4)
    ours.send([base, base[2:], base.storage(), base.untyped_storage()])
    a, b, typed, untyped = theirs.recv()
    b.fill_(5)
    assert base.tolist() == [0, 0, 5, 5] and typed.tolist() == [0, 0, 5, 5]
    assert a.data_ptr() == base.data_ptr() == untyped.data_ptr() and typed.dtype is torch.float32 and untyped.size() == 16


def test_sharing_again_in_the_other_way_keeps_the_values():
    tensor = torch.arange(5)
    storage = tensor.untyped_storage()
    descriptor, size = storage._share_fd_cpu_()
    assert size == 40 and os.fstat(descriptor).st_size == 40
    manager, name, size = storage._share_filename_cpu_()
    assert manager == b"" and size == 40 and os.path.exists("/dev/shm" + name.decode())
    assert tensor.tolist() == [0, 1, 2, 3, 4] and tensor.is_shared()
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.resize_(100)
    del tensor, storage
    assert not os.path.exists("/dev/shm" + name.decode())


def test_memory_that_numpy_looks_at_stays_when_a_tensor_moves():
    numpy = pytest.importorskip("numpy")
    tensor = torch.arange(1000.0)
    array = tensor.numpy()
    tensor.share_memory_()
    del tensor
    assert array.sum() == 499500
    foreign = torch.from_numpy(numpy.ones(3)).share_memory_()
    assert foreign.is_shared() and foreign.sum() == 3


def test_a_child_that_ends_leaves_no_files_and_keeps_its_parents(strategy):
    tensor = torch.ones(3).share_memory_()
    child = forked(lambda: globals().update(kept=torch.ones(5).share_memory_(), also=tensor))
    assert ended(child) == 0
    assert not glob.glob(f"/dev/shm/msadapter_{child.pid}_*")
    other = torch.zeros(3)
    ours, theirs = mp.Pipe()
    ours.send(tensor)
    other.copy_(theirs.recv())
    assert other.sum() == 3


def test_memory_outlives_the_process_that_made_it():
    mp.set_sharing_strategy("file_system")
    try:
        ours, theirs = mp.Pipe()
        assert ended(forked(lambda: theirs.send(torch.arange(4)))) == 0
        assert glob.glob("/dev/shm/msadapter_*")
        assert ours.recv().tolist() == [0, 1, 2, 3]
    finally:
        mp.set_sharing_strategy("file_descriptor")


def test_handles_that_name_nothing_are_refused(tmp_path):
    new = torch.UntypedStorage
    short = os.open(tmp_path / "short", os.O_RDWR | os.O_CREAT)
    os.write(short, b"1234")
    assert new._new_shared_fd_cpu(short, 4).tolist() == list(b"1234")
    for arguments in ((short, 5), (short, 2**62), (12345, 1), (short, -1)):
        with pytest.raises((RuntimeError, OSError)):
            new._new_shared_fd_cpu(*arguments)
    for name in (b"/etc/passwd", b"/msadapter_nobody", b"/msadapter_../x", b"", b"/msadapter_" + b"x" * 500):
        with pytest.raises(RuntimeError):
            new._new_shared_filename_cpu(b"", name, 1)
    with pytest.raises(TypeError):
        new._new_shared_fd_cpu("a", 1)
    assert new._new_shared(3).is_shared() and new._new_shared(3).tolist() == [0, 0, 0]
    assert torch.TypedStorage._new_shared(3).nbytes() == 12
    os.close(short)


def test_results_that_need_gradients_are_not_sent():
    reference = pytest.importorskip("torch")
    texts = []
    for package in (torch, reference):
        pipe, other = __import__("multiprocessing").Pipe()
        __import__(package.__name__ + ".multiprocessing")
        with pytest.raises(RuntimeError) as caught:
            pipe.send(package.ones(2, requires_grad=True) * 2)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.full((3,), float(i)), i * i


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_of_a_loader_send_batches_as_shared_memory(strategy, persistent):
    loader = torch.utils.data.DataLoader(Squares(), batch_size=5, num_workers=2, persistent_workers=persistent)
    for _ in range(2):
        batches = list(loader)
        assert [b[1].tolist() for b in batches] == [[0, 1, 4, 9, 16], [25, 36, 49, 64, 81], [100, 121]]
        assert all(b[0].is_shared() and torch.equal(b[0][:, 0] ** 2, b[1].float()) for b in batches)
    del loader


def fail_in_one(rank, how, ready):
    if rank == 1:
        if how == "raise":
            raise ValueError("number one")
        if how == "exit":
            os._exit(7)
        os.kill(os.getpid(), signal.SIGKILL)
    ready.fill_(rank + 1)


def set_element(rank, values):
    values[rank] = rank + 1


def test_spawned_processes_get_their_rank_and_arguments():
    values = torch.zeros(2).share_memory_()
    assert mp.spawn(set_element, (values,), nprocs=2) is None
    assert values.tolist() == [1, 2]


def test_failures_of_processes_read_as_the_references():
    reference = pytest.importorskip("torch.multiprocessing")
    for how in ("raise", "exit", "kill"):
        seen = []
        for module, value in ((mp, torch.zeros(1)), (reference, __import__("torch").zeros(1))):
            context = module.start_processes(fail_in_one, (how, value), nprocs=2, join=False, start_method="fork")
            assert len(context.pids()) == 2
            with pytest.raises(Exception) as caught:
                while not context.join(20):
                    pass
            error = caught.value
            assert error.pid == context.pids()[1] and error.error_index == 1
            assert str(pickle.loads(pickle.dumps(error))) == str(error)
            text = str(error).replace(reference.__file__, "").splitlines()
            seen.append((type(error).__name__, text[:3], text[-1], getattr(error, "exit_code", None), getattr(error, "signal_name", None)))
        assert seen[0] == seen[1]


def test_names_and_warnings_are_the_references():
    reference = pytest.importorskip("torch.multiprocessing")
    assert mp.get_all_sharing_strategies() == reference.get_all_sharing_strategies()
    assert mp.get_sharing_strategy() == reference.get_sharing_strategy()
    assert set(mp.__all__) == set(reference.__all__)
    with pytest.raises(AssertionError):
        mp.set_sharing_strategy("by_hand")
    texts = []
    for module in (mp, reference):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert module.SpawnContext([], []).join()
            module.spawn(print, nprocs=0, start_method="fork")
        texts.append([str(w.message) for w in caught])
    assert texts[0] == texts[1]


def identity(tensor):
    return tensor + 1


def test_pools_and_the_other_names_of_the_standard_library():
    with mp.get_context("fork").Pool(2) as pool:
        assert [t.item() for t in pool.map(identity, [torch.tensor(1), torch.tensor(2)])] == [2, 3]
    assert mp.get_start_method() in ("fork", "spawn", "forkserver") and mp.cpu_count() > 0
    assert mp.current_process().name == "MainProcess" and isinstance(mp.active_children(), list)
    for primitive in (mp.Lock(), mp.RLock(), mp.Semaphore(2), mp.Condition()):
        with primitive:
            pass
    event, queue, barrier = mp.Event(), mp.JoinableQueue(), mp.Barrier(1)
    event.set()
    queue.put(torch.ones(2))
    assert queue.get().sum() == 2 and event.is_set() and barrier.wait() == 0
    queue.task_done()
    queue.join()
    assert mp.Value("i", 3).value == 3 and list(mp.Array("d", [1.5])) == [1.5]
