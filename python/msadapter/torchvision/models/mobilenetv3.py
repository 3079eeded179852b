"""MobileNet V3 (Howard et al. 2019): inverted residuals with squeeze and excitation and hard activations."""

from functools import partial

from msadapter.pytorch import nn
from msadapter.torchvision.models import _api
from msadapter.torchvision.models._utils import Classifier, fan_out, initialise, make_divisible, small_normal
from msadapter.torchvision.ops.misc import Conv2dNormActivation, SqueezeExcitation

__all__ = ["MobileNetV3"]


class InvertedResidualConfig:
    """One block: activation is "RE" or "HS", channels are multiplied by width_mult."""

    def __init__(self, input_channels, kernel, expanded_channels, out_channels, use_se, activation, stride, dilation, width_mult):
        self.input_channels = self.adjust_channels(input_channels, width_mult)
        self.kernel = kernel
        self.expanded_channels = self.adjust_channels(expanded_channels, width_mult)
        self.out_channels = self.adjust_channels(out_channels, width_mult)
        self.use_se, self.use_hs = use_se, activation == "HS"
        self.stride, self.dilation = stride, dilation

    @staticmethod
    def adjust_channels(channels, width_mult):
        return make_divisible(channels * width_mult, 8)


class InvertedResidual(nn.Module):
    """Channels expanded, convolved one by one, weighted and projected, and the input where the shape stays."""

    def __init__(self, cnf, norm_layer, se_layer=partial(SqueezeExcitation, scale_activation=nn.Hardsigmoid)):
        super().__init__()
        if cnf.stride not in (1, 2):
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        layer = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.Hardswish if cnf.use_hs else nn.ReLU)
        layers = []
        if cnf.expanded_channels != cnf.input_channels:
            layers.append(layer(cnf.input_channels, cnf.expanded_channels, kernel_size=1))
        layers.append(layer(cnf.expanded_channels, cnf.expanded_channels, kernel_size=cnf.kernel, stride=1 if cnf.dilation > 1 else cnf.stride,
                            dilation=cnf.dilation, groups=cnf.expanded_channels))
        if cnf.use_se:
            layers.append(se_layer(cnf.expanded_channels, make_divisible(cnf.expanded_channels // 4, 8)))
        layers.append(layer(cnf.expanded_channels, cnf.out_channels, kernel_size=1, activation_layer=None))
        self.block = nn.Sequential(*layers)
        self.out_channels = cnf.out_channels
        self._is_cn = cnf.stride > 1

    def forward(self, input):
        result = self.block(input)
        if self.use_res_connect:
            result += input
        return result


class MobileNetV3(Classifier):
    """Pictures (N, 3, H, W) to scores (N, num_classes). ValueError or TypeError where the setting is no list of InvertedResidualConfig."""

    def __init__(self, inverted_residual_setting, last_channel, num_classes=1000, block=None, norm_layer=None, dropout=0.2, **kwargs):
        super().__init__()
        if not inverted_residual_setting:
            raise ValueError("The inverted_residual_setting should not be empty")
        if not isinstance(inverted_residual_setting, (list, tuple)) or not all(isinstance(s, InvertedResidualConfig) for s in inverted_residual_setting):
            raise TypeError("The inverted_residual_setting should be List[InvertedResidualConfig]")
        block = block or InvertedResidual
        norm_layer = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        last = inverted_residual_setting[-1].out_channels
        layer = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.Hardswish)
        layers = [layer(3, inverted_residual_setting[0].input_channels, kernel_size=3, stride=2)]
        layers += [block(cnf, norm_layer) for cnf in inverted_residual_setting]
        layers.append(layer(last, 6 * last, kernel_size=1))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Linear(6 * last, last_channel), nn.Hardswish(inplace=True), nn.Dropout(p=dropout, inplace=True),
                                        nn.Linear(last_channel, num_classes))
        initialise(self, fan_out, small_normal)


# kernel, expanded channels, channels, squeeze and excitation, activation, stride; the last three are the tail
_BLOCKS = {
    "large": ((3, 16, 16, False, "RE", 1), (3, 64, 24, False, "RE", 2), (3, 72, 24, False, "RE", 1), (5, 72, 40, True, "RE", 2),
              (5, 120, 40, True, "RE", 1), (5, 120, 40, True, "RE", 1), (3, 240, 80, False, "HS", 2), (3, 200, 80, False, "HS", 1),
              (3, 184, 80, False, "HS", 1), (3, 184, 80, False, "HS", 1), (3, 480, 112, True, "HS", 1), (3, 672, 112, True, "HS", 1),
              (5, 672, 160, True, "HS", 2), (5, 960, 160, True, "HS", 1), (5, 960, 160, True, "HS", 1)),
    "small": ((3, 16, 16, True, "RE", 2), (3, 72, 24, False, "RE", 2), (3, 88, 24, False, "RE", 1), (5, 96, 40, True, "HS", 2),
              (5, 240, 40, True, "HS", 1), (5, 240, 40, True, "HS", 1), (5, 120, 48, True, "HS", 1), (5, 144, 48, True, "HS", 1),
              (5, 288, 96, True, "HS", 2), (5, 576, 96, True, "HS", 1), (5, 576, 96, True, "HS", 1)),
}
_LAST = {"large": 1280, "small": 1024}


def _setting(size, width_mult=1.0, reduced_tail=False, dilated=False):
    """The blocks and the width before the last layer; the tail at half width, or dilated instead of strided."""
    divider, dilation = 2 if reduced_tail else 1, 2 if dilated else 1
    blocks, channels, tail = [], 16, len(_BLOCKS[size]) - 3
    for i, (kernel, expanded, out, se, activation, stride) in enumerate(_BLOCKS[size]):
        if i >= tail:
            out //= divider
            expanded //= divider if i > tail else 1
        blocks.append(InvertedResidualConfig(channels, kernel, expanded, out, se, activation, stride, dilation if i >= tail else 1, width_mult))
        channels = out
    return blocks, InvertedResidualConfig.adjust_channels(_LAST[size] // divider, width_mult)


for _size in _BLOCKS:
    def _make(_size=_size, width_mult=1.0, reduced_tail=False, dilated=False, **kwargs):
        return MobileNetV3(*_setting(_size, width_mult, reduced_tail, dilated), **kwargs)

    _enum = f"MobileNet_V3_{_size.capitalize()}_Weights"
    globals()[_enum] = _api.enums(_enum)
    globals()[f"mobilenet_v3_{_size}"] = _api.builder(f"mobilenet_v3_{_size}", _make, globals()[_enum], f"MobileNet V3, {_size}.")
    __all__ += [f"mobilenet_v3_{_size}", _enum]
