"""Pooling of regions of interest out of feature maps, as functions and as modules.

Inputs are (N, C, H, W). Regions are a tensor (K, 5) of (image, x1, y1, x2, y2), or a list of tensors (L, 4), one for each image; results
are (K, C, height, width). Raises AssertionError for regions of another form.
"""

from msadapter import _C
from msadapter import pytorch as torch
from msadapter.pytorch import nn


def _pair(size):
    return tuple(size) if isinstance(size, (list, tuple)) else (size, size)


def convert_boxes_to_roi_format(boxes):
    """A list of boxes (L, 4) for each image as regions (K, 5)."""
    numbers = torch.cat([torch.full_like(b[:, :1], i) for i, b in enumerate(boxes)])
    return torch.cat([numbers, torch.cat(list(boxes))], dim=1)


def _regions(boxes):
    if isinstance(boxes, (list, tuple)):
        if any(b.size(1) != 4 for b in boxes):
            raise AssertionError("The shape of the tensor in the boxes list is not correct as List[Tensor[L, 4]]")
        return convert_boxes_to_roi_format(boxes)
    if not isinstance(boxes, torch.Tensor):
        raise AssertionError("boxes is expected to be a Tensor[L, 5] or a List[Tensor[K, 4]]")
    if boxes.size(1) != 5:
        raise AssertionError("The boxes tensor shape is not correct as Tensor[K, 5]")
    return boxes


def _pooled(operator, input, boxes, spatial_scale, output_size, *more):
    rois = _regions(boxes)
    if torch.is_autocast_enabled():
        return _pooled_plain(operator, input.float(), rois.float(), spatial_scale, output_size, *more).to(input.dtype)
    return _pooled_plain(operator, input, rois, spatial_scale, output_size, *more)


def _pooled_plain(operator, input, rois, spatial_scale, output_size, *more):
    return operator(input, rois, spatial_scale, *_pair(output_size), *more)


def roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=False):
    """Means over samples between elements (He et al., 2017, Mask R-CNN).

    Each bin is sampled sampling_ratio x sampling_ratio times, as often as it has elements where that is not positive. `aligned` moves
    boxes by half an element, so that (0, 0) is the corner of the first element and not its middle.
    """
    return _pooled(_C._vision.roi_align, input, boxes, spatial_scale, output_size, sampling_ratio, aligned)


def _largest(*args):
    return _C._vision.roi_pool(*args)[0]


def roi_pool(input, boxes, output_size, spatial_scale=1.0):
    """Largest values of bins of whole elements (Girshick, 2015, Fast R-CNN)."""
    return _pooled(_largest, input, boxes, spatial_scale, output_size)


def ps_roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1):
    """`roi_align` with channels of its own for every bin (Li et al., 2017, Light-Head R-CNN): (K, C / (height * width), height, width)."""
    return _pooled(_C._vision.ps_roi_align, input, boxes, spatial_scale, output_size, sampling_ratio)


def ps_roi_pool(input, boxes, output_size, spatial_scale=1.0):
    """Means of whole elements with channels of its own for every bin (Dai et al., 2016, R-FCN): (K, C / (height * width), height, width).

    As in PyTorch the last row and column of the input don't count; the gradient is that of this function everywhere.
    """
    return _pooled(_C._vision.ps_roi_pool, input, boxes, spatial_scale, output_size)


class _Pool(nn.Module):
    """A pooling function with its settings; subclasses name both."""

    def __init__(self, output_size, spatial_scale, **more):
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale
        self._names = ["output_size", "spatial_scale", *more]
        vars(self).update(more)

    def forward(self, input, rois):
        return type(self)._function(input, rois, *(getattr(self, name) for name in self._names))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in self._names)})"


class RoIAlign(_Pool):
    """`roi_align` as a module."""

    _function = staticmethod(roi_align)

    def __init__(self, output_size, spatial_scale, sampling_ratio, aligned=False):
        super().__init__(output_size, spatial_scale, sampling_ratio=sampling_ratio, aligned=aligned)


class RoIPool(_Pool):
    """`roi_pool` as a module."""

    _function = staticmethod(roi_pool)

    def __init__(self, output_size, spatial_scale):
        super().__init__(output_size, spatial_scale)


class PSRoIAlign(_Pool):
    """`ps_roi_align` as a module."""

    _function = staticmethod(ps_roi_align)

    def __init__(self, output_size, spatial_scale, sampling_ratio):
        super().__init__(output_size, spatial_scale, sampling_ratio=sampling_ratio)


class PSRoIPool(_Pool):
    """`ps_roi_pool` as a module."""

    _function = staticmethod(ps_roi_pool)

    def __init__(self, output_size, spatial_scale):
        super().__init__(output_size, spatial_scale)
