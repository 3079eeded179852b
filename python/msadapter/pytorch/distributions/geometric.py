"""Geometric distributions."""

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.distribution import Chances, Distribution
from msadapter.pytorch.distributions.utils import broadcast_all
from msadapter.pytorch.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Geometric"]


class Geometric(Chances, Distribution):
    """How many trials fail before the first that succeeds with probability probs. ValueError where probs is 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._choose(probs, logits)
        self._broadcast(validate_args, **{self._given: logits if probs is None else probs})
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            invalid = self.probs[~(self.probs > 0)]
            raise ValueError(f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of distribution {self!r} "
                             f"to be positive but found invalid values:\n{invalid}")

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def mode(self):
        return torch.zeros_like(self.probs)

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            u = torch.empty(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
            u.uniform_(torch.finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
