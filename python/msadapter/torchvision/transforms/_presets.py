"""How pictures are prepared for published weights."""

from functools import partial

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision.transforms import functional as F
from msadapter.torchvision.transforms.functional import InterpolationMode

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class _Preparation(nn.Module):
    def __repr__(self):
        names = [name for name in ("crop_size", "resize_size", "mean", "std", "interpolation") if hasattr(self, name)]
        return f"{type(self).__name__}(" + "".join(f"\n    {name}={getattr(self, name)}" for name in names) + ("\n)" if names else ")")

    def _normalised(self, img):
        if not isinstance(img, torch.Tensor):
            img = F.pil_to_tensor(img)
        return F.normalize(F.convert_image_dtype(img, torch.float32), mean=self.mean, std=self.std)


class ImageClassification(_Preparation):
    """A picture or tensor resized to resize_size, its centre of crop_size as floats of [0, 1], normalised."""

    def __init__(self, *, crop_size, resize_size=256, mean=_MEAN, std=_STD, interpolation=InterpolationMode.BILINEAR):
        super().__init__()
        self.crop_size, self.resize_size = [crop_size], [resize_size]
        self.mean, self.std, self.interpolation = list(mean), list(std), interpolation

    def forward(self, img):
        return self._normalised(F.center_crop(F.resize(img, self.resize_size, interpolation=self.interpolation), self.crop_size))


class SemanticSegmentation(_Preparation):
    """A picture or tensor resized to resize_size, as normalised floats."""

    def __init__(self, *, resize_size, mean=_MEAN, std=_STD, interpolation=InterpolationMode.BILINEAR):
        super().__init__()
        self.resize_size, self.mean, self.std, self.interpolation = [resize_size], list(mean), list(std), interpolation

    def forward(self, img):
        return self._normalised(F.resize(img, self.resize_size, interpolation=self.interpolation))


class VideoClassification(_Preparation):
    """Frames (..., T, C, H, W) resized, cropped and normalised, as (..., C, T, H, W)."""

    def __init__(self, *, crop_size, resize_size, mean=(0.43216, 0.394666, 0.37645), std=(0.22803, 0.22145, 0.216989),
                 interpolation=InterpolationMode.BILINEAR):
        super().__init__()
        self.crop_size, self.resize_size = list(crop_size), list(resize_size)
        self.mean, self.std, self.interpolation = list(mean), list(std), interpolation

    def forward(self, vid):
        batched = vid.ndim == 5
        clips = vid if batched else vid.unsqueeze(0)
        n, t, c, h, w = clips.shape
        frames = F.center_crop(F.resize(clips.reshape(-1, c, h, w), self.resize_size, interpolation=self.interpolation), self.crop_size)
        frames = self._normalised(frames).reshape(n, t, c, *self.crop_size).permute(0, 2, 1, 3, 4)
        return frames if batched else frames.squeeze(0)


class ObjectDetection(_Preparation):
    """A picture or tensor as floats of [0, 1]."""

    def forward(self, img):
        if not isinstance(img, torch.Tensor):
            img = F.pil_to_tensor(img)
        return F.convert_image_dtype(img, torch.float32)


class OpticalFlow(_Preparation):
    """Two pictures or tensors, of the same size, as floats of [-1, 1]."""

    mean = std = (0.5, 0.5, 0.5)

    def __repr__(self):
        return f"{type(self).__name__}()"

    def forward(self, img1, img2):
        return self._normalised(img1).contiguous(), self._normalised(img2).contiguous()


def from_text(text):
    """The function that makes a preparation: "crop,resize,interpolation", "resize", "HxW,HxW", "flow" or "-"."""
    if text in ("-", "flow"):
        return ObjectDetection if text == "-" else OpticalFlow
    if "x" in text:
        crop, size = (tuple(map(int, part.split("x"))) for part in text.split(","))
        return partial(VideoClassification, crop_size=crop, resize_size=size)
    if "," not in text:
        return partial(SemanticSegmentation, resize_size=int(text))
    crop, size, interpolation = text.split(",")
    return partial(ImageClassification, crop_size=int(crop), resize_size=int(size), interpolation=InterpolationMode(interpolation))
