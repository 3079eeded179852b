"""Inception v3 (Szegedy et al. 2016)."""

from collections import namedtuple

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api
from msadapter.torchvision.models.googlenet import BasicConv2d, draw_or_warn, for_weights, from_imagenet_statistics

__all__ = ["Inception3", "InceptionOutputs", "Inception_V3_Weights", "inception_v3"]

Inception_V3_Weights = _api.enums("Inception_V3_Weights")
InceptionOutputs = namedtuple("InceptionOutputs", ["logits", "aux_logits"])


class _Branches(nn.Module):
    """Branches side by side. A branch is a list of (name, channels, kernel, stride, padding); names in a and b end it with a fork."""

    _branches = ()

    def __init__(self, in_channels, conv_block=None, branches=None):
        super().__init__()
        self._order = []
        for branch in branches or self._branches:
            channels = in_channels
            for name, width, kernel, stride, padding in branch:
                setattr(self, name, (conv_block or BasicConv2d)(channels, width, kernel_size=kernel, stride=stride, padding=padding))
                channels = channels if name.endswith("a") else width
            self._order.append([name for name, *_ in branch])

    def _pool(self, x):
        return self.branch_pool(F.avg_pool2d(x, kernel_size=3, stride=1, padding=1))

    def forward(self, x):
        results = []
        for names in self._order:
            if names != ["branch_pool"]:
                y = x
                for name in names:
                    if not name.endswith(("a", "b")):
                        y = getattr(self, name)(y)
                fork = [getattr(self, name)(y) for name in names if name.endswith(("a", "b"))]
                results += fork or [y]
        return torch.cat(results + [self._pool(x)], 1)


class InceptionA(_Branches):
    """35 x 35: 1 x 1, 5 x 5, two 3 x 3, pooling."""

    def __init__(self, in_channels, pool_features, conv_block=None):
        branches = ([("branch1x1", 64, 1, 1, 0)], [("branch5x5_1", 48, 1, 1, 0), ("branch5x5_2", 64, 5, 1, 2)],
                          [("branch3x3dbl_1", 64, 1, 1, 0), ("branch3x3dbl_2", 96, 3, 1, 1), ("branch3x3dbl_3", 96, 3, 1, 1)],
                          [("branch_pool", pool_features, 1, 1, 0)])
        super().__init__(in_channels, conv_block, branches)


class _Halving(_Branches):
    def _pool(self, x):
        return F.max_pool2d(x, kernel_size=3, stride=2)


class InceptionB(_Halving):
    """To half the size."""

    _branches = ([("branch3x3", 384, 3, 2, 0)], [("branch3x3dbl_1", 64, 1, 1, 0), ("branch3x3dbl_2", 96, 3, 1, 1), ("branch3x3dbl_3", 96, 3, 2, 0)])


class InceptionC(_Branches):
    """17 x 17: rows and columns of 7."""

    def __init__(self, in_channels, channels_7x7, conv_block=None):
        c, row, column = channels_7x7, ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
        branches = ([("branch1x1", 192, 1, 1, 0)], [("branch7x7_1", c, 1, 1, 0), ("branch7x7_2", c, *row), ("branch7x7_3", 192, *column)],
                          [("branch7x7dbl_1", c, 1, 1, 0), ("branch7x7dbl_2", c, *column), ("branch7x7dbl_3", c, *row),
                           ("branch7x7dbl_4", c, *column), ("branch7x7dbl_5", 192, *row)], [("branch_pool", 192, 1, 1, 0)])
        super().__init__(in_channels, conv_block, branches)


class InceptionD(_Halving):
    """To half the size again."""

    _branches = ([("branch3x3_1", 192, 1, 1, 0), ("branch3x3_2", 320, 3, 2, 0)],
                 [("branch7x7x3_1", 192, 1, 1, 0), ("branch7x7x3_2", 192, (1, 7), 1, (0, 3)), ("branch7x7x3_3", 192, (7, 1), 1, (3, 0)),
                  ("branch7x7x3_4", 192, 3, 2, 0)])


class InceptionE(_Branches):
    """8 x 8: branches that fork into a row and a column of 3."""

    _branches = ([("branch1x1", 320, 1, 1, 0)],
                 [("branch3x3_1", 384, 1, 1, 0), ("branch3x3_2a", 384, (1, 3), 1, (0, 1)), ("branch3x3_2b", 384, (3, 1), 1, (1, 0))],
                 [("branch3x3dbl_1", 448, 1, 1, 0), ("branch3x3dbl_2", 384, 3, 1, 1), ("branch3x3dbl_3a", 384, (1, 3), 1, (0, 1)),
                  ("branch3x3dbl_3b", 384, (3, 1), 1, (1, 0))], [("branch_pool", 192, 1, 1, 0)])


class InceptionAux(nn.Module):
    """Scores from the middle of the network, for training."""

    def __init__(self, in_channels, num_classes, conv_block=None):
        super().__init__()
        conv = conv_block or BasicConv2d
        self.conv0 = conv(in_channels, 128, kernel_size=1)
        self.conv1 = conv(128, 768, kernel_size=5)
        self.conv1.stddev = 0.01
        self.fc = nn.Linear(768, num_classes)
        self.fc.stddev = 0.001

    def forward(self, x):
        x = self.conv1(self.conv0(F.avg_pool2d(x, kernel_size=5, stride=3)))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


class Inception3(nn.Module):
    """Pictures (N, 3, 299, 299) to scores (N, num_classes); in training with aux_logits to InceptionOutputs. ValueError unless blocks are seven."""

    def __init__(self, num_classes=1000, aux_logits=True, transform_input=False, inception_blocks=None, init_weights=None, dropout=0.5):
        super().__init__()
        blocks = inception_blocks or [BasicConv2d, InceptionA, InceptionB, InceptionC, InceptionD, InceptionE, InceptionAux]
        if len(blocks) != 7:
            raise ValueError(f"length of inception_blocks should be 7 instead of {len(blocks)}")
        conv, a, b, c, d, e, auxiliary = blocks
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.Conv2d_1a_3x3 = conv(3, 32, kernel_size=3, stride=2)
        self.Conv2d_2a_3x3 = conv(32, 32, kernel_size=3)
        self.Conv2d_2b_3x3 = conv(32, 64, kernel_size=3, padding=1)
        self.maxpool1 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Conv2d_3b_1x1 = conv(64, 80, kernel_size=1)
        self.Conv2d_4a_3x3 = conv(80, 192, kernel_size=3)
        self.maxpool2 = nn.MaxPool2d(kernel_size=3, stride=2)
        self.Mixed_5b = a(192, pool_features=32)
        self.Mixed_5c = a(256, pool_features=64)
        self.Mixed_5d = a(288, pool_features=64)
        self.Mixed_6a = b(288)
        self.Mixed_6b = c(768, channels_7x7=128)
        self.Mixed_6c = c(768, channels_7x7=160)
        self.Mixed_6d = c(768, channels_7x7=160)
        self.Mixed_6e = c(768, channels_7x7=192)
        self.AuxLogits = auxiliary(768, num_classes) if aux_logits else None
        self.Mixed_7a = d(768)
        self.Mixed_7b = e(1280)
        self.Mixed_7c = e(2048)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(p=dropout)
        self.fc = nn.Linear(2048, num_classes)
        draw_or_warn(self, "inception_v3", init_weights, 0.1)

    def forward(self, x):
        if self.transform_input:
            x = from_imagenet_statistics(x)
        x = self.maxpool1(self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x))))
        x = self.maxpool2(self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(x)))
        x = self.Mixed_6a(self.Mixed_5d(self.Mixed_5c(self.Mixed_5b(x))))
        x = self.Mixed_6e(self.Mixed_6d(self.Mixed_6c(self.Mixed_6b(x))))
        auxiliary = self.AuxLogits(x) if self.AuxLogits is not None and self.training else None
        x = self.Mixed_7c(self.Mixed_7b(self.Mixed_7a(x)))
        x = self.fc(torch.flatten(self.dropout(self.avgpool(x)), 1))
        return InceptionOutputs(x, auxiliary) if self.training and self.aux_logits else x


def _without_auxiliary(model, asked, weights):
    if not asked.get("aux_logits", True):
        model.aux_logits, model.AuxLogits = False, None


inception_v3 = _api.builder("inception_v3", Inception3, Inception_V3_Weights, "Inception v3; pictures are 299 x 299.", prepare=for_weights,
                            finish=_without_auxiliary)
