"""DropBlock (Ghiasi et al., 2018): dropout of whole blocks of a feature map."""

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn import functional as F


def _drop_block(input, p, block_size, inplace, eps, training, spatial, max_pool):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}.")
    if input.ndim != spatial + 2:
        raise ValueError(f"input should be {spatial + 2} dimensional. Got {input.ndim} dimensions.")
    if not training or p == 0.0:
        return input
    sizes = input.shape[2:]
    block = min(block_size, *sizes)
    elements = places = 1
    for size in sizes:
        elements, places = elements * size, places * (size - block + 1)
    centres = torch.empty(*input.shape[:2], *(size - block + 1 for size in sizes), dtype=input.dtype)
    centres.bernoulli_(p * elements / (block ** spatial * places))
    dropped = F.pad(centres, [block // 2] * (2 * spatial), value=0)
    keep = 1 - max_pool(dropped, kernel_size=block, stride=1, padding=block // 2)
    scale = keep.numel() / (eps + keep.sum())
    return input.mul_(keep).mul_(scale) if inplace else input * keep * scale


def drop_block2d(input, p, block_size, inplace=False, eps=1e-06, training=True):
    """Zero blocks of side `block_size` in maps (N, C, H, W), a share p of the elements, and scale the rest. Raises ValueError for other p and sizes."""
    return _drop_block(input, p, block_size, inplace, eps, training, 2, F.max_pool2d)


def drop_block3d(input, p, block_size, inplace=False, eps=1e-06, training=True):
    """Zero cubes of side `block_size` in maps (N, C, D, H, W), a share p of the elements, and scale the rest. Raises ValueError for other p and sizes."""
    return _drop_block(input, p, block_size, inplace, eps, training, 3, F.max_pool3d)


class DropBlock2d(nn.Module):
    """`drop_block2d` while training."""

    def __init__(self, p, block_size, inplace=False, eps=1e-06):
        super().__init__()
        self.p, self.block_size, self.inplace, self.eps = p, block_size, inplace, eps

    def forward(self, input):
        return drop_block2d(input, self.p, self.block_size, self.inplace, self.eps, self.training)

    def __repr__(self):
        return f"{type(self).__name__}(p={self.p}, block_size={self.block_size}, inplace={self.inplace})"


class DropBlock3d(DropBlock2d):
    """`drop_block3d` while training."""

    def forward(self, input):
        return drop_block3d(input, self.p, self.block_size, self.inplace, self.eps, self.training)
