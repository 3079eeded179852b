"""What functions of several results share: named tuples, and results written to out=."""

from msadapter import _C
from msadapter.pytorch._composed import _given, _into

given = _given
_types = {}


def _shown(self):
    """As torch.return_types are printed: a field a line."""
    fields = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self))
    return f"torch.return_types.{type(self).__name__}(\n{fields})"


def named(name, fields, values, out=None):
    """The values as a named tuple, as torch.return_types has them; written to the tensors in `out` where there are some."""
    kind = _types.get(name)
    if kind is None:
        from collections import namedtuple

        kind = _types[name] = namedtuple(name, fields, module="torch.return_types")
        kind.__repr__ = _shown
    if out is not None:
        values = [_into(o, v) for o, v in zip(out, values)]
    return kind(*values)


def adjoint(t):
    """The conjugate transpose of matrices (..., m, n)."""
    t = t.transpose(-2, -1)
    return t.conj() if t.is_complex() else t


def need_matrix(name, t, what="A"):
    """Raises RuntimeError unless t has two dimensions or more."""
    if t.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor {what} must have at least 2 dimensions.")


def need_square(name, t, what="A"):
    """Raises RuntimeError unless t is (..., n, n)."""
    need_matrix(name, t, what)
    if t.size(-1) != t.size(-2):
        raise RuntimeError(f"{name}: {what} must be batches of square matrices, but they are {t.size(-2)} by {t.size(-1)} matrices")


def need_inexact(name, t):
    """Raises RuntimeError for integers."""
    if not (t.is_floating_point() or t.is_complex()):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {t.dtype}")


def values_of(value, source):
    """`value` where it hangs on `source`, of a shape that broadcasts to its own, by a gradient of zeros."""
    return _C._ops.where(_C._ops.zeros([], dtype=_C.bool), source, value)
