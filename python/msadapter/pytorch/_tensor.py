"""The tensor class of torch: the extension's type, and the methods that are better written in Python."""

from msadapter import _C
from msadapter.pytorch import _absent, functional


class Tensor(_C.TensorBase):
    """A multi-dimensional array of one element type that can record what is computed from it."""

    __module__ = "torch"

    def __reversed__(self):
        """The elements of the first dimension in reverse order."""
        return self if self.dim() == 0 else self.flip(0)

    def __dir__(self):
        return sorted(set(dir(type(self))) | set(self.__dict__))

    def adjoint(self):
        """The conjugate transpose of the last two dimensions, a view. Raises RuntimeError for 1-D tensors."""
        return self.mH

    __rdiv__ = _C.TensorBase.__rtruediv__

    def where(self, condition, other):
        """The elements of self where condition holds, those of `other` elsewhere."""
        return _C._ops.where(condition, self, other)

    def norm(self, p="fro", dim=None, keepdim=False, dtype=None):
        """torch.norm() of this tensor."""
        return functional.norm(self, p, dim, keepdim, dtype=dtype)

    def ravel(self):
        """The elements in one dimension; a view where that is possible."""
        return self.contiguous().view(-1)

    def unflatten(self, dim, sizes):
        """Dimension `dim` as several ones of these sizes, one of which may be -1. A view; RuntimeError when they do not fit."""
        dim = dim + self.dim() if dim < 0 else dim
        if not 0 <= dim < self.dim():
            raise IndexError(f"Dimension out of range (expected to be in range of [{-self.dim()}, {self.dim() - 1}], but got {dim})")
        sizes = tuple(sizes)
        if not sizes:
            raise RuntimeError("unflatten: sizes must be non-empty")
        return self.view(self.shape[:dim] + sizes + self.shape[dim + 1:])

    def unsafe_chunk(self, chunks, dim=0):
        """chunk()."""
        return self.chunk(chunks, dim)

    def split(self, split_size, dim=0):
        """Views along dim: of one size (an int; the last may be shorter) or of the sizes in a list."""
        return functional.split(self, split_size, dim)

    def unsafe_split(self, split_size, dim=0):
        """split()."""
        return self.split(split_size, dim)

    def storage_type(self):
        """The class of this tensor's storage."""
        return type(self.storage())

    def record_stream(self, stream):
        """Nothing to do: the CPU's memory is never in use by a stream."""

    def ipu(self, device=None, non_blocking=False, memory_format=None):
        """The CPU stands for the device."""
        return self.to("ipu" if device is None else device, non_blocking=non_blocking, memory_format=memory_format)

    def xpu(self, device=None, non_blocking=False, memory_format=None):
        """The CPU stands for the device."""
        return self.to("xpu" if device is None else device, non_blocking=non_blocking, memory_format=memory_format)


def as_method(function):
    """The function with its first parameter named self, as methods have it in help() and in inspect.signature()."""
    code = function.__code__
    first = code.co_varnames[0]
    renamed = [tuple("self" if name == first else name for name in names) for names in (code.co_varnames, code.co_cellvars)]
    code = code.replace(co_varnames=renamed[0], co_cellvars=renamed[1])
    method = type(function)(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    method.__kwdefaults__, method.__doc__, method.__qualname__ = function.__kwdefaults__, function.__doc__, f"Tensor.{function.__name__}"
    return method


for _name, _method in _absent.each(_absent.METHODS, "Tensor."):
    setattr(Tensor, _name, _method)
del _name, _method
