"""ChannelShuffle (Zhang et al. 2017)."""

from msadapter.pytorch.nn import functional as F
from msadapter.pytorch.nn.modules.module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """(N, g n, *) with the channels, as (g, n), transposed."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, input):
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self):
        return f"groups={self.groups}"
