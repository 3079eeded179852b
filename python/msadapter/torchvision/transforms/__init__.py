"""torchvision.transforms."""

from msadapter.torchvision.transforms import functional
from msadapter.torchvision.transforms.functional import InterpolationMode
from msadapter.torchvision.transforms.transforms import (CenterCrop, Compose, ConvertImageDtype, Grayscale, Lambda, Normalize, Pad, PILToTensor,
                                                          RandomApply, RandomChoice, RandomCrop, RandomGrayscale, RandomHorizontalFlip, RandomOrder,
                                                          RandomVerticalFlip, Resize, ToPILImage, ToTensor)

__all__ = ["CenterCrop", "Compose", "ConvertImageDtype", "Grayscale", "InterpolationMode", "Lambda", "Normalize", "PILToTensor", "Pad",
           "RandomApply", "RandomChoice", "RandomCrop", "RandomGrayscale", "RandomHorizontalFlip", "RandomOrder", "RandomVerticalFlip", "Resize",
           "ToPILImage", "ToTensor", "functional"]
