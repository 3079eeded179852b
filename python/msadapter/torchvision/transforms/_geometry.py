"""Transforms of places, as functions: on Pillow's pictures by Pillow, on tensors (..., C, H, W) by sampling at a grid."""

import math
import numbers

from msadapter import pytorch as torch
from msadapter.torchvision.transforms._basic import (_PIL_FILTER, InterpolationMode, _check_picture_or_tensor, _is_picture, center_crop, crop,
                                                    get_image_size, hflip, resize, vflip)

__all__ = ["affine", "five_crop", "get_dimensions", "get_image_num_channels", "perspective", "resized_crop", "rotate", "ten_crop"]


def get_image_num_channels(img):
    """How many channels a picture or tensor has."""
    _check_picture_or_tensor(img, "get_image_num_channels")
    if _is_picture(img):
        return len(img.getbands())
    return 1 if img.dim() == 2 else img.shape[-3]


def get_dimensions(img):
    """[channels, height, width]."""
    width, height = get_image_size(img)
    return [get_image_num_channels(img), height, width]


def _mode(interpolation):
    """`interpolation` as an InterpolationMode; Pillow's numbers are understood. TypeError for anything else."""
    if isinstance(interpolation, int):
        interpolation = {code: mode for mode, code in _PIL_FILTER.items()}[interpolation]
    if not isinstance(interpolation, InterpolationMode):
        raise TypeError("Argument interpolation should be a InterpolationMode")
    return interpolation


def _pil_fill(fill, img, name="fillcolor"):
    """The fill of every band, as Pillow takes it. ValueError where their numbers differ."""
    bands = len(img.getbands())
    if fill is None:
        fill = 0
    if isinstance(fill, numbers.Number):
        return {name: fill if bands == 1 else tuple([int(fill) if img.mode != "F" else float(fill)] * bands)}
    if len(fill) != bands:
        raise ValueError(f"The number of elements in 'fill' does not match the number of bands of the image ({len(fill)} != {bands})")
    return {name: tuple(int(value) for value in fill) if img.mode != "F" else tuple(float(value) for value in fill)}


def _inverse_matrix(center, angle, translate, scale, shear):
    """The six numbers that lead from a place of the result back to the place of the picture, angles in degrees."""
    rotation = math.radians(angle)
    sx, sy = math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(rotation - sy) / math.cos(sy)
    b = -math.cos(rotation - sy) * math.tan(sx) / math.cos(sy) - math.sin(rotation)
    c = math.sin(rotation - sy) / math.cos(sy)
    d = -math.sin(rotation - sy) * math.tan(sx) / math.cos(sy) + math.cos(rotation)
    m = [value / scale for value in (d, -b, 0.0, -c, a, 0.0)]
    (cx, cy), (tx, ty) = center, translate
    m[2] += m[0] * (-cx - tx) + m[1] * (-cy - ty) + cx
    m[5] += m[3] * (-cx - tx) + m[4] * (-cy - ty) + cy
    return m


def _sampled(img, grid, mode, fill):
    """img at the places of grid (1, h, w, 2); `fill` where they lie outside, a number or one for each channel."""
    batch = img.reshape((-1,) + tuple(img.shape[-3:])) if img.dim() != 4 else img
    dtype = img.dtype if img.is_floating_point() else torch.float32
    values, grid = batch.to(dtype), grid.to(dtype)
    grid = grid.expand(values.shape[0], *grid.shape[1:])
    if fill is not None:
        values = torch.cat((values, torch.ones_like(values[:, :1])), dim=1)
    values = torch.nn.functional.grid_sample(values, grid, mode=mode, padding_mode="zeros", align_corners=False)
    if fill is not None:
        values, inside = values[:, :-1], values[:, -1:]
        fill = [float(fill)] if isinstance(fill, numbers.Number) else [float(value) for value in fill]
        colour = torch.tensor(fill, dtype=dtype).view(1, len(fill), 1, 1)
        values = torch.where(inside < 0.5, colour, values) if mode == "nearest" else values * inside + (1.0 - inside) * colour
    if not img.is_floating_point():
        values = values.round()
    return values.to(img.dtype).reshape(tuple(img.shape[:-2]) + tuple(values.shape[-2:]))


def _check_for_tensors(img, fill, interpolation, allowed, name):
    if fill is not None and not isinstance(fill, (int, float, tuple, list)):
        raise ValueError(f"{name}: argument fill should be either int, float, tuple or list, got {type(fill)}")
    if isinstance(fill, (tuple, list)) and len(fill) > 1 and len(fill) != img.shape[-3]:
        raise ValueError(f"The number of elements in 'fill' cannot broadcast to match the number of channels of the image ({len(fill)} != {img.shape[-3]})")
    if interpolation.value not in allowed:
        raise ValueError(f"Interpolation mode '{interpolation.value}' is unsupported with Tensor input")


def _affine_grid(matrix, width, height, out_width, out_height):
    """Where the pixels of a result of out_width x out_height come from, in the coordinates of grid_sample()."""
    theta = torch.tensor(matrix, dtype=torch.float32).view(2, 3)
    x = torch.linspace(-out_width * 0.5 + 0.5, out_width * 0.5 - 0.5, steps=out_width)
    y = torch.linspace(-out_height * 0.5 + 0.5, out_height * 0.5 - 0.5, steps=out_height)
    base = torch.stack((x.expand(out_height, -1), y.unsqueeze(-1).expand(-1, out_width), torch.ones(out_height, out_width)), dim=-1)
    return (base.view(-1, 3) @ (theta.t() / torch.tensor([0.5 * width, 0.5 * height]))).view(1, out_height, out_width, 2)


def _rotated_size(matrix, width, height):
    """[width, height] that hold the whole of a rotated picture."""
    theta = torch.tensor(matrix, dtype=torch.float32).view(2, 3)
    corners = torch.tensor([[-0.5 * width, -0.5 * height, 1.0], [-0.5 * width, 0.5 * height, 1.0], [0.5 * width, 0.5 * height, 1.0],
                            [0.5 * width, -0.5 * height, 1.0]])
    places = corners @ theta.t()
    half, tolerance = torch.tensor([width * 0.5, height * 0.5]), 1e-4
    low, high = places.amin(dim=0) + half, places.amax(dim=0) + half
    size = torch.ceil((high / tolerance).trunc_() * tolerance) - torch.floor((low / tolerance).trunc_() * tolerance)
    return int(size[0]), int(size[1])


def affine(img, angle, translate, scale, shear, interpolation=InterpolationMode.NEAREST, fill=None, center=None):
    """The picture turned by angle, shifted by translate (right, down), scaled and sheared, around its middle or center (x, y); degrees and pixels.

    Raises TypeError and ValueError for other types and lengths.
    """
    interpolation = _mode(interpolation)
    if not isinstance(angle, (int, float)):
        raise TypeError("Argument angle should be int or float")
    if not isinstance(translate, (list, tuple)):
        raise TypeError("Argument translate should be a sequence")
    if len(translate) != 2:
        raise ValueError("Argument translate should be a sequence of length 2")
    if scale <= 0.0:
        raise ValueError("Argument scale should be positive")
    if not isinstance(shear, (numbers.Number, list, tuple)):
        raise TypeError("Shear should be either a single value or a sequence of two values")
    shear = [float(shear), 0.0] if isinstance(shear, numbers.Number) else [float(value) for value in shear]
    if len(shear) == 1:
        shear = [shear[0], shear[0]]
    if len(shear) != 2:
        raise ValueError(f"Shear should be a sequence containing two values. Got {shear}")
    if center is not None and not isinstance(center, (list, tuple)):
        raise TypeError("Argument center should be a sequence")
    _check_picture_or_tensor(img, "affine")
    width, height = get_image_size(img)
    if _is_picture(img):
        center = [width * 0.5, height * 0.5] if center is None else center
        matrix = _inverse_matrix(center, float(angle), list(translate), scale, shear)
        return img.transform(img.size, 0, matrix, _PIL_FILTER[interpolation], **_pil_fill(fill, img))
    _check_for_tensors(img, fill, interpolation, ("nearest", "bilinear"), "affine")
    around = [0.0, 0.0] if center is None else [1.0 * c - s * 0.5 for c, s in zip(center, (width, height))]
    matrix = _inverse_matrix(around, float(angle), [1.0 * t for t in translate], scale, shear)
    return _sampled(img, _affine_grid(matrix, width, height, width, height), interpolation.value, fill)


def rotate(img, angle, interpolation=InterpolationMode.NEAREST, expand=False, center=None, fill=None):
    """The picture turned by angle degrees against the clock, around its middle or center (x, y); expand makes room for all of it."""
    interpolation = _mode(interpolation)
    if not isinstance(angle, (int, float)):
        raise TypeError("Argument angle should be int or float")
    if center is not None and not isinstance(center, (list, tuple)):
        raise TypeError("Argument center should be a sequence")
    _check_picture_or_tensor(img, "rotate")
    if _is_picture(img):
        return img.rotate(angle, _PIL_FILTER[interpolation], expand, center, **_pil_fill(fill, img))
    _check_for_tensors(img, fill, interpolation, ("nearest", "bilinear"), "rotate")
    width, height = get_image_size(img)
    around = [0.0, 0.0] if center is None else [1.0 * c - s * 0.5 for c, s in zip(center, (width, height))]
    matrix = _inverse_matrix(around, -float(angle), [0.0, 0.0], 1.0, [0.0, 0.0])
    out_width, out_height = _rotated_size(matrix, width, height) if expand else (width, height)
    return _sampled(img, _affine_grid(matrix, width, height, out_width, out_height), interpolation.value, fill)


def _perspective_coefficients(startpoints, endpoints):
    """The eight numbers of the projection that leads endpoints back to startpoints."""
    rows = []
    for (x, y), (u, v) in zip(endpoints, startpoints):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    target = torch.tensor([value for point in startpoints for value in point], dtype=torch.float32)
    return torch.linalg.lstsq(torch.tensor(rows, dtype=torch.float32), target.view(8, 1), driver="gels").solution.view(8).tolist()


def perspective(img, startpoints, endpoints, interpolation=InterpolationMode.BILINEAR, fill=None):
    """The picture projected so that four corners startpoints (x, y) come to endpoints."""
    coefficients = _perspective_coefficients(startpoints, endpoints)
    interpolation = _mode(interpolation)
    _check_picture_or_tensor(img, "perspective")
    if _is_picture(img):
        return img.transform(img.size, 2, coefficients, _PIL_FILTER[interpolation], **_pil_fill(fill, img))
    _check_for_tensors(img, fill, interpolation, ("nearest", "bilinear"), "perspective")
    width, height = get_image_size(img)
    x, y = torch.linspace(0.5, width - 0.5, steps=width), torch.linspace(0.5, height - 0.5, steps=height)
    base = torch.stack((x.expand(height, -1), y.unsqueeze(-1).expand(-1, width), torch.ones(height, width)), dim=-1).view(-1, 3)
    c = coefficients
    above = torch.tensor([c[0:3], c[3:6]]).t() / torch.tensor([0.5 * width, 0.5 * height])
    below = torch.tensor([c[6:8] + [1.0]] * 2).t()
    grid = ((base @ above) / (base @ below) - 1.0).view(1, height, width, 2)
    return _sampled(img, grid, interpolation.value, fill)


def resized_crop(img, top, left, height, width, size, interpolation=InterpolationMode.BILINEAR):
    """A part of the picture in another size."""
    return resize(crop(img, top, left, height, width), size, interpolation)


def five_crop(img, size):
    """(top left, top right, bottom left, bottom right, middle), each of size (height, width). ValueError for smaller pictures."""
    if isinstance(size, numbers.Number):
        size = (int(size), int(size))
    elif isinstance(size, (tuple, list)) and len(size) == 1:
        size = (size[0], size[0])
    if len(size) != 2:
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    width, height = get_image_size(img)
    h, w = size
    if w > width or h > height:
        raise ValueError(f"Requested crop size {size} is bigger than input size {(height, width)}")
    return (crop(img, 0, 0, h, w), crop(img, 0, width - w, h, w), crop(img, height - h, 0, h, w), crop(img, height - h, width - w, h, w),
            center_crop(img, [h, w]))


def ten_crop(img, size, vertical_flip=False):
    """five_crop() of the picture and of its mirror image."""
    return five_crop(img, size) + five_crop(vflip(img) if vertical_flip else hflip(img), size)
