"""Negative binomial distributions."""

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.distribution import Chances, Distribution
from msadapter.pytorch.distributions.gamma import Gamma
from msadapter.pytorch.distributions.utils import broadcast_all, lazy_property
from msadapter.pytorch.nn.functional import logsigmoid

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Chances, Distribution):
    """How many trials succeed, each with probability probs, before total_count have failed."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        self._choose(probs, logits)
        given = logits if probs is None else probs
        self.total_count, given = broadcast_all(total_count, given)
        setattr(self, self._given, given)
        self.total_count = self.total_count.type_as(given)
        self._finish(given.size(), torch.Size(), validate_args)

    @property
    def mean(self):
        return self.total_count * torch.exp(self.logits)

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / torch.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        return Gamma(concentration=self.total_count, rate=torch.exp(-self.logits), validate_args=False)  # rates of 0 overflow to inf

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            return torch.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        unnormalised = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        norm = -torch.lgamma(self.total_count + value) + torch.lgamma(1.0 + value) + torch.lgamma(self.total_count)
        return unnormalised - norm.masked_fill(self.total_count + value == 0.0, 0.0)
