"""Transforms as functions: `torchvision.transforms.functional`."""

from msadapter.torchvision.transforms._basic import (InterpolationMode, center_crop, convert_image_dtype, crop, get_image_size, hflip,  # noqa: F401
                                                    normalize, pad, pil_to_tensor, resize, rgb_to_grayscale, to_grayscale, to_pil_image, to_tensor,
                                                    vflip)
from msadapter.torchvision.transforms._colour import *  # noqa: F403
from msadapter.torchvision.transforms._geometry import *  # noqa: F403
