"""The CTC loss and fractional pooling, made of other operators; found as those of composed.py are."""

import math

from msadapter import pytorch as torch

__all__ = ["ctc_loss", "fractional_max_pool2d", "fractional_max_pool3d"]

_NEVER = -1e30  # the logarithm of nothing; finite, so that differences of two of them stay numbers


def _lengths(name, lengths, batch):
    lengths = lengths.tolist() if isinstance(lengths, torch.Tensor) else list(lengths) if hasattr(lengths, "__iter__") else [lengths]
    if len(lengths) != batch:
        raise RuntimeError(f"{name} must be of size batch_size")
    return lengths


def _label_rows(targets, lengths, blank):
    """Each sample's labels with blanks before, between and behind: (N, 2 S + 1), filled up with blanks."""
    rows, begin, longest = [], 0, max(lengths, default=0)
    values = targets.tolist()
    for i, length in enumerate(lengths):
        labels = values[i][:length] if targets.dim() == 2 else values[begin:begin + length]
        begin += length
        row = [blank] * (2 * longest + 1)
        row[1:2 * length:2] = labels
        rows.append(row)
    return torch.tensor(rows, dtype=torch.int64).view(len(lengths), 2 * longest + 1)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    """The connectionist temporal classification loss (Graves et al. 2006), by the forward recursion over log_probs (T, N, C) or (T, C).

    As PyTorch's, the gradient is that of a loss of log_softmax's input: exp(log_probs) is added to it.
    """
    if log_probs.dim() not in (2, 3):
        raise RuntimeError("ctc_loss: log_probs must have 2 or 3 dimensions")
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.dim() == 1 else targets
    if not log_probs.is_floating_point():
        raise RuntimeError(f'"ctc_loss" not implemented for {log_probs.dtype}')
    if targets.dtype not in (torch.int64, torch.int32):
        raise RuntimeError("ctc_loss: targets must be of an integer type")
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    input_lengths, target_lengths = _lengths("input_lengths", input_lengths, batch), _lengths("target_lengths", target_lengths, batch)
    for length in input_lengths:
        if not 0 <= length <= steps:
            raise RuntimeError(f"Expected input_lengths to have value at most {steps}, but got value {length} (while checking arguments for "
                               "ctc_loss_cpu)")
    if targets.dim() == 2 and max(target_lengths, default=0) > targets.size(1):
        raise RuntimeError(f"Expected tensor to have size at least {max(target_lengths)} at dimension 1, but got size {targets.size(1)} for argument "
                           "#2 'targets' (while checking arguments for ctc_loss_cpu)")
    if targets.dim() == 1 and sum(target_lengths) != targets.numel():
        raise RuntimeError(f"Expected tensor to have size {sum(target_lengths)} at dimension 0, but got size {targets.numel()} for argument #2 "
                           "'targets' (while checking arguments for ctc_loss_cpu)")
    loss = _negative_log_likelihood(log_probs, _label_rows(targets, target_lengths, blank), input_lengths, target_lengths, blank)
    if zero_infinity:
        loss = torch.where(loss == float("inf"), torch.zeros_like(loss), loss)
    if reduction == 1:
        return (loss / torch.tensor(target_lengths, dtype=loss.dtype).clamp(min=1)).mean()
    if reduction == 2:
        return loss.sum()
    return loss.squeeze(0) if single else loss


def _negative_log_likelihood(log_probs, labels, input_lengths, target_lengths, blank):
    steps, batch, _ = log_probs.shape
    width = labels.size(1)
    emitted = log_probs.gather(2, labels.unsqueeze(0).expand(steps, batch, width))
    never = torch.full((batch, width), _NEVER, dtype=log_probs.dtype)
    skips = torch.zeros(batch, width, dtype=torch.bool)
    if width > 2:
        skips[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    ends = torch.tensor(input_lengths, dtype=torch.int64)
    last = torch.tensor(target_lengths, dtype=torch.int64).unsqueeze(1) * 2
    positions = torch.arange(width).unsqueeze(0)
    alpha = torch.where((positions < 2) & (positions <= last), emitted[0] if steps else never, never)
    for t in range(1, steps):
        one = torch.cat([never[:, :1], alpha[:, :-1]], 1)
        two = torch.cat([never[:, :2], alpha[:, :-2]], 1)[:, :width]
        moved = torch.logsumexp(torch.stack([alpha, one, torch.where(skips, two, never)]), 0) + emitted[t]
        alpha = torch.where((ends > t).unsqueeze(1), moved.clamp(min=_NEVER), alpha)
    final = torch.stack([alpha.gather(1, last).squeeze(1), torch.where(last > 0, alpha.gather(1, (last - 1).clamp(min=0)), never[:, :1]).squeeze(1)])
    likelihood = torch.logsumexp(final, 0)
    used = (torch.arange(steps).view(-1, 1, 1) < ends.view(1, -1, 1)).to(log_probs.dtype)
    total = (log_probs.exp() * used).sum((0, 2))
    loss = torch.where(likelihood < _NEVER / 2, torch.full_like(likelihood, float("inf")), -likelihood)
    if any(length == 0 for length in input_lengths):  # nothing was read: only an empty target fits
        empty = torch.tensor([0.0 if length == 0 else float("inf") for length in target_lengths], dtype=loss.dtype)
        loss = torch.where(ends == 0, empty, loss)
    return loss + (total - total.detach())


def _starts(samples, size, pool, out):
    """Where the windows of one dimension begin: (N, C, out)."""
    if out > 1:
        alpha = (size - pool) / (out - 1)
        steps = torch.arange(out - 1).to(samples.dtype)
        first = ((steps + samples.unsqueeze(-1)) * alpha).long() - (samples * alpha).long().unsqueeze(-1)
        return torch.cat([first, first.new_full((*samples.shape, 1), size - pool)], -1)
    return torch.full((*samples.shape, 1), size - pool, dtype=torch.int64)


def _fractional(name, n, input, kernel_size, output_size, random_samples):
    kernel_size = [kernel_size] * n if isinstance(kernel_size, int) else list(kernel_size)
    output_size = [output_size] * n if isinstance(output_size, int) else list(output_size)
    if len(kernel_size) != n or len(output_size) != n:
        raise RuntimeError(f"{name}: kernel_size and output_size must either be a single int or tuple of {n} ints")
    if input.dim() not in (n + 1, n + 2) or any(size == 0 for size in input.shape[-n - 1:]):
        raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got {list(input.shape)}")
    sizes = list(input.shape[-n:])
    for size, pool, out in zip(sizes, kernel_size, output_size):
        if out + pool - 1 > size:
            raise RuntimeError(f"{name}(): pool size {pool} too large relative to input size {size}")
    single = input.dim() == n + 1
    batch = input.unsqueeze(0) if single else input
    if tuple(random_samples.shape) != (batch.size(0), batch.size(1), n):
        raise RuntimeError(f"Expect _random_samples to have shape {(batch.size(0), batch.size(1), n)}, got {tuple(random_samples.shape)}")
    if random_samples.dtype != input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    index = None
    for d in range(n):
        draw = random_samples[..., n - 1 - d if n == 2 else d]  # in two dimensions the first number is for the width
        places = _starts(draw, sizes[d], kernel_size[d], output_size[d]).unsqueeze(-1) + torch.arange(kernel_size[d])
        shape = [batch.size(0), batch.size(1)] + [1] * (2 * n)
        shape[2 + d], shape[2 + n + d] = output_size[d], kernel_size[d]
        places = places.view(shape)
        index = places if index is None else index * sizes[d] + places
    windows = index.reshape(batch.size(0), batch.size(1), *output_size, math.prod(kernel_size))
    values = batch.flatten(2).gather(2, windows.flatten(2)).view(windows.shape)
    best, where = values.max(-1)
    indices = windows.gather(-1, where.unsqueeze(-1)).squeeze(-1)
    return (best.squeeze(0), indices.squeeze(0)) if single else (best, indices)


def fractional_max_pool2d(input, kernel_size, output_size, random_samples):
    """The maxima over windows that begin at random steps (Graham 2014), and their positions."""
    return _fractional("fractional_max_pool2d", 2, input, kernel_size, output_size, random_samples)


def fractional_max_pool3d(input, kernel_size, output_size, random_samples):
    """The maxima over windows that begin at random steps (Graham 2014), and their positions."""
    return _fractional("fractional_max_pool3d", 3, input, kernel_size, output_size, random_samples)
