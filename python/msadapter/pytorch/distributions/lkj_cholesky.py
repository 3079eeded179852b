"""LKJ distributions of correlation matrices, as Cholesky factors."""

import math

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.beta import Beta
from msadapter.pytorch.distributions.distribution import Distribution
from msadapter.pytorch.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Factors of dim x dim correlation matrices whose density is their determinant to the power concentration - 1.

    Sampled by the onion method (Lewandowski, Kurowicka and Joe 2009). ValueError where dim is below 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration, = broadcast_all(concentration)
        offset = torch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = torch.cat([offset.new_zeros((1,)), offset])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), torch.Size((dim, dim)), validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LKJCholesky, _instance)
        batch_shape = torch.Size(batch_shape)
        new.dim = self.dim
        new.concentration = self.concentration.expand(batch_shape)
        new._beta = self._beta.expand(batch_shape + (self.dim,))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)  # squared length of each row left of the diagonal
            normals = torch.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
            directions = normals / normals.norm(dim=-1, keepdim=True)
            directions[..., 0, :].fill_(0.0)  # the first row has nothing left of the diagonal
            w = torch.sqrt(y) * directions
            diagonal = torch.clamp(1 - torch.sum(w**2, dim=-1), min=torch.finfo(w.dtype).tiny).sqrt()
            return w + torch.diag_embed(diagonal)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        rows = torch.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - rows
        unnormalised = torch.sum(order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log(), dim=-1)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        normaliser = 0.5 * less * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, less) - torch.lgamma(alpha) * less
        return unnormalised - normaliser
