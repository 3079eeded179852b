"""Probability distributions with samples, densities and divergences that gradients flow through: `torch.distributions`."""

from msadapter.pytorch.distributions import constraints, transforms  # noqa: F401
from msadapter.pytorch.distributions.bernoulli import Bernoulli
from msadapter.pytorch.distributions.beta import Beta
from msadapter.pytorch.distributions.binomial import Binomial
from msadapter.pytorch.distributions.categorical import Categorical
from msadapter.pytorch.distributions.cauchy import Cauchy
from msadapter.pytorch.distributions.chi2 import Chi2
from msadapter.pytorch.distributions.constraint_registry import biject_to, transform_to
from msadapter.pytorch.distributions.continuous_bernoulli import ContinuousBernoulli
from msadapter.pytorch.distributions.dirichlet import Dirichlet
from msadapter.pytorch.distributions.distribution import Distribution
from msadapter.pytorch.distributions.exp_family import ExponentialFamily
from msadapter.pytorch.distributions.exponential import Exponential
from msadapter.pytorch.distributions.fishersnedecor import FisherSnedecor
from msadapter.pytorch.distributions.gamma import Gamma
from msadapter.pytorch.distributions.geometric import Geometric
from msadapter.pytorch.distributions.gumbel import Gumbel
from msadapter.pytorch.distributions.half_cauchy import HalfCauchy
from msadapter.pytorch.distributions.half_normal import HalfNormal
from msadapter.pytorch.distributions.independent import Independent
from msadapter.pytorch.distributions.kl import kl_divergence, register_kl
from msadapter.pytorch.distributions.kumaraswamy import Kumaraswamy
from msadapter.pytorch.distributions.laplace import Laplace
from msadapter.pytorch.distributions.lkj_cholesky import LKJCholesky
from msadapter.pytorch.distributions.log_normal import LogNormal
from msadapter.pytorch.distributions.logistic_normal import LogisticNormal
from msadapter.pytorch.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from msadapter.pytorch.distributions.mixture_same_family import MixtureSameFamily
from msadapter.pytorch.distributions.multinomial import Multinomial
from msadapter.pytorch.distributions.multivariate_normal import MultivariateNormal
from msadapter.pytorch.distributions.negative_binomial import NegativeBinomial
from msadapter.pytorch.distributions.normal import Normal
from msadapter.pytorch.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from msadapter.pytorch.distributions.pareto import Pareto
from msadapter.pytorch.distributions.poisson import Poisson
from msadapter.pytorch.distributions.relaxed_bernoulli import RelaxedBernoulli
from msadapter.pytorch.distributions.relaxed_categorical import RelaxedOneHotCategorical
from msadapter.pytorch.distributions.studentT import StudentT
from msadapter.pytorch.distributions.transformed_distribution import TransformedDistribution
from msadapter.pytorch.distributions.uniform import Uniform
from msadapter.pytorch.distributions.von_mises import VonMises
from msadapter.pytorch.distributions.weibull import Weibull
from msadapter.pytorch.distributions.wishart import Wishart
from msadapter.pytorch.distributions.transforms import *  # noqa: F403

__all__ = ["Bernoulli", "Beta", "Binomial", "Categorical", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Distribution",
           "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal",
           "Independent", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal",
           "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
           "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "RelaxedBernoulli", "RelaxedOneHotCategorical", "StudentT",
           "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart", "biject_to", "kl_divergence", "register_kl",
           "transform_to"]
__all__ += transforms.__all__
