"""ShuffleNet V2 (Ma et al. 2018): half the channels convolved, halves shuffled."""

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision.models import _api

__all__ = ["ShuffleNetV2"]


def channel_shuffle(x, groups):
    """x (N, C, H, W) with its channels dealt out over the groups in turn."""
    n, channels, height, width = x.size()
    return x.view(n, groups, channels // groups, height, width).transpose(1, 2).contiguous().view(n, -1, height, width)


class InvertedResidual(nn.Module):
    """Half of the channels, or with stride 2 all of them on two ways, convolved one by one."""

    def __init__(self, inp, oup, stride):
        super().__init__()
        if not 1 <= stride <= 3:
            raise ValueError("illegal stride value")
        self.stride = stride
        half = oup // 2
        if stride == 1 and inp != half << 1:
            raise ValueError(f"Invalid combination of stride {stride}, inp {inp} and oup {oup} values. If stride == 1 then inp should be equal to oup.")
        self.branch1 = nn.Sequential()
        if stride > 1:
            self.branch1 = nn.Sequential(self.depthwise_conv(inp, inp, 3, stride, 1), nn.BatchNorm2d(inp), nn.Conv2d(inp, half, 1, bias=False),
                                         nn.BatchNorm2d(half), nn.ReLU(inplace=True))
        self.branch2 = nn.Sequential(
            nn.Conv2d(inp if stride > 1 else half, half, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU(inplace=True),
            self.depthwise_conv(half, half, 3, stride, 1), nn.BatchNorm2d(half), nn.Conv2d(half, half, 1, bias=False), nn.BatchNorm2d(half),
            nn.ReLU(inplace=True))

    @staticmethod
    def depthwise_conv(i, o, kernel_size, stride=1, padding=0, bias=False):
        return nn.Conv2d(i, o, kernel_size, stride, padding, bias=bias, groups=i)

    def forward(self, x):
        if self.stride == 1:
            kept, x = x.chunk(2, dim=1)
        else:
            kept = self.branch1(x)
        return channel_shuffle(torch.cat((kept, self.branch2(x)), dim=1), 2)


class ShuffleNetV2(nn.Module):
    """Pictures (N, 3, H, W) to scores (N, num_classes). ValueError unless there are three stages and five widths."""

    def __init__(self, stages_repeats, stages_out_channels, num_classes=1000, inverted_residual=InvertedResidual):
        super().__init__()
        if len(stages_repeats) != 3:
            raise ValueError("expected stages_repeats as list of 3 positive ints")
        if len(stages_out_channels) != 5:
            raise ValueError("expected stages_out_channels as list of 5 positive ints")
        self._stage_out_channels = stages_out_channels
        channels = stages_out_channels[0]
        self.conv1 = nn.Sequential(nn.Conv2d(3, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True))
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        for i, (repeats, width) in enumerate(zip(stages_repeats, stages_out_channels[1:]), 2):
            blocks = [inverted_residual(channels, width, 2)] + [inverted_residual(width, width, 1) for _ in range(repeats - 1)]
            setattr(self, f"stage{i}", nn.Sequential(*blocks))
            channels = width
        width = stages_out_channels[-1]
        self.conv5 = nn.Sequential(nn.Conv2d(channels, width, 1, 1, 0, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        self.fc = nn.Linear(width, num_classes)

    def forward(self, x):
        x = self.stage4(self.stage3(self.stage2(self.maxpool(self.conv1(x)))))
        return self.fc(self.conv5(x).mean([2, 3]))


for _size, _widths in (("0_5", (24, 48, 96, 192, 1024)), ("1_0", (24, 116, 232, 464, 1024)), ("1_5", (24, 176, 352, 704, 1024)),
                       ("2_0", (24, 244, 488, 976, 2048))):
    def _make(_widths=_widths, **kwargs):
        return ShuffleNetV2([4, 8, 4], list(_widths), **kwargs)

    _enum = f"ShuffleNet_V2_X{_size}_Weights"
    globals()[_enum] = _api.enums(_enum)
    globals()[f"shufflenet_v2_x{_size}"] = _api.builder(f"shufflenet_v2_x{_size}", _make, globals()[_enum],
                                                       f"ShuffleNet V2 with {_size.replace('_', '.')} times the channels.")
    __all__ += [f"shufflenet_v2_x{_size}", _enum]
