"""gradcheck finds wrong derivatives and passes right ones; autograd.functional against closed forms."""

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch.autograd import Function, functional, gradcheck, gradgradcheck


def factor(scale):
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return None if grad is None else grad * scale * ctx.saved_tensors[0]

    return Scaled.apply


def double(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype).requires_grad_()


@pytest.mark.parametrize("fast_mode", [False, True])
def test_a_wrong_gradient_is_found(fast_mode):
    x = double(3, 2)
    assert gradcheck(factor(2), (x,), fast_mode=fast_mode)
    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0"):
        gradcheck(factor(2.1), (x,), fast_mode=fast_mode)
    assert not gradcheck(factor(2.1), (x,), fast_mode=fast_mode, raise_exception=False)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_complex_functions_and_several_outputs(fast_mode):
    z, x = double(2, 3, dtype=torch.complex128), double(3)
    assert gradcheck(lambda z, x: (z * x, z.abs(), (z.conj() * z).real.sum()), (z, x), fast_mode=fast_mode)
    assert gradgradcheck(lambda z, x: z * z * x, (z, x), fast_mode=fast_mode)


def test_second_derivatives_are_checked():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, grad):
            return grad * 3 * ctx.saved_tensors[0].detach() ** 2

    x = double(3)
    assert gradcheck(Once.apply, (x,), check_undefined_grad=False)
    with pytest.raises(RuntimeError):
        gradgradcheck(Once.apply, (x,), check_undefined_grad=False)
    assert gradgradcheck(lambda x: x ** 3, (x,))


def test_what_cannot_be_checked_is_said():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(torch.sin, (torch.randn(2),))
    with pytest.warns(UserWarning, match="double precision"):
        gradcheck(torch.sin, (torch.randn(2, requires_grad=True),), raise_exception=False)
    with pytest.raises(NotImplementedError, match="check_forward_ad"):
        gradcheck(torch.sin, (double(2),), check_forward_ad=True)


def test_jacobian_and_hessian_shapes_and_values():
    x, y = torch.rand(2, 2, dtype=torch.float64), torch.rand(3, dtype=torch.float64)
    table = functional.jacobian(lambda x: x.exp().sum(1), x)
    assert table.shape == (2, 2, 2) and torch.allclose(table, torch.diag_embed(torch.ones(2, dtype=torch.float64)).unsqueeze(-1) * x.exp())
    both = functional.jacobian(lambda x, y: (x.sum() * y, x * 2), (x, y))
    assert [[t.shape for t in row] for row in both] == [[(3, 2, 2), (3, 3)], [(2, 2, 2, 2), (2, 2, 3)]]
    assert not both[1][1].any()
    curvature = functional.hessian(lambda y: (y ** 3).sum(), y)
    assert torch.allclose(curvature, torch.diag(6 * y))
    (_, mixed), _ = functional.hessian(lambda x, y: x.sum() * (y * y).sum(), (x, y))
    assert torch.allclose(mixed, (2 * y).expand(2, 2, 3))


def test_products_agree_with_the_tables():
    x, v, w = (torch.rand(4, dtype=torch.float64) for _ in range(3))
    function = lambda t: (t.sin() * t.sum())
    scalar = lambda t: (t.exp() * t.sum()).sum()
    table, curvature = functional.jacobian(function, x), functional.hessian(scalar, x)
    assert torch.allclose(functional.vjp(function, x, v)[1], v @ table)
    assert torch.allclose(functional.jvp(function, x, w)[1], table @ w)
    assert torch.allclose(functional.vhp(scalar, x, v)[1], v @ curvature)
    assert torch.allclose(functional.hvp(scalar, x, w)[1], curvature @ w)
    assert torch.allclose(functional.hvp(scalar, x, w)[0], scalar(x))


def test_create_graph_and_strict():
    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    functional.jacobian(lambda t: t ** 3, x, create_graph=True).sum().backward()
    assert torch.allclose(x.grad, 6 * x)
    assert not functional.jacobian(lambda t: torch.ones(2), x).any()
    with pytest.raises(RuntimeError, match="strict mode"):
        functional.jacobian(lambda t: torch.ones(2), x, strict=True)
    with pytest.raises(RuntimeError, match="single element"):
        functional.hessian(lambda t: t, x)
    with pytest.raises(RuntimeError, match="invalid size"):
        functional.vjp(lambda t: t, x, torch.ones(3))
