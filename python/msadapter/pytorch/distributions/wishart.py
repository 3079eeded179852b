"""Wishart distributions of positive definite matrices."""

import math
import warnings
from numbers import Number

import msadapter.pytorch as torch
from msadapter.pytorch.distributions import constraints
from msadapter.pytorch.distributions.chi2 import Chi2
from msadapter.pytorch.distributions.exp_family import ExponentialFamily
from msadapter.pytorch.distributions.multivariate_normal import _precision_to_scale_tril
from msadapter.pytorch.distributions.utils import lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x, p):
    """The derivative of mvlgamma(x, p)."""
    return torch.digamma(x.unsqueeze(-1) - torch.arange(p, dtype=x.dtype, device=x.device).div(2)).sum(-1)


class Wishart(ExponentialFamily):
    """Sums of df outer products of normal vectors: matrices (..., D, D), sampled by Bartlett's decomposition.

    df is above D - 1; one of covariance_matrix, precision_matrix, scale_tril (..., D, D) is given.
    """

    arg_constraints = {"covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
                       "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(0)}
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        (name, matrix), = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, Number):
            batch_shape = torch.Size(matrix.shape[:-2])
            self.df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        size = event_shape[-1]
        if self.df.le(size - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.arg_constraints = {**type(self).arg_constraints, "df": constraints.greater_than(size - 1)}
        if self.df.lt(size).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.")
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        else:
            factor = torch.linalg.cholesky if name == "covariance_matrix" else _precision_to_scale_tril
            self._unbroadcasted_scale_tril = factor(matrix)
        self._dist_chi2 = self._diagonal_squares(batch_shape)

    def _diagonal_squares(self, batch_shape):
        """The distributions of the squared diagonal of Bartlett's factor."""
        factor = self._unbroadcasted_scale_tril
        rows = torch.arange(factor.shape[-1], dtype=factor.dtype, device=factor.device).expand(batch_shape + (-1,))
        return Chi2(df=self.df.unsqueeze(-1) - rows)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = torch.Size(batch_shape)
        shape = batch_shape + self.event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(shape)
        new.df = self.df.expand(batch_shape)
        new.arg_constraints = self.arg_constraints
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(shape))
        new._dist_chi2 = new._diagonal_squares(batch_shape)
        ExponentialFamily.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _whole(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.transpose(-2, -1))

    @lazy_property
    def precision_matrix(self):
        return self._whole(torch.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self):
        return self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return factor.masked_fill(factor <= 0, torch.nan).view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self):
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self.df.view(self._batch_shape + (1, 1)) * (covariance.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape=torch.Size()):
        p = self._event_shape[-1]
        diagonal = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = diagonal.clamp(min=torch.finfo(diagonal.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = torch.tril_indices(p, p, offset=-1)
        noise[..., i, j] = torch.randn(torch.Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,), dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.transpose(-2, -1)

    def rsample(self, sample_shape=torch.Size(), max_try_correction=None):
        """Draws with gradients. Those that came out singular by rounding are drawn again, up to max_try_correction (10) times."""
        sample_shape = torch.Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        singular = ~self.support.check(sample)
        for attempt in range(10 if max_try_correction is None else max_try_correction):
            if not singular.any():
                break
            if attempt == 0:
                warnings.warn("Singular sample detected.")
            sample = torch.where(singular[..., None, None], self._bartlett_sampling(sample_shape), sample)
            singular = ~self.support.check(sample)
        return sample

    def _log_det_half(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        df, p = self.df, self._event_shape[-1]
        trace = torch.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return (-df * (p * math.log(2) / 2 + self._log_det_half()) - torch.mvlgamma(df / 2, p=p)
                + (df - p - 1) / 2 * torch.linalg.slogdet(value).logabsdet - trace / 2)

    def entropy(self):
        df, p = self.df, self._event_shape[-1]
        return ((p + 1) * (p * math.log(2) / 2 + self._log_det_half()) + torch.mvlgamma(df / 2, p=p)
                - (df - p - 1) / 2 * _mvdigamma(df / 2, p=p) + df * p / 2)

    @property
    def _natural_params(self):
        return 0.5 * self.df, -0.5 * self.precision_matrix

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        return x * (-torch.linalg.slogdet(-2 * y).logabsdet + math.log(2) * p) + torch.mvlgamma(x, p=p)
