"""Continuous Bernoulli distributions."""

import math

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.distribution import Chances
from msadapter.pytorch.distributions.exp_family import ExponentialFamily
from msadapter.pytorch.distributions.utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs
from msadapter.pytorch.nn.functional import binary_cross_entropy_with_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Chances, ExponentialFamily):
    """Values in [0, 1] with a density proportional to probs^x (1 - probs)^(1 - x) (Loaiza-Ganem and Cunningham 2019).

    Between lims the exact formulas, which divide 0 by 0 at 1/2, give way to their Taylor series.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._choose(probs, logits)
        if probs is not None:
            probs, = broadcast_all(probs)
            if (self._validate_args if validate_args is None else validate_args) and not self.arg_constraints["probs"].check(probs).all():
                raise ValueError("The parameter probs has invalid values")
        scalar = isinstance(logits if probs is None else probs, (int, float))
        self._lims = lims
        self._broadcast(validate_args, **{self._given: logits if probs is None or scalar else clamp_probs(probs)})

    def _expand_more(self, new, batch_shape):
        super()._expand_more(new, batch_shape)
        new._lims = self._lims

    def _outside_unstable_region(self):
        return torch.max(torch.le(self.probs, self._lims[0]), torch.gt(self.probs, self._lims[1]))

    def _cut_probs(self):
        return torch.where(self._outside_unstable_region(), self.probs, self._lims[0] * torch.ones_like(self.probs))

    def _log_norm_of(self, probs):
        """Logarithm of the constant 2 artanh(1 - 2 p) / (1 - 2 p)."""
        outside = torch.max(torch.le(probs, self._lims[0]), torch.gt(probs, self._lims[1]))
        cut = torch.where(outside, probs, self._lims[0] * torch.ones_like(probs))
        below = torch.where(torch.le(cut, 0.5), cut, torch.zeros_like(cut))
        above = torch.where(torch.ge(cut, 0.5), cut, torch.ones_like(cut))
        exact = torch.log(torch.abs(torch.log1p(-cut) - torch.log(cut))) - torch.where(
            torch.le(cut, 0.5), torch.log1p(-2.0 * below), torch.log(2.0 * above - 1.0))
        x = torch.pow(probs - 0.5, 2)
        return torch.where(outside, exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    def _cont_bern_log_norm(self):
        return self._log_norm_of(self.probs)

    @property
    def mean(self):
        cut = self._cut_probs()
        exact = cut / (2.0 * cut - 1.0) + 1.0 / (torch.log1p(-cut) - torch.log(cut))
        x = self.probs - 0.5
        return torch.where(self._outside_unstable_region(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * torch.pow(x, 2)) * x)

    @property
    def stddev(self):
        return torch.sqrt(self.variance)

    @property
    def variance(self):
        cut = self._cut_probs()
        exact = cut * (cut - 1.0) / torch.pow(1.0 - 2.0 * cut, 2) + 1.0 / torch.pow(torch.log1p(-cut) - torch.log(cut), 2)
        x = torch.pow(self.probs - 0.5, 2)
        return torch.where(self._outside_unstable_region(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    @lazy_property
    def logits(self):
        return torch.log(clamp_probs(self.probs)) - torch.log1p(-clamp_probs(self.probs))

    @lazy_property
    def probs(self):
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=torch.Size()):
        return self.icdf(torch.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        inside = (torch.pow(cut, value) * torch.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        unbounded = torch.where(self._outside_unstable_region(), inside, value)
        return torch.where(torch.le(value, 0.0), torch.zeros_like(value), torch.where(torch.ge(value, 1.0), torch.ones_like(value), unbounded))

    def icdf(self, value):
        cut = self._cut_probs()
        exact = (torch.log1p(-cut + value * (2.0 * cut - 1.0)) - torch.log1p(-cut)) / (torch.log(cut) - torch.log1p(-cut))
        return torch.where(self._outside_unstable_region(), exact, value)

    def entropy(self):
        return self.mean * (torch.log1p(-self.probs) - torch.log(self.probs)) - self._cont_bern_log_norm() - torch.log1p(-self.probs)

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        outside = torch.max(torch.le(x, self._lims[0] - 0.5), torch.gt(x, self._lims[1] - 0.5))
        cut = torch.where(outside, x, (self._lims[0] - 0.5) * torch.ones_like(x))
        return torch.where(outside, torch.log(torch.abs(torch.exp(cut) - 1.0)) - torch.log(torch.abs(cut)),
                           0.5 * x + torch.pow(x, 2) / 24.0 - torch.pow(x, 4) / 2880.0)
