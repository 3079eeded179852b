"""How tensors and storages are pickled for other processes: as handles of shared memory."""

import multiprocessing.reduction
import multiprocessing.util
import os
from multiprocessing.reduction import ForkingPickler

try:
    import multiprocessing.resource_sharer  # noqa: F401  # before any fork: a child must not inherit it half made
except ImportError:
    pass

from msadapter import _C
from msadapter import pytorch as torch
from msadapter.pytorch import Tensor, nn


# The classes themselves are not pickled: by their names, torch.Tensor and so on, the receiver might find those of another package.


def rebuild_tensor(is_parameter, storage, metadata):
    """A tensor or parameter over `storage`, a TypedStorage; metadata is (offset, size, stride, requires_grad)."""
    offset, size, stride, requires_grad = metadata
    tensor = torch.empty(0, dtype=storage.dtype).set_(storage, offset, size, stride)
    if is_parameter:
        return nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)


def reduce_tensor(tensor):
    """The pickle of a tensor, whose memory becomes shared. RuntimeError for one that is no leaf and requires a gradient."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
                           "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it "
                           "on the queue).")
    tensor.share_memory_()  # before anybody has a storage object: then the old memory goes at once
    metadata = (tensor.storage_offset(), tuple(tensor.size()), tensor.stride(), tensor.requires_grad)
    return rebuild_tensor, (type(tensor) is nn.Parameter, tensor.storage(), metadata)


def rebuild_storage_fd(descriptor, size):
    """The UntypedStorage of `size` bytes behind a descriptor that is still the sender's."""
    own = descriptor.detach()
    try:
        return _C.UntypedStorage._new_shared_fd_cpu(own, size)
    finally:
        os.close(own)


def rebuild_storage_filename(manager, name, size):
    """The UntypedStorage of `size` bytes that has this name; the message's reference becomes its own."""
    return _C.UntypedStorage._new_shared_filename_cpu(manager, name, size)


def rebuild_storage_empty():
    """An empty storage."""
    return _C.UntypedStorage(0)


def rebuild_typed_storage(storage, dtype):
    """A TypedStorage over an UntypedStorage."""
    return _C.TypedStorage(wrap_storage=storage, dtype=dtype)


def reduce_typed_storage(storage):
    """The pickle of a TypedStorage."""
    return rebuild_typed_storage, (storage.untyped(), storage.dtype)


def reduce_storage(storage):
    """The pickle of an UntypedStorage, which becomes shared."""
    from msadapter.pytorch.multiprocessing import get_sharing_strategy

    if storage.size() == 0:
        return rebuild_storage_empty, ()
    if get_sharing_strategy() == "file_system":
        handle = storage._share_filename_cpu_()
        storage._shared_incref()
        return rebuild_storage_filename, handle
    descriptor, size = storage._share_fd_cpu_()
    return rebuild_storage_fd, (multiprocessing.reduction.DupFd(descriptor), size)


class _Leaving:
    """Gives up this process's references by name when it ends."""

    def __init__(self):
        self.register()
        multiprocessing.util.register_after_fork(self, _Leaving.register)  # a child begins without finalizers

    def register(self):
        multiprocessing.util.Finalize(None, _C._leave_shared_memory, exitpriority=-100)


def init_reductions():
    """Register all of this."""
    global _leaving
    _leaving = _Leaving()
    ForkingPickler.register(_C.UntypedStorage, reduce_storage)
    ForkingPickler.register(_C.TypedStorage, reduce_typed_storage)
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(nn.Parameter, reduce_tensor)
