"""VGG (Simonyan and Zisserman 2015): towers of 3 x 3 convolutions."""

from msadapter.pytorch import nn
from msadapter.torchvision.models import _api
from msadapter.torchvision.models._utils import Classifier, fan_out, initialise, small_normal

_DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_WIDTHS = (64, 128, 256, 512, 512)

__all__ = ["VGG"]


class VGG(Classifier):
    """features, pooled to 7 x 7, and three linear layers: scores (N, num_classes)."""

    def __init__(self, features, num_classes=1000, init_weights=True, dropout=0.5):
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(nn.Linear(512 * 7 * 7, 4096), nn.ReLU(True), nn.Dropout(p=dropout), nn.Linear(4096, 4096), nn.ReLU(True),
                                        nn.Dropout(p=dropout), nn.Linear(4096, num_classes))
        if init_weights:
            initialise(self, fan_out, small_normal, norms=nn.BatchNorm2d)


def _tower(depths, batch_norm):
    layers, channels = [], 3
    for depth, width in zip(depths, _WIDTHS):
        for _ in range(depth):
            layers.append(nn.Conv2d(channels, width, kernel_size=3, padding=1))
            layers += [nn.BatchNorm2d(width)] if batch_norm else []
            layers.append(nn.ReLU(inplace=True))
            channels = width
        layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
    return nn.Sequential(*layers)


def _maker(depths, batch_norm):
    def make(**kwargs):
        return VGG(_tower(depths, batch_norm), **kwargs)

    return make


def _no_drawing(kwargs, weights):
    if weights is not None:
        kwargs["init_weights"] = False


for _n, _depths in _DEPTHS.items():
    for _suffix, _norm in (("", False), ("_bn", True)):
        _name, _enum = f"vgg{_n}{_suffix}", f"VGG{_n}{_suffix.upper()}_Weights"
        globals()[_enum] = _api.enums(_enum)
        globals()[_name] = _api.builder(_name, _maker(_depths, _norm), globals()[_enum],
                                        f"VGG with {_n} layers{', batch normalised' if _norm else ''}.", prepare=_no_drawing)
        __all__ += [_name, _enum]
