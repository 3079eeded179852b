"""torchvision.transforms."""

from msadapter.torchvision.transforms import functional  # noqa: F401
from msadapter.torchvision.transforms.autoaugment import *  # noqa: F403
from msadapter.torchvision.transforms.colour import *  # noqa: F403
from msadapter.torchvision.transforms.functional import InterpolationMode  # noqa: F401
from msadapter.torchvision.transforms.geometry import *  # noqa: F403
from msadapter.torchvision.transforms.transforms import (CenterCrop, Compose, ConvertImageDtype, Grayscale, Lambda, Normalize, Pad,  # noqa: F401
                                                        PILToTensor, RandomApply, RandomChoice, RandomCrop, RandomGrayscale,
                                                        RandomHorizontalFlip, RandomOrder, RandomVerticalFlip, Resize, ToPILImage, ToTensor)
