"""What the segmentation models share."""

from collections import OrderedDict

from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api, mobilenetv3, resnet
from msadapter.torchvision.models._utils import IntermediateLayerGetter, strided

# enum -> (function that makes the backbone, arguments of it)
BACKBONES = {
    "resnet50": (resnet.ResNet50_Weights, resnet.resnet50, {"replace_stride_with_dilation": [False, True, True]}),
    "resnet101": (resnet.ResNet101_Weights, resnet.resnet101, {"replace_stride_with_dilation": [False, True, True]}),
    "mobilenet_v3_large": (mobilenetv3.MobileNet_V3_Large_Weights, mobilenetv3.mobilenet_v3_large, {"dilated": True}),
}


class SegmentationModel(nn.Module):
    """backbone, classifier and, if any, aux_classifier: pictures (N, 3, H, W) to {"out": (N, classes, H, W), "aux": ...}."""

    def __init__(self, backbone, classifier, aux_classifier=None):
        super().__init__()
        self.backbone, self.classifier, self.aux_classifier = backbone, classifier, aux_classifier

    def forward(self, x):
        features = self.backbone(x)
        result = OrderedDict()
        for name, head in (("out", self.classifier), ("aux", self.aux_classifier)):
            if head is not None:
                result[name] = F.interpolate(head(features[name]), size=x.shape[-2:], mode="bilinear", align_corners=False)
        return result


class FCNHead(nn.Sequential):
    """A 3 x 3 convolution to a quarter of the channels, then the scores."""

    def __init__(self, in_channels, channels):
        width = in_channels // 4
        super().__init__(nn.Conv2d(in_channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.Dropout(0.1),
                         nn.Conv2d(width, channels, 1))


def backbone_of(name, weights, progress, auxiliary):
    """(the backbone as {"out", "aux"}, channels of out, channels of aux)."""
    _, make, arguments = BACKBONES[name]
    model = make(weights=weights, progress=progress, **arguments)
    if name.startswith("resnet"):
        layers, channels = {"layer4": "out", "layer3": "aux"}, (2048, 1024)
    else:
        model = model.features
        places = strided(model)
        out, aux = places[-1], places[-4]
        layers, channels = {str(out): "out", str(aux): "aux"}, (model[out].out_channels, model[aux].out_channels)
    if not auxiliary:
        layers = {layer: what for layer, what in layers.items() if what == "out"}
    return IntermediateLayerGetter(model, layers), *channels


def _with_auxiliary(kwargs, weights):
    if weights is not None:
        kwargs["aux_loss"] = kwargs.get("aux_loss") if kwargs.get("aux_loss") is not None else True
        _api.override(kwargs, "aux_loss", True)


def builder(family, model, head, backbone, enum):
    """The function that makes `model` with `head` on a backbone."""
    backbone_weights = BACKBONES[backbone][0]

    def make(num_classes=None, aux_loss=None, weights_backbone=None, progress=True):
        features, channels, middle = backbone_of(backbone, weights_backbone, progress, aux_loss)
        classes = 21 if num_classes is None else num_classes
        auxiliary = FCNHead(middle, classes) if aux_loss else None
        return model(features, head(channels, classes), auxiliary)

    return _api.builder(f"{family}_{backbone}", make, enum, f"{model.__name__} on {backbone}.", default="COCO_WITH_VOC_LABELS_V1",
                        prepare=_with_auxiliary, backbone=(backbone_weights, "IMAGENET1K_V1"), parameters=("aux_loss",))
