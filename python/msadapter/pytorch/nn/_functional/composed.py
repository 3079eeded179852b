"""Operators that are made of other operators: distances, rearrangements, embedding bags, the rarer losses.

They have ATen's names and arguments (reductions are numbers: none 0, mean 1, sum 2); operators.find takes them where the extension has none.
"""

import math

from msadapter import pytorch as torch
from msadapter.pytorch.nn._functional.operators import reduced

__all__ = ["channel_shuffle", "cosine_embedding_loss", "cosine_similarity", "embedding_bag", "hinge_embedding_loss", "margin_ranking_loss",
           "multi_margin_loss", "multilabel_margin_loss", "one_hot", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle",
           "poisson_nll_loss", "rrelu", "rrelu_", "soft_margin_loss", "triplet_margin_loss"]


# Distances.

def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of x1 and x2 along dim; norms below eps count as eps."""
    dtype = torch.result_type(x1, x2)
    if not dtype.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {dtype}")
    x1, x2 = torch.broadcast_tensors(x1.to(dtype), x2.to(dtype))

    def unit(x):
        norm = torch.linalg_vector_norm(x, 2, [dim], True)
        return x / (norm + torch.clamp(eps - norm.detach(), min=0))  # the floor has no gradient

    return (unit(x1) * unit(x2)).sum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dimension."""
    return torch.linalg_vector_norm(x1 - x2 + eps, p, [max(x1.dim(), x2.dim()) - 1], keepdim)


def pdist(input, p=2):
    """The p-norms between all pairs of rows of a matrix, row by row above the diagonal."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    if not input.is_floating_point():
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    n = input.size(0)
    first, second = torch.triu_indices(n, n, 1)
    return torch.linalg_vector_norm(input.index_select(0, first) - input.index_select(0, second), p, [1])


def one_hot(input, num_classes=-1):
    """0 and 1 (*, num_classes), 1 where the last index is input's value; as many classes as there are by default."""
    if input.dtype != torch.int64:
        raise RuntimeError("one_hot is only applicable to index tensor.")
    if input.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return torch.empty(*input.shape, num_classes, dtype=torch.int64)
    if input.min().item() < 0:
        raise RuntimeError("Class values must be non-negative.")
    largest = input.max().item()
    if num_classes == -1:
        num_classes = largest + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif largest >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return torch.zeros(*input.shape, num_classes, dtype=torch.int64).scatter_(-1, input.unsqueeze(-1), 1)


# Rearrangements.

def pixel_shuffle(input, upscale_factor):
    """(*, C r^2, H, W) -> (*, C, H r, W r)."""
    if input.dim() < 3:
        raise RuntimeError(f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)")
    r = upscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *batch, channels, height, width = input.shape
    if channels % (r * r) != 0:
        raise RuntimeError(f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
                           f"input.size(-3)={channels} is not divisible by {r * r}")
    n = len(batch)
    blocks = input.reshape(*batch, channels // (r * r), r, r, height, width)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return blocks.permute(order).reshape(*batch, channels // (r * r), height * r, width * r)


def pixel_unshuffle(input, downscale_factor):
    """(*, C, H r, W r) -> (*, C r^2, H, W)."""
    if input.dim() < 3:
        raise RuntimeError(f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)")
    r = downscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *batch, channels, height, width = input.shape
    for name, size in (("height", height), ("width", width)):
        if size % r != 0:
            raise RuntimeError(f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({-2 if name == 'height' else -1})"
                               f"={size} is not divisible by {r}")
    n = len(batch)
    blocks = input.reshape(*batch, channels, height // r, r, width // r, r)
    order = [*range(n), n, n + 2, n + 4, n + 1, n + 3]
    return blocks.permute(order).reshape(*batch, channels * r * r, height // r, width // r)


def channel_shuffle(input, groups):
    """(N, g n, *) with the channels, as (g, n), transposed."""
    if input.dim() <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    batch, channels, *rest = input.shape
    if channels % groups != 0:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups.")
    return input.reshape(batch, groups, channels // groups, -1).permute(0, 2, 1, 3).reshape(batch, channels, *rest)


# Activations.

def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """leaky_relu with a slope drawn for each negative element in training."""
    return _rrelu_operator("rrelu_with_noise")(input, lower, upper, training, generator=generator)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """rrelu in place."""
    return _rrelu_operator("rrelu_with_noise_")(input, lower, upper, training, generator=generator)


def _rrelu_operator(name):
    from msadapter import _C

    return getattr(_C._nn, name)


# Embedding bags.

def embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
                  include_last_offset=False, padding_idx=None):
    """(result, bag of each index, bag sizes, positions of maxima): sums (mode 0), means (1) or maxima (2) of rows of weight (V, D).

    Raises NotImplementedError for sparse gradients.
    """
    if sparse:
        raise NotImplementedError("embedding_bag: argument 'sparse'=True is not implemented")
    for name, value in (("input", indices), ("offsets", offsets)):
        if value.dtype not in (torch.int64, torch.int32):
            raise RuntimeError(f"Expected tensor for argument '{name}' to have one of the following scalar types: Long, Int; but got "
                               f"{value.dtype} instead")
    if indices.dtype != offsets.dtype:
        raise RuntimeError("expected 'input' and 'offsets' to have the same integer type")
    indices, offsets = indices.long(), offsets.long()
    if offsets.numel() and offsets[0].item() != 0:
        raise RuntimeError(f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got "
                           f"{offsets[0].item()}")
    if offsets.numel() and offsets[-1].item() > indices.numel():
        raise RuntimeError(f"offsets[-1] can not be greater than input's length ({indices.numel()}) but got offsets[-1] of {offsets[-1].item()}")
    starts = offsets[:-1] if include_last_offset else offsets
    n_bags = starts.numel()
    begun = torch.zeros(indices.numel() + 1, dtype=torch.int64).index_add(0, starts, torch.ones_like(starts))
    bag_of = begun[:-1].cumsum(0) - 1
    rows = torch.embedding(weight, indices, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, False)
    keep = torch.ones_like(indices) if padding_idx is None else (indices != padding_idx).long()
    sizes = torch.zeros(n_bags, dtype=torch.int64).index_add(0, bag_of, keep)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    if padding_idx is not None and mode != 2:
        rows = rows * keep.to(rows.dtype).unsqueeze(1)
    if mode == 2:
        result, places = _bag_maxima(rows, indices, bag_of, keep, n_bags)
        return result, bag_of, sizes, places
    result = torch.zeros(n_bags, weight.size(1), dtype=weight.dtype).index_add(0, bag_of, rows)
    if mode == 1:
        result = result / sizes.clamp(min=1).to(result.dtype).unsqueeze(1)
    return result, bag_of, sizes, torch.empty(0, dtype=torch.int64)


def _bag_maxima(rows, indices, bag_of, keep, n_bags):
    """The maxima of each bag (0 for an empty one), and the indices they come from."""
    results, places = [], []
    for bag in range(n_bags):
        inside = torch.nonzero((bag_of == bag) & (keep == 1)).squeeze(1)
        if inside.numel() == 0:
            results.append(rows.new_zeros(rows.size(1)))
            places.append(indices.new_full((rows.size(1),), -1))
            continue
        values, where = rows.index_select(0, inside).max(0)
        results.append(values)
        places.append(indices.index_select(0, inside.index_select(0, where)))
    if not results:
        return rows.new_zeros(0, rows.size(1)), indices.new_zeros(0, rows.size(1))
    return torch.stack(results), torch.stack(places)


# Losses.

def hinge_embedding_loss(input, target, margin=1.0, reduction=1):
    """input where target is 1, max(0, margin - input) where it is -1."""
    zero = torch.zeros_like(input)
    loss = torch.where(target != 1, torch.clamp(margin - input, min=0), zero) + torch.where(target != -1, input, zero)
    return reduced(loss, reduction)


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1):
    """max(0, -target (input1 - input2) + margin)."""
    return reduced(torch.clamp(-target * (input1 - input2) + margin, min=0), reduction)


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1):
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1."""
    dim = target.dim()
    if dim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if dim == 1 and (input1.dim() != 2 or input2.dim() != 2):
        raise RuntimeError(f"1D target tensor expects 2D input tensors, but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}.")
    if dim == 0 and (input1.dim() != 1 or input2.dim() != 1):
        raise RuntimeError(f"0D target tensor expects 1D input tensors, but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}.")
    tiny = 1e-12
    product = (input1 * input2).sum(dim)
    cosine = product / (((input1 * input1).sum(dim) + tiny) * ((input2 * input2).sum(dim) + tiny)).sqrt()
    zero = torch.zeros_like(cosine)
    loss = torch.where(target == 1, 1 - cosine, zero) + torch.where(target == -1, torch.clamp(cosine - margin, min=0), zero)
    return reduced(loss, reduction)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
    """max(0, |anchor - positive| - |anchor - negative| + margin) in the p-norm."""
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor "
                           f"{anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs")
    to_positive, to_negative = pairwise_distance(anchor, positive, p, eps), pairwise_distance(anchor, negative, p, eps)
    if swap:
        to_negative = torch.minimum(to_negative, pairwise_distance(positive, negative, p, eps))
    return reduced(torch.clamp(margin + to_positive - to_negative, min=0), reduction)


def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """exp(input) - target input if log_input, else input - target log(input + eps); with Stirling's term if full."""
    loss = input.exp() - target * input if log_input else input - target * torch.log(input + eps)
    if full:
        stirling = target * torch.log(target) - target + 0.5 * torch.log(2 * math.pi * target)
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


def soft_margin_loss(input, target, reduction=1):
    """log(1 + exp(-target input))."""
    return reduced(torch.log1p(torch.exp(-target * input)), reduction)


def _class_sizes(input):
    """(samples, classes) of an input (N, C), (C) or (). Raises RuntimeError for other shapes."""
    if input.dim() == 2 and input.size(1) != 0:
        return input.shape[0], input.shape[1]
    if input.dim() <= 1 and input.numel() != 0:
        return 1, input.numel()
    raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, reduction=1):
    """The hinge loss of one class per sample, to the power of p, over the number of classes."""
    if p not in (1, 2):
        raise RuntimeError("only p == 1 and p == 2 supported")
    samples, classes = _class_sizes(input)
    if target.dim() > 1 or target.numel() != samples:
        raise RuntimeError(f"inconsistent target size, expected {samples} but got {list(target.shape)}")
    if target.dtype != torch.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype}")
    if weight is not None and (weight.dim() > 1 or weight.numel() != classes):
        raise RuntimeError("inconsistent weight size")
    rows, chosen = input.reshape(samples, classes), target.reshape(samples, 1)
    if chosen.numel() and (chosen.min().item() < 0 or chosen.max().item() >= classes):
        raise RuntimeError("target out of range")
    loss = torch.clamp(margin - rows.gather(1, chosen) + rows, min=0)
    if p == 2:
        loss = loss * loss
    if weight is not None:
        loss = loss * weight.reshape(-1).index_select(0, chosen.reshape(-1)).unsqueeze(1)
    others = torch.ones_like(rows).scatter(1, chosen, 0)
    loss = (loss * others).sum(1) / classes
    return reduced(loss.reshape(target.shape) if reduction == 0 else loss, reduction)


def multilabel_margin_loss(input, target, reduction=1):
    """The hinge loss of several classes per sample; target lists them, and ends with -1."""
    samples, classes = _class_sizes(input)
    if target.shape != input.shape and target.numel() != samples * classes:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    rows, listed = input.reshape(samples, classes), target.reshape(samples, classes)
    if listed.numel() and (listed.min().item() < -1 or listed.max().item() >= classes):
        raise RuntimeError("argument #2 'target' is out of range")
    valid = (listed >= 0).long().cumprod(1)
    places = listed.clamp(min=0)
    is_target = torch.zeros_like(listed).scatter_add(1, places, valid).clamp(max=1)
    gaps = torch.clamp(1 - rows.gather(1, places).unsqueeze(2) + rows.unsqueeze(1), min=0)
    counts = (valid.unsqueeze(2) * (1 - is_target).unsqueeze(1)).to(rows.dtype)
    loss = (gaps * counts).sum((1, 2)) / classes
    return reduced(loss.reshape(input.shape[:-1]) if reduction == 0 else loss, reduction)
