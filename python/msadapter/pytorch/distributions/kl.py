"""Kullback-Leibler divergences: `kl_divergence(p, q)` finds the function registered for the types of p and q.

Two distributions of one family have formulas of their own. For different families KL(p || q) = -H(p) - E_p[log q], and E_p[log q] needs no more of
p than its mean, its variance, E[log x], E[log(1 - x)] or E[exp(-x / s)]: those are listed by p, the expected log densities by q.
"""

import math
import warnings

import msadapter.pytorch as torch
from msadapter.pytorch.distributions.bernoulli import Bernoulli
from msadapter.pytorch.distributions.beta import Beta
from msadapter.pytorch.distributions.binomial import Binomial
from msadapter.pytorch.distributions.categorical import Categorical
from msadapter.pytorch.distributions.cauchy import Cauchy
from msadapter.pytorch.distributions.continuous_bernoulli import ContinuousBernoulli
from msadapter.pytorch.distributions.dirichlet import Dirichlet
from msadapter.pytorch.distributions.distribution import Distribution
from msadapter.pytorch.distributions.exp_family import ExponentialFamily
from msadapter.pytorch.distributions.exponential import Exponential
from msadapter.pytorch.distributions.gamma import Gamma
from msadapter.pytorch.distributions.geometric import Geometric
from msadapter.pytorch.distributions.gumbel import Gumbel
from msadapter.pytorch.distributions.half_normal import HalfNormal
from msadapter.pytorch.distributions.independent import Independent
from msadapter.pytorch.distributions.laplace import Laplace
from msadapter.pytorch.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal, _batch_lowrank_mahalanobis)
from msadapter.pytorch.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from msadapter.pytorch.distributions.normal import Normal
from msadapter.pytorch.distributions.one_hot_categorical import OneHotCategorical
from msadapter.pytorch.distributions.pareto import Pareto
from msadapter.pytorch.distributions.poisson import Poisson
from msadapter.pytorch.distributions.transformed_distribution import TransformedDistribution
from msadapter.pytorch.distributions.uniform import Uniform
from msadapter.pytorch.distributions.utils import _sum_rightmost, euler_constant
from msadapter.pytorch.nn.functional import softplus

__all__ = ["register_kl", "kl_divergence"]

_REGISTRY = {}  # (type of p, type of q) -> function
_FOUND = {}  # what dispatch has answered


def register_kl(type_p, type_q):
    """A decorator: the function computes KL(p || q) for p and q of these types and of classes derived from them.

    Raises TypeError unless both are classes of distributions.
    """
    for name, cls in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(cls, type) or not issubclass(cls, Distribution):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {cls}")

    def decorator(function):
        _REGISTRY[type_p, type_q] = function
        _FOUND.clear()
        return function

    return decorator


def _more_specific(one, other):
    """Whether one pair comes before the other: the first types that differ decide."""
    for a, b in zip(one, other):
        if a is not b:
            return issubclass(a, b)
    return True


def _most_specific(pairs):
    best = pairs[0]
    for pair in pairs[1:]:
        if _more_specific(pair, best):
            best = pair
    return best


def _dispatch_kl(type_p, type_q):
    """The most specific function for the types, or NotImplemented. Warns where p and q would choose differently."""
    fits = [(p, q) for p, q in _REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not fits:
        return NotImplemented
    left = _most_specific(fits)
    right = _most_specific([(q, p) for p, q in fits])[::-1]
    if _REGISTRY[left] is not _REGISTRY[right]:
        warnings.warn(f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
                      f"Please register_kl({left[0].__name__}, {right[1].__name__})", RuntimeWarning)
    return _REGISTRY[left]


def kl_divergence(p, q):
    """KL(p || q) in nats, of the batch shape of p and q. NotImplementedError where nothing is registered for their types."""
    key = type(p), type(q)
    if key not in _FOUND:
        _FOUND[key] = _dispatch_kl(*key)
    if _FOUND[key] is NotImplemented:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {key[0].__name__} and q type {key[1].__name__}")
    return _FOUND[key](p, q)


def _unless(result, condition):
    """`result`, inf where the condition holds."""
    return result.masked_fill(condition.expand_as(result), torch.inf)


# Two of one family.


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = _unless(one, q.probs == 0).masked_fill(p.probs == 0, 0)
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return one + _unless(zero, q.probs == 1).masked_fill(p.probs == 1, 0)


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    result = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return _unless(result, p.total_count > q.total_count)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    terms = _unless(terms, q.probs == 0)
    return terms.masked_fill((p.probs == 0).expand_as(terms), 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    """Chyzak and Nielsen 2019."""
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    constants = p._cont_bern_log_norm() + torch.log1p(-p.probs) - q._cont_bern_log_norm() - torch.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + constants


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    p_total, q_total = p.concentration.sum(-1), q.concentration.sum(-1)
    logs = (p.concentration.digamma() - p_total.digamma().unsqueeze(-1))
    return (p_total.lgamma() - q_total.lgamma() + (q.concentration.lgamma() - p.concentration.lgamma()).sum(-1)
            + ((p.concentration - q.concentration) * logs).sum(-1))


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """The Bregman divergence of the log normaliser (Nielsen and Nock 2010)."""
    if type(p) is not type(q):
        raise NotImplementedError(f"kl_divergence: no formula for {type(p).__name__} and {type(q).__name__}, two different exponential families")
    p_naturals = [natural.detach().requires_grad_() for natural in p._natural_params]
    normaliser = p._log_normalizer(*p_naturals)
    gradients = torch.autograd.grad(normaliser.sum(), p_naturals, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normaliser
    for p_natural, q_natural, gradient in zip(p_naturals, q._natural_params, gradients):
        result = result - _sum_rightmost((q_natural - p_natural) * gradient, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    return (q.concentration * (p.rate / q.rate).log() + q.concentration.lgamma() - p.concentration.lgamma()
            + (p.concentration - q.concentration) * p.concentration.digamma() + (q.rate - p.rate) * (p.concentration / p.rate))


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return -ratio.log() - shift + ratio * euler_constant + torch.exp(shift + (1 + ratio).lgamma()) - (1 + euler_constant)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    distance = (p.loc - q.loc).abs()
    return -(p.scale / q.scale).log() + distance / q.scale + p.scale / q.scale * torch.exp(-distance / p.scale) - 1


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    return _unless(q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1, p.scale < q.scale)


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    return _unless(((q.high - q.low) / (p.high - p.low)).log(), (q.low > p.low) | (q.high < p.high))


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("kl_divergence: transformed distributions need the same transforms and event shapes")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("kl_divergence: Independent distributions need the same reinterpreted_batch_ndims")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# Normal vectors: 2 KL = log|Q| - log|P| + tr(Q^-1 P) + distance - n, each term by how the covariances are given.


def _factors(d):
    """Matrices whose products with their transposes add up to the covariance."""
    if isinstance(d, MultivariateNormal):
        return [d._unbroadcasted_scale_tril]
    return [d._unbroadcasted_cov_factor, torch.diag_embed(d._unbroadcasted_cov_diag.sqrt())]


def _log_det(d):
    return 2 * d._half_log_det() if isinstance(d, MultivariateNormal) else d._log_det()


def _squares(matrix):
    return matrix.pow(2).sum((-2, -1))


def _trace_of_quotient(q, factor):
    """tr(Q^-1 F F^T)."""
    if isinstance(q, MultivariateNormal):
        batch = torch.broadcast_shapes(q._unbroadcasted_scale_tril.shape[:-2], factor.shape[:-2])
        tril = q._unbroadcasted_scale_tril.expand(batch + q._unbroadcasted_scale_tril.shape[-2:])
        return _squares(torch.linalg.solve_triangular(tril, factor.expand(batch + factor.shape[-2:]), upper=False))
    scaled = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    half = torch.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)
    return _squares(factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)) - _squares(half.matmul(factor))


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _normal_vectors(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(f"kl_divergence: normal distributions with different event shapes, {p.event_shape} and {q.event_shape}")
    if isinstance(q, MultivariateNormal):
        distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    else:
        distance = _batch_lowrank_mahalanobis(q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q.loc - p.loc, q._capacitance_tril)
    trace = sum(_trace_of_quotient(q, factor) for factor in _factors(p))
    return 0.5 * (_log_det(q) - _log_det(p) + trace + distance - p.event_shape[0])


# Different families: what is known of p ...


def _x_log_x(x):
    return x * x.log()


def _mean_log(p):
    """E[log x]."""
    if isinstance(p, Uniform):
        return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return p.concentration.digamma() - p.rate.log() if isinstance(p, Gamma) else -euler_constant - p.rate.log()


def _mean_exp(p, s):
    """E[exp(-x / s)]."""
    if isinstance(p, Normal):
        return torch.exp(-p.loc / s + 0.5 * (p.scale / s).pow(2))
    if isinstance(p, Uniform):
        return s / (p.high - p.low) * (torch.exp(-p.low / s) - torch.exp(-p.high / s))
    shape = p.concentration if isinstance(p, Gamma) else 1
    return (1 + (p.rate * s).reciprocal()) ** -shape


# ... and E_p[log q] by q.


def _under_beta(p, q):
    complement = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high)) / (p.high - p.low) - 1  # E[log(1 - x)] of a uniform p
    constant = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    return (q.concentration1 - 1) * _mean_log(p) + (q.concentration0 - 1) * complement - constant


def _under_continuous_bernoulli(p, q):
    return p.mean * q.logits + torch.log1p(-q.probs) + q._cont_bern_log_norm()


def _under_exponential(p, q):
    return q.rate.log() - q.rate * p.mean


def _under_gamma(p, q):
    return q.concentration * q.rate.log() - q.concentration.lgamma() + (q.concentration - 1) * _mean_log(p) - q.rate * p.mean


def _under_gumbel(p, q):
    return -q.scale.log() - (p.mean - q.loc) / q.scale - torch.exp(q.loc / q.scale) * _mean_exp(p, q.scale)


def _under_normal(p, q):
    return -q.scale.log() - 0.5 * math.log(2 * math.pi) - (p.variance + (p.mean - q.loc).pow(2)) / (2 * q.scale.pow(2))


def _under_pareto(p, q):
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)


def _under_uniform(p, q):
    return -(q.high - q.low).log()


# q -> (E_p[log q], the families p that it is known for, those whose values q does not all allow).
_CROSS = {
    Beta: (_under_beta, [Uniform], [Exponential, Gamma, Gumbel, Laplace, Normal, Pareto]),
    ContinuousBernoulli: (_under_continuous_bernoulli, [Beta, Uniform], [Exponential, Gamma, Gumbel, Laplace, Normal, Pareto]),
    Exponential: (_under_exponential, [Beta, ContinuousBernoulli, Gamma, Pareto, Uniform], [Gumbel, Laplace, Normal]),
    Gamma: (_under_gamma, [Beta, Exponential, Pareto, Uniform], [Gumbel, Laplace, Normal]),
    Gumbel: (_under_gumbel, [Exponential, Gamma, Normal, Uniform], []),
    Normal: (_under_normal, [Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform], []),
    Pareto: (_under_pareto, [Uniform], [Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal]),
    Uniform: (_under_uniform, [Beta, ContinuousBernoulli], [Exponential, Gamma, Gumbel, Laplace, Normal, Pareto]),
}


def _outside(p, q):
    """Where p has values that q does not allow; None where that cannot be."""
    if isinstance(p, ContinuousBernoulli) and isinstance(q, Uniform):
        return (q.low >= 0) | (q.high <= 1)  # PyTorch's reading, which counts the ends as outside
    if isinstance(p, Beta) and isinstance(q, Uniform):
        return (q.low > 0) | (q.high < 1)
    if isinstance(p, Uniform) and isinstance(q, ContinuousBernoulli):
        return (p.high >= 1) | (p.low <= 0)
    if isinstance(p, Uniform) and isinstance(q, Beta):
        return (p.high > 1) | (p.low < 0)
    if isinstance(p, Uniform) and isinstance(q, (Exponential, Gamma)):
        return p.low < 0
    if isinstance(p, Uniform) and isinstance(q, Pareto):
        return p.low < q.scale
    return None


def _by_moments(expected_log):
    def function(p, q):
        result = -p.entropy() - expected_log(p, q)
        outside = _outside(p, q)
        return result if outside is None else _unless(result, outside)

    return function


def _infinite(p, q):
    return torch.full_like(p.mean + torch.zeros_like(q.mean), torch.inf)


for _q, (_expected_log, _known, _never) in _CROSS.items():
    for _p in _known:
        register_kl(_p, _q)(_by_moments(_expected_log))
    for _p in _never:
        register_kl(_p, _q)(_infinite)
register_kl(Poisson, Bernoulli)(_infinite)
register_kl(Poisson, Binomial)(_infinite)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    z = (p.loc - q.loc) / p.scale
    distance = p.scale * (math.sqrt(2 / math.pi) * torch.exp(-0.5 * z.pow(2)) + z * torch.erf(math.sqrt(0.5) * z))  # E|x - loc|
    return (2 * q.scale).log() + distance / q.scale - p.entropy()
