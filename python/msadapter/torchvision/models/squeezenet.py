"""SqueezeNet (Iandola et al. 2016): fire modules, which squeeze the channels before they expand them."""

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision.models._api import builder, enums

__all__ = ["SqueezeNet", "SqueezeNet1_0_Weights", "SqueezeNet1_1_Weights", "squeezenet1_0", "squeezenet1_1"]

SqueezeNet1_0_Weights, SqueezeNet1_1_Weights = enums("SqueezeNet1_0_Weights", "SqueezeNet1_1_Weights")


class Fire(nn.Module):
    """A 1 x 1 convolution, then 1 x 1 and 3 x 3 ones side by side."""

    def __init__(self, inplanes, squeeze_planes, expand1x1_planes, expand3x3_planes):
        super().__init__()
        self.inplanes = inplanes
        self.squeeze = nn.Conv2d(inplanes, squeeze_planes, kernel_size=1)
        self.squeeze_activation = nn.ReLU(inplace=True)
        self.expand1x1 = nn.Conv2d(squeeze_planes, expand1x1_planes, kernel_size=1)
        self.expand1x1_activation = nn.ReLU(inplace=True)
        self.expand3x3 = nn.Conv2d(squeeze_planes, expand3x3_planes, kernel_size=3, padding=1)
        self.expand3x3_activation = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.squeeze_activation(self.squeeze(x))
        return torch.cat([self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))], 1)


# The width that each fire module squeezes to; None is a pooling.
_FIRES = {"1_0": (None, 16, 16, 32, None, 32, 48, 48, 64, None, 64), "1_1": (None, 16, 16, None, 32, 32, None, 48, 48, 64, 64)}


class SqueezeNet(nn.Module):
    """Pictures (N, 3, H, W) to scores (N, num_classes), without a linear layer. ValueError for versions other than 1_0 and 1_1."""

    def __init__(self, version="1_0", num_classes=1000, dropout=0.5):
        super().__init__()
        if version not in _FIRES:
            raise ValueError(f"Unsupported SqueezeNet version {version}: 1_0 or 1_1 expected")
        self.num_classes = num_classes
        channels, kernel = (96, 7) if version == "1_0" else (64, 3)
        layers = [nn.Conv2d(3, channels, kernel_size=kernel, stride=2), nn.ReLU(inplace=True)]
        for squeeze in _FIRES[version]:
            if squeeze is None:
                layers.append(nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True))
            else:
                layers.append(Fire(channels, squeeze, squeeze * 4, squeeze * 4))
                channels = squeeze * 8
        self.features = nn.Sequential(*layers)
        last = nn.Conv2d(512, num_classes, kernel_size=1)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), last, nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1)))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                if module is last:
                    nn.init.normal_(module.weight, mean=0.0, std=0.01)
                else:
                    nn.init.kaiming_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        return torch.flatten(self.classifier(self.features(x)), 1)


def _version_1_0(**kwargs):
    return SqueezeNet("1_0", **kwargs)


def _version_1_1(**kwargs):
    return SqueezeNet("1_1", **kwargs)


squeezenet1_0 = builder("squeezenet1_0", _version_1_0, SqueezeNet1_0_Weights, "SqueezeNet 1.0.")
squeezenet1_1 = builder("squeezenet1_1", _version_1_1, SqueezeNet1_1_Weights, "SqueezeNet 1.1, with 2.4 times less work.")
