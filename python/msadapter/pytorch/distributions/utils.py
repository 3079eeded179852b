"""What the distributions share: broadcasting of parameters, conversion between probabilities and logits, properties computed once."""

from functools import update_wrapper
from numbers import Number

import msadapter.pytorch as torch
from msadapter.pytorch.nn.functional import softmax

euler_constant = 0.57721566490153286060  # Euler-Mascheroni, gamma in most formulas

__all__ = ["broadcast_all", "logits_to_probs", "clamp_probs", "probs_to_logits", "lazy_property", "tril_matrix_to_vec", "vec_to_tril_matrix"]


def _is_tensor_like(value):
    return isinstance(value, torch.Tensor) or hasattr(type(value), "__torch_function__")


def broadcast_all(*values):
    """The values as tensors of one shape. Numbers take the dtype of the first tensor, or the default dtype.

    Raises ValueError for anything but numbers and tensors.
    """
    if not all(isinstance(v, Number) or _is_tensor_like(v) for v in values):
        raise ValueError("Input arguments must all be instances of numbers.Number, torch.Tensor or objects implementing __torch_function__.")
    tensors = [v for v in values if _is_tensor_like(v)]
    options = {"dtype": tensors[0].dtype, "device": tensors[0].device} if tensors else {"dtype": torch.get_default_dtype()}
    return torch.broadcast_tensors(*[v if _is_tensor_like(v) else torch.tensor(v, **options) for v in values])


def _standard_normal(shape, dtype, device):
    return torch.normal(torch.zeros(shape, dtype=dtype, device=device), torch.ones(shape, dtype=dtype, device=device))


def _sum_rightmost(value, dim):
    """Sums out the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits, is_binary=False):
    """Probabilities: sigmoid of log odds if binary, else softmax of log weights over the last dimension."""
    return torch.sigmoid(logits) if is_binary else softmax(logits, dim=-1)


def clamp_probs(probs):
    """Probabilities kept away from 0 and 1 by the dtype's eps, so that their logarithms are finite."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Log odds if binary, else logarithms of the probabilities."""
    clamped = clamp_probs(probs)
    return torch.log(clamped) - torch.log1p(-clamped) if is_binary else torch.log(clamped)


class lazy_property:
    """A property that computes its value at the first access and then keeps it as an attribute of the instance."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return property(self.wrapped)
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat, diag=0):
    """The lower triangle of mat (..., D, D), up to diagonal `diag`, as a vector (..., L) row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows = torch.arange(n, device=mat.device)
    return mat[..., rows < rows.view(-1, 1) + (diag + 1)]


def vec_to_tril_matrix(vec, diag=0):
    """The inverse of tril_matrix_to_vec: vec (..., L) gives (..., D, D), zero above diagonal `diag`. ValueError where L does not fit."""
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    eps = torch.finfo(vec.dtype).eps
    if not round(n) - eps <= n <= round(n) + eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a square D x D matrix.")
    n = int(round(n))
    matrix = torch.zeros(vec.shape[:-1] + (n, n), dtype=vec.dtype, device=vec.device)
    rows = torch.arange(n, device=vec.device)
    matrix[..., rows < rows.view(-1, 1) + (diag + 1)] = vec
    return matrix
