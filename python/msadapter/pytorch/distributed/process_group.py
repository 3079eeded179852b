"""Process groups of the backend "gloo": the engine's mesh of processes (src/parallel), and what is going on in it."""

import secrets
import threading
from datetime import timedelta
from enum import Enum

from msadapter import _C
from msadapter import pytorch as torch
from msadapter.pytorch.distributed.constants import default_pg_timeout
from msadapter.pytorch.distributed.store import PrefixStore, TCPStore

__all__ = ["ProcessGroup", "ProcessGroupGloo", "ReduceOp", "Work"]


class ReduceOp(Enum):
    """How values of several processes become one."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = range(8)

    def __int__(self):
        return self.value


_OPS = {op: code for code, op in enumerate((ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR))}
BROADCAST, ALL_REDUCE, REDUCE, ALL_GATHER, GATHER, SCATTER, REDUCE_SCATTER, ALL_TO_ALL, BARRIER = range(9)
_OWN_TAGS = 1 << 31  # tags from here on are not for users


def _milliseconds(timeout):
    return max(round(timeout.total_seconds() * 1000), 0)


class Work:
    """Something that has been started. wait() returns when it is done, and raises RuntimeError when it failed."""

    def __init__(self, parts, results, timeout=None, what="recv", finish=None):
        self._parts, self._results, self._timeout, self._what, self._finish = parts, results, timeout, what, finish
        self._lock = threading.RLock()
        self._error = None

    def wait(self, timeout=timedelta(0)):
        """Wait up to `timeout` (0: the group's). True; RuntimeError when it is not done by then or has failed."""
        if timeout:
            limit = _milliseconds(timeout)
        else:
            limit = -1 if self._timeout is None else _milliseconds(self._timeout)  # collectives look at the time themselves
        with self._lock:
            if self._error is not None:
                raise self._error
            try:
                for part in self._parts:
                    if not part.wait(limit):
                        part.cancel()
                        raise RuntimeError(f"Timed out waiting {limit}ms for {self._what} operation to complete")
            except RuntimeError as error:
                self._error = error
                raise
            if self._finish is not None:
                finish, self._finish = self._finish, None
                finish()
        return True

    def synchronize(self):
        """wait()."""
        self.wait()

    def is_completed(self):
        """Whether it has ended, well or not."""
        if not self._lock.acquire(blocking=False):
            return False  # somebody is waiting for it
        try:
            return self._error is not None or all(part.done() for part in self._parts)
        finally:
            self._lock.release()

    def is_success(self):
        """Whether it has ended well."""
        return self.is_completed() and self.exception() is None

    def exception(self):
        """Why it failed, or None."""
        if self._error is None and self.is_completed():
            try:
                self.wait()
            except RuntimeError:
                return self._error
        return self._error

    def result(self):
        """The tensors with the results."""
        return list(self._results)

    def source_rank(self):
        """Which rank a message came from. RuntimeError for other works."""
        if self._what != "recv" or self._timeout is None:
            raise RuntimeError("sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call.")
        return self._parts[0].source()

    _source_rank = source_rank

    def get_future(self):
        """A torch.futures.Future of the list of results."""
        future = torch.futures.Future()

        def settle():
            try:
                self.wait()
            except RuntimeError as error:
                future.set_exception(error)
            else:
                future.set_result(self.result())

        threading.Thread(target=settle, daemon=True, name="Work.get_future").start()
        return future


class ProcessGroup:
    """Some processes, each with a rank in the group."""

    def __init__(self, rank, size):
        self._rank, self._size = rank, size

    def rank(self):
        """This process's rank in the group."""
        return self._rank

    def size(self):
        """The number of processes."""
        return self._size


def _plain(tensor):
    """A tensor that the engine can send, and whether it is another one than `tensor`."""
    if not isinstance(tensor, torch.Tensor):
        raise RuntimeError(f"Invalid function argument. Expected a torch.Tensor, got {type(tensor).__name__}.")
    tensor = tensor.detach()
    return (tensor, False) if tensor.is_contiguous() else (tensor.contiguous(), True)


def _sizes(tensor):
    return "(" + ", ".join(map(str, tensor.shape)) + ")"


class ProcessGroupGloo(ProcessGroup):
    """Processes that are connected by TCP. All make it at the same time, over a store that they have in common."""

    def __init__(self, store, rank, size, timeout=default_pg_timeout):
        super().__init__(rank, size)
        self.store, self.timeout = store, timeout
        self._barriers = 0
        if not 0 <= rank < size:
            raise ValueError(f"Invalid rank {rank}: it should be in the interval [0, {size - 1}]")
        base = store
        while isinstance(base, PrefixStore):
            base = base.underlying_store
        host = base._local_address() if isinstance(base, TCPStore) else "127.0.0.1"
        listener, port = _C._mesh_listen(host)
        if rank == 0:
            store.set("token", str(secrets.randbits(63)))
        store.set(f"rank_{rank}", f"{port} {host}")
        addresses = []
        for other in range(size):
            port, host = store.get(f"rank_{other}").decode().split(" ", 1)
            addresses.append((host, int(port)))
        self._group = _C._ProcessGroup(listener, rank, addresses, int(store.get("token")), _milliseconds(timeout))

    def name(self):
        """The backend's name."""
        return "gloo"

    _get_backend_name = name

    def close(self):
        """End it. What has not been done fails."""
        self._group.close()

    def _fail(self, what, text):
        raise RuntimeError(f"ProcessGroupGloo::{what}: {text}")

    def _check_root(self, what, root):
        if not 0 <= root < self._size:
            self._fail(what, f"invalid root rank: {root}")

    def _check_alike(self, what, tensors, first):
        for i, tensor in enumerate(tensors):
            if tensor.shape != first.shape:
                self._fail(what, f"invalid tensor size at index {i} (expected {_sizes(first)}, got {_sizes(tensor)})")
            if tensor.dtype != first.dtype:
                self._fail(what, f"invalid tensor type at index {i} (expected {first.dtype}, got {tensor.dtype})")

    def _start(self, what, outputs, inputs=(), op=ReduceOp.SUM, root=0):
        """Start a collective on lists of tensors. Those that aren't contiguous are copied, and copied back in the end."""
        if not isinstance(op, ReduceOp):
            raise TypeError(f"a reduction must be a torch.distributed.ReduceOp, not {op!r}")
        if op is ReduceOp.AVG:
            raise RuntimeError("Cannot use ReduceOp.AVG with Gloo")
        pairs = [_plain(tensor) for tensor in outputs]
        if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and pairs and (pairs[0][0].is_floating_point() or pairs[0][0].is_complex()):
            raise RuntimeError(f"Cannot use {op} with non-integral dtype")
        back = [(tensor.detach(), plain) for tensor, (plain, copied) in zip(outputs, pairs) if copied]

        def finish():
            for tensor, plain in back:
                tensor.copy_(plain)

        part = self._group.start(what, _OPS[op], root, [plain for plain, _ in pairs], [_plain(tensor)[0] for tensor in inputs])
        return Work([part], outputs, what="collective", finish=finish if back else None)

    def broadcast(self, tensors, root=0):
        """The values of `root` in all processes, for each tensor."""
        self._check_root("broadcast", root)
        return self._together([self._start(BROADCAST, [tensor], root=root) for tensor in tensors])

    def allreduce(self, tensors, op=ReduceOp.SUM):
        """The reduction of all processes' values in each of them, for each tensor."""
        return self._together([self._start(ALL_REDUCE, [tensor], op=op) for tensor in tensors])

    allreduce_coalesced = allreduce

    def _together(self, works):
        if len(works) == 1:
            return works[0]

        def finish():
            for work in works:
                work.wait()

        return Work([part for work in works for part in work._parts], [tensor for work in works for tensor in work._results], what="collective",
                    finish=finish)

    def reduce(self, tensor, root=0, op=ReduceOp.SUM):
        """The reduction of all processes' values in `root`."""
        self._check_root("reduce", root)
        return self._start(REDUCE, [tensor], op=op, root=root)

    def allgather(self, outputs, tensor):
        """All processes' tensors in a list."""
        if len(outputs) != self._size:
            self._fail("allgather", f"invalid output tensor list at index 0 (expected length {self._size}, got {len(outputs)})")
        self._check_alike("allgather", outputs, tensor)
        return self._start(ALL_GATHER, outputs, [tensor])

    def gather(self, outputs, tensor, root=0):
        """All processes' tensors in a list of `root`."""
        self._check_root("gather", root)
        if self._rank == root:
            if len(outputs) != self._size:
                self._fail("gather", f"Incorrect output list size {len(outputs)}. Output list size should be {self._size}, same as size of the process group.")
            self._check_alike("gather", outputs, tensor)
        return self._start(GATHER, outputs, [tensor], root=root)

    def scatter(self, output, tensors, root=0):
        """One tensor out of a list of `root` for each process."""
        self._check_root("scatter", root)
        if self._rank == root:
            if len(tensors) != self._size:
                self._fail("scatter", f"Incorrect input list size {len(tensors)}. Input list size should be {self._size}, same as size of the process group.")
            self._check_alike("scatter", tensors, output)
        return self._start(SCATTER, [output], tensors, root=root)

    def reduce_scatter(self, output, tensors, op=ReduceOp.SUM):
        """The reduction of the rank-th tensors of all processes."""
        if len(tensors) != self._size:
            self._fail("reduce_scatter", f"invalid input tensor list at index 0 (expected length {self._size}, got {len(tensors)})")
        self._check_alike("reduce_scatter", tensors, output)
        return self._start(REDUCE_SCATTER, [output], tensors, op=op)

    def alltoall(self, outputs, tensors):
        """The rank-th tensors of all processes."""
        for name, given in (("output", outputs), ("input", tensors)):
            if len(given) != self._size:
                self._fail("alltoall", f"invalid {name} tensor list (expected length {self._size}, got {len(given)})")
        return self._start(ALL_TO_ALL, outputs, tensors)

    def barrier(self):
        """Nothing is done before all have called."""
        return self._start(BARRIER, [])

    def _check_tag(self, tag):
        if tag < 0:
            raise RuntimeError("Tag must be nonnegative")
        if tag >= _OWN_TAGS:
            raise RuntimeError(f"Tag must be less than {_OWN_TAGS}")

    def send(self, tensor, rank, tag=0):
        """Start to send a tensor to a rank."""
        self._check_tag(tag)
        return self._send(tensor, rank, tag)

    def _send(self, tensor, rank, tag):
        return Work([self._group.send(_plain(tensor)[0], rank, tag)], [tensor], self.timeout, "send")

    def recv(self, tensor, rank, tag=0):
        """Start to receive a tensor from a rank, -1 for any."""
        self._check_tag(tag)
        return self._receive(tensor, rank, tag)

    def _receive(self, tensor, rank, tag):
        plain, copied = _plain(tensor)
        finish = (lambda: tensor.detach().copy_(plain)) if copied else None
        return Work([self._group.receive(plain, rank, tag)], [tensor], self.timeout, "recv", finish)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """A barrier that tells which ranks have not come: rank 0 hears of all others and answers. RuntimeError after the timeout."""
        timeout = self.timeout if timeout is None else timeout
        self._barriers += 1
        tag = _OWN_TAGS + self._barriers % _OWN_TAGS
        if self._rank != 0:
            try:
                self._send(torch.tensor([self._rank]), 0, tag).wait(timeout)
                self._receive(torch.tensor([0]), 0, tag).wait(timeout)
            except RuntimeError as error:
                raise RuntimeError(f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
                                   f"Please check rank 0 logs for faulty rank.\n Original exception: \n{error}") from None
            return
        works = {rank: self._receive(torch.tensor([0]), rank, tag) for rank in range(1, self._size)}
        missing, reasons = [], []
        for rank, work in works.items():
            try:
                work.wait(timeout)
            except RuntimeError as error:
                missing.append(rank)
                reasons.append(str(error))
                if not wait_all_ranks:
                    break
        if missing:
            ranks, are = ", ".join(map(str, missing)), "Ranks" if wait_all_ranks else "Rank"
            raise RuntimeError(f"{are} {ranks} failed to pass monitoredBarrier in {_milliseconds(timeout)} ms\n Original exception: \n{reasons[0]}")
        for rank in works:
            self._send(torch.tensor([0]), rank, tag).wait(timeout)
