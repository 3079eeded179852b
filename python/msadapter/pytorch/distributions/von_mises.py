"""Von Mises distributions on the circle."""

import math

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.distribution import Distribution, Parametric
from msadapter.pytorch.distributions.utils import lazy_property

__all__ = ["VonMises"]


class VonMises(Parametric, Distribution):
    """Angles in [-pi, pi) around loc, the denser the higher concentration. Sampled by rejection (Best and Fisher 1979)."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self._broadcast(validate_args, loc=loc, concentration=concentration)
        self._propose()

    def _propose(self):
        tau = 1 + (1 + 4 * self.concentration**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * self.concentration)
        self._proposal_r = (1 + rho**2) / (2 * rho)

    def _expand_more(self, new, batch_shape):
        new._proposal_r = self._proposal_r.expand(batch_shape)

    @property
    def mean(self):
        """The circular mean."""
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        """The circular variance, 1 - I1(concentration) / I0(concentration)."""
        return 1 - torch.special.i1e(self.concentration) / torch.special.i0e(self.concentration)

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            shape = self._extended_shape(sample_shape)
            r, x = self._proposal_r, torch.zeros(shape, dtype=self.loc.dtype, device=self.loc.device)
            done = torch.zeros(shape, dtype=torch.bool, device=self.loc.device)
            while not done.all():
                first, second, third = torch.rand((3,) + shape, dtype=self.loc.dtype, device=self.loc.device).unbind()
                z = torch.cos(math.pi * first)
                f = (1 + r * z) / (r + z)
                c = self.concentration * (r - f)
                accept = ((c * (2 - c) - second) > 0) | ((c / second).log() + 1 - c >= 0)
                x = torch.where(accept, (third - 0.5).sign() * f.acos(), x)
                done = done | accept
            return (x + math.pi + self.loc) % (2 * math.pi) - math.pi

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        log_bessel = torch.special.i0e(self.concentration).log() + self.concentration
        return self.concentration * torch.cos(value - self.loc) - math.log(2 * math.pi) - log_bessel
