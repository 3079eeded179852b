"""Augmentations made of several random changes. They draw in torchvision's order: a seed gives the same pictures."""

import math
from enum import Enum

from msadapter import pytorch as torch
from msadapter.torchvision.transforms import functional as F
from msadapter.torchvision.transforms.functional import InterpolationMode

__all__ = ["AugMix", "AutoAugment", "AutoAugmentPolicy", "RandAugment", "TrivialAugmentWide"]


def _sheared(img, x, y, interpolation, fill):
    """Sheared at the top left corner by tangents."""
    angles = [math.degrees(math.atan(x)), math.degrees(math.atan(y))]
    return F.affine(img, angle=0.0, translate=[0, 0], scale=1.0, shear=angles, interpolation=interpolation, fill=fill, center=[0, 0])


def _shifted(img, x, y, interpolation, fill):
    return F.affine(img, angle=0.0, translate=[int(x), int(y)], scale=1.0, shear=[0.0, 0.0], interpolation=interpolation, fill=fill)


# name -> what it does to (picture, magnitude, interpolation, fill)
_CHANGES = {
    "ShearX": lambda img, m, i, f: _sheared(img, m, 0.0, i, f), "ShearY": lambda img, m, i, f: _sheared(img, 0.0, m, i, f),
    "TranslateX": lambda img, m, i, f: _shifted(img, m, 0, i, f), "TranslateY": lambda img, m, i, f: _shifted(img, 0, m, i, f),
    "Rotate": lambda img, m, i, f: F.rotate(img, m, interpolation=i, fill=f), "Brightness": lambda img, m, i, f: F.adjust_brightness(img, 1.0 + m),
    "Color": lambda img, m, i, f: F.adjust_saturation(img, 1.0 + m), "Contrast": lambda img, m, i, f: F.adjust_contrast(img, 1.0 + m),
    "Sharpness": lambda img, m, i, f: F.adjust_sharpness(img, 1.0 + m), "Posterize": lambda img, m, i, f: F.posterize(img, int(m)),
    "Solarize": lambda img, m, i, f: F.solarize(img, m), "AutoContrast": lambda img, m, i, f: F.autocontrast(img),
    "Equalize": lambda img, m, i, f: F.equalize(img), "Invert": lambda img, m, i, f: F.invert(img), "Identity": lambda img, m, i, f: img,
}


def _space(names, bins, shear=0.3, right=0.0, down=0.0, angle=30.0, colour=0.9, bits=4, most_bits=8):
    """name -> (magnitudes of the bins, whether their sign is drawn)."""
    kinds = {"ShearX": (0.0, shear), "ShearY": (0.0, shear), "TranslateX": (0.0, right), "TranslateY": (0.0, down), "Rotate": (0.0, angle),
             "Brightness": (0.0, colour), "Color": (0.0, colour), "Contrast": (0.0, colour), "Sharpness": (0.0, colour)}
    found = {}
    for name in names.split():
        if name in kinds:
            found[name] = torch.linspace(*kinds[name], bins), True
        elif name == "Posterize":
            found[name] = most_bits - (torch.arange(bins) / ((bins - 1) / bits)).round().int(), False
        elif name == "Solarize":
            found[name] = torch.linspace(255.0, 0.0, bins), False
        else:
            found[name] = torch.tensor(0.0), False
    return found


class _Augmentation(torch.nn.Module):
    def __init__(self, interpolation, fill):
        super().__init__()
        self.interpolation, self.fill = interpolation, fill

    def _fill_for(self, img):
        if not isinstance(img, torch.Tensor) or self.fill is None:
            return self.fill
        channels = F.get_image_num_channels(img)
        return [float(self.fill)] * channels if isinstance(self.fill, (int, float)) else [float(f) for f in self.fill]

    def _changed(self, img, name, magnitude, fill):
        return _CHANGES[name](img, magnitude, self.interpolation, fill)

    @staticmethod
    def _drawn(space, magnitude_of):
        """(name, magnitude): a random change, its magnitude by magnitude_of(magnitudes), with a random sign where it has one."""
        name = list(space)[int(torch.randint(len(space), (1,)).item())]
        magnitudes, signed = space[name]
        magnitude = float(magnitude_of(magnitudes).item()) if magnitudes.ndim > 0 else 0.0
        if signed and torch.randint(2, (1,)):
            magnitude *= -1.0
        return name, magnitude


class AutoAugmentPolicy(Enum):
    """The data sets that policies were learned on."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# Tables of Cubuk et al. 2019: each policy is two changes, each with a probability in tenths and a bin (- for none).
_POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
        Posterize 4 8 Rotate 6 9, Solarize 6 5 AutoContrast 6 -, Equalize 8 - Equalize 6 -, Posterize 6 7 Posterize 6 6, Equalize 4 - Solarize 2 4,
        Equalize 4 - Rotate 8 8, Solarize 6 3 Equalize 6 -, Posterize 8 5 Equalize 10 -, Rotate 2 3 Solarize 6 8, Equalize 6 - Posterize 4 6,
        Rotate 8 8 Color 4 0, Rotate 4 9 Equalize 6 -, Equalize 0 - Equalize 8 -, Invert 6 - Equalize 10 -, Color 6 4 Contrast 10 8,
        Rotate 8 8 Color 10 2, Color 8 8 Solarize 8 7, Sharpness 4 7 Invert 6 -, ShearX 6 5 Equalize 10 -, Color 4 0 Equalize 6 -,
        Equalize 4 - Solarize 2 4, Solarize 6 5 AutoContrast 6 -, Invert 6 - Equalize 10 -, Color 6 4 Contrast 10 8, Equalize 8 - Equalize 6 -""",
    AutoAugmentPolicy.CIFAR10: """
        Invert 1 - Contrast 2 6, Rotate 7 2 TranslateX 3 9, Sharpness 8 1 Sharpness 9 3, ShearY 5 8 TranslateY 7 9, AutoContrast 5 - Equalize 9 -,
        ShearY 2 7 Posterize 3 7, Color 4 3 Brightness 6 7, Sharpness 3 9 Brightness 7 9, Equalize 6 - Equalize 5 -, Contrast 6 7 Sharpness 6 5,
        Color 7 7 TranslateX 5 8, Equalize 3 - AutoContrast 4 -, TranslateY 4 3 Sharpness 2 6, Brightness 9 6 Color 2 8, Solarize 5 2 Invert 0 -,
        Equalize 2 - AutoContrast 6 -, Equalize 2 - Equalize 6 -, Color 9 9 Equalize 6 -, AutoContrast 8 - Solarize 2 8, Brightness 1 3 Color 7 0,
        Solarize 4 5 AutoContrast 9 -, TranslateY 9 9 TranslateY 7 9, AutoContrast 9 - Solarize 8 3, Equalize 8 - Invert 1 -, TranslateY 7 9 AutoContrast 9 -""",
    AutoAugmentPolicy.SVHN: """
        ShearX 9 4 Invert 2 -, ShearY 9 8 Invert 7 -, Equalize 6 - Solarize 6 6, Invert 9 - Equalize 6 -, Equalize 6 - Rotate 9 3,
        ShearX 9 4 AutoContrast 8 -, ShearY 9 8 Invert 4 -, ShearY 9 5 Solarize 2 6, Invert 9 - AutoContrast 8 -, Equalize 6 - Rotate 9 3,
        ShearX 9 4 Solarize 3 3, ShearY 8 8 Invert 7 -, Equalize 9 - TranslateY 6 6, Invert 9 - Equalize 6 -, Contrast 3 3 Rotate 8 4,
        Invert 8 - TranslateY 0 2, ShearY 7 6 Solarize 4 8, Invert 6 - Rotate 8 4, ShearY 3 7 TranslateX 9 3, ShearX 1 6 Invert 6 -,
        Solarize 7 2 TranslateY 6 7, ShearY 8 4 Invert 8 -, ShearX 7 9 TranslateY 8 3, ShearY 8 5 AutoContrast 7 -, ShearX 7 2 Invert 1 -""",
}


class AutoAugment(_Augmentation):
    """One of 25 learned policies at random (Cubuk et al. 2019); tensors are of uint8. ValueError for unknown policies."""

    def __init__(self, policy=AutoAugmentPolicy.IMAGENET, interpolation=InterpolationMode.NEAREST, fill=None):
        super().__init__(interpolation, fill)
        self.policy = policy
        if policy not in _POLICIES:
            raise ValueError(f"The provided policy {policy} is not recognized.")
        rows = [row.split() for row in _POLICIES[policy].split(",")]
        self.policies = [[(name, int(chance) / 10, None if place == "-" else int(place)) for name, chance, place in (row[:3], row[3:])] for row in rows]

    @staticmethod
    def get_params(transform_num):
        """(which policy, two numbers of [0, 1), two signs)."""
        return int(torch.randint(transform_num, (1,)).item()), torch.rand((2,)), torch.randint(2, (2,))

    def forward(self, img):
        fill = self._fill_for(img)
        which, chances, signs = self.get_params(len(self.policies))
        width, height = F.get_image_size(img)
        space = _space("ShearX ShearY TranslateX TranslateY Rotate Brightness Color Contrast Sharpness Posterize Solarize AutoContrast Equalize Invert", 10,
                       right=150.0 / 331.0 * width, down=150.0 / 331.0 * height)
        for i, (name, chance, place) in enumerate(self.policies[which]):
            if chances[i] <= chance:
                magnitudes, signed = space[name]
                magnitude = float(magnitudes[place].item()) if place is not None else 0.0
                if signed and signs[i] == 0:
                    magnitude *= -1.0
                img = self._changed(img, name, magnitude, fill)
        return img

    def __repr__(self):
        return f"{type(self).__name__}(policy={self.policy}, fill={self.fill})"


_ALL = "Identity ShearX ShearY TranslateX TranslateY Rotate Brightness Color Contrast Sharpness Posterize Solarize AutoContrast Equalize"


class RandAugment(_Augmentation):
    """num_ops random changes of one magnitude (Cubuk et al. 2020); tensors are of uint8."""

    def __init__(self, num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation=InterpolationMode.NEAREST, fill=None):
        super().__init__(interpolation, fill)
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def forward(self, img):
        fill = self._fill_for(img)
        width, height = F.get_image_size(img)
        space = _space(_ALL, self.num_magnitude_bins, right=150.0 / 331.0 * width, down=150.0 / 331.0 * height)
        for _ in range(self.num_ops):
            img = self._changed(img, *self._drawn(space, lambda magnitudes: magnitudes[self.magnitude]), fill)
        return img

    def __repr__(self):
        return (f"{type(self).__name__}(num_ops={self.num_ops}, magnitude={self.magnitude}, num_magnitude_bins={self.num_magnitude_bins}, "
                f"interpolation={self.interpolation}, fill={self.fill})")


class TrivialAugmentWide(_Augmentation):
    """One random change of a random magnitude (Mueller and Hutter 2021); tensors are of uint8."""

    def __init__(self, num_magnitude_bins=31, interpolation=InterpolationMode.NEAREST, fill=None):
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def forward(self, img):
        fill = self._fill_for(img)
        space = _space(_ALL, self.num_magnitude_bins, shear=0.99, right=32.0, down=32.0, angle=135.0, colour=0.99, bits=6)
        name, magnitude = self._drawn(space, lambda magnitudes: magnitudes[torch.randint(len(magnitudes), (1,), dtype=torch.long)])
        return self._changed(img, name, magnitude, fill)

    def __repr__(self):
        return f"{type(self).__name__}(num_magnitude_bins={self.num_magnitude_bins}, interpolation={self.interpolation}, fill={self.fill})"


class AugMix(_Augmentation):
    """The picture mixed with mixture_width chains of random changes (Hendrycks et al. 2020); tensors are of uint8.

    severity of 1 to 10 bounds the magnitudes (ValueError outside); chains have chain_depth changes, 1 to 3 at random where it is -1.
    """

    _bins = 10

    def __init__(self, severity=3, mixture_width=3, chain_depth=-1, alpha=1.0, all_ops=True, interpolation=InterpolationMode.BILINEAR, fill=None):
        super().__init__(interpolation, fill)
        if not 1 <= severity <= self._bins:
            raise ValueError(f"The severity must be between [1, {self._bins}]. Got {severity} instead.")
        self.severity, self.mixture_width, self.chain_depth, self.alpha, self.all_ops = severity, mixture_width, chain_depth, alpha, all_ops

    def forward(self, img):
        fill = self._fill_for(img)
        values = img if isinstance(img, torch.Tensor) else F.pil_to_tensor(img)
        width, height = F.get_image_size(img)
        names = "ShearX ShearY TranslateX TranslateY Rotate Posterize Solarize AutoContrast Equalize"
        space = _space(names + (" Brightness Color Contrast Sharpness" if self.all_ops else ""), self._bins, right=width / 3.0, down=height / 3.0,
                       most_bits=4)
        batch = values.view([1] * max(4 - values.ndim, 0) + list(values.shape))
        ones = [batch.size(0)] + [1] * (batch.ndim - 1)
        share = torch._sample_dirichlet(torch.tensor([self.alpha, self.alpha]).expand(batch.size(0), -1))
        weights = torch._sample_dirichlet(torch.tensor([self.alpha] * self.mixture_width).expand(batch.size(0), -1)) * share[:, 1].view([batch.size(0), -1])
        mix = share[:, 0].view(ones) * batch
        for i in range(self.mixture_width):
            changed = batch
            depth = self.chain_depth if self.chain_depth > 0 else int(torch.randint(low=1, high=4, size=(1,)).item())
            for _ in range(depth):
                name, magnitude = self._drawn(space, lambda magnitudes: magnitudes[torch.randint(self.severity, (1,), dtype=torch.long)])
                changed = self._changed(changed, name, magnitude, fill)
            mix.add_(weights[:, i].view(ones) * changed)
        mix = mix.view(values.shape).to(dtype=values.dtype)
        return mix if isinstance(img, torch.Tensor) else F.to_pil_image(mix)

    def __repr__(self):
        return (f"{type(self).__name__}(severity={self.severity}, mixture_width={self.mixture_width}, chain_depth={self.chain_depth}, alpha={self.alpha}, "
                f"all_ops={self.all_ops}, interpolation={self.interpolation}, fill={self.fill})")
