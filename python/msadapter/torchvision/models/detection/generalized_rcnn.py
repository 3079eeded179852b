"""Detectors that propose regions and look at each of them, and what they have in common with others."""

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision.models.detection._utils import named_maps


class Detector(nn.Module):
    """What comes before and after a detector's network: subclasses have transform and backbone and define _found(images, features, targets).

    forward(images, targets) takes a list of pictures (C, H, W) and, while training, a list of dictionaries with at least "boxes" (N, 4) of x1, y1, x2, y2
    and "labels" (N,). While training the result is a dictionary of losses, otherwise a list of dictionaries with at least "boxes", "labels" and "scores",
    in pixels of the pictures given. AssertionError for targets of another form and boxes without width or height.
    """

    @staticmethod
    def _check(targets):
        if targets is None:
            raise AssertionError("targets should not be none when in training mode")
        for target in targets:
            boxes = target["boxes"]
            if not isinstance(boxes, torch.Tensor):
                raise AssertionError(f"Expected target boxes to be of type Tensor, got {type(boxes)}.")
            if boxes.dim() != 2 or boxes.shape[-1] != 4:
                raise AssertionError(f"Expected target boxes to be a tensor of shape [N, 4], got {boxes.shape}.")

    @staticmethod
    def _check_sides(targets):
        for i, target in enumerate(targets):
            flat = (target["boxes"][:, 2:] <= target["boxes"][:, :2]).any(dim=1)
            if flat.any():
                box = target["boxes"][torch.where(flat)[0][0]].tolist()
                raise AssertionError(f"All bounding boxes should have positive height and width. Found invalid box {box} for target at index {i}.")

    def eager_outputs(self, losses, detections):
        """What forward gives of both."""
        return losses if self.training else detections

    def forward(self, images, targets=None):
        if self.training:
            self._check(targets)
        sizes = []
        for image in images:
            if image.dim() < 2:
                raise AssertionError(f"expecting the last two dimensions of the Tensor to be H and W instead got {image.shape[-2:]}")
            sizes.append(tuple(image.shape[-2:]))
        images, targets = self.transform(images, targets)
        if targets is not None:
            self._check_sides(targets)
        losses, detections = self._found(images, named_maps(self.backbone(images.tensors)), targets)
        return self.eager_outputs(losses, self.transform.postprocess(detections, images.image_sizes, sizes))


class GeneralizedRCNN(Detector):
    """transform, backbone, rpn (regions and losses out of maps) and roi_heads (detections and losses out of maps and regions)."""

    def __init__(self, backbone, rpn, roi_heads, transform):
        super().__init__()
        self.transform, self.backbone, self.rpn, self.roi_heads = transform, backbone, rpn, roi_heads

    def _found(self, images, features, targets):
        proposals, proposal_losses = self.rpn(images, features, targets)
        detections, losses = self.roi_heads(features, proposals, images.image_sizes, targets)
        return {**losses, **proposal_losses}, detections
