"""Starting several processes on one function, and learning how they ended."""

import multiprocessing
import multiprocessing.connection
import signal
import sys
import warnings

from msadapter._C import _prctl_pr_set_pdeathsig


class ProcessException(Exception):
    """A process failed: which one (error_index), and its pid."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised; the message holds the traceback."""

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """The process ended by a signal, or with an exit code other than 0."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(function, index, args, errors):
    _prctl_pr_set_pdeathsig(signal.SIGINT)  # a parent that is killed takes its processes along
    try:
        function(index, *args)
    except KeyboardInterrupt:
        return  # the parent was interrupted or is gone: it has nothing to be told
    except Exception:
        import traceback

        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes, error_queues):
        self.processes, self.error_queues = processes, error_queues
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self):
        """The processes' ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None):
        """Wait up to `timeout` seconds (None: forever) for some process to end. Whether all have ended.

        When one has failed, the others are terminated: ProcessRaisedException with its traceback, or ProcessExitedException.
        """
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout) if self.sentinels else ():
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                self._fail(index)
        return not self.sentinels

    def _fail(self, index):
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()
        failed, errors = self.processes[index], self.error_queues[index]
        if not errors.empty():
            raise ProcessRaisedException(f"\n\n-- Process {index} terminated with the following error:\n{errors.get()}", index, failed.pid)
        code = failed.exitcode
        name = signal.Signals(-code).name if code < 0 else None
        how = f"signal {name}" if name else f"exit code {code}"
        raise ProcessExitedException(f"process {index} terminated with {how}", error_index=index, error_pid=failed.pid, exit_code=code, signal_name=name)


class SpawnContext(ProcessContext):
    """The former name of ProcessContext."""

    def __init__(self, processes, error_queues):
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.")
        super().__init__(processes, error_queues)


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run fn(i, *args) in nprocs processes made by a start method; wait for them, or return their ProcessContext when join is False."""
    context = multiprocessing.get_context(start_method)
    processes, error_queues = [], []
    for index in range(nprocs):
        errors = context.SimpleQueue()
        process = context.Process(target=_run, args=(fn, index, args, errors), daemon=daemon)
        process.start()
        processes.append(process)
        error_queues.append(errors)
    started = ProcessContext(processes, error_queues)
    if not join:
        return started
    while not started.join():
        continue
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """start_processes() with new interpreters: fn has to be importable by name. Another start_method is warned of and not used."""
    if start_method != "spawn":
        warnings.warn(f"This method only supports start_method=spawn (got: {start_method}).\n"
                      "To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)")
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
