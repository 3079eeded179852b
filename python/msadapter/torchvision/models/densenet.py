"""DenseNet (Huang et al. 2017): every layer sees the results of all before it in its block."""

import re
from collections import OrderedDict

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api
from msadapter.torchvision.models._utils import initialise

__all__ = ["DenseNet"]


class _DenseLayer(nn.Module):
    def __init__(self, num_input_features, growth_rate, bn_size, drop_rate, memory_efficient=False):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, bn_size * growth_rate, kernel_size=1, stride=1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, kernel_size=3, stride=1, padding=1, bias=False)
        self.drop_rate = float(drop_rate)
        self.memory_efficient = memory_efficient

    def _bottleneck(self, *inputs):
        return self.conv1(self.relu1(self.norm1(torch.cat(inputs, 1))))

    def forward(self, input):
        inputs = [input] if isinstance(input, torch.Tensor) else input
        if self.memory_efficient and any(tensor.requires_grad for tensor in inputs):
            from msadapter.pytorch.utils.checkpoint import checkpoint

            narrow = checkpoint(self._bottleneck, *inputs)
        else:
            narrow = self._bottleneck(*inputs)
        new = self.conv2(self.relu2(self.norm2(narrow)))
        return F.dropout(new, p=self.drop_rate, training=self.training) if self.drop_rate > 0 else new


class _DenseBlock(nn.ModuleDict):
    def __init__(self, num_layers, num_input_features, bn_size, growth_rate, drop_rate, memory_efficient=False):
        super().__init__()
        for i in range(num_layers):
            self.add_module(f"denselayer{i + 1}", _DenseLayer(num_input_features + i * growth_rate, growth_rate, bn_size, drop_rate, memory_efficient))

    def forward(self, init_features):
        features = [init_features]
        for layer in self.values():
            features.append(layer(features))
        return torch.cat(features, 1)


class _Transition(nn.Sequential):
    def __init__(self, num_input_features, num_output_features):
        super().__init__()
        self.norm = nn.BatchNorm2d(num_input_features)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, kernel_size=1, stride=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    """Pictures (N, 3, H, W) to scores (N, num_classes): each layer adds growth_rate channels, memory_efficient recomputes instead of keeping."""

    def __init__(self, growth_rate=32, block_config=(6, 12, 24, 16), num_init_features=64, bn_size=4, drop_rate=0, num_classes=1000,
                 memory_efficient=False):
        super().__init__()
        self.features = nn.Sequential(OrderedDict([
            ("conv0", nn.Conv2d(3, num_init_features, kernel_size=7, stride=2, padding=3, bias=False)), ("norm0", nn.BatchNorm2d(num_init_features)),
            ("relu0", nn.ReLU(inplace=True)), ("pool0", nn.MaxPool2d(kernel_size=3, stride=2, padding=1))]))
        channels = num_init_features
        for i, num_layers in enumerate(block_config, 1):
            self.features.add_module(f"denseblock{i}", _DenseBlock(num_layers, channels, bn_size, growth_rate, drop_rate, memory_efficient))
            channels += num_layers * growth_rate
            if i != len(block_config):
                self.features.add_module(f"transition{i}", _Transition(channels, channels // 2))
                channels //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(channels))
        self.classifier = nn.Linear(channels, num_classes)
        initialise(self, nn.init.kaiming_normal_)
        nn.init.zeros_(self.classifier.bias)

    def load_state_dict(self, state_dict, strict=True):
        """Published weights name layers `norm.1`, where the modules are `norm1`."""
        old = re.compile(r"^(.*denselayer\d+\.(?:norm|relu|conv))\.((?:[12])\.(?:weight|bias|running_mean|running_var))$")
        renamed = OrderedDict((old.sub(r"\1\2", key), value) for key, value in state_dict.items())
        renamed._metadata = getattr(state_dict, "_metadata", None)
        return super().load_state_dict(renamed, strict)

    def forward(self, x):
        out = F.relu(self.features(x), inplace=True)
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(out, (1, 1)), 1))


for _n, _growth, _blocks, _width in ((121, 32, (6, 12, 24, 16), 64), (161, 48, (6, 12, 36, 24), 96), (169, 32, (6, 12, 32, 32), 64),
                                     (201, 32, (6, 12, 48, 32), 64)):
    def _make(_growth=_growth, _blocks=_blocks, _width=_width, **kwargs):
        return DenseNet(_growth, _blocks, _width, **kwargs)

    globals()[f"DenseNet{_n}_Weights"] = _api.enums(f"DenseNet{_n}_Weights")
    globals()[f"densenet{_n}"] = _api.builder(f"densenet{_n}", _make, globals()[f"DenseNet{_n}_Weights"], f"DenseNet with {_n} layers.")
    __all__ += [f"densenet{_n}", f"DenseNet{_n}_Weights"]
