"""Backbones of detectors: networks for classification with a feature pyramid on top."""

import functools
import inspect
import warnings

from msadapter.pytorch import nn
from msadapter.torchvision.models import _api, mobilenetv2, mobilenetv3, resnet
from msadapter.torchvision.models._utils import IntermediateLayerGetter, strided
from msadapter.torchvision.ops import FrozenBatchNorm2d
from msadapter.torchvision.ops.feature_pyramid_network import FeaturePyramidNetwork, LastLevelMaxPool

OUT_CHANNELS = 256


class BackboneWithFPN(nn.Module):
    """The children of `backbone` that return_layers names (name -> name in the result), and a feature pyramid of out_channels over what they give."""

    def __init__(self, backbone, return_layers, in_channels_list, out_channels, extra_blocks=None, norm_layer=None):
        super().__init__()
        self.body = IntermediateLayerGetter(backbone, return_layers=return_layers)
        self.fpn = FeaturePyramidNetwork(in_channels_list, out_channels, extra_blocks=extra_blocks or LastLevelMaxPool(), norm_layer=norm_layer)
        self.out_channels = out_channels

    def forward(self, x):
        return self.fpn(self.body(x))


def _as_before(function):
    """Lets `function` of keywords be called as torchvision before 0.13 was: with positional arguments, and pretrained= for weights=."""
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(**_api.legacy(function.__name__, names, {"weights": ("pretrained", "IMAGENET1K_V1")}, args, kwargs))

    return call


@_as_before
def resnet_fpn_backbone(*, backbone_name, weights, norm_layer=FrozenBatchNorm2d, trainable_layers=3, returned_layers=None, extra_blocks=None):
    """A ResNet by name with a pyramid of 256 channels over the stages `returned_layers`, 1 to 4. The last trainable_layers of 5 parts learn."""
    backbone = vars(resnet)[backbone_name](weights=weights, norm_layer=norm_layer)
    return _resnet_fpn_extractor(backbone, trainable_layers, returned_layers, extra_blocks)


def _resnet_fpn_extractor(backbone, trainable_layers, returned_layers=None, extra_blocks=None, norm_layer=None):
    if not 0 <= trainable_layers <= 5:
        raise ValueError(f"Trainable layers should be in the range [0,5], got {trainable_layers}")
    learning = ("layer4", "layer3", "layer2", "layer1", "conv1", "bn1")[:6 if trainable_layers == 5 else trainable_layers]
    for name, parameter in backbone.named_parameters():
        if not name.startswith(learning):
            parameter.requires_grad_(False)
    stages = [1, 2, 3, 4] if returned_layers is None else returned_layers
    if min(stages) <= 0 or max(stages) >= 5:
        raise ValueError(f"Each returned layer should be in the range [1,4]. Got {stages}")
    channels = [backbone.inplanes // 8 * 2 ** (stage - 1) for stage in stages]
    return BackboneWithFPN(backbone, {f"layer{stage}": str(i) for i, stage in enumerate(stages)}, channels, OUT_CHANNELS, extra_blocks, norm_layer)


def _validate_trainable_layers(is_trained, trainable_backbone_layers, max_value, default_value):
    """How many parts of a backbone learn: all of them (and a warning, if others are asked for) where it starts from nothing."""
    if not is_trained:
        if trainable_backbone_layers is not None:
            warnings.warn(f"trainable_backbone_layers has no effect on a backbone without weights, all of whose layers are trainable: {max_value} is used")
        trainable_backbone_layers = max_value
    elif trainable_backbone_layers is None:
        trainable_backbone_layers = default_value
    if not 0 <= trainable_backbone_layers <= max_value:
        raise ValueError(f"Trainable backbone layers should be in the range [0,{max_value}], got {trainable_backbone_layers} ")
    return trainable_backbone_layers


def freeze(features, stages, trainable_layers):
    """Stops all from learning but what begins at the last trainable_layers of the places `stages` in features. ValueError where there are fewer."""
    if not 0 <= trainable_layers <= len(stages):
        raise ValueError(f"Trainable layers should be in the range [0,{len(stages)}], got {trainable_layers} ")
    for block in features[:len(features) if trainable_layers == 0 else stages[len(stages) - trainable_layers]]:
        for parameter in block.parameters():
            parameter.requires_grad_(False)


@_as_before
def mobilenet_backbone(*, backbone_name, weights, fpn, norm_layer=FrozenBatchNorm2d, trainable_layers=2, returned_layers=None, extra_blocks=None):
    """A MobileNet by name, with a pyramid of 256 channels over `returned_layers` or, without fpn, one map of them. The last trainable_layers learn."""
    module = mobilenetv2 if hasattr(mobilenetv2, backbone_name) else mobilenetv3
    backbone = vars(module)[backbone_name](weights=weights, norm_layer=norm_layer)
    return _mobilenet_extractor(backbone, fpn, trainable_layers, returned_layers, extra_blocks)


def _mobilenet_extractor(backbone, fpn, trainable_layers, returned_layers=None, extra_blocks=None, norm_layer=None):
    features = backbone.features
    stages = strided(features)
    freeze(features, stages, trainable_layers)
    if not fpn:
        model = nn.Sequential(features, nn.Conv2d(features[-1].out_channels, OUT_CHANNELS, 1))
        model.out_channels = OUT_CHANNELS
        return model
    chosen = [len(stages) - 2, len(stages) - 1] if returned_layers is None else returned_layers
    if min(chosen) < 0 or max(chosen) >= len(stages):
        raise ValueError(f"Each returned layer should be in the range [0,{len(stages) - 1}], got {chosen} ")
    channels = [features[stages[k]].out_channels for k in chosen]
    return BackboneWithFPN(features, {str(stages[k]): str(i) for i, k in enumerate(chosen)}, channels, OUT_CHANNELS, extra_blocks, norm_layer)
