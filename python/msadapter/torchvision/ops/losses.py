"""Losses of detection. Every one takes a reduction: 'none', 'mean' or 'sum' (anything else counts as 'none', as in PyTorch)."""

import math

from msadapter import pytorch as torch
from msadapter.pytorch.nn import functional as F


def _reduced(loss, reduction):
    if reduction == "mean":
        return loss.mean() if loss.numel() > 0 else 0.0 * loss.sum()
    return loss.sum() if reduction == "sum" else loss


def sigmoid_focal_loss(inputs, targets, alpha=0.25, gamma=2, reduction="none"):
    """Focal loss (Lin et al., 2017) of logits against targets of 0 and 1 of the same shape; a negative alpha weighs both classes alike."""
    p = torch.sigmoid(inputs)
    right = p * targets + (1 - p) * (1 - targets)
    loss = F.binary_cross_entropy_with_logits(inputs, targets, reduction="none") * (1 - right) ** gamma
    if alpha >= 0:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return loss.mean() if reduction == "mean" else _reduced(loss, reduction)


def _floating(boxes):
    return boxes if boxes.dtype in (torch.float32, torch.float64) else boxes.float()


class _Pairs:
    """Boxes (..., 4) pair by pair: overlap and union, and width and height of the smallest box around both."""

    def __init__(self, boxes1, boxes2, eps):
        self.a, self.b = a, b = _floating(boxes1).unbind(-1), _floating(boxes2).unbind(-1)
        width, height = torch.min(a[2], b[2]) - torch.max(a[0], b[0]), torch.min(a[3], b[3]) - torch.max(a[1], b[1])
        overlap = torch.where((width > 0) & (height > 0), width * height, torch.zeros_like(width))
        self.union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - overlap
        self.iou = overlap / (self.union + eps)
        self.hull = torch.max(a[2], b[2]) - torch.min(a[0], b[0]), torch.max(a[3], b[3]) - torch.min(a[1], b[1])

    def distance_loss(self, eps):
        a, b = self.a, self.b
        between = ((a[0] + a[2]) / 2 - (b[0] + b[2]) / 2) ** 2 + ((a[1] + a[3]) / 2 - (b[1] + b[3]) / 2) ** 2
        return 1 - self.iou + between / (self.hull[0] ** 2 + self.hull[1] ** 2 + eps)


def generalized_box_iou_loss(boxes1, boxes2, reduction="none", eps=1e-7):
    """1 - generalised intersection over union (Rezatofighi et al., 2019) of boxes (N, 4) or (4,), pair by pair."""
    pairs = _Pairs(boxes1, boxes2, eps)
    around = pairs.hull[0] * pairs.hull[1]
    return _reduced(1 - (pairs.iou - (around - pairs.union) / (around + eps)), reduction)


def distance_box_iou_loss(boxes1, boxes2, reduction="none", eps=1e-7):
    """1 - distance intersection over union (Zheng et al., 2020) of boxes (N, 4) or (4,), pair by pair."""
    return _reduced(_Pairs(boxes1, boxes2, eps).distance_loss(eps), reduction)


def complete_box_iou_loss(boxes1, boxes2, reduction="none", eps=1e-7):
    """1 - complete intersection over union (Zheng et al., 2020) of boxes (N, 4) or (4,), pair by pair."""
    pairs = _Pairs(boxes1, boxes2, 1e-7)  # eps is the aspect ratios' alone
    angle1, angle2 = (torch.atan((x2 - x1) / (y2 - y1)) for x1, y1, x2, y2 in (pairs.a, pairs.b))
    unlike = 4 / math.pi ** 2 * (angle2 - angle1) ** 2
    with torch.no_grad():
        weight = unlike / (1 - pairs.iou + unlike + eps)
    return _reduced(pairs.distance_loss(1e-7) + weight * unlike, reduction)
