"""Functions of torch that are made of other operators: windows of signals, writing into parts of a copy, counting."""

import math

from msadapter import _C

_ops = _C._ops

__all__ = ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "masked_scatter", "select_scatter", "slice_scatter",
           "diagonal_scatter", "narrow_copy", "renorm", "histc", "cumulative_trapezoid"]
TENSOR_METHODS = ["masked_scatter", "select_scatter", "slice_scatter", "diagonal_scatter", "narrow_copy", "renorm", "histc"]


def _window(name, length, periodic, formula, dtype, layout, device, requires_grad):
    """formula of the positions k in [0, 1) (periodic) or [0, 1] of a window."""
    dtype = _C.get_default_dtype() if dtype is None else dtype
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    window = _ops.ones([length], dtype=dtype, layout=layout, device=device)
    if length > 1:
        steps = length if periodic else length - 1
        window = formula(_ops.arange(length, dtype=_C.float64) / steps).to(dtype)
    return window.requires_grad_(requires_grad)


def hann_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False):
    """sin^2 from 0 to pi: (window_length)."""
    return _window("hann_window", window_length, periodic, lambda k: 0.5 - 0.5 * (2 * math.pi * k).cos(), dtype, layout, device, requires_grad)


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, layout=None, device=None, requires_grad=False):
    """alpha - beta cos from 0 to 2 pi: (window_length)."""
    return _window("hamming_window", window_length, periodic, lambda k: alpha - beta * (2 * math.pi * k).cos(), dtype, layout, device, requires_grad)


def blackman_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False):
    """Blackman's window: (window_length)."""
    return _window("blackman_window", window_length, periodic,
                   lambda k: 0.42 - 0.5 * (2 * math.pi * k).cos() + 0.08 * (4 * math.pi * k).cos(), dtype, layout, device, requires_grad)


def bartlett_window(window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False):
    """A triangle: (window_length)."""
    return _window("bartlett_window", window_length, periodic, lambda k: 1 - (2 * k - 1).abs(), dtype, layout, device, requires_grad)


def masked_scatter(input, mask, source):
    """A copy of input with the elements of source, in order, where mask holds."""
    if mask.dtype is not _C.bool:
        raise RuntimeError(f"masked_scatter: expected BoolTensor for mask, got {mask.dtype}")
    if source.dtype is not input.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes")
    from msadapter.pytorch.functional import broadcast_tensors

    input, mask = broadcast_tensors(input, mask)
    flat = mask.reshape(-1)
    count = int(flat.sum())
    if count > source.numel():
        raise RuntimeError("Number of elements of source < number of ones in mask")
    positions = _ops.argwhere(flat).reshape(-1)
    return _ops.index_copy(input.reshape(-1), 0, positions, source.reshape(-1)[:count]).reshape(input.shape)


def _scattered(input, src, part):
    copy = input.clone()
    view = part(copy)
    if view.shape != src.shape:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(view.shape)}")
    view.copy_(src)
    return copy


def select_scatter(input, src, dim, index):
    """A copy of input with src at `index` of dim."""
    return _scattered(input, src, lambda t: t.select(dim, index))


def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """A copy of input with src in the slice start:end:step of dim."""
    dim = dim % max(input.dim(), 1)
    return _scattered(input, src, lambda t: t[(slice(None),) * dim + (slice(start, end, step),)])


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """A copy of input with src on a diagonal."""
    return _scattered(input, src, lambda t: t.diagonal(offset, dim1, dim2))


def narrow_copy(input, dim, start, length):
    """narrow, as a copy."""
    return input.narrow(dim, start, length).clone()


def renorm(input, p, dim, maxnorm):
    """Slices along dim scaled down where their p-norm is above maxnorm."""
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.dim()} dimensions")
    dim %= input.dim()
    norms = _ops.linalg_vector_norm(input, p, [i for i in range(input.dim()) if i != dim], True)
    return input * _ops.where(norms > maxnorm, maxnorm / (norms + 1e-7), _ops.ones_like(norms))


def histc(input, bins=100, min=0, max=0):
    """How many elements fall into each of `bins` even intervals from min to max (those of input when both are equal)."""
    if bins <= 0:
        raise RuntimeError("torch.histc: bins must be > 0")
    if not input.is_floating_point():
        raise RuntimeError(f"\"histc\" not implemented for '{input.dtype}'")
    values = input.detach().reshape(-1)
    low, high = float(min), float(max)
    if low == high and values.numel():
        low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    values = values[(values >= low) & (values <= high)]
    places = ((values - low) * (bins / (high - low))).to(_C.int64).clamp(max=bins - 1)
    return _ops.bincount(places, None, bins).to(input.dtype)


def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    """The running integral of y along dim by trapezoids, at the points x or in steps of dx."""
    dim %= y.dim()
    n = y.size(dim)
    pairs = y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)
    if x is None:
        return pairs.cumsum(dim) * (dx / 2)
    at = 0 if x.dim() == 1 else dim
    steps = x.narrow(at, 1, n - 1) - x.narrow(at, 0, n - 1)
    if x.dim() == 1:
        steps = steps.reshape([-1 if i == dim else 1 for i in range(y.dim())])
    return (pairs * steps).cumsum(dim) / 2
