"""Losses. Their `reduction` is 'none', 'mean' or 'sum'; the old arguments size_average and reduce decide where they are given."""

import math

from msadapter import pytorch as torch
from msadapter.pytorch.nn._functional.operators import find, old_reduction, reduced, reduction_code

_nll_loss, _cross_entropy_loss, _ctc_loss = find("nll_loss_nd"), find("cross_entropy_loss"), find("ctc_loss")
_mse_loss, _l1_loss, _smooth_l1_loss, _huber_loss = find("mse_loss"), find("l1_loss"), find("smooth_l1_loss"), find("huber_loss")
_binary_cross_entropy, _binary_cross_entropy_with_logits = find("binary_cross_entropy"), find("binary_cross_entropy_with_logits")
_kl_div, _soft_margin_loss, _multi_margin_loss = find("kl_div"), find("soft_margin_loss"), find("multi_margin_loss")
_multilabel_margin_loss, _poisson_nll_loss = find("multilabel_margin_loss"), find("poisson_nll_loss")
_hinge_embedding_loss, _cosine_embedding_loss = find("hinge_embedding_loss"), find("cosine_embedding_loss")
_margin_ranking_loss, _triplet_margin_loss = find("margin_ranking_loss"), find("triplet_margin_loss")


def _broadcast(input, target):
    """Both in one shape, with the warning that this is seldom meant."""
    import warnings

    warnings.warn(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely lead to "
                  "incorrect results due to broadcasting. Please ensure they have the same size.", stacklevel=3)
    return torch.broadcast_tensors(input, target)


def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """-input[n, target[n]], weighted by class: input (N, C, *) of log-probabilities, target (N, *) of classes."""
    code = reduction_code(reduction, size_average, reduce)
    return _nll_loss(input, target, weight, code, ignore_index)


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    """nll_loss of log_softmax(input): target holds classes (N, *) or probabilities (N, C, *)."""
    code = reduction_code(reduction, size_average, reduce)
    return _cross_entropy_loss(input, target, weight, code, ignore_index, label_smoothing)


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """The connectionist temporal classification loss (Graves et al. 2006): log_probs (T, N, C)."""
    return _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction_code(reduction), zero_infinity)


def poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"):
    """exp(input) - target input if log_input, else input - target log(input + eps); with Stirling's term if full."""
    code = reduction_code(reduction, size_average, reduce)
    return _poisson_nll_loss(input, target, log_input, full, eps, code)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """The negative logarithm of a normal density of mean input and variance var at target, without the constant unless full."""
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = torch.unsqueeze(var, -1)
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    if torch.any(var < 0):
        raise ValueError("var has negative entry/entries")
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction_code(reduction))


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target (log(target) - input), where input holds log-probabilities; 'batchmean' divides the sum by the batch's size."""
    if size_average is not None or reduce is not None:
        reduction = old_reduction(size_average, reduce)
    if reduction == "mean":
        import warnings

        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by the batch "
                      "size, and aligns with the KL div math definition.'mean' will be changed to behave the same as 'batchmean' in the next "
                      "major release.")
    code = 2 if reduction == "batchmean" else reduction_code(reduction)
    result = _kl_div(input, target, code, log_target=log_target)
    return result / input.size(0) if reduction == "batchmean" and input.dim() != 0 else result


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-(target log(input) + (1 - target) log(1 - input)), for input in [0, 1] and target of the same size."""
    code = reduction_code(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. Please ensure "
                         "they have the same size.")
    if weight is not None:
        weight = weight.expand(torch.broadcast_shapes(target.size(), weight.size()))
    return _binary_cross_entropy(input, target, weight, code)


def binary_cross_entropy_with_logits(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
    """binary_cross_entropy of sigmoid(input), computed without overflow."""
    code = reduction_code(reduction, size_average, reduce)
    if not target.size() == input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return _binary_cross_entropy_with_logits(input, target, weight, pos_weight, code)


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """(input - target)^2 / (2 beta) where the difference is below beta, |input - target| - beta / 2 elsewhere."""
    if target.shape != input.shape:
        input, target = _broadcast(input, target)
    return _smooth_l1_loss(input, target, reduction_code(reduction, size_average, reduce), beta)


def huber_loss(input, target, reduction="mean", delta=1.0):
    """(input - target)^2 / 2 where the difference is below delta, delta (|input - target| - delta / 2) elsewhere."""
    if target.shape != input.shape:
        input, target = _broadcast(input, target)
    return _huber_loss(input, target, reduction_code(reduction), delta)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """|input - target|."""
    if target.shape != input.shape:
        input, target = _broadcast(input, target)
    return _l1_loss(input, target, reduction_code(reduction, size_average, reduce))


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """(input - target)^2."""
    code = reduction_code(reduction, size_average, reduce)
    if target.shape != input.shape:
        input, target = _broadcast(input, target)
    return _mse_loss(input, target, code)


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target (input1 - input2) + margin)."""
    code = reduction_code(reduction, size_average, reduce)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: {input1.size()}, input2: "
                           f"{input2.size()}, target: {target.size()} ")
    return _margin_ranking_loss(input1, input2, target, margin, code)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """input where target is 1, max(0, margin - input) where it is -1."""
    return _hinge_embedding_loss(input, target, margin, reduction_code(reduction, size_average, reduce))


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The hinge loss of several classes per sample; target lists them, and ends with -1."""
    return _multilabel_margin_loss(input, target, reduction_code(reduction, size_average, reduce))


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target input))."""
    return _soft_margin_loss(input, target, reduction_code(reduction, size_average, reduce))


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over classes of binary_cross_entropy_with_logits."""
    code = reduction_code(reduction, size_average, reduce)
    log_sigmoid = torch.nn.functional.logsigmoid
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(dim=input.dim() - 1) / input.size(input.dim() - 1), code)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos(input1, input2) where target is 1, max(0, cos(input1, input2) - margin) where it is -1."""
    return _cosine_embedding_loss(input1, input2, target, margin, reduction_code(reduction, size_average, reduce))


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The hinge loss of one class per sample, to the power of p."""
    code = reduction_code(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    return _multi_margin_loss(input, target, p, margin, weight, code)


def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
    """max(0, |anchor - positive| - |anchor - negative| + margin) in the p-norm."""
    return _triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction_code(reduction, size_average, reduce))


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
    """triplet_margin_loss with a distance function of the caller's."""
    if distance_function is None:
        distance_function = torch.nn.functional.pairwise_distance
    to_positive, to_negative = distance_function(anchor, positive), distance_function(anchor, negative)
    if swap:
        to_negative = torch.min(to_negative, distance_function(positive, negative))
    return reduced(torch.clamp(margin + to_positive - to_negative, min=0.0), reduction_code(reduction))
