"""torch.utils.dlpack: tensors that share memory with other libraries through DLPack capsules."""

from msadapter import _C

__all__ = ["from_dlpack", "to_dlpack"]



def to_dlpack(tensor):
    """A DLPack capsule over the tensor's memory, which one library may take over."""
    return _C.to_dlpack(tensor)


def from_dlpack(ext_tensor):
    """A tensor over the memory of an object with __dlpack__, or of a capsule that nobody has taken over. RuntimeError for other devices."""
    return _C.from_dlpack(ext_tensor)
