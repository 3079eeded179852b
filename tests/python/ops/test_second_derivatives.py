"""Second derivatives of functions whose first ones are operators of their own."""

import pytest

torch = pytest.importorskip("msadapter.pytorch")


def double(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("name", ["i0", "sinc", "special_i1"])
def test_second_derivative_of_one_operand(name):
    assert torch.autograd.gradgradcheck(getattr(torch, name), (double(-1.5, 0.3, 2.5),))


@pytest.mark.parametrize("name", ["i0e", "i1e", "ndtri", "erfcx", "log_ndtr", "entr"])
def test_second_derivative_of_special_functions(name):
    assert torch.autograd.gradgradcheck(getattr(torch.special, name), (double(0.2, 0.4, 0.9),))


@pytest.mark.parametrize("values", [(2.0, 3.0, -1.5), (2.0, 0.0, 3.0), (0.0, 0.0, 3.0)])
def test_second_derivative_of_products_with_zeros(values):
    assert torch.autograd.gradgradcheck(torch.prod, (double(*values),))
    assert torch.autograd.gradgradcheck(lambda t: t.reshape(1, 3).prod(1, keepdim=True), (double(*values),))


def test_activations_made_of_lines_have_a_second_derivative_of_zero():
    x = double(-1.0, 0.2, 4.0)
    for function in (torch.relu, torch.nn.functional.leaky_relu, torch.nn.functional.hardtanh, torch.nn.functional.hardshrink):
        slope, = torch.autograd.grad(function(x).sum(), x, create_graph=True)
        assert torch.autograd.grad(slope.sum(), x)[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_second_derivative_of_scatter_reduce(reduce):
    index = torch.tensor([0, 2, 2])
    assert torch.autograd.gradgradcheck(lambda a, b: a.scatter_reduce(0, index, b, reduce), (double(1.0, 2.0, 3.5), double(0.5, 4.0, 2.0)))
