"""Student's t distributions."""

import math

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.chi2 import Chi2
from msadapter.pytorch.distributions.distribution import Distribution, Parametric
from msadapter.pytorch.distributions.utils import _standard_normal

__all__ = ["StudentT"]


class StudentT(Parametric, Distribution):
    """Student's t with df degrees of freedom, shifted by loc and scaled."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self._broadcast(validate_args, df=df, loc=loc, scale=scale)
        self._chi2 = Chi2(self.df)

    def _expand_more(self, new, batch_shape):
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self):
        return self.loc.masked_fill(self.df <= 1, torch.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        exists = self.scale.pow(2) * self.df / (self.df - 2)
        infinite = torch.where(self.df > 1, torch.inf, torch.full_like(self.df, torch.nan))
        return torch.where(self.df > 2, exists, infinite)

    def rsample(self, sample_shape=torch.Size()):
        normal = _standard_normal(self._extended_shape(sample_shape), dtype=self.df.dtype, device=self.df.device)
        return self.loc + self.scale * (normal * torch.rsqrt(self._chi2.rsample(sample_shape) / self.df))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        norm = (self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + torch.lgamma(0.5 * self.df)
                - torch.lgamma(0.5 * (self.df + 1.0)))
        return -0.5 * (self.df + 1.0) * torch.log1p(y**2.0 / self.df) - norm

    def entropy(self):
        beta = torch.lgamma(0.5 * self.df) + math.lgamma(0.5) - torch.lgamma(0.5 * (self.df + 1))
        return (self.scale.log() + 0.5 * (self.df + 1) * (torch.digamma(0.5 * (self.df + 1)) - torch.digamma(0.5 * self.df))
                + 0.5 * self.df.log() + beta)
