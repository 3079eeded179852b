"""Parameters: tensors that modules list as theirs, and the lazy kinds whose shape the first forward decides."""

from collections import OrderedDict

from msadapter import _C
from msadapter import pytorch as torch

_Tensor = torch.Tensor


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """What pickles of parameters call."""
    parameter = Parameter(data, requires_grad)
    parameter._backward_hooks = backward_hooks
    return parameter


class Parameter(_Tensor):
    """A tensor that becomes a parameter of the module it is assigned to; shares `data`'s memory.

    Raises TypeError when data is no tensor, RuntimeError when its dtype cannot require a gradient.
    """

    __torch_function__ = _C._disabled_torch_function_impl  # operators on parameters give plain tensors

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = torch.empty(0)
        elif not isinstance(data, _Tensor):
            raise TypeError(f"cannot create a Parameter from {type(data).__name__}: a torch.Tensor is required")
        return _Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(memory_format=torch.preserve_format), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


class UninitializedTensorMixin:
    """A tensor without a shape yet. Little can be asked of it before `materialize`."""

    _allowed = frozenset((
        "bfloat16", "cls_to_become", "copy_", "cpu", "cuda", "data", "detach", "device", "double", "dtype", "float", "grad", "half", "is_complex",
        "is_cuda", "is_floating_point", "is_leaf", "materialize", "requires_grad", "requires_grad_", "shape", "share_memory_", "size",
        "to", "type"))

    def __getattribute__(self, name):
        if name[:2] != "__" and name not in UninitializedTensorMixin._allowed:
            raise ValueError(f"Attempted to use an uninitialized parameter in {name}. This error happens when you are using a "
                             "`LazyModule` or explicitly manipulating `torch.nn.parameter.{}` objects. When using LazyModules Call "
                             "`forward` with a dummy batch to initialize the parameters before calling torch functions".format(
                                 type(self).__name__))
        return super().__getattribute__(name)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in UninitializedTensorMixin._allowed or name in ("__get__", "__set__", "__delete__"):
            return _C._disabled_torch_function_impl(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {name or func}. This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` with a dummy "
            "batch to initialize the parameters before calling torch functions")

    def materialize(self, shape, device=None, dtype=None):
        """Give the tensor memory of this shape (not filled) and make it an ordinary one; device and dtype stay as they are if None."""
        data = torch.empty(shape, device=self.data.device if device is None else device,
                           dtype=self.data.dtype if dtype is None else dtype)
        self.data = data
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when "
            "trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before "
            "accessing their attributes.")

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`.")

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad,)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = result
        return result


def is_lazy(param):
    """Whether a parameter or buffer still waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; `materialize` makes it a Parameter."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return _Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, _Tensor):
    """A buffer whose shape is not known yet; `materialize` makes it a plain tensor."""

    cls_to_become = _Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None):
        return _Tensor._make_subclass(cls, torch.empty(0, device=device, dtype=dtype), requires_grad)
