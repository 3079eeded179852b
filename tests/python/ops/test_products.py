"""Products with factors: values against their definition and gradients against differences, complex factors too."""

import pytest

import msadapter.pytorch as torch

PRODUCTS = {
    "addmm": ([(2, 4), (2, 3), (3, 4)], lambda x, y: x @ y),
    "baddbmm": ([(2, 2, 4), (2, 2, 3), (2, 3, 4)], lambda x, y: x @ y),
    "addbmm": ([(2, 4), (5, 2, 3), (5, 3, 4)], lambda x, y: (x @ y).sum(0)),
    "addmv": ([(2,), (2, 3), (3,)], lambda x, y: (x * y).sum(1)),
    "addr": ([(2, 3), (2,), (3,)], lambda x, y: x.unsqueeze(1) * y),
}


@pytest.mark.parametrize("beta, alpha", [(2, -0.5), (1 + 2j, -0.5 + 1j), (0, 1j)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_factors_scale_both_terms(name, beta, alpha):
    torch.manual_seed(0)
    shapes, product = PRODUCTS[name]
    base, x, y = (torch.randn(s, dtype=torch.complex128) for s in shapes)
    call = getattr(torch, name)
    assert torch.allclose(call(base, x, y, beta=beta, alpha=alpha), beta * base + alpha * product(x, y))
    leaves = [t.clone().requires_grad_() for t in (base, x, y)]
    assert torch.autograd.gradcheck(lambda *t: call(*t, beta=beta, alpha=alpha), leaves)


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_factor_of_zero_leaves_the_base_unread(name):
    shapes, product = PRODUCTS[name]
    base, x, y = (torch.full(shapes[0], float("nan")), torch.ones(shapes[1]), torch.ones(shapes[2]))
    assert torch.equal(getattr(torch, name)(base, x, y, beta=0), product(x, y))
