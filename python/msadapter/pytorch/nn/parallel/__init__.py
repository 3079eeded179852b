"""torch.nn.parallel for machines with one device: inputs are split and results joined as asked, the parts run one after the other."""

from msadapter import pytorch as torch
from msadapter.pytorch.nn.modules.module import Module
from msadapter.pytorch.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]


def _refuse_several(name, device_ids):
    if device_ids is not None and len(device_ids) > 1:
        raise NotImplementedError(f"{name}: argument 'device_ids' with more than one device is not implemented")


class DataParallel(Module):
    """Calls `module` on the only device there is. Raises NotImplementedError for more devices."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        _refuse_several("DataParallel", device_ids)
        self.dim = dim
        self.module = module
        self.device_ids = [] if device_ids is None else list(device_ids)
        self.output_device = output_device

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Call `module` on the only device there is. Raises NotImplementedError for more devices."""
    _refuse_several("data_parallel", device_ids)
    if not isinstance(inputs, tuple):
        inputs = (inputs,) if inputs is not None else ()
    return module(*inputs, **(module_kwargs or {}))


def scatter(inputs, target_gpus, dim=0):
    """Tensors, in tuples, lists and dictionaries too, split along dim into one part for each device; other objects go to all."""
    if isinstance(inputs, torch.Tensor):
        return tuple(part.to(device) for part, device in zip(inputs.chunk(len(target_gpus), dim), target_gpus))
    if isinstance(inputs, (tuple, list)) and len(inputs) > 0:
        parts = list(zip(*(scatter(item, target_gpus, dim) for item in inputs)))
        if isinstance(inputs, tuple) and hasattr(inputs, "_fields"):
            return [type(inputs)(*part) for part in parts]
        return [type(inputs)(part) for part in parts]
    if isinstance(inputs, dict) and len(inputs) > 0:
        return [type(inputs)(part) for part in zip(*([(key, item) for item in scatter(value, target_gpus, dim)] for key, value in inputs.items()))]
    return [inputs for _ in target_gpus]


def gather(outputs, target_device, dim=0):
    """The parts, tensors or tuples, lists or dictionaries of them, joined along dim on target_device."""
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        parts = [part.view(1) if part.dim() == 0 else part for part in outputs]
        return torch.cat([part.to(target_device) for part in parts], 0 if first.dim() == 0 else dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(part) == len(first) for part in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([part[key] for part in outputs], target_device, dim)) for key in first)
    joined = [gather(parts, target_device, dim) for parts in zip(*outputs)]
    return type(first)(*joined) if hasattr(first, "_fields") else type(first)(joined)


def replicate(network, devices, detach=False):
    """As many modules as devices with the parameters of `network` (detached, if wanted); one device, one memory."""
    def copy_of(module, known):
        if module in known:
            return known[module]
        replica = known[module] = module._replicate_for_data_parallel()
        for table in ("_parameters", "_buffers"):
            values = replica.__dict__[table]
            for name, value in values.items():
                if value is not None and detach:
                    values[name] = value.detach()
        for name, child in module._modules.items():
            replica._modules[name] = None if child is None else copy_of(child, known)
        return replica

    return [copy_of(network, {}) for _ in devices]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """The result of each module on its inputs, one after the other."""
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    if kwargs_tup is None:
        kwargs_tup = ({},) * len(modules)
    if devices is not None and len(devices) != len(modules):
        raise AssertionError("The number of devices is not equal to the number of modules")
    return [module(*(given if isinstance(given, (list, tuple)) else (given,)), **kwargs)
            for module, given, kwargs in zip(modules, inputs, kwargs_tup)]
