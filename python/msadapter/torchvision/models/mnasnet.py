"""MNASNet (Tan et al. 2019), the B1 variant."""

import warnings

from msadapter.pytorch import nn
from msadapter.torchvision.models import _api
from msadapter.torchvision.models._utils import fan_out, initialise, make_divisible

__all__ = ["MNASNet"]

_MOMENTUM = 1 - 0.9997  # the original's counts from the other side
# kernel, stride, expansion, repetitions
_STACKS = ((3, 2, 3, 3), (5, 2, 3, 3), (5, 2, 6, 3), (3, 1, 6, 2), (5, 2, 6, 4), (3, 1, 6, 1))


class _InvertedResidual(nn.Module):
    def __init__(self, in_ch, out_ch, kernel_size, stride, expansion_factor, bn_momentum=0.1):
        super().__init__()
        if stride not in (1, 2):
            raise ValueError(f"stride should be 1 or 2 instead of {stride}")
        if kernel_size not in (3, 5):
            raise ValueError(f"kernel_size should be 3 or 5 instead of {kernel_size}")
        mid = in_ch * expansion_factor
        self.apply_residual = in_ch == out_ch and stride == 1
        self.layers = nn.Sequential(
            nn.Conv2d(in_ch, mid, 1, bias=False), nn.BatchNorm2d(mid, momentum=bn_momentum), nn.ReLU(inplace=True),
            nn.Conv2d(mid, mid, kernel_size, padding=kernel_size // 2, stride=stride, groups=mid, bias=False),
            nn.BatchNorm2d(mid, momentum=bn_momentum), nn.ReLU(inplace=True),
            nn.Conv2d(mid, out_ch, 1, bias=False), nn.BatchNorm2d(out_ch, momentum=bn_momentum))

    def forward(self, input):
        return self.layers(input) + input if self.apply_residual else self.layers(input)


def _stack(in_ch, out_ch, kernel_size, stride, expansion, repetitions):
    return nn.Sequential(*[_InvertedResidual(in_ch if i == 0 else out_ch, out_ch, kernel_size, stride if i == 0 else 1, expansion, _MOMENTUM)
                           for i in range(repetitions)])


def _stem(first, second):
    return [nn.Conv2d(3, first, 3, padding=1, stride=2, bias=False), nn.BatchNorm2d(first, momentum=_MOMENTUM), nn.ReLU(inplace=True),
            nn.Conv2d(first, first, 3, padding=1, stride=1, groups=first, bias=False), nn.BatchNorm2d(first, momentum=_MOMENTUM),
            nn.ReLU(inplace=True), nn.Conv2d(first, second, 1, padding=0, stride=1, bias=False), nn.BatchNorm2d(second, momentum=_MOMENTUM)]


class MNASNet(nn.Module):
    """Pictures (N, 3, H, W) to scores (N, num_classes), channels multiplied by alpha."""

    _version = 2

    def __init__(self, alpha, num_classes=1000, dropout=0.2):
        super().__init__()
        if alpha <= 0.0:
            raise ValueError(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha, self.num_classes = alpha, num_classes
        depths = [make_divisible(depth * alpha, 8) for depth in (32, 16, 24, 40, 80, 96, 192, 320)]
        layers = _stem(*depths[:2])
        layers += [_stack(before, after, *stack) for before, after, stack in zip(depths[1:], depths[2:], _STACKS)]
        layers += [nn.Conv2d(depths[-1], 1280, 1, padding=0, stride=1, bias=False), nn.BatchNorm2d(1280, momentum=_MOMENTUM), nn.ReLU(inplace=True)]
        self.layers = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(p=dropout, inplace=True), nn.Linear(1280, num_classes))
        initialise(self, fan_out, lambda weight: nn.init.kaiming_uniform_(weight, mode="fan_out", nonlinearity="sigmoid"), norms=nn.BatchNorm2d)

    def forward(self, x):
        return self.classifier(self.layers(x).mean([2, 3]))

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        version = local_metadata.get("version", None)
        if version not in (1, 2):
            raise ValueError(f"version should be set to 1 or 2 instead of {version}")
        if version == 1 and self.alpha != 1.0:  # whose stem was not multiplied by alpha
            stem = _stem(32, 16) + [_stack(16, make_divisible(24 * self.alpha, 8), *_STACKS[0])]
            for i, layer in enumerate(stem):
                self.layers[i] = layer
            self._version = 1
            warnings.warn("MNASNet: a checkpoint of the model's first version was loaded, whose stem is wider. It works as before.", UserWarning)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


for _alpha in ("0_5", "0_75", "1_0", "1_3"):
    def _make(_alpha=_alpha, **kwargs):
        return MNASNet(float(_alpha.replace("_", ".")), **kwargs)

    globals()[f"MNASNet{_alpha}_Weights"] = _api.enums(f"MNASNet{_alpha}_Weights")
    globals()[f"mnasnet{_alpha}"] = _api.builder(f"mnasnet{_alpha}", _make, globals()[f"MNASNet{_alpha}_Weights"],
                                                 f"MNASNet with {_alpha.replace('_', '.')} times the channels.")
    __all__ += [f"mnasnet{_alpha}", f"MNASNet{_alpha}_Weights"]
