"""The base of all distributions, and of those whose parameters broadcast against each other."""

import warnings
from numbers import Number

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution of events of `event_shape`, `batch_shape` of them with parameters of their own.

    validate_args: whether parameters and values are checked against their constraints (ValueError); on unless Python runs with -O.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Whether distributions made from now on check their arguments; ValueError for anything but True and False."""
        if value not in [True, False]:
            raise ValueError(f"set_default_validate_args: expected True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=torch.Size(), event_shape=torch.Size(), validate_args=None):
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self):
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                          "distribution with `validate_args=False` to turn off validation.")
            return
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(vars_of_class(type(self), name), lazy_property):
                continue  # derived from the parameter that was given
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} "
                                 f"to satisfy the constraint {constraint!r}, but found invalid values:\n{value}")

    def expand(self, batch_shape, _instance=None):
        """The distribution with its parameters expanded, as views, to batch_shape."""
        raise NotImplementedError(f"{type(self).__name__}.expand() is not implemented")

    @property
    def batch_shape(self):
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one event."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """Name of each parameter -> its constraint."""
        raise NotImplementedError(f"{type(self).__name__}.arg_constraints is not implemented")

    @property
    def support(self):
        """The constraint that values of the distribution satisfy."""
        raise NotImplementedError(f"{type(self).__name__}.support is not implemented")

    @property
    def mean(self):
        """Means, of batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__}.mean is not implemented")

    @property
    def mode(self):
        """Most probable values, of batch_shape + event_shape."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self):
        """Variances, of batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__}.variance is not implemented")

    @property
    def stddev(self):
        """Standard deviations, of batch_shape + event_shape."""
        return self.variance.sqrt()

    def sample(self, sample_shape=torch.Size()):
        """Draws of shape sample_shape + batch_shape + event_shape, without gradients."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=torch.Size()):
        """Draws that are functions of the parameters, so that gradients flow to them."""
        raise NotImplementedError(f"{type(self).__name__}.rsample() is not implemented")

    def sample_n(self, n):
        """n draws; deprecated, sample((n,)) is the same."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning)
        return self.sample(torch.Size((n,)))

    def log_prob(self, value):
        """Logarithms of the density or mass at value, of value's shape without the event's dimensions."""
        raise NotImplementedError(f"{type(self).__name__}.log_prob() is not implemented")

    def cdf(self, value):
        """Probabilities of at most value."""
        raise NotImplementedError(f"{type(self).__name__}.cdf() is not implemented")

    def icdf(self, value):
        """The values whose cdf is `value`."""
        raise NotImplementedError(f"{type(self).__name__}.icdf() is not implemented")

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution along a new first dimension; expand: over the batch too."""
        raise NotImplementedError(f"{type(self).__name__}.enumerate_support() is not implemented")

    def entropy(self):
        """Entropies in nats, of batch_shape."""
        raise NotImplementedError(f"{type(self).__name__}.entropy() is not implemented")

    def perplexity(self):
        """exp(entropy), of batch_shape."""
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape=torch.Size()):
        return torch.Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value):
        """Raises ValueError where value has a wrong shape or lies outside the support."""
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        events = len(value.size()) - len(self._event_shape)
        if value.size()[events:] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}.")
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.size()), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.size()} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution with "
                          "`validate_args=False` to turn off validation.")
            return
        if not support.check(value).all():
            raise ValueError(f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                             f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}")

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method "
                                      "must also define a custom .expand() method.")
        return type(self).__new__(type(self)) if _instance is None else _instance

    def __repr__(self):
        values = [(name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__]
        return type(self).__name__ + "(" + ", ".join(f"{name}: {v if v.numel() == 1 else v.size()}" for name, v in values) + ")"


def vars_of_class(cls, name):
    """What the class has under `name`, descriptors as they are."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


class Parametric:
    """Mixed into distributions that are made of parameters which broadcast to the batch shape: sets and expands them.

    `_event_dims` tells how many trailing dimensions of each parameter belong to the event.
    """

    _event_dims = 0

    def _broadcast(self, validate_args, **parameters):
        """Sets the parameters, broadcast to one shape, and makes them the batch. Numbers alone make an empty batch shape."""
        values = broadcast_all(*parameters.values())
        self.__dict__.update(zip(parameters, values))
        single = all(isinstance(value, Number) for value in parameters.values())
        self._finish(torch.Size() if single else values[0].size(), torch.Size(), validate_args)

    def _finish(self, batch_shape, event_shape, validate_args):
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        ours = (base for base in type(self).__mro__ if "__init__" in vars(base) and base.__module__.startswith(__package__ + "."))
        new = self._get_checked_instance(next(ours), _instance)
        batch_shape = torch.Size(batch_shape)
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                dims = self._event_dims
                new.__dict__[name] = value.expand(batch_shape + value.shape[value.dim() - dims:])
        self._expand_more(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_more(self, new, batch_shape):
        """What a distribution has beyond its parameters."""


class Chances(Parametric):
    """Mixed into distributions given by either probs or logits; the other one follows when it is asked for."""

    _binary = True  # log odds of one event; otherwise log weights along the last dimension

    def _choose(self, probs, logits):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._given = "logits" if probs is None else "probs"

    @lazy_property
    def logits(self):
        """Log odds, or logarithms of the probabilities."""
        return probs_to_logits(self.probs, is_binary=self._binary)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=self._binary)

    @property
    def _param(self):
        return self.__dict__[self._given]

    @property
    def param_shape(self):
        """The shape of probs and logits."""
        return self._param.size()

    def _expand_more(self, new, batch_shape):
        new._given = self._given
