"""Transforms of colours, as functions: on Pillow's pictures by Pillow, on tensors (..., C, H, W) by operators."""

from msadapter import pytorch as torch
from msadapter.torchvision.transforms._basic import _check_picture_or_tensor, _is_picture, convert_image_dtype, rgb_to_grayscale, to_pil_image

__all__ = ["adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue", "adjust_saturation", "adjust_sharpness", "autocontrast", "equalize",
           "erase", "gaussian_blur", "invert", "posterize", "solarize"]


def _bound(img):
    return 1.0 if img.is_floating_point() else 255.0


def _channels(img):
    return img.shape[-3] if img.dim() > 2 else 1


def _check_dimensions(img):
    if img.dim() < 3:
        raise TypeError(f"Input image tensor should have at least 3 dimensions, but found {img.dim()}")


def _check_channels(img, allowed, name):
    if _channels(img) not in allowed:
        raise TypeError(f"{name}: input image tensor permitted channel values are {list(allowed)}, but found {_channels(img)}")


def _blend(img, other, ratio):
    """ratio * img + (1 - ratio) * other, inside the range of values."""
    return (float(ratio) * img + (1.0 - float(ratio)) * other).clamp(0, _bound(img)).to(img.dtype)


def _enhanced(img, name, factor):
    from PIL import ImageEnhance

    return getattr(ImageEnhance, name)(img).enhance(factor)


def _not_negative(factor, name):
    if factor < 0:
        raise ValueError(f"{name} ({factor}) is not non-negative.")


def adjust_brightness(img, brightness_factor):
    """0 gives black, 1 the picture itself, 2 twice its brightness."""
    _check_picture_or_tensor(img, "adjust_brightness")
    if _is_picture(img):
        return _enhanced(img, "Brightness", brightness_factor)
    _not_negative(brightness_factor, "brightness_factor")
    _check_channels(img, (1, 3), "adjust_brightness")
    return _blend(img, torch.zeros_like(img), brightness_factor)


def adjust_contrast(img, contrast_factor):
    """0 gives even grey, 1 the picture itself, 2 twice its contrast."""
    _check_picture_or_tensor(img, "adjust_contrast")
    if _is_picture(img):
        return _enhanced(img, "Contrast", contrast_factor)
    _not_negative(contrast_factor, "contrast_factor")
    _check_channels(img, (1, 3), "adjust_contrast")
    grey = rgb_to_grayscale(img) if _channels(img) == 3 else img
    dtype = img.dtype if img.is_floating_point() else torch.float32
    return _blend(img, torch.mean(grey.to(dtype), dim=(-3, -2, -1), keepdim=True), contrast_factor)


def adjust_saturation(img, saturation_factor):
    """0 gives grey, 1 the picture itself, 2 twice its saturation."""
    _check_picture_or_tensor(img, "adjust_saturation")
    if _is_picture(img):
        return _enhanced(img, "Color", saturation_factor)
    _not_negative(saturation_factor, "saturation_factor")
    _check_channels(img, (1, 3), "adjust_saturation")
    return img if _channels(img) == 1 else _blend(img, rgb_to_grayscale(img), saturation_factor)


def adjust_gamma(img, gamma, gain=1):
    """255 * gain * (value / 255) ** gamma. ValueError for a negative gamma."""
    _check_picture_or_tensor(img, "adjust_gamma")
    if gamma < 0:
        raise ValueError("Gamma should be a non-negative real number")
    if _is_picture(img):
        table = [int((255 + 1 - 1e-3) * gain * pow(value / 255.0, gamma)) for value in range(256)] * 3
        return img.convert("RGB").point(table).convert(img.mode)
    _check_channels(img, (1, 3), "adjust_gamma")
    values = img if img.is_floating_point() else convert_image_dtype(img, torch.float32)
    return convert_image_dtype((gain * values**gamma).clamp(0, 1), img.dtype)


def _rgb_to_hsv(img):
    r, g, b = img.unbind(dim=-3)
    high, low = torch.max(img, dim=-3).values, torch.min(img, dim=-3).values
    grey = high == low
    spread = high - low
    saturation = spread / torch.where(grey, torch.ones_like(high), high)
    divisor = torch.where(grey, torch.ones_like(high), spread)
    red, green, blue = (high - r) / divisor, (high - g) / divisor, (high - b) / divisor
    hue = torch.where(high == r, blue - green, torch.where(high == g, 2.0 + red - blue, 4.0 + green - red))
    return torch.stack(((hue / 6.0 + 1.0).fmod(1.0), saturation, high), dim=-3)


def _hsv_to_rgb(img):
    h, s, v = img.unbind(dim=-3)
    sector = torch.floor(h * 6.0)
    f = h * 6.0 - sector
    sector = sector.to(torch.int64) % 6
    p, q, t = (v * (1.0 - s)).clamp(0, 1), (v * (1.0 - s * f)).clamp(0, 1), (v * (1.0 - s * (1.0 - f))).clamp(0, 1)
    ways = torch.stack((v, q, p, t), dim=0)
    table = torch.tensor([[0, 1, 2, 2, 3, 0], [3, 0, 0, 1, 2, 2], [2, 2, 3, 0, 0, 1]])  # which way each channel goes in a sector
    return torch.stack([ways.gather(0, row[sector].unsqueeze(0)).squeeze(0) for row in table], dim=-3)


def adjust_hue(img, hue_factor):
    """Hues turned by hue_factor of the circle, -0.5 to 0.5; ValueError outside."""
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    _check_picture_or_tensor(img, "adjust_hue")
    if _is_picture(img):
        if img.mode in ("L", "1", "I", "F"):
            return img
        from PIL import Image

        h, s, v = img.convert("HSV").split()
        turn = int(hue_factor * 255) % 256
        return Image.merge("HSV", (h.point([(value + turn) % 256 for value in range(256)]), s, v)).convert(img.mode)
    _check_channels(img, (1, 3), "adjust_hue")
    if _channels(img) == 1:
        return img
    values = img if img.is_floating_point() else convert_image_dtype(img, torch.float32)
    h, s, v = _rgb_to_hsv(values).unbind(dim=-3)
    turned = _hsv_to_rgb(torch.stack(((h + hue_factor) % 1.0, s, v), dim=-3))
    return turned if img.is_floating_point() else convert_image_dtype(turned, img.dtype)


def invert(img):
    """Light and dark exchanged."""
    _check_picture_or_tensor(img, "invert")
    if _is_picture(img):
        from PIL import ImageOps

        return ImageOps.invert(img)
    _check_dimensions(img)
    _check_channels(img, (1, 3), "invert")
    return (int(_bound(img)) if not img.is_floating_point() else _bound(img)) - img


def posterize(img, bits):
    """The highest `bits` bits, 0 to 8, of each value of 8 bits."""
    if not 0 <= bits <= 8:
        raise ValueError(f"The number if bits should be between 0 and 8. Got {bits}")
    _check_picture_or_tensor(img, "posterize")
    if _is_picture(img):
        from PIL import ImageOps

        return ImageOps.posterize(img, bits)
    _check_dimensions(img)
    if img.dtype != torch.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    _check_channels(img, (1, 3), "posterize")
    return img & (256 - 2 ** (8 - bits))


def solarize(img, threshold):
    """Values of at least threshold inverted; TypeError where the threshold is above all values."""
    _check_picture_or_tensor(img, "solarize")
    if _is_picture(img):
        from PIL import ImageOps

        return ImageOps.solarize(img, threshold)
    if threshold > _bound(img):
        raise TypeError("Threshold should be less than bound of img.")
    return torch.where(img >= threshold, invert(img), img)


def _filtered(img, kernel, padding=0):
    """Each channel of img (..., C, H, W) convolved with kernel (h, w), in floats, rounded back for integers."""
    batch = img.reshape((-1,) + tuple(img.shape[-3:])) if img.dim() != 4 else img
    values = batch.to(kernel.dtype)
    if padding:
        values = torch.nn.functional.pad(values, padding, mode="reflect")
    channels = values.shape[1]
    values = torch.nn.functional.conv2d(values, kernel.expand(channels, 1, *kernel.shape), groups=channels)
    if not img.is_floating_point():
        values = values.round()
    return values.to(img.dtype).reshape(tuple(img.shape[:-2]) + tuple(values.shape[-2:]))


def adjust_sharpness(img, sharpness_factor):
    """0 gives a blurred picture, 1 the picture itself, 2 twice its sharpness."""
    _check_picture_or_tensor(img, "adjust_sharpness")
    if _is_picture(img):
        return _enhanced(img, "Sharpness", sharpness_factor)
    _not_negative(sharpness_factor, "sharpness_factor")
    _check_channels(img, (1, 3), "adjust_sharpness")
    if img.shape[-1] <= 2 or img.shape[-2] <= 2:
        return img
    kernel = torch.ones((3, 3), dtype=img.dtype if img.is_floating_point() else torch.float32)
    kernel[1, 1] = 5.0
    blurred = img.clone()
    blurred[..., 1:-1, 1:-1] = _filtered(img, kernel / kernel.sum())  # the border stays as it is
    return _blend(img, blurred, sharpness_factor)


def autocontrast(img):
    """Each channel stretched over the range of values."""
    _check_picture_or_tensor(img, "autocontrast")
    if _is_picture(img):
        from PIL import ImageOps

        return ImageOps.autocontrast(img)
    _check_dimensions(img)
    _check_channels(img, (1, 3), "autocontrast")
    bound, dtype = _bound(img), img.dtype if img.is_floating_point() else torch.float32
    low, high = img.amin(dim=(-2, -1), keepdim=True).to(dtype), img.amax(dim=(-2, -1), keepdim=True).to(dtype)
    even = low == high
    scale = torch.where(even, torch.ones_like(low), bound / (high - low))
    return ((img - low.masked_fill(even, 0)) * scale).clamp(0, bound).to(img.dtype)


def _equalized(channel):
    """One channel (H, W) with every value of 8 bits about as frequent as the others."""
    counts = torch.bincount(channel.reshape(-1).long(), minlength=256)
    occurring = counts[counts != 0]
    step = int(occurring[:-1].sum()) // 255
    if step == 0:
        return channel
    table = (counts.cumsum(0) + step // 2) // step
    table = torch.nn.functional.pad(table, [1, 0])[:-1].clamp(0, 255)
    return table[channel.long()].to(torch.uint8)


def equalize(img):
    """Each channel with an even histogram; tensors of uint8."""
    _check_picture_or_tensor(img, "equalize")
    if _is_picture(img):
        from PIL import ImageOps

        return ImageOps.equalize(img)
    if not 3 <= img.dim() <= 4:
        raise TypeError(f"Input image tensor should have 3 or 4 dimensions, but found {img.dim()}")
    if img.dtype != torch.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    _check_channels(img, (1, 3), "equalize")
    planes = img.reshape((-1,) + tuple(img.shape[-2:]))
    return torch.stack([_equalized(plane) for plane in planes]).reshape(img.shape)


def gaussian_blur(img, kernel_size, sigma=None):
    """Blurred by a Gaussian of odd kernel_size and of standard deviation sigma, numbers or pairs for width and height.

    sigma is 0.15 * size + 0.35 unless given. Raises TypeError and ValueError for other sizes and deviations.
    """
    if not isinstance(kernel_size, (int, list, tuple)):
        raise TypeError(f"kernel_size should be int or a sequence of integers. Got {type(kernel_size)}")
    kernel_size = [kernel_size, kernel_size] if isinstance(kernel_size, int) else list(kernel_size)
    if len(kernel_size) != 2:
        raise ValueError(f"If kernel_size is a sequence its length should be 2. Got {len(kernel_size)}")
    for size in kernel_size:
        if size % 2 == 0 or size < 0:
            raise ValueError(f"kernel_size should have odd and positive integers. Got {kernel_size}")
    if sigma is None:
        sigma = [size * 0.15 + 0.35 for size in kernel_size]
    if not isinstance(sigma, (int, float, list, tuple)):
        raise TypeError(f"sigma should be either float or sequence of floats. Got {type(sigma)}")
    sigma = [float(sigma)] * 2 if isinstance(sigma, (int, float)) else [float(s) for s in sigma]
    if len(sigma) == 1:
        sigma = sigma * 2
    if len(sigma) != 2:
        raise ValueError(f"If sigma is a sequence, its length should be 2. Got {len(sigma)}")
    for value in sigma:
        if value <= 0.0:
            raise ValueError(f"sigma should have positive values. Got {sigma}")
    if not (_is_picture(img) or isinstance(img, torch.Tensor)):
        raise TypeError(f"img should be PIL Image or Tensor. Got {type(img)}")
    if _is_picture(img):
        from msadapter.torchvision.transforms._basic import pil_to_tensor

        return to_pil_image(gaussian_blur(pil_to_tensor(img), kernel_size, sigma), mode=img.mode)
    dtype = img.dtype if img.is_floating_point() else torch.float32
    weights = []
    for size, deviation in zip(kernel_size, sigma):
        half = (size - 1) * 0.5
        density = torch.exp(-0.5 * (torch.linspace(-half, half, steps=size) / deviation).pow(2))
        weights.append((density / density.sum()).to(dtype))
    kernel = torch.mm(weights[1][:, None], weights[0][None, :])
    return _filtered(img, kernel, [kernel_size[0] // 2, kernel_size[0] // 2, kernel_size[1] // 2, kernel_size[1] // 2])


def erase(img, i, j, h, w, v, inplace=False):
    """The tensor with the part at row i and column j, h x w, set to v."""
    if not isinstance(img, torch.Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}")
    if not inplace:
        img = img.clone()
    img[..., i:i + h, j:j + w] = v
    return img

