"""gradcheck and gradgradcheck: derivatives by autograd against central differences.

Everything is treated as real: with f = u + iv of z = x + iy, autograd's gradient for the weight 1 is du/dx + i du/dy, for the weight i
dv/dx + i dv/dy. So one table of real differences serves real and complex functions alike.
"""

import warnings

from msadapter import pytorch as torch

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A derivative differs from its numerical estimate."""


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return (value,)
    if isinstance(value, (tuple, list)):
        return tuple(value)
    raise ValueError(f"gradcheck: expected the function to return a tensor or a tuple of them, but got {type(value).__name__}")


def _differentiable(values):
    return [t for t in values if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex())]


def _check_inputs(inputs):
    found = False
    for index, t in enumerate(inputs):
        if not isinstance(t, torch.Tensor) or not t.requires_grad:
            continue
        found = True
        if t.dtype not in (torch.float64, torch.complex128):
            warnings.warn(f"Input #{index} requires gradient and is not a double precision floating point or complex. "
                          "This check will likely fail if all the inputs are not of double precision floating point or complex. ", stacklevel=3)
        if any(stride == 0 and size > 1 for size, stride in zip(t.shape, t.stride())):
            raise RuntimeError(f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                               "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous on the "
                               "input before passing it to gradcheck.")
    if not found:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True.")


def _as_reals(t):
    """A flat list of real tensors: t, or its two parts."""
    t = t.detach()
    return [t.real.reshape(-1), t.imag.reshape(-1)] if t.is_complex() else [t.reshape(-1)]


def _unit_weights(output):
    """Pairs of (real part chosen, weight): for each real number of the output, what makes autograd differentiate it."""
    for part, unit in enumerate((1, 1j) if output.is_complex() else (1,)):
        for i in range(output.numel()):
            weight = torch.zeros(output.numel(), dtype=output.dtype)
            weight[i] = unit
            yield part, i, weight.reshape(output.shape)


def _numerical(function, inputs, position, eps):
    """d outputs / d inputs[position]: for each output the parts' tables (inputs' real numbers, part's elements)."""
    point = inputs[position]
    with torch.no_grad():
        copies = list(inputs)
        moved = point.detach().clone()
        copies[position] = moved
        flat = moved.view(-1) if moved.is_contiguous() else moved.contiguous().view(-1)
        if flat.data_ptr() != moved.data_ptr():
            copies[position] = moved = flat.view(moved.shape)
        rows = None
        for unit in (1, 1j) if point.is_complex() else (1,):
            for i in range(flat.numel()):
                kept = flat[i].item()
                flat[i] = kept + eps * unit
                high = [_as_reals(t.clone()) for t in _differentiable(_tensors(function(*copies)))]
                flat[i] = kept - eps * unit
                low = [_as_reals(t.clone()) for t in _differentiable(_tensors(function(*copies)))]
                flat[i] = kept
                row = [[(h - l) / (2 * eps) for h, l in zip(hs, ls)] for hs, ls in zip(high, low)]
                rows = rows or [[[] for _ in parts] for parts in row]
                for table, parts in zip(rows, row):
                    for column, part in zip(table, parts):
                        column.append(part)
    return rows


def _gradients(output, inputs, weight, create_graph=False):
    return torch.autograd.grad(output, inputs, weight, retain_graph=True, create_graph=create_graph, allow_unused=True)


def _slow(function, inputs, wanted, outputs, eps, atol, rtol, nondet_tol, check_grad_dtypes):
    positions = [i for i, t in enumerate(inputs) if isinstance(t, torch.Tensor) and t.requires_grad]
    numerical = {i: _numerical(function, inputs, i, eps) for i in positions}
    for o, output in enumerate(outputs):
        for part, element, weight in _unit_weights(output):
            first = _gradients(output, wanted, weight) if output.requires_grad else [None] * len(wanted)
            again = _gradients(output, wanted, weight) if output.requires_grad else first
            for n, position in enumerate(positions):
                point, grad = inputs[position], first[n]
                if grad is None:
                    grad = torch.zeros_like(point)
                elif check_grad_dtypes and grad.dtype != point.dtype:
                    raise GradcheckError(f"The dtype of the gradient, {grad.dtype}, differs from its input's, {point.dtype}.")
                elif again[n] is not None and (grad - again[n]).abs().sum() > nondet_tol * max(1, grad.numel()):
                    raise GradcheckError("Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                                         f"gives different values, although analytical gradient matches numerical gradient. The tolerance "
                                         f"for nondeterminism was {nondet_tol}.")
                if grad.shape != point.shape:
                    raise GradcheckError(f"Analytical gradient has incorrect size: expected {tuple(point.shape)}, but got {tuple(grad.shape)}.")
                analytical = torch.cat(_as_reals(grad))
                if not point.numel():
                    continue
                estimate = torch.stack([row[element] for row in numerical[position][o][part]]).to(analytical.dtype)
                if not torch.allclose(analytical, estimate, rtol=rtol, atol=atol):
                    raise GradcheckError(f"Jacobian mismatch for output {o} with respect to input {position},\nnumerical:{estimate}\n"
                                         f"analytical:{analytical}\n")


def _fast(function, inputs, wanted, outputs, eps, atol, rtol):
    """One random direction in and one out: the slope must be the product of the gradient and the direction."""
    directions = {id(t): torch.randn(t.shape, dtype=t.dtype) for t in wanted}
    with torch.no_grad():
        def at(step):
            moved = [t + step * directions[id(t)] if isinstance(t, torch.Tensor) and id(t) in directions else t for t in inputs]
            return [t.clone() for t in _differentiable(_tensors(function(*moved)))]
        slopes = [(high - low) / (2 * eps) for high, low in zip(at(eps), at(-eps))]
    for o, (output, slope) in enumerate(zip(outputs, slopes)):
        weight = torch.randn(output.shape, dtype=output.dtype)
        expected = (weight.conj() * slope).real.sum() if output.is_complex() else (weight * slope).sum()
        grads = _gradients(output, wanted, weight) if output.requires_grad else [None] * len(wanted)
        found = sum((g.conj() * directions[id(t)]).real.sum() if t.is_complex() else (g * directions[id(t)]).sum()
                    for g, t in zip(grads, wanted) if g is not None)
        found = torch.as_tensor(found, dtype=expected.dtype)
        scale = 1 + sum(t.numel() for t in wanted) ** 0.5 * output.numel() ** 0.5
        if not torch.allclose(found, expected, rtol=rtol, atol=atol * scale):
            raise GradcheckError(f"Jacobian mismatch for output {o} along a random direction,\nnumerical:{expected}\nanalytical:{found}\n")


class _Undefined(torch.autograd.Function):
    """Passes tensors on and gives no gradient back for them."""

    @staticmethod
    def forward(ctx, *values):
        return tuple(v.view_as(v) for v in values)

    @staticmethod
    def backward(ctx, *grads):
        return tuple(None for _ in grads)


def _undefined(outputs, wanted):
    """Outputs whose gradients are undefined must give zeros or nothing."""
    chosen = [t for t in outputs if t.requires_grad]
    if not chosen:
        return
    for skipped in ([*range(len(chosen))], *([i] for i in range(len(chosen)) if len(chosen) > 1)):
        passed = _Undefined.apply(*(chosen[i] for i in skipped))
        passed = passed if isinstance(passed, tuple) else (passed,)
        grads = torch.autograd.grad(passed, wanted, [torch.ones_like(t) for t in passed], retain_graph=True, allow_unused=True)
        if any(g is not None and bool((g != 0).any()) for g in grads):
            raise GradcheckError("Expected all gradients to be None or zero where the gradients of the outputs are undefined.")


def gradcheck(func, inputs, *, eps=1e-6, atol=1e-5, rtol=1e-3, raise_exception=True, check_sparse_nnz=False, nondet_tol=0.0,
              check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False, check_batched_forward_grad=False,
              check_forward_ad=False, check_backward_ad=True, fast_mode=False):
    """Whether func's gradients agree with central differences at `inputs`, within atol + rtol * |difference|.

    func takes the inputs and returns a tensor or a tuple of them. Raises GradcheckError, or with raise_exception=False returns False.
    """
    for name, given in (("check_sparse_nnz", check_sparse_nnz), ("check_batched_grad", check_batched_grad), ("check_forward_ad", check_forward_ad),
                        ("check_batched_forward_grad", check_batched_forward_grad)):
        if given:
            raise NotImplementedError(f"gradcheck: argument '{name}'=True is not implemented")
    inputs = _tensors(inputs)
    try:
        _check_inputs(inputs)
        if not check_backward_ad:
            return True
        wanted = [t for t in inputs if isinstance(t, torch.Tensor) and t.requires_grad]
        for t in wanted:
            if not t.is_leaf:
                t.retain_grad()
        outputs = _differentiable(_tensors(func(*inputs)))
        if fast_mode:
            _fast(func, inputs, wanted, outputs, eps, atol, rtol)
        else:
            _slow(func, inputs, wanted, outputs, eps, atol, rtol, nondet_tol, check_grad_dtypes)
        if check_undefined_grad:
            _undefined(outputs, wanted)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, *, eps=1e-6, atol=1e-5, rtol=1e-3, gen_non_contig_grad_outputs=False,
                  raise_exception=True, nondet_tol=0.0, check_undefined_grad=True, check_grad_dtypes=False, check_batched_grad=False,
                  check_fwd_over_rev=False, check_rev_over_rev=True, fast_mode=False):
    """Whether the gradients of func's gradients agree with central differences, at `inputs` and `grad_outputs` (random where not given)."""
    if check_fwd_over_rev:
        raise NotImplementedError("gradgradcheck: argument 'check_fwd_over_rev'=True is not implemented")
    inputs = _tensors(inputs)
    count = len(inputs)
    if grad_outputs is None:
        weights = []
        for output in _differentiable(_tensors(func(*inputs))):
            weight = torch.randn(output.shape, dtype=output.dtype if output.dtype in (torch.complex64, torch.complex128) else torch.float64)
            weight = weight.to(output.dtype)
            if gen_non_contig_grad_outputs and weight.ndim:
                weight = torch.stack([weight, weight], -1).select(-1, 0)
            weights.append(weight.detach().requires_grad_())
    else:
        weights = list(_tensors(grad_outputs))

    def gradients(*arguments):
        values = [t.requires_grad_() if isinstance(t, torch.Tensor) and not t.requires_grad and inputs[i].requires_grad else t
                  for i, t in enumerate(arguments[:count])]
        with torch.enable_grad():
            wanted = [t for i, t in enumerate(values) if isinstance(t, torch.Tensor) and inputs[i].requires_grad]
            outputs = _differentiable(_tensors(func(*values)))
            pairs = [(o, w) for o, w in zip(outputs, arguments[count:]) if o.requires_grad]
            grads = torch.autograd.grad([o for o, _ in pairs], wanted, [w for _, w in pairs], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(gradients, (*inputs, *weights), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
                     fast_mode=fast_mode)
