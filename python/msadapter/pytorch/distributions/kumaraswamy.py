"""Kumaraswamy distributions."""

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.transformed_distribution import TransformedDistribution
from msadapter.pytorch.distributions.transforms import AffineTransform, PowerTransform
from msadapter.pytorch.distributions.uniform import Uniform
from msadapter.pytorch.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moments(a, b, n):
    """The n-th moment, b B(1 + n / a, b)."""
    first = 1 + n / a
    return b * torch.exp(torch.lgamma(first) + torch.lgamma(b) - torch.lgamma(first + b))


class Kumaraswamy(TransformedDistribution):
    """(1 - u^(1 / concentration0))^(1 / concentration1) of a uniform u: like the beta distribution, in closed form."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(torch.full_like(self.concentration0, 0), torch.full_like(self.concentration0, 1), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration0.reciprocal()), AffineTransform(loc=1.0, scale=-1.0),
                      PowerTransform(exponent=self.concentration1.reciprocal())]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Kumaraswamy, _instance)
        for name in self.arg_constraints:
            setattr(new, name, getattr(self, name).expand(batch_shape))
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self):
        return _moments(self.concentration1, self.concentration0, 1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        logarithm = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return logarithm.masked_fill((b < 1) | (a < 1), torch.nan).exp()

    @property
    def variance(self):
        return _moments(self.concentration1, self.concentration0, 2) - torch.pow(self.mean, 2)

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = torch.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - torch.log(a) - torch.log(b)
