"""Pictures to look at: grids, boxes, masks, keypoints and optical flow. Pillow draws and saves."""

import warnings

from msadapter import pytorch as torch

__all__ = ["make_grid", "save_image", "draw_bounding_boxes", "draw_segmentation_masks", "draw_keypoints", "flow_to_image"]


@torch.no_grad()
def make_grid(tensor, nrow=8, padding=2, normalize=False, value_range=None, scale_each=False, pad_value=0.0, **kwargs):
    """Pictures (B, C, H, W), or a list of pictures of one size, side by side: `nrow` to a line, `padding` pixels of `pad_value` around each.

    Grey pictures get three channels. `normalize` brings `value_range` (by default what occurs, in each picture with `scale_each`) to [0, 1].
    A single picture comes back without a frame. Raises TypeError for anything but tensors.
    """
    if "range" in kwargs:  # value_range's name up to 0.13
        warnings.warn("The parameter 'range' is deprecated since 0.12 and will be removed in 0.14. Please use 'value_range' instead.", stacklevel=2)
        value_range = kwargs.pop("range")
    if kwargs:
        warnings.warn(f"make_grid does nothing with {', '.join(sorted(kwargs))}", stacklevel=2)
    if isinstance(tensor, list):
        for item in tensor:
            if not torch.is_tensor(item):
                raise TypeError(f"tensor or list of tensors expected, got a list containing {type(item)}")
        tensor = torch.stack(tensor, dim=0)
    elif not torch.is_tensor(tensor):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    if tensor.dim() == 2:
        tensor = tensor.unsqueeze(0)
    if tensor.dim() == 3:
        tensor = tensor.unsqueeze(0)
    if tensor.dim() == 4 and tensor.size(1) == 1:
        tensor = torch.cat((tensor, tensor, tensor), 1)
    if normalize:
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError("value_range has to be a tuple (min, max) if specified. min and max are numbers")
        tensor = tensor.clone()
        for part in tensor if scale_each else [tensor]:
            low, high = value_range if value_range is not None else (float(part.min()), float(part.max()))
            part.clamp_(min=low, max=high).sub_(low).div_(max(high - low, 1e-5))
    if tensor.size(0) == 1:
        return tensor.squeeze(0)
    count, channels = tensor.size(0), tensor.size(1)
    columns = min(nrow, count)
    rows = -(-count // columns)
    height, width = tensor.size(2) + padding, tensor.size(3) + padding
    grid = tensor.new_full((channels, height * rows + padding, width * columns + padding), pad_value)
    for k in range(count):
        top, left = k // columns * height + padding, k % columns * width + padding
        grid[:, top:top + height - padding, left:left + width - padding] = tensor[k]
    return grid


@torch.no_grad()
def save_image(tensor, fp, format=None, **kwargs):
    """Write pictures of values in [0, 1] as a file; several as a grid (`kwargs` are make_grid's). `format` is needed where `fp` has no name."""
    from PIL import Image

    grid = make_grid(tensor, **kwargs)
    values = grid.mul(255).add_(0.5).clamp_(0, 255).permute(1, 2, 0).to("cpu", torch.uint8).contiguous().numpy()
    Image.fromarray(values).save(fp, format=format)


def _palette(count):
    """Colours that differ: the n-th is n times three large numbers, modulo 255."""
    return [tuple(i * part % 255 for part in (2**25 - 1, 2**15 - 1, 2**21 - 1)) for i in range(count)]


def _rgb(colour):
    from PIL import ImageColor

    return ImageColor.getrgb(colour) if isinstance(colour, str) else colour


def _to_picture(image):
    from PIL import Image

    return Image.fromarray(image.permute(1, 2, 0).contiguous().cpu().numpy())


def _from_picture(picture):
    import numpy

    return torch.from_numpy(numpy.array(picture)).permute(2, 0, 1)


@torch.no_grad()
def draw_bounding_boxes(image, boxes, labels=None, colors=None, fill=False, width=1, font=None, font_size=None):
    """A uint8 picture (1 or 3, H, W) as RGB with `boxes` (N, 4) of (xmin, ymin, xmax, ymax) in pixels, named by `labels`.

    `colors` is one colour or a list: Pillow's names, "#rrggbb" or RGB tuples. `fill` fills the boxes translucently. `font` is a TrueType file.
    Raises TypeError for anything but a tensor, ValueError for other shapes, types, and numbers of labels or colours.
    """
    from PIL import ImageDraw, ImageFont

    if not isinstance(image, torch.Tensor):
        raise TypeError(f"Tensor expected, got {type(image)}")
    if image.dtype != torch.uint8:
        raise ValueError(f"Tensor uint8 expected, got {image.dtype}")
    if image.dim() != 3:
        raise ValueError("Pass individual images, not batches")
    if image.size(0) not in (1, 3):
        raise ValueError("Only grayscale and RGB images are supported")
    if (boxes[:, 0] > boxes[:, 2]).any() or (boxes[:, 1] > boxes[:, 3]).any():
        raise ValueError("Boxes need to be in (xmin, ymin, xmax, ymax) format. Use torchvision.ops.box_convert to convert them")
    count = boxes.shape[0]
    if count == 0:
        warnings.warn("boxes doesn't contain any box. No box was drawn", stacklevel=2)
        return image
    if labels is not None and len(labels) != count:
        raise ValueError(f"Number of boxes ({count}) and labels ({len(labels)}) mismatch. Please specify labels for each box.")
    if colors is None:
        colors = _palette(count)
    elif not isinstance(colors, list):
        colors = [colors] * count
    elif len(colors) < count:
        raise ValueError(f"Number of colors ({len(colors)}) is less than number of boxes ({count}). ")
    if font is not None:
        letters = ImageFont.truetype(font=font, size=font_size or 10)
    else:
        if font_size is not None:
            warnings.warn("Argument 'font_size' will be ignored since 'font' is not set.", stacklevel=2)
        letters = ImageFont.load_default()
    picture = _to_picture(image.expand(3, -1, -1))
    draw = ImageDraw.Draw(picture, "RGBA" if fill else None)
    for box, colour, label in zip(boxes.to(torch.int64).tolist(), map(_rgb, colors), labels or [None] * count):
        draw.rectangle(box, width=width, outline=colour, fill=colour + (100,) if fill else None)
        if label is not None:
            draw.text((box[0] + width + 1, box[1] + width + 1), label, fill=colour, font=letters)
    return _from_picture(picture)


def _check_rgb(image):
    if not isinstance(image, torch.Tensor):
        raise TypeError(f"The image must be a tensor, got {type(image)}")
    if image.dtype != torch.uint8:
        raise ValueError(f"The image dtype must be uint8, got {image.dtype}")
    if image.dim() != 3:
        raise ValueError("Pass individual images, not batches")
    if image.size(0) != 3:
        raise ValueError("Pass an RGB image. Other Image formats are not supported")


@torch.no_grad()
def draw_segmentation_masks(image, masks, alpha=0.8, colors=None):
    """A uint8 picture (3, H, W) under boolean `masks` (N, H, W) or (H, W); `alpha` 1 hides the picture.

    `colors` is one colour for all masks or a list, as for draw_bounding_boxes. Raises TypeError for anything but a tensor, ValueError for
    other shapes, types and too few colours.
    """
    _check_rgb(image)
    if masks.ndim == 2:
        masks = masks.unsqueeze(0)
    if masks.ndim != 3:
        raise ValueError("masks must be of shape (H, W) or (batch_size, H, W)")
    if masks.dtype != torch.bool:
        raise ValueError(f"The masks must be of dtype bool. Got {masks.dtype}")
    if masks.shape[-2:] != image.shape[-2:]:
        raise ValueError("The image and the masks must have the same height and width")
    count = masks.size(0)
    if isinstance(colors, list) and count > len(colors):
        raise ValueError(f"There are more masks ({count}) than colors ({len(colors)})")
    if count == 0:
        warnings.warn("masks doesn't contain any mask. No mask was drawn", stacklevel=2)
        return image
    if colors is None:
        colors = _palette(count)
    elif not isinstance(colors, list):
        colors = [colors] * count
    if not isinstance(colors[0], (tuple, str)):
        raise ValueError("colors must be a tuple or a string, or a list thereof")
    if isinstance(colors[0], tuple) and len(colors[0]) != 3:
        raise ValueError("It seems that you passed a tuple of colors instead of a list of colors")
    drawn = image
    for mask, colour in zip(masks, map(_rgb, colors)):
        drawn = torch.where(mask, torch.tensor(colour, dtype=torch.uint8).view(3, 1, 1), drawn)
    return (image * (1 - alpha) + drawn * alpha).to(torch.uint8)


@torch.no_grad()
def draw_keypoints(image, keypoints, connectivity=None, colors=None, radius=2, width=3):
    """A uint8 picture (3, H, W) with `keypoints` (instances, K, 2) of (x, y) as discs of `radius`; lines join the pairs in `connectivity`.

    `colors` is one colour for all points. Raises TypeError for anything but a tensor, ValueError for other shapes and types.
    """
    from PIL import ImageDraw

    _check_rgb(image)
    if keypoints.ndim != 3:
        raise ValueError("keypoints must be of shape (num_instances, K, 2)")
    picture = _to_picture(image)
    draw = ImageDraw.Draw(picture)
    for points in keypoints.to(torch.int64).tolist():
        for x, y, *_ in points:
            draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=colors, outline=None, width=0)
        for start, end in connectivity or ():
            draw.line((tuple(points[start][:2]), tuple(points[end][:2])), width=width)
    return _from_picture(picture)


def _colour_wheel():
    """55 colours (55, 3) of directions (Baker et al., "A Database and Evaluation Methodology for Optical Flow", 2007)."""
    wheel = []
    # Each part: how many colours, the channel that stays full, the one that changes, and whether it grows.
    for steps, full, changing, grows in ((15, 0, 1, True), (6, 1, 0, False), (4, 1, 2, True), (11, 2, 1, False), (13, 2, 0, True), (6, 0, 2, False)):
        for i in range(steps):
            colour = [0, 0, 0]
            colour[full], colour[changing] = 255, 255 * i // steps if grows else 255 - 255 * i // steps
            wheel.append(colour)
    return torch.tensor(wheel, dtype=torch.float32)


@torch.no_grad()
def flow_to_image(flow):
    """Optical flow (2, H, W) or (N, 2, H, W) of float32 as uint8 colours: the hue tells the direction, the saturation the length.

    Raises ValueError for other shapes and types.
    """
    import math

    if flow.dtype != torch.float32:
        raise ValueError(f"Flow should be of dtype torch.float, got {flow.dtype}.")
    flows = flow.unsqueeze(0) if flow.ndim == 3 else flow
    if flows.ndim != 4 or flows.shape[1] != 2:
        raise ValueError(f"Input flow should have shape (2, H, W) or (N, 2, H, W), got {flow.shape}.")
    flows = flows / ((flows**2).sum(dim=1).sqrt().max() + torch.finfo(flow.dtype).eps)
    length = (flows**2).sum(dim=1).sqrt().unsqueeze(-1)
    wheel = _colour_wheel()
    place = (torch.atan2(-flows[:, 1], -flows[:, 0]) / math.pi + 1) / 2 * (len(wheel) - 1)
    first = place.floor().long()
    share = (place - first).unsqueeze(-1)
    wheel = wheel / 255.0
    colour = (1 - share) * wheel[first] + share * wheel[(first + 1) % len(wheel)]
    image = (255 * (1 - length * (1 - colour))).floor().to(torch.uint8).permute(0, 3, 1, 2).contiguous()
    return image[0] if flow.ndim == 3 else image
