"""Distributions of transformed values."""

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.distribution import Distribution
from msadapter.pytorch.distributions.independent import Independent
from msadapter.pytorch.distributions.transforms import ComposeTransform, Transform
from msadapter.pytorch.distributions.utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """What comes of values of base_distribution under one or more transforms, applied in order.

    Raises ValueError where the base's shapes do not fit the transforms' domain or something else than transforms is given.
    """

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list) and all(isinstance(t, Transform) for t in transforms):
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list of Transforms; was {transforms}")
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_events = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError(f"base_distribution needs to have shape with size at least {transform.domain.event_dim}, but got {base_shape}.")
        forward_shape = transform.forward_shape(base_shape)
        expanded = transform.inverse_shape(forward_shape)
        if base_shape != expanded:
            base_distribution = base_distribution.expand(expanded[:len(expanded) - base_events])
        reinterpreted = transform.domain.event_dim - base_events
        if reinterpreted > 0:
            base_distribution = Independent(base_distribution, reinterpreted)
        self.base_dist = base_distribution
        events = transform.codomain.event_dim + max(base_events - transform.domain.event_dim, 0)
        cut = len(forward_shape) - events
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(TransformedDistribution, _instance)
        new.transforms = self.transforms
        batch_shape = torch.Size(batch_shape)
        inverse = self.transforms
        shape = batch_shape + self.event_shape
        for t in reversed(inverse):
            shape = t.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[:len(shape) - len(self.base_dist.event_shape)])
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self.event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    def _transformed(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=torch.Size()):
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        events = len(self.event_shape)
        result = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            events += transform.domain.event_dim - transform.codomain.event_dim
            result = result - _sum_rightmost(transform.log_abs_det_jacobian(x, y), events - transform.domain.event_dim)
            y = x
        return result + _sum_rightmost(self.base_dist.log_prob(y), events - len(self.base_dist.event_shape))

    def _turned(self, value):
        """A probability counted from the other side where the transforms fall."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._transformed(self.base_dist.icdf(self._turned(value)))
