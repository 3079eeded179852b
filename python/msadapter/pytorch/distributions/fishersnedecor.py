"""Fisher-Snedecor distributions."""

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.distribution import Distribution, Parametric
from msadapter.pytorch.distributions.gamma import Gamma

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Parametric, Distribution):
    """The F distribution: the ratio of two chi-squared variables, each over its degrees of freedom df1 and df2."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        self._broadcast(validate_args, df1=df1, df2=df2)
        self._gamma1, self._gamma2 = Gamma(self.df1 * 0.5, self.df1), Gamma(self.df2 * 0.5, self.df2)

    def _expand_more(self, new, batch_shape):
        new._gamma1, new._gamma2 = self._gamma1.expand(batch_shape), self._gamma2.expand(batch_shape)

    @property
    def mean(self):
        df2 = self.df2.masked_fill(self.df2 <= 2, torch.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self):
        return ((self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)).masked_fill(self.df1 <= 2, torch.nan)

    @property
    def variance(self):
        df2 = self.df2.masked_fill(self.df2 <= 4, torch.nan)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape=torch.Size(())):
        shape = self._extended_shape(sample_shape)
        above, below = self._gamma1.rsample(sample_shape).view(shape), self._gamma2.rsample(sample_shape).view(shape)
        tiny = torch.finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        constant = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        return constant + half1 * ratio.log() + (half1 - 1) * torch.log(value) - (half1 + half2) * torch.log1p(ratio * value)
