"""Mixtures of distributions of one family."""

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.categorical import Categorical
from msadapter.pytorch.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A Categorical over K classes chooses among the last batch dimension (K) of component_distribution.

    Raises ValueError where the two do not fit.
    """

    arg_constraints = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(f"The Mixture distribution needs to be an instance of Categorical, got {type(mixture_distribution).__name__}")
        if not isinstance(component_distribution, Distribution):
            raise ValueError(f"The Component distribution needs to be an instance of Distribution, got {type(component_distribution).__name__}")
        mixture_batch, component_batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for one, other in zip(reversed(mixture_batch), reversed(component_batch)):
            if one != 1 and other != 1 and one != other:
                raise ValueError(f"`mixture_distribution.batch_shape` ({mixture_batch}) is not compatible with "
                                 f"`component_distribution.batch_shape`({component_batch})")
        k, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if k != components:
            raise ValueError(f"`mixture_distribution component` ({k}) does not equal `component_distribution.batch_shape[-1]` ({components})")
        self._num_component = k
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(component_batch, component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = torch.Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        Distribution.__init__(new, batch_shape, new._component_distribution.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self):
        return self._component_distribution.support

    @property
    def mixture_distribution(self):
        return self._mixture_distribution

    @property
    def component_distribution(self):
        return self._component_distribution

    def _pad(self, x):
        return x.unsqueeze(-1 - self._event_ndims)

    def _weighted(self, values):
        """The mixture's mean of values (*batch, K, *event)."""
        probs = self.mixture_distribution.probs
        return (probs.reshape(probs.shape + (1,) * self._event_ndims) * values).sum(dim=-1 - self._event_ndims)

    @property
    def mean(self):
        return self._weighted(self.component_distribution.mean)

    @property
    def variance(self):
        spread = (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)
        return self._weighted(self.component_distribution.variance) + self._weighted(spread)  # the law of total variance

    def cdf(self, x):
        return (self.component_distribution.cdf(self._pad(x)) * self.mixture_distribution.probs).sum(dim=-1)

    def log_prob(self, x):
        if self._validate_args:
            self._validate_sample(x)
        weights = torch.log_softmax(self.mixture_distribution.logits, dim=-1)
        return torch.logsumexp(self.component_distribution.log_prob(self._pad(x)) + weights, dim=-1)

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            values = self.component_distribution.sample(sample_shape)
            chosen = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1)).expand(chosen.shape + (1,) + self.event_shape)
            return values.gather(dim, chosen).squeeze(dim)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
