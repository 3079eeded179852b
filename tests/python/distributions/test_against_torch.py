"""Every distribution against the real torch: draws for a seed, densities, moments, gradients, errors, text."""

import math
import warnings

import pytest

import msadapter.pytorch as torch

reference = pytest.importorskip("torch")


def params(lib):
    """(name, arguments, keyword arguments) of distributions in `lib`, both libraries alike."""
    t, d = lib.tensor, lib.distributions
    yield "Bernoulli", (), {"probs": t([0.2, 0.5, 0.9])}
    yield "Bernoulli", (), {"logits": t([[0.3], [-1.0]])}
    yield "Bernoulli", (0.3,), {}
    yield "Beta", (t([0.5, 2.0, 7.0]), t([1.5, 0.7, 3.0])), {}
    yield "Beta", (2.0, 3.0), {}
    yield "Binomial", (t([3.0, 40.0, 100.0]),), {"probs": t([0.1, 0.6, 0.5])}
    yield "Binomial", (5,), {"logits": t([0.1, 0.6])}
    yield "Categorical", (t([[0.1, 0.6, 0.3], [1.0, 1.0, 2.0]]),), {}
    yield "Categorical", (), {"logits": t([0.1, -0.6, 2.0, 0.0])}
    yield "Cauchy", (t([0.0, 1.0]), t([1.0, 3.0])), {}
    yield "Chi2", (t([1.0, 5.0]),), {}
    yield "ContinuousBernoulli", (t([0.1, 0.4995, 0.9]),), {}
    yield "ContinuousBernoulli", (), {"logits": t([0.5, -2.0])}
    yield "Dirichlet", (t([[0.5, 2.0, 3.0], [1.0, 1.0, 1.0]]),), {}
    yield "Exponential", (t([0.5, 2.0]),), {}
    yield "Exponential", (1.5,), {}
    yield "FisherSnedecor", (t([3.0, 10.0]), t([5.0, 20.0])), {}
    yield "Gamma", (t([0.5, 1.0, 9.0]), t([2.0, 1.0, 0.5])), {}
    yield "Geometric", (t([0.2, 0.7]),), {}
    yield "Geometric", (), {"logits": t([0.2, -0.7])}
    yield "Gumbel", (t([0.0, 2.0]), t([1.0, 0.5])), {}
    yield "HalfCauchy", (t([1.0, 3.0]),), {}
    yield "HalfNormal", (t([1.0, 3.0]),), {}
    yield "Independent", (d.Normal(t([[0.0, 1.0], [2.0, 3.0]]), t([1.0, 2.0])), 1), {}
    yield "Kumaraswamy", (t([0.7, 2.0]), t([1.5, 3.0])), {}
    yield "LKJCholesky", (3, t([0.5, 2.0])), {}
    yield "Laplace", (t([0.0, 2.0]), t([1.0, 0.5])), {}
    yield "LogNormal", (t([0.0, 2.0]), t([1.0, 0.5])), {}
    yield "LogisticNormal", (t([0.0, 2.0]), t([1.0, 0.5])), {}
    yield "LowRankMultivariateNormal", (t([0.0, 1.0]), t([[1.0], [0.5]]), t([0.5, 2.0])), {}
    yield "MixtureSameFamily", (d.Categorical(t([0.3, 0.7])), d.Normal(t([0.0, 4.0]), t([1.0, 0.5]))), {}
    yield "MixtureSameFamily", (d.Categorical(t([0.3, 0.7])), d.Independent(d.Normal(t([[0.0, 4.0], [1.0, 2.0]]), t([1.0, 0.5])), 1)), {}
    yield "Multinomial", (6, t([[0.3, 0.7, 1.0], [0.2, 0.2, 0.6]])), {}
    yield "MultivariateNormal", (t([0.0, 1.0]), t([[2.0, 0.5], [0.5, 1.0]])), {}
    yield "MultivariateNormal", (t([[0.0, 1.0], [1.0, 2.0]]),), {"precision_matrix": t([[2.0, 0.5], [0.5, 1.0]])}
    yield "MultivariateNormal", (t([0.0, 1.0]),), {"scale_tril": t([[2.0, 0.0], [0.5, 1.0]])}
    yield "NegativeBinomial", (t([3.0, 5.5]), t([0.3, 0.8])), {}
    yield "Normal", (t([0.0, 2.0]), t([1.0, 0.5])), {}
    yield "Normal", (0.0, 1.0), {}
    yield "OneHotCategorical", (t([[0.1, 0.6, 0.3], [1.0, 1.0, 2.0]]),), {}
    yield "OneHotCategoricalStraightThrough", (t([[0.1, 0.6, 0.3], [1.0, 1.0, 2.0]]),), {}
    yield "Pareto", (t([1.0, 2.0]), t([3.0, 5.0])), {}
    yield "Poisson", (t([0.5, 20.0]),), {}
    yield "RelaxedBernoulli", (t([0.5]), t([0.2, 0.9])), {}
    yield "RelaxedOneHotCategorical", (t([0.5]), t([[0.1, 0.6, 0.3], [1.0, 1.0, 2.0]])), {}
    yield "StudentT", (t([1.5, 5.0]), t([0.0, 1.0]), 2.0), {}
    yield "TransformedDistribution", (d.Normal(t([0.0, 1.0]), t([1.0, 2.0])),
                                      [d.AffineTransform(1.0, 2.0), d.SigmoidTransform(), d.AffineTransform(0.0, -3.0)]), {}
    yield "Uniform", (t([0.0, 2.0]), t([1.0, 5.0])), {}
    yield "VonMises", (t([0.0, 2.0]), t([1.0, 5.0])), {}
    yield "Weibull", (t([1.0, 2.0]), t([0.7, 3.0])), {}
    yield "Wishart", (t([3.0, 5.0]), t([[2.0, 0.5], [0.5, 1.0]])), {}


PAIRS = [(name, getattr(torch.distributions, name)(*args, **kwargs), getattr(reference.distributions, name)(*other_args, **other_kwargs))
         for (name, args, kwargs), (_, other_args, other_kwargs) in zip(params(torch), params(reference))]
EACH = pytest.mark.parametrize("name, ours, theirs", PAIRS, ids=[f"{i}-{pair[0]}" for i, pair in enumerate(PAIRS)])
# PyTorch 1.13 takes Wishart's samples for singular when they are not, and draws them anew.
NOT_ITS_NUMBERS = {"Wishart"}


def same(mine, other, rtol=2e-5, atol=2e-6):
    assert tuple(mine.shape) == tuple(other.shape)
    assert str(mine.dtype) == str(other.dtype)
    wanted = torch.from_numpy(other.detach().numpy())
    assert torch.allclose(mine.detach(), wanted, rtol=rtol, atol=atol, equal_nan=True), f"{mine}\n{other}"


def outcome(function):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function()
    except Exception as error:
        return type(error).__name__


def draw(lib, distribution, shape):
    lib.manual_seed(11)
    return distribution.sample(shape)


@EACH
def test_draws_are_pytorch_s_for_a_seed(name, ours, theirs):
    if name in NOT_ITS_NUMBERS:
        assert tuple(ours.sample((3,)).shape) == tuple(theirs.sample((3,)).shape)
        return
    for shape in ((), (3,), (2, 5)):
        same(draw(torch, ours, shape), draw(reference, theirs, shape), rtol=1e-4, atol=1e-5)


@EACH
def test_shapes_and_text(name, ours, theirs):
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape) and tuple(ours.event_shape) == tuple(theirs.event_shape)
    assert ours.has_rsample == theirs.has_rsample and ours.has_enumerate_support == theirs.has_enumerate_support
    assert repr(ours) == repr(theirs)
    assert repr(ours.support) == repr(theirs.support)
    assert sorted(ours.arg_constraints) == sorted(theirs.arg_constraints)


@EACH
@pytest.mark.parametrize("what", ["mean", "variance", "stddev", "mode", "entropy", "perplexity", "enumerate_support"])
def test_moments(name, ours, theirs, what):
    def value(distribution):
        found = getattr(distribution, what)
        return found() if callable(found) else found

    mine, other = outcome(lambda: value(ours)), outcome(lambda: value(theirs))
    if isinstance(other, str):
        assert mine == other
    else:
        same(mine, other, rtol=1e-4, atol=1e-5)


@EACH
def test_densities(name, ours, theirs):
    values = draw(reference, theirs, (4,))
    mine = torch.from_numpy(values.numpy())
    same(ours.log_prob(mine), theirs.log_prob(values), rtol=1e-4, atol=2e-5)
    for what, points in (("cdf", values), ("icdf", reference.rand(values.shape))):
        other = outcome(lambda: getattr(theirs, what)(points))
        got = outcome(lambda: getattr(ours, what)(torch.from_numpy(points.numpy())))
        if isinstance(other, str):
            assert got == other
        else:
            same(got, other, rtol=1e-4, atol=1e-5)


@EACH
def test_expanding(name, ours, theirs):
    shape = (3,) + tuple(theirs.batch_shape)
    mine, other = ours.expand(torch.Size(shape)), theirs.expand(reference.Size(shape))
    assert tuple(mine.batch_shape) == tuple(other.batch_shape)
    assert repr(mine) == repr(other)
    values = draw(reference, theirs, (3,))
    same(mine.log_prob(torch.from_numpy(values.numpy())), other.log_prob(values), rtol=1e-4, atol=2e-5)
    if name not in NOT_ITS_NUMBERS:
        same(draw(torch, mine, (2,)), draw(reference, other, (2,)), rtol=1e-4, atol=1e-5)


def with_gradients(lib, make):
    leaves = []

    def tensor(value):
        leaf = lib.tensor(value, dtype=lib.float64, requires_grad=True)
        leaves.append(leaf)
        return leaf

    lib.manual_seed(5)
    drawn = make(lib.distributions, tensor).rsample((4,))
    (drawn * lib.arange(drawn.numel(), dtype=lib.float64).reshape(drawn.shape)).sum().backward()
    return [leaf.grad for leaf in leaves]


@pytest.mark.parametrize("make", [
    lambda d, t: d.Normal(t([0.0, 1.0]), t([1.0, 2.0])),
    lambda d, t: d.Gamma(t([0.3, 2.0, 30.0]), t([1.0, 2.0, 3.0])),
    lambda d, t: d.Beta(t([0.5, 3.0]), t([2.0, 7.0])),
    lambda d, t: d.Dirichlet(t([[0.5, 3.0, 2.0], [9.0, 20.0, 1.0]])),
    lambda d, t: d.StudentT(t([3.0, 9.0]), t([0.0, 1.0]), t([2.0, 1.0])),
    lambda d, t: d.FisherSnedecor(t([3.0, 9.0]), t([5.0, 6.0])),
    lambda d, t: d.Laplace(t([0.0, 1.0]), t([2.0, 1.0])),
    lambda d, t: d.Cauchy(t([0.0, 1.0]), t([2.0, 1.0])),
    lambda d, t: d.Gumbel(t([0.0, 1.0]), t([2.0, 1.0])),
    lambda d, t: d.Weibull(t([0.5, 1.0]), t([2.0, 1.0])),
    lambda d, t: d.Kumaraswamy(t([0.5, 1.0]), t([2.0, 1.0])),
    lambda d, t: d.MultivariateNormal(t([0.0, 1.0]), t([[2.0, 0.5], [0.5, 1.0]])),
    lambda d, t: d.LowRankMultivariateNormal(t([0.0, 1.0]), t([[2.0], [0.5]]), t([0.5, 1.0])),
    lambda d, t: d.RelaxedBernoulli(t([0.7]), t([0.2, 0.6])),
    lambda d, t: d.RelaxedOneHotCategorical(t([0.7]), t([0.2, 0.6, 0.2])),
    lambda d, t: d.ContinuousBernoulli(t([0.2, 0.6])),
    lambda d, t: d.LogisticNormal(t([0.2, 0.6]), t([1.0, 0.5])),
    lambda d, t: d.Uniform(t([0.2, 0.6]), t([1.0, 1.5])),
])
def test_gradients_of_draws(make):
    for mine, other in zip(with_gradients(torch, make), with_gradients(reference, make)):
        same(mine, other, rtol=2e-3, atol=2e-4)  # PyTorch approximates the gamma's to 1e-3


def every_kl(lib):
    t, d = lib.tensor, lib.distributions
    first = [d.Bernoulli(t([0.3, 0.6])), d.Beta(t([2.0, 1.5]), t([1.0, 3.0])), d.ContinuousBernoulli(t([0.2, 0.7])), d.Exponential(t([0.5, 2.0])),
             d.Gamma(t([1.5, 3.0]), t([2.0, 1.0])), d.Gumbel(t([0.5, 1.0]), t([1.0, 2.0])), d.Laplace(t([0.0, 1.0]), t([1.0, 2.0])),
             d.Normal(t([0.5, 1.0]), t([1.0, 2.0])), d.Pareto(t([1.0, 0.5]), t([3.0, 4.0])), d.Poisson(t([1.0, 4.0])),
             d.Uniform(t([0.1, 0.3]), t([0.9, 0.8])), d.Geometric(t([0.2, 0.6])), d.HalfNormal(t([1.0, 2.0])), d.Cauchy(t([0.0, 1.0]), t([1.0, 2.0])),
             d.Binomial(t([4.0, 4.0]), t([0.2, 0.6])), d.Categorical(t([0.2, 0.8])), d.OneHotCategorical(t([0.5, 0.5])),
             d.Dirichlet(t([0.5, 2.0])), d.MultivariateNormal(t([0.0, 1.0]), t([[2.0, 0.5], [0.5, 1.0]])),
             d.LowRankMultivariateNormal(t([0.0, 1.0]), t([[1.0], [0.5]]), t([0.5, 2.0])), d.LogNormal(t([0.0, 1.0]), t([1.0, 2.0])),
             d.Independent(d.Normal(t([0.0, 1.0]), t([1.0, 2.0])), 1), d.StudentT(t([3.0, 4.0])), d.Wishart(t(3.0), t([[2.0, 0.5], [0.5, 1.0]]))]
    second = [d.Bernoulli(t([0.5, 0.2])), d.Beta(t([1.0, 2.5]), t([2.0, 1.5])), d.ContinuousBernoulli(t([0.6, 0.3])), d.Exponential(t([1.5, 1.0])),
              d.Gamma(t([2.5, 1.0]), t([1.0, 2.0])), d.Gumbel(t([0.0, 2.0]), t([2.0, 1.0])), d.Laplace(t([0.5, 0.0]), t([2.0, 1.0])),
              d.Normal(t([0.0, 2.0]), t([2.0, 1.0])), d.Pareto(t([0.2, 0.1]), t([2.0, 5.0])), d.Poisson(t([2.0, 3.0])),
              d.Uniform(t([-0.5, 0.0]), t([1.5, 2.0])), d.Geometric(t([0.4, 0.3])), d.HalfNormal(t([2.0, 1.0])), d.Cauchy(t([1.0, 0.0]), t([2.0, 1.0])),
              d.Binomial(t([4.0, 3.0]), t([0.5, 0.3])), d.Categorical(t([0.6, 0.4])), d.OneHotCategorical(t([0.1, 0.9])),
              d.Dirichlet(t([1.5, 1.0])), d.MultivariateNormal(t([1.0, 0.0]), t([[1.0, -0.5], [-0.5, 2.0]])),
              d.LowRankMultivariateNormal(t([1.0, 0.0]), t([[0.5], [1.5]]), t([1.5, 1.0])), d.LogNormal(t([1.0, 0.0]), t([2.0, 1.0])),
              d.Independent(d.Normal(t([1.0, 0.0]), t([2.0, 1.0])), 1), d.StudentT(t([5.0, 4.0])), d.Wishart(t(4.0), t([[1.0, 0.2], [0.2, 1.0]]))]
    return [(type(p).__name__, type(q).__name__, outcome(lambda p=p, q=q: d.kl_divergence(p, q))) for p in first for q in second]


def test_divergences_of_all_pairs():
    wrong = []
    for (p, q, mine), (_, _, other) in zip(every_kl(torch), every_kl(reference)):
        if isinstance(other, str) or isinstance(mine, str):
            if type(mine) is not type(other) or mine != other:
                wrong.append((p, q, mine, other))
            continue
        wanted = torch.from_numpy(other.detach().numpy())
        if mine.shape != wanted.shape or not torch.allclose(mine.detach(), wanted, rtol=1e-4, atol=2e-5, equal_nan=True):
            wrong.append((p, q, mine, other))
    assert not wrong


def test_divergences_are_exact_near_zero():
    d = torch.distributions
    p = d.Normal(torch.tensor([3.0]), torch.tensor([1.0]))
    assert float(d.kl_divergence(p, p)) == 0
    assert float(d.kl_divergence(d.Gamma(torch.tensor([3.0]), torch.tensor([2.0])), d.Gamma(torch.tensor([3.0]), torch.tensor([2.0])))) == 0


def test_the_user_s_own_divergence():
    d = torch.distributions

    class Mine(d.Normal):
        pass

    @d.register_kl(Mine, d.Normal)
    def _mine(p, q):
        return torch.tensor(42.0)

    assert float(d.kl_divergence(Mine(0.0, 1.0), d.Normal(0.0, 1.0))) == 42
    assert float(d.kl_divergence(d.Normal(0.0, 1.0), Mine(0.0, 1.0))) == 0
    with pytest.raises(NotImplementedError, match="custom .expand"):
        class Own(d.Normal):
            def __init__(self):
                super().__init__(0.0, 1.0)

        Own().expand([2])


@pytest.mark.parametrize("make", [
    lambda d, t: d.Normal(t([0.0]), t([-1.0])),
    lambda d, t: d.Uniform(t([1.0]), t([0.0])),
    lambda d, t: d.Categorical(t([-1.0, 2.0])),
    lambda d, t: d.Categorical(t(0.5)),
    lambda d, t: d.Bernoulli(),
    lambda d, t: d.Bernoulli(t([0.3]), t([0.1])),
    lambda d, t: d.Bernoulli(t([1.3])),
    lambda d, t: d.Geometric(t([0.0])),
    lambda d, t: d.Normal(t([0.0]), "one"),
    lambda d, t: d.Dirichlet(t(1.0)),
    lambda d, t: d.MultivariateNormal(t([0.0, 1.0])),
    lambda d, t: d.MultivariateNormal(t([0.0, 1.0]), t([[1.0, 2.0], [0.0, 1.0]])),
    lambda d, t: d.MultivariateNormal(t(0.0), t([[1.0]])),
    lambda d, t: d.LKJCholesky(1),
    lambda d, t: d.Multinomial(t([3.0]), t([0.5, 0.5])),
    lambda d, t: d.Wishart(t([1.0]), t([[2.0, 0.5], [0.5, 1.0]])),
    lambda d, t: d.Independent(d.Normal(t([0.0]), t([1.0])), 2),
    lambda d, t: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(t([0.0]), t([1.0]))),
    lambda d, t: d.TransformedDistribution(d.Normal(0.0, 1.0), 3),
    lambda d, t: d.Normal(t([0.0]), t([1.0])).log_prob(3.0),
    lambda d, t: d.Normal(t([0.0, 1.0]), t([1.0])).log_prob(t([0.0, 1.0, 2.0])),
    lambda d, t: d.Exponential(t([1.0])).log_prob(t([-1.0])),
    lambda d, t: d.Categorical(t([0.5, 0.5])).log_prob(t([2.0])),
    lambda d, t: d.Dirichlet(t([0.5, 0.5])).log_prob(t([0.1, 0.2])),
    lambda d, t: d.Binomial(t([2.0, 3.0]), t([0.5, 0.5])).entropy(),
    lambda d, t: d.Normal(t([0.0]), t([1.0])).enumerate_support(),
    lambda d, t: d.Distribution.set_default_validate_args(3),
    lambda d, t: d.kl_divergence(d.Normal(0.0, 1.0), d.StudentT(3.0)),
])
def test_errors(make):
    def text(lib):
        with pytest.raises(Exception) as caught:
            make(lib.distributions, lib.tensor)
        return type(caught.value).__name__

    assert text(torch) == text(reference)


def test_messages_name_the_parameter_and_the_constraint():
    with pytest.raises(ValueError) as mine:
        torch.distributions.Normal(torch.tensor([0.0]), torch.tensor([-1.0]))
    with pytest.raises(ValueError) as other:
        reference.distributions.Normal(reference.tensor([0.0]), reference.tensor([-1.0]))
    assert str(mine.value) == str(other.value)
    assert torch.distributions.Normal(torch.tensor([0.0]), torch.tensor([-1.0]), validate_args=False).stddev.item() == -1


def test_gamma_draws_and_their_gradients():
    """Draws bit by bit; gradients against the difference quotient of the inverse distribution function at its own probabilities."""
    alpha = [0.01, 0.3, 1.0, 4.5, 60.0, 3e4]
    torch.manual_seed(3), reference.manual_seed(3)
    mine = torch._standard_gamma(torch.tensor(alpha))
    assert mine.tolist() == reference._standard_gamma(reference.tensor(alpha)).tolist()
    torch.manual_seed(3), reference.manual_seed(3)
    count, prob = [3.0, 50.0, 1000.0], [0.3, 0.5, 0.9]
    assert torch.binomial(torch.tensor(count), torch.tensor(prob)).tolist() == reference.binomial(reference.tensor(count),
                                                                                              reference.tensor(prob)).tolist()
    a = torch.tensor([0.3, 4.5, 60.0], dtype=torch.float64)
    x = torch.tensor([0.2, 6.0, 55.0], dtype=torch.float64)
    slope = torch._standard_gamma_grad(a, x)
    step = 1e-5 * a  # F(a + h, x + slope h) = F(a - h, x - slope h)
    ahead, behind = torch.igamma(a + step, x + slope * step), torch.igamma(a - step, x - slope * step)
    assert torch.allclose(ahead, behind, rtol=1e-9, atol=0)
    assert math.isnan(float(torch._standard_gamma_grad(torch.tensor(-1.0), torch.tensor(1.0))))
