"""Fully convolutional networks (Long et al. 2015)."""

from msadapter.torchvision.models._api import enums
from msadapter.torchvision.models.segmentation._utils import FCNHead, SegmentationModel, builder

__all__ = ["FCN", "FCN_ResNet50_Weights", "FCN_ResNet101_Weights", "fcn_resnet50", "fcn_resnet101"]

FCN_ResNet50_Weights, FCN_ResNet101_Weights = enums("FCN_ResNet50_Weights", "FCN_ResNet101_Weights")


class FCN(SegmentationModel):
    """A backbone and a convolutional head."""


fcn_resnet50 = builder("fcn", FCN, FCNHead, "resnet50", FCN_ResNet50_Weights)
fcn_resnet101 = builder("fcn", FCN, FCNHead, "resnet101", FCN_ResNet101_Weights)
