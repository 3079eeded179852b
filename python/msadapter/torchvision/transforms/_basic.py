"""Transforms as functions: on Pillow's pictures by Pillow, on tensors (..., C, H, W) by operators."""

import enum

from msadapter import pytorch as torch


class InterpolationMode(enum.Enum):
    """How pictures are resized."""

    NEAREST = "nearest"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_PIL_FILTER = {InterpolationMode.NEAREST: 0, InterpolationMode.LANCZOS: 1, InterpolationMode.BILINEAR: 2, InterpolationMode.BICUBIC: 3,
               InterpolationMode.BOX: 4, InterpolationMode.HAMMING: 5}


def _is_picture(value):
    from PIL import Image

    return isinstance(value, Image.Image)


def _check_picture_or_tensor(img, name):
    if not (_is_picture(img) or isinstance(img, torch.Tensor)):
        raise TypeError(f"{name}: argument 'img' should be a PIL Image or a Tensor, got {type(img)}")


def to_tensor(pic):
    """A picture or an array (H, W, C) as a tensor (C, H, W); bytes become floats of [0, 1]. Raises TypeError and ValueError."""
    import numpy

    if isinstance(pic, numpy.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        array = pic[:, :, None] if pic.ndim == 2 else pic
        tensor = torch.from_numpy(numpy.ascontiguousarray(array.transpose(2, 0, 1)))
        return tensor.to(torch.get_default_dtype()) / 255 if array.dtype == numpy.uint8 else tensor
    if not _is_picture(pic):
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    tensor = _picture_values(pic)
    return tensor.to(torch.get_default_dtype()) / 255 if tensor.dtype == torch.uint8 else tensor


def _picture_values(pic):
    """A picture's values as a tensor (C, H, W) of their own type."""
    import numpy

    kinds = {"I": numpy.int32, "I;16": numpy.int16, "F": numpy.float32}
    array = numpy.array(pic, kinds.get(pic.mode, numpy.uint8), copy=True)
    if pic.mode == "1":
        array = 255 * array
    tensor = torch.from_numpy(array).view(pic.size[1], pic.size[0], len(pic.getbands()))
    return tensor.permute(2, 0, 1).contiguous()


def pil_to_tensor(pic):
    """A picture as a tensor (C, H, W) of its own type."""
    if not _is_picture(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    return _picture_values(pic)


def convert_image_dtype(image, dtype=torch.float32):
    """Another type, values scaled so that the largest of the old type becomes the largest of the new one."""
    if image.dtype == dtype:
        return image
    if image.is_floating_point():
        if dtype.is_floating_point:
            return image.to(dtype)
        return (image * (torch.iinfo(dtype).max + 1.0 - 1e-3)).to(dtype)
    largest = torch.iinfo(image.dtype).max
    if dtype.is_floating_point:
        return image.to(dtype) / largest
    wanted = torch.iinfo(dtype).max
    if largest > wanted:
        return (image // ((largest + 1) // (wanted + 1))).to(dtype)
    return image.to(dtype) * ((wanted + 1) // (largest + 1))


def to_pil_image(pic, mode=None):
    """A tensor (C, H, W) or an array (H, W, C) as a picture; floats of [0, 1] become bytes. Raises TypeError and ValueError."""
    import numpy
    from PIL import Image

    if isinstance(pic, torch.Tensor):
        if pic.dim() not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.dim()} dimensions.")
        if pic.dim() == 2:
            pic = pic.unsqueeze(0)
        if pic.shape[0] > 4:
            raise ValueError(f"pic should not have > 4 channels. Got {pic.shape[0]} channels.")
        if pic.is_floating_point() and mode != "F":
            pic = (pic * 255).to(torch.uint8)
        array = pic.permute(1, 2, 0).contiguous().numpy()
    elif isinstance(pic, numpy.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        array = pic[:, :, None] if pic.ndim == 2 else pic
        if array.shape[-1] > 4:
            raise ValueError(f"pic should not have > 4 channels. Got {array.shape[-1]} channels.")
    else:
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    channels = array.shape[2]
    if channels == 1:
        array = array[:, :, 0]
        mode = mode or {numpy.dtype("uint8"): "L", numpy.dtype("int16"): "I;16", numpy.dtype("int32"): "I", numpy.dtype("float32"): "F"}.get(array.dtype)
    else:
        mode = mode or {2: "LA", 3: "RGB", 4: "RGBA"}[channels]
    if mode is None:
        raise TypeError(f"Input type {array.dtype} is not supported")
    return Image.fromarray(array, mode=mode)


def normalize(tensor, mean, std, inplace=False):
    """(tensor - mean) / std, channel by channel. Raises TypeError for integers and ValueError for a std of 0 or fewer than 3 dimensions."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"Input tensor should be a torch tensor. Got {type(tensor)}.")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.dim() < 3:
        raise ValueError(f"Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = {tensor.size()}")
    mean, std = torch.as_tensor(mean, dtype=tensor.dtype), torch.as_tensor(std, dtype=tensor.dtype)
    if (std == 0).any():
        raise ValueError(f"std evaluated to zero after conversion to {tensor.dtype}, leading to division by zero.")
    if mean.dim() == 1:
        mean = mean.view(-1, 1, 1)
    if std.dim() == 1:
        std = std.view(-1, 1, 1)
    if not inplace:
        tensor = tensor.clone()  # written in place below, so that means for more channels than there are don't make more
    return tensor.sub_(mean).div_(std)


def get_image_size(img):
    """[width, height]."""
    _check_picture_or_tensor(img, "get_image_size")
    return list(img.size) if _is_picture(img) else [img.shape[-1], img.shape[-2]]


def _target_size(img, size, max_size):
    width, height = get_image_size(img)
    if not isinstance(size, int) and len(size) == 2:
        if max_size is not None:
            raise ValueError("max_size should only be passed if size specifies the length of the smaller edge, i.e. size should be an int or a "
                             "sequence of length 1 in torchscript mode.")
        return size[1], size[0]
    size = size if isinstance(size, int) else size[0]
    short, long = min(width, height), max(width, height)
    new_short, new_long = size, int(size * long / short)
    if max_size is not None:
        if max_size <= size:
            raise ValueError(f"max_size = {max_size} must be strictly greater than the requested size for the smaller edge size = {size}")
        if new_long > max_size:
            new_short, new_long = int(max_size * new_short / new_long), max_size
    return (new_short, new_long) if width <= height else (new_long, new_short)


def resize(img, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=None):
    """The picture in another size: (height, width), or the length of the shorter edge."""
    _check_picture_or_tensor(img, "resize")
    if isinstance(interpolation, int):
        interpolation = {code: mode for mode, code in _PIL_FILTER.items()}[interpolation]
    if not isinstance(interpolation, InterpolationMode):
        raise TypeError("Argument interpolation should be a InterpolationMode")
    width, height = _target_size(img, size, max_size)
    if [width, height] == get_image_size(img):
        return img
    if _is_picture(img):
        return img.resize((width, height), _PIL_FILTER[interpolation])
    if interpolation not in (InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC):
        raise ValueError("This interpolation mode is unsupported with Tensor input")
    if antialias:
        raise NotImplementedError("resize: argument 'antialias'=True is not implemented for tensors")
    batch = img if img.dim() == 4 else img.unsqueeze(0)
    values = batch if batch.is_floating_point() else batch.float()
    options = {} if interpolation is InterpolationMode.NEAREST else {"align_corners": False}
    values = torch.nn.functional.interpolate(values, size=(height, width), mode=interpolation.value, **options)
    if not img.is_floating_point():
        if interpolation is InterpolationMode.BICUBIC:
            values = values.clamp(0, 255)
        values = values.round().to(img.dtype)
    return values if img.dim() == 4 else values.squeeze(0)


def crop(img, top, left, height, width):
    """A part of the picture; what lies outside is zero."""
    _check_picture_or_tensor(img, "crop")
    if _is_picture(img):
        return img.crop((left, top, left + width, top + height))
    w, h = get_image_size(img)
    right, bottom = left + width, top + height
    if left < 0 or top < 0 or right > w or bottom > h:
        padding = [max(-left, 0), max(right - w, 0), max(-top, 0), max(bottom - h, 0)]
        return torch.nn.functional.pad(img[..., max(top, 0):bottom, max(left, 0):right], padding)
    return img[..., top:bottom, left:right]


def center_crop(img, output_size):
    """The middle of the picture, padded with zeros where it is smaller."""
    if isinstance(output_size, int):
        output_size = (output_size, output_size)
    elif len(output_size) == 1:
        output_size = (output_size[0], output_size[0])
    height, width = output_size
    w, h = get_image_size(img)
    if width > w or height > h:
        padding = [max((width - w) // 2, 0), max((height - h) // 2, 0), max((width - w + 1) // 2, 0), max((height - h + 1) // 2, 0)]
        img = pad(img, padding)
        w, h = get_image_size(img)
        if (width, height) == (w, h):
            return img
    return crop(img, int(round((h - height) / 2.0)), int(round((w - width) / 2.0)), height, width)


def pad(img, padding, fill=0, padding_mode="constant"):
    """Borders around the picture: one width, (left and right, top and bottom), or (left, top, right, bottom)."""
    _check_picture_or_tensor(img, "pad")
    if isinstance(padding, int):
        left = top = right = bottom = padding
    elif len(padding) == 1:
        left = top = right = bottom = padding[0]
    elif len(padding) == 2:
        left, top = right, bottom = padding
    elif len(padding) == 4:
        left, top, right, bottom = padding
    else:
        raise ValueError(f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple")
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    if _is_picture(img):
        if padding_mode == "constant":
            from PIL import ImageOps

            bands = len(img.getbands())
            fill = tuple(fill) if isinstance(fill, (list, tuple)) else (fill,) * bands if bands > 1 else fill
            return ImageOps.expand(img, border=(left, top, right, bottom), fill=fill)
        import numpy
        from PIL import Image

        array = numpy.asarray(img)
        widths = ((top, bottom), (left, right)) + (((0, 0),) if array.ndim == 3 else ())
        return Image.fromarray(numpy.pad(array, widths, padding_mode))
    if padding_mode == "constant":
        return torch.nn.functional.pad(img, [left, right, top, bottom], value=float(fill))
    if padding_mode == "symmetric":
        raise NotImplementedError("pad: argument 'padding_mode'='symmetric' is not implemented for tensors")
    mode = {"edge": "replicate", "reflect": "reflect"}[padding_mode]
    batch = img if img.dim() == 4 else img.unsqueeze(0)
    values = torch.nn.functional.pad(batch, [left, right, top, bottom], mode=mode)
    return values if img.dim() == 4 else values.squeeze(0)


def hflip(img):
    """Left and right exchanged."""
    _check_picture_or_tensor(img, "hflip")
    return img.transpose(0) if _is_picture(img) else img.flip(-1)


def vflip(img):
    """Top and bottom exchanged."""
    _check_picture_or_tensor(img, "vflip")
    return img.transpose(1) if _is_picture(img) else img.flip(-2)


def rgb_to_grayscale(img, num_output_channels=1):
    """Luminance (ITU-R 601), in one channel or three."""
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    _check_picture_or_tensor(img, "rgb_to_grayscale")
    if _is_picture(img):
        grey = img.convert("L")
        if num_output_channels == 1:
            return grey
        from PIL import Image

        return Image.merge("RGB", (grey, grey, grey))
    r, g, b = img.unbind(-3)
    grey = (0.2989 * r + 0.587 * g + 0.114 * b).to(img.dtype).unsqueeze(-3)
    return grey if num_output_channels == 1 else grey.expand(*img.shape)


to_grayscale = rgb_to_grayscale
