"""Lazy modules: parameters get their shapes from the first input."""

from msadapter.pytorch.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Put it before a module class whose initialize_parameters(*inputs) materializes its uninitialized parameters."""

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters)
        import warnings

        warnings.warn("Lazy modules are a new feature under heavy development so changes to the API or functionality can happen at any "
                      "moment.")

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Materialize what a state_dict has values for."""
        for name, param in (*self._parameters.items(), *self._buffers.items()):
            value = state_dict.get(prefix + name)
            if value is not None and param is not None and is_lazy(param) and not is_lazy(value):
                param.materialize(value.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Materialize the parameters for these inputs; each lazy class defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether a parameter or buffer still waits for its shape."""
        return any(is_lazy(param) for param in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module, input):
        module.initialize_parameters(*input)
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError("Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
                           "correctly initialize the modules")
