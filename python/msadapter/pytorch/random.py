"""The default generator under torch's names."""

import contextlib

from msadapter import _C

default_generator = _C.default_generator


def manual_seed(seed):
    """Seed the default generator; returns it."""
    return default_generator.manual_seed(int(seed))


def seed():
    """Seed the default generator from the system; returns the seed."""
    return default_generator.seed()


def initial_seed():
    """What the default generator was seeded with."""
    return default_generator.initial_seed()


def get_rng_state():
    """The state of the default generator as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state):
    """Set the state of the default generator."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices"):
    """The default generator's state is the same after the block as before it. The last two name the caller in PyTorch's warnings about GPUs."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
