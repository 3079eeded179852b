"""GoogLeNet (Szegedy et al. 2015), and what it has in common with Inception v3."""

import warnings
from collections import namedtuple

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api

__all__ = ["GoogLeNet", "GoogLeNetOutputs", "GoogLeNet_Weights", "googlenet"]

GoogLeNet_Weights = _api.enums("GoogLeNet_Weights")
GoogLeNetOutputs = namedtuple("GoogLeNetOutputs", ["logits", "aux_logits2", "aux_logits1"])


class BasicConv2d(nn.Module):
    """A convolution without bias, batch norm and ReLU."""

    def __init__(self, in_channels, out_channels, **kwargs):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)), inplace=True)


def from_imagenet_statistics(x):
    """Pictures normalised by ImageNet's statistics as if by mean and deviation 1/2."""
    scale = x.new_tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1) / 0.5
    shift = (x.new_tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1) - 0.5) / 0.5
    return x * scale + shift


def draw_or_warn(model, name, init_weights, default_std):
    """Truncated normal weights, unless init_weights is False; None warns, as torchvision does."""
    if init_weights is None:
        warnings.warn(f"The default weight initialization of {name} will be changed in future releases of torchvision. If you wish to keep the old "
                      "behavior (which leads to long initialization times due to scipy/scipy#11299), please set init_weights=True.", FutureWarning)
        init_weights = True
    if not init_weights:
        return
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.trunc_normal_(module.weight, mean=0.0, std=float(getattr(module, "stddev", default_std)), a=-2, b=2)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.constant_(module.weight, 1)
            nn.init.constant_(module.bias, 0)


class Inception(nn.Module):
    """1 x 1, 3 x 3, another 3 x 3 (the paper's is 5 x 5) and pooling, side by side."""

    def __init__(self, in_channels, ch1x1, ch3x3red, ch3x3, ch5x5red, ch5x5, pool_proj, conv_block=None):
        super().__init__()
        conv = conv_block or BasicConv2d
        self.branch1 = conv(in_channels, ch1x1, kernel_size=1)
        self.branch2 = nn.Sequential(conv(in_channels, ch3x3red, kernel_size=1), conv(ch3x3red, ch3x3, kernel_size=3, padding=1))
        self.branch3 = nn.Sequential(conv(in_channels, ch5x5red, kernel_size=1), conv(ch5x5red, ch5x5, kernel_size=3, padding=1))
        self.branch4 = nn.Sequential(nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True), conv(in_channels, pool_proj, kernel_size=1))

    def forward(self, x):
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionAux(nn.Module):
    """Scores from the middle of the network, for training."""

    def __init__(self, in_channels, num_classes, conv_block=None, dropout=0.7):
        super().__init__()
        self.conv = (conv_block or BasicConv2d)(in_channels, 128, kernel_size=1)
        self.fc1 = nn.Linear(2048, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, x):
        x = torch.flatten(self.conv(F.adaptive_avg_pool2d(x, (4, 4))), 1)
        return self.fc2(self.dropout(F.relu(self.fc1(x), inplace=True)))


_PARTS = {"3a": (192, 64, 96, 128, 16, 32, 32), "3b": (256, 128, 128, 192, 32, 96, 64), "4a": (480, 192, 96, 208, 16, 48, 64),
          "4b": (512, 160, 112, 224, 24, 64, 64), "4c": (512, 128, 128, 256, 24, 64, 64), "4d": (512, 112, 144, 288, 32, 64, 64),
          "4e": (528, 256, 160, 320, 32, 128, 128), "5a": (832, 256, 160, 320, 32, 128, 128), "5b": (832, 384, 192, 384, 48, 128, 128)}


class GoogLeNet(nn.Module):
    """Pictures (N, 3, H, W) to scores (N, num_classes); in training with aux_logits to GoogLeNetOutputs. ValueError unless blocks are three."""

    def __init__(self, num_classes=1000, aux_logits=True, transform_input=False, init_weights=None, blocks=None, dropout=0.2, dropout_aux=0.7):
        super().__init__()
        blocks = [BasicConv2d, Inception, InceptionAux] if blocks is None else blocks
        if len(blocks) != 3:
            raise ValueError(f"blocks length should be 3 instead of {len(blocks)}")
        conv, inception, auxiliary = blocks
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.conv1 = conv(3, 64, kernel_size=7, stride=2, padding=3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = conv(64, 64, kernel_size=1)
        self.conv3 = conv(64, 192, kernel_size=3, padding=1)
        self.maxpool2 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        for part, widths in _PARTS.items():
            setattr(self, f"inception{part}", inception(*widths))
            if part in ("3b", "4e"):
                setattr(self, f"maxpool{int(part[0])}", nn.MaxPool2d(3 if part == "3b" else 2, stride=2, ceil_mode=True))
        self.aux1 = auxiliary(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2 = auxiliary(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(1024, num_classes)
        draw_or_warn(self, "GoogleNet", init_weights, 0.01)

    def forward(self, x):
        if self.transform_input:
            x = from_imagenet_statistics(x)
        x = self.maxpool2(self.conv3(self.conv2(self.maxpool1(self.conv1(x)))))
        x = self.inception4a(self.maxpool3(self.inception3b(self.inception3a(x))))
        first = self.aux1(x) if self.training and self.aux1 is not None else None
        x = self.inception4d(self.inception4c(self.inception4b(x)))
        second = self.aux2(x) if self.training and self.aux2 is not None else None
        x = self.inception5b(self.inception5a(self.maxpool4(self.inception4e(x))))
        x = self.fc(self.dropout(torch.flatten(self.avgpool(x), 1)))
        return GoogLeNetOutputs(x, second, first) if self.training and self.aux_logits else x


def for_weights(kwargs, weights):
    """The arguments that published weights need."""
    if weights is not None:
        kwargs.setdefault("transform_input", True)
        kwargs["aux_logits"] = True
        _api.override(kwargs, "init_weights", False)


def _without_auxiliaries(model, asked, weights):
    if asked.get("aux_logits", False):
        warnings.warn("auxiliary heads in the pretrained googlenet model are NOT pretrained, so make sure to train them")
    else:
        model.aux_logits, model.aux1, model.aux2 = False, None, None


googlenet = _api.builder("googlenet", GoogLeNet, GoogLeNet_Weights, "GoogLeNet.", prepare=for_weights, finish=_without_auxiliaries)
