"""What the models share: initial values, channels rounded to multiples, the usual shape of a classifier."""

from collections import OrderedDict

import msadapter.pytorch as torch
from msadapter.pytorch import nn


def make_divisible(v, divisor, min_value=None):
    """v rounded to a multiple of divisor that is at least min_value and no more than 10% below v."""
    rounded = max(divisor if min_value is None else min_value, int(v + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * v else rounded


def initialise(model, conv=None, linear=None, norms=(nn.BatchNorm2d, nn.GroupNorm), convs=nn.Conv2d, biases=True):
    """Draws the weights of all convolutions by conv(weight) and of linear layers by linear(weight), in the modules' order; norms become 1 and 0.

    biases: whether biases become 0.
    """
    for module in model.modules():
        if isinstance(module, convs) and conv is not None:
            conv(module.weight)
        elif isinstance(module, norms):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
            continue
        elif isinstance(module, nn.Linear) and linear is not None:
            linear(module.weight)
        else:
            continue
        if biases and module.bias is not None:
            nn.init.zeros_(module.bias)


def fan_out(weight):
    """He's normal values for what leaves a layer."""
    nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")


def small_normal(weight):
    nn.init.normal_(weight, 0, 0.01)


def strided(features):
    """Places in a MobileNet's features where the size halves, with the first and the last one."""
    return [0] + [i for i, block in enumerate(features) if getattr(block, "_is_cn", False)] + [len(features) - 1]


class Classifier(nn.Module):
    """features, avgpool, flattened, classifier."""

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class IntermediateLayerGetter(nn.ModuleDict):
    """The children of a model up to the last one asked for; forward gives what those in return_layers compute, under their new names."""

    _version = 2

    def __init__(self, model, return_layers):
        children = dict(model.named_children())
        if not set(return_layers) <= set(children):
            raise ValueError("return_layers are not present in model")
        names = list(children)
        last = max(names.index(name) for name in return_layers)
        super().__init__(OrderedDict((name, children[name]) for name in names[:last + 1]))
        self.return_layers = dict(return_layers)

    def forward(self, x):
        found = OrderedDict()
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                found[self.return_layers[name]] = x
        return found
