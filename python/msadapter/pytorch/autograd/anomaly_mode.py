"""Looking for anomalies: where a gradient became nan, and which operation of forward a failing backward belongs to."""

import traceback
import warnings

from msadapter import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]

_state = (False, True)  # enabled, checking for nan


def is_anomaly_enabled():
    """Whether anomalies are looked for."""
    return _state[0]


def is_anomaly_check_nan_enabled():
    """Whether nan counts as one."""
    return _state[1]


def _note():
    return "".join(traceback.format_stack()[:-1])


def _report(name, trace):
    if trace is None:
        warnings.warn(f"Error detected in {name}. No forward pass information available. Enable detect anomaly during forward pass for more information.")
    else:
        warnings.warn(f"Error detected in {name}. Traceback of forward call that caused the error:\n{trace}")


def _set(mode, check_nan):
    global _state
    before, _state = _state, (bool(mode), bool(check_nan))
    _C._set_anomaly_watch(*_state, _note, _report)
    return before


class set_detect_anomaly:
    """Turns the search on or off: a function, and a context that puts back what was. check_nan: whether nan gradients are errors."""

    def __init__(self, mode, check_nan=True):
        self._before = _set(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *args):
        _set(*self._before)


class detect_anomaly(set_detect_anomaly):
    """A context in which each operation notes where it was called, and backward raises RuntimeError where a gradient becomes nan. Slow."""

    def __init__(self, check_nan=True):
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.", stacklevel=2)
        self._asked = True, check_nan

    def __enter__(self):
        self._before = _set(*self._asked)
