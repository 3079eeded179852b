"""RetinaNet (Lin et al., 2017): class and offset at every anchor of a pyramid, with a loss that looks at the hard ones."""

from functools import partial

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision.models import _api
from msadapter.torchvision.models.detection import _builders
from msadapter.torchvision.models.detection._one_stage import OneStage, focal_head
from msadapter.torchvision.models.detection._utils import BoxCoder, Matcher, _box_loss, draw, rows_of
from msadapter.torchvision.models.detection.anchor_utils import AnchorGenerator
from msadapter.torchvision.models.detection.faster_rcnn import check_channels, check_type
from msadapter.torchvision.ops import Conv2dNormActivation, sigmoid_focal_loss
from msadapter.torchvision.ops import boxes as box_ops
from msadapter.torchvision.ops.feature_pyramid_network import LastLevelP6P7

__all__ = ["RetinaNet", "RetinaNet_ResNet50_FPN_Weights", "RetinaNet_ResNet50_FPN_V2_Weights", "retinanet_resnet50_fpn", "retinanet_resnet50_fpn_v2"]

RetinaNet_ResNet50_FPN_Weights, RetinaNet_ResNet50_FPN_V2_Weights = _api.enums(*__all__[1:3])


def _default_anchorgen():
    return AnchorGenerator(tuple((side, int(side * 2 ** (1.0 / 3)), int(side * 2 ** (2.0 / 3))) for side in (32, 64, 128, 256, 512)),
                           ((0.5, 1.0, 2.0),) * 5)


class _Tower(nn.Module):
    """Four convolutions in front of what a head predicts."""

    _version = 2

    def __init__(self, in_channels, norm_layer):
        super().__init__()
        self.conv = nn.Sequential(*(Conv2dNormActivation(in_channels, in_channels, norm_layer=norm_layer) for _ in range(4)))

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        if (local_metadata.get("version") or 1) < 2:  # convolutions and activations stood in one row
            for i in range(4):
                for name in ("weight", "bias"):
                    if f"{prefix}conv.{2 * i}.{name}" in state_dict:
                        state_dict[f"{prefix}conv.{i}.0.{name}"] = state_dict.pop(f"{prefix}conv.{2 * i}.{name}")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class RetinaNetClassificationHead(_Tower):
    """Maps, a list of (N, in_channels, H, W), to scores (N, anchors, num_classes), of prior_probability at first."""

    def __init__(self, in_channels, num_anchors, num_classes, prior_probability=0.01, norm_layer=None):
        super().__init__(in_channels, norm_layer)
        draw(self.conv, nn.init.normal_, std=0.01)
        self.cls_logits = focal_head(in_channels, num_anchors * num_classes, prior_probability)
        self.num_classes, self.num_anchors = num_classes, num_anchors
        self.BETWEEN_THRESHOLDS = Matcher.BETWEEN_THRESHOLDS

    def compute_loss(self, targets, head_outputs, matched_idxs):
        """Mean over images of the focal loss, by the number of anchors with a true box."""
        losses = []
        for target, scores, matches in zip(targets, head_outputs["cls_logits"], matched_idxs):
            positive = matches >= 0
            wanted = torch.zeros_like(scores)
            wanted[positive, target["labels"][matches[positive]]] = 1.0
            counted = matches != self.BETWEEN_THRESHOLDS
            losses.append(sigmoid_focal_loss(scores[counted], wanted[counted], reduction="sum") / max(1, int(positive.sum())))
        return sum(losses[1:], losses[0]) / len(targets)

    def forward(self, x):
        return torch.cat([rows_of(self.cls_logits(self.conv(maps)), self.num_classes) for maps in x], dim=1)


class RetinaNetRegressionHead(_Tower):
    """Maps, a list of (N, in_channels, H, W), to offsets (N, anchors, 4)."""

    def __init__(self, in_channels, num_anchors, norm_layer=None):
        super().__init__(in_channels, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, kernel_size=3, stride=1, padding=1)
        draw(self.bbox_reg, nn.init.normal_, std=0.01)
        draw(self.conv, nn.init.normal_, std=0.01)
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self._loss_type = "l1"

    def compute_loss(self, targets, head_outputs, anchors, matched_idxs):
        """Mean over images of the offsets' loss, by the number of anchors with a true box."""
        losses = []
        for target, offsets, own, matches in zip(targets, head_outputs["bbox_regression"], anchors, matched_idxs):
            positive = torch.where(matches >= 0)[0]
            loss = _box_loss(self._loss_type, self.box_coder, own[positive], target["boxes"][matches[positive]], offsets[positive])
            losses.append(loss / max(1, len(positive)))
        return sum(losses[1:], losses[0]) / max(1, len(targets))

    def forward(self, x):
        return torch.cat([rows_of(self.bbox_reg(self.conv(maps)), 4) for maps in x], dim=1)


class RetinaNetHead(nn.Module):
    """Scores and offsets: {"cls_logits": (N, anchors, num_classes), "bbox_regression": (N, anchors, 4)}."""

    def __init__(self, in_channels, num_anchors, num_classes, norm_layer=None):
        super().__init__()
        self.classification_head = RetinaNetClassificationHead(in_channels, num_anchors, num_classes, norm_layer=norm_layer)
        self.regression_head = RetinaNetRegressionHead(in_channels, num_anchors, norm_layer=norm_layer)

    def compute_loss(self, targets, head_outputs, anchors, matched_idxs):
        """The losses "classification" and "bbox_regression"."""
        return {"classification": self.classification_head.compute_loss(targets, head_outputs, matched_idxs),
                "bbox_regression": self.regression_head.compute_loss(targets, head_outputs, anchors, matched_idxs)}

    def forward(self, x):
        return {"cls_logits": self.classification_head(x), "bbox_regression": self.regression_head(x)}


class RetinaNet(OneStage):
    """A detector on a backbone with out_channels channels in each map; see Detector for what goes in and out.

    Anchors that overlap a true box by fg_iou_thresh stand for it, those that overlap each by less than bg_iou_thresh for nothing; there is no class of
    nothing. ValueError for a backbone without out_channels, TypeError for an anchor_generator of another type.
    """

    def __init__(self, backbone, num_classes, min_size=800, max_size=1333, image_mean=None, image_std=None, anchor_generator=None, head=None,
                 proposal_matcher=None, score_thresh=0.05, nms_thresh=0.5, detections_per_img=300, fg_iou_thresh=0.5, bg_iou_thresh=0.4,
                 topk_candidates=1000, **kwargs):
        super().__init__()
        check_channels(backbone)
        check_type("anchor_generator", anchor_generator, AnchorGenerator)
        anchors = _default_anchorgen() if anchor_generator is None else anchor_generator
        self.backbone, self.anchor_generator = backbone, anchors
        self.head = RetinaNetHead(backbone.out_channels, anchors.num_anchors_per_location()[0], num_classes) if head is None else head
        self.proposal_matcher = Matcher(fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True) if proposal_matcher is None else proposal_matcher
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self._set_up(min_size, max_size, image_mean, image_std, score_thresh, nms_thresh, detections_per_img, topk_candidates, **kwargs)

    def compute_loss(self, targets, head_outputs, anchors):
        """The head's losses; anchors is a list of (L, 4) by image."""
        matched = [self.proposal_matcher(box_ops.box_iou(target["boxes"], own)) if target["boxes"].numel() else
                   torch.full((len(own),), -1, dtype=torch.int64) for own, target in zip(anchors, targets)]
        return self.head.compute_loss(targets, head_outputs, anchors, matched)

    def postprocess_detections(self, head_outputs, anchors, image_shapes):
        """Detections of each image from lists by level of scores and offsets, and by image and level of anchors."""
        return self._best_of_levels(lambda scores: torch.sigmoid(scores).flatten(), ("cls_logits",), self.box_coder.decode_single,
                                    head_outputs, anchors, image_shapes)

    def _losses(self, targets, outputs, anchors, per_level):
        return self.compute_loss(targets, outputs, anchors)


def _make(num_classes, backbone, **kwargs):
    return RetinaNet(backbone, _builders.COCO_CLASSES if num_classes is None else num_classes, **kwargs)


def _make_v2(num_classes, backbone, **kwargs):
    num_classes, anchors = _builders.COCO_CLASSES if num_classes is None else num_classes, _default_anchorgen()
    head = RetinaNetHead(backbone.out_channels, anchors.num_anchors_per_location()[0], num_classes, norm_layer=partial(nn.GroupNorm, 32))
    head.regression_head._loss_type = "giou"
    return RetinaNet(backbone, num_classes, anchor_generator=anchors, head=head, **kwargs)


def _pyramid(channels):
    return lambda: {"returned_layers": [2, 3, 4], "extra_blocks": LastLevelP6P7(channels, 256)}


retinanet_resnet50_fpn = _builders.builder("retinanet_resnet50_fpn", RetinaNet, _make, RetinaNet_ResNet50_FPN_Weights, "on ResNet 50 with a pyramid",
                                           _builders.resnet50_fpn(pyramid=_pyramid(256)), without_eps=True)
retinanet_resnet50_fpn_v2 = _builders.builder("retinanet_resnet50_fpn_v2", RetinaNet, _make_v2, RetinaNet_ResNet50_FPN_V2_Weights,
                                              "on ResNet 50 with a pyramid, second version", _builders.resnet50_fpn(2, pyramid=_pyramid(2048)))
