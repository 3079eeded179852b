"""nn.Module: a container of parameters, buffers and submodules whose call runs forward and the hooks around it.

The call itself and attribute lookup are C (`_C.ModuleBase`); saving and loading are in _state.py, hooks in _hooks.py.
"""

from collections import OrderedDict

from msadapter import _C
from msadapter import pytorch as torch
from msadapter.pytorch.nn.modules import _hooks
from msadapter.pytorch.nn.modules._bprop import forward_with_bprop
from msadapter.pytorch.nn.modules._hooks import (register_module_backward_hook, register_module_forward_hook,  # noqa: F401
                                                 register_module_forward_pre_hook, register_module_full_backward_hook)
from msadapter.pytorch.nn.modules._state import _EXTRA_STATE_KEY_SUFFIX, _IncompatibleKeys, StateMixin  # noqa: F401
from msadapter.pytorch.nn.parameter import Parameter, is_lazy

__all__ = ["Module", "register_module_backward_hook", "register_module_forward_hook", "register_module_forward_pre_hook",
           "register_module_full_backward_hook"]

_Tensor = torch.Tensor
# The tables of every module, in the order in which torch makes them; pickles of modules interchange through these names.
_TABLES = ("_parameters", "_buffers", "_non_persistent_buffers_set", "_backward_hooks", "_is_full_backward_hook", "_forward_hooks",
           "_forward_pre_hooks", "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_modules")


def _new_table(name):
    return set() if name == "_non_persistent_buffers_set" else None if name == "_is_full_backward_hook" else OrderedDict()


def _type_name(value):
    """The full name of a value's type, as messages show it."""
    kind = type(value)
    if isinstance(value, _Tensor):
        return value.type()
    return kind.__name__ if kind.__module__ in ("builtins", None) else f"{kind.__module__}.{kind.__qualname__}"


def _addindent(text, spaces):
    """All lines but the first moved to the right."""
    return ("\n" + " " * spaces).join(text.split("\n"))


def _parse_to(device=None, dtype=None, non_blocking=False, *, memory_format=None, tensor=None):
    """(device, dtype, non_blocking, memory_format) out of the arguments of Module.to, positional in torch's three ways."""
    if isinstance(device, _Tensor) or tensor is not None:
        other = device if tensor is None else tensor
        if isinstance(dtype, bool):
            non_blocking = dtype
        return other.device, other.dtype, non_blocking, memory_format
    if isinstance(device, torch.dtype):
        if isinstance(dtype, bool):
            non_blocking = dtype
        device, dtype = None, device
    if device is not None and not isinstance(device, torch.device):
        device = torch.device(device)
    if dtype is not None and not isinstance(dtype, torch.dtype):
        raise TypeError(f"to() received an invalid combination of arguments: dtype is {_type_name(dtype)}")
    return device, dtype, non_blocking, memory_format


class Module(StateMixin, _C.ModuleBase):
    """The base of all networks: subclass it, make the parts in __init__ after super().__init__(), compute in forward.

    A subclass that defines bprop(self, *inputs, out, grad_output) gives its own gradients for its inputs.
    """

    dump_patches = False
    _version = 1

    def __init__(self):
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = OrderedDict()
        own["_buffers"] = OrderedDict()
        own["_non_persistent_buffers_set"] = set()
        own["_backward_hooks"] = OrderedDict()
        own["_is_full_backward_hook"] = None
        own["_forward_hooks"] = OrderedDict()
        own["_forward_pre_hooks"] = OrderedDict()
        own["_state_dict_hooks"] = OrderedDict()
        own["_load_state_dict_pre_hooks"] = OrderedDict()
        own["_load_state_dict_post_hooks"] = OrderedDict()
        own["_modules"] = OrderedDict()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if hasattr(cls, "bprop") and ("forward" in cls.__dict__ or "bprop" in cls.__dict__):
            cls.forward = forward_with_bprop(cls.forward)

    def __getnewargs__(self):
        return ()  # the C part has nothing to pickle

    def forward(self, *input):
        """What the module computes; subclasses define it."""
        raise NotImplementedError(f"Module [{type(self).__name__}] is missing the required \"forward\" function")

    # Calling with hooks: the C base comes here only when there are some.

    def _call_with_hooks(self, *input, **kwargs):
        full, legacy = self._get_backward_hooks()
        for hook in (*_hooks.forward_pre_hooks.values(), *self._forward_pre_hooks.values()):
            replaced = hook(self, input)
            if replaced is not None:
                input = replaced if isinstance(replaced, tuple) else (replaced,)
        tap = None
        if full:
            tap = _hooks.BackwardHook(self, full)
            input = tap.setup_input_hook(input)
        result = self.forward(*input, **kwargs)
        for hook in (*_hooks.forward_hooks.values(), *self._forward_hooks.values()):
            replaced = hook(self, input, result)
            if replaced is not None:
                result = replaced
        if tap:
            result = tap.setup_output_hook(result)
        if legacy:
            self._attach_legacy_hooks(result, legacy)
        return result

    def _get_backward_hooks(self):
        """The full backward hooks and the old kind that apply to this module."""
        full, legacy = [], []
        if _hooks.backward_kind is True:
            full += _hooks.backward_hooks.values()
        if self._is_full_backward_hook is True:
            full += self._backward_hooks.values()
        if _hooks.backward_kind is False:
            legacy += _hooks.backward_hooks.values()
        if self._is_full_backward_hook is False:
            legacy += self._backward_hooks.values()
        return full, legacy

    def _attach_legacy_hooks(self, result, hooks):
        import functools

        while not isinstance(result, _Tensor):
            result = next(v for v in result.values() if isinstance(v, _Tensor)) if isinstance(result, dict) else result[0]
        if result.grad_fn is not None:
            for hook in hooks:
                result.grad_fn.register_hook(functools.partial(hook, self))

    def register_forward_pre_hook(self, hook):
        """Call hook(module, inputs) before forward; what it returns replaces the inputs."""
        return _hooks.register(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook):
        """Call hook(module, inputs, output) after forward; what it returns replaces the output."""
        return _hooks.register(self._forward_hooks, hook)

    def register_backward_hook(self, hook):
        """The old backward hook: sees the gradients of the module's last node only."""
        if self._is_full_backward_hook is True:
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module. "
                               "Please use only one of them.")
        self._is_full_backward_hook = False
        return _hooks.register(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook):
        """Call hook(module, grad_input, grad_output) once the inputs' gradients are known; what it returns replaces grad_input."""
        if self._is_full_backward_hook is False:
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module. "
                               "Please use only one of them.")
        self._is_full_backward_hook = True
        return _hooks.register(self._backward_hooks, hook)

    # Registering parts.

    def _check_new_name(self, name, kind, table):
        if table not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
        if "." in name:
            raise KeyError(f"{kind} name can't contain \".\"" + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f"{kind} name can't be empty string \"\"")
        if hasattr(self, name) and name not in self.__dict__[table]:
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor that moves with the module and, if persistent, is saved with it, but is not trained."""
        self._check_new_name(name, "buffer", "_buffers")
        if tensor is not None and not isinstance(tensor, _Tensor):
            raise TypeError(f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Add a parameter (or the place of one, with None)."""
        self._check_new_name(name, "parameter", "_parameters")
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{_type_name(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)")
        if not param.is_leaf:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                             f"express '{name}' as a function of another Tensor, compute the value in the forward() method.")
        self._parameters[name] = param

    def add_module(self, name, module):
        """Add a submodule (or the place of one, with None)."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        self._check_new_name(name, "module", "_modules")
        self._modules[name] = module

    def register_module(self, name, module):
        """The same as add_module."""
        self.add_module(name, module)

    def __setattr__(self, name, value):
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name)
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            if name in own["_parameters"]:
                raise TypeError(f"cannot assign '{_type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)")
            self._forget(name, module=True)
            own["_modules"][name] = value
        elif "_parameters" not in own:
            object.__setattr__(self, name, value)
        elif name in own["_parameters"]:
            if value is not None:
                raise TypeError(f"cannot assign '{_type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)")
            own["_parameters"][name] = None
        elif name in own["_modules"]:
            if value is not None:
                raise TypeError(f"cannot assign '{_type_name(value)}' as child module '{name}' (torch.nn.Module or None expected)")
            own["_modules"][name] = None
        elif name in own["_buffers"]:
            if value is not None and not isinstance(value, _Tensor):
                raise TypeError(f"cannot assign '{_type_name(value)}' as buffer '{name}' (torch.Tensor or None expected)")
            own["_buffers"][name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name, module=False):
        """Take a name out of everything that a parameter (or a module) of that name would hide; an old module keeps its place."""
        own = self.__dict__
        own.pop(name, None)
        own["_buffers"].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)
        if not module:
            own["_modules"].pop(name, None)

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _TABLES:  # modules pickled by older versions lack some
            if name not in self.__dict__:
                self.__dict__[name] = _new_table(name)
        self.__dict__.setdefault("training", True)

    # Finding parts.

    def get_submodule(self, target):
        """The submodule at a dotted path; '' is the module itself. Raises AttributeError when there is none."""
        found = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{found._get_name()} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found

    def _get_member(self, target, check, message):
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        found = getattr(owner, name)
        if not check(owner, name, found):
            raise AttributeError(f"`{name}` is not {message}")
        return found

    def get_parameter(self, target):
        """The parameter at a dotted path. Raises AttributeError when there is none."""
        return self._get_member(target, lambda owner, name, found: isinstance(found, Parameter), "an nn.Parameter")

    def get_buffer(self, target):
        """The buffer at a dotted path. Raises AttributeError when there is none."""
        return self._get_member(target, lambda owner, name, found: name in owner._buffers, "a buffer")

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield path + ("." if path else "") + name, value

    def parameters(self, recurse=True):
        """All parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """(dotted name, parameter) pairs."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """(dotted name, buffer) pairs."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self):
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """(name, submodule) pairs of the direct submodules."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self):
        """This module and everything below, each once."""
        for _, module in self.named_modules():
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """(dotted path, module) pairs of this module and everything below."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    # Changing all parts.

    def apply(self, fn):
        """Call fn(module) on everything below, then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn):
        for module in self.children():
            module._apply(fn)
        with torch.no_grad():
            for parameter in self._parameters.values():
                if parameter is None:
                    continue
                gradient = parameter.grad
                parameter.data = fn(parameter.data)  # the object stays: optimizers hold it
                if gradient is not None:
                    parameter.grad = fn(gradient).requires_grad_(gradient.requires_grad)
            for name, buffer in self._buffers.items():
                if is_lazy(buffer):
                    buffer.data = fn(buffer.data)
                elif buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """Move (device), convert (a floating dtype) or lay out (memory_format) parameters and buffers, in place."""
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")

        def convert(tensor):
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            if memory_format is not None and tensor.dim() in (4, 5):
                return tensor.to(device, wanted, non_blocking, memory_format=memory_format)
            return tensor.to(device, wanted, non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device):
        """Parameters and buffers of the same shapes on `device`, their values lost."""
        return self._apply(lambda tensor: torch.empty_like(tensor, device=device))

    def cuda(self, device=None):
        """Move everything to the accelerator."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def cpu(self):
        """Move everything to the CPU."""
        return self._apply(lambda tensor: tensor.cpu())

    def ipu(self, device=None):
        """Move everything to an IPU; raises what Tensor.to raises for a device that is not there."""
        return self._apply(lambda tensor: tensor.to("ipu" if device is None else device))

    def xpu(self, device=None):
        """Move everything to an XPU; raises what Tensor.to raises for a device that is not there."""
        return self._apply(lambda tensor: tensor.to("xpu" if device is None else device))

    def type(self, dst_type):
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self):
        """Convert the floating ones to float32."""
        return self._apply(lambda tensor: tensor.float() if tensor.is_floating_point() else tensor)

    def double(self):
        """Convert the floating ones to float64."""
        return self._apply(lambda tensor: tensor.double() if tensor.is_floating_point() else tensor)

    def half(self):
        """Convert the floating ones to float16."""
        return self._apply(lambda tensor: tensor.half() if tensor.is_floating_point() else tensor)

    def bfloat16(self):
        """Convert the floating ones to bfloat16."""
        return self._apply(lambda tensor: tensor.bfloat16() if tensor.is_floating_point() else tensor)

    def share_memory(self):
        """Put all parameters and buffers into memory that processes share. Raises RuntimeError while some have no shape yet."""
        for tensor in (*self.parameters(), *self.buffers()):
            if is_lazy(tensor):
                tensor.share_memory_()
        return self._apply(lambda tensor: tensor.share_memory_())

    def train(self, mode=True):
        """Training mode on or off, here and below. Raises ValueError when mode is no bool."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Training mode off."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Whether all parameters require gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=False):
        """Set all gradients to zero, or to None."""
        for parameter in self.parameters():
            gradient = parameter.grad
            if gradient is None:
                continue
            if set_to_none:
                parameter.grad = None
                continue
            if gradient.grad_fn is not None:
                gradient.detach_()
            else:
                gradient.requires_grad_(False)
            gradient.zero_()

    # Printing.

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What repr shows between the brackets; subclasses define it."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): " + _addindent(repr(module), 2) for name, module in self._modules.items()]
        if len(extra_lines) == 1 and not child_lines:
            inside = extra_lines[0]
        elif extra_lines or child_lines:
            inside = "\n  " + "\n  ".join(extra_lines + child_lines) + "\n"
        else:
            inside = ""
        return f"{self._get_name()}({inside})"

    def __dir__(self):
        names = dir(type(self)) + list(self.__dict__) + list(self._parameters) + list(self._modules) + list(self._buffers)
        return sorted(name for name in names if not name[0].isdigit())

    def _replicate_for_data_parallel(self):
        """A shallow copy with tables of its own."""
        replica = self.__new__(type(self))
        replica.__dict__.update(self.__dict__)
        for table in ("_parameters", "_buffers", "_modules"):
            replica.__dict__[table] = self.__dict__[table].copy()
        return replica
