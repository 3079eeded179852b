"""ConvNeXt (Liu et al. 2022): residual networks in the shape of transformers."""

from functools import partial

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api
from msadapter.torchvision.models._utils import initialise
from msadapter.torchvision.ops.misc import Conv2dNormActivation, Permute
from msadapter.torchvision.ops.stochastic_depth import StochasticDepth

__all__ = ["ConvNeXt"]


class LayerNorm2d(nn.LayerNorm):
    """LayerNorm over the channels of (N, C, H, W)."""

    def forward(self, x):
        return F.layer_norm(x.permute(0, 2, 3, 1), self.normalized_shape, self.weight, self.bias, self.eps).permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """A 7 x 7 convolution of each channel and two linear layers, scaled, and the input."""

    def __init__(self, dim, layer_scale, stochastic_depth_prob, norm_layer=None):
        super().__init__()
        norm_layer = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.block = nn.Sequential(nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim, bias=True), Permute([0, 2, 3, 1]), norm_layer(dim),
                                   nn.Linear(in_features=dim, out_features=4 * dim, bias=True), nn.GELU(),
                                   nn.Linear(in_features=4 * dim, out_features=dim, bias=True), Permute([0, 3, 1, 2]))
        self.layer_scale = nn.Parameter(torch.ones(dim, 1, 1) * layer_scale)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, input):
        return self.stochastic_depth(self.layer_scale * self.block(input)) + input


class CNBlockConfig:
    """A stage of num_layers blocks, and the channels that it is halved to afterwards, if any."""

    def __init__(self, input_channels, out_channels, num_layers):
        self.input_channels, self.out_channels, self.num_layers = input_channels, out_channels, num_layers

    def __repr__(self):
        return f"CNBlockConfig(input_channels={self.input_channels}, out_channels={self.out_channels}, num_layers={self.num_layers})"


class ConvNeXt(nn.Module):
    """Pictures (N, 3, H, W) to scores (N, num_classes). ValueError or TypeError where the setting is no list of CNBlockConfig."""

    def __init__(self, block_setting, stochastic_depth_prob=0.0, layer_scale=1e-6, num_classes=1000, block=None, norm_layer=None, **kwargs):
        super().__init__()
        if not block_setting:
            raise ValueError("The block_setting should not be empty")
        if not isinstance(block_setting, (list, tuple)) or not all(isinstance(s, CNBlockConfig) for s in block_setting):
            raise TypeError("The block_setting should be List[CNBlockConfig]")
        block, norm_layer = block or CNBlock, norm_layer or partial(LayerNorm2d, eps=1e-6)
        layers = [Conv2dNormActivation(3, block_setting[0].input_channels, kernel_size=4, stride=4, padding=0, norm_layer=norm_layer,
                                       activation_layer=None, bias=True)]
        total, done = sum(stage.num_layers for stage in block_setting), 0
        for stage in block_setting:
            blocks = []
            for _ in range(stage.num_layers):
                blocks.append(block(stage.input_channels, layer_scale, stochastic_depth_prob * done / (total - 1.0)))
                done += 1
            layers.append(nn.Sequential(*blocks))
            if stage.out_channels is not None:
                layers.append(nn.Sequential(norm_layer(stage.input_channels), nn.Conv2d(stage.input_channels, stage.out_channels, kernel_size=2, stride=2)))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        width = block_setting[-1].out_channels or block_setting[-1].input_channels
        self.classifier = nn.Sequential(norm_layer(width), nn.Flatten(1), nn.Linear(width, num_classes))
        draw = partial(nn.init.trunc_normal_, std=0.02)
        initialise(self, draw, draw, norms=())

    def forward(self, x):
        return self.classifier(self.avgpool(self.features(x)))


# widths, depths, stochastic depth
_MODELS = {"tiny": ((96, 192, 384, 768), (3, 3, 9, 3), 0.1), "small": ((96, 192, 384, 768), (3, 3, 27, 3), 0.4),
           "base": ((128, 256, 512, 1024), (3, 3, 27, 3), 0.5), "large": ((192, 384, 768, 1536), (3, 3, 27, 3), 0.5)}
for _size, (_widths, _depths, _chance) in _MODELS.items():
    def _make(_widths=_widths, _depths=_depths, _chance=_chance, **kwargs):
        setting = [CNBlockConfig(*stage) for stage in zip(_widths, _widths[1:] + (None,), _depths)]
        return ConvNeXt(setting, **{"stochastic_depth_prob": _chance, **kwargs})

    _enum = f"ConvNeXt_{_size.capitalize()}_Weights"
    globals()[_enum] = _api.enums(_enum)
    globals()[f"convnext_{_size}"] = _api.builder(f"convnext_{_size}", _make, globals()[_enum], f"ConvNeXt, {_size}.")
    __all__ += [f"convnext_{_size}", _enum]
