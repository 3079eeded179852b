"""Functions that make detectors with published weights."""

from msadapter.pytorch import nn
from msadapter.torchvision.models import _api, mobilenetv3, resnet
from msadapter.torchvision.models.detection._utils import overwrite_eps
from msadapter.torchvision.models.detection.backbone_utils import _mobilenet_extractor, _resnet_fpn_extractor, _validate_trainable_layers
from msadapter.torchvision.ops import FrozenBatchNorm2d

RESNET50 = (resnet.ResNet50_Weights, "IMAGENET1K_V1")
MOBILENET = (mobilenetv3.MobileNet_V3_Large_Weights, "IMAGENET1K_V1")
COCO_CLASSES = 91


def builder(name, model, make, weights, doc, backbone, default="COCO_V1", parameters=(), more=(), without_eps=False):
    """The function `name` that makes `model` by make(num_classes, backbone, **kwargs).

    backbone: (function that makes it of weights, progress, whether it or the model has weights, and trainable_backbone_layers; weights as in
    _api.builder). without_eps: whether the weights COCO_V1 were trained without eps.
    """
    backbone_of, *backbone_weights = backbone

    def prepare(kwargs, chosen):
        kwargs["trained"] = chosen is not None or kwargs["weights_backbone"] is not None
        if chosen is not None and "num_keypoints" in parameters:
            _api.override(kwargs, "num_keypoints", len(chosen.meta["keypoint_names"]))

    def build(num_classes=None, weights_backbone=None, progress=True, trained=False, trainable_backbone_layers=None, **kwargs):
        return make(num_classes, backbone_of(weights_backbone, progress, trained, trainable_backbone_layers), **kwargs)

    def finish(detector, asked, chosen):
        if without_eps and chosen is weights.COCO_V1:
            overwrite_eps(detector, 0.0)

    return _api.builder(name, build, weights, f"{model.__name__} {doc}.", default=default, prepare=prepare, finish=finish, backbone=backbone_weights,
                        parameters=parameters, more=("trainable_backbone_layers", *more))


def resnet50_fpn(version=1, norm_layer=None, pyramid=dict):
    """A backbone for builder(): ResNet 50 and a pyramid with norm_layer and the options pyramid(). In version 1 norms of trained weights are frozen."""
    def make(weights, progress, trained, layers):
        layers = _validate_trainable_layers(trained, layers, 5, 3)
        norm = {"norm_layer": FrozenBatchNorm2d if trained else nn.BatchNorm2d} if version == 1 else {}
        body = resnet.resnet50(weights=weights, progress=progress, **norm)
        return _resnet_fpn_extractor(body, layers, norm_layer=norm_layer, **pyramid())

    return (make, *RESNET50) if version == 1 else (make, *RESNET50, None)


def _mobilenet_fpn(weights, progress, trained, layers):
    layers = _validate_trainable_layers(trained, layers, 6, 3)
    body = mobilenetv3.mobilenet_v3_large(weights=weights, progress=progress, norm_layer=FrozenBatchNorm2d if trained else nn.BatchNorm2d)
    return _mobilenet_extractor(body, True, layers)


MOBILENET_FPN = (_mobilenet_fpn, *MOBILENET)
