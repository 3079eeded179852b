"""Exponential families: densities of the form exp(<natural parameters, sufficient statistics> - log normaliser) * carrier measure."""

import msadapter.pytorch as torch
from msadapter.pytorch.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution whose entropy follows from its log normaliser by automatic differentiation (Nielsen and Nock 2010)."""

    @property
    def _natural_params(self):
        raise NotImplementedError(f"{type(self).__name__} names no natural parameters")

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError(f"{type(self).__name__} names no log normaliser")

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError(f"{type(self).__name__} names no carrier measure")

    def entropy(self):
        """Log normaliser - <natural parameters, its gradient> - mean carrier measure."""
        naturals = [p.detach().requires_grad_() for p in self._natural_params]
        log_normalizer = self._log_normalizer(*naturals)
        gradients = torch.autograd.grad(log_normalizer.sum(), naturals, create_graph=True)
        result = log_normalizer - self._mean_carrier_measure
        for natural, gradient in zip(naturals, gradients):
            result = result - (natural * gradient).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
