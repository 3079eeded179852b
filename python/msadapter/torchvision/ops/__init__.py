"""torchvision.ops: operators of detection and blocks of networks."""

import sys

from msadapter.torchvision.ops import losses, regions
from msadapter.torchvision.ops.boxes import (batched_nms, box_area, box_convert, box_iou, clip_boxes_to_image, complete_box_iou, distance_box_iou,
                                             generalized_box_iou, masks_to_boxes, nms, remove_small_boxes)
from msadapter.torchvision.ops.deform_conv import DeformConv2d, deform_conv2d
from msadapter.torchvision.ops.drop_block import DropBlock2d, DropBlock3d, drop_block2d, drop_block3d
from msadapter.torchvision.ops.feature_pyramid_network import FeaturePyramidNetwork
from msadapter.torchvision.ops.losses import complete_box_iou_loss, distance_box_iou_loss, generalized_box_iou_loss, sigmoid_focal_loss
from msadapter.torchvision.ops.misc import MLP, Conv2dNormActivation, Conv3dNormActivation, FrozenBatchNorm2d, Permute, SqueezeExcitation
from msadapter.torchvision.ops.poolers import MultiScaleRoIAlign
from msadapter.torchvision.ops.regions import PSRoIAlign, PSRoIPool, RoIAlign, RoIPool, ps_roi_align, ps_roi_pool, roi_align, roi_pool
from msadapter.torchvision.ops.stochastic_depth import StochasticDepth, stochastic_depth

# Modules under the names that they have in torchvision.
for _module, _names in ((regions, ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool")), (losses, ("focal_loss", "giou_loss", "diou_loss", "ciou_loss"))):
    sys.modules.update({f"{__name__}.{_name}": _module for _name in _names})
    globals().update({_name: _module for _name in _names if _name not in globals()})

__all__ = ["Conv2dNormActivation", "Conv3dNormActivation", "DeformConv2d", "DropBlock2d", "DropBlock3d", "FeaturePyramidNetwork", "FrozenBatchNorm2d", "MLP",
           "MultiScaleRoIAlign", "PSRoIAlign", "PSRoIPool", "Permute", "RoIAlign", "RoIPool", "SqueezeExcitation", "StochasticDepth", "batched_nms",
           "box_area", "box_convert", "box_iou", "clip_boxes_to_image", "complete_box_iou", "complete_box_iou_loss", "deform_conv2d", "distance_box_iou",
           "distance_box_iou_loss", "drop_block2d", "drop_block3d", "generalized_box_iou", "generalized_box_iou_loss", "masks_to_boxes", "nms", "ps_roi_align",
           "ps_roi_pool", "remove_small_boxes", "roi_align", "roi_pool", "sigmoid_focal_loss", "stochastic_depth"]
