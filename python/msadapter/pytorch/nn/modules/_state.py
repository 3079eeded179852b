"""Saving and loading of modules: state_dict, load_state_dict and their hooks, as a part of nn.Module."""

from collections import OrderedDict, namedtuple

from msadapter import pytorch as torch
from msadapter.pytorch.nn.modules import _hooks
from msadapter.pytorch.nn.parameter import is_lazy

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict returns: the keys that were missing and those nobody asked for."""

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _quoted(keys):
    return ", ".join(f'"{key}"' for key in keys)


class StateMixin:
    """The saving and loading half of nn.Module."""

    def get_extra_state(self):
        """What a module saves beside its tensors; subclasses define it together with set_extra_state."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state):
        """The other half of get_extra_state."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _has(self, method):
        return getattr(type(self), method) is not getattr(StateMixin, method)

    # Saving.

    def _register_state_dict_hook(self, hook):
        return _hooks.register(self._state_dict_hooks, hook)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars or is_lazy(parameter) else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars or is_lazy(buffer) else buffer.detach()
        if self._has("get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """An OrderedDict of dotted names to all parameters and persistent buffers, sharing their memory (detached, unless keep_vars)."""
        if args:
            import warnings

            warnings.warn("Positional args are being deprecated, use kwargs instead. Refer to "
                          "https://pytorch.org/docs/master/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.")
            if destination is None:
                destination = args[0]
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, local_metadata)
            if replaced is not None:
                destination = replaced
        return destination

    # Loading.

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        if with_module:
            import functools

            hook = functools.partial(hook, self)
        return _hooks.register(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook):
        """Call hook(module, incompatible_keys) after load_state_dict; it may change the two lists, and returns nothing."""
        return _hooks.register(self._load_state_dict_post_hooks, hook)

    @staticmethod
    def _copy_loaded(key, value, target, error_msgs):
        """Copy one value of a state_dict into a parameter or buffer, or add what is wrong with it."""
        if not isinstance(value, torch.Tensor):
            error_msgs.append(f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
                              f"but received {type(value)}")
            return
        lazy = is_lazy(target)
        if not lazy and target.dim() == 0 and value.dim() == 1:
            value = value[0]  # PyTorch 0.3 had no 0-dim tensors
        if not lazy and value.shape != target.shape:
            error_msgs.append(f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current "
                              f"model is {target.shape}.")
            return
        try:
            with torch.no_grad():
                target.copy_(value)
        except Exception as error:
            error_msgs.append(f'While copying the parameter named "{key}", whose dimensions in the model are {target.size()} and whose '
                              f"dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}.")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Load this module's own tensors (not its submodules'); modules with older formats override it."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = {name: value for name, value in self._parameters.items() if value is not None}
        own.update((name, value) for name, value in self._buffers.items()
                   if value is not None and name not in self._non_persistent_buffers_set)
        for name, target in own.items():
            key = prefix + name
            if key in state_dict:
                self._copy_loaded(key, state_dict[key], target, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._has("set_extra_state"):
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    name = key[len(prefix):].split(".", 1)[0]
                    if name not in self._modules and name not in own:
                        unexpected_keys.append(key)

    def load_state_dict(self, state_dict, strict=True):
        """Copy the values of a state_dict into this module and everything below; returns (missing_keys, unexpected_keys).

        Raises RuntimeError for shapes that differ, and with strict for keys that are missing or not expected.
        """
        if not hasattr(state_dict, "keys"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys, unexpected_keys, error_msgs = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, entries, prefix=""):
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            module._load_from_state_dict(entries, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs)
            for name, child in module._modules.items():
                if child is not None:
                    below = prefix + name + "."
                    load(child, {k: v for k, v in entries.items() if k.startswith(below)}, below)
            incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError("Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                                         "values, if incompatible_keys need to be modified, it should be done inplace.")

        load(self, state_dict)
        if strict:
            if unexpected_keys:
                error_msgs.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected_keys)}. ")
            if missing_keys:
                error_msgs.insert(0, f"Missing key(s) in state_dict: {_quoted(missing_keys)}. ")
        if error_msgs:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(error_msgs)))
        return _IncompatibleKeys(missing_keys, unexpected_keys)
