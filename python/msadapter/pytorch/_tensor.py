"""The tensor class of torch: the extension's type, and the methods that are better written in Python."""

from msadapter import _C


class Tensor(_C.TensorBase):
    """A multi-dimensional array of one element type that can record what is computed from it."""

    __module__ = "torch"

    def __reversed__(self):
        """The elements of the first dimension in reverse order."""
        return self if self.dim() == 0 else self.flip(0)

    def __dir__(self):
        return sorted(set(dir(type(self))) | set(self.__dict__))
