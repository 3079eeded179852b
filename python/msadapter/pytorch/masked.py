"""Reductions and normalisations that leave masked-out elements aside: `torch.masked`.

A mask is a bool tensor that broadcasts to the input; True keeps an element. A masked-out element takes part as the identity of the
operation (0 for a sum, -inf for a maximum), so every function is the ordinary operator on a filled input. Where all elements of a
slice are masked out, the result is that identity, and nan for mean, median, variance and softmax, which have none.
"""

import msadapter.pytorch as torch

__all__ = ["amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm",
           "normalize", "prod", "softmax", "softmin", "std", "sum", "var"]


def _lowest(dtype):
    return -torch.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def _highest(dtype):
    return torch.inf if dtype.is_floating_point else torch.iinfo(dtype).max


def _mask_of(input, mask):
    """`mask` as a bool tensor of the input's shape."""
    if mask.ndim > input.ndim:
        raise IndexError("torch.masked: expected a mask that broadcasts to the input, "
                         f"got {mask.ndim} dimensions for an input of {input.ndim}")
    return torch.broadcast_to(mask, input.shape).to(dtype=torch.bool)


def _filled(input, mask, identity):
    """`input` with `identity` (a number, or a function of the dtype) where `mask` is False."""
    if mask is None:
        return input
    value = identity(input.dtype) if callable(identity) else identity
    return torch.where(_mask_of(input, mask), input, torch.tensor(value, dtype=input.dtype, device=input.device))


def _dimensions(dim, ndim):
    """`dim` (None, an int, or several) as a sorted tuple of non-negative ints; None and () stand for all."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    found = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
        if d % ndim in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d % ndim)
    return tuple(sorted(found))


def _sum_type(input, dtype):
    """The type of a sum or product: `dtype`, else int64 for integers, else the input's."""
    if dtype is not None:
        return dtype
    return input.dtype if input.is_floating_point() or input.is_complex() else torch.int64


def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Sums over `dim` (None: all dimensions) of the elements that `mask` keeps; 0 where it keeps none. Integers sum as int64."""
    return torch.sum(_filled(input, mask, 0), _dimensions(dim, input.ndim), bool(keepdim), dtype=_sum_type(input, dtype))


def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Products over `dim` (None: all dimensions) of the elements that `mask` keeps; 1 where it keeps none."""
    result = _filled(input, mask, 1).to(dtype=_sum_type(input, dtype))
    for d in reversed(_dimensions(dim, input.ndim)):
        result = result.prod(dim=d, keepdim=bool(keepdim))
    return result


def cumsum(input, dim, *, dtype=None, mask=None):
    """Running sums along `dim`; masked-out elements add nothing."""
    return torch.cumsum(_filled(input, mask, 0), _dimensions(dim, input.ndim)[0], dtype=dtype or input.dtype)


def cumprod(input, dim, *, dtype=None, mask=None):
    """Running products along `dim`; masked-out elements multiply by 1."""
    return torch.cumprod(_filled(input, mask, 1), _dimensions(dim, input.ndim)[0], dtype=dtype or input.dtype)


def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Largest kept elements over `dim`; the lowest value of the dtype where none is kept."""
    return torch.amax(_filled(input, mask, _lowest), _dimensions(dim, input.ndim), bool(keepdim)).to(dtype=dtype or input.dtype)


def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Smallest kept elements over `dim`; the highest value of the dtype where none is kept."""
    return torch.amin(_filled(input, mask, _highest), _dimensions(dim, input.ndim), bool(keepdim)).to(dtype=dtype or input.dtype)


def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Places of the largest kept elements along `dim` (None: in the flattened input), in the input's dtype unless `dtype` is given."""
    return torch.argmax(_filled(input, mask, _lowest), dim, bool(keepdim)).to(dtype=dtype or input.dtype)


def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Places of the smallest kept elements along `dim` (None: in the flattened input), in the input's dtype unless `dtype` is given."""
    return torch.argmin(_filled(input, mask, _highest), dim, bool(keepdim)).to(dtype=dtype or input.dtype)


def _count(input, dim, keepdim, mask):
    """How many elements are kept over `dim`, as int64."""
    return sum(torch.ones(input.shape, dtype=torch.int64, device=input.device), dim, keepdim=keepdim, mask=mask)


def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Means over `dim` of the elements that `mask` keeps; nan where it keeps none."""
    return sum(input, dim, keepdim=keepdim, dtype=dtype or input.dtype, mask=mask) / _count(input, dim, keepdim, mask)


def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    """Medians along `dim` of the kept elements, the lower one of two; nan where none is kept.

    Raises ValueError for integers where a row is masked out completely.
    """
    floats = input.is_floating_point()
    values = input if floats else input.to(dtype=torch.float32)
    found = torch.nanmedian(_filled(values, mask, torch.nan), _dimensions(dim, input.ndim)[0], keepdim).values
    if floats:
        return found
    if torch.isnan(found).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype=dtype or input.dtype)


def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Logarithms of the summed exponentials over `dim` of the kept elements; -inf where none is kept."""
    return torch.logsumexp(_filled(input, mask, _lowest), _dimensions(dim, input.ndim), keepdim=keepdim).to(dtype=dtype or input.dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """log(exp(input) + exp(other)) by elements; a masked-out element counts as -inf."""
    return torch.logaddexp(_filled(input, input_mask, _lowest), _filled(other, other_mask, _lowest)).to(dtype=dtype or input.dtype)


def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    """Vector norms of order `ord` over `dim` of the kept elements; 0 where none is kept, inf for ord=-inf."""
    identity = torch.inf if ord == -torch.inf else 0
    return torch.linalg.vector_norm(_filled(input, mask, identity), ord, _dimensions(dim, input.ndim), bool(keepdim), dtype=dtype or input.dtype)


def var(input, dim=None, unbiased=False, *, keepdim=False, dtype=None, mask=None):
    """Variances over `dim` of the kept elements, divided by their number, or by one less if `unbiased`; integers give float32."""
    if dtype is None:
        dtype = input.dtype if input.is_floating_point() or input.is_complex() else torch.float32
    computing = dtype if dtype.is_floating_point or dtype.is_complex else torch.float32
    count = _count(input, dim, True, mask)
    centred = input - sum(input, dim, keepdim=True, dtype=dtype, mask=mask) / count
    total = sum(centred * centred.conj(), dim, keepdim=keepdim, dtype=computing, mask=mask)
    count = count.reshape(total.shape)
    if unbiased:
        count = (count - 1).clamp(min=0)
    return (total / count).to(dtype=dtype)


def std(input, dim=None, unbiased=False, *, keepdim=False, dtype=None, mask=None):
    """Standard deviations over `dim` of the kept elements: the square roots of var()."""
    return torch.sqrt(var(input, dim, unbiased, keepdim=keepdim, dtype=dtype, mask=mask))


def softmax(input, dim, *, dtype=None, mask=None):
    """Softmax along `dim` over the kept elements; masked-out elements get 0, rows without kept elements nan."""
    return torch.nn.functional.softmax(_filled(input, mask, _lowest), _dimensions(dim, input.ndim)[0], dtype=dtype or input.dtype)


def log_softmax(input, dim, *, dtype=None, mask=None):
    """Logarithms of softmax() along `dim`; masked-out elements get -inf."""
    return torch.nn.functional.log_softmax(_filled(input, mask, _lowest), _dimensions(dim, input.ndim)[0], dtype=dtype or input.dtype)


def softmin(input, dim, *, dtype=None, mask=None):
    """Softmax of the negated kept elements along `dim`; masked-out elements get 0."""
    return torch.nn.functional.softmin(_filled(input, mask, _highest), _dimensions(dim, input.ndim)[0], dtype=dtype or input.dtype)


def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    """The kept elements over their norm of order `ord` along `dim`, which counts as `eps` where it is smaller; masked-out ones are 0."""
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled(input, mask, 0) / torch.maximum(length, length.new_full([], eps))
