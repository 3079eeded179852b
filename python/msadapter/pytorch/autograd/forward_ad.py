"""torch.autograd.forward_ad: derivatives in a direction. A dual tensor is a primal that a tangent belongs to; what is computed from it has one too.

A tangent is found when it is asked for, by the "double backward" identity: J v is the derivative of (J' w) v towards w. So it costs two backward
passes, its operators need second derivatives, and nothing must be computed under no_grad.
"""

from collections import namedtuple

from msadapter import pytorch as torch

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", "primal tangent")
UnpackedDualTensor.__doc__ = "What unpack_dual() returns: a tensor and its tangent, None where it has none."

_duals = None  # of the level that is open: (seed, tangent) pairs; a seed is a tensor of zeros that was added to the primal


def enter_dual_level():
    """Open the level, 0. Raises RuntimeError when it is open: forward differentiation does not nest."""
    global _duals
    if _duals is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _duals = []
    return 0


def exit_dual_level(*, level=None):
    """Close the level, and forget its tangents. Raises RuntimeError when `level` is not the open one."""
    global _duals
    if _duals is None or level not in (None, 0):
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    _duals = None


class dual_level:
    """A block in which dual tensors have their tangents."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *error):
        exit_dual_level(level=0)


def _check_level(what, level):
    if _duals is None and level is None:
        raise RuntimeError(f"Trying to {what} for forward AD but no level exists, make sure to enter_dual_level() first.")
    if _duals is None or level not in (None, 0):
        raise RuntimeError(f"forward AD: level {level} is not open")


def make_dual(tensor, tangent, *, level=None):
    """`tensor` with a tangent of its own shape and dtype. Raises RuntimeError outside a level, ValueError for integers, TypeError for non-tensors."""
    _check_level("create a dual Tensor", level)
    for name, value in (("tensor", tensor), ("tangent", tangent)):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"make_dual(): argument '{name}' must be Tensor, not {type(value).__name__}")
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {'primal' if name == 'tensor' else name} to be floating point or complex, but got: {value.dtype}")
    if tensor.shape != tangent.shape or tensor.dtype != tangent.dtype:
        raise RuntimeError(f"make_dual: expected a tangent of size {list(tensor.shape)} and type {tensor.dtype}, but got {list(tangent.shape)} and {tangent.dtype}")
    seed = torch.zeros_like(tensor, requires_grad=True)
    with torch.enable_grad():
        dual = tensor + seed
    _duals.append((seed, tangent))
    return dual


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None where it depends on no dual, and outside a level."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"unpack_dual(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    if not _duals or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    _check_level("unpack a dual Tensor", level)
    seeds = [seed for seed, _ in _duals]
    with torch.enable_grad():
        weight = torch.zeros_like(tensor, requires_grad=True)  # J' w is linear in w: any w will do
        products = torch.autograd.grad(tensor, seeds, weight, create_graph=True, allow_unused=True)
        reached = [(product, tangent) for product, (_, tangent) in zip(products, _duals) if product is not None]
        if not reached:
            return UnpackedDualTensor(tensor, None)
        linear = [pair for pair in reached if pair[0].requires_grad]
        further = any(tangent.requires_grad for _, tangent in linear) or _leads_further(tensor, seeds)
        tangent = torch.autograd.grad([product for product, _ in linear], weight, [tangent for _, tangent in linear], create_graph=further,
                                      retain_graph=True, allow_unused=True)[0] if linear else None
    return UnpackedDualTensor(tensor, torch.zeros_like(tensor) if tangent is None else tangent)


def _leads_further(tensor, seeds):
    """Whether the tensor depends on leaves other than the seeds, so that its tangent may be differentiated again."""
    own, seen, nodes = {id(seed) for seed in seeds}, set(), [tensor.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None and id(leaf) not in own:
            return True
        nodes += [following for following, _ in node.next_functions]
    return False
