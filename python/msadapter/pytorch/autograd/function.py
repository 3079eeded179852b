"""autograd.Function: operations with a gradient of the user's own."""

from msadapter import _C


class FunctionCtx(_C.FunctionContext):
    """What forward and backward share; save_for_backward and its kin come from the C class."""

    def save_for_forward(self, *tensors):
        """Keep tensors for jvp."""
        self.saved_for_forward = tensors


class _FunctionMeta(type):
    """Gives each Function class the class of its contexts, named for it as the graph's nodes are."""

    def __init__(cls, name, bases, members):
        super().__init__(name, bases, members)
        if "vjp" in members and "backward" not in members:
            cls.backward = cls.vjp
        elif "backward" in members and "vjp" not in members:
            cls.vjp = cls.backward
        cls._backward_cls = type(name + "Backward", (FunctionCtx,), {"_function_class": cls, "__module__": cls.__module__})


class Function(FunctionCtx, metaclass=_FunctionMeta):
    """Subclass it with static methods forward(ctx, *args) and backward(ctx, *grad_outputs), and call `apply`.

    backward returns a gradient, or None, for each argument of forward.
    """

    def __init__(self, *args, **kwargs):
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
                           "function with static forward method.")

    @staticmethod
    def forward(ctx, *args):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it "
                                  "with backward mode AD.")

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @classmethod
    def apply(cls, *args):
        """Run forward, and record it where an argument wants a gradient."""
        return _C._function_apply(cls, *args)


def once_differentiable(function):
    """Decorates a backward that cannot itself be differentiated: its results have no history."""
    import functools

    @functools.wraps(function)
    def run(ctx, *args):
        before = _C._set_grad_enabled(False)
        try:
            outputs = function(ctx, *args)
        finally:
            _C._set_grad_enabled(before)
        return outputs

    return run
