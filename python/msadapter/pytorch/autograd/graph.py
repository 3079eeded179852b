"""The graph's nodes, and what is done with the tensors that they save."""

from msadapter import _C
from msadapter._C import Node

__all__ = ["Node", "saved_tensors_hooks", "save_on_cpu"]


class saved_tensors_hooks:
    """A context in which tensors that are saved for backward go through pack_hook, and through unpack_hook when they are used.

    pack_hook(tensor) may return anything; unpack_hook(that) returns a tensor of the same values. Neither may change its argument in place. Inner
    contexts go before outer ones.
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args):
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """A context in which saved tensors wait for backward in memory of the CPU, as copies that later writes do not reach."""

    def __init__(self, pin_memory=False):
        def pack(tensor):
            return tensor.device, tensor.cpu() if tensor.device.type != "cpu" else tensor.clone()

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)
