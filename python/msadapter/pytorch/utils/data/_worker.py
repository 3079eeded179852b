"""What happens in a loader's worker process, and how its answers travel."""

import sys

_info = None


class WorkerInfo:
    """Which worker this is: id, num_workers, seed, dataset."""

    def __init__(self, id, num_workers, seed, dataset):
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


def get_worker_info():
    """The WorkerInfo of this process, None in the main process."""
    return _info


class ExceptionWrapper:
    """An exception of a worker on its way to the main process: its class and its traceback as text."""

    def __init__(self, where):
        import traceback

        kind, value, trace = sys.exc_info()
        self.kind, self.where = kind, where
        self.text = "".join(traceback.format_exception(kind, value, trace))

    def reraise(self):
        """Raise it here, in the same class where that can be made from a text."""
        message = f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            message = _KeyErrorText(message)
        try:
            error = self.kind(message)
        except TypeError:
            raise RuntimeError(message) from None
        raise error


class _KeyErrorText(str):
    """A KeyError shows the repr of its argument; this one's is readable."""

    def __repr__(self):
        return str(self)


class EndOfSamples:
    """The answer of a worker whose iterable data set is exhausted."""


def _seed(base_seed, worker_id):
    import random

    from msadapter import pytorch as torch

    seed = base_seed + worker_id
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        words = numpy.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4)
        numpy.random.seed(words)
    return seed


def run(connection, dataset, kind, collate, drop_last, worker_id, num_workers, base_seed, init):
    """Answers requests until the pipe closes. A request is a list of indices, a single one, or a seed to start anew with."""
    global _info
    from msadapter import pytorch as torch

    torch.set_num_threads(1)
    try:
        _info = WorkerInfo(worker_id, num_workers, _seed(base_seed, worker_id), dataset)
        failure = None
        if init is not None:
            init(worker_id)
    except BaseException:
        failure = ExceptionWrapper(f"in DataLoader worker process {worker_id}")
    from msadapter.pytorch.utils.data._fetch import make_fetcher

    fetch = None
    try:
        while True:
            try:
                command, argument = connection.recv()
            except (EOFError, OSError):
                return
            if command == "again":
                _info.seed = _seed(argument, worker_id)
                fetch = None
                continue
            answer = failure
            if answer is None:
                try:
                    if fetch is None:
                        fetch = make_fetcher(dataset, kind, collate, drop_last)
                    answer = fetch(argument)
                except StopIteration:
                    answer = EndOfSamples()
                except BaseException:
                    answer = ExceptionWrapper(f"in DataLoader worker process {worker_id}")
            failure = None
            try:
                connection.send(answer)
            except (BrokenPipeError, ConnectionResetError):
                return
            except BaseException:
                connection.send(ExceptionWrapper(f"in DataLoader worker process {worker_id}"))
    except KeyboardInterrupt:
        return
