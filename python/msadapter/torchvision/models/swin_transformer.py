"""The Swin transformer (Liu et al. 2021): attention inside windows that shift from block to block."""

from functools import partial

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F
from msadapter.torchvision.models import _api
from msadapter.torchvision.ops.misc import MLP, Permute
from msadapter.torchvision.ops.stochastic_depth import StochasticDepth

__all__ = ["SwinTransformer"]


class PatchMerging(nn.Module):
    """(..., H, W, C) to (..., H/2, W/2, 2C), of the norm of each 2 x 2 neighbourhood."""

    def __init__(self, dim, norm_layer=nn.LayerNorm):
        super().__init__()
        self.dim = dim
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = norm_layer(4 * dim)

    def forward(self, x):
        height, width = x.shape[-3:-1]
        x = F.pad(x, (0, 0, 0, width % 2, 0, height % 2))
        corners = [x[..., i::2, j::2, :] for j in (0, 1) for i in (0, 1)]
        return self.reduction(self.norm(torch.cat(corners, -1)))


def _windows(x, size):
    """x (B, H, W, ...) as (B, windows, places of a window, ...)."""
    b, height, width = x.shape[:3]
    x = x.view(b, height // size[0], size[0], width // size[1], size[1], *x.shape[3:]).transpose(2, 3)
    return x.reshape(b, -1, size[0] * size[1], *x.shape[5:])


def _regions(height, width, window, shift, like):
    """-100 between places (windows, places, places) that the cyclic shift brought together, 0 elsewhere."""
    regions = like.new_zeros((1, height, width))
    count = 0
    for rows in (slice(0, -window[0]), slice(-window[0], -shift[0]), slice(-shift[0], None)):
        for columns in (slice(0, -window[1]), slice(-window[1], -shift[1]), slice(-shift[1], None)):
            regions[:, rows, columns] = count
            count += 1
    regions = _windows(regions, window)[0]
    apart = regions.unsqueeze(1) != regions.unsqueeze(2)
    return torch.zeros_like(apart, dtype=like.dtype).masked_fill(apart, -100.0)


class ShiftedWindowAttention(nn.Module):
    """Attention of (B, H, W, C) inside windows, with a learned bias by relative place. ValueError unless both sizes are pairs."""

    def __init__(self, dim, window_size, shift_size, num_heads, qkv_bias=True, proj_bias=True, attention_dropout=0.0, dropout=0.0):
        super().__init__()
        if len(window_size) != 2 or len(shift_size) != 2:
            raise ValueError("window_size and shift_size must be of length 2")
        self.window_size, self.shift_size, self.num_heads = window_size, shift_size, num_heads
        self.attention_dropout, self.dropout = attention_dropout, dropout
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        rows, columns = window_size
        self.relative_position_bias_table = nn.Parameter(torch.zeros((2 * rows - 1) * (2 * columns - 1), num_heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        row = torch.arange(rows).repeat_interleave(columns)
        column = torch.arange(columns).repeat(rows)
        down, right = row[:, None] - row[None, :] + rows - 1, column[:, None] - column[None, :] + columns - 1
        self.register_buffer("relative_position_index", (down * (2 * columns - 1) + right).flatten())

    def get_relative_position_bias(self):
        """(1, heads, places, places)."""
        n = self.window_size[0] * self.window_size[1]
        return self.relative_position_bias_table[self.relative_position_index].view(n, n, -1).permute(2, 0, 1).contiguous().unsqueeze(0)

    def forward(self, x):
        b, height, width, channels = x.shape
        window, heads = self.window_size, self.num_heads
        x = F.pad(x, (0, 0, 0, -width % window[1], 0, -height % window[0]))
        rows, columns = x.shape[1:3]
        shift = [0 if size >= whole else s for s, size, whole in zip(self.shift_size, window, (rows, columns))]
        shifted = sum(shift) > 0
        if shifted:
            x = torch.roll(x, shifts=(-shift[0], -shift[1]), dims=(1, 2))
        places = window[0] * window[1]
        x = _windows(x, window).reshape(-1, places, channels)
        q, k, v = F.linear(x, self.qkv.weight, self.qkv.bias).reshape(-1, places, 3, heads, channels // heads).permute(2, 0, 3, 1, 4)
        scores = (q * (channels // heads) ** -0.5).matmul(k.transpose(-2, -1)) + self.get_relative_position_bias()
        if shifted:
            mask = _regions(rows, columns, window, shift, x)
            scores = (scores.view(b, -1, heads, places, places) + mask.unsqueeze(1).unsqueeze(0)).view(-1, heads, places, places)
        weights = F.dropout(F.softmax(scores, dim=-1), p=self.attention_dropout, training=self.training)
        x = weights.matmul(v).transpose(1, 2).reshape(-1, places, channels)
        x = F.dropout(F.linear(x, self.proj.weight, self.proj.bias), p=self.dropout, training=self.training)
        x = x.view(b, rows // window[0], columns // window[1], window[0], window[1], channels).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(b, rows, columns, channels)
        if shifted:
            x = torch.roll(x, shifts=tuple(shift), dims=(1, 2))
        return x[:, :height, :width, :].contiguous()


class SwinTransformerBlock(nn.Module):
    """Windowed attention and an MLP, each of the norm of its input and added to it."""

    def __init__(self, dim, num_heads, window_size, shift_size, mlp_ratio=4.0, dropout=0.0, attention_dropout=0.0, stochastic_depth_prob=0.0,
                 norm_layer=nn.LayerNorm, attn_layer=ShiftedWindowAttention):
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = attn_layer(dim, window_size, shift_size, num_heads, attention_dropout=attention_dropout, dropout=dropout)
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.norm2 = norm_layer(dim)
        self.mlp = MLP(dim, [int(dim * mlp_ratio), dim], activation_layer=nn.GELU, inplace=None, dropout=dropout)
        for module in self.mlp.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.normal_(module.bias, std=1e-6)

    def forward(self, x):
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class SwinTransformer(nn.Module):
    """Pictures (N, 3, H, W) to scores (N, num_classes): depths blocks a stage, twice the width and half the size from stage to stage."""

    def __init__(self, patch_size, embed_dim, depths, num_heads, window_size, mlp_ratio=4.0, dropout=0.0, attention_dropout=0.0,
                 stochastic_depth_prob=0.0, num_classes=1000, norm_layer=None, block=None):
        super().__init__()
        self.num_classes = num_classes
        block, norm_layer = block or SwinTransformerBlock, norm_layer or partial(nn.LayerNorm, eps=1e-5)
        layers = [nn.Sequential(nn.Conv2d(3, embed_dim, kernel_size=tuple(patch_size), stride=tuple(patch_size)), Permute([0, 2, 3, 1]),
                                norm_layer(embed_dim))]
        total, done, dim = sum(depths), 0, embed_dim
        for i, depth in enumerate(depths):
            blocks = []
            for j in range(depth):
                shift = [0 if j % 2 == 0 else size // 2 for size in window_size]
                blocks.append(block(dim, num_heads[i], window_size=window_size, shift_size=shift, mlp_ratio=mlp_ratio, dropout=dropout,
                                    attention_dropout=attention_dropout, stochastic_depth_prob=stochastic_depth_prob * float(done) / (total - 1),
                                    norm_layer=norm_layer))
                done += 1
            layers.append(nn.Sequential(*blocks))
            if i < len(depths) - 1:
                layers.append(PatchMerging(dim, norm_layer))
                dim *= 2
        self.features = nn.Sequential(*layers)
        self.norm = norm_layer(dim)
        self.permute = Permute([0, 3, 1, 2])
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten(1)
        self.head = nn.Linear(dim, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.head(self.flatten(self.avgpool(self.permute(self.norm(self.features(x))))))


# width, depths, heads, stochastic depth
_MODELS = {"t": (96, (2, 2, 6, 2), (3, 6, 12, 24), 0.2), "s": (96, (2, 2, 18, 2), (3, 6, 12, 24), 0.3), "b": (128, (2, 2, 18, 2), (4, 8, 16, 32), 0.5)}
for _size, (_width, _depths, _heads, _chance) in _MODELS.items():
    def _make(_width=_width, _depths=_depths, _heads=_heads, _chance=_chance, **kwargs):
        return SwinTransformer([4, 4], _width, list(_depths), list(_heads), [7, 7], **{"stochastic_depth_prob": _chance, **kwargs})

    _enum = f"Swin_{_size.upper()}_Weights"
    globals()[_enum] = _api.enums(_enum)
    globals()[f"swin_{_size}"] = _api.builder(f"swin_{_size}", _make, globals()[_enum], f"The Swin transformer, {_size.upper()}.")
    __all__ += [f"swin_{_size}", _enum]
