"""FCOS (Tian et al., 2019): at every element of a pyramid the class, the distances of the box's sides and how central the element is."""

from functools import partial

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api
from msadapter.torchvision.models.detection import _builders
from msadapter.torchvision.models.detection._one_stage import OneStage, focal_head
from msadapter.torchvision.models.detection._utils import BoxLinearCoder, draw, rows_of
from msadapter.torchvision.models.detection.anchor_utils import AnchorGenerator
from msadapter.torchvision.models.detection.faster_rcnn import check_channels, check_type
from msadapter.torchvision.ops import generalized_box_iou_loss, sigmoid_focal_loss
from msadapter.torchvision.ops.feature_pyramid_network import LastLevelP6P7

__all__ = ["FCOS", "FCOS_ResNet50_FPN_Weights", "fcos_resnet50_fpn"]

FCOS_ResNet50_FPN_Weights = _api.enums("FCOS_ResNet50_FPN_Weights")


def _tower(in_channels, num_convs, norm_layer):
    """num_convs times a convolution, a norm (of 32 groups unless given) and an activation."""
    norm_layer = partial(nn.GroupNorm, 32) if norm_layer is None else norm_layer
    layers = []
    for _ in range(num_convs):
        layers += [nn.Conv2d(in_channels, in_channels, kernel_size=3, stride=1, padding=1), norm_layer(in_channels), nn.ReLU()]
    return nn.Sequential(*layers)


class FCOSClassificationHead(nn.Module):
    """Maps, a list of (N, in_channels, H, W), to scores (N, anchors, num_classes), of prior_probability at first."""

    def __init__(self, in_channels, num_anchors, num_classes, num_convs=4, prior_probability=0.01, norm_layer=None):
        super().__init__()
        self.num_classes, self.num_anchors = num_classes, num_anchors
        self.conv = _tower(in_channels, num_convs, norm_layer)
        draw(self.conv, nn.init.normal_, std=0.01)
        self.cls_logits = focal_head(in_channels, num_anchors * num_classes, prior_probability)

    def forward(self, x):
        return torch.cat([rows_of(self.cls_logits(self.conv(maps)), self.num_classes) for maps in x], dim=1)


class FCOSRegressionHead(nn.Module):
    """Maps, a list of (N, in_channels, H, W), to distances (N, anchors, 4), none negative, and centrality (N, anchors, 1)."""

    def __init__(self, in_channels, num_anchors, num_convs=4, norm_layer=None):
        super().__init__()
        self.conv = _tower(in_channels, num_convs, norm_layer)
        self.bbox_reg = nn.Conv2d(in_channels, num_anchors * 4, kernel_size=3, stride=1, padding=1)
        self.bbox_ctrness = nn.Conv2d(in_channels, num_anchors, kernel_size=3, stride=1, padding=1)
        for part in (self.bbox_reg, self.bbox_ctrness, self.conv):
            draw(part, nn.init.normal_, std=0.01)

    def forward(self, x):
        hidden = [self.conv(maps) for maps in x]
        return (torch.cat([rows_of(F.relu(self.bbox_reg(maps)), 4) for maps in hidden], dim=1),
                torch.cat([rows_of(self.bbox_ctrness(maps), 1) for maps in hidden], dim=1))


class FCOSHead(nn.Module):
    """{"cls_logits": (N, anchors, num_classes), "bbox_regression": (N, anchors, 4), "bbox_ctrness": (N, anchors, 1)}."""

    def __init__(self, in_channels, num_anchors, num_classes, num_convs=4):
        super().__init__()
        self.box_coder = BoxLinearCoder(normalize_by_size=True)
        self.classification_head = FCOSClassificationHead(in_channels, num_anchors, num_classes, num_convs)
        self.regression_head = FCOSRegressionHead(in_channels, num_anchors, num_convs)

    @staticmethod
    def _true(target, matches):
        """Labels (L,), -1 for nothing, and boxes (L, 4) of what the anchors stand for."""
        if len(target["labels"]) == 0:
            return target["labels"].new_full((len(matches),), -1), target["boxes"].new_zeros((len(matches), 4))
        own = matches.clamp(min=0)
        return target["labels"][own].masked_fill(matches < 0, -1), target["boxes"][own]

    def compute_loss(self, targets, head_outputs, anchors, matched_idxs):
        """The losses "classification", "bbox_regression" and "bbox_ctrness", by the number of anchors with a true box."""
        labels, true = (torch.stack(part) for part in zip(*map(self._true, targets, matched_idxs)))
        anchors, scores = torch.stack(anchors), head_outputs["cls_logits"]
        positive = labels >= 0
        count = max(1, int(positive.sum()))
        wanted = torch.zeros_like(scores)
        wanted[positive, labels[positive]] = 1.0
        boxes = self.box_coder.decode(head_outputs["bbox_regression"], anchors)
        sides = self.box_coder.encode(anchors, true)[positive]
        across, down = sides[:, 0::2], sides[:, 1::2]
        central = torch.sqrt(across.min(dim=-1)[0] / across.max(dim=-1)[0] * (down.min(dim=-1)[0] / down.max(dim=-1)[0]))
        losses = {"classification": sigmoid_focal_loss(scores, wanted, reduction="sum"),
                  "bbox_regression": generalized_box_iou_loss(boxes[positive], true[positive], reduction="sum"),
                  "bbox_ctrness": F.binary_cross_entropy_with_logits(head_outputs["bbox_ctrness"].squeeze(dim=2)[positive], central, reduction="sum")}
        return {name: loss / count for name, loss in losses.items()}

    def forward(self, x):
        distances, central = self.regression_head(x)
        return {"cls_logits": self.classification_head(x), "bbox_regression": distances, "bbox_ctrness": central}


class FCOS(OneStage):
    """A detector on a backbone with out_channels channels in each map; see Detector for what goes in and out.

    An anchor stands for the smallest true box around it whose centre is within center_sampling_radius times its size and whose farthest side is four to
    eight times its size away. ValueError for a backbone without out_channels and more than one anchor a place, TypeError for another anchor_generator.
    """

    def __init__(self, backbone, num_classes, min_size=800, max_size=1333, image_mean=None, image_std=None, anchor_generator=None, head=None,
                 center_sampling_radius=1.5, score_thresh=0.2, nms_thresh=0.6, detections_per_img=100, topk_candidates=1000, **kwargs):
        super().__init__()
        check_channels(backbone)
        check_type("anchor_generator", anchor_generator, AnchorGenerator)
        anchors = AnchorGenerator(((8,), (16,), (32,), (64,), (128,)), ((1.0,),) * 5) if anchor_generator is None else anchor_generator
        count = anchors.num_anchors_per_location()[0]
        if count != 1:
            raise ValueError(f"anchor_generator.num_anchors_per_location()[0] should be 1 instead of {count}")
        self.backbone, self.anchor_generator = backbone, anchors
        self.head = FCOSHead(backbone.out_channels, count, num_classes) if head is None else head
        self.box_coder = BoxLinearCoder(normalize_by_size=True)
        self._set_up(min_size, max_size, image_mean, image_std, score_thresh, nms_thresh, detections_per_img, topk_candidates, **kwargs)
        self.center_sampling_radius = center_sampling_radius

    def _match(self, boxes, anchors, per_level):
        """The true box (M, 4) that each anchor (L, 4) stands for: indices (L,), -1 for nothing."""
        centres, size = (anchors[:, :2] + anchors[:, 2:]) / 2, anchors[:, 2] - anchors[:, 0]
        middles = (boxes[:, :2] + boxes[:, 2:]) / 2
        fits = (centres[:, None] - middles).abs().max(dim=2)[0] < self.center_sampling_radius * size[:, None]
        sides = torch.cat((centres[:, None] - boxes[:, :2], boxes[:, 2:] - centres[:, None]), dim=2)
        least, most = size * 4, size * 8
        least[:per_level[0]] = 0  # the finest map takes what is smaller, the coarsest what is larger
        most[-per_level[-1]:] = float("inf")
        farthest = sides.max(dim=2)[0]
        fits = fits & (sides.min(dim=2)[0] > 0) & (farthest > least[:, None]) & (farthest < most[:, None])
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        preference, best = (fits.to(torch.float32) * (1e8 - areas)).max(dim=1)
        return best.masked_fill(preference < 1e-5, -1)

    def compute_loss(self, targets, head_outputs, anchors, num_anchors_per_level):
        """The head's losses; anchors is a list of (L, 4) by image."""
        matched = [self._match(target["boxes"], own, num_anchors_per_level) if target["boxes"].numel() else
                   torch.full((len(own),), -1, dtype=torch.int64) for own, target in zip(anchors, targets)]
        return self.head.compute_loss(targets, head_outputs, anchors, matched)

    def postprocess_detections(self, head_outputs, anchors, image_shapes):
        """Detections of each image from lists by level of what the head gives, and by image and level of anchors."""
        def score(logits, central):
            return torch.sqrt(torch.sigmoid(logits) * torch.sigmoid(central)).flatten()

        return self._best_of_levels(score, ("cls_logits", "bbox_ctrness"), self.box_coder.decode, head_outputs, anchors, image_shapes)

    def _losses(self, targets, outputs, anchors, per_level):
        return self.compute_loss(targets, outputs, anchors, per_level)


def _make(num_classes, backbone, **kwargs):
    return FCOS(backbone, _builders.COCO_CLASSES if num_classes is None else num_classes, **kwargs)


def _pyramid():
    return {"returned_layers": [2, 3, 4], "extra_blocks": LastLevelP6P7(256, 256)}


fcos_resnet50_fpn = _builders.builder("fcos_resnet50_fpn", FCOS, _make, FCOS_ResNet50_FPN_Weights, "on ResNet 50 with a pyramid",
                                      _builders.resnet50_fpn(pyramid=_pyramid))
