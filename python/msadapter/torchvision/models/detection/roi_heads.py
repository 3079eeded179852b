"""What is in each region: class and box (Girshick, 2015), mask and keypoints (He et al., 2017)."""

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models.detection._utils import BalancedPositiveNegativeSampler, BoxCoder, Matcher
from msadapter.torchvision.ops import boxes as box_ops
from msadapter.torchvision.ops import roi_align


def fastrcnn_loss(class_logits, box_regression, labels, regression_targets):
    """Losses of scores (N, classes) and of the offsets (N, classes * 4) of the true class, where one is; the other two are lists by image."""
    labels, wanted = torch.cat(labels), torch.cat(list(regression_targets))
    positive = torch.where(labels > 0)[0]
    offsets = box_regression.reshape(len(class_logits), box_regression.size(-1) // 4, 4)[positive, labels[positive]]
    box_loss = F.smooth_l1_loss(offsets, wanted[positive], beta=1 / 9, reduction="sum") / labels.numel()
    return F.cross_entropy(class_logits, labels), box_loss


def maskrcnn_inference(x, labels):
    """Probabilities (L, 1, H, W), for each image, of the masks (N, classes, H, W) that belong to the labels, a list of (L,)."""
    together = torch.cat(labels)
    return x.sigmoid()[torch.arange(len(x)), together][:, None].split([len(own) for own in labels], dim=0)


def project_masks_on_boxes(gt_masks, boxes, matched_idxs, M):
    """What boxes (L, 4) show of the masks (N, H, W) that they are matched to: (L, M, M)."""
    regions = torch.cat((matched_idxs.to(boxes)[:, None], boxes), dim=1)
    return roi_align(gt_masks[:, None].to(regions), regions, (M, M), 1.0)[:, 0]


def maskrcnn_loss(mask_logits, proposals, gt_masks, gt_labels, mask_matched_idxs):
    """Loss of the masks (N, classes, M, M) of the true classes; the others are lists by image."""
    labels = torch.cat([own[matches] for own, matches in zip(gt_labels, mask_matched_idxs)])
    wanted = torch.cat([project_masks_on_boxes(*own, mask_logits.shape[-1]) for own in zip(gt_masks, proposals, mask_matched_idxs)])
    if wanted.numel() == 0:  # no mean of nothing
        return mask_logits.sum() * 0
    return F.binary_cross_entropy_with_logits(mask_logits[torch.arange(len(labels)), labels], wanted)


def keypoints_to_heatmap(keypoints, rois, heatmap_size):
    """Keypoints (N, K, 3) of x, y and visibility as places (N, K) in maps of heatmap_size squared laid over rois (N, 4), and whether they count: those
    that are visible and inside. The right and lower side of a region belong to it."""
    scale = heatmap_size / (rois[:, None, 2:] - rois[:, None, :2])
    places = ((keypoints[..., :2] - rois[:, None, :2]) * scale).floor().long()
    places = torch.where(keypoints[..., :2] == rois[:, None, 2:], torch.full_like(places, heatmap_size - 1), places)
    valid = (((places >= 0) & (places < heatmap_size)).all(dim=-1) & (keypoints[..., 2] > 0)).long()
    return (places[..., 1] * heatmap_size + places[..., 0]) * valid, valid


def heatmaps_to_keypoints(maps, rois):
    """Where maps (N, K, H, W), resized to the regions rois (N, 4), are largest: keypoints (N, K, 3) of x, y and 1, and the values there (N, K)."""
    sizes = (rois[:, 2:] - rois[:, :2]).clamp(min=1)
    whole = sizes.ceil()
    points = torch.ones((len(rois), maps.shape[1], 3), dtype=torch.float32)
    scores = torch.zeros((len(rois), maps.shape[1]), dtype=torch.float32)
    for i, (width, height) in enumerate(whole.long().tolist()):
        large = F.interpolate(maps[i][:, None], size=(height, width), mode="bicubic", align_corners=False)[:, 0].flatten(1)
        best = large.argmax(dim=1)
        places = torch.stack((best % width, torch.div(best, width, rounding_mode="floor")), dim=1)
        points[i, :, :2] = (places.float() + 0.5) * (sizes[i] / whole[i]) + rois[i, :2]
        scores[i] = large[torch.arange(len(large)), best]
    return points, scores


def keypointrcnn_loss(keypoint_logits, proposals, gt_keypoints, keypoint_matched_idxs):
    """Loss of maps (N, K, M, M), each a choice among its places; the others are lists by image. ValueError unless the maps are square."""
    n, keypoints, height, width = keypoint_logits.shape
    if height != width:
        raise ValueError("keypoint_logits height and width (last two elements of shape) should be equal. "
                         f"Instead got H = {height} and W = {width}")
    pairs = [keypoints_to_heatmap(true[matches], own, height) for own, true, matches in zip(proposals, gt_keypoints, keypoint_matched_idxs)]
    wanted, valid = (torch.cat([each.reshape(-1) for each in part]) for part in zip(*pairs))
    valid = torch.where(valid)[0]
    if len(valid) == 0:  # no mean of nothing
        return keypoint_logits.sum() * 0
    return F.cross_entropy(keypoint_logits.reshape(n * keypoints, height * width)[valid], wanted[valid])


def keypointrcnn_inference(x, boxes):
    """For each image, the keypoints (L, K, 3) and scores (L, K) of maps (N, K, M, M) over its boxes (L, 4)."""
    pairs = [heatmaps_to_keypoints(*own) for own in zip(x.split([len(own) for own in boxes], dim=0), boxes)]
    return [points for points, _ in pairs], [scores for _, scores in pairs]


def expand_boxes(boxes, scale):
    """Boxes (N, 4) with sides `scale` times as long around the same centres."""
    centre, half = (boxes[:, 2:] + boxes[:, :2]) * 0.5, (boxes[:, 2:] - boxes[:, :2]) * 0.5 * scale
    return torch.cat((centre - half, centre + half), dim=1)


def expand_masks(mask, padding):
    """Masks (N, 1, M, M) with `padding` zeros around them, and by how much they have grown."""
    size = mask.shape[-1]
    return F.pad(mask, (padding,) * 4), float(size + 2 * padding) / size


def paste_mask_in_image(mask, box, im_h, im_w):
    """A mask (M, M) resized to a box (4,) of int64 in a picture (im_h, im_w) of zeros."""
    left, top, right, bottom = box.tolist()
    mask = F.interpolate(mask[None, None], size=(max(bottom - top + 1, 1), max(right - left + 1, 1)), mode="bilinear", align_corners=False)[0, 0]
    picture = torch.zeros((im_h, im_w), dtype=mask.dtype)
    x0, x1, y0, y1 = max(left, 0), min(right + 1, im_w), max(top, 0), min(bottom + 1, im_h)
    if x0 < x1 and y0 < y1:
        picture[y0:y1, x0:x1] = mask[y0 - top:y1 - top, x0 - left:x1 - left]
    return picture


def paste_masks_in_image(masks, boxes, img_shape, padding=1):
    """Masks (N, 1, M, M) resized to boxes (N, 4) in pictures of img_shape (height, width): (N, 1, height, width)."""
    masks, scale = expand_masks(masks, padding=padding)
    boxes = expand_boxes(boxes, scale).to(torch.int64)
    pasted = [paste_mask_in_image(mask[0], box, *img_shape) for mask, box in zip(masks, boxes)]
    return torch.stack(pasted)[:, None] if pasted else masks.new_empty((0, 1, *img_shape))


class RoIHeads(nn.Module):
    """Pooling, head and predictor for boxes and, where all three are given, for masks and for keypoints.

    forward(features, proposals, image_shapes, targets) takes maps by name and a list of regions (L, 4); it gives a list of dictionaries with "boxes",
    "labels", "scores" and maybe "masks", "keypoints" and "keypoints_scores", empty while training, and a dictionary of losses, empty otherwise.
    TypeError for targets of other types, ValueError for targets without what the heads need.
    """

    def __init__(self, box_roi_pool, box_head, box_predictor, fg_iou_thresh, bg_iou_thresh, batch_size_per_image, positive_fraction, bbox_reg_weights,
                 score_thresh, nms_thresh, detections_per_img, mask_roi_pool=None, mask_head=None, mask_predictor=None, keypoint_roi_pool=None,
                 keypoint_head=None, keypoint_predictor=None):
        super().__init__()
        self.box_similarity = box_ops.box_iou
        self.proposal_matcher = Matcher(fg_iou_thresh, bg_iou_thresh, allow_low_quality_matches=False)
        self.fg_bg_sampler = BalancedPositiveNegativeSampler(batch_size_per_image, positive_fraction)
        self.box_coder = BoxCoder((10.0, 10.0, 5.0, 5.0) if bbox_reg_weights is None else bbox_reg_weights)
        self.box_roi_pool, self.box_head, self.box_predictor = box_roi_pool, box_head, box_predictor
        self.score_thresh, self.nms_thresh, self.detections_per_img = score_thresh, nms_thresh, detections_per_img
        self.mask_roi_pool, self.mask_head, self.mask_predictor = mask_roi_pool, mask_head, mask_predictor
        self.keypoint_roi_pool, self.keypoint_head, self.keypoint_predictor = keypoint_roi_pool, keypoint_head, keypoint_predictor

    def has_mask(self):
        """Whether masks are predicted."""
        return None not in (self.mask_roi_pool, self.mask_head, self.mask_predictor)

    def has_keypoint(self):
        """Whether keypoints are predicted."""
        return None not in (self.keypoint_roi_pool, self.keypoint_head, self.keypoint_predictor)

    def assign_targets_to_proposals(self, proposals, gt_boxes, gt_labels):
        """For each image, the true box of each region (L,) and its label: 0 for nothing, -1 for what is between the thresholds."""
        matched, labels = [], []
        for own, true, names in zip(proposals, gt_boxes, gt_labels):
            if true.numel() == 0:
                matched.append(torch.zeros(len(own), dtype=torch.int64))
                labels.append(torch.zeros(len(own), dtype=torch.int64))
                continue
            matches = self.proposal_matcher(box_ops.box_iou(true, own))
            matched.append(matches.clamp(min=0))
            label = names[matched[-1]].to(torch.int64).masked_fill(matches == self.proposal_matcher.BELOW_LOW_THRESHOLD, 0)
            labels.append(label.masked_fill(matches == self.proposal_matcher.BETWEEN_THRESHOLDS, -1))
        return matched, labels

    def subsample(self, labels):
        """Indices of the regions drawn from each image."""
        return [torch.where(positive | negative)[0] for positive, negative in zip(*self.fg_bg_sampler(labels))]

    def add_gt_proposals(self, proposals, gt_boxes):
        """The regions of each image with the true boxes behind them."""
        return [torch.cat(pair) for pair in zip(proposals, gt_boxes)]

    def check_targets(self, targets):
        """Raises ValueError where targets lack a key."""
        if targets is None:
            raise ValueError("targets should not be None")
        for key in ("boxes", "labels", "masks") if self.has_mask() else ("boxes", "labels"):
            if not all(key in target for target in targets):
                raise ValueError(f"Every element of targets should have a {key} key")

    def _check_types(self, targets):
        for target in targets:
            if target["boxes"].dtype not in (torch.float32, torch.float64, torch.float16):
                raise TypeError(f"target boxes must of float type, instead got {target['boxes'].dtype}")
            if target["labels"].dtype != torch.int64:
                raise TypeError(f"target labels must of int64 type, instead got {target['labels'].dtype}")
            if self.has_keypoint() and target["keypoints"].dtype != torch.float32:
                raise TypeError(f"target keypoints must of float type, instead got {target['keypoints'].dtype}")

    def select_training_samples(self, proposals, targets):
        """Regions to train on, with their true boxes' indices, labels and offsets: four lists by image."""
        self.check_targets(targets)
        dtype = proposals[0].dtype
        true = [target["boxes"].to(dtype) for target in targets]
        proposals = self.add_gt_proposals(proposals, true)
        matched, labels = self.assign_targets_to_proposals(proposals, true, [target["labels"] for target in targets])
        drawn = self.subsample(labels)
        proposals, matched, labels = ([own[chosen] for own, chosen in zip(each, drawn)] for each in (proposals, matched, labels))
        true = [(boxes if boxes.numel() else torch.zeros((1, 4), dtype=dtype))[own] for boxes, own in zip(true, matched)]
        return proposals, matched, labels, self.box_coder.encode(true, proposals)

    def postprocess_detections(self, class_logits, box_regression, proposals, image_shapes):
        """Lists by image of the boxes, scores and labels that stay of scores (N, classes) and offsets (N, classes * 4); class 0 is nothing."""
        counts, classes = [len(own) for own in proposals], class_logits.shape[-1]
        decoded = self.box_coder.decode(box_regression, proposals).split(counts, 0)
        results = [], [], []
        for boxes, scores, size in zip(decoded, F.softmax(class_logits, -1).split(counts, 0), image_shapes):
            boxes = box_ops.clip_boxes_to_image(boxes, size)[:, 1:].reshape(-1, 4)
            labels = torch.arange(classes).view(1, -1).expand_as(scores)[:, 1:].reshape(-1)
            scores = scores[:, 1:].reshape(-1)
            keep = torch.where(scores > self.score_thresh)[0]
            keep = keep[box_ops.remove_small_boxes(boxes[keep], min_size=1e-2)]
            boxes, scores, labels = boxes[keep], scores[keep], labels[keep]
            keep = box_ops.batched_nms(boxes, scores, labels, self.nms_thresh)[:self.detections_per_img]
            for result, values in zip(results, (boxes, scores, labels)):
                result.append(values[keep])
        return results

    def _maps(self, what, features, boxes, image_shapes):
        pool, head, predictor = (getattr(self, f"{what}_{part}") for part in ("roi_pool", "head", "predictor"))
        return predictor(head(pool(features, boxes, image_shapes)))

    def _train(self, features, proposals, image_shapes, targets):
        proposals, matched, labels, offsets = self.select_training_samples(proposals, targets)
        scores, regression = self._maps("box", features, proposals, image_shapes)
        losses = dict(zip(("loss_classifier", "loss_box_reg"), fastrcnn_loss(scores, regression, labels, offsets)))
        positive = [torch.where(own > 0)[0] for own in labels]  # only what is there has a mask and keypoints
        boxes, matched = ([own[chosen] for own, chosen in zip(each, positive)] for each in (proposals, matched))
        if self.has_mask():
            masks = self._maps("mask", features, boxes, image_shapes)
            losses["loss_mask"] = maskrcnn_loss(masks, boxes, [t["masks"] for t in targets], [t["labels"] for t in targets], matched)
        if self.has_keypoint():
            maps = self._maps("keypoint", features, boxes, image_shapes)
            losses["loss_keypoint"] = keypointrcnn_loss(maps, boxes, [t["keypoints"] for t in targets], matched)
        return [], losses

    def _detect(self, features, proposals, image_shapes):
        found = self.postprocess_detections(*self._maps("box", features, proposals, image_shapes), proposals, image_shapes)
        result = [{"boxes": boxes, "labels": labels, "scores": scores} for boxes, scores, labels in zip(*found)]
        boxes, labels = found[0], found[2]
        if self.has_mask():
            for own, masks in zip(result, maskrcnn_inference(self._maps("mask", features, boxes, image_shapes), labels)):
                own["masks"] = masks
        if self.has_keypoint():
            for own, points, scores in zip(result, *keypointrcnn_inference(self._maps("keypoint", features, boxes, image_shapes), boxes)):
                own["keypoints"], own["keypoints_scores"] = points, scores
        return result, {}

    def forward(self, features, proposals, image_shapes, targets=None):
        if targets is not None:
            self._check_types(targets)
        return self._train(features, proposals, image_shapes, targets) if self.training else self._detect(features, proposals, image_shapes)
