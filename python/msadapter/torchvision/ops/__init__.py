"""torchvision.ops."""

from msadapter.torchvision.ops.misc import (MLP, Conv2dNormActivation, Conv3dNormActivation, FrozenBatchNorm2d, Permute,  # noqa: F401
                                           SqueezeExcitation)
from msadapter.torchvision.ops.stochastic_depth import StochasticDepth, stochastic_depth  # noqa: F401
