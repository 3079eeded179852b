"""Regions pooled out of the level of a feature pyramid that suits their size (Lin et al., 2017)."""

import math

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision.ops.boxes import box_area
from msadapter.torchvision.ops.regions import convert_boxes_to_roi_format, roi_align


class LevelMapper:
    """Levels for lists of boxes: one of side `canonical_scale` belongs to `canonical_level`, one of half the side to the level below."""

    def __init__(self, k_min, k_max, canonical_scale=224, canonical_level=4, eps=1e-6):
        self.k_min, self.k_max, self.s0, self.lvl0, self.eps = k_min, k_max, canonical_scale, canonical_level, eps

    def __call__(self, boxlists):
        side = torch.sqrt(torch.cat([box_area(boxes) for boxes in boxlists]))
        levels = torch.floor(self.lvl0 + torch.log2(side / self.s0) + torch.tensor(self.eps, dtype=side.dtype))
        return levels.clamp(min=self.k_min, max=self.k_max).to(torch.int64) - self.k_min


def initLevelMapper(k_min, k_max, canonical_scale=224, canonical_level=4, eps=1e-6):
    """A LevelMapper."""
    return LevelMapper(k_min, k_max, canonical_scale, canonical_level, eps)


def _setup_scales(features, image_shapes, canonical_scale, canonical_level):
    """The power of two by which each map is smaller than the largest picture, and the mapper from the finest to the coarsest."""
    if not image_shapes:
        raise ValueError("images list should not be empty")
    height = max(shape[0] for shape in image_shapes)
    scales = [2.0 ** round(math.log2(feature.shape[-2] / height)) for feature in features]
    finest, coarsest = (int(-math.log2(scale)) for scale in (scales[0], scales[-1]))
    return scales, LevelMapper(finest, coarsest, canonical_scale, canonical_level)


class MultiScaleRoIAlign(nn.Module):
    """`roi_align` out of the maps named in `featmap_names`, each box out of the level for its size.

    forward(maps, boxes, image_shapes): maps is a dictionary of (N, C, H, W), boxes a list of (L, 4) in pixels of the pictures, whose sizes
    (height, width) tell the maps' scales at the first call. The result is (K, C, height, width).
    """

    def __init__(self, featmap_names, output_size, sampling_ratio, *, canonical_scale=224, canonical_level=4):
        super().__init__()
        self.featmap_names, self.sampling_ratio = featmap_names, sampling_ratio
        self.output_size = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
        self.scales = self.map_levels = None
        self.canonical_scale, self.canonical_level = canonical_scale, canonical_level

    def forward(self, x, boxes, image_shapes):
        maps = [value for name, value in x.items() if name in self.featmap_names]
        if self.scales is None or self.map_levels is None:
            self.scales, self.map_levels = _setup_scales(maps, image_shapes, self.canonical_scale, self.canonical_level)
        rois = convert_boxes_to_roi_format(boxes)
        if len(maps) == 1:
            return roi_align(maps[0], rois, self.output_size, self.scales[0], self.sampling_ratio)
        levels = self.map_levels(boxes)
        own = [torch.where(levels == level)[0] for level in range(len(maps))]
        pooled = torch.cat([roi_align(*each, self.output_size, scale, self.sampling_ratio)
                            for each, scale in zip(((value, rois[at]) for value, at in zip(maps, own)), self.scales)])
        return pooled[torch.argsort(torch.cat(own))]

    def __repr__(self):
        return f"{type(self).__name__}(featmap_names={self.featmap_names}, output_size={self.output_size}, sampling_ratio={self.sampling_ratio})"
