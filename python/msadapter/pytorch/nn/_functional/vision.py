"""Padding, resizing, sampling, and moving between channels and space."""

import math

from msadapter import pytorch as torch
from msadapter.pytorch.nn._functional.operators import find

_constant_pad = find("constant_pad_nd")
_reflection_pads = {n: find(f"reflection_pad{n}d") for n in (1, 2, 3)}
_replication_pads = {n: find(f"replication_pad{n}d") for n in (1, 2, 3)}
_pixel_shuffle, _pixel_unshuffle, _channel_shuffle = find("pixel_shuffle"), find("pixel_unshuffle"), find("channel_shuffle")
_grid_sampler, _affine_grid_generator = find("grid_sampler"), find("affine_grid_generator")
_im2col, _col2im = find("im2col"), find("col2im")
pixel_shuffle, pixel_unshuffle, channel_shuffle = _pixel_shuffle, _pixel_unshuffle, _channel_shuffle
native_channel_shuffle = _channel_shuffle


def pad(input, pad, mode="constant", value=None):
    """Pad the last dimensions: pad is (left, right) of the last one, then of the one before, ...

    Modes: constant (any dimensions; negative numbers crop), reflect, replicate and circular (one to three dimensions).
    """
    if len(pad) % 2 != 0:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > input.dim():
        raise RuntimeError(f"Padding length should be less than or equal to two times the input dimension but got padding length "
                           f"{len(pad)} and input of dimension {input.dim()}")
    if mode == "constant":
        return _constant_pad(input, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f"Padding mode \"{mode}\" doesn't take in value argument")
    n = len(pad) // 2
    if n not in (1, 2, 3) or input.dim() not in (n + 1, n + 2):
        if mode not in ("reflect", "replicate", "circular"):
            raise NotImplementedError(f"Unrecognised padding mode {mode}")
        raise NotImplementedError("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now")
    if mode == "reflect":
        return _reflection_pads[n](input, pad)
    if mode == "replicate":
        return _replication_pads[n](input, pad)
    if mode == "circular":
        return _circular_pad(input, pad)
    raise NotImplementedError(f"Unrecognised padding mode {mode}")


def _circular_pad(input, pad):
    for i in range(len(pad) // 2):
        dim = input.dim() - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        size = input.size(dim)
        if before > size or after > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0 or before < -size or after < -size:
            raise RuntimeError("Negative padding value is resulting in an empty dimension.")
        middle = input.narrow(dim, max(-before, 0), size - max(-before, 0) - max(-after, 0))
        parts = [input.narrow(dim, size - max(-after, 0) - before, before)] if before > 0 else []
        parts.append(middle)
        if after > 0:
            parts.append(input.narrow(dim, max(-before, 0), after))
        input = torch.cat(parts, dim) if len(parts) > 1 else middle
    return input


_resizers = {key: find(name) for key, name in {
    ("nearest", 3): "upsample_nearest1d", ("nearest", 4): "upsample_nearest2d", ("nearest", 5): "upsample_nearest3d",
    ("nearest-exact", 3): "_upsample_nearest_exact1d", ("nearest-exact", 4): "_upsample_nearest_exact2d",
    ("nearest-exact", 5): "_upsample_nearest_exact3d", ("linear", 3): "upsample_linear1d", ("bilinear", 4): "upsample_bilinear2d",
    ("bicubic", 4): "upsample_bicubic2d", ("trilinear", 5): "upsample_trilinear3d", ("bilinear aa", 4): "_upsample_bilinear2d_aa",
    ("bicubic aa", 4): "_upsample_bicubic2d_aa"}.items()}
_NEEDS_DIM = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """Resize the dimensions after (N, C) to `size`, or by scale_factor.

    Modes: nearest, nearest-exact, linear (3-D), bilinear, bicubic (4-D), trilinear (5-D), area.
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    elif align_corners is None:
        align_corners = False
    dim = input.dim() - 2
    size, scales = _sizes_and_scales(input, dim, size, scale_factor)
    if recompute_scale_factor is not None and recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if mode == "area" and size is None:
        recompute_scale_factor = True
    if recompute_scale_factor:
        size = [int(math.floor(float(input.size(i + 2)) * scales[i])) for i in range(dim)]
        scales = None
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError("Anti-alias option is only supported for bilinear and bicubic modes")
    if mode == "area" and input.dim() in (3, 4, 5):
        from msadapter.pytorch.nn._functional import pooling

        pool = (pooling.adaptive_avg_pool1d, pooling.adaptive_avg_pool2d, pooling.adaptive_avg_pool3d)[dim - 1]
        return pool(input, size)
    resize = _resizers.get((mode + " aa" if antialias else mode, input.dim()))
    if resize is None:
        if mode in _NEEDS_DIM and input.dim() in (3, 4, 5):
            raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_NEEDS_DIM[mode]}D input")
        raise NotImplementedError("Input Error: Only 3D, 4D and 5D input Tensors supported (got {}D) for the modes: nearest | linear | bilinear | "
                                  "bicubic | trilinear | area | nearest-exact (got {})".format(input.dim(), mode))
    return resize(input, size, scales) if align_corners is None else resize(input, size, align_corners, scales)


def _sizes_and_scales(input, dim, size, scale_factor):
    """The two as lists, exactly one of them not None."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, (list, tuple)):
            if len(size) != dim:
                raise ValueError(f"Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of "
                                 f"{list(input.shape[2:])} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
                                 "format and output size in (o1, o2, ...,oK) format.")
            return list(size), None
        return [size] * dim, None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, (list, tuple)):
        if len(scale_factor) != dim:
            raise ValueError(f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
                             f"{list(input.shape[2:])} and scale_factor of shape {scale_factor}. Please provide input tensor in "
                             "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.")
        return None, [float(s) for s in scale_factor]
    return None, [float(scale_factor)] * dim


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The old name of interpolate."""
    import warnings

    warnings.warn("nn.functional.upsample is deprecated. Use nn.functional.interpolate instead.")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """The old name of interpolate with mode nearest."""
    import warnings

    warnings.warn("nn.functional.upsample_nearest is deprecated. Use nn.functional.interpolate instead.")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """The old name of interpolate with mode bilinear and aligned corners."""
    import warnings

    warnings.warn("nn.functional.upsample_bilinear is deprecated. Use nn.functional.interpolate instead.")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_SAMPLE_MODES = ("bilinear", "nearest", "bicubic")
_SAMPLE_PADDINGS = ("zeros", "border", "reflection")


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Values of input (N, C, *) at the positions grid (N, *, 2 or 3), which run from -1 to 1."""
    if mode not in _SAMPLE_MODES:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in _SAMPLE_PADDINGS:
        raise ValueError(f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
                         f"'{padding_mode}'")
    if align_corners is None:
        import warnings

        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
                      "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.")
        align_corners = False
    return _grid_sampler(input, grid, _SAMPLE_MODES.index(mode), _SAMPLE_PADDINGS.index(padding_mode), align_corners)


def affine_grid(theta, size, align_corners=None):
    """The grid, for grid_sample, of the affine maps theta: (N, 2, 3) with size (N, C, H, W), or (N, 3, 4) with (N, C, D, H, W)."""
    if align_corners is None:
        import warnings

        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
                      "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.")
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    rows = {4: 2, 5: 3}.get(len(size))
    if rows is None:
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
                                  f"{torch.Size(size)}.")
    if theta.dim() != 3 or theta.shape[-2] != rows or theta.shape[-1] != rows + 1:
        raise ValueError(f"Expected a batch of {rows}D affine matrices of shape Nx{rows}x{rows + 1} for size {torch.Size(size)}. Got "
                         f"{theta.shape}.")
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {torch.Size(size)}")
    return _affine_grid_generator(theta, size, align_corners)


def _pair(value):
    return list(value) if hasattr(value, "__iter__") else [value, value]


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Sum blocks (N, C * product(kernel_size), L) into images (N, C, *output_size)."""
    if input.dim() not in (2, 3):
        raise NotImplementedError("Input Error: Only unbatched (2D) or batched (3D) input Tensors are supported for fold (got {}D)".format(
            input.dim()))
    return _col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """The blocks of images (N, C, H, W) that a convolution sees, as (N, C * product(kernel_size), L)."""
    if input.dim() not in (3, 4):
        raise NotImplementedError("Input Error: Only 3D and 4D input Tensors are supported (got {}D)".format(input.dim()))
    return _im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))
