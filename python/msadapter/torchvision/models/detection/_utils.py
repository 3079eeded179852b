"""What the detectors share: samples of boxes, boxes as offsets from others, and which box stands for which."""

import math
from collections import OrderedDict

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.ops import FrozenBatchNorm2d, complete_box_iou_loss, distance_box_iou_loss, generalized_box_iou_loss


class BalancedPositiveNegativeSampler:
    """Draws up to `batch_size_per_image` boxes of each image, at most `positive_fraction` of them positive.

    Called with a list of labels (L,), where >= 1 is positive, 0 negative, and less is neither; gives two lists of masks (L,) of uint8.
    """

    def __init__(self, batch_size_per_image, positive_fraction):
        self.batch_size_per_image, self.positive_fraction = batch_size_per_image, positive_fraction

    def __call__(self, matched_idxs):
        positive, negative = [], []
        for labels in matched_idxs:
            wanted = int(self.batch_size_per_image * self.positive_fraction)
            for condition, masks in ((labels >= 1, positive), (labels == 0, negative)):
                found = torch.where(condition)[0]
                chosen = found[torch.randperm(found.numel())[:wanted]]
                mask = torch.zeros_like(labels, dtype=torch.uint8)
                mask[chosen] = 1
                masks.append(mask)
                wanted = self.batch_size_per_image - chosen.numel()  # the negative ones fill up what is left
        return positive, negative


def _centres(boxes):
    """Centres and sizes (..., 2) of boxes (..., 4)."""
    sizes = boxes[..., 2:] - boxes[..., :2]
    return boxes[..., :2] + 0.5 * sizes, sizes


def encode_boxes(reference_boxes, proposals, weights):
    """Boxes (N, 4) as offsets from proposals (N, 4): shifts of the centre by the proposal's size and logarithms of ratios, times weights (4,)."""
    there, large = _centres(reference_boxes)
    here, size = _centres(proposals)
    return torch.cat((weights[:2] * (there - here) / size, weights[2:] * torch.log(large / size)), dim=1)


class BoxCoder:
    """Boxes as offsets from proposals and back (Girshick et al., 2014); logarithms beyond bbox_xform_clip are cut when decoding."""

    def __init__(self, weights, bbox_xform_clip=math.log(1000.0 / 16)):
        self.weights, self.bbox_xform_clip = weights, bbox_xform_clip

    def encode(self, reference_boxes, proposals):
        """Lists of (L, 4) for each image: a list of offsets."""
        return self.encode_single(torch.cat(list(reference_boxes)), torch.cat(list(proposals))).split([len(boxes) for boxes in reference_boxes], 0)

    def encode_single(self, reference_boxes, proposals):
        """Offsets (N, 4)."""
        return encode_boxes(reference_boxes, proposals, torch.as_tensor(self.weights, dtype=reference_boxes.dtype))

    def decode(self, rel_codes, boxes):
        """Offsets of all images together, 4 for each class, from a list of boxes (L, 4): (boxes, classes, 4). AssertionError for other types."""
        if not isinstance(boxes, (list, tuple)):
            raise AssertionError("This function expects boxes of type list or tuple.")
        if not isinstance(rel_codes, torch.Tensor):
            raise AssertionError("This function expects rel_codes of type torch.Tensor.")
        together = torch.cat(list(boxes))
        if len(together) == 0:
            return self.decode_single(rel_codes, together)
        return self.decode_single(rel_codes.reshape(len(together), -1), together).reshape(len(together), -1, 4)

    def decode_single(self, rel_codes, boxes):
        """Offsets (N, 4 * classes) from boxes (N, 4) as boxes (N, 4 * classes)."""
        centre, size = _centres(boxes.to(rel_codes.dtype)[:, None])
        codes = rel_codes.reshape(len(rel_codes), rel_codes.shape[1] // 4, 4)
        weights = torch.as_tensor(self.weights, dtype=codes.dtype)
        moved = codes[..., :2] / weights[:2] * size + centre
        half = 0.5 * (torch.exp((codes[..., 2:] / weights[2:]).clamp(max=self.bbox_xform_clip)) * size)
        return torch.cat((moved - half, moved + half), dim=-1).flatten(1)


class BoxLinearCoder:
    """Boxes as distances of their four sides from the centre of others (Tian et al., 2019), by their size where normalize_by_size. All (..., 4)."""

    def __init__(self, normalize_by_size=True):
        self.normalize_by_size = normalize_by_size

    @staticmethod
    def _middle(boxes):
        return 0.5 * (boxes[..., :2] + boxes[..., 2:]), torch.cat([boxes[..., 2:] - boxes[..., :2]] * 2, dim=-1)

    def encode(self, reference_boxes, proposals):
        """Distances of the sides of `proposals` from the centres of `reference_boxes`."""
        centre, size = self._middle(reference_boxes)
        sides = torch.cat((centre - proposals[..., :2], proposals[..., 2:] - centre), dim=-1)
        return sides / size if self.normalize_by_size else sides

    def decode(self, rel_codes, boxes):
        """The boxes at these distances from the centres of `boxes`."""
        centre, size = self._middle(boxes.to(rel_codes.dtype))
        sides = rel_codes * size if self.normalize_by_size else rel_codes
        return torch.cat((centre - sides[..., :2], centre + sides[..., 2:]), dim=-1)


class Matcher:
    """Which true box stands for each proposal: the one of most overlap, if that is at least `high_threshold`.

    Called with overlaps (M, N) of M true boxes; gives indices (N,), BELOW_LOW_THRESHOLD or BETWEEN_THRESHOLDS. With allow_low_quality_matches the
    proposals of most overlap with some true box keep theirs. AssertionError for thresholds out of order, ValueError without boxes on one side.
    """

    BELOW_LOW_THRESHOLD, BETWEEN_THRESHOLDS = -1, -2

    def __init__(self, high_threshold, low_threshold, allow_low_quality_matches=False):
        if not low_threshold <= high_threshold:
            raise AssertionError("low_threshold should be <= high_threshold")
        self.high_threshold, self.low_threshold, self.allow_low_quality_matches = high_threshold, low_threshold, allow_low_quality_matches

    def __call__(self, match_quality_matrix):
        if match_quality_matrix.numel() == 0:
            missing = "ground-truth" if match_quality_matrix.shape[0] == 0 else "proposal"
            raise ValueError(f"No {missing} boxes available for one of the images during training")
        overlap, best = match_quality_matrix.max(dim=0)
        below = overlap < self.low_threshold
        matches = best.masked_fill(below, self.BELOW_LOW_THRESHOLD)
        matches = matches.masked_fill((overlap >= self.low_threshold) & (overlap < self.high_threshold), self.BETWEEN_THRESHOLDS)
        if self.allow_low_quality_matches:
            self.set_low_quality_matches_(matches, best, match_quality_matrix)
        return matches

    def set_low_quality_matches_(self, matches, all_matches, match_quality_matrix):
        """Writes into `matches` what `all_matches` says of the proposals that no other exceeds, ties included, in overlap with some true box."""
        most = match_quality_matrix.max(dim=1)[0]
        proposals = torch.where(match_quality_matrix == most[:, None])[1]
        matches[proposals] = all_matches[proposals]


class SSDMatcher(Matcher):
    """A Matcher of one threshold in which every true box has the proposal of most overlap with it."""

    def __init__(self, threshold):
        super().__init__(threshold, threshold, allow_low_quality_matches=False)

    def __call__(self, match_quality_matrix):
        matches = super().__call__(match_quality_matrix)
        best = match_quality_matrix.max(dim=1)[1]
        matches[best] = torch.arange(len(best))
        return matches


def overwrite_eps(model, eps):
    """Sets eps of every FrozenBatchNorm2d, which older weights were trained without."""
    for module in model.modules():
        if isinstance(module, FrozenBatchNorm2d):
            module.eps = eps


def named_maps(features):
    """What a backbone gives as a dictionary: a single tensor is "0"."""
    return OrderedDict([("0", features)]) if isinstance(features, torch.Tensor) else features


def retrieve_out_channels(model, size):
    """Channels of each map that a backbone makes of pictures of `size` (width, height)."""
    training = model.training
    model.eval()
    with torch.no_grad():
        channels = [features.size(1) for features in named_maps(model(torch.zeros((1, 3, size[1], size[0])))).values()]
    if training:
        model.train()
    return channels


def rows_of(maps, columns):
    """What a convolution gives, (N, anchors * columns, H, W), in rows by place and anchor: (N, H * W * anchors, columns)."""
    n, channels, height, width = maps.shape
    return maps.reshape(n, channels // columns, columns, height, width).permute(0, 3, 4, 1, 2).reshape(n, height * width * (channels // columns), columns)


def _topk_min(input, orig_kval, axis):
    """How many of the orig_kval best there are along an axis."""
    return min(orig_kval, input.size(axis))


def _box_loss(type, box_coder, anchors_per_image, matched_gt_boxes_per_image, bbox_regression_per_image, cnf=None):
    """Sum of a loss of offsets (N, 4): 'l1' and 'smooth_l1' (cnf: beta) compare offsets, 'giou', 'diou' and 'ciou' (cnf: eps) boxes."""
    settings = cnf or {}
    if type in ("l1", "smooth_l1"):
        wanted = box_coder.encode_single(matched_gt_boxes_per_image, anchors_per_image)
        if type == "l1":
            return F.l1_loss(bbox_regression_per_image, wanted, reduction="sum")
        return F.smooth_l1_loss(bbox_regression_per_image, wanted, reduction="sum", beta=settings.get("beta", 1.0))
    losses = {"ciou": complete_box_iou_loss, "diou": distance_box_iou_loss, "giou": generalized_box_iou_loss}
    if type not in losses:
        raise AssertionError(f"Unsupported loss: {type}")
    boxes = box_coder.decode_single(bbox_regression_per_image, anchors_per_image)
    return losses[type](boxes, matched_gt_boxes_per_image, reduction="sum", eps=settings.get("eps", 1e-7))


def draw(module, init, **options):
    """Draws the weights of all convolutions in a module by init(weight, **options), in the modules' order; biases become 0."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            init(layer.weight, **options)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
