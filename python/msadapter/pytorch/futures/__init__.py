"""torch.futures: results that may come later."""

import threading

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value, or an exception, that somebody sets once; callbacks run when it is there."""

    def __init__(self, *, devices=None):
        if devices:
            raise ValueError("Future: argument 'devices' must be empty: the CPU needs none")
        self._ready, self._lock = threading.Event(), threading.Lock()
        self._value = self._exception = None
        self._callbacks = []

    def _finish(self, value, exception):
        with self._lock:
            if self._ready.is_set():
                raise RuntimeError("Future can only be set once.")
            self._value, self._exception = value, exception
            self._ready.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def done(self):
        """Whether the value or exception is there."""
        return self._ready.is_set()

    def wait(self):
        """The value, once it is there; raises the exception."""
        self._ready.wait()
        if self._exception is not None:
            raise self._exception
        return self._value

    def value(self):
        """The value; RuntimeError while it is not there."""
        if not self.done():
            raise RuntimeError("Future.value(): the future has not been completed yet")
        return self.wait()

    def set_result(self, result):
        """Set the value."""
        self._finish(result, None)

    def set_exception(self, result):
        """Set the exception. AssertionError for what is none."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def add_done_callback(self, callback):
        """Run callback(self) when the value is there; at once if it is."""
        with self._lock:
            if not self._ready.is_set():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback):
        """A future of callback(self), run when the value is there."""
        following = Future()

        def run(future):
            try:
                result = callback(future)
            except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
                following.set_exception(error)
            else:
                following.set_result(result)

        self.add_done_callback(run)
        return following


def _run(func, args, kwargs):
    """A finished future of a call."""
    future = Future()
    try:
        result = func(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
        future.set_exception(error)
    else:
        future.set_result(result)
    return future


def collect_all(futures):
    """A future of the list of futures, finished when all of them are."""
    futures = list(futures)
    together, left, lock = Future(), [len(futures)], threading.Lock()

    def count(_):
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            together.set_result(futures)

    if not futures:
        together.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    return together


def wait_all(futures):
    """The values of all futures; raises the first exception."""
    return [future.wait() for future in collect_all(futures).wait()]
