"""ResNet (He et al. 2016), ResNeXt (Xie et al. 2017) and wide ResNets (Zagoruyko and Komodakis 2016)."""

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision.models import _api
from msadapter.torchvision.models._utils import fan_out, initialise

__all__ = ["ResNet"]


def conv3x3(in_planes, out_planes, stride=1, groups=1, dilation=1):
    """A 3 x 3 convolution that keeps the size, without bias."""
    return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=dilation, groups=groups, bias=False, dilation=dilation)


def conv1x1(in_planes, out_planes, stride=1):
    """A 1 x 1 convolution without bias."""
    return nn.Conv2d(in_planes, out_planes, kernel_size=1, stride=stride, bias=False)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and the input."""

    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1, norm_layer=None):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 (where the stride is) and 1 x 1 convolutions and the input."""

    expansion = 4

    def __init__(self, inplanes, planes, stride=1, downsample=None, groups=1, base_width=64, dilation=1, norm_layer=None):
        super().__init__()
        norm_layer = norm_layer or nn.BatchNorm2d
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(out)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """Four stages of blocks on pictures (N, 3, H, W): scores (N, num_classes). ValueError unless replace_stride_with_dilation has three parts."""

    def __init__(self, block, layers, num_classes=1000, zero_init_residual=False, groups=1, width_per_group=64,
                 replace_stride_with_dilation=None, norm_layer=None):
        super().__init__()
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes, self.dilation = 64, 1
        dilate = [False, False, False] if replace_stride_with_dilation is None else replace_stride_with_dilation
        if len(dilate) != 3:
            raise ValueError(f"replace_stride_with_dilation should be None or a 3-element tuple, got {dilate}")
        self.groups, self.base_width = groups, width_per_group
        self.conv1 = nn.Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(self.inplanes)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], stride=2, dilate=dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], stride=2, dilate=dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], stride=2, dilate=dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        initialise(self, fan_out)
        if zero_init_residual:  # each block starts as the identity (Goyal et al. 2017)
            for module in self.modules():
                last = "bn3" if isinstance(module, Bottleneck) else "bn2" if isinstance(module, BasicBlock) else None
                if last is not None and getattr(module, last).weight is not None:
                    nn.init.zeros_(getattr(module, last).weight)

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        previous_dilation = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(conv1x1(self.inplanes, planes * block.expansion, stride), self._norm_layer(planes * block.expansion))
        layers = [block(self.inplanes, planes, stride, downsample, self.groups, self.base_width, previous_dilation, self._norm_layer)]
        self.inplanes = planes * block.expansion
        for _ in range(1, blocks):
            layers.append(block(self.inplanes, planes, groups=self.groups, base_width=self.base_width, dilation=self.dilation,
                                norm_layer=self._norm_layer))
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


# name -> (enum, block, layers, groups, width of a group)
_MODELS = {
    "resnet18": ("ResNet18_Weights", BasicBlock, (2, 2, 2, 2), 1, 64),
    "resnet34": ("ResNet34_Weights", BasicBlock, (3, 4, 6, 3), 1, 64),
    "resnet50": ("ResNet50_Weights", Bottleneck, (3, 4, 6, 3), 1, 64),
    "resnet101": ("ResNet101_Weights", Bottleneck, (3, 4, 23, 3), 1, 64),
    "resnet152": ("ResNet152_Weights", Bottleneck, (3, 8, 36, 3), 1, 64),
    "resnext50_32x4d": ("ResNeXt50_32X4D_Weights", Bottleneck, (3, 4, 6, 3), 32, 4),
    "resnext101_32x8d": ("ResNeXt101_32X8D_Weights", Bottleneck, (3, 4, 23, 3), 32, 8),
    "resnext101_64x4d": ("ResNeXt101_64X4D_Weights", Bottleneck, (3, 4, 23, 3), 64, 4),
    "wide_resnet50_2": ("Wide_ResNet50_2_Weights", Bottleneck, (3, 4, 6, 3), 1, 128),
    "wide_resnet101_2": ("Wide_ResNet101_2_Weights", Bottleneck, (3, 4, 23, 3), 1, 128),
}


def _sizes(groups, width):
    def prepare(kwargs, weights):
        for name, value in (("groups", groups), ("width_per_group", width)):
            if name in kwargs and (groups, width) != (1, 64):
                _api.override(kwargs, name, value)

    return prepare


for _name, (_enum, _block, _layers, _groups, _width) in _MODELS.items():
    globals()[_enum] = _api.enums(_enum)

    def _make(_block=_block, _layers=_layers, _groups=_groups, _width=_width, **kwargs):
        return ResNet(_block, list(_layers), **{"groups": _groups, "width_per_group": _width, **kwargs})

    globals()[_name] = _api.builder(_name, _make, globals()[_enum], f"{_name}: a ResNet with {_layers} blocks.", prepare=_sizes(_groups, _width))
    __all__ += [_name, _enum]
