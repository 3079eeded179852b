"""The loader: batches of a data set, made here or in worker processes.

Worker k makes batches k, k + n, k + 2n ...: answers are read in that order, so batches come in the sampler's order. Each worker
has prefetch_factor requests waiting.
"""

import itertools

from msadapter import pytorch as torch
from msadapter.pytorch.utils.data._collate import default_collate, default_convert
from msadapter.pytorch.utils.data._fetch import make_fetcher
from msadapter.pytorch.utils.data._worker import EndOfSamples, ExceptionWrapper, get_worker_info
from msadapter.pytorch.utils.data.dataset import IterableDataset
from msadapter.pytorch.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler


class _Endless(Sampler):
    """The order of an iterable data set is its own: any index will do."""

    def __iter__(self):
        return itertools.repeat(None)


class DataLoader:
    """Iterates over the batches of a data set.

    Arguments are PyTorch's. pin_memory is accepted: the CPU can use all memory as it is. Raises ValueError for options that exclude
    each other or are out of range.
    """

    def __init__(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None, pin_memory=False,
                 drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None, generator=None, *, prefetch_factor=2,
                 persistent_workers=False, pin_memory_device=""):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor != 2:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing."
                             "let num_workers > 0 to enable multiprocessing.")
        if prefetch_factor <= 0:
            raise ValueError("prefetch_factor option should be positive")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset, self.num_workers, self.prefetch_factor = dataset, num_workers, prefetch_factor
        self.pin_memory, self.pin_memory_device, self.timeout = pin_memory, pin_memory_device, timeout
        self.worker_init_fn, self.multiprocessing_context = worker_init_fn, multiprocessing_context
        self.generator, self.persistent_workers = generator, persistent_workers
        self._kind = "iterable" if isinstance(dataset, IterableDataset) else "map"
        if self._kind == "iterable":
            if shuffle:
                raise ValueError(f"DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle={shuffle}")
            if sampler is not None:
                raise ValueError(f"DataLoader with IterableDataset: expected unspecified sampler option, but got sampler={sampler}")
            if batch_sampler is not None:
                raise ValueError(f"DataLoader with IterableDataset: expected unspecified batch_sampler option, but got batch_sampler={batch_sampler}")
        shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._kind == "iterable":
                sampler = _Endless()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last, self.sampler, self.batch_sampler = batch_size, drop_last, sampler, batch_sampler
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self._workers = None

    @property
    def _index_sampler(self):
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self):
        if self.num_workers == 0:
            return _Here(self)
        if not self.persistent_workers:
            return _Workers(self)
        if self._workers is None:
            self._workers = _Workers(self)
        else:
            self._workers.restart()
        return self._workers

    def __len__(self):
        if self._kind == "iterable":
            n = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self._index_sampler)


def _draw_base_seed(loader):
    return int(torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item())


class _Here:
    """Batches made in this process."""

    def __init__(self, loader):
        self._indices = iter(loader._index_sampler)
        self._length = loader.__len__
        _draw_base_seed(loader)  # nobody needs it here, but the stream goes on as with workers
        self._fetch = make_fetcher(loader.dataset, loader._kind, loader.collate_fn, loader.drop_last)

    def __iter__(self):
        return self

    def __len__(self):
        return self._length()

    def __next__(self):
        return self._fetch(next(self._indices))


class _Workers:
    """Batches made in worker processes."""

    def __init__(self, loader):
        import multiprocessing

        self._loader = loader
        self._alive = False
        context = loader.multiprocessing_context
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context or ("fork" if "fork" in multiprocessing.get_all_start_methods() else None))
        self._indices = iter(loader._index_sampler)
        base_seed = _draw_base_seed(loader)
        from msadapter.pytorch.utils.data import _worker

        self._processes, self._pipes = [], []
        for k in range(loader.num_workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_start, args=(_worker.run, ours, theirs, loader.dataset, loader._kind, loader.collate_fn,
                                                           loader.drop_last, k, loader.num_workers, base_seed, loader.worker_init_fn),
                                      daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._pipes.append(ours)
        self._alive = True
        self._begin()

    def restart(self):
        """One more pass with the same workers."""
        self._drain()
        self._indices = iter(self._loader._index_sampler)
        base_seed = _draw_base_seed(self._loader)
        for pipe in self._pipes:
            pipe.send(("again", base_seed))
        self._begin()

    def _begin(self):
        n = len(self._pipes)
        self._waiting = [0] * n       # requests that worker k has not answered yet
        self._exhausted = [False] * n  # its iterable data set has ended
        self._turn = 0
        self._asked_all = False
        for _ in range(self._loader.prefetch_factor):
            for k in range(n):
                self._ask(k)

    def _ask(self, k):
        if self._asked_all or self._exhausted[k]:
            return
        try:
            request = next(self._indices)
        except StopIteration:
            self._asked_all = True
            return
        try:
            self._pipes[k].send(("fetch", request))
        except (BrokenPipeError, ConnectionResetError):
            self._fail(k)
        self._waiting[k] += 1

    def _drain(self):
        for k, pipe in enumerate(self._pipes):
            while self._waiting[k]:
                pipe.recv()
                self._waiting[k] -= 1

    def _fail(self, k):
        import signal

        process = self._processes[k]
        process.join(1)
        code = process.exitcode
        self.close()
        if code is not None and code < 0:
            raise RuntimeError(f"DataLoader worker (pid {process.pid}) is killed by signal: {signal.strsignal(-code)}. ")
        raise RuntimeError(f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly")

    def _receive(self, k):
        timeout = self._loader.timeout
        try:
            if timeout and not self._pipes[k].poll(timeout):
                self.close()
                raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
            return self._pipes[k].recv()
        except (EOFError, OSError):  # a file that never comes, too, when batches travel as shared memory
            self._fail(k)

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader)

    def __next__(self):
        n = len(self._pipes)
        for _ in range(2 * n * (self._loader.prefetch_factor + 1)):
            k = self._turn
            self._turn = (self._turn + 1) % n
            if not self._waiting[k]:
                if any(self._waiting):
                    continue
                break
            answer = self._receive(k)
            self._waiting[k] -= 1
            if isinstance(answer, EndOfSamples):
                self._exhausted[k] = True
                continue
            self._ask(k)
            if isinstance(answer, ExceptionWrapper):
                if not self._loader.persistent_workers:
                    self.close()
                answer.reraise()
            return answer
        if not self._loader.persistent_workers:
            self.close()
        raise StopIteration

    def close(self):
        """End the workers."""
        if not self._alive:
            return
        self._alive = False
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(0.2)
            if process.is_alive():
                process.terminate()
                process.join()
        self._waiting = [0] * len(self._pipes)

    def __del__(self):
        try:
            self.close()
        except Exception:  # the interpreter may be half gone
            return


def _start(run, ours, theirs, *args):
    """In the new process: without the main process's end of the pipe, so that its closing is seen."""
    ours.close()
    run(theirs, *args)


__all__ = ["DataLoader", "get_worker_info"]
