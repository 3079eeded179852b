"""torch.nn.utils: gradient clipping, reparametrisations, packing of sequences and other helpers."""

from msadapter.pytorch.nn.utils import clip_grad, rnn  # noqa: F401
from msadapter.pytorch.nn.utils.clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_  # noqa: F401
from msadapter.pytorch.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters  # noqa: F401
from msadapter.pytorch.nn.utils.fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights  # noqa: F401
from msadapter.pytorch.nn.utils.init import skip_init  # noqa: F401
from msadapter.pytorch.nn.utils.memory_format import convert_conv2d_weight_memory_format  # noqa: F401
from msadapter.pytorch.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm  # noqa: F401
from msadapter.pytorch.nn.utils.weight_norm import remove_weight_norm, weight_norm  # noqa: F401

_LATER = ("parametrizations", "parametrize", "prune", "stateless")  # imported when they are first asked for


def __getattr__(name):
    if name in _LATER:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
