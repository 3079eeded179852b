"""Mask R-CNN (He et al., 2017): Faster R-CNN with a mask of each region."""

from collections import OrderedDict

from msadapter.pytorch import nn
from msadapter.torchvision.models import _api
from msadapter.torchvision.models.detection import _builders
from msadapter.torchvision.models.detection._utils import draw
from msadapter.torchvision.models.detection.faster_rcnn import FasterRCNN, check_channels, check_type, extended, pyramid_pool, second_version
from msadapter.torchvision.ops import Conv2dNormActivation, MultiScaleRoIAlign

__all__ = ["MaskRCNN", "MaskRCNN_ResNet50_FPN_Weights", "MaskRCNN_ResNet50_FPN_V2_Weights", "maskrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn_v2"]

MaskRCNN_ResNet50_FPN_Weights, MaskRCNN_ResNet50_FPN_V2_Weights = _api.enums(*__all__[1:3])


class MaskRCNN(FasterRCNN):
    """FasterRCNN with mask_roi_pool, mask_head and mask_predictor; settings are FasterRCNN's.

    Targets have "masks" (N, H, W) too, detections "masks" (N, 1, H, W) of probabilities. ValueError where num_classes and mask_predictor are given.
    """

    def __init__(self, backbone, num_classes=None, *settings, mask_roi_pool=None, mask_head=None, mask_predictor=None, **kwargs):
        check_type("mask_roi_pool", mask_roi_pool, MultiScaleRoIAlign)
        check_channels(backbone)
        if num_classes is not None and mask_predictor is not None:
            raise ValueError("num_classes should be None when mask_predictor is specified")
        mask_roi_pool = pyramid_pool(14) if mask_roi_pool is None else mask_roi_pool
        mask_head = MaskRCNNHeads(backbone.out_channels, (256,) * 4, 1) if mask_head is None else mask_head
        mask_predictor = MaskRCNNPredictor(256, 256, num_classes) if mask_predictor is None else mask_predictor
        super().__init__(backbone, num_classes, *settings, **kwargs)
        self.roi_heads.mask_roi_pool, self.roi_heads.mask_head, self.roi_heads.mask_predictor = mask_roi_pool, mask_head, mask_predictor

    __init__.__signature__ = extended("mask_roi_pool", "mask_head", "mask_predictor")


class MaskRCNNHeads(nn.Sequential):
    """Convolutions to the channels in `layers`."""

    _version = 2

    def __init__(self, in_channels, layers, dilation, norm_layer=None):
        blocks = []
        for channels in layers:
            blocks.append(Conv2dNormActivation(in_channels, channels, kernel_size=3, padding=dilation, dilation=dilation, norm_layer=norm_layer))
            in_channels = channels
        super().__init__(*blocks)
        draw(self, nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        if (local_metadata.get("version") or 1) < 2:  # convolutions were bare, with names
            for i in range(len(self)):
                for name in ("weight", "bias"):
                    if f"{prefix}mask_fcn{i + 1}.{name}" in state_dict:
                        state_dict[f"{prefix}{i}.0.{name}"] = state_dict.pop(f"{prefix}mask_fcn{i + 1}.{name}")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class MaskRCNNPredictor(nn.Sequential):
    """Masks of twice the size for each class: (N, in_channels, M, M) to (N, num_classes, 2 * M, 2 * M)."""

    def __init__(self, in_channels, dim_reduced, num_classes):
        super().__init__(OrderedDict(conv5_mask=nn.ConvTranspose2d(in_channels, dim_reduced, 2, 2, 0), relu=nn.ReLU(inplace=True),
                                     mask_fcn_logits=nn.Conv2d(dim_reduced, num_classes, 1, 1, 0)))
        for layer in (self.conv5_mask, self.mask_fcn_logits):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")


def _make(num_classes, backbone, **kwargs):
    return MaskRCNN(backbone, _builders.COCO_CLASSES if num_classes is None else num_classes, **kwargs)


def _make_v2(num_classes, backbone, **kwargs):
    heads = second_version(backbone.out_channels)
    return _make(num_classes, backbone, **heads, mask_head=MaskRCNNHeads(backbone.out_channels, [256] * 4, 1, norm_layer=nn.BatchNorm2d), **kwargs)


maskrcnn_resnet50_fpn = _builders.builder("maskrcnn_resnet50_fpn", MaskRCNN, _make, MaskRCNN_ResNet50_FPN_Weights, "on ResNet 50 with a pyramid",
                                          _builders.resnet50_fpn(), without_eps=True)
maskrcnn_resnet50_fpn_v2 = _builders.builder("maskrcnn_resnet50_fpn_v2", MaskRCNN, _make_v2, MaskRCNN_ResNet50_FPN_V2_Weights,
                                             "on ResNet 50 with a pyramid, second version", _builders.resnet50_fpn(2, nn.BatchNorm2d))
