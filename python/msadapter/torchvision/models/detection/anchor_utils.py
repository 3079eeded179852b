"""Boxes laid over pictures at regular places, which detectors move and resize."""

import math

from msadapter import pytorch as torch
from msadapter.pytorch import nn


def _grid(height, width, x, y):
    """Places (height * width, 2) of x (width,) and y (height,), x first, row by row."""
    return torch.stack((x[None].expand(height, width), y[:, None].expand(height, width)), dim=-1).reshape(-1, 2)


class AnchorGenerator(nn.Module):
    """Boxes of all `sizes` and `aspect_ratios` (height / width) of a level around each element of its map (Ren et al., 2015).

    forward(images, maps) gives a list of boxes (L, 4), in pixels, one for each picture of the ImageList. AssertionError where the number of maps is
    not that of sizes.
    """

    def __init__(self, sizes=((128, 256, 512),), aspect_ratios=((0.5, 1.0, 2.0),)):
        super().__init__()
        self.sizes = sizes if isinstance(sizes[0], (list, tuple)) else tuple((size,) for size in sizes)
        self.aspect_ratios = aspect_ratios if isinstance(aspect_ratios[0], (list, tuple)) else (aspect_ratios,) * len(self.sizes)
        self.cell_anchors = [self.generate_anchors(*level) for level in zip(self.sizes, self.aspect_ratios)]

    def generate_anchors(self, scales, aspect_ratios, dtype=torch.float32, device=torch.device("cpu")):
        """Boxes (ratios * scales, 4) around the origin, with whole coordinates."""
        scales, tall = torch.as_tensor(scales, dtype=dtype, device=device), torch.sqrt(torch.as_tensor(aspect_ratios, dtype=dtype, device=device))
        sizes = torch.stack([((1 / tall)[:, None] * scales).reshape(-1), (tall[:, None] * scales).reshape(-1)], dim=1)
        return (torch.cat((-sizes, sizes), dim=1) / 2).round()

    def set_cell_anchors(self, dtype, device):
        """Converts the boxes around the origin."""
        self.cell_anchors = [anchors.to(dtype=dtype, device=device) for anchors in self.cell_anchors]

    def num_anchors_per_location(self):
        """Boxes around an element, for each level."""
        return [len(sizes) * len(ratios) for sizes, ratios in zip(self.sizes, self.aspect_ratios)]

    def grid_anchors(self, grid_sizes, strides):
        """Boxes (L, 4) of each level, from the maps' sizes (height, width) and the pixels (down, right) from an element to the next."""
        if not len(grid_sizes) == len(strides) == len(self.cell_anchors):
            raise AssertionError(f"Anchors should be Tuple[Tuple[int]], one for each feature map: there are {len(self.cell_anchors)} tuples of sizes "
                                 f"for {len(grid_sizes)} maps")
        anchors = []
        for (height, width), (down, right), cell in zip(grid_sizes, strides, self.cell_anchors):
            places = _grid(height, width, torch.arange(width, dtype=torch.int32) * right, torch.arange(height, dtype=torch.int32) * down)
            anchors.append((places.repeat(1, 2)[:, None] + cell).reshape(-1, 4))
        return anchors

    def forward(self, image_list, feature_maps):
        sizes = [tuple(maps.shape[-2:]) for maps in feature_maps]
        height, width = image_list.tensors.shape[-2:]
        self.set_cell_anchors(feature_maps[0].dtype, feature_maps[0].device)
        anchors = torch.cat(self.grid_anchors(sizes, [(height // size[0], width // size[1]) for size in sizes]))
        return [anchors.clone() for _ in image_list.image_sizes]


class DefaultBoxGenerator(nn.Module):
    """SSD's boxes (Liu et al., 2016): for each level two squares and, for each of its aspect_ratios, a wide and a tall one around each element.

    scales: sides of the squares as shares of the picture, one more than levels; from min_ratio to max_ratio where not given. steps: pixels from an
    element to the next; otherwise the maps cover the picture. clip keeps sides within the picture's. ValueError unless there is a step for each level.
    forward(images, maps) gives a list of boxes (L, 4), in pixels, one for each picture of the ImageList.
    """

    def __init__(self, aspect_ratios, min_ratio=0.15, max_ratio=0.9, scales=None, steps=None, clip=True):
        super().__init__()
        if steps is not None and len(aspect_ratios) != len(steps):
            raise ValueError("aspect_ratios and steps should have the same length")
        self.aspect_ratios, self.steps, self.clip = aspect_ratios, steps, clip
        levels = len(aspect_ratios)
        if scales is None:
            scales = [min_ratio + (max_ratio - min_ratio) * k / (levels - 1.0) for k in range(levels)] + [1.0] if levels > 1 else [min_ratio, max_ratio]
        self.scales = scales
        self._wh_pairs = self._generate_wh_pairs(levels)

    def _generate_wh_pairs(self, num_outputs, dtype=torch.float32, device=torch.device("cpu")):
        """Widths and heights (boxes, 2) for each level."""
        pairs = []
        for k in range(num_outputs):
            side, between = self.scales[k], math.sqrt(self.scales[k] * self.scales[k + 1])
            sizes = [[side, side], [between, between]]
            for ratio in self.aspect_ratios[k]:
                long, short = side * math.sqrt(ratio), side / math.sqrt(ratio)
                sizes += [[long, short], [short, long]]
            pairs.append(torch.as_tensor(sizes, dtype=dtype, device=device))
        return pairs

    def num_anchors_per_location(self):
        """Boxes around an element, for each level."""
        return [2 + 2 * len(ratios) for ratios in self.aspect_ratios]

    def _grid_default_boxes(self, grid_sizes, image_size, dtype=torch.float32):
        """Boxes (L, 4) of all levels as centre and size, in shares of the picture."""
        boxes = []
        for k, (height, width) in enumerate(grid_sizes):
            across, down = (width, height) if self.steps is None else (image_size[1] / self.steps[k], image_size[0] / self.steps[k])
            places = _grid(height, width, ((torch.arange(0, width) + 0.5) / across).to(dtype), ((torch.arange(0, height) + 0.5) / down).to(dtype))
            sizes = self._wh_pairs[k].clamp(min=0, max=1) if self.clip else self._wh_pairs[k]
            boxes.append(torch.cat((places.repeat_interleave(len(sizes), dim=0), sizes.repeat(height * width, 1)), dim=1))
        return torch.cat(boxes)

    def forward(self, image_list, feature_maps):
        height, width = image_list.tensors.shape[-2:]
        boxes = self._grid_default_boxes([tuple(maps.shape[-2:]) for maps in feature_maps], (height, width), dtype=feature_maps[0].dtype)
        half, size = 0.5 * boxes[:, 2:], torch.tensor([width, height])
        anchors = torch.cat(((boxes[:, :2] - half) * size, (boxes[:, :2] + half) * size), dim=-1)
        return [anchors.clone() for _ in image_list.image_sizes]

    def __repr__(self):
        return f"{type(self).__name__}(aspect_ratios={self.aspect_ratios}, clip={self.clip}, scales={self.scales}, steps={self.steps})"
