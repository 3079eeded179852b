"""Lite reduced ASPP (Howard et al. 2019): segmentation on MobileNet V3."""

from collections import OrderedDict

from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api
from msadapter.torchvision.models._utils import IntermediateLayerGetter, strided
from msadapter.torchvision.models.segmentation._utils import BACKBONES

__all__ = ["LRASPP", "LRASPP_MobileNet_V3_Large_Weights", "lraspp_mobilenet_v3_large"]

LRASPP_MobileNet_V3_Large_Weights = _api.enums("LRASPP_MobileNet_V3_Large_Weights")


class LRASPPHead(nn.Module):
    """Scores of the low features and of the high ones, weighted by their mean."""

    def __init__(self, low_channels, high_channels, num_classes, inter_channels):
        super().__init__()
        self.cbr = nn.Sequential(nn.Conv2d(high_channels, inter_channels, 1, bias=False), nn.BatchNorm2d(inter_channels), nn.ReLU(inplace=True))
        self.scale = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(high_channels, inter_channels, 1, bias=False), nn.Sigmoid())
        self.low_classifier = nn.Conv2d(low_channels, num_classes, 1)
        self.high_classifier = nn.Conv2d(inter_channels, num_classes, 1)

    def forward(self, input):
        low, high = input["low"], input["high"]
        x = F.interpolate(self.cbr(high) * self.scale(high), size=low.shape[-2:], mode="bilinear", align_corners=False)
        return self.low_classifier(low) + self.high_classifier(x)


class LRASPP(nn.Module):
    """A backbone of {"low", "high"} and an LRASPPHead: pictures (N, 3, H, W) to {"out": (N, num_classes, H, W)}."""

    def __init__(self, backbone, low_channels, high_channels, num_classes, inter_channels=128):
        super().__init__()
        self.backbone = backbone
        self.classifier = LRASPPHead(low_channels, high_channels, num_classes, inter_channels)

    def forward(self, input):
        out = self.classifier(self.backbone(input))
        return OrderedDict(out=F.interpolate(out, size=input.shape[-2:], mode="bilinear", align_corners=False))


def _make(num_classes=None, aux_loss=False, weights_backbone=None, progress=True):
    if aux_loss:
        raise NotImplementedError("lraspp_mobilenet_v3_large: aux_loss: this model does not use an auxiliary loss")
    _, make, arguments = BACKBONES["mobilenet_v3_large"]
    features = make(weights=weights_backbone, progress=progress, **arguments).features
    places = strided(features)
    low, high = places[-4], places[-1]
    backbone = IntermediateLayerGetter(features, {str(low): "low", str(high): "high"})
    return LRASPP(backbone, features[low].out_channels, features[high].out_channels, 21 if num_classes is None else num_classes)


lraspp_mobilenet_v3_large = _api.builder("lraspp_mobilenet_v3_large", _make, LRASPP_MobileNet_V3_Large_Weights, "LRASPP on MobileNet V3, large.",
                                         default="COCO_WITH_VOC_LABELS_V1", backbone=(BACKBONES["mobilenet_v3_large"][0], "IMAGENET1K_V1"))
