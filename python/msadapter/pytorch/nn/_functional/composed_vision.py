"""Operators on images that are made of other operators: padding by copies, resizing, sampling, blocks.

They have ATen's names and arguments; operators.find takes them where the extension has none.
"""

import math

from msadapter import pytorch as torch

__all__ = ["affine_grid_generator", "col2im", "constant_pad_nd", "grid_sampler", "im2col"]


# Padding.

def constant_pad_nd(input, pad, value=0):
    """pad is (before, after) of the last dimension, then of the one before; negative numbers crop."""
    for i in range(len(pad) // 2):
        dim, before, after = input.dim() - 1 - i, pad[2 * i], pad[2 * i + 1]
        size = input.size(dim)
        if size + before + after < 0:
            raise RuntimeError(f"The input size {size}, plus negative padding {before} and {after} resulted in a negative output size, which is "
                               f"invalid. Check dimension {dim} of your input.")
        start, stop = max(-before, 0), size - max(-after, 0)
        if start or stop != size:
            input = input.narrow(dim, start, max(stop - start, 0))
        parts = [input]
        for amount, place in ((before, 0), (after, len(parts))):
            if amount > 0:
                shape = list(input.shape)
                shape[dim] = amount
                parts.insert(0 if place == 0 else len(parts), input.new_full(shape, value))
        if len(parts) > 1:
            input = torch.cat(parts, dim)
    return input.clone() if not any(pad) else input


def _check_padded(name, input, pad, n, reflect):
    if len(pad) != 2 * n:
        raise RuntimeError(f"padding size is expected to be {2 * n}, but got: {len(pad)}")
    if input.dim() not in (n + 1, n + 2) or any(size == 0 for size in input.shape[-n - 1:]):
        raise RuntimeError(f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
                           f"but got: {list(input.shape)}")
    for i in range(n):
        size, before, after = input.size(-1 - i), pad[2 * i], pad[2 * i + 1]
        if reflect and (before >= size or after >= size):
            raise RuntimeError(f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after})"
                               f" at dimension {input.dim() - 1 - i} of input {list(input.shape)}")
        if size + before + after < 1:
            raise RuntimeError(f"input (size: {size}) is too small. Calculated output size: {size + before + after}")


def _pad_by_index(input, pad, index_of):
    """Dimensions from the last one on, each replaced by the positions that index_of(position, size) gives."""
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        if before == 0 and after == 0:
            continue
        dim = input.dim() - 1 - i
        size = input.size(dim)
        positions = torch.tensor([index_of(position, size) for position in range(-before, size + after)], dtype=torch.int64)
        input = input.index_select(dim, positions)
    return input


def _reflected(position, size):
    if position < 0:
        position = -position
    return position if position < size else 2 * (size - 1) - position


def _clamped(position, size):
    return min(max(position, 0), size - 1)


def _reflection_pad(n):
    def run(input, padding):
        _check_padded(f"reflection_pad{n}d", input, padding, n, True)
        return _pad_by_index(input, padding, _reflected)

    return run


def _replication_pad(n):
    def run(input, padding):
        _check_padded(f"replication_pad{n}d", input, padding, n, False)
        return _pad_by_index(input, padding, _clamped)

    return run


reflection_pad1d, reflection_pad2d, reflection_pad3d = map(_reflection_pad, (1, 2, 3))
replication_pad1d, replication_pad2d, replication_pad3d = map(_replication_pad, (1, 2, 3))


# Resizing: each dimension by itself. output_size or scale_factors is None.

def _resize(input, n, output_size, scale_factors, positions):
    """Each of the last n dimensions as a weighted sum of others: positions(in, out, scale) gives [(indices, weights or None)]."""
    if input.dim() != n + 2:
        raise RuntimeError(f"It is expected input_size equals to {n + 2}, but got size {input.dim()}")
    if any(size == 0 for size in input.shape[1:]):
        raise RuntimeError(f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {list(input.shape)}")
    for i in range(n):
        dim = 2 + i
        size = input.size(dim)
        scale = None if scale_factors is None else scale_factors[i]
        out = output_size[i] if output_size is not None else int(math.floor(size * scale))
        if out <= 0:
            raise RuntimeError(f"Input and output sizes should be greater than 0, but got input (size {size}) output (size {out})")
        total = None
        for indices, weights in positions(size, out, scale):
            part = input.index_select(dim, torch.tensor(indices, dtype=torch.int64))
            if weights is not None:
                shape = [1] * input.dim()
                shape[dim] = out
                part = part * torch.tensor(weights, dtype=input.dtype).view(shape)
            total = part if total is None else total + part
        input = total
    return input


def _nearest_positions(size, out, scale):
    ratio = 1.0 / scale if scale is not None and scale > 0 else size / out
    return [([min(int(math.floor(i * ratio)), size - 1) for i in range(out)], None)]


def _nearest_exact_positions(size, out, scale):
    ratio = 1.0 / scale if scale is not None and scale > 0 else size / out
    return [([min(int(math.floor((i + 0.5) * ratio)), size - 1) for i in range(out)], None)]


def _sources(size, out, scale, align_corners, cubic=False):
    """Where each output position lies in the input."""
    if align_corners:
        ratio = (size - 1) / (out - 1) if out > 1 else 0.0
        return [i * ratio for i in range(out)]
    ratio = 1.0 / scale if scale is not None and scale > 0 else size / out
    sources = [(i + 0.5) * ratio - 0.5 for i in range(out)]
    return sources if cubic else [max(s, 0.0) for s in sources]


def _linear_positions(align_corners):
    def positions(size, out, scale):
        sources = _sources(size, out, scale, align_corners)
        low = [min(int(s), size - 1) for s in sources]
        high = [min(i + 1, size - 1) for i in low]
        upper = [s - i for s, i in zip(sources, low)]
        return [(low, [1 - w for w in upper]), (high, upper)]

    return positions


def _cubic_weights(t, a=-0.75):
    """Keys's (1981) convolution weights of the four neighbours of a point at t between the middle two."""
    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def _cubic_positions(align_corners):
    def positions(size, out, scale):
        sources = _sources(size, out, scale, align_corners, cubic=True)
        base = [int(math.floor(s)) for s in sources]
        weights = list(zip(*(_cubic_weights(s - b) for s, b in zip(sources, base))))
        return [([_clamped(b + k - 1, size) for b in base], list(weights[k])) for k in range(4)]

    return positions


def _antialias_positions(align_corners, support, kernel):
    def positions(size, out, scale):
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
            high = min(int(centre + reach + 0.5), size)
            weights = [kernel((j - centre + 0.5) * shrink) for j in range(low, high)]
            total = sum(weights)
            rows.append((low, [w / total for w in weights] if total else weights))
        taps = max(len(weights) for _, weights in rows)
        return [([min(low + k, size - 1) for low, _ in rows], [weights[k] if k < len(weights) else 0.0 for _, weights in rows]) for k in range(taps)]

    return positions


def _triangle(x):
    return max(1.0 - abs(x), 0.0)


def _keys(x, a=-0.5):
    x = abs(x)
    if x < 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2.0 else 0.0


def _nearest(n, positions):
    def run(input, output_size, scale_factors):
        return _resize(input, n, output_size, scale_factors, positions)

    return run


def _interpolating(n, make_positions):
    def run(input, output_size, align_corners, scale_factors):
        return _resize(input, n, output_size, scale_factors, make_positions(align_corners))

    return run


upsample_nearest1d, upsample_nearest2d, upsample_nearest3d = (_nearest(n, _nearest_positions) for n in (1, 2, 3))
_upsample_nearest_exact1d, _upsample_nearest_exact2d, _upsample_nearest_exact3d = (_nearest(n, _nearest_exact_positions) for n in (1, 2, 3))
upsample_linear1d, upsample_bilinear2d, upsample_trilinear3d = (_interpolating(n, _linear_positions) for n in (1, 2, 3))
upsample_bicubic2d = _interpolating(2, _cubic_positions)
_upsample_bilinear2d_aa = _interpolating(2, lambda align_corners: _antialias_positions(align_corners, 1.0, _triangle))
_upsample_bicubic2d_aa = _interpolating(2, lambda align_corners: _antialias_positions(align_corners, 2.0, _keys))


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


# Blocks.

def _block_index(size, kernel, dilation, padding, stride):
    """For one dimension, the padded positions (kernel, blocks). Raises RuntimeError when no block fits."""
    blocks = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    if blocks < 1:
        return None
    return (torch.arange(kernel) * dilation).unsqueeze(1) + (torch.arange(blocks) * stride).unsqueeze(0)


def _flat_block_index(name, sizes, kernel_size, dilation, padding, stride):
    """Positions in the padded image, flattened: (KH * KW, blocks); and the padded size."""
    for what, values, least in (("kernel size", kernel_size, 1), ("dilation", dilation, 1), ("stride", stride, 1), ("padding", padding, 0)):
        if len(values) != 2:
            raise RuntimeError(f"It is expected {what.replace(' ', '_')} equals to 2, but got size {len(values)}")
        if any(value < least for value in values):
            raise RuntimeError(f"{what} should be {'greater than zero' if least else 'non-negative'}, but got {what.replace(' ', '_')}_height: {values[0]} "
                               f"{what.replace(' ', '_')}_width: {values[1]}")
    rows, columns = (_block_index(sizes[d], kernel_size[d], dilation[d], padding[d], stride[d]) for d in (0, 1))
    if rows is None or columns is None:
        raise RuntimeError(f"{name}: Given input with spatial size ({sizes[0]}, {sizes[1]}), kernel_size=({kernel_size[0]}, {kernel_size[1]}), "
                           f"dilation=({dilation[0]}, {dilation[1]}), padding=({padding[0]}, {padding[1]}), stride=({stride[0]}, {stride[1]}), "
                           "calculated shape of the array of sliding blocks is too small (non-positive)")
    height, width = sizes[0] + 2 * padding[0], sizes[1] + 2 * padding[1]
    index = rows.view(rows.size(0), 1, -1, 1) * width + columns.view(1, columns.size(0), 1, -1)
    return index.reshape(kernel_size[0] * kernel_size[1], -1), height, width


def im2col(input, kernel_size, dilation, padding, stride):
    """Blocks of (N, C, H, W) or (C, H, W) as (N, C * KH * KW, L) or without N."""
    if input.dim() not in (3, 4) or any(size == 0 for size in input.shape[-3:]):
        raise RuntimeError(f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")
    single = input.dim() == 3
    images = input.unsqueeze(0) if single else input
    index, height, width = _flat_block_index("im2col", images.shape[2:], kernel_size, dilation, padding, stride)
    if any(padding):
        images = constant_pad_nd(images, [padding[1], padding[1], padding[0], padding[0]])
    flat = images.reshape(images.size(0), images.size(1), height * width)
    columns = flat.index_select(2, index.reshape(-1)).reshape(images.size(0), images.size(1) * index.size(0), index.size(1))
    return columns.squeeze(0) if single else columns


def col2im(input, output_size, kernel_size, dilation, padding, stride):
    """Sums of blocks (N, C * KH * KW, L), or without N, as images (N, C, *output_size)."""
    if len(output_size) != 2:
        raise RuntimeError(f"It is expected output_size equals to 2, but got size {len(output_size)}")
    single = input.dim() == 2
    columns = input.unsqueeze(0) if single else input
    index, height, width = _flat_block_index("col2im", output_size, kernel_size, dilation, padding, stride)
    per_channel, blocks = index.shape
    if columns.dim() != 3 or columns.size(1) == 0 or columns.size(2) == 0:
        raise RuntimeError(f"Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")
    if columns.size(1) % per_channel != 0:
        raise RuntimeError(f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
                           f"{columns.size(1)} and kernel_size=({kernel_size[0]}, {kernel_size[1]}).")
    if columns.size(2) != blocks:
        raise RuntimeError(f"Given output_size=({output_size[0]}, {output_size[1]}), kernel_size=({kernel_size[0]}, {kernel_size[1]}), dilation="
                           f"({dilation[0]}, {dilation[1]}), padding=({padding[0]}, {padding[1]}), stride=({stride[0]}, {stride[1]}), expected size of "
                           f"input's dimension 2 to match the calculated number of sliding blocks {blocks}, but got input.size(2)={columns.size(2)}.")
    channels = columns.size(1) // per_channel
    flat = columns.reshape(columns.size(0), channels, per_channel * blocks)
    images = torch.zeros(columns.size(0), channels, height * width, dtype=input.dtype).index_add(2, index.reshape(-1), flat)
    images = images.view(columns.size(0), channels, height, width)
    images = images[:, :, padding[0]:height - padding[0], padding[1]:width - padding[1]]
    return images.squeeze(0).contiguous() if single else images.contiguous()
