"""Modules with a gradient of their own, MindSpore's way: bprop(self, *inputs, out, grad_output) beside forward."""

from msadapter import pytorch as torch

_function_class = None


def _bprop_function():
    global _function_class
    if _function_class is None:
        class BpropFunction(torch.autograd.Function):
            @staticmethod
            def forward(ctx, module, forward, *inputs):
                out = forward(module, *inputs)
                ctx.module, ctx.is_tensor = module, [isinstance(value, torch.Tensor) for value in inputs]
                ctx.single = isinstance(out, torch.Tensor)
                outputs = (out,) if ctx.single else tuple(out)
                ctx.others = [None if is_tensor else value for is_tensor, value in zip(ctx.is_tensor, inputs)]
                ctx.save_for_backward(*(v for v in inputs if isinstance(v, torch.Tensor)), *outputs)
                return out if ctx.single else outputs

            @staticmethod
            def backward(ctx, *gradients):
                saved = list(ctx.saved_tensors)
                n_tensors = sum(ctx.is_tensor)
                tensors, outputs = iter(saved[:n_tensors]), tuple(saved[n_tensors:])
                inputs = [next(tensors) if is_tensor else value for is_tensor, value in zip(ctx.is_tensor, ctx.others)]
                found = ctx.module.bprop(*inputs, outputs[0] if ctx.single else outputs, gradients[0] if ctx.single else gradients)
                found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
                if len(found) != len(inputs):
                    raise RuntimeError(f"{type(ctx.module).__name__}.bprop returned {len(found)} gradients, expected one for each of "
                                       f"the {len(inputs)} inputs of forward")
                return (None, None) + tuple(gradient if is_tensor else None for gradient, is_tensor in zip(found, ctx.is_tensor))

        _function_class = BpropFunction
    return _function_class


def forward_with_bprop(forward):
    """`forward` run without recording, its gradients being what the module's bprop says."""
    import functools

    @functools.wraps(forward)
    def run(self, *inputs, **kwargs):
        if kwargs:
            import inspect

            bound = inspect.signature(forward).bind(self, *inputs, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                raise NotImplementedError(f"{type(self).__name__}: keyword-only arguments of forward are not implemented beside bprop")
            inputs = bound.args[1:]
        return _bprop_function().apply(self, forward, *inputs)

    return run
