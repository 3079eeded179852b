"""MindSpore's functional differentiation, over the tape: value_and_grad, grad, stop_gradient, clip_by_global_norm."""

import threading

from msadapter import pytorch as torch

_nesting = threading.local()


class _Differentiating:
    """Recording is on inside; knows whether another gradient function is running around this one."""

    def __enter__(self):
        self.depth = getattr(_nesting, "depth", 0)
        _nesting.depth = self.depth + 1
        self.recording = torch._C._set_grad_enabled(True)
        return self

    def __exit__(self, *error):
        _nesting.depth = self.depth
        torch._C._set_grad_enabled(self.recording)


def _map_tensors(function, value):
    """`value` with every tensor in lists, tuples and dictionaries replaced by function(tensor)."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, dict):
        return type(value)((key, _map_tensors(function, item)) for key, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map_tensors(function, item) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_map_tensors(function, item) for item in value)
    return value


def _tensors_of(value, found):
    _map_tensors(found.append, value)
    return found


def _positions(grad_position):
    """grad_position as a tuple, and whether it was one number."""
    if grad_position is None:
        return (), False
    if isinstance(grad_position, bool) or not isinstance(grad_position, (int, tuple)):
        raise TypeError(f"value_and_grad: argument 'grad_position' must be an int, a tuple of ints or None, got "
                        f"{type(grad_position).__name__}")
    single = isinstance(grad_position, int)
    positions = (grad_position,) if single else grad_position
    if any(isinstance(p, bool) or not isinstance(p, int) for p in positions):
        raise TypeError("value_and_grad: argument 'grad_position' must hold ints only")
    if any(p < 0 for p in positions):
        raise ValueError("value_and_grad: argument 'grad_position' must not be negative")
    return positions, single


def _weight_list(weights):
    """weights as a list (None: no weights were asked for), and whether it was one parameter."""
    if weights is None:
        return None, False
    if isinstance(weights, torch.Tensor):
        return [weights], True
    weights = list(weights)
    for weight in weights:
        if not isinstance(weight, torch.Tensor):
            raise TypeError(f"value_and_grad: argument 'weights' must hold tensors, got {type(weight).__name__}")
    return weights, False


def _differentiable_arguments(args, positions):
    """args with those at `positions` made inputs of the tape; and these inputs."""
    args, inputs = list(args), []
    for position in positions:
        if position >= len(args):
            raise ValueError(f"value_and_grad: argument 'grad_position' names argument {position}, but the function was "
                             f"called with {len(args)}")
        value = args[position]
        if not isinstance(value, torch.Tensor):
            value = torch.as_tensor(value)
        # Inside another gradient function the argument has a history, which has to stay.
        value = value.view_as(value) if value.requires_grad else value.detach().requires_grad_(True)
        args[position] = value
        inputs.append(value)
    return args, inputs


def _gradients(outputs, inputs, create_graph):
    """Gradients of the sum of `outputs` towards `inputs`, zero where nothing leads there."""
    outputs = [t for t in outputs if t.requires_grad]
    wanted = [t for t in inputs if t.requires_grad]
    found = {}
    if outputs and wanted:
        cotangents = [torch.ones_like(t) for t in outputs]
        gradients = torch._C._grad(outputs, wanted, cotangents, create_graph, create_graph, True)
        found = {id(t): g for t, g in zip(wanted, gradients) if g is not None}
    return [found[id(t)] if id(t) in found else torch.zeros_like(t) for t in inputs]


def value_and_grad(fn, grad_position=0, weights=None, has_aux=False):
    """A function that calls `fn` and returns (what fn returned, gradients).

    Gradients are taken of fn's output (of the first one with has_aux; of their sum where fn returns several without it) towards
    the arguments at `grad_position` (an int, a tuple of ints, or None) and towards `weights` (a parameter or a
    sequence of them, or None). One int gives one gradient, a tuple a tuple; weights give a tuple; both give a pair of them. Auxiliary
    outputs may be nested. Values come without history, gradients too, unless another gradient function runs around.

    Raises TypeError and ValueError for arguments that do not fit.
    """
    positions, single_position = _positions(grad_position)
    weight_list, single_weight = _weight_list(weights)
    if not positions and weight_list is None:
        raise ValueError("value_and_grad: arguments 'grad_position' and 'weights' cannot both be None")

    def run(*args, **kwargs):
        with _Differentiating() as state:
            args, inputs = _differentiable_arguments(args, positions)
            value = fn(*args, **kwargs)
            if has_aux:
                if not isinstance(value, (tuple, list)) or len(value) < 2:
                    raise ValueError("value_and_grad: with has_aux=True the function must return more than one output")
                outputs = _tensors_of(value[0], [])
            else:
                outputs = _tensors_of(value, [])
            if not outputs:
                raise TypeError("value_and_grad: the function must return a tensor")
            nested = state.depth > 0
            gradients = _gradients(outputs, inputs + (weight_list or []), nested)
        if not nested:
            value = _map_tensors(lambda t: t.detach(), value)
        return value, _arranged(gradients, len(inputs))

    def _arranged(gradients, n_inputs):
        of_inputs = gradients[0] if single_position else tuple(gradients[:n_inputs])
        if weight_list is None:
            return of_inputs
        of_weights = gradients[n_inputs] if single_weight else tuple(gradients[n_inputs:])
        return (of_inputs, of_weights) if positions else of_weights

    return run


def grad(fn, grad_position=0, weights=None, has_aux=False, return_ids=False):
    """A function that gives the gradients only (and the auxiliary outputs with has_aux); arguments as in value_and_grad."""
    if return_ids:
        raise NotImplementedError("grad: argument 'return_ids'=True is not implemented")
    with_value = value_and_grad(fn, grad_position, weights, has_aux)

    def run(*args, **kwargs):
        value, gradients = with_value(*args, **kwargs)
        return (gradients, tuple(value[1:])) if has_aux else gradients

    return run


def stop_gradient(value):
    """The same values without history."""
    return value.detach()


def clip_by_global_norm(x, clip_norm=1.0, use_norm=None):
    """The tensors of `x`, each times clip_norm / max(global norm, clip_norm); the global norm is that of all elements together.

    Raises TypeError when x is no list or tuple, NotImplementedError for use_norm.
    """
    if use_norm is not None:
        raise NotImplementedError("clip_by_global_norm: argument 'use_norm' is not implemented")
    if not isinstance(x, (list, tuple)):
        raise TypeError(f"clip_by_global_norm: argument 'x' must be a list or a tuple of tensors, got {type(x).__name__}")
    if clip_norm <= 0:
        raise ValueError(f"clip_by_global_norm: argument 'clip_norm' must be positive, got {clip_norm}")
    if not x:
        return type(x)()
    norm = torch.stack([torch.linalg_vector_norm(t.detach().float()) for t in x])
    norm = torch.linalg_vector_norm(norm)
    scale = clip_norm / torch.maximum(norm, torch.full_like(norm, clip_norm))
    return type(x)((t * scale).to(t.dtype) for t in x)
