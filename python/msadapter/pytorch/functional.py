"""Functions of torch whose arguments or results Python has to arrange before an operator runs."""

from msadapter import _C

_ops = _C._ops

__all__ = ["broadcast_shapes", "broadcast_tensors", "is_complex", "is_floating_point", "is_nonzero", "is_storage", "is_tensor", "nonzero", "norm", "numel",
           "split", "istft", "stft", "unique", "unique_consecutive", "where"]
TENSOR_METHODS = ["norm", "istft", "stft", "unique", "unique_consecutive", "nonzero"]


def is_tensor(obj):
    """Whether obj is a tensor."""
    return isinstance(obj, _C.TensorBase)


def is_storage(obj):
    """Whether obj is a storage."""
    return type(obj).__name__.endswith("Storage")


def is_floating_point(input):
    """Whether the tensor's type is a floating one."""
    return input.dtype.is_floating_point


def is_complex(input):
    """Whether the tensor's type is a complex one."""
    return input.dtype.is_complex


def is_nonzero(input):
    """The truth of a one-element tensor. Raises RuntimeError for any other size."""
    return bool(input)


def numel(input):
    """How many elements the tensor has."""
    return input.numel()


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to. Raises RuntimeError when they do not."""
    result = []
    for shape in shapes:
        shape = [shape] if isinstance(shape, int) else list(shape)
        if any(size < 0 for size in shape):
            raise RuntimeError(f"Trying to create tensor with negative dimension: {shape}")
        longer, shorter = (result, shape) if len(result) >= len(shape) else (shape, result)
        merged = list(longer)
        for i in range(1, len(shorter) + 1):
            a, b = longer[-i], shorter[-i]
            if a != b and a != 1 and b != 1:
                raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
            merged[-i] = b if a == 1 else a
        result = merged
    return _C.Size(result)


def broadcast_tensors(*tensors):
    """Views of the tensors in the shape that they broadcast to. Raises RuntimeError when they do not."""
    tensors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    sizes = broadcast_shapes(*(tensor.shape for tensor in tensors))
    return tuple(tensor.expand(sizes) for tensor in tensors)


def split(tensor, split_size_or_sections, dim=0):
    """Views of `tensor` along dim: of one size (an int; the last may be shorter) or of the sizes in a list."""
    if isinstance(split_size_or_sections, (list, tuple)):
        return _ops.split_with_sizes(tensor, split_size_or_sections, dim)
    return _C.TensorBase.split(tensor, split_size_or_sections, dim)


def nonzero(input, *, out=None, as_tuple=False):
    """The positions of non-zero elements: an int64 tensor (count, ndim), or a tuple of vectors with as_tuple."""
    if not as_tuple:
        return _ops.nonzero(input, out=out) if out is not None else _ops.argwhere(input)
    if out is not None:
        raise TypeError("nonzero(): argument 'out' cannot be used with as_tuple=True")
    if input.dim() == 0:
        input = input.unsqueeze(0)
    return _ops.argwhere(input).unbind(1)


def where(condition, x=None, y=None, *, input=None, other=None):
    """x (or `input`) where condition holds, y (or `other`) elsewhere; with a condition only, its non-zero positions as a tuple."""
    x, y = input if x is None else x, other if y is None else y
    if x is None and y is None:
        return nonzero(condition, as_tuple=True)
    return _ops.where(condition, x, y)


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """A norm of vectors (p a number) or matrices (p 'fro' or 'nuc') along dim."""
    if p == "nuc":
        from msadapter.pytorch.linalg import matrix_norm

        if dim is None and input.dim() != 2 or dim is not None and (isinstance(dim, int) or len(dim) != 2):
            raise RuntimeError("norm: expected a matrix, or two dimensions in dim, for p='nuc'")
        return matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype, out=out)
    if p == "fro":
        if dim is not None and not isinstance(dim, int) and len(dim) > 2:
            raise RuntimeError(f"norm: expected dim to hold at most 2 dimensions for p='fro', got {tuple(dim)}")
        p = 2
    elif isinstance(p, str):
        raise RuntimeError(f"norm: argument 'p' must be a number, 'fro' or 'nuc', got {p!r}")
    if p is None:
        p = 2
    if dim is not None and isinstance(dim, int):
        dim = (dim,)
    if out is not None:
        return _ops.linalg_vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)
    return _ops.linalg_vector_norm(input, p, dim, keepdim, dtype=dtype)


def _unique(input, return_inverse, return_counts, dim, is_sorted, consecutive):
    values, inverse, counts = _ops._unique(input, dim, is_sorted, consecutive)
    results = (values,) + ((inverse,) if return_inverse else ()) + ((counts,) if return_counts else ())
    return results[0] if len(results) == 1 else results


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The different elements (slices along dim), sorted; with where each input went and how often each came, if wanted."""
    return _unique(input, return_inverse, return_counts, dim, sorted, False)


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of every run of equal elements (slices along dim)."""
    return _unique(input, return_inverse, return_counts, dim, True, True)


_warned = set()


def _warn_once(text):
    if text not in _warned:
        import warnings

        _warned.add(text)
        warnings.warn(text, stacklevel=3)


def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None,
         return_complex=None):
    """Spectra of windowed frames of `input` (length) or (batch, length): (batch, frequencies, frames), complex or as pairs of numbers.

    Raises RuntimeError for sizes that do not fit and for a one-sided spectrum of complex values.
    """
    if return_complex is None and not (input.is_complex() or (window is not None and window.is_complex())):
        _warn_once("stft will soon require the return_complex parameter be given for real inputs, and will further require that "
                   "return_complex=True in a future PyTorch release.")
    if center:
        from msadapter.pytorch.nn.functional import pad

        ndim, around = input.dim(), int(n_fft // 2)
        padded = pad(input.view([1] * (3 - ndim) + list(input.shape)), [around, around], pad_mode)
        input = padded.view(padded.shape[-ndim:]) if ndim else padded.view(())
    return _ops.stft(input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex)


def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None,
          return_complex=False):
    """The signal whose spectra come nearest to `input`: (batch, frequencies, frames) complex, or the same as pairs of numbers.

    Raises RuntimeError for sizes that do not fit and where the windows leave a sample uncovered.
    """
    if not input.is_complex():
        _warn_once("istft will require a complex-valued input tensor in a future PyTorch release. Matching the output from stft with "
                   "return_complex=True. ")
    result = _ops.istft(input, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex)
    frames = input.shape[-1] if input.is_complex() else input.shape[-2]
    whole = n_fft + (n_fft >> 2 if hop_length is None else hop_length) * (frames - 1)
    if length is not None and length + (n_fft // 2 if center else 0) > whole:
        import warnings

        warnings.warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. Please "
                      "check your center and hop_length settings.", stacklevel=2)
    return result
