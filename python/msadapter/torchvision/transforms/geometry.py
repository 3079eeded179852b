"""Transforms of places as objects, most of them at random. They draw in torchvision's order: a seed gives the same pictures."""

import math
import numbers
import warnings

from msadapter import pytorch as torch
from msadapter.torchvision.transforms import functional as F
from msadapter.torchvision.transforms._geometry import _mode
from msadapter.torchvision.transforms.colour import uniform
from msadapter.torchvision.transforms.functional import InterpolationMode
from msadapter.torchvision.transforms.transforms import _pair

__all__ = ["FiveCrop", "RandomAffine", "RandomPerspective", "RandomResizedCrop", "RandomRotation", "TenCrop"]


def _angles(value, name, sizes=(2,)):
    """A range of angles: [-value, value] of a number. ValueError for negative ones, TypeError for other types."""
    if isinstance(value, numbers.Number):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be positive.")
        value = [-value, value]
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{name} should be a sequence of length {' or '.join(map(str, sizes))}.")
    if len(value) not in sizes:
        raise ValueError(f"{name} should be sequence of length {' or '.join(map(str, sizes))}.")
    return [float(d) for d in value]


def _check_pair(value, name):
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{name} should be a sequence of length 2.")
    if len(value) != 2:
        raise ValueError(f"{name} should be sequence of length 2.")


def _number(value, name):
    if value is None:
        return 0
    if not isinstance(value, (numbers.Number, tuple, list)):
        raise TypeError(f"{name} should be either a sequence or a number.")
    return value


def _fill_of(fill, img):
    """`fill` for F: one number for each channel of a tensor."""
    if not isinstance(img, torch.Tensor):
        return fill
    return [float(fill)] * F.get_image_num_channels(img) if isinstance(fill, numbers.Number) else [float(f) for f in fill]


class RandomRotation(torch.nn.Module):
    """Turned by a random angle of degrees, a range or a number d for [-d, d]."""

    def __init__(self, degrees, interpolation=InterpolationMode.NEAREST, expand=False, center=None, fill=0):
        super().__init__()
        self.degrees = _angles(degrees, "degrees")
        if center is not None:
            _check_pair(center, "center")
        self.interpolation, self.expand, self.center = _mode(interpolation), expand, center
        self.fill = _number(fill, "Fill")

    @staticmethod
    def get_params(degrees):
        """An angle of the range."""
        return float(torch.empty(1).uniform_(float(degrees[0]), float(degrees[1])).item())

    def forward(self, img):
        fill = _fill_of(self.fill, img)
        return F.rotate(img, self.get_params(self.degrees), self.interpolation, self.expand, self.center, fill)

    def __repr__(self):
        more = ("" if self.center is None else f", center={self.center}") + ("" if self.fill is None else f", fill={self.fill}")
        return f"{type(self).__name__}(degrees={self.degrees}, interpolation={self.interpolation.value}, expand={self.expand}{more})"


class RandomAffine(torch.nn.Module):
    """Turned, shifted by up to the fractions translate of width and height, scaled and sheared at random, around the middle or center."""

    def __init__(self, degrees, translate=None, scale=None, shear=None, interpolation=InterpolationMode.NEAREST, fill=0, center=None):
        super().__init__()
        self.degrees = _angles(degrees, "degrees")
        if translate is not None:
            _check_pair(translate, "translate")
            if not all(0.0 <= t <= 1.0 for t in translate):
                raise ValueError("translation values should be between 0 and 1")
        if scale is not None:
            _check_pair(scale, "scale")
            if not all(s > 0 for s in scale):
                raise ValueError("scale values should be positive")
        if center is not None:
            _check_pair(center, "center")
        self.translate, self.scale, self.center = translate, scale, center
        self.shear = None if shear is None else _angles(shear, "shear", (2, 4))
        self.interpolation, self.fill = _mode(interpolation), _number(fill, "Fill")

    @staticmethod
    def get_params(degrees, translate, scale_ranges, shears, img_size):
        """(angle, translation, scale, shear) for a picture of img_size (width, height)."""
        angle = uniform(degrees[0], degrees[1])
        translations = (0, 0)
        if translate is not None:
            most = [float(t * size) for t, size in zip(translate, img_size)]
            translations = tuple(int(round(torch.empty(1).uniform_(-m, m).item())) for m in most)
        scale = 1.0 if scale_ranges is None else uniform(scale_ranges[0], scale_ranges[1])
        shear_x = shear_y = 0.0
        if shears is not None:
            shear_x = uniform(shears[0], shears[1])
            if len(shears) == 4:
                shear_y = uniform(shears[2], shears[3])
        return angle, translations, scale, (shear_x, shear_y)

    def forward(self, img):
        fill = _fill_of(self.fill, img)
        angle, translations, scale, shear = self.get_params(self.degrees, self.translate, self.scale, self.shear, F.get_image_size(img))
        return F.affine(img, angle, translations, scale, shear, interpolation=self.interpolation, fill=fill, center=self.center)

    def __repr__(self):
        parts = [f"degrees={self.degrees}"]
        parts += [f"{name}={getattr(self, name)}" for name in ("translate", "scale", "shear") if getattr(self, name) is not None]
        if self.interpolation is not InterpolationMode.NEAREST:
            parts.append(f"interpolation={self.interpolation.value}")
        if self.fill != 0:
            parts.append(f"fill={self.fill}")
        if self.center is not None:
            parts.append(f"center={self.center}")
        return f"{type(self).__name__}({', '.join(parts)})"


class RandomPerspective(torch.nn.Module):
    """Projected as if seen from another side with probability p; distortion_scale of [0, 1] bounds how far corners move."""

    def __init__(self, distortion_scale=0.5, p=0.5, interpolation=InterpolationMode.BILINEAR, fill=0):
        super().__init__()
        self.p, self.distortion_scale, self.interpolation, self.fill = p, distortion_scale, _mode(interpolation), _number(fill, "Fill")

    @staticmethod
    def get_params(width, height, distortion_scale):
        """(corners of the picture, where they come to)."""
        right, down = int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2))

        def draw(low, high):
            return int(torch.randint(low, high, size=(1,)).item())

        top_left = [draw(0, right + 1), draw(0, down + 1)]
        top_right = [draw(width - right - 1, width), draw(0, down + 1)]
        bottom_right = [draw(width - right - 1, width), draw(height - down - 1, height)]
        bottom_left = [draw(0, right + 1), draw(height - down - 1, height)]
        corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        return corners, [top_left, top_right, bottom_right, bottom_left]

    def forward(self, img):
        fill = _fill_of(self.fill, img)
        if not torch.rand(1) < self.p:
            return img
        width, height = F.get_image_size(img)
        startpoints, endpoints = self.get_params(width, height, self.distortion_scale)
        return F.perspective(img, startpoints, endpoints, self.interpolation, fill)

    def __repr__(self):
        return f"{type(self).__name__}(p={self.p})"


class RandomResizedCrop(torch.nn.Module):
    """A random part, its area of `scale` relative to the picture's and its shape of `ratio`, resized to size."""

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation=InterpolationMode.BILINEAR):
        super().__init__()
        self.size = _pair(size)
        for name, limits in (("Scale", scale), ("Ratio", ratio)):
            if not isinstance(limits, (tuple, list)):
                raise TypeError(f"{name} should be a sequence")
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            warnings.warn("Scale and ratio should be of kind (min, max)")
        self.scale, self.ratio, self.interpolation = scale, ratio, _mode(interpolation)

    @staticmethod
    def get_params(img, scale, ratio):
        """(top, left, height, width) of a part; the largest one in the middle where ten draws do not fit."""
        width, height = F.get_image_size(img)
        area = height * width
        logarithms = torch.log(torch.tensor(ratio))
        for _ in range(10):
            target = area * torch.empty(1).uniform_(scale[0], scale[1]).item()
            aspect = torch.exp(torch.empty(1).uniform_(float(logarithms[0]), float(logarithms[1]))).item()
            w, h = int(round(math.sqrt(target * aspect))), int(round(math.sqrt(target / aspect)))
            if 0 < w <= width and 0 < h <= height:
                i = torch.randint(0, height - h + 1, size=(1,)).item()
                j = torch.randint(0, width - w + 1, size=(1,)).item()
                return i, j, h, w
        shape = float(width) / float(height)
        w, h = width, height
        if shape < min(ratio):
            h = int(round(w / min(ratio)))
        elif shape > max(ratio):
            w = int(round(h * max(ratio)))
        return (height - h) // 2, (width - w) // 2, h, w

    def forward(self, img):
        i, j, h, w = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, i, j, h, w, self.size, self.interpolation)

    def __repr__(self):
        return (f"{type(self).__name__}(size={self.size}, scale={tuple(round(s, 4) for s in self.scale)}, "
                f"ratio={tuple(round(r, 4) for r in self.ratio)}, interpolation={self.interpolation.value})")


class FiveCrop(torch.nn.Module):
    """The four corners and the middle, as a tuple."""

    def __init__(self, size):
        super().__init__()
        self.size = _pair(size)

    def forward(self, img):
        return F.five_crop(img, self.size)

    def __repr__(self):
        return f"{type(self).__name__}(size={self.size})"


class TenCrop(torch.nn.Module):
    """The four corners and the middle, and those of the mirror image, as a tuple."""

    def __init__(self, size, vertical_flip=False):
        super().__init__()
        self.size, self.vertical_flip = _pair(size), vertical_flip

    def forward(self, img):
        return F.ten_crop(img, self.size, self.vertical_flip)

    def __repr__(self):
        return f"{type(self).__name__}(size={self.size}, vertical_flip={self.vertical_flip})"
