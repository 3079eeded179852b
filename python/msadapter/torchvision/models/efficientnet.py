"""EfficientNet (Tan and Le 2019) and EfficientNet V2 (Tan and Le 2021)."""

import copy
import math
import warnings
from functools import partial

from msadapter.pytorch import nn
from msadapter.torchvision.models import _api
from msadapter.torchvision.models._utils import Classifier, initialise, make_divisible
from msadapter.torchvision.ops.misc import Conv2dNormActivation, SqueezeExcitation
from msadapter.torchvision.ops.stochastic_depth import StochasticDepth

__all__ = ["EfficientNet"]


class MBConv(nn.Module):
    """Channels expanded, convolved one by one, weighted and projected, and the input where the shape stays."""

    def __init__(self, cnf, stochastic_depth_prob, norm_layer, se_layer=SqueezeExcitation):
        super().__init__()
        if cnf.stride not in (1, 2):
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        expanded = cnf.adjust_channels(cnf.input_channels, cnf.expand_ratio)
        layer = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        self.block = nn.Sequential(*self._layers(cnf, expanded, layer, se_layer))
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.out_channels

    @staticmethod
    def _layers(cnf, expanded, layer, se_layer):
        layers = [] if expanded == cnf.input_channels else [layer(cnf.input_channels, expanded, kernel_size=1)]
        layers.append(layer(expanded, expanded, kernel_size=cnf.kernel, stride=cnf.stride, groups=expanded))
        layers.append(se_layer(expanded, max(1, cnf.input_channels // 4), activation=partial(nn.SiLU, inplace=True)))
        return layers + [layer(expanded, cnf.out_channels, kernel_size=1, activation_layer=None)]

    def forward(self, input):
        result = self.block(input)
        if self.use_res_connect:
            result = self.stochastic_depth(result)
            result += input
        return result


class FusedMBConv(MBConv):
    """An MBConv whose expansion and convolution are one, without squeeze and excitation."""

    def __init__(self, cnf, stochastic_depth_prob, norm_layer):
        super().__init__(cnf, stochastic_depth_prob, norm_layer)

    @staticmethod
    def _layers(cnf, expanded, layer, se_layer):
        if expanded == cnf.input_channels:
            return [layer(cnf.input_channels, cnf.out_channels, kernel_size=cnf.kernel, stride=cnf.stride)]
        return [layer(cnf.input_channels, expanded, kernel_size=cnf.kernel, stride=cnf.stride),
                layer(expanded, cnf.out_channels, kernel_size=1, activation_layer=None)]


class _MBConvConfig:
    def __init__(self, expand_ratio, kernel, stride, input_channels, out_channels, num_layers, block):
        self.expand_ratio, self.kernel, self.stride = expand_ratio, kernel, stride
        self.input_channels, self.out_channels, self.num_layers, self.block = input_channels, out_channels, num_layers, block

    @staticmethod
    def adjust_channels(channels, width_mult, min_value=None):
        return make_divisible(channels * width_mult, 8, min_value)


class MBConvConfig(_MBConvConfig):
    """A stage of MBConv blocks."""

    def __init__(self, expand_ratio, kernel, stride, input_channels, out_channels, num_layers, width_mult=1.0, depth_mult=1.0, block=None):
        super().__init__(expand_ratio, kernel, stride, self.adjust_channels(input_channels, width_mult), self.adjust_channels(out_channels, width_mult),
                         int(math.ceil(num_layers * depth_mult)), block or MBConv)


class FusedMBConvConfig(_MBConvConfig):
    """A stage of FusedMBConv blocks."""

    def __init__(self, expand_ratio, kernel, stride, input_channels, out_channels, num_layers, block=None):
        super().__init__(expand_ratio, kernel, stride, input_channels, out_channels, num_layers, block or FusedMBConv)


class EfficientNet(Classifier):
    """Pictures (N, 3, H, W) to scores (N, num_classes). ValueError or TypeError where the setting is no list of stages."""

    def __init__(self, inverted_residual_setting, dropout, stochastic_depth_prob=0.2, num_classes=1000, norm_layer=None, last_channel=None, **kwargs):
        super().__init__()
        if not inverted_residual_setting:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not isinstance(inverted_residual_setting, (list, tuple)) or not all(isinstance(s, _MBConvConfig) for s in inverted_residual_setting):
            raise TypeError("The inverted_residual_setting should be List[MBConvConfig]")
        if kwargs.get("block") is not None:
            warnings.warn("The parameter 'block' is deprecated since 0.13 and will be removed 0.15. "
                          "Please pass this information on 'MBConvConfig.block' instead.")
            for stage in inverted_residual_setting:
                if isinstance(stage, MBConvConfig):
                    stage.block = kwargs["block"]
        norm_layer = norm_layer or nn.BatchNorm2d
        layer = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.SiLU)
        layers = [layer(3, inverted_residual_setting[0].input_channels, kernel_size=3, stride=2)]
        total, done = sum(stage.num_layers for stage in inverted_residual_setting), 0
        for stage in inverted_residual_setting:
            blocks = []
            for i in range(stage.num_layers):
                cnf = copy.copy(stage)
                if i > 0:
                    cnf.input_channels, cnf.stride = cnf.out_channels, 1
                blocks.append(cnf.block(cnf, stochastic_depth_prob * float(done) / total, norm_layer))
                done += 1
            layers.append(nn.Sequential(*blocks))
        width = inverted_residual_setting[-1].out_channels
        last_channel = 4 * width if last_channel is None else last_channel
        layers.append(layer(width, last_channel, kernel_size=1))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(last_channel, num_classes))
        bound = 1.0 / math.sqrt(num_classes)
        initialise(self, lambda weight: nn.init.kaiming_normal_(weight, mode="fan_out"), lambda weight: nn.init.uniform_(weight, -bound, bound))


# expansion, kernel, stride, channels in and out, blocks; stages that begin with 0 are fused ones
_B = ((1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3), (6, 5, 1, 80, 112, 3), (6, 5, 2, 112, 192, 4),
      (6, 3, 1, 192, 320, 1))
_V2 = {
    "s": (((1, 3, 1, 24, 24, 2), (4, 3, 2, 24, 48, 4), (4, 3, 2, 48, 64, 4)),
          ((4, 3, 2, 64, 128, 6), (6, 3, 1, 128, 160, 9), (6, 3, 2, 160, 256, 15))),
    "m": (((1, 3, 1, 24, 24, 3), (4, 3, 2, 24, 48, 5), (4, 3, 2, 48, 80, 5)),
          ((4, 3, 2, 80, 160, 7), (6, 3, 1, 160, 176, 14), (6, 3, 2, 176, 304, 18), (6, 3, 1, 304, 512, 5))),
    "l": (((1, 3, 1, 32, 32, 4), (4, 3, 2, 32, 64, 7), (4, 3, 2, 64, 96, 7)),
          ((4, 3, 2, 96, 192, 10), (6, 3, 1, 192, 224, 19), (6, 3, 2, 224, 384, 25), (6, 3, 1, 384, 640, 7))),
}
_SLOW_NORM = partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
# width, depth, dropout, norm
_SCALES = {"b0": (1.0, 1.0, 0.2, None), "b1": (1.0, 1.1, 0.2, None), "b2": (1.1, 1.2, 0.3, None), "b3": (1.2, 1.4, 0.3, None),
           "b4": (1.4, 1.8, 0.4, None), "b5": (1.6, 2.2, 0.4, _SLOW_NORM), "b6": (1.8, 2.6, 0.5, _SLOW_NORM), "b7": (2.0, 3.1, 0.5, _SLOW_NORM)}


def _maker_b(width, depth, dropout, norm_layer):
    def make(**kwargs):
        setting = [MBConvConfig(*stage, width_mult=width, depth_mult=depth) for stage in _B]
        return EfficientNet(setting, **{"dropout": dropout, "norm_layer": norm_layer, **kwargs})

    return make


def _maker_v2(fused, plain, dropout):
    def make(**kwargs):
        setting = [FusedMBConvConfig(*stage) for stage in fused] + [MBConvConfig(*stage) for stage in plain]
        return EfficientNet(setting, **{"dropout": dropout, "last_channel": 1280, "norm_layer": partial(nn.BatchNorm2d, eps=1e-03), **kwargs})

    return make


_MAKERS = {size: _maker_b(*scale) for size, scale in _SCALES.items()}
_MAKERS.update({f"v2_{size}": _maker_v2(*_V2[size], dropout) for size, dropout in (("s", 0.2), ("m", 0.3), ("l", 0.4))})
for _size, _make in _MAKERS.items():
    _enum = f"EfficientNet_{_size.upper()}_Weights"
    globals()[_enum] = _api.enums(_enum)
    globals()[f"efficientnet_{_size}"] = _api.builder(f"efficientnet_{_size}", _make, globals()[_enum], f"EfficientNet {_size.upper()}.")
    __all__ += [f"efficientnet_{_size}", _enum]
