"""Pictures and targets as detectors want them, and detections as pictures want them."""

import math
import warnings

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models.detection.image_list import ImageList
from msadapter.torchvision.models.detection.roi_heads import paste_masks_in_image


def _ratios(original_size, new_size):
    """new / original height and width as float32 of no dimensions, which leave the type of what they multiply."""
    return [torch.tensor(new, dtype=torch.float32) / torch.tensor(old, dtype=torch.float32) for new, old in zip(new_size, original_size)]


def resize_keypoints(keypoints, original_size, new_size):
    """Keypoints (N, K, 3) of x, y and visibility, for a picture of another size (height, width)."""
    down, across = _ratios(original_size, new_size)
    return torch.stack((keypoints[..., 0] * across, keypoints[..., 1] * down, *keypoints.unbind(-1)[2:]), dim=-1)


def resize_boxes(boxes, original_size, new_size):
    """Boxes (N, 4) for a picture of another size (height, width)."""
    down, across = _ratios(original_size, new_size)
    left, top, right, bottom = boxes.unbind(1)
    return torch.stack((left * across, top * down, right * across, bottom * down), dim=1)


class GeneralizedRCNNTransform(nn.Module):
    """Pictures normalised, resized and put into one tensor.

    The shorter side becomes min_size (one of them at random while training, the last otherwise) unless the longer would exceed max_size; or every
    picture gets fixed_size (width, height). Sides of the tensor are multiples of size_divisible. forward(images, targets) takes a list of (C, H, W) in
    [0, 1] and a list of dictionaries with "boxes" and maybe "masks" and "keypoints"; it gives an ImageList and the targets for it. TypeError for
    pictures of integers, ValueError for other shapes.
    """

    def __init__(self, min_size, max_size, image_mean, image_std, size_divisible=32, fixed_size=None, **kwargs):
        super().__init__()
        self.min_size = min_size if isinstance(min_size, (list, tuple)) else (min_size,)
        self.max_size, self.image_mean, self.image_std = max_size, image_mean, image_std
        self.size_divisible, self.fixed_size = size_divisible, fixed_size
        self._skip_resize = kwargs.pop("_skip_resize", False)
        if kwargs:  # as in PyTorch they don't matter, but who wrote them thinks otherwise
            warnings.warn(f"{type(self).__name__} knows no arguments {', '.join(kwargs)}: they have no effect")

    def forward(self, images, targets=None):
        targets = None if targets is None else [dict(target) for target in targets]
        resized = []
        for i, image in enumerate(images):
            if image.dim() != 3:
                raise ValueError(f"images is expected to be a list of 3d tensors of shape [C, H, W], got {image.shape}")
            image, target = self.resize(self.normalize(image), None if targets is None else targets[i])
            resized.append(image)
            if targets is not None:
                targets[i] = target
        sizes = [tuple(image.shape[-2:]) for image in resized]
        return ImageList(self.batch_images(resized, size_divisible=self.size_divisible), sizes), targets

    def normalize(self, image):
        """A picture less the mean of each channel, by its deviation."""
        if not image.is_floating_point():
            raise TypeError(f"Expected input images to be of floating type (in range [0, 1]), but found type {image.dtype} instead")
        mean, std = (torch.as_tensor(values, dtype=image.dtype)[:, None, None] for values in (self.image_mean, self.image_std))
        return (image - mean) / std

    def torch_choice(self, k):
        """One of a list at random, drawn as PyTorch draws it."""
        return k[int(torch.empty(1).uniform_(0.0, float(len(k))).item())]

    def _new_size(self, height, width, shorter):
        """Arguments of interpolate(): the size, or the scale that leaves the shorter side `shorter` pixels or the longer max_size."""
        if self.fixed_size is not None:
            return {"size": [self.fixed_size[1], self.fixed_size[0]]}
        sides = torch.tensor([min(height, width), max(height, width)], dtype=torch.float32)
        scale = (torch.tensor([shorter, float(self.max_size)], dtype=torch.float32) / sides).min().item()
        return {"scale_factor": scale, "recompute_scale_factor": True}

    def resize(self, image, target=None):
        """A picture (C, H, W) and its target, if any, in the new size."""
        before = tuple(image.shape[-2:])
        if self.training and self._skip_resize:
            return image, target
        size = self._new_size(*before, float(self.torch_choice(self.min_size) if self.training else self.min_size[-1]))
        image = F.interpolate(image[None], mode="bilinear", align_corners=False, **size)[0]
        if target is None:
            return image, target
        after = tuple(image.shape[-2:])
        if "masks" in target:
            target["masks"] = F.interpolate(target["masks"][:, None].float(), **size)[:, 0].byte()
        target["boxes"] = resize_boxes(target["boxes"], before, after)
        if "keypoints" in target:
            target["keypoints"] = resize_keypoints(target["keypoints"], before, after)
        return image, target

    def max_by_axis(self, the_list):
        """The largest of each place in lists of sizes."""
        return [max(sizes) for sizes in zip(*the_list)]

    def batch_images(self, images, size_divisible=32):
        """Pictures (C, H, W) as one tensor (N, C, H', W'), filled up with 0."""
        first = images[0]
        channels, height, width = self.max_by_axis([list(image.shape) for image in images])
        stride = float(size_divisible)
        batch = first.new_full((len(images), channels, int(math.ceil(height / stride) * stride), int(math.ceil(width / stride) * stride)), 0)
        for place, image in zip(batch, images):
            place[:image.shape[0], :image.shape[1], :image.shape[2]].copy_(image)
        return batch

    def postprocess(self, result, image_shapes, original_image_sizes):
        """Detections for pictures of their original sizes, all lists by picture; masks become (N, 1, H, W). While training nothing changes."""
        if self.training:
            return result
        for found, size, original in zip(result, image_shapes, original_image_sizes):
            found["boxes"] = resize_boxes(found["boxes"], size, original)
            if "masks" in found:
                found["masks"] = paste_masks_in_image(found["masks"], found["boxes"], original)
            if "keypoints" in found:
                found["keypoints"] = resize_keypoints(found["keypoints"], size, original)
        return result

    def __repr__(self):
        return (f"{type(self).__name__}(\n    Normalize(mean={self.image_mean}, std={self.image_std})"
                f"\n    Resize(min_size={self.min_size}, max_size={self.max_size}, mode='bilinear')\n)")
