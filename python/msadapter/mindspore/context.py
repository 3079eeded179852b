"""The execution context: set_context and get_context."""

GRAPH_MODE, PYNATIVE_MODE = 0, 1

_DEFAULTS = {"mode": PYNATIVE_MODE, "device_target": "CPU", "device_id": 0}
_DEVICE_TARGETS = ("CPU", "GPU", "Ascend")

_context = dict(_DEFAULTS)


def set_context(**settings):
    """Change settings by keyword: mode, device_target, device_id.

    Raises ValueError for an unknown setting or value, and NotImplementedError for what this engine does not do yet.
    """
    for name, value in settings.items():
        if name not in _DEFAULTS:
            raise ValueError(f"set_context: unknown setting '{name}', expected one of {', '.join(_DEFAULTS)}")
        if name == "mode":
            if value not in (GRAPH_MODE, PYNATIVE_MODE):
                raise ValueError(f"set_context: argument 'mode' should be GRAPH_MODE (0) or PYNATIVE_MODE (1), but got {value}")
            if value == GRAPH_MODE:
                raise NotImplementedError("set_context: argument 'mode'=GRAPH_MODE is not implemented; use PYNATIVE_MODE")
        if name == "device_target":
            if value not in _DEVICE_TARGETS:
                raise ValueError(f"set_context: argument 'device_target' should be one of {_DEVICE_TARGETS}, but got {value!r}")
            if value != "CPU":
                raise NotImplementedError(f"set_context: argument 'device_target'={value!r} is not implemented; use 'CPU'")
        if name == "device_id" and (not isinstance(value, int) or value != 0):
            raise ValueError(f"set_context: argument 'device_id' should be 0 on this machine, but got {value!r}")
    _context.update(settings)


def get_context(name):
    """The value of a setting. Raises ValueError when there is none of that name."""
    if name not in _context:
        raise ValueError(f"get_context: unknown setting '{name}', expected one of {', '.join(_context)}")
    return _context[name]


def reset():
    """Back to the defaults."""
    _context.update(_DEFAULTS)
