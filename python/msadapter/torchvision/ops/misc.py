"""Blocks that many models are made of."""

import msadapter.pytorch as torch
from msadapter.pytorch import nn

__all__ = ["Conv2dNormActivation", "Conv3dNormActivation", "FrozenBatchNorm2d", "MLP", "Permute", "SqueezeExcitation"]


def _repeated(value, dims):
    return value if isinstance(value, (tuple, list)) else (value,) * dims


class ConvNormActivation(nn.Sequential):
    """A convolution, a norm and an activation, those that are not None. padding keeps odd kernels' size unless given; a bias where no norm is."""

    _conv = nn.Conv2d

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, groups, norm_layer, activation_layer, dilation, inplace, bias):
        if padding is None:
            if isinstance(kernel_size, int) and isinstance(dilation, int):
                padding = (kernel_size - 1) // 2 * dilation
            else:
                dims = len(kernel_size) if isinstance(kernel_size, (tuple, list)) else len(dilation)
                kernel_size, dilation = _repeated(kernel_size, dims), _repeated(dilation, dims)
                padding = tuple((k - 1) // 2 * d for k, d in zip(kernel_size, dilation))
        layers = [self._conv(in_channels, out_channels, kernel_size, stride, padding, dilation=dilation, groups=groups,
                             bias=norm_layer is None if bias is None else bias)]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        super().__init__(*layers)
        self.out_channels = out_channels


class Conv2dNormActivation(ConvNormActivation):
    """Conv2d, norm_layer(out_channels), activation_layer(inplace)."""

    def __init__(self, in_channels, out_channels, kernel_size=3, stride=1, padding=None, groups=1, norm_layer=nn.BatchNorm2d,
                 activation_layer=nn.ReLU, dilation=1, inplace=True, bias=None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, groups, norm_layer, activation_layer, dilation, inplace, bias)


class Conv3dNormActivation(ConvNormActivation):
    """Conv3d, norm_layer(out_channels), activation_layer(inplace)."""

    _conv = nn.Conv3d

    def __init__(self, in_channels, out_channels, kernel_size=3, stride=1, padding=None, groups=1, norm_layer=nn.BatchNorm3d,
                 activation_layer=nn.ReLU, dilation=1, inplace=True, bias=None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, groups, norm_layer, activation_layer, dilation, inplace, bias)


class SqueezeExcitation(nn.Module):
    """Channels weighted by what a small network makes of their means (Hu et al. 2018)."""

    def __init__(self, input_channels, squeeze_channels, activation=nn.ReLU, scale_activation=nn.Sigmoid):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(input_channels, squeeze_channels, 1)
        self.fc2 = nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation, self.scale_activation = activation(), scale_activation()

    def forward(self, input):
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input))))) * input


class MLP(nn.Sequential):
    """Linear layers of hidden_channels, with norm, activation and dropout between them and dropout at the end."""

    def __init__(self, in_channels, hidden_channels, norm_layer=None, activation_layer=nn.ReLU, inplace=True, bias=True, dropout=0.0):
        options = {} if inplace is None else {"inplace": inplace}
        layers = []
        for i, channels in enumerate(hidden_channels):
            layers.append(nn.Linear(in_channels, channels, bias=bias))
            if i < len(hidden_channels) - 1:
                layers += [] if norm_layer is None else [norm_layer(channels)]
                layers.append(activation_layer(**options))
            layers.append(nn.Dropout(dropout, **options))
            in_channels = channels
        super().__init__(*layers)


class Permute(nn.Module):
    """The input with its dimensions in the order dims."""

    def __init__(self, dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return torch.permute(x, self.dims)


class FrozenBatchNorm2d(nn.Module):
    """BatchNorm2d with statistics and affine parameters that stay as they are: buffers of num_features."""

    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, torch.full((num_features,), value))

    def _load_from_state_dict(self, state_dict, prefix, *args):
        state_dict.pop(prefix + "num_batches_tracked", None)  # of a BatchNorm2d
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, x):
        scale = self.weight.reshape(1, -1, 1, 1) * (self.running_var.reshape(1, -1, 1, 1) + self.eps).rsqrt()
        return x * scale + (self.bias.reshape(1, -1, 1, 1) - self.running_mean.reshape(1, -1, 1, 1) * scale)

    def __repr__(self):
        return f"{type(self).__name__}({self.weight.shape[0]}, eps={self.eps})"
