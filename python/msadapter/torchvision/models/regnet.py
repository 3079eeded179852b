"""RegNet (Radosavovic et al. 2020): widths that grow by one rule of a few numbers."""

import math
from collections import OrderedDict

from msadapter.pytorch import nn
from msadapter.torchvision.models import _api
from msadapter.torchvision.models._utils import initialise, make_divisible, small_normal
from msadapter.torchvision.ops.misc import Conv2dNormActivation, SqueezeExcitation

__all__ = ["RegNet"]


class SimpleStemIN(Conv2dNormActivation):
    """A 3 x 3 convolution of stride 2, norm and activation."""

    def __init__(self, width_in, width_out, norm_layer, activation_layer):
        super().__init__(width_in, width_out, kernel_size=3, stride=2, norm_layer=norm_layer, activation_layer=activation_layer)


class BottleneckTransform(nn.Sequential):
    """1 x 1, grouped 3 x 3, weighting where se_ratio is given, 1 x 1."""

    def __init__(self, width_in, width_out, stride, norm_layer, activation_layer, group_width, bottleneck_multiplier, se_ratio):
        width = int(round(width_out * bottleneck_multiplier))
        layers = OrderedDict()
        layers["a"] = Conv2dNormActivation(width_in, width, kernel_size=1, stride=1, norm_layer=norm_layer, activation_layer=activation_layer)
        layers["b"] = Conv2dNormActivation(width, width, kernel_size=3, stride=stride, groups=width // group_width, norm_layer=norm_layer,
                                           activation_layer=activation_layer)
        if se_ratio:
            layers["se"] = SqueezeExcitation(input_channels=width, squeeze_channels=int(round(se_ratio * width_in)), activation=activation_layer)
        layers["c"] = Conv2dNormActivation(width, width_out, kernel_size=1, stride=1, norm_layer=norm_layer, activation_layer=None)
        super().__init__(layers)


class ResBottleneckBlock(nn.Module):
    """The bottleneck transform and its input, projected where the shape changes."""

    def __init__(self, width_in, width_out, stride, norm_layer, activation_layer, group_width=1, bottleneck_multiplier=1.0, se_ratio=None):
        super().__init__()
        self.proj = None
        if width_in != width_out or stride != 1:
            self.proj = Conv2dNormActivation(width_in, width_out, kernel_size=1, stride=stride, norm_layer=norm_layer, activation_layer=None)
        self.f = BottleneckTransform(width_in, width_out, stride, norm_layer, activation_layer, group_width, bottleneck_multiplier, se_ratio)
        self.activation = activation_layer(inplace=True)

    def forward(self, x):
        return self.activation((x if self.proj is None else self.proj(x)) + self.f(x))


class BlockParams:
    """Depths, widths, group widths, bottleneck multipliers and strides of the stages."""

    def __init__(self, depths, widths, group_widths, bottleneck_multipliers, strides, se_ratio=None):
        self.depths, self.widths, self.group_widths = depths, widths, group_widths
        self.bottleneck_multipliers, self.strides, self.se_ratio = bottleneck_multipliers, strides, se_ratio

    @classmethod
    def from_init_params(cls, depth, w_0, w_a, w_m, group_width, bottleneck_multiplier=1.0, se_ratio=None, **kwargs):
        """The stages of `depth` blocks whose widths grow as w_0 + w_a * i, quantised to w_0 * w_m^k and multiples of 8."""
        if w_a < 0 or w_0 <= 0 or w_m <= 1 or w_0 % 8 != 0:
            raise ValueError("Invalid RegNet settings")
        steps = [round(math.log((i * w_a + w_0) / w_0) / math.log(w_m)) for i in range(depth)]
        blocks = [int(round(w_0 * w_m**k / 8) * 8) for k in steps]
        widths = sorted(set(blocks), key=blocks.index)
        depths = [blocks.count(width) for width in widths]
        groups, fitting = [], []
        for width in widths:  # each bottleneck a multiple of its groups' width
            narrow = int(width * bottleneck_multiplier)
            group = min(group_width, narrow)
            groups.append(group)
            fitting.append(int(make_divisible(narrow, group) / bottleneck_multiplier))
        n = len(widths)
        return cls(depths, fitting, groups, [bottleneck_multiplier] * n, [2] * n, se_ratio)

    def stages(self):
        return zip(self.widths, self.strides, self.depths, self.group_widths, self.bottleneck_multipliers)


class RegNet(nn.Module):
    """Pictures (N, 3, H, W) to scores (N, num_classes)."""

    def __init__(self, block_params, num_classes=1000, stem_width=32, stem_type=None, block_type=None, norm_layer=None, activation=None):
        super().__init__()
        norm_layer, activation, block_type = norm_layer or nn.BatchNorm2d, activation or nn.ReLU, block_type or ResBottleneckBlock
        self.stem = (stem_type or SimpleStemIN)(3, stem_width, norm_layer, activation)
        stages, before = OrderedDict(), stem_width
        for i, (width, stride, depth, group_width, multiplier) in enumerate(block_params.stages(), 1):
            blocks = OrderedDict()
            for j in range(depth):
                blocks[f"block{i}-{j}"] = block_type(before, width, stride if j == 0 else 1, norm_layer, activation, group_width, multiplier,
                                                     block_params.se_ratio)
                before = width
            stages[f"block{i}"] = nn.Sequential(blocks)
        self.trunk_output = nn.Sequential(stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(in_features=before, out_features=num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                fan = module.kernel_size[0] * module.kernel_size[1] * module.out_channels
                nn.init.normal_(module.weight, mean=0.0, std=math.sqrt(2.0 / fan))
        initialise(self, None, small_normal, norms=nn.BatchNorm2d)

    def forward(self, x):
        return self.fc(self.avgpool(self.trunk_output(self.stem(x))).flatten(start_dim=1))


# depth, w_0, w_a, w_m, group width; Y has squeeze and excitation
_MODELS = {
    "y_400mf": (16, 48, 27.89, 2.09, 8), "y_800mf": (14, 56, 38.84, 2.4, 16), "y_1_6gf": (27, 48, 20.71, 2.65, 24), "y_3_2gf": (21, 80, 42.63, 2.66, 24),
    "y_8gf": (17, 192, 76.82, 2.19, 56), "y_16gf": (18, 200, 106.23, 2.48, 112), "y_32gf": (20, 232, 115.89, 2.53, 232),
    "y_128gf": (27, 456, 160.83, 2.52, 264), "x_400mf": (22, 24, 24.48, 2.54, 16), "x_800mf": (16, 56, 35.73, 2.28, 16),
    "x_1_6gf": (18, 80, 34.01, 2.25, 24), "x_3_2gf": (25, 88, 26.31, 2.25, 48), "x_8gf": (23, 80, 49.56, 2.88, 120), "x_16gf": (22, 216, 55.59, 2.1, 128),
    "x_32gf": (23, 320, 69.86, 2.0, 168),
}
_DEFAULTS = {"y_128gf": "IMAGENET1K_SWAG_E2E_V1"}
for _size, _rule in _MODELS.items():
    def _make(_rule=_rule, _se=0.25 if _size.startswith("y") else None, **kwargs):
        norm_layer = kwargs.pop("norm_layer", None) or (lambda channels: nn.BatchNorm2d(channels, eps=1e-05, momentum=0.1))
        return RegNet(BlockParams.from_init_params(*_rule, se_ratio=_se), norm_layer=norm_layer, **kwargs)

    _enum = f"RegNet_{_size.upper()}_Weights"
    globals()[_enum] = _api.enums(_enum)
    globals()[f"regnet_{_size}"] = _api.builder(f"regnet_{_size}", _make, globals()[_enum], f"RegNet {_size.upper().replace('_', '-', 1).replace('_', '.')}.",
                                                default=_DEFAULTS.get(_size, "IMAGENET1K_V1"))
    __all__ += [f"regnet_{_size}", _enum]
