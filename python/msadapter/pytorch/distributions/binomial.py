"""Binomial distributions."""

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.distribution import Chances, Distribution
from msadapter.pytorch.distributions.utils import broadcast_all

__all__ = ["Binomial"]


def _positive_part(x):
    """max(x, 0), with the gradient 1/2 at 0."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(Chances, Distribution):
    """How many of total_count trials succeed, each with probability probs (log odds: logits)."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        self._choose(probs, logits)
        given = logits if probs is None else probs
        self.total_count, given = broadcast_all(total_count, given)
        setattr(self, self._given, given)
        self.total_count = self.total_count.type_as(given)
        self._finish(given.size(), torch.Size(), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        ways = torch.lgamma(self.total_count + 1) - torch.lgamma(value + 1) - torch.lgamma(self.total_count - value + 1)
        # log(1 + exp(logits)) as max(logits, 0) + log1p(exp(-|logits|))
        normaliser = _positive_part(self.logits) + torch.log1p(torch.exp(-torch.abs(self.logits)))
        return value * self.logits + ways - self.total_count * normaliser

    def entropy(self):
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = torch.arange(1 + total, dtype=self._param.dtype, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
