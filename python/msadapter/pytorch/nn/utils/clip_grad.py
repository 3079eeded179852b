"""Clipping of gradients, in place."""

import math

from msadapter import pytorch as torch

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]


def _gradients(parameters):
    if isinstance(parameters, torch.Tensor):
        parameters = [parameters]
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """Scale all gradients so that the norm of all of them together is at most max_norm; returns what it was.

    Raises RuntimeError with error_if_nonfinite when that norm is not finite.
    """
    gradients = [gradient.detach() for gradient in _gradients(parameters)]
    max_norm, norm_type = float(max_norm), float(norm_type)
    if not gradients:
        return torch.tensor(0.0)
    if norm_type == math.inf:
        norms = [gradient.abs().max() for gradient in gradients]
        total_norm = norms[0] if len(norms) == 1 else torch.max(torch.stack(norms))
    else:
        norms = torch.stack([torch.norm(gradient, norm_type) for gradient in gradients])
        total_norm = torch.norm(norms, norm_type)
    if error_if_nonfinite and not torch.isfinite(total_norm):
        raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To disable "
                           "this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`")
    factor = torch.clamp(max_norm / (total_norm + 1e-6), max=1.0)
    for gradient in gradients:
        gradient.mul_(factor)
    return total_norm


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """The old name of clip_grad_norm_."""
    import warnings

    warnings.warn("torch.nn.utils.clip_grad_norm is now deprecated in favor of torch.nn.utils.clip_grad_norm_.", stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)


def clip_grad_value_(parameters, clip_value):
    """Clamp all gradients to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    for gradient in _gradients(parameters):
        gradient.data.clamp_(min=-clip_value, max=clip_value)
