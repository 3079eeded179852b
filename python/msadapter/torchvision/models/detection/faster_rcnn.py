"""Faster R-CNN (Ren et al., 2015): a region proposal network, and class and box of each region."""

import inspect

from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api
from msadapter.torchvision.models.detection import _builders
from msadapter.torchvision.models.detection._utils import draw
from msadapter.torchvision.models.detection.anchor_utils import AnchorGenerator
from msadapter.torchvision.models.detection.generalized_rcnn import GeneralizedRCNN
from msadapter.torchvision.models.detection.roi_heads import RoIHeads
from msadapter.torchvision.models.detection.rpn import RegionProposalNetwork, RPNHead
from msadapter.torchvision.models.detection.transform import GeneralizedRCNNTransform
from msadapter.torchvision.ops import Conv2dNormActivation, MultiScaleRoIAlign

__all__ = ["FasterRCNN", "FasterRCNN_ResNet50_FPN_Weights", "FasterRCNN_ResNet50_FPN_V2_Weights", "FasterRCNN_MobileNet_V3_Large_FPN_Weights",
           "FasterRCNN_MobileNet_V3_Large_320_FPN_Weights", "fasterrcnn_resnet50_fpn", "fasterrcnn_resnet50_fpn_v2", "fasterrcnn_mobilenet_v3_large_fpn",
           "fasterrcnn_mobilenet_v3_large_320_fpn"]

(FasterRCNN_ResNet50_FPN_Weights, FasterRCNN_ResNet50_FPN_V2_Weights, FasterRCNN_MobileNet_V3_Large_FPN_Weights,
 FasterRCNN_MobileNet_V3_Large_320_FPN_Weights) = _api.enums(*__all__[1:5])

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
WIDTH = 1024  # of what is known of a region


def pyramid_pool(size):
    """Pooling of size x size out of the four finest maps of a pyramid."""
    return MultiScaleRoIAlign(featmap_names=["0", "1", "2", "3"], output_size=size, sampling_ratio=2)


def check_type(name, value, wanted):
    """Raises TypeError for what is neither None nor `wanted`."""
    if not isinstance(value, (wanted, type(None))):
        raise TypeError(f"{name} should be of type {wanted.__name__} or None instead of {type(value)}")


def check_channels(backbone):
    """Raises ValueError for a backbone without out_channels."""
    if not hasattr(backbone, "out_channels"):
        raise ValueError("backbone should contain an attribute out_channels specifying the number of output channels, the same for all the levels")


def _default_anchorgen():
    return AnchorGenerator(((32,), (64,), (128,), (256,), (512,)), ((0.5, 1.0, 2.0),) * 5)


class FasterRCNN(GeneralizedRCNN):
    """A detector on a backbone with out_channels channels in each map; see Detector for what goes in and out.

    num_classes counts nothing as one. The rest belongs to GeneralizedRCNNTransform (min_size to image_std, kwargs), RegionProposalNetwork (rpn_*) and
    RoIHeads (box_*). ValueError unless exactly one of num_classes and box_predictor is given, TypeError for parts of other types.
    """

    def __init__(self, backbone, num_classes=None, min_size=800, max_size=1333, image_mean=None, image_std=None, rpn_anchor_generator=None, rpn_head=None,
                 rpn_pre_nms_top_n_train=2000, rpn_pre_nms_top_n_test=1000, rpn_post_nms_top_n_train=2000, rpn_post_nms_top_n_test=1000,
                 rpn_nms_thresh=0.7, rpn_fg_iou_thresh=0.7, rpn_bg_iou_thresh=0.3, rpn_batch_size_per_image=256, rpn_positive_fraction=0.5,
                 rpn_score_thresh=0.0, box_roi_pool=None, box_head=None, box_predictor=None, box_score_thresh=0.05, box_nms_thresh=0.5,
                 box_detections_per_img=100, box_fg_iou_thresh=0.5, box_bg_iou_thresh=0.5, box_batch_size_per_image=512, box_positive_fraction=0.25,
                 bbox_reg_weights=None, **kwargs):
        check_channels(backbone)
        check_type("rpn_anchor_generator", rpn_anchor_generator, AnchorGenerator)
        check_type("box_roi_pool", box_roi_pool, MultiScaleRoIAlign)
        if (num_classes is None) == (box_predictor is None):
            raise ValueError("num_classes should be None when box_predictor is specified" if box_predictor is not None else
                             "num_classes should not be None when box_predictor is not specified")
        channels = backbone.out_channels
        anchors = _default_anchorgen() if rpn_anchor_generator is None else rpn_anchor_generator
        rpn_head = RPNHead(channels, anchors.num_anchors_per_location()[0]) if rpn_head is None else rpn_head
        rpn = RegionProposalNetwork(anchors, rpn_head, rpn_fg_iou_thresh, rpn_bg_iou_thresh, rpn_batch_size_per_image, rpn_positive_fraction,
                                    {"training": rpn_pre_nms_top_n_train, "testing": rpn_pre_nms_top_n_test},
                                    {"training": rpn_post_nms_top_n_train, "testing": rpn_post_nms_top_n_test}, rpn_nms_thresh, rpn_score_thresh)
        box_roi_pool = pyramid_pool(7) if box_roi_pool is None else box_roi_pool
        box_head = TwoMLPHead(channels * box_roi_pool.output_size[0] ** 2, WIDTH) if box_head is None else box_head
        box_predictor = FastRCNNPredictor(WIDTH, num_classes) if box_predictor is None else box_predictor
        heads = RoIHeads(box_roi_pool, box_head, box_predictor, box_fg_iou_thresh, box_bg_iou_thresh, box_batch_size_per_image, box_positive_fraction,
                         bbox_reg_weights, box_score_thresh, box_nms_thresh, box_detections_per_img)
        transform = GeneralizedRCNNTransform(min_size, max_size, list(MEAN) if image_mean is None else image_mean,
                                             list(STD) if image_std is None else image_std, **kwargs)
        super().__init__(backbone, rpn, heads, transform)


def extended(*names, **defaults):
    """The signature of FasterRCNN with further parameters, None unless given, and other defaults."""
    parameters = list(inspect.signature(FasterRCNN.__init__).parameters.values())
    parameters = [each.replace(default=defaults.get(each.name, each.default)) for each in parameters]
    parameters[-1:-1] = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in names]
    return inspect.Signature(parameters)


class TwoMLPHead(nn.Module):
    """Two linear layers on regions (N, C, H, W): (N, representation_size)."""

    def __init__(self, in_channels, representation_size):
        super().__init__()
        self.fc6, self.fc7 = nn.Linear(in_channels, representation_size), nn.Linear(representation_size, representation_size)

    def forward(self, x):
        return F.relu(self.fc7(F.relu(self.fc6(x.flatten(start_dim=1)))))


class FastRCNNConvFCHead(nn.Sequential):
    """Convolutions to conv_layers channels and linear layers of fc_layers, on regions (N, *input_size)."""

    def __init__(self, input_size, conv_layers, fc_layers, norm_layer=None):
        channels, height, width = input_size
        blocks = []
        for each in conv_layers:
            blocks.append(Conv2dNormActivation(channels, each, norm_layer=norm_layer))
            channels = each
        blocks.append(nn.Flatten())
        channels *= height * width
        for each in fc_layers:
            blocks += [nn.Linear(channels, each), nn.ReLU(inplace=True)]
            channels = each
        super().__init__(*blocks)
        draw(self, nn.init.kaiming_normal_, mode="fan_out", nonlinearity="relu")


class FastRCNNPredictor(nn.Module):
    """Scores (N, num_classes) and offsets (N, num_classes * 4) of regions (N, in_channels), or (N, in_channels, 1, 1)."""

    def __init__(self, in_channels, num_classes):
        super().__init__()
        self.cls_score, self.bbox_pred = nn.Linear(in_channels, num_classes), nn.Linear(in_channels, num_classes * 4)

    def forward(self, x):
        if x.dim() == 4 and tuple(x.shape[2:]) != (1, 1):
            raise AssertionError(f"x has the wrong shape, expecting the last two dimensions to be [1,1] instead of {list(x.shape[2:])}")
        x = x.flatten(start_dim=1)
        return self.cls_score(x), self.bbox_pred(x)


def second_version(channels):
    """The heads of the second version (Li et al., 2021), as arguments: more convolutions, with norms."""
    anchors = _default_anchorgen()
    return {"rpn_anchor_generator": anchors, "rpn_head": RPNHead(channels, anchors.num_anchors_per_location()[0], conv_depth=2),
            "box_head": FastRCNNConvFCHead((channels, 7, 7), [256] * 4, [WIDTH], norm_layer=nn.BatchNorm2d)}


def _make(num_classes, backbone, **kwargs):
    return FasterRCNN(backbone, _builders.COCO_CLASSES if num_classes is None else num_classes, **kwargs)


def _make_v2(num_classes, backbone, **kwargs):
    return _make(num_classes, backbone, **second_version(backbone.out_channels), **kwargs)


def _make_mobile(**defaults):
    def make(num_classes, backbone, **kwargs):
        anchors = AnchorGenerator(((32, 64, 128, 256, 512),) * 3, ((0.5, 1.0, 2.0),) * 3)
        return _make(num_classes, backbone, rpn_anchor_generator=anchors, **{"rpn_score_thresh": 0.05, **defaults, **kwargs})

    return make


fasterrcnn_resnet50_fpn = _builders.builder("fasterrcnn_resnet50_fpn", FasterRCNN, _make, FasterRCNN_ResNet50_FPN_Weights, "on ResNet 50 with a pyramid",
                                            _builders.resnet50_fpn(), without_eps=True)
fasterrcnn_resnet50_fpn_v2 = _builders.builder("fasterrcnn_resnet50_fpn_v2", FasterRCNN, _make_v2, FasterRCNN_ResNet50_FPN_V2_Weights,
                                               "on ResNet 50 with a pyramid, second version", _builders.resnet50_fpn(2, nn.BatchNorm2d))
fasterrcnn_mobilenet_v3_large_fpn = _builders.builder("fasterrcnn_mobilenet_v3_large_fpn", FasterRCNN, _make_mobile(),
                                                      FasterRCNN_MobileNet_V3_Large_FPN_Weights, "on MobileNet V3 with a pyramid", _builders.MOBILENET_FPN)
fasterrcnn_mobilenet_v3_large_320_fpn = _builders.builder(
    "fasterrcnn_mobilenet_v3_large_320_fpn", FasterRCNN, _make_mobile(min_size=320, max_size=640, rpn_pre_nms_top_n_test=150, rpn_post_nms_top_n_test=150),
    FasterRCNN_MobileNet_V3_Large_320_FPN_Weights, "on MobileNet V3 with a pyramid, for small pictures", _builders.MOBILENET_FPN)
