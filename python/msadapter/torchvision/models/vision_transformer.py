"""The vision transformer (Dosovitskiy et al. 2021)."""

import math
from collections import OrderedDict
from functools import partial
from typing import NamedTuple

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision.models import _api
from msadapter.torchvision.ops.misc import MLP, Conv2dNormActivation

__all__ = ["VisionTransformer"]


class ConvStemConfig(NamedTuple):
    """A convolution of the stem that may stand for the patches (Xiao et al. 2021)."""

    out_channels: int
    kernel_size: int
    stride: int
    norm_layer: object = nn.BatchNorm2d
    activation_layer: object = nn.ReLU


class MLPBlock(MLP):
    """The two linear layers of an encoder block."""

    _version = 2

    def __init__(self, in_dim, mlp_dim, dropout):
        super().__init__(in_dim, [mlp_dim, in_dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.normal_(module.bias, std=1e-6)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        if (local_metadata.get("version", None) or 1) < 2:  # whose layers were linear_1 and linear_2
            for i in range(2):
                for kind in ("weight", "bias"):
                    if f"{prefix}linear_{i + 1}.{kind}" in state_dict:
                        state_dict[f"{prefix}{3 * i}.{kind}"] = state_dict.pop(f"{prefix}linear_{i + 1}.{kind}")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class EncoderBlock(nn.Module):
    """Attention and an MLP, each of the norm of its input and added to it: (N, S, hidden_dim)."""

    def __init__(self, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer=partial(nn.LayerNorm, eps=1e-6)):
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input):
        if input.dim() != 3:
            raise AssertionError(f"Expected (batch_size, seq_length, hidden_dim) got {input.shape}")
        x = self.ln_1(input)
        x, _ = self.self_attention(query=x, key=x, value=x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Places added to (N, S, hidden_dim), then the encoder blocks and a norm."""

    def __init__(self, seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout,
                 norm_layer=partial(nn.LayerNorm, eps=1e-6)):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, seq_length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        blocks = OrderedDict((f"encoder_layer_{i}", EncoderBlock(num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer))
                             for i in range(num_layers))
        self.layers = nn.Sequential(blocks)
        self.ln = norm_layer(hidden_dim)

    def forward(self, input):
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """Pictures (N, 3, image_size, image_size) as patches, with a class token: scores (N, num_classes).

    AssertionError for other sizes of pictures.
    """

    def __init__(self, image_size, patch_size, num_layers, num_heads, hidden_dim, mlp_dim, dropout=0.0, attention_dropout=0.0, num_classes=1000,
                 representation_size=None, norm_layer=partial(nn.LayerNorm, eps=1e-6), conv_stem_configs=None):
        super().__init__()
        if image_size % patch_size != 0:
            raise AssertionError("Input shape indivisible by patch size!")
        self.image_size, self.patch_size, self.hidden_dim, self.mlp_dim = image_size, patch_size, hidden_dim, mlp_dim
        self.attention_dropout, self.dropout, self.num_classes = attention_dropout, dropout, num_classes
        self.representation_size, self.norm_layer = representation_size, norm_layer
        if conv_stem_configs is None:
            self.conv_proj = nn.Conv2d(in_channels=3, out_channels=hidden_dim, kernel_size=patch_size, stride=patch_size)
        else:
            stem, channels = OrderedDict(), 3
            for i, config in enumerate(conv_stem_configs):
                stem[f"conv_bn_relu_{i}"] = Conv2dNormActivation(channels, config.out_channels, config.kernel_size, config.stride,
                                                                 norm_layer=config.norm_layer, activation_layer=config.activation_layer)
                channels = config.out_channels
            stem["conv_last"] = nn.Conv2d(in_channels=channels, out_channels=hidden_dim, kernel_size=1)
            self.conv_proj = nn.Sequential(stem)
        self.class_token = nn.Parameter(torch.zeros(1, 1, hidden_dim))
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.encoder = Encoder(self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer)
        heads = OrderedDict()
        if representation_size is not None:
            heads["pre_logits"] = nn.Linear(hidden_dim, representation_size)
            heads["act"] = nn.Tanh()
        heads["head"] = nn.Linear(hidden_dim if representation_size is None else representation_size, num_classes)
        self.heads = nn.Sequential(heads)
        self._draw()

    def _draw(self):
        if isinstance(self.conv_proj, nn.Conv2d):
            fan_in = self.conv_proj.in_channels * self.conv_proj.kernel_size[0] * self.conv_proj.kernel_size[1]
            nn.init.trunc_normal_(self.conv_proj.weight, std=math.sqrt(1 / fan_in))
            nn.init.zeros_(self.conv_proj.bias)
        else:
            last = self.conv_proj.conv_last
            nn.init.normal_(last.weight, mean=0.0, std=math.sqrt(2.0 / last.out_channels))
            nn.init.zeros_(last.bias)
        if self.representation_size is not None:
            nn.init.trunc_normal_(self.heads.pre_logits.weight, std=math.sqrt(1 / self.heads.pre_logits.in_features))
            nn.init.zeros_(self.heads.pre_logits.bias)
        nn.init.zeros_(self.heads.head.weight)
        nn.init.zeros_(self.heads.head.bias)

    def _process_input(self, x):
        """(N, 3, H, W) to patches (N, S, hidden_dim)."""
        n, _, height, width = x.shape
        for name, size in (("height", height), ("width", width)):
            if size != self.image_size:
                raise AssertionError(f"Wrong image {name}! Expected {self.image_size} but got {size}!")
        return self.conv_proj(x).reshape(n, self.hidden_dim, -1).permute(0, 2, 1)

    def forward(self, x):
        x = self._process_input(x)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        return self.heads(self.encoder(x)[:, 0])


# patch, layers, heads, width, MLP width
_MODELS = {"b_16": (16, 12, 12, 768, 3072), "b_32": (32, 12, 12, 768, 3072), "l_16": (16, 24, 16, 1024, 4096), "l_32": (32, 24, 16, 1024, 4096),
           "h_14": (14, 32, 16, 1280, 5120)}


def _picture_size(kwargs, weights):
    if weights is not None:
        _api.override(kwargs, "image_size", weights.meta["min_size"][0])


for _size, (_patch, _layers, _heads, _width, _mlp) in _MODELS.items():
    def _make(_patch=_patch, _layers=_layers, _heads=_heads, _width=_width, _mlp=_mlp, **kwargs):
        return VisionTransformer(kwargs.pop("image_size", 224), _patch, _layers, _heads, _width, _mlp, **kwargs)

    _enum = f"ViT_{_size.upper()}_Weights"
    globals()[_enum] = _api.enums(_enum)
    globals()[f"vit_{_size}"] = _api.builder(f"vit_{_size}", _make, globals()[_enum], f"The vision transformer {_size.upper().replace('_', '/')}.",
                                             default="IMAGENET1K_SWAG_E2E_V1" if _size == "h_14" else "IMAGENET1K_V1", prepare=_picture_size)
    __all__ += [f"vit_{_size}", _enum]
