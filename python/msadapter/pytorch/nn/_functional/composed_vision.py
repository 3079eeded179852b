"""Operators on images that are made of other operators: resizing with antialiasing, sampling.

They have ATen's names and arguments; operators.find takes them where the extension has none.
"""

import math

from msadapter import pytorch as torch

__all__ = ["affine_grid_generator", "grid_sampler"]


# Resizing with antialiasing, as Pillow does it: each dimension by itself.

def _taps(size, out, scale, align_corners, support, kernel):
    """For one dimension, [(input positions, weights)], one number of each for every output position."""
    if align_corners:
        ratio = (size - 1) / (out - 1) if out > 1 else 0.0
    else:
        ratio = 1.0 / scale if scale is not None and scale > 0 else size / out
    reach = support * max(ratio, 1.0)
    shrink = 1.0 / ratio if ratio >= 1.0 else 1.0
    rows = []
    for i in range(out):
        centre = ratio * (i + 0.5)
        low = max(int(centre - reach + 0.5), 0)
        weights = [kernel((j - centre + 0.5) * shrink) for j in range(low, min(int(centre + reach + 0.5), size))]
        total = sum(weights)
        rows.append((low, [w / total for w in weights] if total else weights))
    most = max(len(weights) for _, weights in rows)
    return [([min(low + k, size - 1) for low, _ in rows], [weights[k] if k < len(weights) else 0.0 for _, weights in rows]) for k in range(most)]


def _antialiased(support, kernel):
    """Resizes (N, C, H, W); output_size or scale_factors is None."""
    def run(input, output_size, align_corners, scale_factors):
        if input.dim() != 4 or any(size == 0 for size in input.shape[1:]):
            raise RuntimeError(f"Non-empty 4D data tensor expected but got a tensor with sizes {list(input.shape)}")
        for dim in (3, 2):
            size, scale = input.size(dim), None if scale_factors is None else scale_factors[dim - 2]
            out = output_size[dim - 2] if output_size is not None else int(math.floor(size * scale))
            if out <= 0:
                raise RuntimeError(f"Input and output sizes should be greater than 0, but got input (size {size}) output (size {out})")
            shape = [1, 1, 1, 1]
            shape[dim] = out
            total = 0
            for positions, weights in _taps(size, out, scale, align_corners, support, kernel):
                part = input.index_select(dim, torch.tensor(positions, dtype=torch.int64))
                total = total + part * torch.tensor(weights, dtype=input.dtype).view(shape)
            input = total
        return input

    return run


def _triangle(x):
    return max(1.0 - abs(x), 0.0)


def _keys(x, a=-0.5):
    x = abs(x)
    if x < 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2.0 else 0.0


_upsample_bilinear2d_aa = _antialiased(1.0, _triangle)
_upsample_bicubic2d_aa = _antialiased(2.0, _keys)


# Sampling.

def affine_grid_generator(theta, size, align_corners):
    """The positions, in [-1, 1], that theta (N, k, k + 1) gives the cells of an image of this size (N, C, *)."""
    spatial = list(size[2:])
    k = len(spatial)

    def line(count):
        if count <= 1:
            return theta.new_zeros(count)
        positions = torch.linspace(-1, 1, count, dtype=theta.dtype)
        return positions if align_corners else positions * ((count - 1) / count)

    columns = []
    for i in range(k):  # x belongs to the last dimension
        shape = [1] * k
        shape[k - 1 - i] = -1
        columns.append(line(spatial[k - 1 - i]).view(shape).expand(spatial))
    columns.append(theta.new_ones(spatial))
    base = torch.stack(columns, -1).view(1, -1, k + 1).expand(size[0], -1, -1)
    return torch.bmm(base, theta.transpose(1, 2)).view(size[0], *spatial, k)


def _cubic_weights(t, a=-0.75):
    """Keys's (1981) convolution weights of the four neighbours of a point at t between the middle two."""
    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _unnormalised(coordinate, size, align_corners):
    return (coordinate + 1) / 2 * (size - 1) if align_corners else ((coordinate + 1) * size - 1) / 2


def _mirrored(x, size, align_corners):
    """x reflected until it lies in the image."""
    low, span = (0, size - 1) if align_corners else (-0.5, size)
    if span == 0:
        return torch.zeros_like(x)
    x = (x - low).abs()
    flips = (x.detach() / span).floor()
    rest = x - flips * span
    return torch.where(flips % 2 == 0, rest + low, span - rest + low)


def _inside(x, size, padding_mode, align_corners):
    """Positions moved into the image, as the padding mode says (0 zeros, 1 border, 2 reflection)."""
    if padding_mode == 2:
        x = _mirrored(x, size, align_corners)
    return x if padding_mode == 0 else x.clamp(0, size - 1)


def _picked(flat, spatial, positions):
    """Values of flat (N, C, product of spatial) at integer positions (one (N, P) a dimension); zero outside."""
    index, valid = None, None
    for position, size in zip(positions, spatial):
        ok = (position >= 0) & (position <= size - 1)
        valid = ok if valid is None else valid & ok
        clamped = position.clamp(0, size - 1).to(torch.int64)
        index = clamped if index is None else index * size + clamped
    values = flat.gather(2, index.unsqueeze(1).expand(-1, flat.size(1), -1))
    return values * valid.unsqueeze(1).to(values.dtype)


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """Values of input (N, C, *) at the positions grid (N, *, k); modes 0 linear, 1 nearest, 2 cubic; paddings 0 zeros, 1 border, 2 reflection."""
    k = input.dim() - 2
    if k not in (2, 3) or grid.dim() != input.dim():
        raise RuntimeError(f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes "
                           f"{list(input.shape)} and grid with sizes {list(grid.shape)}")
    if input.dtype != grid.dtype:
        raise RuntimeError(f"grid_sampler(): expected input and grid to have same dtype, but input has {input.dtype} and grid has {grid.dtype}")
    if input.size(0) != grid.size(0):
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, but got input with sizes {list(input.shape)} and grid "
                           f"with sizes {list(grid.shape)}")
    if grid.size(-1) != k:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {k} in last dimension, but got grid with sizes {list(grid.shape)}")
    if any(size <= 0 for size in input.shape[2:]):
        raise RuntimeError(f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {list(input.shape)}")
    if interpolation_mode == 2 and k == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    spatial = list(input.shape[2:])
    flat = input.reshape(input.size(0), input.size(1), -1)
    points = grid.reshape(grid.size(0), -1, k)
    raw = [_unnormalised(points[..., k - 1 - d], spatial[d], align_corners) for d in range(k)]
    if interpolation_mode == 2:
        result = _cubic_samples(flat, spatial, raw, padding_mode, align_corners)
    else:
        places = [_inside(x, size, padding_mode, align_corners) for x, size in zip(raw, spatial)]
        result = _picked(flat, spatial, [x.detach().round() for x in places]) if interpolation_mode == 1 else _linear_samples(flat, spatial, places)
    return result.view(input.size(0), input.size(1), *grid.shape[1:-1])


def _linear_samples(flat, spatial, places):
    low = [x.detach().floor() for x in places]
    result = None
    for corner in range(1 << len(spatial)):
        weight, positions = None, []
        for d, (x, base) in enumerate(zip(places, low)):
            upper = corner >> d & 1
            part = x - base if upper else base + 1 - x
            weight = part if weight is None else weight * part
            positions.append(base + upper)
        value = _picked(flat, spatial, positions) * weight.unsqueeze(1)
        result = value if result is None else result + value
    return result


def _cubic_samples(flat, spatial, raw, padding_mode, align_corners):
    base = [x.detach().floor() for x in raw]
    weights = [_cubic_weights(x - b) for x, b in zip(raw, base)]
    result = None
    for i in range(4):
        y = _inside(base[0] + (i - 1), spatial[0], padding_mode, align_corners)
        for j in range(4):
            x = _inside(base[1] + (j - 1), spatial[1], padding_mode, align_corners)
            value = _picked(flat, spatial, [y, x]) * (weights[0][i] * weights[1][j]).unsqueeze(1)
            result = value if result is None else result + value
    return result
