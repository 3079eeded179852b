"""Transforms and constraints against the real torch: values, inverses, Jacobians, shapes, caches, registries."""

import pickle

import pytest

import msadapter.pytorch as torch

reference = pytest.importorskip("torch")


def transforms(lib):
    """(transform, a tensor of its domain) in `lib`, both libraries alike."""
    d, t = lib.distributions, lib.tensor
    x = t([[0.3, -1.2, 0.8], [2.0, 0.1, -0.4]])
    positive = x.abs() + 0.1
    yield d.ExpTransform(), x
    yield d.AbsTransform(), x
    yield d.SigmoidTransform(), x
    yield d.SoftplusTransform(), x
    yield d.TanhTransform(), x
    yield d.PowerTransform(t(2.5)), positive
    yield d.AffineTransform(1.0, -2.0), x
    yield d.AffineTransform(t([1.0, 2.0, 3.0]), t([1.0, -1.0, 2.0]), event_dim=1), x
    yield d.SoftmaxTransform(), x
    yield d.StickBreakingTransform(), x
    yield d.LowerCholeskyTransform(), t([[0.3, 1.0], [-0.5, 0.2]])
    yield d.CorrCholeskyTransform(), x
    yield d.ReshapeTransform((3,), (3, 1)), x
    yield d.IndependentTransform(d.ExpTransform(), 1), x
    yield d.ComposeTransform([d.AffineTransform(0.0, 2.0), d.SigmoidTransform()]), x
    yield d.ComposeTransform([d.ExpTransform(), d.IndependentTransform(d.AffineTransform(1.0, 2.0), 1)]), x
    yield d.CatTransform([d.ExpTransform(), d.SigmoidTransform()], dim=-1, lengths=[1, 2]), x
    yield d.StackTransform([d.ExpTransform(), d.SigmoidTransform()], dim=0), x
    yield d.CumulativeDistributionTransform(d.Normal(0.0, 1.0)), x
    yield d.ExpTransform().inv, positive
    yield d.identity_transform, x


PAIRS = [(type(mine).__name__, mine, x, other, y) for (mine, x), (other, y) in zip(transforms(torch), transforms(reference))]
EACH = pytest.mark.parametrize("name, mine, x, other, y", PAIRS, ids=[f"{i}-{pair[0]}" for i, pair in enumerate(PAIRS)])


def same(a, b, tolerance=1e-5):
    assert tuple(a.shape) == tuple(b.shape)
    assert torch.allclose(a, torch.from_numpy(b.detach().numpy()), rtol=tolerance, atol=tolerance)


@EACH
def test_values_inverses_and_jacobians(name, mine, x, other, y):
    forward, wanted = mine(x), other(y)
    same(forward, wanted)
    same(mine.inv(forward), other.inv(wanted), 1e-4)
    if name not in ("AbsTransform", "SoftmaxTransform", "LowerCholeskyTransform"):
        same(mine.log_abs_det_jacobian(x, forward), other.log_abs_det_jacobian(y, wanted), 1e-4)
    assert tuple(mine.forward_shape(torch.Size(x.shape))) == tuple(other.forward_shape(reference.Size(y.shape)))
    assert tuple(mine.inverse_shape(torch.Size(forward.shape))) == tuple(other.inverse_shape(reference.Size(wanted.shape)))


@EACH
def test_text_and_kind(name, mine, x, other, y):
    assert repr(mine) == repr(other)
    assert mine.bijective == other.bijective
    assert repr(mine.domain) == repr(other.domain) and repr(mine.codomain) == repr(other.codomain)
    assert (mine.inv == mine.inv) and mine.inv.inv is mine
    assert mine.domain.event_dim == other.domain.event_dim and mine.codomain.event_dim == other.codomain.event_dim


def test_equality():
    d = torch.distributions
    assert d.ExpTransform() == d.ExpTransform() and d.ExpTransform() != d.TanhTransform()
    assert d.AffineTransform(1, 2) == d.AffineTransform(1, 2) and d.AffineTransform(1, 2) != d.AffineTransform(1, 3)
    assert d.PowerTransform(2) == d.PowerTransform(2) and d.ComposeTransform([d.ExpTransform()]) == d.ComposeTransform([d.ExpTransform()])


def test_cache_gives_the_very_argument_back():
    d = torch.distributions
    x = torch.tensor([30.0])
    plain, cached = d.TanhTransform(), d.TanhTransform(cache_size=1)
    assert torch.isinf(plain.inv(plain(x))).all()
    assert cached.inv(cached(x)) is x
    assert plain.with_cache()._cache_size == 1 and cached.with_cache() is cached
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        d.ExpTransform(cache_size=2)


def test_pickling():
    t = torch.distributions.ComposeTransform([torch.distributions.ExpTransform(), torch.distributions.AffineTransform(1.0, 2.0)])
    t.inv
    x = torch.tensor([0.5])
    assert torch.equal(pickle.loads(pickle.dumps(t))(x), t(x))


@pytest.mark.parametrize("make", [
    lambda d, t: d.ReshapeTransform((2,), (3,)),
    lambda d, t: d.ReshapeTransform((2,), (2, 1)).forward_shape((3,)),
    lambda d, t: d.CorrCholeskyTransform().forward_shape((4,)),
    lambda d, t: d.CorrCholeskyTransform().inverse_shape((3, 4)),
    lambda d, t: d.StickBreakingTransform().forward_shape(()),
    lambda d, t: d.ExpTransform().sign + d.SoftmaxTransform().sign,
    lambda d, t: d.IndependentTransform(d.ExpTransform(), 1)(t(1.0)),
    lambda d, t: d.CatTransform([d.ExpTransform()], lengths=[2])(t([1.0, 2.0, 3.0])),
    lambda d, t: d.constraints.dependent.check(t([1.0])),
    lambda d, t: d.constraints.dependent.event_dim,
    lambda d, t: d.constraints.independent(d.constraints.real, 2).check(t([1.0])),
    lambda d, t: d.biject_to(d.constraints.boolean),
    lambda d, t: d.biject_to.register(int, lambda c: None),
])
def test_errors(make):
    def kind(lib):
        with pytest.raises(Exception) as caught:
            make(lib.distributions, lib.tensor)
        return type(caught.value).__name__

    assert kind(torch) == kind(reference)


def constraints(lib):
    c, t = lib.distributions.constraints, lib.tensor
    return [c.real, c.positive, c.nonnegative, c.unit_interval, c.interval(-1.0, 2.0), c.half_open_interval(0.0, 3.0), c.greater_than(1.0), c.less_than(0.5),
            c.greater_than_eq(t([0.0, 1.0, 2.0])), c.simplex, c.boolean, c.nonnegative_integer, c.positive_integer, c.integer_interval(0, 2), c.one_hot,
            c.multinomial(3), c.real_vector, c.independent(c.positive, 1), c.cat([c.positive, c.real], -1, [1, 2]), c.stack([c.positive, c.real, c.unit_interval], -1)]


def test_checks():
    values = [[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [1.0, 2.0, 0.0], [-1.0, float("nan"), 3.5]]
    for mine, other in zip(constraints(torch), constraints(reference)):
        assert repr(mine) == repr(other)
        assert mine.is_discrete == other.is_discrete and mine.event_dim == other.event_dim
        assert mine.check(torch.tensor(values)).tolist() == other.check(reference.tensor(values)).tolist()


def test_checks_of_matrices():
    names = ["lower_triangular", "lower_cholesky", "corr_cholesky", "square", "symmetric", "positive_semidefinite", "positive_definite"]
    batch = [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]], [[-1.0, 0.0], [3.0, 1.0]]]
    for name in names:
        for matrix in batch:
            mine = getattr(torch.distributions.constraints, name).check(torch.tensor(matrix))
            other = getattr(reference.distributions.constraints, name).check(reference.tensor(matrix))
            assert mine.tolist() == other.tolist(), (name, matrix)


@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_registries(registry):
    draws = reference.randn(4, 3)
    for mine, other in zip(constraints(torch), constraints(reference)):
        try:
            wanted = getattr(reference.distributions, registry)(other)
        except NotImplementedError:
            with pytest.raises(NotImplementedError):
                getattr(torch.distributions, registry)(mine)
            continue
        transform = getattr(torch.distributions, registry)(mine)
        assert repr(transform) == repr(wanted)
        same(transform(torch.from_numpy(draws.numpy())), wanted(draws))
