"""Chi-squared distributions."""

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The distribution of the sum of df squared standard normal variables."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Chi2, _instance)
        batch_shape = torch.Size(batch_shape)
        new.concentration, new.rate = self.concentration.expand(batch_shape), self.rate.expand(batch_shape)
        return super().expand(batch_shape, new)

    @property
    def df(self):
        return self.concentration * 2
