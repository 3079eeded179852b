"""torch.nn: modules, their functions, initial values and helpers."""

from msadapter.pytorch.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter  # noqa: F401
from msadapter.pytorch.nn.modules import *  # noqa: F401,F403
from msadapter.pytorch.nn import functional, init, modules, parallel, parameter, utils  # noqa: F401
from msadapter.pytorch.nn.parallel import DataParallel  # noqa: F401


def factory_kwargs(kwargs):
    """Keyword arguments for making tensors: those in kwargs['factory_kwargs'] and device, dtype and memory_format beside them.

    Raises TypeError for other keys and for one that is in both.
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    expected = simple | {"factory_kwargs"}
    if not kwargs.keys() <= expected:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - expected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for key in simple & kwargs.keys():
        if key in result:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        result[key] = kwargs[key]
    return result
