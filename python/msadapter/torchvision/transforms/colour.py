"""Transforms of colours as objects, most of them at random. They draw in torchvision's order: a seed gives the same pictures."""

import numbers

from msadapter import pytorch as torch
from msadapter.torchvision.transforms import functional as F

__all__ = ["ColorJitter", "GaussianBlur", "LinearTransformation", "RandomAdjustSharpness", "RandomAutocontrast", "RandomEqualize", "RandomErasing",
           "RandomInvert", "RandomPosterize", "RandomSolarize"]


def uniform(low, high):
    """One number of the default generator."""
    return float(torch.empty(1).uniform_(float(low), float(high)))


class ColorJitter(torch.nn.Module):
    """Brightness, contrast, saturation and hue changed at random, in random order.

    A number b stands for factors of [max(0, 1 - b), 1 + b] (hue: turns of [-b, b], b at most 0.5), a pair for its range. ValueError for negative numbers
    and ranges outside, TypeError for other types.
    """

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0):
        super().__init__()
        self.brightness = self._range(brightness, "brightness")
        self.contrast = self._range(contrast, "contrast")
        self.saturation = self._range(saturation, "saturation")
        self.hue = self._range(hue, "hue", center=0, bound=(-0.5, 0.5), clip_first_on_zero=False)

    @staticmethod
    def _range(value, name, center=1, bound=(0, float("inf")), clip_first_on_zero=True):
        if isinstance(value, numbers.Number):
            if value < 0:
                raise ValueError(f"If {name} is a single number, it must be non negative.")
            value = [center - float(value), center + float(value)]
            if clip_first_on_zero:
                value[0] = max(value[0], 0.0)
        elif not isinstance(value, (tuple, list)) or len(value) != 2:
            raise TypeError(f"{name} should be a single number or a list/tuple with length 2.")
        if not bound[0] <= value[0] <= value[1] <= bound[1]:
            raise ValueError(f"{name} values should be between {bound}")
        return None if value[0] == value[1] == center else value

    @staticmethod
    def get_params(brightness, contrast, saturation, hue):
        """(order, four factors): None for what has no range."""
        order = torch.randperm(4)
        return (order, *[None if limits is None else uniform(*limits) for limits in (brightness, contrast, saturation, hue)])

    def forward(self, img):
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for i in order.tolist():
            if factors[i] is not None:
                img = changes[i](img, factors[i])
        return img

    def __repr__(self):
        return f"{type(self).__name__}(brightness={self.brightness}, contrast={self.contrast}, saturation={self.saturation}, hue={self.hue})"


class _AtRandom(torch.nn.Module):
    """A change made with probability p; `_argument` names its argument, if it has one."""

    _change, _argument = None, None

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, img):
        if not torch.rand(1).item() < self.p:
            return img
        return type(self)._change(img) if self._argument is None else type(self)._change(img, getattr(self, self._argument))

    def __repr__(self):
        argument = "" if self._argument is None else f"{self._argument}={getattr(self, self._argument)},"
        return f"{type(self).__name__}({argument}p={self.p})"


class RandomInvert(_AtRandom):
    """Inverted with probability p."""

    _change = staticmethod(F.invert)

    def __init__(self, p=0.5):
        super().__init__(p)


class RandomAutocontrast(_AtRandom):
    """Each channel stretched over the range of values with probability p."""

    _change = staticmethod(F.autocontrast)

    def __init__(self, p=0.5):
        super().__init__(p)


class RandomEqualize(_AtRandom):
    """Each channel's histogram made even with probability p."""

    _change = staticmethod(F.equalize)

    def __init__(self, p=0.5):
        super().__init__(p)


class RandomPosterize(_AtRandom):
    """The highest bits only, with probability p."""

    _change, _argument = staticmethod(F.posterize), "bits"

    def __init__(self, bits, p=0.5):
        super().__init__(p)
        self.bits = bits


class RandomSolarize(_AtRandom):
    """Values of at least threshold inverted, with probability p."""

    _change, _argument = staticmethod(F.solarize), "threshold"

    def __init__(self, threshold, p=0.5):
        super().__init__(p)
        self.threshold = threshold


class RandomAdjustSharpness(_AtRandom):
    """Sharpness changed by sharpness_factor with probability p."""

    _change, _argument = staticmethod(F.adjust_sharpness), "sharpness_factor"

    def __init__(self, sharpness_factor, p=0.5):
        super().__init__(p)
        self.sharpness_factor = sharpness_factor


class GaussianBlur(torch.nn.Module):
    """Blurred by a Gaussian whose deviation is drawn from sigma, a number or a range. ValueError and TypeError for other values."""

    def __init__(self, kernel_size, sigma=(0.1, 2.0)):
        super().__init__()
        sizes = (int(kernel_size),) * 2 if isinstance(kernel_size, numbers.Number) else tuple(kernel_size)
        sizes = sizes * 2 if len(sizes) == 1 else sizes
        if len(sizes) != 2:
            raise ValueError("Kernel size should be a tuple/list of two integers")
        for size in sizes:
            if size <= 0 or size % 2 == 0:
                raise ValueError("Kernel size value should be an odd and positive number.")
        if isinstance(sigma, numbers.Number):
            if sigma <= 0:
                raise ValueError("If sigma is a single number, it must be positive.")
            sigma = (sigma, sigma)
        elif isinstance(sigma, (tuple, list)) and len(sigma) == 2:
            if not 0.0 < sigma[0] <= sigma[1]:
                raise ValueError("sigma values should be positive and of the form (min, max).")
        else:
            raise ValueError("sigma should be a single number or a list/tuple with length 2.")
        self.kernel_size, self.sigma = sizes, sigma

    @staticmethod
    def get_params(sigma_min, sigma_max):
        """A deviation of the range."""
        return torch.empty(1).uniform_(sigma_min, sigma_max).item()

    def forward(self, img):
        sigma = self.get_params(self.sigma[0], self.sigma[1])
        return F.gaussian_blur(img, list(self.kernel_size), [sigma, sigma])

    def __repr__(self):
        return f"{type(self).__name__}(kernel_size={self.kernel_size}, sigma={self.sigma})"


class LinearTransformation(torch.nn.Module):
    """(flattened tensor - mean_vector) @ transformation_matrix, as whitening does. ValueError where the sizes do not fit."""

    def __init__(self, transformation_matrix, mean_vector):
        super().__init__()
        if transformation_matrix.size(0) != transformation_matrix.size(1):
            raise ValueError(f"transformation_matrix should be square. Got {tuple(transformation_matrix.size())} rectangular matrix.")
        if mean_vector.size(0) != transformation_matrix.size(0):
            raise ValueError(f"mean_vector should have the same length {mean_vector.size(0)} as any one of the dimensions of the "
                             f"transformation_matrix [{tuple(transformation_matrix.size())}]")
        self.transformation_matrix, self.mean_vector = transformation_matrix, mean_vector

    def forward(self, tensor):
        n = tensor.shape[-3] * tensor.shape[-2] * tensor.shape[-1]
        if n != self.transformation_matrix.shape[0]:
            raise ValueError("Input tensor and transformation matrix have incompatible shape."
                             f"[{tensor.shape[-3]} x {tensor.shape[-2]} x {tensor.shape[-1]}] != {self.transformation_matrix.shape[0]}")
        return ((tensor.view(-1, n) - self.mean_vector) @ self.transformation_matrix).view(tensor.shape)

    def __repr__(self):
        return f"{type(self).__name__}(transformation_matrix={self.transformation_matrix.tolist()}, mean_vector={self.mean_vector.tolist()})"


class RandomErasing(torch.nn.Module):
    """A random part of a tensor set to value (a number, one for each channel, or "random"), with probability p (Zhong et al. 2020).

    scale is the range of its area relative to the picture's, ratio that of height to width.
    """

    def __init__(self, p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False):
        super().__init__()
        if not isinstance(value, (numbers.Number, str, tuple, list)):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        for name, limits in (("Scale", scale), ("Ratio", ratio)):
            if not isinstance(limits, (tuple, list)):
                raise TypeError(f"{name} should be a sequence")
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if p < 0 or p > 1:
            raise ValueError("Random erasing probability should be between 0 and 1")
        self.p, self.scale, self.ratio, self.value, self.inplace = p, scale, ratio, value, inplace

    @staticmethod
    def get_params(img, scale, ratio, value=None):
        """(row, column, height, width, what to write) of a part; all of the picture, unchanged, where ten draws do not fit."""
        channels, height, width = img.shape[-3:]
        area = height * width
        logarithms = torch.log(torch.tensor(ratio))
        for _ in range(10):
            size = area * torch.empty(1).uniform_(scale[0], scale[1]).item()
            aspect = torch.exp(torch.empty(1).uniform_(float(logarithms[0]), float(logarithms[1]))).item()
            h, w = int(round((size * aspect) ** 0.5)), int(round((size / aspect) ** 0.5))
            if not (h < height and w < width):
                continue
            if value is None:
                v = torch.empty([channels, h, w], dtype=torch.float32).normal_()
            else:
                v = torch.tensor(value)[:, None, None]
            i = torch.randint(0, height - h + 1, size=(1,)).item()
            j = torch.randint(0, width - w + 1, size=(1,)).item()
            return i, j, h, w, v
        return 0, 0, height, width, img

    def forward(self, img):
        if not torch.rand(1) < self.p:
            return img
        value = self.value
        if isinstance(value, numbers.Number):
            value = [float(value)]
        elif isinstance(value, str):
            value = None
        else:
            value = [float(v) for v in value]
        if value is not None and len(value) not in (1, img.shape[-3]):
            raise ValueError("If value is a sequence, it should have either a single value or "
                             f"{img.shape[-3]} (number of input channels)")
        i, j, h, w, v = self.get_params(img, scale=self.scale, ratio=self.ratio, value=value)
        return F.erase(img, i, j, h, w, v, self.inplace)

    def __repr__(self):
        return f"{type(self).__name__}(p={self.p}, scale={self.scale}, ratio={self.ratio}, value={self.value}, inplace={self.inplace})"
