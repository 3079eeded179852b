"""Feature pyramids (Lin et al., 2017): maps of all scales with the semantics of the coarsest."""

from collections import OrderedDict

from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.ops.misc import Conv2dNormActivation


class ExtraFPNBlock(nn.Module):
    """What adds maps to a pyramid: forward(results, inputs, names) gives the longer lists of results and names."""

    def forward(self, results, x, names):
        raise NotImplementedError(f"{type(self).__name__}: forward is the subclass's")


class FeaturePyramidNetwork(nn.Module):
    """Maps of growing depth and falling size (a dictionary) to as many maps of `out_channels`, under the same names.

    Raises ValueError for 0 channels and TypeError when `extra_blocks` is no ExtraFPNBlock.
    """

    _version = 2

    def __init__(self, in_channels_list, out_channels, extra_blocks=None, norm_layer=None):
        super().__init__()
        self.inner_blocks, self.layer_blocks = nn.ModuleList(), nn.ModuleList()
        for in_channels in in_channels_list:
            if in_channels == 0:
                raise ValueError("in_channels=0 is currently not supported")
            self.inner_blocks.append(Conv2dNormActivation(in_channels, out_channels, kernel_size=1, padding=0, norm_layer=norm_layer, activation_layer=None))
            self.layer_blocks.append(Conv2dNormActivation(out_channels, out_channels, kernel_size=3, norm_layer=norm_layer, activation_layer=None))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(module.weight, a=1)
                if module.bias is not None:
                    nn.init.constant_(module.bias, 0)
        if extra_blocks is not None and not isinstance(extra_blocks, ExtraFPNBlock):
            raise TypeError(f"extra_blocks should be of type ExtraFPNBlock not {type(extra_blocks)}")
        self.extra_blocks = extra_blocks

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        if (local_metadata.get("version") or 1) < 2:  # blocks were bare convolutions
            for block in ("inner_blocks", "layer_blocks"):
                for i in range(len(self.inner_blocks)):
                    for name in ("weight", "bias"):
                        old = f"{prefix}{block}.{i}.{name}"
                        if old in state_dict:
                            state_dict[f"{prefix}{block}.{i}.0.{name}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def get_result_from_inner_blocks(self, x, idx):
        """`x` through the lateral block of one level."""
        return self.inner_blocks[idx](x)

    def get_result_from_layer_blocks(self, x, idx):
        """`x` through the output block of one level."""
        return self.layer_blocks[idx](x)

    def forward(self, x):
        names, inputs = list(x.keys()), list(x.values())
        above, results = None, []
        for level in reversed(range(len(inputs))):
            lateral = self.get_result_from_inner_blocks(inputs[level], level)
            above = lateral if above is None else lateral + F.interpolate(above, size=lateral.shape[-2:], mode="nearest")
            results.insert(0, self.get_result_from_layer_blocks(above, level))
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, inputs, names)
        return OrderedDict(zip(names, results))


class LastLevelMaxPool(ExtraFPNBlock):
    """One more map, "pool": every second element of the coarsest."""

    def forward(self, x, y, names):
        return x + [F.max_pool2d(x[-1], 1, 2, 0)], names + ["pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """RetinaNet's two more maps (Lin et al., 2017), by convolutions with stride 2 from the coarsest result, or from the coarsest input where its
    channels differ from the results'."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.p6, self.p7 = nn.Conv2d(in_channels, out_channels, 3, 2, 1), nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        for module in (self.p6, self.p7):
            nn.init.kaiming_uniform_(module.weight, a=1)
            nn.init.constant_(module.bias, 0)
        self.use_P5 = in_channels == out_channels

    def forward(self, p, c, names):
        p6 = self.p6(p[-1] if self.use_P5 else c[-1])
        return p + [p6, self.p7(F.relu(p6))], names + ["p6", "p7"]
