"""Boxes (..., 4): suppression, conversion, areas and overlaps. Unless said otherwise a box is x1, y1, x2, y2 with x1 < x2 and y1 < y2."""

import math

from msadapter import _C
from msadapter import pytorch as torch


def wide(t):
    """`t` in a type whose products don't overflow: short floats as float32, short integers as int32."""
    if t.is_floating_point():
        return t if t.dtype in (torch.float32, torch.float64) else t.float()
    return t if t.dtype in (torch.int32, torch.int64) else t.int()


def nms(boxes, scores, iou_threshold):
    """Indices of the boxes (N, 4) that overlap no better one by more than `iou_threshold`, best first; scores (N,).

    Boxes and scores are float32 or float64. Raises RuntimeError when sizes or types don't fit.
    """
    if torch.is_autocast_enabled():
        boxes, scores = boxes.float(), scores.float()
    return _C._vision.nms(boxes, scores, iou_threshold)


def batched_nms(boxes, scores, idxs, iou_threshold):
    """`nms` among the boxes of each category in idxs (N,) by itself; the kept of all categories together, best first."""
    if boxes.numel() > 4000:  # many: one category after another, which compares far fewer pairs
        kept = [own[nms(boxes[own], scores[own], iou_threshold)] for own in (torch.where(idxs == category)[0] for category in torch.unique(idxs))]
        kept = torch.cat(kept).sort()[0]
        return kept[scores[kept].sort(descending=True)[1]]
    if boxes.numel() == 0:
        return torch.empty((0,), dtype=torch.int64)
    apart = boxes.max() + torch.tensor(1).to(boxes)  # categories moved this far from each other never overlap
    return nms(boxes + (idxs.to(boxes) * apart)[:, None], scores, iou_threshold)


def remove_small_boxes(boxes, min_size):
    """Indices (K,) of the boxes (N, 4) with both sides at least `min_size` long."""
    sides = boxes[:, 2:] - boxes[:, :2]
    return torch.where((sides >= min_size).all(1))[0]


def clip_boxes_to_image(boxes, size):
    """The boxes (..., 4) moved inside an image of `size` (height, width)."""
    height, width = size
    return torch.stack((boxes[..., 0::2].clamp(min=0, max=width), boxes[..., 1::2].clamp(min=0, max=height)), dim=boxes.dim()).reshape(boxes.shape)


_TO_CORNERS = {"xyxy": lambda a, b, c, d: (a, b, c, d), "xywh": lambda x, y, w, h: (x, y, x + w, y + h),
               "cxcywh": lambda x, y, w, h: (x - 0.5 * w, y - 0.5 * h, x + 0.5 * w, y + 0.5 * h)}
_FROM_CORNERS = {"xyxy": lambda a, b, c, d: (a, b, c, d), "xywh": lambda x1, y1, x2, y2: (x1, y1, x2 - x1, y2 - y1),
                 "cxcywh": lambda x1, y1, x2, y2: ((x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1)}


def box_convert(boxes, in_fmt, out_fmt):
    """Boxes (..., 4) in another format: 'xyxy' (corners), 'xywh' (corner and size), 'cxcywh' (centre and size). Raises ValueError for others."""
    if in_fmt not in _TO_CORNERS or out_fmt not in _TO_CORNERS:
        raise ValueError("Unsupported Bounding Box Conversions for given in_fmt and out_fmt")
    if in_fmt == out_fmt:
        return boxes.clone()
    return torch.stack(_FROM_CORNERS[out_fmt](*_TO_CORNERS[in_fmt](*boxes.unbind(-1))), dim=-1)


def box_area(boxes):
    """Areas (N,) of boxes (N, 4)."""
    boxes = wide(boxes)
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def _box_inter_union(boxes1, boxes2):
    """Areas (N, M) of what each pair shares and covers."""
    sides = wide(torch.min(boxes1[:, None, 2:], boxes2[:, 2:]) - torch.max(boxes1[:, None, :2], boxes2[:, :2])).clamp(min=0)
    both = sides[..., 0] * sides[..., 1]
    return both, box_area(boxes1)[:, None] + box_area(boxes2) - both


def _hull(boxes1, boxes2):
    """Width and height (N, M, 2) of the smallest box around each pair."""
    return wide(torch.max(boxes1[:, None, 2:], boxes2[:, 2:]) - torch.min(boxes1[:, None, :2], boxes2[:, :2])).clamp(min=0)


def box_iou(boxes1, boxes2):
    """Intersection over union (N, M) of each pair out of boxes (N, 4) and (M, 4)."""
    both, either = _box_inter_union(boxes1, boxes2)
    return both / either


def generalized_box_iou(boxes1, boxes2):
    """Generalised intersection over union (N, M) (Rezatofighi et al., 2019): less the empty share of the box around both."""
    both, either = _box_inter_union(boxes1, boxes2)
    hull = _hull(boxes1, boxes2)
    around = hull[..., 0] * hull[..., 1]
    return both / either - (around - either) / around


def distance_box_iou(boxes1, boxes2, eps=1e-7):
    """Distance intersection over union (N, M) (Zheng et al., 2020): less the squared distance of the centres by the diagonal around both."""
    boxes1, boxes2 = wide(boxes1), wide(boxes2)
    hull = _hull(boxes1, boxes2)
    diagonal = hull[..., 0] ** 2 + hull[..., 1] ** 2 + eps
    centres1, centres2 = (boxes1[:, :2] + boxes1[:, 2:]) / 2, (boxes2[:, :2] + boxes2[:, 2:]) / 2
    between = wide(centres1[:, None] - centres2[None]) ** 2
    return box_iou(boxes1, boxes2) - (between[..., 0] + between[..., 1]) / diagonal


def complete_box_iou(boxes1, boxes2, eps=1e-7):
    """Complete intersection over union (N, M) (Zheng et al., 2020): distance_box_iou less a term for unlike aspect ratios."""
    boxes1, boxes2 = wide(boxes1), wide(boxes2)
    angle1, angle2 = (torch.atan((b[:, 2] - b[:, 0]) / (b[:, 3] - b[:, 1])) for b in (boxes1, boxes2))
    unlike = 4 / math.pi ** 2 * (angle1[:, None] - angle2) ** 2
    with torch.no_grad():
        weight = unlike / (1 - box_iou(boxes1, boxes2) + unlike + eps)
    return distance_box_iou(boxes1, boxes2, eps) - weight * unlike


def masks_to_boxes(masks):
    """Boxes (N, 4) of float32 around what isn't zero in masks (N, H, W), both corners inside. Raises RuntimeError for an empty mask."""
    boxes = torch.zeros((masks.shape[0] if masks.numel() else 0, 4), dtype=torch.float)
    for box, mask in zip(boxes, masks):
        y, x = torch.where(mask != 0)
        box.copy_(torch.stack((x.min(), y.min(), x.max(), y.max())))
    return boxes
