"""SSDlite (Sandler et al., 2018): SSD on a MobileNet, with convolutions of single channels in its heads."""

from collections import OrderedDict
from functools import partial

from msadapter.pytorch import nn
from msadapter.torchvision.models import _api, mobilenetv3
from msadapter.torchvision.models._utils import strided
from msadapter.torchvision.models.detection import _builders
from msadapter.torchvision.models.detection._utils import draw, retrieve_out_channels
from msadapter.torchvision.models.detection.anchor_utils import DefaultBoxGenerator
from msadapter.torchvision.models.detection.backbone_utils import _validate_trainable_layers, freeze
from msadapter.torchvision.models.detection.ssd import SSD, SSDScoringHead, check_levels
from msadapter.torchvision.ops import Conv2dNormActivation

__all__ = ["SSDLite320_MobileNet_V3_Large_Weights", "ssdlite320_mobilenet_v3_large"]

SSDLite320_MobileNet_V3_Large_Weights = _api.enums("SSDLite320_MobileNet_V3_Large_Weights")

_draw = partial(draw, init=nn.init.normal_, mean=0.0, std=0.03)


def _prediction_block(in_channels, out_channels, kernel_size, norm_layer):
    return nn.Sequential(Conv2dNormActivation(in_channels, in_channels, kernel_size=kernel_size, groups=in_channels, norm_layer=norm_layer,
                                              activation_layer=nn.ReLU6), nn.Conv2d(in_channels, out_channels, 1))


def _extra_block(in_channels, out_channels, norm_layer):
    """A map of half the size."""
    layer, between = partial(Conv2dNormActivation, norm_layer=norm_layer, activation_layer=nn.ReLU6), out_channels // 2
    return nn.Sequential(layer(in_channels, between, kernel_size=1), layer(between, between, kernel_size=3, stride=2, groups=between),
                         layer(between, out_channels, kernel_size=1))


def _blocks(in_channels, num_anchors, columns, norm_layer):
    blocks = nn.ModuleList(_prediction_block(channels, columns * anchors, 3, norm_layer) for channels, anchors in zip(in_channels, num_anchors))
    _draw(blocks)
    return blocks


class SSDLiteClassificationHead(SSDScoringHead):
    """Scores (N, anchors, num_classes)."""

    def __init__(self, in_channels, num_anchors, num_classes, norm_layer):
        super().__init__(_blocks(in_channels, num_anchors, num_classes, norm_layer), num_classes)


class SSDLiteRegressionHead(SSDScoringHead):
    """Offsets (N, anchors, 4)."""

    def __init__(self, in_channels, num_anchors, norm_layer):
        super().__init__(_blocks(in_channels, num_anchors, 4, norm_layer), 4)


class SSDLiteHead(nn.Module):
    """{"bbox_regression": (N, anchors, 4), "cls_logits": (N, anchors, num_classes)} of maps with in_channels each."""

    def __init__(self, in_channels, num_anchors, num_classes, norm_layer):
        super().__init__()
        self.classification_head = SSDLiteClassificationHead(in_channels, num_anchors, num_classes, norm_layer)
        self.regression_head = SSDLiteRegressionHead(in_channels, num_anchors, norm_layer)

    def forward(self, x):
        return {"bbox_regression": self.regression_head(x), "cls_logits": self.classification_head(x)}


class SSDLiteFeatureExtractorMobileNet(nn.Module):
    """What block c4_pos of a MobileNet's features expands, the last map, and four more. ValueError where that block adds its input."""

    def __init__(self, backbone, c4_pos, norm_layer, width_mult=1.0, min_depth=16):
        super().__init__()
        if backbone[c4_pos].use_res_connect:
            raise ValueError("backbone[c4_pos].use_res_connect should be False")
        block = backbone[c4_pos].block
        self.features = nn.Sequential(nn.Sequential(*backbone[:c4_pos], block[0]), nn.Sequential(block[1:], *backbone[c4_pos + 1:]))
        widths = [backbone[-1].out_channels] + [max(min_depth, int(width * width_mult)) for width in (512, 256, 256, 128)]
        self.extra = nn.ModuleList(_extra_block(*pair, norm_layer) for pair in zip(widths, widths[1:]))
        _draw(self.extra)

    def forward(self, x):
        maps = []
        for block in (*self.features, *self.extra):
            x = block(x)
            maps.append(x)
        return OrderedDict((str(i), each) for i, each in enumerate(maps))


def _mobilenet_extractor(backbone, trainable_layers, norm_layer):
    features = backbone.features
    stages = strided(features)
    freeze(features, stages, trainable_layers)
    return SSDLiteFeatureExtractorMobileNet(features, stages[-2], norm_layer)


def _backbone(weights, progress, trained, layers):
    """The function of norm_layer and options that makes the backbone: both are known later."""
    layers = _validate_trainable_layers(trained, layers, 6, 6)

    def make(norm_layer, **options):
        body = mobilenetv3.mobilenet_v3_large(weights=weights, progress=progress, norm_layer=norm_layer, reduced_tail=weights is None, **options)
        if weights is None:
            _draw(body)
        return _mobilenet_extractor(body, layers, norm_layer)

    return make


def _make(num_classes, backbone, norm_layer=None, **kwargs):
    norm_layer = partial(nn.BatchNorm2d, eps=0.001, momentum=0.03) if norm_layer is None else norm_layer
    options = {name: kwargs.pop(name) for name in ("width_mult", "dilated", "dropout", "block") if name in kwargs}
    backbone, size = backbone(norm_layer, **options), (320, 320)
    anchors = DefaultBoxGenerator([[2, 3]] * 6, min_ratio=0.2, max_ratio=0.95)
    channels = retrieve_out_channels(backbone, size)
    check_levels(channels, anchors)
    num_classes = _builders.COCO_CLASSES if num_classes is None else num_classes
    head = SSDLiteHead(channels, anchors.num_anchors_per_location(), num_classes, norm_layer)
    defaults = {"score_thresh": 0.001, "nms_thresh": 0.55, "detections_per_img": 300, "topk_candidates": 300, "image_mean": [0.5] * 3,
                "image_std": [0.5] * 3}
    return SSD(backbone, anchors, size, num_classes, head=head, **{**defaults, **kwargs})


ssdlite320_mobilenet_v3_large = _builders.builder("ssdlite320_mobilenet_v3_large", SSD, _make, SSDLite320_MobileNet_V3_Large_Weights,
                                                  "of 320 x 320 on MobileNet V3", (_backbone, *_builders.MOBILENET), more=("norm_layer",))
