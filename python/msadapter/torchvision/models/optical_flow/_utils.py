"""Flows (N, 2, H, W), x before y, and places in pixels."""

from msadapter import pytorch as torch
from msadapter.pytorch.nn import functional as F


def grid_sample(img, absolute_grid, mode="bilinear", align_corners=None):
    """F.grid_sample of (N, C, H, W) at places (N, h, w, 2) in pixels."""
    height, width = img.shape[-2:]
    x, y = absolute_grid.split([1, 1], dim=-1)
    x = 2 * x / (width - 1) - 1
    if height > 1:  # of one row, as for pictures of both eyes, every place is the middle
        y = 2 * y / (height - 1) - 1
    return F.grid_sample(img, torch.cat([x, y], dim=-1), mode=mode, align_corners=align_corners)


def make_coords_grid(batch_size, h, w, device="cpu"):
    """x and y of every pixel: (batch_size, 2, h, w)."""
    y, x = torch.meshgrid(torch.arange(h, device=device), torch.arange(w, device=device), indexing="ij")
    return torch.stack((x, y)).float()[None].repeat(batch_size, 1, 1, 1)


def upsample_flow(flow, up_mask=None, factor=8):
    """A flow `factor` times as large, in pixels of the larger picture.

    Each of its places is a mean of 9 neighbours, by the softmax of up_mask (N, 9 * factor * factor, H, W), or bilinear without it.
    """
    n, channels, height, width = flow.shape
    if up_mask is None:
        return factor * F.interpolate(flow, size=(height * factor, width * factor), mode="bilinear", align_corners=True)
    shares = torch.softmax(up_mask.reshape(n, 1, 9, factor, factor, height, width), dim=2)
    around = F.unfold(factor * flow, kernel_size=3, padding=1).reshape(n, channels, 9, 1, 1, height, width)
    return torch.sum(shares * around, dim=2).permute(0, 1, 4, 2, 5, 3).reshape(n, channels, height * factor, width * factor)
