"""SSD (Liu et al., 2016): class and offset at boxes over maps of falling size, with a loss of the hardest negative ones."""

from collections import OrderedDict

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api, vgg
from msadapter.torchvision.models.detection import _builders
from msadapter.torchvision.models.detection._one_stage import OneStage
from msadapter.torchvision.models.detection._utils import BoxCoder, SSDMatcher, _topk_min, draw, retrieve_out_channels, rows_of
from msadapter.torchvision.models.detection.anchor_utils import DefaultBoxGenerator
from msadapter.torchvision.models.detection.backbone_utils import _validate_trainable_layers, freeze
from msadapter.torchvision.ops import boxes as box_ops

__all__ = ["SSD300_VGG16_Weights", "ssd300_vgg16"]

SSD300_VGG16_Weights = _api.enums("SSD300_VGG16_Weights")


def check_levels(channels, anchor_generator):
    """Raises ValueError unless there are aspect ratios for each map."""
    if len(channels) != len(anchor_generator.aspect_ratios):
        raise ValueError(f"The length of the output channels from the backbone ({len(channels)}) do not match the length of the anchor generator "
                         f"aspect ratios ({len(anchor_generator.aspect_ratios)})")


class SSDScoringHead(nn.Module):
    """Maps, a list of (N, C, H, W), each through its own module of module_list: (N, anchors, num_columns)."""

    def __init__(self, module_list, num_columns):
        super().__init__()
        self.module_list, self.num_columns = module_list, num_columns

    def forward(self, x):
        return torch.cat([rows_of(module(maps), self.num_columns) for module, maps in zip(self.module_list, x)], dim=1)


def _convolutions(in_channels, num_anchors, columns):
    layers = nn.ModuleList(nn.Conv2d(channels, columns * anchors, kernel_size=3, padding=1) for channels, anchors in zip(in_channels, num_anchors))
    draw(layers, nn.init.xavier_uniform_)
    return layers


class SSDClassificationHead(SSDScoringHead):
    """Scores (N, anchors, num_classes)."""

    def __init__(self, in_channels, num_anchors, num_classes):
        super().__init__(_convolutions(in_channels, num_anchors, num_classes), num_classes)


class SSDRegressionHead(SSDScoringHead):
    """Offsets (N, anchors, 4)."""

    def __init__(self, in_channels, num_anchors):
        super().__init__(_convolutions(in_channels, num_anchors, 4), 4)


class SSDHead(nn.Module):
    """{"bbox_regression": (N, anchors, 4), "cls_logits": (N, anchors, num_classes)} of maps with in_channels each."""

    def __init__(self, in_channels, num_anchors, num_classes):
        super().__init__()
        self.classification_head = SSDClassificationHead(in_channels, num_anchors, num_classes)
        self.regression_head = SSDRegressionHead(in_channels, num_anchors)

    def forward(self, x):
        return {"bbox_regression": self.regression_head(x), "cls_logits": self.classification_head(x)}


class SSD(OneStage):
    """A detector of pictures resized to `size` (width, height); see Detector for what goes in and out.

    The backbone gives a dictionary of maps, one for each of anchor_generator's aspect_ratios; its out_channels, a list, are tried out where it has
    none. num_classes counts nothing as one. The share of positive boxes in the loss is positive_fraction. ValueError for another number of maps.
    """

    def __init__(self, backbone, anchor_generator, size, num_classes, image_mean=None, image_std=None, head=None, score_thresh=0.01, nms_thresh=0.45,
                 detections_per_img=200, iou_thresh=0.5, topk_candidates=400, positive_fraction=0.25, **kwargs):
        super().__init__()
        self.backbone, self.anchor_generator = backbone, anchor_generator
        self.box_coder = BoxCoder(weights=(10.0, 10.0, 5.0, 5.0))
        if head is None:
            channels = backbone.out_channels if hasattr(backbone, "out_channels") else retrieve_out_channels(backbone, size)
            check_levels(channels, anchor_generator)
            head = SSDHead(channels, anchor_generator.num_anchors_per_location(), num_classes)
        self.head = head
        self.proposal_matcher = SSDMatcher(iou_thresh)
        self._set_up(min(size), max(size), image_mean, image_std, score_thresh, nms_thresh, detections_per_img, topk_candidates,
                     **{"size_divisible": 1, "fixed_size": size, **kwargs})
        self.neg_to_pos_ratio = (1.0 - positive_fraction) / positive_fraction

    def compute_loss(self, targets, head_outputs, anchors, matched_idxs):
        """The losses "bbox_regression" and "classification", by the number of boxes that stand for a true one, -1 in matched_idxs for the others."""
        scores, box_losses, labels, count = head_outputs["cls_logits"], [], [], 0
        for target, offsets, own, matches in zip(targets, head_outputs["bbox_regression"], anchors, matched_idxs):
            positive = torch.where(matches >= 0)[0]
            true = matches[positive]
            count += len(positive)
            wanted = self.box_coder.encode_single(target["boxes"][true], own[positive])
            box_losses.append(F.smooth_l1_loss(offsets[positive], wanted, reduction="sum"))
            label = torch.zeros(len(matches), dtype=target["labels"].dtype)
            label[positive] = target["labels"][true]
            labels.append(label)
        labels = torch.stack(labels)
        losses = F.cross_entropy(scores.reshape(-1, scores.size(-1)), labels.view(-1), reduction="none").view(labels.size())
        positive = labels > 0
        hardness = losses.detach().masked_fill(positive, -float("inf"))
        rank = hardness.sort(1, descending=True)[1].sort(1)[1]
        negative = rank < self.neg_to_pos_ratio * positive.sum(1, keepdim=True)
        count = max(1, count)
        return {"bbox_regression": torch.stack(box_losses).sum() / count, "classification": (losses[positive].sum() + losses[negative].sum()) / count}

    def _losses(self, targets, outputs, anchors, per_level):
        matched = [self.proposal_matcher(box_ops.box_iou(target["boxes"], own)) if target["boxes"].numel() else
                   torch.full((len(own),), -1, dtype=torch.int64) for own, target in zip(anchors, targets)]
        return self.compute_loss(targets, outputs, anchors, matched)

    def _detections(self, outputs, anchors, per_level, image_shapes):
        return self.postprocess_detections(outputs, anchors, image_shapes)

    def postprocess_detections(self, head_outputs, image_anchors, image_shapes):
        """Detections of each image from scores and offsets (N, anchors, ...) and a list of anchors (L, 4): the topk_candidates best of each class."""
        detections = []
        for offsets, scores, anchors, size in zip(head_outputs["bbox_regression"], F.softmax(head_outputs["cls_logits"], dim=-1), image_anchors, image_shapes):
            boxes = box_ops.clip_boxes_to_image(self.box_coder.decode_single(offsets, anchors), size)
            found = [], [], []
            for label in range(1, scores.size(-1)):
                score = scores[:, label]
                above = torch.where(score > self.score_thresh)[0]
                score, best = score[above].topk(_topk_min(above, self.topk_candidates, 0))
                for values, more in zip(found, (boxes[above[best]], score, torch.full_like(score, label, dtype=torch.int64))):
                    values.append(more)
            detections.append(self._suppressed(*found))
        return detections


def _two(channels, between, out_channels, **options):
    """A 1 x 1 convolution and another, with activations."""
    return nn.Sequential(nn.Conv2d(channels, between, kernel_size=1), nn.ReLU(inplace=True), nn.Conv2d(between, out_channels, **options),
                         nn.ReLU(inplace=True))


class SSDFeatureExtractorVGG(nn.Module):
    """VGG's features up to the fourth pooling, normalised and scaled, and five more maps, six if highres; `backbone` is a VGG's features."""

    def __init__(self, backbone, highres):
        super().__init__()
        _, _, third, fourth, _ = (i for i, layer in enumerate(backbone) if isinstance(layer, nn.MaxPool2d))
        backbone[third].ceil_mode = True  # 38 elements out of 75
        self.scale_weight = nn.Parameter(torch.ones(512) * 20)
        self.features = nn.Sequential(*backbone[:fourth])
        extra = nn.ModuleList([_two(1024, 256, 512, kernel_size=3, padding=1, stride=2), _two(512, 128, 256, kernel_size=3, padding=1, stride=2),
                               _two(256, 128, 256, kernel_size=3), _two(256, 128, 256, kernel_size=3)])
        if highres:
            extra.append(_two(256, 128, 256, kernel_size=4))
        draw(extra, nn.init.xavier_uniform_)
        dense = nn.Sequential(nn.MaxPool2d(kernel_size=3, stride=1, padding=1), nn.Conv2d(512, 1024, kernel_size=3, padding=6, dilation=6),
                              nn.ReLU(inplace=True), nn.Conv2d(1024, 1024, kernel_size=1), nn.ReLU(inplace=True))
        draw(dense, nn.init.xavier_uniform_)
        extra.insert(0, nn.Sequential(*backbone[fourth:-1], dense))
        self.extra = extra

    def forward(self, x):
        x = self.features(x)
        maps = [self.scale_weight.view(1, -1, 1, 1) * F.normalize(x)]
        for block in self.extra:
            x = block(x)
            maps.append(x)
        return OrderedDict((str(i), each) for i, each in enumerate(maps))


def _vgg_extractor(backbone, highres, trainable_layers):
    features = backbone.features
    freeze(features, [0] + [i for i, layer in enumerate(features) if isinstance(layer, nn.MaxPool2d)][:-1], trainable_layers)
    return SSDFeatureExtractorVGG(features, highres)


def _vgg16(weights, progress, trained, layers):
    layers = _validate_trainable_layers(trained, layers, 5, 4)
    return _vgg_extractor(vgg.vgg16(weights=weights, progress=progress), False, layers)


def _make(num_classes, backbone, **kwargs):
    anchors = DefaultBoxGenerator([[2], [2, 3], [2, 3], [2, 3], [2], [2]], scales=[0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05],
                                  steps=[8, 16, 32, 64, 100, 300])
    defaults = {"image_mean": [0.48235, 0.45882, 0.40784], "image_std": [1.0 / 255.0] * 3}  # as Caffe had it: less the mean, not divided
    return SSD(backbone, anchors, (300, 300), _builders.COCO_CLASSES if num_classes is None else num_classes, **{**defaults, **kwargs})


ssd300_vgg16 = _builders.builder("ssd300_vgg16", SSD, _make, SSD300_VGG16_Weights, "of 300 x 300 on VGG 16",
                                 (_vgg16, vgg.VGG16_Weights, "IMAGENET1K_FEATURES"))
