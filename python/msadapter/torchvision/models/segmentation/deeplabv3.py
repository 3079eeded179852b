"""DeepLab v3 (Chen et al. 2017): dilated convolutions of several rates side by side."""

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models._api import enums
from msadapter.torchvision.models.segmentation._utils import SegmentationModel, builder

__all__ = ["DeepLabV3", "DeepLabV3_ResNet50_Weights", "DeepLabV3_ResNet101_Weights", "DeepLabV3_MobileNet_V3_Large_Weights",
           "deeplabv3_resnet50", "deeplabv3_resnet101", "deeplabv3_mobilenet_v3_large"]

DeepLabV3_ResNet50_Weights, DeepLabV3_ResNet101_Weights, DeepLabV3_MobileNet_V3_Large_Weights = enums(
    "DeepLabV3_ResNet50_Weights", "DeepLabV3_ResNet101_Weights", "DeepLabV3_MobileNet_V3_Large_Weights")


class DeepLabV3(SegmentationModel):
    """A backbone and a DeepLabHead."""


def _layer(in_channels, out_channels, kernel, **options):
    return [nn.Conv2d(in_channels, out_channels, kernel, bias=False, **options), nn.BatchNorm2d(out_channels), nn.ReLU()]


class ASPPPooling(nn.Sequential):
    """The mean over the picture, convolved, at every place."""

    def __init__(self, in_channels, out_channels):
        super().__init__(nn.AdaptiveAvgPool2d(1), *_layer(in_channels, out_channels, 1))

    def forward(self, x):
        return F.interpolate(super().forward(x), size=x.shape[-2:], mode="bilinear", align_corners=False)


class ASPP(nn.Module):
    """Convolutions with the dilations atrous_rates, a 1 x 1 one and the mean, side by side, projected to out_channels."""

    def __init__(self, in_channels, atrous_rates, out_channels=256):
        super().__init__()
        branches = [nn.Sequential(*_layer(in_channels, out_channels, 1))]
        branches += [nn.Sequential(*_layer(in_channels, out_channels, 3, padding=rate, dilation=rate)) for rate in atrous_rates]
        self.convs = nn.ModuleList(branches + [ASPPPooling(in_channels, out_channels)])
        self.project = nn.Sequential(*_layer(len(self.convs) * out_channels, out_channels, 1), nn.Dropout(0.5))

    def forward(self, x):
        return self.project(torch.cat([conv(x) for conv in self.convs], dim=1))


class DeepLabHead(nn.Sequential):
    """ASPP, a 3 x 3 convolution, the scores."""

    def __init__(self, in_channels, num_classes):
        super().__init__(ASPP(in_channels, [12, 24, 36]), *_layer(256, 256, 3, padding=1), nn.Conv2d(256, num_classes, 1))


deeplabv3_resnet50 = builder("deeplabv3", DeepLabV3, DeepLabHead, "resnet50", DeepLabV3_ResNet50_Weights)
deeplabv3_resnet101 = builder("deeplabv3", DeepLabV3, DeepLabHead, "resnet101", DeepLabV3_ResNet101_Weights)
deeplabv3_mobilenet_v3_large = builder("deeplabv3", DeepLabV3, DeepLabHead, "mobilenet_v3_large", DeepLabV3_MobileNet_V3_Large_Weights)
