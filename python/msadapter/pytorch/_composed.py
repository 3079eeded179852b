"""Functions of torch that are made of other operators: joining and splitting, grids, products over named dimensions."""

from msadapter import _C

_ops = _C._ops

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "hstack", "vstack", "row_stack", "dstack", "column_stack", "tensor_split", "hsplit", "vsplit",
           "dsplit", "ravel", "unflatten", "meshgrid", "block_diag", "cartesian_prod", "combinations", "tensordot", "kron", "einsum", "cdist", "cross",
           "diff", "trapezoid", "trapz", "rot90", "diagflat", "isin", "searchsorted", "bucketize", "quantile", "nanquantile", "cov", "corrcoef", "complex", "polar",
           "matrix_power", "dist"]
TENSOR_METHODS = ["tensor_split", "hsplit", "vsplit", "dsplit", "ravel", "unflatten", "kron", "cross", "diff", "rot90", "diagflat", "quantile", "nanquantile", "cov",
                  "corrcoef", "matrix_power", "dist"]


def _into(out, result):
    """The result written to `out`, which takes its shape."""
    if out.dtype is not result.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead")
    if _C.is_grad_enabled() and (result.requires_grad or out.requires_grad):
        raise RuntimeError("functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.")
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


def _given(out, result):
    return result if out is None else _into(out, result)


def _is_tensor(value):
    return isinstance(value, _C.TensorBase)


def _each(function, tensors):
    """function of a tensor; of several, or of a sequence of them, as a tuple."""
    if len(tensors) == 1:
        if _is_tensor(tensors[0]):
            return function(tensors[0])
        tensors = tensors[0]
    return tuple(function(t) for t in tensors)


def _many(tensors):
    return tuple(tensors[0]) if len(tensors) == 1 and not _is_tensor(tensors[0]) else tensors


def _at_least_1(t):
    return t.reshape(1) if t.dim() == 0 else t


def _at_least_2(t):
    return t.reshape(1, 1) if t.dim() == 0 else t.unsqueeze(0) if t.dim() == 1 else t


def _at_least_3(t):
    return _at_least_2(t).unsqueeze(-1) if t.dim() < 3 else t


def atleast_1d(*tensors):
    """Tensors with at least one dimension, 0-dim ones as (1)."""
    return _each(_at_least_1, tensors)


def atleast_2d(*tensors):
    """Tensors with at least two dimensions, (n) as (1, n)."""
    return _each(_at_least_2, tensors)


def atleast_3d(*tensors):
    """Tensors with at least three dimensions, (n) as (1, n, 1), (m, n) as (m, n, 1)."""
    return _each(_at_least_3, tensors)


def _join(tensors, dim, out):
    return _ops.cat(tensors, dim) if out is None else _ops.cat(tensors, dim, out=out)


def hstack(tensors, *, out=None):
    """Join along the second dimension, vectors along their only one."""
    tensors = [_at_least_1(t) for t in tensors]
    return _join(tensors, 0 if tensors and tensors[0].dim() == 1 else 1, out)


def vstack(tensors, *, out=None):
    """Join along the first dimension, vectors as rows."""
    return _join([_at_least_2(t) for t in tensors], 0, out)


row_stack = vstack


def dstack(tensors, *, out=None):
    """Join along the third dimension."""
    return _join([_at_least_3(t) for t in tensors], 2, out)


def column_stack(tensors, *, out=None):
    """Join along the second dimension, vectors as columns."""
    return _join([t.reshape(t.numel(), 1) if t.dim() <= 1 else t for t in tensors], 1, out)


def _dim(dim, ndim):
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


def tensor_split(input, indices_or_sections, dim=0):
    """Views along dim: into so many parts (int), or cut before each of the indices."""
    if input.dim() == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = _dim(dim, input.dim())
    size = input.size(dim)
    if _is_tensor(indices_or_sections):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        n = indices_or_sections
        if n <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {n}")
        bounds = [0]
        for i in range(n):
            bounds.append(bounds[-1] + size // n + (i < size % n))
    else:
        bounds = [0] + list(indices_or_sections) + [size]
    return tuple(_slice(input, dim, a, b) for a, b in zip(bounds, bounds[1:]))


def _slice(input, dim, start, end):
    return input[(slice(None),) * dim + (slice(start, end),)]


def _split_along(name, input, how, dim, least):
    if input.dim() < least:
        raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension{'s' if least > 1 else ''}, but got a tensor with "
                           f"{input.dim()} dimensions!")
    if isinstance(how, int) and (how == 0 or input.size(dim) % how):
        raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {input.size(dim)} is not divisible by "
                           f"the split_size {how}!")
    return tensor_split(input, how, dim)


def hsplit(input, indices_or_sections):
    """tensor_split along the second dimension, of vectors along their only one."""
    return _split_along("hsplit", input, indices_or_sections, 0 if input.dim() == 1 else 1, 1)


def vsplit(input, indices_or_sections):
    """tensor_split along the first dimension of a tensor with two or more."""
    return _split_along("vsplit", input, indices_or_sections, 0, 2)


def dsplit(input, indices_or_sections):
    """tensor_split along the third dimension."""
    return _split_along("dsplit", input, indices_or_sections, 2, 3)


def ravel(input):
    """All elements as a vector."""
    return input.reshape(-1)


def unflatten(input, dim, sizes):
    """Dimension dim split into `sizes`, one of which may be -1."""
    dim = _dim(dim, input.dim())
    return input.reshape(*input.shape[:dim], *sizes, *input.shape[dim + 1:])


def meshgrid(*tensors, indexing=None):
    """Grids of coordinates from vectors: indexing ij (the default) or xy."""
    tensors = _many(tensors)
    if indexing is None:
        import warnings

        warnings.warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", stacklevel=2)
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f"torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {indexing}")
    if any(t.dim() > 1 for t in tensors):
        raise RuntimeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list")
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    swapped = indexing == "xy" and len(tensors) > 1
    if swapped:
        tensors = (tensors[1], tensors[0]) + tuple(tensors[2:])
    shape = [t.numel() for t in tensors]
    grids = [t.reshape([-1 if j == i else 1 for j in range(len(shape))]).expand(shape) for i, t in enumerate(tensors)]
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def block_diag(*tensors):
    """A matrix with the given ones along its diagonal."""
    tensors = [_at_least_2(t) for t in _many(tensors)]
    if any(t.dim() > 2 for t in tensors):
        raise RuntimeError("block_diag: Input tensors must have 2 or fewer dimensions.")
    width, left, rows = sum(t.size(1) for t in tensors), 0, []
    for t in tensors:
        rows.append(_ops.constant_pad_nd(t, [left, width - left - t.size(1)], 0))
        left += t.size(1)
    return _ops.cat(rows, 0)


def cartesian_prod(*tensors):
    """All combinations of elements of vectors, one a row."""
    tensors = _many(tensors)
    if len(tensors) == 1:
        return tensors[0]
    return _ops.stack([g.reshape(-1) for g in meshgrid(*tensors, indexing="ij")], 1)


def combinations(input, r=2, with_replacement=False):
    """All choices of r elements of a vector, one a row."""
    from itertools import combinations as chosen, combinations_with_replacement as chosen_again

    if input.dim() != 1:
        raise RuntimeError("Expect a 1D vector, but got shape " + str(list(input.shape)))
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    rows = list((chosen_again if with_replacement else chosen)(range(input.numel()), r))
    index = _C.tensor([i for row in rows for i in row], dtype=_C.int64)
    return _ops.index_select(input, 0, index).reshape(len(rows), r) if r else input.new_empty(0)


def _tensordot(a, b, dims):
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        over_a, over_b = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        over_a, over_b = dims.tolist() if _is_tensor(dims) else dims
        over_a, over_b = [[d] if isinstance(d, int) else list(d) for d in (over_a, over_b)]
    over_a, over_b = [_dim(d, a.dim()) for d in over_a], [_dim(d, b.dim()) for d in over_b]
    if len(over_a) != len(over_b):
        raise RuntimeError("both dimension lists should have same length")
    if any(a.size(i) != b.size(j) for i, j in zip(over_a, over_b)):
        raise RuntimeError("contracted dimensions need to match")
    left, right = [d for d in range(a.dim()) if d not in over_a], [d for d in range(b.dim()) if d not in over_b]
    n = 1
    for d in over_a:
        n *= a.size(d)
    rows, columns = 1, 1
    for d in left:
        rows *= a.size(d)
    for d in right:
        columns *= b.size(d)
    product = a.permute(left + over_a).reshape(rows, n).mm(b.permute(over_b + right).reshape(n, columns))
    return product.reshape([a.size(d) for d in left] + [b.size(d) for d in right])


def tensordot(a, b, dims=2, out=None):
    """Sum of products over `dims`: so many last ones of a and first ones of b, or a list for each."""
    return _given(out, _tensordot(a, b, dims))


def _kron(input, other):
    n = max(input.dim(), other.dim())
    a, b = input.reshape([1] * (n - input.dim()) + list(input.shape)), other.reshape([1] * (n - other.dim()) + list(other.shape))
    wide_a = a.reshape([s for size in a.shape for s in (size, 1)])
    wide_b = b.reshape([s for size in b.shape for s in (1, size)])
    return (wide_a * wide_b).reshape([x * y for x, y in zip(a.shape, b.shape)])


def kron(input, other, *, out=None):
    """The Kronecker product."""
    return _given(out, _kron(input, other))


def _einsum_letters(subscripts):
    """The letters of a list of numbers from 0 to 51, as einsum's second form names dimensions; Ellipsis is '...'."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    for c in subscripts:
        if c is not Ellipsis and not (isinstance(c, int) and 0 <= c < 52):
            raise ValueError(f"einsum(): subscript {c} in subscript list is not within the valid range [0, 52)")
    return "".join("..." if c is Ellipsis else letters[c] for c in subscripts)


def einsum(*args):
    """Sums of products named by letters: einsum("bij,bjk->bik", a, b); "..." stands for dimensions without a name.

    Or named by numbers from 0 to 51: einsum(a, [0, 1, 2], b, [0, 2, 3], [0, 1, 3]), where Ellipsis stands for dimensions without one.
    """
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
    if isinstance(args[0], _C.TensorBase):
        pairs = len(args) // 2 * 2
        equation = ",".join(_einsum_letters(list_) for list_ in args[1:pairs:2])
        if len(args) > pairs:
            equation += "->" + _einsum_letters(args[-1])
        return einsum(equation, *args[:pairs:2])
    equation, operands = args[0], list(_many(args[1:]))
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise RuntimeError(f"einsum(): {'more' if len(operands) > len(terms) else 'fewer'} operands were provided than specified in the equation")
    rest = 0
    for term, t in zip(terms, operands):
        named = len(term.replace("...", ""))
        if (named > t.dim()) if "..." in term else named != t.dim():
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions ({t.dim()}) for an "
                               "operand")
        if not all(c.isalpha() for c in term.replace("...", "", 1)):
            raise RuntimeError(f"einsum(): invalid subscript given in '{term}', subscripts must be in [a-zA-Z]")
        if "..." in term:
            rest = max(rest, t.dim() - named)
    spread = [f"#{i}" for i in range(rest)]
    labels = []
    for term, t in zip(terms, operands):
        before, dots, after = term.partition("...")
        unnamed = t.dim() - len(before) - len(after)
        labels.append(list(before) + (spread[rest - unnamed:] if dots and unnamed else []) + list(after))
    if arrow:
        before, dots, after = output.partition("...")
        wanted = list(before) + (spread if dots else []) + list(after)
    else:
        letters = inputs.replace("...", "").replace(",", "")
        wanted = spread + sorted(c for c in set(letters) if letters.count(c) == 1)
    known = {c for row in labels for c in row}
    for c in wanted:
        if c not in known or wanted.count(c) > 1:
            raise RuntimeError(f"einsum(): output subscript {c} " + ("appears more than once in the output" if c in known else
                                                                     "does not appear in the equation for any input operand"))
    for i, row in enumerate(labels):
        operands[i], labels[i] = _without_repeats(operands[i], row)
    result, names = operands[0], labels[0]
    for i in range(1, len(operands)):
        kept = set(wanted).union(*labels[i + 1:])
        result, names = _contracted(result, names, operands[i], labels[i], kept)
    extra = [i for i, c in enumerate(names) if c not in wanted]
    if extra:
        result = result.sum(extra)
        names = [c for c in names if c in wanted]
    return result.permute([names.index(c) for c in wanted])


def _without_repeats(t, names):
    for c in list(names):
        while names.count(c) > 1:
            i = names.index(c)
            j = names.index(c, i + 1)
            t, names = t.diagonal(0, i, j), names[:i] + names[i + 1:j] + names[j + 1:] + [c]
    return t, names


def _contracted(a, a_names, b, b_names, kept):
    """The product of two operands, summed over what only they share and nobody wants; one batched matrix product."""
    for c in a_names:
        if c in b_names:
            i, j = a.size(a_names.index(c)), b.size(b_names.index(c))
            if i != j and 1 not in (i, j):
                raise RuntimeError(f"einsum(): subscript {c} has size {j} for an operand which does not broadcast with previously seen size {i}")
    a, a_names = _summed(a, a_names, [c for c in a_names if c not in b_names and c not in kept])
    b, b_names = _summed(b, b_names, [c for c in b_names if c not in a_names and c not in kept])
    shared = [c for c in a_names if c in b_names]
    size = {c: max(a.size(a_names.index(c)), b.size(b_names.index(c))) for c in shared}
    batch, over = [c for c in shared if c in kept], [c for c in shared if c not in kept]
    left, right = [c for c in a_names if c not in shared], [c for c in b_names if c not in shared]
    a, b = a.permute([a_names.index(c) for c in batch + left + over]), b.permute([b_names.index(c) for c in batch + over + right])
    left_sizes = list(a.shape[len(batch):len(batch) + len(left)])
    right_sizes = list(b.shape[b.dim() - len(right):])
    batch_sizes, over_sizes = [size[c] for c in batch], [size[c] for c in over]
    a, b = a.expand(batch_sizes + left_sizes + over_sizes), b.expand(batch_sizes + over_sizes + right_sizes)
    n, m, k, p = [_product(s) for s in (batch_sizes, left_sizes, over_sizes, right_sizes)]
    result = _ops.bmm(a.reshape(n, m, k), b.reshape(n, k, p))
    return result.reshape(batch_sizes + left_sizes + right_sizes), batch + left + right


def _summed(t, names, gone):
    return (t.sum([names.index(c) for c in gone]), [c for c in names if c not in gone]) if gone else (t, names)


def _product(sizes):
    product = 1
    for size in sizes:
        product *= size
    return product


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Distances of all rows (..., m, d) from all rows (..., n, d): (..., m, n)."""
    if compute_mode not in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dim() < 2 or x2.dim() < 2 or x1.size(-1) != x2.size(-1):
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape} X2: {x2.shape}")
    from msadapter.pytorch.functional import broadcast_shapes

    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    count = _product(batch)
    a = x1.expand(*batch, *x1.shape[-2:]).reshape(count, x1.size(-2), x1.size(-1))
    b = x2.expand(*batch, *x2.shape[-2:]).reshape(count, x2.size(-2), x2.size(-1))
    by_product = compute_mode != "donot_use_mm_for_euclid_dist"
    return _ops._cdist(a, b, p, by_product).reshape(*batch, x1.size(-2), x2.size(-2))


def dist(input, other, p=2):
    """The p-norm of input - other."""
    return (input - other).norm(p)


def _cross(input, other, dim=None):
    if dim is None:
        dim = next((i for i, size in enumerate(input.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    if input.size(dim) != 3 or other.size(dim) != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.size(dim)} and {other.size(dim)}")
    return input.roll(-1, dim) * other.roll(-2, dim) - input.roll(-2, dim) * other.roll(-1, dim)


def cross(input, other, dim=None, *, out=None):
    """The product of vectors of three along dim (the first of size 3 when None)."""
    return _given(out, _cross(input, other, dim))


def diff(input, n=1, dim=-1, prepend=None, append=None, *, out=None):
    """The n-th difference of neighbours along dim."""
    if input.dim() == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    dim = _dim(dim, input.dim())
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return _given(out, input.clone())
    if prepend is not None or append is not None:
        input = _ops.cat([t for t in (prepend, input, append) if t is not None], dim)
    for _ in range(min(n, input.size(dim))):
        later, earlier = _slice(input, dim, 1, None), _slice(input, dim, 0, -1)
        input = later.logical_xor(earlier) if input.dtype is _C.bool else later - earlier
    return _given(out, input)


def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral of y along dim by trapezoids, at the points x or in steps of dx (1)."""
    dx = 1 if dx is None else dx
    dim = _dim(dim, y.dim())
    pairs = _slice(y, dim, 1, None) + _slice(y, dim, 0, -1)
    if x is None:
        return pairs.sum(dim) * (dx / 2)
    steps = diff(x, dim=-1 if x.dim() == 1 else dim)
    if x.dim() == 1:
        steps = steps.reshape([-1 if i == dim else 1 for i in range(y.dim())])
    return (pairs * steps).sum(dim) / 2


trapz = trapezoid


def rot90(input, k=1, dims=(0, 1)):
    """Turned k times by 90 degrees in the plane of two dimensions."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    a, b = dims
    if input.dim() < 2 or _dim(a, input.dim()) == _dim(b, input.dim()):
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}")
    k %= 4
    if k == 2:
        return input.flip([a, b])
    return input.clone() if k == 0 else input.flip([b]).transpose(a, b) if k == 1 else input.flip([a]).transpose(a, b)


def diagflat(input, offset=0):
    """A matrix with all elements of input on a diagonal."""
    return _ops.diag(input.reshape(-1), offset)


def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None):
    """Whether each element is one of test_elements. assume_unique only promises; the result is the same."""
    if not _is_tensor(elements):
        elements = _C.tensor(elements)
    if not _is_tensor(test_elements):
        test_elements = _C.tensor(test_elements)
    if elements.numel() * test_elements.numel() <= 4096 or test_elements.is_complex() or elements.is_complex():
        found = (elements.unsqueeze(-1) == test_elements.reshape(-1)).any(-1)
    else:
        common = _C.result_type(elements, test_elements)
        elements, sorted_tests = elements.to(common), test_elements.reshape(-1).to(common).sort()[0]
        places = _ops._searchsorted(sorted_tests, elements, False, False, None).clamp(max=sorted_tests.numel() - 1)
        found = sorted_tests.take(places) == elements
    return _given(out, ~found if invert else found)


def _searchsorted(sorted_sequence, values, *, out_int32=False, right=False, side=None, sorter=None):
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    if not _is_tensor(values):
        values = _C.tensor(values)
        if values.dim() == 0 and values.is_floating_point() is sorted_sequence.is_floating_point():
            values = values.to(sorted_sequence.dtype)
    return _ops._searchsorted(sorted_sequence, values, out_int32, right or side == "right", sorter)


def searchsorted(sorted_sequence, values, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """Where each value would go into the sorted last dimension: before equal elements, or behind them with right."""
    return _given(out, _searchsorted(sorted_sequence, values, out_int32=out_int32, right=right, side=side, sorter=sorter))


def _bucketize(input, boundaries, *, out_int32=False, right=False):
    if boundaries.dim() != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    return _searchsorted(boundaries, input, out_int32=out_int32, right=right)


def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """The bucket of each element between sorted boundaries."""
    return _given(out, _bucketize(input, boundaries, out_int32=out_int32, right=right))


def _quantile(name, input, q, dim, keepdim, interpolation, skip_nans, out):
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}")
    if input.dtype not in (_C.float32, _C.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if not _is_tensor(q):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = _C.tensor(q, dtype=input.dtype)
    if q.dim() > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if not bool(((q >= 0) & (q <= 1)).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    ndim = input.dim()
    at = None if dim is None else _dim(dim, max(ndim, 1))
    lines = (input.reshape(-1) if dim is None or ndim == 0 else input.movedim(at, -1)).sort(-1)[0]
    if lines.size(-1) == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    nans = lines.isnan()
    if skip_nans:  # they are sorted behind the values
        last = ((~nans).sum(-1, keepdim=True) - 1).clamp(min=0)
    else:
        last = _ops.full(lines.shape[:-1] + (1,), lines.size(-1) - 1)
    place = q.reshape(-1) * last
    if interpolation == "nearest":
        place = place.round()
    low, high = place.floor().to(_C.int64), place.ceil().to(_C.int64)
    below, above = lines.gather(-1, low), lines.gather(-1, high)
    if interpolation == "lower":
        result = below
    elif interpolation == "higher":
        result = above
    else:
        result = below.lerp(above, 0.5 if interpolation == "midpoint" else place - low)
    if not skip_nans:
        result = result.masked_fill(nans.any(-1, keepdim=True), float("nan"))
    result = result.movedim(-1, 0)
    if keepdim and ndim:
        result = result.reshape([result.size(0)] + [1] * ndim) if dim is None else result.unsqueeze(at + 1)
    result = result.squeeze(0) if q.dim() == 0 else result
    return _given(out, result)


def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """Quantiles along dim, of all elements when None; q a number or a vector, which becomes the first dimension."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False, out)


def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """quantile() of the elements that are not NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True, out)


def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariance matrix of variables (rows) over observations (columns)."""
    if input.dim() > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions")
    if input.dtype is _C.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = _at_least_2(input if input.is_floating_point() or input.is_complex() else input.to(_C.get_default_dtype()))
    for name, weight, right_type in (("fweights", fweights, "integral"), ("aweights", aweights, "floating point")):
        if weight is None:
            continue
        if weight.dim() > 1:
            raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weight.dim()} dimensions")
        if weight.is_floating_point() is not (right_type == "floating point") or weight.is_complex():
            raise RuntimeError(f"cov(): expected {name} to have {right_type} dtype but got {name} with {weight.dtype} dtype")
        if weight.numel() != x.size(1):
            raise RuntimeError(f"cov(): expected {name} to have the same numel as there are observations in the input but got {weight.numel()} numel")
        if bool((weight < 0).any()):
            raise RuntimeError(f"cov(): {name} cannot be negative")
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    if weights is None:
        total, mean, norm = x.size(1), x.mean(1, keepdim=True), x.size(1) - correction
    else:
        total = weights.sum()
        mean = (x * weights).sum(1, keepdim=True) / total
        norm = total - correction if aweights is None else total - correction * (weights * aweights).sum() / total
    if bool(norm <= 0):
        import warnings

        warnings.warn("cov(): degrees of freedom is <= 0", stacklevel=2)
        norm = 0
    centred = x - mean
    result = (centred if weights is None else centred * weights).mm(centred.t().conj()) / norm
    return result.squeeze()


def corrcoef(input):
    """The correlation coefficients of variables (rows)."""
    c = cov(input)
    if c.dim() == 0:
        return c / c
    deviation = c.diagonal().sqrt()
    c = c / deviation.unsqueeze(1) / deviation
    return complex(c.real.clamp(-1, 1), c.imag.clamp(-1, 1)) if c.is_complex() else c.clamp(-1, 1)


def _complex(real, imag):  # noqa: A001
    if real.dtype is not imag.dtype:
        raise RuntimeError(f"Expected object of scalar type {real.dtype} but got scalar type {imag.dtype} for second argument")
    from msadapter.pytorch.functional import broadcast_tensors

    real, imag = broadcast_tensors(real, imag)
    return _ops.view_as_complex(_ops.stack([real, imag], -1))


def complex(real, imag, *, out=None):  # noqa: A001
    """Complex numbers of real and imaginary parts of one floating type."""
    return _given(out, _complex(real, imag))


def _polar(abs, angle):  # noqa: A002
    if not (_is_tensor(abs) and _is_tensor(angle)):
        raise TypeError("polar(): arguments 'abs' and 'angle' must be Tensors")
    return complex(abs * angle.cos(), abs * angle.sin())


def polar(abs, angle, *, out=None):  # noqa: A002
    """Complex numbers of magnitudes and angles."""
    return _given(out, _polar(abs, angle))


def _matrix_power(input, n):
    if input.dim() < 2 or input.size(-1) != input.size(-2):
        raise RuntimeError("linalg.matrix_power: A must be batches of square matrices")
    if n < 0:
        raise NotImplementedError("matrix_power: a negative argument 'n' is not implemented")
    if n == 0:
        return _ops.eye(input.size(-1), dtype=input.dtype).expand(input.shape).clone()
    result, square = None, input
    while n:
        if n & 1:
            result = square if result is None else result.matmul(square)
        n >>= 1
        if n:
            square = square.matmul(square)
    return result.clone() if result is input else result


def matrix_power(input, n, *, out=None):
    """A square matrix (..., m, m) to the n-th power, n >= 0."""
    return _given(out, _matrix_power(input, n))
