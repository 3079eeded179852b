"""torch.autograd: backward, grad, Function, grad modes."""

from msadapter import _C
from msadapter.pytorch.autograd.function import Function
from msadapter.pytorch.autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from msadapter.pytorch.autograd import anomaly_mode, function, grad_mode, graph  # noqa: F401
from msadapter.pytorch.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly

__all__ = ["Function", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "forward_ad", "functional", "grad", "grad_mode", "gradcheck",
           "gradgradcheck", "inference_mode", "no_grad", "profiler", "set_detect_anomaly", "set_grad_enabled"]


def _as_tuple(value):
    from msadapter import pytorch as torch

    return (value,) if isinstance(value, torch.Tensor) else tuple(value)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add the gradients of `tensors` to the leaves' grad (limited to `inputs` where they are given)."""
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("'grad_tensors' and 'grad_variables' (deprecated) arguments both passed to backward(). "
                               "Please only use 'grad_tensors'.")
        grad_tensors = grad_variables
    if inputs is not None and not hasattr(inputs, "requires_grad") and len(inputs) == 0:
        raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    tensors = _as_tuple(tensors)
    grad_tensors = None if grad_tensors is None else _as_tuple(grad_tensors)
    if grad_tensors is not None and len(grad_tensors) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grad_tensors)} gradients")
    keep = create_graph if retain_graph is None else retain_graph
    _C._backward(tensors, grad_tensors, keep, create_graph, None if inputs is None else _as_tuple(inputs))


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=False,
         is_grads_batched=False):
    """Gradients of the sum of `outputs`, weighted by `grad_outputs`, towards `inputs`, as a tuple."""
    if is_grads_batched:
        raise NotImplementedError("grad: argument 'is_grads_batched'=True is not implemented")
    if not only_inputs:
        raise NotImplementedError("grad: argument 'only_inputs'=False is deprecated and not implemented")
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    grad_outputs = None if grad_outputs is None else _as_tuple(grad_outputs)
    keep = create_graph if retain_graph is None else retain_graph
    return _C._grad(outputs, inputs, grad_outputs, keep, create_graph, allow_unused)


class _VariableMeta(type):
    def __instancecheck__(cls, instance):
        from msadapter import pytorch as torch

        return isinstance(instance, torch.Tensor)


class Variable(metaclass=_VariableMeta):
    """The old name of a tensor that takes part in autograd: Variable(data) is data's memory as such a tensor, and every tensor is one."""

    def __new__(cls, data, requires_grad=False, volatile=None):
        return data.detach().requires_grad_(requires_grad)


def __getattr__(name):
    """What scripts seldom need is loaded when they do."""
    if name in ("gradcheck", "gradgradcheck"):
        # A submodule's import puts the module under the function's name: the functions take it back.
        import importlib

        module = importlib.import_module("msadapter.pytorch.autograd.gradcheck")
        globals().update(gradcheck=module.gradcheck, gradgradcheck=module.gradgradcheck)
        return globals()[name]
    if name in ("forward_ad", "functional", "profiler"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
