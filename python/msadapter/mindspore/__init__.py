"""MindSpore's names over msadapter's tensors, for scripts written in its functional style."""

from msadapter import pytorch as _torch
from msadapter.mindspore import amp, context, ops
from msadapter.mindspore.common import Parameter, Tensor, dtype_names, get_seed, set_seed
from msadapter.mindspore.context import GRAPH_MODE, PYNATIVE_MODE, get_context, set_context

# Other libraries that only ask whether mindspore is there can tell this one apart.
__version__ = "0 (msadapter compatibility)"

globals().update(dtype_names)

grad = ops.grad
value_and_grad = ops.value_and_grad

__all__ = ["GRAPH_MODE", "PYNATIVE_MODE", "Parameter", "Tensor", "amp", "context", "get_context", "get_seed", "grad", "ops",
           "set_context", "set_seed", "value_and_grad", *dtype_names]
