"""Operators that are made of other operators: pdist, rrelu, embedding_bag.

They have ATen's names and arguments; operators.find takes them where the extension has none.
"""

from msadapter import _C
from msadapter import pytorch as torch

__all__ = ["embedding_bag", "pdist", "rrelu", "rrelu_"]


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
    return _C._ops._cdist(input.unsqueeze(0), input.unsqueeze(0), p, False).reshape(-1).index_select(0, first * n + second)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """leaky_relu with a slope drawn for each negative element in training."""
    return _C._nn.rrelu_with_noise(input, lower, upper, training, generator=generator)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False, generator=None):
    """rrelu in place."""
    return _C._nn.rrelu_with_noise_(input, lower, upper, training, generator=generator)


def embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None,
                  include_last_offset=False, padding_idx=None):
    """(result, bag of each index, bag sizes, positions of maxima): sums (mode 0), means (1) or maxima (2) of rows of weight (V, D).

    `sparse` makes the weight's gradient a sparse tensor.
    """
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
    rows = torch.embedding(weight, indices, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse)
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
