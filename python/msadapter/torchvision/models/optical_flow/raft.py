"""RAFT (Teed and Deng, 2020): a flow made better step by step, looking up how pixels around its ends correlate."""

import math

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api
from msadapter.torchvision.models.optical_flow._utils import grid_sample, make_coords_grid, upsample_flow
from msadapter.torchvision.ops import Conv2dNormActivation

__all__ = ("RAFT", "raft_large", "raft_small", "Raft_Large_Weights", "Raft_Small_Weights")

Raft_Large_Weights, Raft_Small_Weights = _api.enums("Raft_Large_Weights", "Raft_Small_Weights")


class _Residual(nn.Module):
    """Layers convnormrelu1, 2 ... of (in, out, kernel, stride), and the input, convolved where its shape changes."""

    def __init__(self, layers, shape, norm_layer, stride, project):
        super().__init__()
        self._count = len(layers)
        for i, (inside, outside, kernel, step) in enumerate(layers):
            self.add_module(f"convnormrelu{i + 1}", Conv2dNormActivation(inside, outside, norm_layer=norm_layer, kernel_size=kernel, stride=step, bias=True))
        self.downsample = nn.Identity() if not project else Conv2dNormActivation(*shape, norm_layer=norm_layer, kernel_size=1, stride=stride, bias=True,
                                                                                 activation_layer=None)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = x
        for i in range(self._count):
            y = getattr(self, f"convnormrelu{i + 1}")(y)
        return self.relu(self.downsample(x) + y)


class ResidualBlock(_Residual):
    """Two 3 x 3 convolutions and the input."""

    def __init__(self, in_channels, out_channels, *, norm_layer, stride=1, always_project=False):
        super().__init__([(in_channels, out_channels, 3, stride), (out_channels, out_channels, 3, 1)], (in_channels, out_channels), norm_layer, stride,
                         stride != 1 or always_project)


class BottleneckBlock(_Residual):
    """1 x 1, 3 x 3 and 1 x 1 convolutions, a quarter as wide between, and the input."""

    def __init__(self, in_channels, out_channels, *, norm_layer, stride=1):
        width = out_channels // 4
        super().__init__([(in_channels, width, 1, 1), (width, width, 3, stride), (width, out_channels, 1, 1)], (in_channels, out_channels), norm_layer,
                         stride, stride != 1)
        self._modules["downsample"] = self._modules.pop("downsample")  # is last here


class FeatureEncoder(nn.Module):
    """Pictures (N, 3, H, W) to (N, layers[4], H / 8, W / 8). ValueError unless there are five layers."""

    def __init__(self, *, block=ResidualBlock, layers=(64, 64, 96, 128, 256), strides=(2, 1, 2, 2), norm_layer=nn.BatchNorm2d):
        super().__init__()
        if len(layers) != 5:
            raise ValueError(f"The expected number of layers is 5, instead got {len(layers)}")
        self.convnormrelu = Conv2dNormActivation(3, layers[0], norm_layer=norm_layer, kernel_size=7, stride=strides[0], bias=True)
        for i, (inside, outside, stride) in enumerate(zip(layers, layers[1:4], strides[1:])):
            self.add_module(f"layer{i + 1}", nn.Sequential(block(inside, outside, norm_layer=norm_layer, stride=stride),
                                                           block(outside, outside, norm_layer=norm_layer, stride=1)))
        self.conv = nn.Conv2d(layers[3], layers[4], kernel_size=1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, (nn.BatchNorm2d, nn.InstanceNorm2d)) and module.weight is not None:
                nn.init.ones_(module.weight)
                nn.init.zeros_(module.bias)
        self.output_dim = layers[-1]
        self.downsample_factor = 2 ** sum(stride == 2 for stride in strides)

    def forward(self, x):
        return self.conv(self.layer3(self.layer2(self.layer1(self.convnormrelu(x)))))


class MotionEncoder(nn.Module):
    """A flow (N, 2, H, W) and its correlations (N, in_channels_corr, H, W) to (N, out_channels, H, W), the last two the flow.

    ValueError unless flow_layers are two and corr_layers one or two.
    """

    def __init__(self, *, in_channels_corr, corr_layers=(256, 192), flow_layers=(128, 64), out_channels=128):
        super().__init__()
        if len(flow_layers) != 2:
            raise ValueError(f"The expected number of flow_layers is 2, instead got {len(flow_layers)}")
        if len(corr_layers) not in (1, 2):
            raise ValueError(f"The number of corr_layers should be 1 or 2, instead got {len(corr_layers)}")
        self.convcorr1 = Conv2dNormActivation(in_channels_corr, corr_layers[0], norm_layer=None, kernel_size=1)
        self.convcorr2 = Conv2dNormActivation(*corr_layers, norm_layer=None, kernel_size=3) if len(corr_layers) == 2 else nn.Identity()
        self.convflow1 = Conv2dNormActivation(2, flow_layers[0], norm_layer=None, kernel_size=7)
        self.convflow2 = Conv2dNormActivation(*flow_layers, norm_layer=None, kernel_size=3)
        self.conv = Conv2dNormActivation(corr_layers[-1] + flow_layers[-1], out_channels - 2, norm_layer=None, kernel_size=3)
        self.out_channels = out_channels

    def forward(self, flow, corr_features):
        both = torch.cat([self.convcorr2(self.convcorr1(corr_features)), self.convflow2(self.convflow1(flow))], dim=1)
        return torch.cat([self.conv(both), flow], dim=1)


class ConvGRU(nn.Module):
    """A gated recurrent unit of convolutions: (N, hidden_size, H, W) and (N, input_size, H, W) to the next (N, hidden_size, H, W)."""

    def __init__(self, *, input_size, hidden_size, kernel_size, padding):
        super().__init__()
        for name in ("convz", "convr", "convq"):
            self.add_module(name, nn.Conv2d(hidden_size + input_size, hidden_size, kernel_size=kernel_size, padding=padding))

    def forward(self, h, x):
        both = torch.cat([h, x], dim=1)
        update, reset = torch.sigmoid(self.convz(both)), torch.sigmoid(self.convr(both))
        return (1 - update) * h + update * torch.tanh(self.convq(torch.cat([reset * h, x], dim=1)))


def _pass_through_h(h, _):
    return h


class RecurrentBlock(nn.Module):
    """One or two ConvGRUs in turn. ValueError for other numbers and unless there are as many paddings."""

    def __init__(self, *, input_size, hidden_size, kernel_size=((1, 5), (5, 1)), padding=((0, 2), (2, 0))):
        super().__init__()
        if len(kernel_size) != len(padding):
            raise ValueError(f"kernel_size should have the same length as padding, instead got len(kernel_size) = {len(kernel_size)} "
                             f"and len(padding) = {len(padding)}")
        if len(kernel_size) not in (1, 2):
            raise ValueError(f"kernel_size should either 1 or 2, instead got {len(kernel_size)}")
        units = [ConvGRU(input_size=input_size, hidden_size=hidden_size, kernel_size=kernel, padding=pad) for kernel, pad in zip(kernel_size, padding)]
        self.convgru1, self.convgru2 = units if len(units) == 2 else (units[0], _pass_through_h)
        self.hidden_size = hidden_size

    def forward(self, h, x):
        return self.convgru2(self.convgru1(h, x), x)


class FlowHead(nn.Module):
    """What to add to a flow: (N, in_channels, H, W) to (N, 2, H, W)."""

    def __init__(self, *, in_channels, hidden_size):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(in_channels, hidden_size, 3, padding=1), nn.Conv2d(hidden_size, 2, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.conv2(self.relu(self.conv1(x)))


class UpdateBlock(nn.Module):
    """One step: the next hidden state and what to add to the flow, of the hidden state, the context, the correlations and the flow."""

    def __init__(self, *, motion_encoder, recurrent_block, flow_head):
        super().__init__()
        self.motion_encoder, self.recurrent_block, self.flow_head = motion_encoder, recurrent_block, flow_head
        self.hidden_state_size = recurrent_block.hidden_size

    def forward(self, hidden_state, context, corr_features, flow):
        hidden_state = self.recurrent_block(hidden_state, torch.cat([context, self.motion_encoder(flow, corr_features)], dim=1))
        return hidden_state, self.flow_head(hidden_state)


class MaskPredictor(nn.Module):
    """The up_mask of upsample_flow() for a factor of 8."""

    def __init__(self, *, in_channels, hidden_size, multiplier=0.25):
        super().__init__()
        self.convrelu = Conv2dNormActivation(in_channels, hidden_size, norm_layer=None, kernel_size=3)
        self.conv = nn.Conv2d(hidden_size, 8 * 8 * 9, 1, padding=0)
        self.multiplier = multiplier  # of the gradient, as the paper has it

    def forward(self, x):
        return self.multiplier * self.conv(self.convrelu(x))


class CorrBlock(nn.Module):
    """How much each pixel of one map correlates with all of another, at num_levels sizes, to be looked up within `radius` of places."""

    def __init__(self, *, num_levels=4, radius=4):
        super().__init__()
        self.num_levels, self.radius = num_levels, radius
        self.corr_pyramid = [torch.tensor(0)]
        self.out_channels = num_levels * (2 * radius + 1) ** 2

    def build_pyramid(self, fmap1, fmap2):
        """Correlates maps (N, C, H, W). ValueError for shapes that differ."""
        if fmap1.shape != fmap2.shape:
            raise ValueError("Input feature maps should have the same shape, instead got "
                             f"{fmap1.shape} (fmap1.shape) != {fmap2.shape} (fmap2.shape)")
        volume = self._compute_corr_volume(fmap1, fmap2)
        n, height, width, channels = volume.shape[:4]
        self.corr_pyramid = [volume.reshape(n * height * width, channels, height, width)]
        for _ in range(self.num_levels - 1):
            self.corr_pyramid.append(F.avg_pool2d(self.corr_pyramid[-1], kernel_size=2, stride=2))

    def index_pyramid(self, centroids_coords):
        """Correlations (N, out_channels, H, W) of each pixel with those around the places (N, 2, H, W), where it has gone."""
        side = 2 * self.radius + 1
        steps = torch.linspace(-self.radius, self.radius, side)
        around = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), dim=-1).view(1, side, side, 2)
        n, _, height, width = centroids_coords.shape
        places = centroids_coords.permute(0, 2, 3, 1).reshape(n * height * width, 1, 1, 2)
        found = []
        for level, volume in enumerate(self.corr_pyramid):
            sampled = grid_sample(volume, places / 2 ** level + around, align_corners=True, mode="bilinear")
            found.append(sampled.reshape(n, height, width, -1))
        features = torch.cat(found, dim=-1).permute(0, 3, 1, 2).contiguous()
        if tuple(features.shape) != (n, self.out_channels, height, width):
            raise ValueError(f"Output shape of index pyramid is incorrect. Should be {(n, self.out_channels, height, width)}, got {features.shape}")
        return features

    def _compute_corr_volume(self, fmap1, fmap2):
        """Products (N, H, W, 1, H, W) of all pairs of pixels, by the root of the channels."""
        n, channels, height, width = fmap1.shape
        products = torch.matmul(fmap1.flatten(2).transpose(1, 2), fmap2.flatten(2))
        return products.view(n, height, width, 1, height, width) / math.sqrt(channels)


class RAFT(nn.Module):
    """forward(image1, image2, num_flow_updates=12) takes pictures (N, 3, H, W) in [-1, 1] and gives a list of flows (N, 2, H, W) in pixels, each better
    than the one before.

    Encoders make maps an eighth as large. The context's channels are the hidden state, update_block.hidden_state_size, and what stays the same; flows
    grow by mask_predictor or bilinearly. ValueError for pictures of unlike sizes or sizes that 8 does not divide, and for maps of other shapes.
    """

    def __init__(self, *, feature_encoder, context_encoder, corr_block, update_block, mask_predictor=None):
        super().__init__()
        self.feature_encoder, self.context_encoder, self.corr_block, self.update_block = feature_encoder, context_encoder, corr_block, update_block
        self.mask_predictor = mask_predictor
        if not hasattr(update_block, "hidden_state_size"):
            raise ValueError("The update_block parameter should expose a 'hidden_state_size' attribute.")

    def forward(self, image1, image2, num_flow_updates=12):
        n, _, height, width = image1.shape
        if (height, width) != tuple(image2.shape[-2:]):
            raise ValueError(f"input images should have the same shape, instead got ({height}, {width}) != {image2.shape[-2:]}")
        if height % 8 or width % 8:
            raise ValueError(f"input image H and W should be divisible by 8, insted got {height} (h) and {width} (w)")
        size = height // 8, width // 8
        maps = torch.chunk(self.feature_encoder(torch.cat([image1, image2], dim=0)), chunks=2, dim=0)
        if tuple(maps[0].shape[-2:]) != size:
            raise ValueError("The feature encoder should downsample H and W by 8")
        self.corr_block.build_pyramid(*maps)
        context = self.context_encoder(image1)
        if tuple(context.shape[-2:]) != size:
            raise ValueError("The context encoder should downsample H and W by 8")
        hidden_size = self.update_block.hidden_state_size
        if context.shape[1] <= hidden_size:
            raise ValueError(f"The context encoder outputs {context.shape[1]} channels, but it should have at strictly more than "
                             f"hidden_state={hidden_size} channels")
        hidden, context = torch.split(context, [hidden_size, context.shape[1] - hidden_size], dim=1)
        hidden, context = torch.tanh(hidden), F.relu(context)
        start = make_coords_grid(n, *size)
        places, flows = start, []
        for _ in range(num_flow_updates):
            places = places.detach()  # each step learns by itself
            hidden, step = self.update_block(hidden, context, self.corr_block.index_pyramid(centroids_coords=places), places - start)
            places = places + step
            flows.append(upsample_flow(places - start, None if self.mask_predictor is None else self.mask_predictor(hidden)))
        return flows


# widths of the encoders' layers, block, norm of the context's encoder, radius, of the motion encoder the layers and channels, hidden state, kernels,
# paddings, channels of the flow's head, whether flows grow by a mask
_LARGE = ((64, 64, 96, 128, 256), 256, ResidualBlock, nn.BatchNorm2d, 4, (256, 192), (128, 64), 128, 128, ((1, 5), (5, 1)), ((0, 2), (2, 0)), 256, True)
_SMALL = ((32, 32, 64, 96, 128), 160, BottleneckBlock, None, 3, (96,), (64, 32), 82, 96, (3,), (1,), 128, False)


def _raft(sizes, feature_encoder=None, context_encoder=None, corr_block=None, update_block=None, mask_predictor=None):
    layers, context, block, norm, radius, corr_layers, flow_layers, motion, hidden, kernels, paddings, head, masked = sizes
    feature_encoder = feature_encoder or FeatureEncoder(block=block, layers=layers, norm_layer=nn.InstanceNorm2d)
    context_encoder = context_encoder or FeatureEncoder(block=block, layers=(*layers[:4], context), norm_layer=norm)
    corr_block = corr_block or CorrBlock(num_levels=4, radius=radius)
    if update_block is None:
        encoder = MotionEncoder(in_channels_corr=corr_block.out_channels, corr_layers=corr_layers, flow_layers=flow_layers, out_channels=motion)
        recurrent = RecurrentBlock(input_size=motion + context - hidden, hidden_size=hidden, kernel_size=kernels, padding=paddings)
        update_block = UpdateBlock(motion_encoder=encoder, recurrent_block=recurrent, flow_head=FlowHead(in_channels=hidden, hidden_size=head))
    if mask_predictor is None and masked:
        mask_predictor = MaskPredictor(in_channels=hidden, hidden_size=256, multiplier=0.25)
    return RAFT(feature_encoder=feature_encoder, context_encoder=context_encoder, corr_block=corr_block, update_block=update_block,
                mask_predictor=mask_predictor)


def _make_large(**kwargs):
    return _raft(_LARGE, **kwargs)


def _make_small(**kwargs):
    return _raft(_SMALL, **kwargs)


raft_large = _api.builder("raft_large", _make_large, Raft_Large_Weights, "RAFT as in the paper.", default="C_T_SKHT_V2")
raft_small = _api.builder("raft_small", _make_small, Raft_Small_Weights, "RAFT, small.", default="C_T_V2")
