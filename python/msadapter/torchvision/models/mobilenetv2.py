"""MobileNet V2 (Sandler et al. 2018): inverted residuals with linear bottlenecks."""

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision.models._api import builder, enums
from msadapter.torchvision.models._utils import fan_out, initialise, make_divisible, small_normal
from msadapter.torchvision.ops.misc import Conv2dNormActivation

__all__ = ["MobileNetV2", "MobileNet_V2_Weights", "mobilenet_v2"]

MobileNet_V2_Weights = enums("MobileNet_V2_Weights")
# expansion, channels, repetitions, stride
_STAGES = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 3, 2], [6, 64, 4, 2], [6, 96, 3, 1], [6, 160, 3, 2], [6, 320, 1, 1]]


class InvertedResidual(nn.Module):
    """Channels expanded, convolved one by one and projected, and the input where the shape stays."""

    def __init__(self, inp, oup, stride, expand_ratio, norm_layer=None):
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        norm_layer = norm_layer or nn.BatchNorm2d
        self.stride = stride
        self.use_res_connect = stride == 1 and inp == oup
        hidden = int(round(inp * expand_ratio))
        layers = []
        if expand_ratio != 1:
            layers.append(Conv2dNormActivation(inp, hidden, kernel_size=1, norm_layer=norm_layer, activation_layer=nn.ReLU6))
        layers += [Conv2dNormActivation(hidden, hidden, stride=stride, groups=hidden, norm_layer=norm_layer, activation_layer=nn.ReLU6),
                   nn.Conv2d(hidden, oup, 1, 1, 0, bias=False), norm_layer(oup)]
        self.conv = nn.Sequential(*layers)
        self.out_channels = oup
        self._is_cn = stride > 1

    def forward(self, x):
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """Pictures (N, 3, H, W) to scores (N, num_classes), channels multiplied by width_mult and rounded to round_nearest."""

    def __init__(self, num_classes=1000, width_mult=1.0, inverted_residual_setting=None, round_nearest=8, block=None, norm_layer=None, dropout=0.2):
        super().__init__()
        block, norm_layer = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        setting = _STAGES if inverted_residual_setting is None else inverted_residual_setting
        if len(setting) == 0 or len(setting[0]) != 4:
            raise ValueError(f"inverted_residual_setting should be non-empty or a 4-element list, got {setting}")
        channels = make_divisible(32 * width_mult, round_nearest)
        self.last_channel = make_divisible(1280 * max(1.0, width_mult), round_nearest)
        layers = [Conv2dNormActivation(3, channels, stride=2, norm_layer=norm_layer, activation_layer=nn.ReLU6)]
        for expansion, width, repetitions, stride in setting:
            for i in range(repetitions):
                out = make_divisible(width * width_mult, round_nearest)
                layers.append(block(channels, out, stride if i == 0 else 1, expand_ratio=expansion, norm_layer=norm_layer))
                channels = out
        layers.append(Conv2dNormActivation(channels, self.last_channel, kernel_size=1, norm_layer=norm_layer, activation_layer=nn.ReLU6))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(self.last_channel, num_classes))
        initialise(self, fan_out, small_normal)

    def forward(self, x):
        x = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(torch.flatten(x, 1))


mobilenet_v2 = builder("mobilenet_v2", MobileNetV2, MobileNet_V2_Weights, "MobileNet V2.")
