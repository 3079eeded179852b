"""Keypoint R-CNN (He et al., 2017): Faster R-CNN with keypoints of each region."""

from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api
from msadapter.torchvision.models.detection import _builders
from msadapter.torchvision.models.detection._utils import draw
from msadapter.torchvision.models.detection.faster_rcnn import FasterRCNN, check_channels, check_type, extended, pyramid_pool
from msadapter.torchvision.ops import MultiScaleRoIAlign

__all__ = ["KeypointRCNN", "KeypointRCNN_ResNet50_FPN_Weights", "keypointrcnn_resnet50_fpn"]

KeypointRCNN_ResNet50_FPN_Weights = _api.enums("KeypointRCNN_ResNet50_FPN_Weights")


class KeypointRCNN(FasterRCNN):
    """FasterRCNN with keypoint_roi_pool, keypoint_head and keypoint_predictor of num_keypoints (17); settings are FasterRCNN's.

    Targets have "keypoints" (N, K, 3) of x, y and visibility too, detections "keypoints" and "keypoints_scores" (N, K). ValueError where num_keypoints
    and keypoint_predictor are given.
    """

    def __init__(self, backbone, num_classes=None, min_size=None, *settings, keypoint_roi_pool=None, keypoint_head=None, keypoint_predictor=None,
                 num_keypoints=None, **kwargs):
        check_type("keypoint_roi_pool", keypoint_roi_pool, MultiScaleRoIAlign)
        check_channels(backbone)
        if num_keypoints is not None and keypoint_predictor is not None:
            raise ValueError("num_keypoints should be None when keypoint_predictor is specified")
        min_size = (640, 672, 704, 736, 768, 800) if min_size is None else min_size
        keypoint_roi_pool = pyramid_pool(14) if keypoint_roi_pool is None else keypoint_roi_pool
        keypoint_head = KeypointRCNNHeads(backbone.out_channels, (512,) * 8) if keypoint_head is None else keypoint_head
        if keypoint_predictor is None:
            keypoint_predictor = KeypointRCNNPredictor(512, 17 if num_keypoints is None else num_keypoints)
        super().__init__(backbone, num_classes, min_size, *settings, **kwargs)
        heads = self.roi_heads
        heads.keypoint_roi_pool, heads.keypoint_head, heads.keypoint_predictor = keypoint_roi_pool, keypoint_head, keypoint_predictor

    __init__.__signature__ = extended("keypoint_roi_pool", "keypoint_head", "keypoint_predictor", "num_keypoints", min_size=None)


class KeypointRCNNHeads(nn.Sequential):
    """Convolutions to the channels in `layers`."""

    def __init__(self, in_channels, layers):
        blocks = []
        for channels in layers:
            blocks += [nn.Conv2d(in_channels, channels, 3, stride=1, padding=1), nn.ReLU(inplace=True)]
            in_channels = channels
        super().__init__(*blocks)
        draw(self, nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu")


class KeypointRCNNPredictor(nn.Module):
    """Maps of four times the size for each keypoint: (N, in_channels, M, M) to (N, num_keypoints, 4 * M, 4 * M)."""

    def __init__(self, in_channels, num_keypoints):
        super().__init__()
        self.kps_score_lowres = nn.ConvTranspose2d(in_channels, num_keypoints, 4, stride=2, padding=1)
        nn.init.kaiming_normal_(self.kps_score_lowres.weight, mode="fan_out", nonlinearity="relu")
        nn.init.zeros_(self.kps_score_lowres.bias)
        self.up_scale, self.out_channels = 2, num_keypoints

    def forward(self, x):
        return F.interpolate(self.kps_score_lowres(x), scale_factor=float(self.up_scale), mode="bilinear", align_corners=False,
                             recompute_scale_factor=False)


def _make(num_classes, backbone, num_keypoints=None, **kwargs):
    return KeypointRCNN(backbone, 2 if num_classes is None else num_classes, num_keypoints=17 if num_keypoints is None else num_keypoints, **kwargs)


def _entry(pretrained):
    return KeypointRCNN_ResNet50_FPN_Weights.COCO_LEGACY if pretrained == "legacy" else KeypointRCNN_ResNet50_FPN_Weights.COCO_V1


keypointrcnn_resnet50_fpn = _builders.builder("keypointrcnn_resnet50_fpn", KeypointRCNN, _make, KeypointRCNN_ResNet50_FPN_Weights,
                                              "on ResNet 50 with a pyramid", _builders.resnet50_fpn(), default=_entry, parameters=("num_keypoints",),
                                              without_eps=True)
