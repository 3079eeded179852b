"""Parametrizations: a parameter computed by modules from another one, at every access."""

import copy
from contextlib import contextmanager

from msadapter import pytorch as torch
from msadapter.pytorch.nn.modules.container import Module, ModuleDict, ModuleList
from msadapter.pytorch.nn.parameter import Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
           "transfer_parametrizations_and_params", "type_before_parametrizations"]

_cache_enabled = 0
_cache = {}


@contextmanager
def cached():
    """Inside, each parametrized tensor is computed once."""
    global _cache, _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache = {}


def _register(module, name, value):
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _maybe_set(destination, source):
    """Make destination's data the source's memory, of whatever shape and dtype."""
    destination.data = source.data


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what they start from: `original`, or original0, original1, ... where the last
    right_inverse gives several.

    Raises ValueError when the shapes, dtypes or memory do not stay what they are, unless `unsafe`.
    """

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with torch.no_grad():
            new = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass  # the tensor stays what it is, as for a module without right_inverse
        if not isinstance(new, torch.Tensor) and not isinstance(new, (list, tuple)):
            raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                             f"{type(new).__name__}")
        self.is_tensor = isinstance(new, torch.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError("When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                                 f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}")
            with torch.no_grad():
                _maybe_set(original, new)
            _register(self, "original", original)
        else:
            for i, tensor in enumerate(new):
                if not isinstance(tensor, torch.Tensor):
                    raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                                     f"Got element {i} of the sequence with type {type(tensor).__name__}.")
                if isinstance(original, Parameter):
                    tensor = Parameter(tensor)
                tensor.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", tensor)
        if not self.unsafe:
            with torch.no_grad():
                result = self()
            self._check_result(result, shape, dtype)

    @staticmethod
    def _check_result(result, shape, dtype):
        if not isinstance(result, torch.Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
        if result.dtype != dtype:
            raise ValueError("Registering a parametrization may not change the dtype of the tensor, unless `unsafe` flag is enabled.\n"
                             f"unparametrized dtype: {dtype}\nparametrized dtype: {result.dtype}")
        if result.shape != shape:
            raise ValueError("Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is enabled.\n"
                             f"unparametrized shape: {shape}\nparametrized shape: {result.shape}")

    def _originals(self):
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value):
        """Change the originals so that the result becomes `value`; what an assignment to the tensor does."""
        with torch.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, torch.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype "
                                     f"{self.original.dtype}")
                _maybe_set(self.original, value)
                return
            if not isinstance(value, (list, tuple)):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length "
                                 f"{len(value)}.")
            for i, tensor in enumerate(value):
                original = getattr(self, f"original{i}")
                if not isinstance(tensor, torch.Tensor):
                    raise ValueError(f"`right_inverse` must return a sequence of tensors. Got element {i} of type {type(tensor).__name__}")
                if original.dtype != tensor.dtype:
                    raise ValueError(f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} while `original{i}` has dtype "
                                     f"{original.dtype}")
                _maybe_set(original, tensor)

    def forward(self):
        modules = iter(self)
        value = next(modules)(*self._originals())
        for module in modules:
            value = module(value)
        return value


def _inject_new_class(module):
    """Give the module a class of its own, to which properties can be added."""
    cls = type(module)

    def default_deepcopy(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        replica = self.__new__(type(self))
        memo[id(self)] = replica
        replica.__dict__ = copy.deepcopy(self.__dict__, memo)
        return replica

    def refuse_pickling(self):
        raise RuntimeError("Serialization of parametrized modules is only supported through state_dict(). See:\n"
                           "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
                           "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training")

    members = {"__getstate__": refuse_pickling}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = default_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module, tensor_name):
    """A property of the module's own class that computes the tensor."""
    def compute(self):
        if not _cache_enabled:
            return self.parametrizations[tensor_name]()
        key = id(self), tensor_name
        tensor = _cache.get(key)
        if tensor is None:
            tensor = _cache[key] = self.parametrizations[tensor_name]()
        return tensor

    def assign(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(compute, assign))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Make module.tensor_name what `parametrization` (a module) makes of it; more than one are applied in order.

    The originals are in module.parametrizations[tensor_name]. Raises ValueError when there is no such tensor, or the result does not fit.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        entry = module.parametrizations[tensor_name]
        if unsafe is False:
            with torch.no_grad():
                before = getattr(module, tensor_name)
                after = parametrization(before)
                ParametrizationList._check_result(after, before.shape, before.dtype)
                if hasattr(parametrization, "right_inverse"):
                    back = parametrization.right_inverse(after)
                    if not isinstance(back, torch.Tensor):
                        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
                    if back.dtype != before.dtype:
                        raise ValueError("The tensor returned by parametrization.right_inverse must have the same dtype as "
                                         f"module.{tensor_name}, unless the `unsafe` flag is enabled.")
        entry.append(parametrization)
        entry.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        entry = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = entry
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    return module


def is_parametrized(module, tensor_name=None):
    """Whether the module (or this tensor of it) is parametrized."""
    entries = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(entries, ModuleDict):
        return False
    return len(entries) > 0 if tensor_name is None else tensor_name in entries


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Take the parametrizations off a tensor, which keeps its computed value, or gets the original's back.

    Raises ValueError when it is not parametrized, or several originals cannot be left.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    entry = module.parametrizations[tensor_name]
    if entry.is_tensor:
        original = entry.original
        if leave_parametrized:
            with torch.no_grad():
                computed = getattr(module, tensor_name)
                try:
                    original.data = computed.data
                except RuntimeError as error:
                    raise RuntimeError("Calling remove_parametrizations() with leave_parametrized=True for a parameter that is an "
                                       "instance of a tensor subclass requires set_() to be implemented correctly") from error
    elif leave_parametrized:
        computed = getattr(module, tensor_name)
        original = Parameter(computed.detach()) if computed.requires_grad else computed
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of "
                         "tensors.")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class the module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Give to_module copies of from_module's parametrizations, of one tensor or of all, and the originals they start from."""
    if not is_parametrized(from_module):
        return to_module
    if not isinstance(to_module, Module):
        raise TypeError("transfer_parametrizations_and_params takes modules")
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    if tensor_name is not None and not is_parametrized(from_module, tensor_name):
        raise ValueError(f"Module {from_module} does not have a parametrization on {tensor_name}")
    for name in names:
        entry = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for parametrization in entry:
            register_parametrization(to_module, name, copy.deepcopy(parametrization))
        target = to_module.parametrizations[name]
        for original in (["original"] if entry.is_tensor else [f"original{i}" for i in range(entry.ntensors)]):
            setattr(target, original, getattr(entry, original))
    return to_module
