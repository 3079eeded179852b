"""torch.nn.parallel on a machine with one device: DataParallel calls its module."""

from msadapter.pytorch.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


def _check_devices(name, device_ids):
    if device_ids is not None and len(device_ids) > 1:
        raise NotImplementedError(f"{name}: argument 'device_ids' with more than one device is not implemented")


class DataParallel(Module):
    """Calls `module` on the only device there is. Raises NotImplementedError for more devices."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        _check_devices("DataParallel", device_ids)
        self.dim = dim
        self.module = module
        self.device_ids = [] if device_ids is None else list(device_ids)
        self.output_device = output_device

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Call `module` on the only device there is. Raises NotImplementedError for more devices."""
    _check_devices("data_parallel", device_ids)
    if not isinstance(inputs, tuple):
        inputs = (inputs,) if inputs is not None else ()
    return module(*inputs, **(module_kwargs or {}))
