"""ResNets for video (Tran et al. 2018): convolutions over time and space, mixed, or one after the other."""

from msadapter.pytorch import nn
from msadapter.torchvision.models import _api
from msadapter.torchvision.models._utils import fan_out, initialise, small_normal

__all__ = ["VideoResNet"]


class Conv3DSimple(nn.Conv3d):
    """3 x 3 x 3."""

    def __init__(self, in_planes, out_planes, midplanes=None, stride=1, padding=1):
        super().__init__(in_planes, out_planes, kernel_size=(3, 3, 3), stride=stride, padding=padding, bias=False)

    @staticmethod
    def get_downsample_stride(stride):
        return stride, stride, stride


class Conv2Plus1D(nn.Sequential):
    """1 x 3 x 3 to midplanes, then 3 x 1 x 1."""

    def __init__(self, in_planes, out_planes, midplanes, stride=1, padding=1):
        super().__init__(nn.Conv3d(in_planes, midplanes, kernel_size=(1, 3, 3), stride=(1, stride, stride), padding=(0, padding, padding), bias=False),
                         nn.BatchNorm3d(midplanes), nn.ReLU(inplace=True),
                         nn.Conv3d(midplanes, out_planes, kernel_size=(3, 1, 1), stride=(stride, 1, 1), padding=(padding, 0, 0), bias=False))

    get_downsample_stride = staticmethod(Conv3DSimple.get_downsample_stride)


class Conv3DNoTemporal(nn.Conv3d):
    """1 x 3 x 3."""

    def __init__(self, in_planes, out_planes, midplanes=None, stride=1, padding=1):
        super().__init__(in_planes, out_planes, kernel_size=(1, 3, 3), stride=(1, stride, stride), padding=(0, padding, padding), bias=False)

    @staticmethod
    def get_downsample_stride(stride):
        return 1, stride, stride


class BasicBlock(nn.Module):
    """Two convolutions and the input."""

    expansion = 1

    def __init__(self, inplanes, planes, conv_builder, stride=1, downsample=None):
        super().__init__()
        middle = (inplanes * planes * 27) // (inplanes * 9 + 3 * planes)  # as many parameters as a 3 x 3 x 3 convolution
        self.conv1 = nn.Sequential(conv_builder(inplanes, planes, middle, stride), nn.BatchNorm3d(planes), nn.ReLU(inplace=True))
        self.conv2 = nn.Sequential(conv_builder(planes, planes, middle), nn.BatchNorm3d(planes))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        out = self.conv2(self.conv1(x))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class BasicStem(nn.Sequential):
    """One convolution, norm and ReLU."""

    def __init__(self):
        super().__init__(nn.Conv3d(3, 64, kernel_size=(3, 7, 7), stride=(1, 2, 2), padding=(1, 3, 3), bias=False), nn.BatchNorm3d(64), nn.ReLU(inplace=True))


class R2Plus1dStem(nn.Sequential):
    """A convolution over space and one over time."""

    def __init__(self):
        super().__init__(nn.Conv3d(3, 45, kernel_size=(1, 7, 7), stride=(1, 2, 2), padding=(0, 3, 3), bias=False), nn.BatchNorm3d(45), nn.ReLU(inplace=True),
                         nn.Conv3d(45, 64, kernel_size=(3, 1, 1), stride=(1, 1, 1), padding=(1, 0, 0), bias=False), nn.BatchNorm3d(64), nn.ReLU(inplace=True))


class VideoResNet(nn.Module):
    """Clips (N, 3, T, H, W) to scores (N, num_classes); conv_makers make the convolutions of the four stages."""

    def __init__(self, block, conv_makers, layers, stem, num_classes=400, zero_init_residual=False):
        super().__init__()
        self.inplanes = 64
        self.stem = stem()
        for i, (maker, planes, depth) in enumerate(zip(conv_makers, (64, 128, 256, 512), layers), 1):
            setattr(self, f"layer{i}", self._make_layer(block, maker, planes, depth, stride=1 if i == 1 else 2))
        self.avgpool = nn.AdaptiveAvgPool3d((1, 1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        initialise(self, fan_out, small_normal, norms=nn.BatchNorm3d, convs=nn.Conv3d)
        if zero_init_residual:
            for module in self.modules():
                if isinstance(module, BasicBlock):
                    nn.init.zeros_(module.conv2[1].weight)

    def _make_layer(self, block, conv_builder, planes, blocks, stride=1):
        downsample = None
        width = planes * block.expansion
        if stride != 1 or self.inplanes != width:
            downsample = nn.Sequential(nn.Conv3d(self.inplanes, width, kernel_size=1, stride=conv_builder.get_downsample_stride(stride), bias=False),
                                       nn.BatchNorm3d(width))
        layers = [block(self.inplanes, planes, conv_builder, stride, downsample)]
        self.inplanes = width
        return nn.Sequential(*layers, *[block(width, planes, conv_builder) for _ in range(1, blocks)])

    def forward(self, x):
        x = self.layer4(self.layer3(self.layer2(self.layer1(self.stem(x)))))
        return self.fc(self.avgpool(x).flatten(1))


_MODELS = {"r3d_18": ("R3D_18_Weights", [Conv3DSimple] * 4, BasicStem), "mc3_18": ("MC3_18_Weights", [Conv3DSimple] + [Conv3DNoTemporal] * 3, BasicStem),
           "r2plus1d_18": ("R2Plus1D_18_Weights", [Conv2Plus1D] * 4, R2Plus1dStem)}
for _name, (_enum, _makers, _stem) in _MODELS.items():
    def _make(_makers=_makers, _stem=_stem, **kwargs):
        return VideoResNet(BasicBlock, _makers, [2, 2, 2, 2], _stem, **kwargs)

    globals()[_enum] = _api.enums(_enum)
    globals()[_name] = _api.builder(_name, _make, globals()[_enum], f"The video ResNet {_name}.", default="KINETICS400_V1")
    __all__ += [_name, _enum]
