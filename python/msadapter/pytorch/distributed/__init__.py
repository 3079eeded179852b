"""torch.distributed: processes that work together, on CPUs, connected by TCP (the backend "gloo")."""

from enum import Enum

from msadapter.pytorch.distributed.distributed_c10d import *  # noqa: F401, F403
from msadapter.pytorch.distributed.distributed_c10d import set_debug_level_from_env
from msadapter.pytorch.distributed.rendezvous import register_rendezvous_handler, rendezvous  # noqa: F401
from msadapter.pytorch.distributed.store import FileStore, HashStore, PrefixStore, Store, TCPStore  # noqa: F401


def is_available():
    """True."""
    return True


class BuiltinCommHookType(Enum):
    """Ways of averaging gradients that DistributedDataParallel knows itself."""

    ALLREDUCE, FP16_COMPRESS = 1, 2


class GradBucket:
    """Gradients that DistributedDataParallel averages together, as its communication hooks see them."""

    def __init__(self, index, buffer, parameters, is_last):
        self._index, self._buffer, self._parameters, self._is_last = index, buffer, parameters, is_last

    def index(self):
        """Which bucket of the backward pass it is."""
        return self._index

    def buffer(self):
        """All gradients in one dimension."""
        return self._buffer

    def set_buffer(self, buffer):
        """Replace buffer()."""
        self._buffer = buffer

    def parameters(self):
        """The parameters whose gradients these are."""
        return list(self._parameters)

    def gradients(self):
        """The gradients, views of buffer()."""
        parts = self._buffer.split([parameter.numel() for parameter in self._parameters])
        return [part.view(parameter.shape) for part, parameter in zip(parts, self._parameters)]

    def is_last(self):
        """Whether it is the last bucket of the backward pass."""
        return self._is_last


set_debug_level_from_env()
