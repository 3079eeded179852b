"""Derivatives in a direction, against torch's forward mode and against the Jacobian."""

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch.autograd import forward_ad

reference = pytest.importorskip("torch")

FUNCTIONS = {
    "product": lambda t, x, y: x * y + x.sin(), "matmul": lambda t, x, y: (x @ y.t()).tanh().sum(0), "in place": lambda t, x, y: (x * 1).mul_(y).add_(2).exp_(),
    "linear": lambda t, x, y: (2 * x).sum(), "norm": lambda t, x, y: t.nn.functional.layer_norm(x, (3,)) * y, "index": lambda t, x, y: x[1] - y[:, 2].sum(),
    "where": lambda t, x, y: t.where(x > 0, x ** 3, y), "only one": lambda t, x, y: x.exp().cumsum(1), "softmax": lambda t, x, y: (x + y).softmax(0).log(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents(name):
    def run(library):
        library.manual_seed(0)
        x, y, u, v = (library.randn(4, 3, dtype=library.float64) for _ in range(4))
        with library.autograd.forward_ad.dual_level():
            make, unpack = library.autograd.forward_ad.make_dual, library.autograd.forward_ad.unpack_dual
            result = unpack(FUNCTIONS[name](library, make(x, u), make(y, v)))
            one = unpack(FUNCTIONS[name](library, make(x, u), y))
            return [t.detach().numpy() for t in (result.primal, result.tangent, one.tangent)]
    for mine, other in zip(run(torch), run(reference)):
        assert mine.shape == other.shape and abs(mine - other).max() < 1e-10


def test_forward_over_reverse():
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    v = torch.tensor([1.0, 0.5, -1.0], dtype=torch.float64)
    with forward_ad.dual_level():
        y = (forward_ad.make_dual(x, v) ** 3).sum()
        tangent = forward_ad.unpack_dual(y).tangent
        (product,) = torch.autograd.grad(tangent, x)
    assert torch.allclose(tangent, (3 * x**2 * v).sum()) and torch.allclose(product, 6 * x * v)  # Hessian times v


def test_what_has_no_tangent_and_errors():
    x = torch.ones(2)
    assert forward_ad.unpack_dual(x).tangent is None and forward_ad.unpack_dual(x).primal is x
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(x, x)
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="Nested"), forward_ad.dual_level():
            pass
        dual = forward_ad.make_dual(x, x)
        assert forward_ad.unpack_dual(x + 1).tangent is None and forward_ad.unpack_dual(torch.ones(2, requires_grad=True) * 2).tangent is None
        for bad, error in ((torch.ones(3), RuntimeError), (torch.ones(2, dtype=torch.int64), ValueError), (3, TypeError)):
            with pytest.raises(error):
                forward_ad.make_dual(x, bad)
        assert torch.equal(forward_ad.unpack_dual(dual).tangent, x)
    with pytest.raises(RuntimeError, match="exit a forward AD level"):
        forward_ad.exit_dual_level()
    assert forward_ad.unpack_dual(dual).tangent is None
