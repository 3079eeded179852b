"""Hooks of modules: handles that remove them, the tables of hooks for all modules, and the taps of backward hooks."""

from collections import OrderedDict

from msadapter import _C
from msadapter import pytorch as torch

forward_pre_hooks = OrderedDict()
forward_hooks = OrderedDict()
backward_hooks = OrderedDict()
backward_kind = None  # None before the first, then whether the hooks for all modules are full ones


class RemovableHandle:
    """Stands for one registered hook: remove() unregisters it, once; leaving `with handle:` does too."""

    next_id = 0

    def __init__(self, hooks_dict):
        import weakref

        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1

    def remove(self):
        hooks = self.hooks_dict_ref()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __getstate__(self):
        return self.hooks_dict_ref(), self.id

    def __setstate__(self, state):
        import weakref

        hooks = OrderedDict() if state[0] is None else state[0]
        self.hooks_dict_ref = weakref.ref(hooks)
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


class _GlobalHandle(RemovableHandle):
    """The handle of a hook for all modules: tells the C base of modules when the last one goes."""

    def remove(self):
        super().remove()
        note_global_hooks()


def note_global_hooks():
    """Tell the C base of modules whether hooks for all modules exist."""
    _C.set_global_hooks(bool(forward_pre_hooks or forward_hooks or backward_hooks))


def register(hooks, hook):
    """Add a hook to one module's table."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_forward_pre_hook(hook):
    """Call hook(module, inputs) before every forward of every module; what it returns replaces the inputs."""
    return _register_global(forward_pre_hooks, hook)


def register_module_forward_hook(hook):
    """Call hook(module, inputs, output) after every forward of every module; what it returns replaces the output."""
    return _register_global(forward_hooks, hook)


def register_module_backward_hook(hook):
    """Call hook(module, grad_input, grad_output) for the last node of every module. Kept for old scripts: see the full kind."""
    return _register_global_backward(hook, False)


def register_module_full_backward_hook(hook):
    """Call hook(module, grad_input, grad_output) once the gradients towards any module's inputs are known.

    What it returns replaces grad_input.
    """
    return _register_global_backward(hook, True)


def _register_global(hooks, hook):
    handle = _GlobalHandle(hooks)
    hooks[handle.id] = hook
    note_global_hooks()
    return handle


def _register_global_backward(hook, full):
    global backward_kind
    if backward_kind is (not full):
        raise RuntimeError("Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
                           "Please use only one of them.")
    backward_kind = full
    return _register_global(backward_hooks, hook)


_tap_class = None


def _tap(on_backward, tensors):
    """The same tensors, with on_backward(gradients) called on the way back; what it returns goes on."""
    global _tap_class
    if _tap_class is None:
        class BackwardHookFunction(torch.autograd.Function):
            @staticmethod
            def forward(ctx, on_backward, *tensors):
                ctx.on_backward = on_backward
                ctx.set_materialize_grads(False)
                results = tuple(t.view_as(t) for t in tensors)
                ctx.mark_non_differentiable(*(r for r, t in zip(results, tensors) if not t.requires_grad))
                return results

            @staticmethod
            def backward(ctx, *gradients):
                return (None,) + tuple(ctx.on_backward(gradients))

        _tap_class = BackwardHookFunction
    return _tap_class.apply(on_backward, *tensors)


class BackwardHook:
    """One call's full backward hooks: waits for the gradients of the outputs, then of the inputs, then calls the hooks."""

    def __init__(self, module, hooks):
        self.module, self.hooks = module, hooks
        self.grad_outputs = None
        self.n_inputs, self.input_positions = -1, None
        self.n_outputs, self.output_positions = -1, None

    @staticmethod
    def _spread(gradients, positions, size):
        whole = [None] * size
        for position, gradient in zip(positions, gradients):
            whole[position] = gradient
        return tuple(whole)

    def _put(self, on_backward, values):
        """`values` with their tensors tapped, and the tensors' positions; None when no gradient will pass."""
        positions = [i for i, value in enumerate(values) if isinstance(value, torch.Tensor)]
        tensors = [values[i] for i in positions]
        if not torch.is_grad_enabled() or not any(t.requires_grad for t in tensors):
            return values, None
        values = list(values)
        for position, tapped in zip(positions, _tap(on_backward, tensors)):
            values[position] = tapped
        return tuple(values), positions

    def setup_input_hook(self, args):
        self.n_inputs = len(args)
        args, self.input_positions = self._put(self._inputs_reached, args)
        return args

    def setup_output_hook(self, result):
        single = isinstance(result, torch.Tensor)
        values = (result,) if single else result
        if not isinstance(values, tuple):
            import warnings

            warnings.warn("For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                          f"{type(result)}")
            return result
        self.n_outputs = len(values)
        values, self.output_positions = self._put(self._outputs_reached, values)
        return values[0] if single else values

    def _outputs_reached(self, gradients):
        self.grad_outputs = self._spread(gradients, self.output_positions, self.n_outputs)
        if self.input_positions is None:
            nothing = (None,) * max(self.n_inputs, 0)
            for hook in self.hooks:
                if hook(self.module, nothing, self.grad_outputs) is not None:
                    raise RuntimeError("Backward hook for Modules where no input requires gradient should always return None or "
                                       "None for all gradients.")
            self.grad_outputs = None
        return gradients

    def _inputs_reached(self, gradients):
        if self.grad_outputs is None:
            raise RuntimeError(f"Module backward hook for grad_input is called before the grad_output one. This happens because the "
                               f"gradient in your nn.Module flows to the Module's input without passing through the Module's output. "
                               f"Make sure that the output depends on the input and that the loss is computed based on the output.")
        grad_inputs = self._spread(gradients, self.input_positions, self.n_inputs)
        for hook in self.hooks:
            replaced = hook(self.module, grad_inputs, self.grad_outputs)
            if replaced is None:
                continue
            replaced = replaced if isinstance(replaced, tuple) else (replaced,)
            if len(replaced) != len(grad_inputs):
                raise RuntimeError(f"Backward hook returned an invalid number of grad_input, got {len(replaced)}, but expected "
                                   f"{len(grad_inputs)}")
            grad_inputs = replaced
        self.grad_outputs = None
        return tuple(grad_inputs[i] for i in self.input_positions)
