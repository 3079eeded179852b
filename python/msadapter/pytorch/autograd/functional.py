"""torch.autograd.functional: products with and tables of first and second derivatives of a function of tensors.

Inputs and results are single tensors or tuples, as the function takes and returns them. Products with the Jacobian from the right use the
"double backward" identity: J v is the derivative of (J' w) v towards w.
"""

from msadapter import pytorch as torch

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _unpack(name, value, what):
    alone = isinstance(value, torch.Tensor)
    values = (value,) if alone else tuple(value) if isinstance(value, (tuple, list)) else None
    if values is None or not all(isinstance(t, torch.Tensor) for t in values):
        raise TypeError(f"{what} of {name} must be either a Tensor or a tuple of Tensors but got {type(value)}")
    return values, alone


def _leaves(values, create_graph):
    if create_graph:
        return tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in values)
    return tuple(t.detach().requires_grad_() for t in values)


def _run(name, func, values, alone):
    outputs = func(values[0]) if alone else func(*values)
    return _unpack(name, outputs, "The outputs of the user-provided function given to")


def _finish(values, alone, create_graph):
    values = values if create_graph else tuple(t.detach() for t in values)
    return values[0] if alone else tuple(values)


def _grads(name, outputs, inputs, weights, create_graph, strict, what):
    chosen = [(o, w) for o, w in zip(outputs, weights) if o.requires_grad]
    if strict and len(chosen) < len(outputs):
        raise RuntimeError(f"The output of the user-provided function is independent of the input. This is not allowed in strict mode ({name}).")
    found = torch.autograd.grad([o for o, _ in chosen], inputs, [w for _, w in chosen], create_graph=create_graph,
                                allow_unused=True) if chosen else [None] * len(inputs)
    if strict and any(g is None for g in found):
        raise RuntimeError(f"The {what} of the user-provided function is independent of an input. This is not allowed in strict mode ({name}).")
    return tuple(torch.zeros_like(t) if g is None else g for g, t in zip(found, inputs))


def _vector(name, v, like, default_allowed):
    if v is None:
        if not default_allowed or len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"{name}: the vector v can only be None where the user-provided function returns a single Tensor with a single element.")
        return (torch.ones_like(like[0]),)
    values, _ = _unpack(name, v, "The vector v")
    if len(values) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(values)}.")
    for i, (a, b) in enumerate(zip(values, like)):
        if a.shape != b.shape:
            raise RuntimeError(f"Entry {i} in v has invalid size: should be {b.size()} but got {a.size()}.")
    return values


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), v' J): the vector, shaped like the outputs, times the Jacobian."""
    with torch.enable_grad():
        values, alone = _unpack("vjp", inputs, "The inputs given to")
        leaves = _leaves(values, create_graph)
        outputs, single = _run("vjp", func, leaves, alone)
        weights = _vector("vjp", v, outputs, True)
        grads = _grads("vjp", outputs, leaves, weights, create_graph, strict, "output")
    return _finish(outputs, single, create_graph), _finish(grads, alone, create_graph)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), J v): the Jacobian times a vector shaped like the inputs."""
    with torch.enable_grad():
        values, alone = _unpack("jvp", inputs, "The inputs given to")
        vector = _vector("jvp", v, values, True)
        leaves = _leaves(values, create_graph)
        outputs, single = _run("jvp", func, leaves, alone)
        weights = tuple(torch.zeros_like(o).requires_grad_() for o in outputs)
        grads = _grads("jvp", outputs, leaves, weights, True, strict, "output")
        products = _grads("jvp", grads, weights, vector, create_graph, strict, "Jacobian")
    return _finish(outputs, single, create_graph), _finish(products, single, create_graph)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The Jacobian: for each output and input a tensor of shape (output's shape, input's shape)."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than '
                             'inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".')
    if strategy == "forward-mode":
        raise NotImplementedError("jacobian: argument 'strategy'='forward-mode' is not implemented")
    with torch.enable_grad():
        values, alone = _unpack("jacobian", inputs, "The inputs given to")
        leaves = _leaves(values, create_graph)
        outputs, single = _run("jacobian", func, leaves, alone)
        tables = []
        for output in outputs:
            rows = []
            for i in range(output.numel()):
                weight = torch.zeros(output.numel(), dtype=output.dtype)
                weight[i] = 1
                found = [None] * len(leaves)
                if output.requires_grad:
                    found = torch.autograd.grad(output, leaves, weight.reshape(output.shape), retain_graph=True, create_graph=create_graph,
                                                allow_unused=True)
                if strict and any(g is None for g in found):
                    raise RuntimeError("The output of the user-provided function is independent of an input. This is not allowed in strict mode.")
                rows.append([torch.zeros_like(t) if g is None else g for g, t in zip(found, leaves)])
            tables.append(tuple(
                torch.stack([row[j] for row in rows]).reshape(output.shape + t.shape) if rows else torch.zeros(output.shape + t.shape, dtype=t.dtype)
                for j, t in enumerate(leaves)))
    if not create_graph:
        tables = [tuple(t.detach() for t in row) for row in tables]
    rows = [row[0] if alone else row for row in tables]
    return rows[0] if single else tuple(rows)


def _scalar(name, outputs, single):
    if not single:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """Second derivatives of a scalar function: for each pair of inputs a tensor of both their shapes."""
    values, alone = _unpack("hessian", inputs, "The inputs given to")

    def gradient(*arguments):
        outputs, single = _run("hessian", func, arguments, alone)
        _scalar("hessian", outputs, single)
        grads = _grads("hessian", outputs, arguments, (torch.ones_like(outputs[0]),), True, strict, "output")
        return grads[0] if alone else grads

    return jacobian(gradient, values[0] if alone else values, create_graph, strict, vectorize, outer_jacobian_strategy)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), v' H) for a scalar function; v is shaped like the inputs."""
    with torch.enable_grad():
        values, alone = _unpack("vhp", inputs, "The inputs given to")
        vector = _vector("vhp", v, values, True)
        leaves = _leaves(values, create_graph)
        outputs, single = _run("vhp", func, leaves, alone)
        _scalar("vhp", outputs, single)
        grads = _grads("vhp", outputs, leaves, (torch.ones_like(outputs[0]),), True, strict, "output")
        products = _grads("vhp", grads, leaves, vector, create_graph, strict, "gradient")
    return _finish(outputs, single, create_graph), _finish(products, alone, create_graph)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), H v) for a scalar function; v is shaped like the inputs."""
    with torch.enable_grad():
        values, alone = _unpack("hvp", inputs, "The inputs given to")
        vector = _vector("hvp", v, values, True)
        leaves = _leaves(values, create_graph)
        outputs, single = _run("hvp", func, leaves, alone)
        _scalar("hvp", outputs, single)
        grads = _grads("hvp", outputs, leaves, (torch.ones_like(outputs[0]),), True, strict, "output")
        weights = tuple(torch.zeros_like(t).requires_grad_() for t in leaves)
        turned = _grads("hvp", grads, leaves, weights, True, strict, "gradient")
        products = _grads("hvp", turned, weights, vector, create_graph, strict, "gradient")
    return _finish(outputs, single, create_graph), _finish(products, alone, create_graph)
