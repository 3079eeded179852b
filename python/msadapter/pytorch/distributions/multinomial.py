"""Multinomial distributions."""

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.binomial import Binomial
from msadapter.pytorch.distributions.categorical import Categorical
from msadapter.pytorch.distributions.distribution import Distribution
from msadapter.pytorch.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each of K classes comes up in total_count (an int) draws: probs or logits (..., K)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Multinomial, _instance)
        batch_shape = torch.Size(batch_shape)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = Binomial(total_count=self.total_count, probs=new.probs)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def logits(self):
        return self._categorical.logits

    @property
    def probs(self):
        return self._categorical.probs

    @property
    def param_shape(self):
        return self._categorical.param_shape

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=torch.Size()):
        sample_shape = torch.Size(sample_shape)
        drawn = self._categorical.sample(torch.Size((self.total_count,)) + sample_shape).movedim(0, -1)
        counts = torch.zeros(self._extended_shape(sample_shape), dtype=drawn.dtype, device=drawn.device)
        return counts.scatter_add_(-1, drawn, torch.ones_like(drawn)).type_as(self.probs)

    def entropy(self):
        n = torch.tensor(self.total_count)
        inner = self._binomial.enumerate_support(expand=False)[1:]
        weights = torch.exp(self._binomial.log_prob(inner))
        return n * self._categorical.entropy() - torch.lgamma(n + 1) + (weights * torch.lgamma(inner + 1)).sum([0, -1])

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -torch.inf), 0)
        return torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)
