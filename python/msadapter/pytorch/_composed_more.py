"""Functions of torch that are made of other operators: windows of signals, writing into parts of a copy, counting."""

import math

from msadapter import _C
from msadapter.pytorch._composed import _given

_ops = _C._ops

__all__ = ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window", "masked_scatter", "select_scatter", "slice_scatter",
           "diagonal_scatter", "as_strided_scatter", "segment_reduce", "narrow_copy", "renorm", "cumulative_trapezoid", "vander",
           "histogramdd", "gradient", "adjoint", "resolve_conj", "resolve_neg", "is_conj", "unsafe_chunk", "unsafe_split"]
TENSOR_METHODS = ["masked_scatter", "select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter", "narrow_copy", "renorm",
                  "masked_scatter_", "renorm_", "fill_diagonal_"]


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


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, layout=None, device=None, requires_grad=False):
    """I0(beta sqrt(1 - x^2)) / I0(beta) for x from -1 to 1: (window_length)."""
    top = _ops.i0(_C.tensor(float(beta), dtype=_C.float64))
    return _window("kaiser_window", window_length, periodic, lambda k: _ops.i0(beta * (1 - (2 * k - 1) ** 2).clamp(min=0).sqrt()) / top, dtype, layout,
                   device, requires_grad)


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


def masked_scatter_(input, mask, source):
    """masked_scatter into input itself; mask is broadcast to it."""
    return input.copy_(masked_scatter(input, mask.expand(input.shape), source))


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


def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """A copy of input with src in the places that as_strided(size, stride, storage_offset) shows of it."""
    return _scattered(input, src, lambda t: t.as_strided(size, stride, storage_offset))


_SEGMENT_KINDS = {"max": ("amax", -math.inf), "min": ("amin", math.inf), "sum": ("sum", 0), "mean": ("sum", 0), "prod": ("prod", 1)}


def _segment_ends(lengths, offsets, axis, size, unsafe):
    """Where each segment along the axis starts and ends, as (first start, ends, lengths); both of lengths' shape."""
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    given = lengths if lengths is not None else offsets
    if given.dtype not in (_C.int32, _C.int64):
        raise RuntimeError(f"segment_reduce(): expected lengths or offsets of type int32 or int64, got {given.dtype}")
    if axis != given.dim() - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {'lengths' if lengths is not None else 'offsets'} but got {axis}.")
    if lengths is None:
        if int(offsets.min()) < 0 or int(offsets.max()) > size or bool((offsets.diff(dim=-1) < 0).any()):
            raise RuntimeError(f"segment_reduce(): offsets have to rise from 0 to at most {size}, the input's size along axis {axis}")
        return offsets.narrow(-1, 0, 1), offsets.narrow(-1, 1, offsets.size(-1) - 1), offsets.diff(dim=-1)
    if bool((lengths < 0).any()):
        raise RuntimeError("lengths contains negative value!")
    ends = lengths.cumsum(-1)
    totals = lengths.sum(-1)
    if bool((totals > size).any()) or not unsafe and bool((totals != size).any()):
        raise RuntimeError(f"segment_reduce(): Expected all rows of lengths along axis to sum to data.size({axis}), which is {size}")
    return ends.narrow(-1, 0, 1) - lengths.narrow(-1, 0, 1), ends, lengths


def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """The max, min, sum, mean or prod of successive segments of data along axis.

    data is (*, N, *) with N at axis; lengths (*, S) or offsets (*, S + 1) have data's leading sizes, and the result is (*, S, *). Reduction starts
    from initial; without it an empty segment gives the reduction's identity, nan for mean. Lengths have to sum to N unless unsafe.
    Raises RuntimeError for other reductions, lengths or types.
    """
    if reduce not in _SEGMENT_KINDS:
        raise RuntimeError(f"segment_reduce(): unsupported reduction {reduce!r}, expected one of {', '.join(_SEGMENT_KINDS)}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if not data.is_floating_point():
        raise RuntimeError(f"segment_reduce(): not implemented for {data.dtype}")
    data.size(axis)  # raises IndexError
    axis %= data.dim()
    start, ends, lengths = _segment_ends(lengths, offsets, axis, data.size(axis), unsafe)
    kind, identity = _SEGMENT_KINDS[reduce]
    places = _ops.arange(data.size(axis), device=data.device).expand(start.shape[:-1] + (-1,)).contiguous()
    segments = _ops._searchsorted(ends.contiguous(), places, False, True, None)
    count = ends.size(-1)
    segments = segments.masked_fill((places < start) | (segments >= count), count)  # one more row takes what lies outside
    after = data.dim() - axis - 1
    segments, lengths = (t.reshape(t.shape + (1,) * after) for t in (segments, lengths))
    shape = data.shape[:axis] + (count + 1,) + data.shape[axis + 1:]
    result = _ops.full(shape, identity, dtype=data.dtype).scatter_reduce(axis, segments.expand(data.shape), data, kind).narrow(axis, 0, count)
    if initial is not None:
        start_value = _ops.full([], initial, dtype=data.dtype)
        if kind in ("sum", "prod"):
            result = result + start_value if kind == "sum" else result * start_value
        else:
            result = _ops.where(result < start_value if kind == "amax" else result > start_value, start_value, result)
    if reduce == "mean":
        result = result / (lengths if initial is None else lengths.clamp(min=1))
    return result


def narrow_copy(input, dim, start, length, *, out=None):
    """narrow, as a copy."""
    return _given(out, input.narrow(dim, start, length).clone())


def _renorm(input, p, dim, maxnorm):
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.dim()} dimensions")
    dim %= input.dim()
    norms = _ops.linalg_vector_norm(input, p, [i for i in range(input.dim()) if i != dim], True)
    return input * _ops.where(norms > maxnorm, maxnorm / (norms + 1e-7), _ops.ones_like(norms))


def renorm(input, p, dim, maxnorm, *, out=None):
    """Slices along dim scaled down where their p-norm is above maxnorm."""
    return _given(out, _renorm(input, p, dim, maxnorm))


def renorm_(input, p, dim, maxnorm):
    """renorm of input itself."""
    return input.copy_(renorm(input.clone(), p, dim, maxnorm))


def fill_diagonal_(input, fill_value, wrap=False):
    """The main diagonal (of all dimensions, which then have one size) set to a number; again below it in tall matrices with wrap."""
    if input.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    if input.dim() > 2 and len(set(input.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    rows, columns = input.size(0), input.size(1)
    size, step = min(input.shape), sum(input.stride())
    input.as_strided([size], [step], input.storage_offset()).fill_(fill_value)
    if wrap and input.dim() == 2 and rows > columns + 1:
        for start in range(columns + 1, rows, columns + 1):
            part = input[start:]
            part.as_strided([min(part.shape)], [step], part.storage_offset()).fill_(fill_value)
    return input


def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """The running integral of y along dim by trapezoids, at the points x or in steps of dx (1)."""
    dx = 1 if dx is None else dx
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


def vander(x, N=None, increasing=False):
    """Vandermonde's matrix of a vector: its powers as N columns (as many as elements when None), falling unless `increasing`."""
    if x.dim() != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, but got {x.dim()} dimensions")
    n = x.size(0) if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_C.int64)
    if n == 0 or x.numel() == 0:
        return x.new_empty((x.size(0), n))
    ones = _ops.ones_like(x).unsqueeze(1)
    powers = _ops.cat([ones, x.unsqueeze(1).expand(-1, n - 1).cumprod(1)], 1) if n > 1 else ones
    return powers if increasing else powers.flip(1)


def histogramdd(input, bins, *, range=None, weight=None, density=False):  # noqa: A002
    """How many points (..., D) lie in each bin: (hist with D dimensions, D vectors of edges).

    bins: a number for all dimensions, or a number or vector of edges for each; range: D pairs of ends, for numbers of bins.
    """
    if input.dim() < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    dims = input.size(-1)
    bins = [bins] * dims if isinstance(bins, int) else list(bins)
    if len(bins) != dims:
        raise RuntimeError(f"torch.histogramdd: expected {dims} sequences of bin edges for a {dims}-dimensional histogram but got {len(bins)}")
    if isinstance(bins[0], int):
        edges = tuple(_ops._histogram_edges(input, d, n, range) for d, n in enumerate(bins))
    elif range is not None:
        raise TypeError("histogramdd(): argument 'range' goes with numbers of bins, not with edges")
    else:
        edges = tuple(bins)
    from collections import namedtuple

    result = namedtuple("histogramdd", ["hist", "bin_edges"], module="torch.return_types")
    return result(_ops._histogram_counts(input, edges, weight, density), edges)


def _differences(f, dim, spacing, edge_order):
    """The derivative of f along dim: second order inside, edge_order at both ends. spacing: a number, or the points."""
    n = f.size(dim)

    def part(start, count):
        return f.narrow(dim, start, count)

    if isinstance(spacing, _C.TensorBase):
        steps = spacing.narrow(0, 1, n - 1) - spacing.narrow(0, 0, n - 1)
        steps = steps.reshape([-1 if i == dim else 1 for i in range(f.dim())])
        before, after = steps.narrow(dim, 0, n - 2), steps.narrow(dim, 1, n - 2)
        inner = (part(0, n - 2) * (-after / (before * (before + after))) + part(1, n - 2) * ((after - before) / (before * after))
                 + part(2, n - 2) * (before / (after * (before + after))))
        first, second = steps.narrow(dim, 0, 1), steps.narrow(dim, min(1, n - 2), 1)
        last, earlier = steps.narrow(dim, n - 2, 1), steps.narrow(dim, max(n - 3, 0), 1)
    else:
        inner = (part(2, n - 2) - part(0, n - 2)) / (2 * spacing)
        first = second = last = earlier = spacing
    if edge_order == 1:
        left, right = (part(1, 1) - part(0, 1)) / first, (part(n - 1, 1) - part(n - 2, 1)) / last
    else:
        left = (part(0, 1) * (-(2 * first + second) / (first * (first + second))) + part(1, 1) * ((first + second) / (first * second))
                + part(2, 1) * (-first / (second * (first + second))))
        right = (part(n - 3, 1) * (last / (earlier * (earlier + last))) + part(n - 2, 1) * (-(last + earlier) / (last * earlier))
                 + part(n - 1, 1) * ((2 * last + earlier) / (last * (last + earlier))))
    return _ops.cat([left, inner, right], dim)


def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """The derivative of values along each of `dim` (all when None), as a tuple.

    spacing: the distance of points, or one for each dimension, or a vector of points for each.
    """
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    ndim = input.dim()
    dims = list(range(ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    for d in dims:
        if not -ndim <= d < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {d})")
    dims = [d % ndim for d in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError("dim appears multiple times in the list of dims")
    spacing = 1 if spacing is None else spacing
    spacings = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(spacings) != len(dims):
        raise RuntimeError(f"torch.gradient expected spacing to be unspecified, a scalar or a list of length {len(dims)}, but got a list of length "
                           f"{len(spacings)}")
    for d in dims:
        if input.size(d) < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple(_differences(input, d, h, edge_order) for d, h in zip(dims, spacings))


def adjoint(input):
    """The conjugate transpose of the last two dimensions, a view."""
    return input.mH


def resolve_conj(input):
    """The tensor itself: conjugation is never put off here."""
    return input


def resolve_neg(input):
    """The tensor itself: negation is never put off here."""
    return input


def is_conj(input):
    """False: conjugation is never put off here."""
    return False


def unsafe_chunk(input, chunks, dim=0):
    """chunk()."""
    return input.chunk(chunks, dim)


def unsafe_split(tensor, split_size_or_sections, dim=0):
    """split()."""
    return tensor.split(split_size_or_sections, dim)
