"""Region proposal networks (Ren et al., 2015)."""

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models.detection._utils import BalancedPositiveNegativeSampler, BoxCoder, Matcher, _topk_min, draw, rows_of
from msadapter.torchvision.models.detection.anchor_utils import AnchorGenerator  # noqa: F401  (many import it from here)
from msadapter.torchvision.ops import Conv2dNormActivation
from msadapter.torchvision.ops import boxes as box_ops


class RPNHead(nn.Module):
    """Maps, a list of (N, in_channels, H, W), to lists of scores (N, num_anchors, H, W) and offsets (N, 4 * num_anchors, H, W)."""

    _version = 2

    def __init__(self, in_channels, num_anchors, conv_depth=1):
        super().__init__()
        self.conv = nn.Sequential(*(Conv2dNormActivation(in_channels, in_channels, kernel_size=3, norm_layer=None) for _ in range(conv_depth)))
        self.cls_logits = nn.Conv2d(in_channels, num_anchors, kernel_size=1)
        self.bbox_pred = nn.Conv2d(in_channels, num_anchors * 4, kernel_size=1)
        draw(self, nn.init.normal_, std=0.01)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        if (local_metadata.get("version") or 1) < 2:  # there was one bare convolution
            for name in ("weight", "bias"):
                if f"{prefix}conv.{name}" in state_dict:
                    state_dict[f"{prefix}conv.0.0.{name}"] = state_dict.pop(f"{prefix}conv.{name}")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def forward(self, x):
        hidden = [self.conv(maps) for maps in x]
        return [self.cls_logits(maps) for maps in hidden], [self.bbox_pred(maps) for maps in hidden]


def permute_and_flatten(layer, N, A, C, H, W):
    """(N, A * C, H, W) as (N, H * W * A, C)."""
    return rows_of(layer.reshape(N, -1, H, W), C)


def concat_box_prediction_layers(box_cls, box_regression):
    """Scores (N, A * C, H, W) and offsets (N, A * 4, H, W) of all levels as (N * all, C) and (N * all, 4)."""
    scores, offsets = [], []
    for score, offset in zip(box_cls, box_regression):
        scores.append(rows_of(score, score.shape[1] // (offset.shape[1] // 4)))
        offsets.append(rows_of(offset, 4))
    return torch.cat(scores, dim=1).flatten(0, -2), torch.cat(offsets, dim=1).reshape(-1, 4)


class RegionProposalNetwork(nn.Module):
    """anchor_generator and head over maps: forward(images, features, targets) gives a list of boxes (L, 4) for each image and, while training, the
    losses "loss_objectness" and "loss_rpn_box_reg".

    Anchors that overlap a true box by fg_iou_thresh are positive, those that overlap each by less than bg_iou_thresh negative. Of each level the best
    pre_nms_top_n are looked at, and the best post_nms_top_n of all are kept; both are {"training": n, "testing": n}.
    """

    def __init__(self, anchor_generator, head, fg_iou_thresh, bg_iou_thresh, batch_size_per_image, positive_fraction, pre_nms_top_n, post_nms_top_n,
                 nms_thresh, score_thresh=0.0):
        super().__init__()
        self.anchor_generator, self.head = anchor_generator, head
        self.box_coder = BoxCoder(weights=(1.0, 1.0, 1.0, 1.0))
        self.box_similarity = box_ops.box_iou
        self.proposal_matcher = Matcher(fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=True)
        self.fg_bg_sampler = BalancedPositiveNegativeSampler(batch_size_per_image, positive_fraction)
        self._pre_nms_top_n, self._post_nms_top_n = pre_nms_top_n, post_nms_top_n
        self.nms_thresh, self.score_thresh, self.min_size = nms_thresh, score_thresh, 1e-3

    def _mode(self):
        return "training" if self.training else "testing"

    def pre_nms_top_n(self):
        """Boxes of each level before suppression."""
        return self._pre_nms_top_n[self._mode()]

    def post_nms_top_n(self):
        """Boxes of each image after suppression."""
        return self._post_nms_top_n[self._mode()]

    def assign_targets_to_anchors(self, anchors, targets):
        """For each image, labels (L,) of 1, 0 and, for those between, -1, and the true box of each anchor (L, 4)."""
        labels, boxes = [], []
        for own, target in zip(anchors, targets):
            true = target["boxes"]
            if true.numel() == 0:
                labels.append(torch.zeros(len(own), dtype=torch.float32))
                boxes.append(torch.zeros(own.shape, dtype=torch.float32))
                continue
            matches = self.proposal_matcher(self.box_similarity(true, own))
            boxes.append(true[matches.clamp(min=0)])
            labels.append((matches >= 0).to(torch.float32).masked_fill(matches == self.proposal_matcher.BETWEEN_THRESHOLDS, -1.0))
        return labels, boxes

    def _get_top_n_idx(self, objectness, num_anchors_per_level):
        """Indices (N, n) of the best of each level."""
        best, offset = [], 0
        for scores in objectness.split(num_anchors_per_level, 1):
            best.append(scores.topk(_topk_min(scores, self.pre_nms_top_n(), 1), dim=1)[1] + offset)
            offset += scores.shape[1]
        return torch.cat(best, dim=1)

    def filter_proposals(self, proposals, objectness, image_shapes, num_anchors_per_level):
        """Boxes (N, L, 4) and their scores: for each image, the best boxes within it and their probabilities."""
        objectness = objectness.detach().reshape(len(proposals), -1)
        levels = torch.cat([torch.full((n,), level, dtype=torch.int64) for level, n in enumerate(num_anchors_per_level)])
        best = self._get_top_n_idx(objectness, num_anchors_per_level)
        kept_boxes, kept_scores = [], []
        for boxes, scores, chosen, size in zip(proposals, objectness, best, image_shapes):
            boxes, scores, level = box_ops.clip_boxes_to_image(boxes[chosen], size), torch.sigmoid(scores[chosen]), levels[chosen]
            keep = box_ops.remove_small_boxes(boxes, self.min_size)
            keep = keep[scores[keep] >= self.score_thresh]
            boxes, scores, level = boxes[keep], scores[keep], level[keep]
            keep = box_ops.batched_nms(boxes, scores, level, self.nms_thresh)[:self.post_nms_top_n()]
            kept_boxes.append(boxes[keep])
            kept_scores.append(scores[keep])
        return kept_boxes, kept_scores

    def compute_loss(self, objectness, pred_bbox_deltas, labels, regression_targets):
        """Losses of scores and offsets (all, 4) at anchors drawn from each image."""
        positive, negative = (torch.where(torch.cat(masks))[0] for masks in self.fg_bg_sampler(labels))
        drawn = torch.cat((positive, negative))
        wanted = torch.cat(list(regression_targets))[positive]
        box_loss = F.smooth_l1_loss(pred_bbox_deltas[positive], wanted, beta=1 / 9, reduction="sum") / drawn.numel()
        return F.binary_cross_entropy_with_logits(objectness.flatten()[drawn], torch.cat(labels)[drawn]), box_loss

    def forward(self, images, features, targets=None):
        features = list(features.values())
        objectness, deltas = self.head(features)
        anchors = self.anchor_generator(images, features)
        per_level = [scores[0].numel() for scores in objectness]
        objectness, deltas = concat_box_prediction_layers(objectness, deltas)
        proposals = self.box_coder.decode(deltas.detach(), anchors).reshape(len(anchors), -1, 4)
        boxes, _ = self.filter_proposals(proposals, objectness, images.image_sizes, per_level)
        if not self.training:
            return boxes, {}
        if targets is None:
            raise ValueError("targets should not be None")
        labels, true = self.assign_targets_to_anchors(anchors, targets)
        loss_objectness, loss_box = self.compute_loss(objectness, deltas, labels, self.box_coder.encode(true, anchors))
        return boxes, {"loss_objectness": loss_objectness, "loss_rpn_box_reg": loss_box}
