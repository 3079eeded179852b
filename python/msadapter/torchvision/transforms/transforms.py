"""Transforms as objects, to be composed. Random ones draw from the default generator in torchvision's order."""

from msadapter import pytorch as torch
from msadapter.torchvision.transforms import functional as F
from msadapter.torchvision.transforms.functional import InterpolationMode


class Compose:
    """One transform after the other."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self):
        return type(self).__name__ + "(" + "".join(f"\n    {t}" for t in self.transforms) + "\n)"


class _Plain:
    def __repr__(self):
        return f"{type(self).__name__}()"


class ToTensor(_Plain):
    """Pictures and arrays (H, W, C) to tensors (C, H, W); bytes to floats of [0, 1]."""

    def __call__(self, pic):
        return F.to_tensor(pic)


class PILToTensor(_Plain):
    """Pictures to tensors (C, H, W) of their own type."""

    def __call__(self, pic):
        return F.pil_to_tensor(pic)


class ConvertImageDtype(torch.nn.Module):
    """Another element type, values scaled."""

    def __init__(self, dtype):
        super().__init__()
        self.dtype = dtype

    def forward(self, image):
        return F.convert_image_dtype(image, self.dtype)


class ToPILImage:
    """Tensors (C, H, W) and arrays (H, W, C) to pictures."""

    def __init__(self, mode=None):
        self.mode = mode

    def __call__(self, pic):
        return F.to_pil_image(pic, self.mode)

    def __repr__(self):
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class Normalize(torch.nn.Module):
    """(tensor - mean) / std, channel by channel."""

    def __init__(self, mean, std, inplace=False):
        super().__init__()
        self.mean, self.std, self.inplace = mean, std, inplace

    def forward(self, tensor):
        return F.normalize(tensor, self.mean, self.std, self.inplace)

    def __repr__(self):
        return f"{type(self).__name__}(mean={self.mean}, std={self.std})"


class Resize(torch.nn.Module):
    """Another size: (height, width), or the length of the shorter edge."""

    def __init__(self, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=None):
        super().__init__()
        if not isinstance(size, (int, list, tuple)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if not isinstance(size, int) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size, self.interpolation, self.max_size, self.antialias = size, interpolation, max_size, antialias

    def forward(self, img):
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)

    def __repr__(self):
        return (f"{type(self).__name__}(size={self.size}, interpolation={self.interpolation.value}, max_size={self.max_size}, "
                f"antialias={self.antialias})")


def _pair(size):
    if isinstance(size, int):
        return size, size
    if len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    return tuple(size)


class CenterCrop(torch.nn.Module):
    """The middle."""

    def __init__(self, size):
        super().__init__()
        self.size = _pair(size)

    def forward(self, img):
        return F.center_crop(img, self.size)

    def __repr__(self):
        return f"{type(self).__name__}(size={self.size})"


class Pad(torch.nn.Module):
    """Borders."""

    def __init__(self, padding, fill=0, padding_mode="constant"):
        super().__init__()
        self.padding, self.fill, self.padding_mode = padding, fill, padding_mode

    def forward(self, img):
        return F.pad(img, self.padding, self.fill, self.padding_mode)

    def __repr__(self):
        return f"{type(self).__name__}(padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode})"


class Lambda(_Plain):
    """A function of the user's."""

    def __init__(self, lambd):
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img):
        return self.lambd(img)


class RandomCrop(torch.nn.Module):
    """A part at a random place, after padding."""

    def __init__(self, size, padding=None, pad_if_needed=False, fill=0, padding_mode="constant"):
        super().__init__()
        self.size, self.padding, self.pad_if_needed, self.fill, self.padding_mode = _pair(size), padding, pad_if_needed, fill, padding_mode

    @staticmethod
    def get_params(img, output_size):
        """(top, left, height, width) of a random part. Raises ValueError when the picture is too small."""
        width, height = F.get_image_size(img)
        th, tw = output_size
        if height < th or width < tw:
            raise ValueError(f"Required crop size {(th, tw)} is larger than input image size {(height, width)}")
        if width == tw and height == th:
            return 0, 0, height, width
        top = torch.randint(0, height - th + 1, size=(1,)).item()
        left = torch.randint(0, width - tw + 1, size=(1,)).item()
        return top, left, th, tw

    def forward(self, img):
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        width, height = F.get_image_size(img)
        if self.pad_if_needed and width < self.size[1]:
            img = F.pad(img, [self.size[1] - width, 0], self.fill, self.padding_mode)
        if self.pad_if_needed and height < self.size[0]:
            img = F.pad(img, [0, self.size[0] - height], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))

    def __repr__(self):
        return f"{type(self).__name__}(size={self.size}, padding={self.padding})"


class _WithChance(torch.nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def __repr__(self):
        return f"{type(self).__name__}(p={self.p})"


class RandomHorizontalFlip(_WithChance):
    """Left and right exchanged with probability p."""

    def __init__(self, p=0.5):
        super().__init__(p)

    def forward(self, img):
        return F.hflip(img) if torch.rand(1) < self.p else img


class RandomVerticalFlip(_WithChance):
    """Top and bottom exchanged with probability p."""

    def __init__(self, p=0.5):
        super().__init__(p)

    def forward(self, img):
        return F.vflip(img) if torch.rand(1) < self.p else img


class Grayscale(torch.nn.Module):
    """Luminance in one channel or three."""

    def __init__(self, num_output_channels=1):
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img):
        return F.rgb_to_grayscale(img, self.num_output_channels)

    def __repr__(self):
        return f"{type(self).__name__}(num_output_channels={self.num_output_channels})"


class RandomGrayscale(_WithChance):
    """Luminance with probability p, in as many channels as there were."""

    def __init__(self, p=0.1):
        super().__init__(p)

    def forward(self, img):
        channels = len(img.getbands()) if hasattr(img, "getbands") else img.shape[-3]
        return F.rgb_to_grayscale(img, channels) if torch.rand(1) < self.p else img


class RandomApply(torch.nn.Module):
    """All of some transforms with probability p, or none."""

    def __init__(self, transforms, p=0.5):
        super().__init__()
        self.transforms, self.p = transforms, p

    def forward(self, img):
        if self.p < torch.rand(1):
            return img
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self):
        return f"{type(self).__name__}(\n    p={self.p}" + "".join(f"\n    {t}" for t in self.transforms) + "\n)"


class RandomOrder:
    """Some transforms in random order."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        import random

        order = list(range(len(self.transforms)))
        random.shuffle(order)
        for i in order:
            img = self.transforms[i](img)
        return img


class RandomChoice:
    """One of some transforms."""

    def __init__(self, transforms, p=None):
        self.transforms, self.p = transforms, p

    def __call__(self, img):
        import random

        return random.choices(self.transforms, weights=self.p)[0](img)
