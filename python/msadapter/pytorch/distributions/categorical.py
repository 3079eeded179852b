"""Categorical distributions."""

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.distribution import Chances, Distribution

__all__ = ["Categorical"]


class Categorical(Chances, Distribution):
    """One of K classes, 0 to K - 1: probs (..., K), which are normalised, or logits (..., K) up to a constant."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _binary = False
    _event_dims = 1

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._choose(probs, logits)
        given = logits if probs is None else probs
        if given.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        self._num_events = given.size()[-1]
        self._finish(given.size()[:-1], torch.Size(), validate_args)

    def _expand_more(self, new, batch_shape):
        super()._expand_more(new, batch_shape)
        new._num_events = self._num_events

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self):
        return torch.full(self._extended_shape(), torch.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mode(self):
        return self.probs.argmax(dim=-1)

    variance = mean

    def sample(self, sample_shape=torch.Size()):
        sample_shape = torch.Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        return torch.multinomial(rows, sample_shape.numel(), True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        return -(torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = torch.arange(self._num_events, dtype=torch.long, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
