"""The tape from Python: leaves, accumulation, hooks, modes, custom functions, in-place writes."""
import gc
import sys
import weakref

import pytest

import msadapter.pytorch as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_gradients_accumulate_until_cleared():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x * x).sum().backward()
    assert x.grad.tolist() == [4.0, 8.0]
    x.grad = None
    (3 * x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_second_backward_needs_retain_graph():
    x = leaf(1.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_second_derivative_through_grad():
    x = leaf(2.0)
    (first,) = torch.autograd.grad(x ** 4, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert first.item() == 32 and second.item() == 48


def test_changed_saved_value_is_an_error_not_a_wrong_gradient():
    x = leaf(3.0)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_writing_to_a_view_reaches_the_base():
    w = leaf(2.0, 3.0)
    base = torch.zeros(4)
    base[1:3] = w * w
    base[2:].mul_(10)
    base.sum().backward()
    assert w.grad.tolist() == [4.0, 60.0]


def test_writing_to_a_leaf_is_refused():
    w = leaf(1.0)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        w.add_(1)
    with pytest.raises(RuntimeError, match="view of a leaf"):
        w[0:1].add_(1)
    with torch.no_grad():
        w.add_(1)
    assert w.tolist() == [2.0]


def test_detach_and_data_share_memory_but_not_history():
    x = leaf(1.0, 2.0)
    y = x * 2
    d = y.detach()
    assert not d.requires_grad and d.data_ptr() == y.data_ptr()
    x.data.fill_(5)
    assert x.tolist() == [5.0, 5.0] and x._version == 0


def test_modes():
    x = leaf(1.0)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    assert (x * 2).requires_grad

    @torch.no_grad()
    def f(v):
        return v * 2

    assert not f(x).requires_grad
    torch.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    torch.set_grad_enabled(True)
    with torch.inference_mode():
        made = torch.ones(2)
    assert made.is_inference()
    with pytest.raises(RuntimeError):
        made.add_(1)


def test_tensor_hooks_see_and_replace_gradients():
    x = leaf(1.0, 1.0)
    seen = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert x.grad.tolist() == [20.0, 20.0] and seen == [[20.0, 20.0]]
    handle.remove()
    (x * 1).sum().backward()
    assert len(seen) == 1


def test_retain_grad():
    x = leaf(1.0)
    y = x * 3
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.item() == 6 and x.grad.item() == 18


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return grad_output * ctx.factor + 0 * x, None


def test_function_gradient_and_node_name():
    x = leaf(1.0, 2.0)
    y = Scaled.apply(x, 5)
    assert type(y.grad_fn).__name__ == "ScaledBackward"
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_function_error_comes_out_as_it_is():
    class Broken(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Broken.apply(leaf(1.0)).sum().backward()


def test_function_contexts_do_not_leak():
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.save_for_backward(x, y)
            alive.append(weakref.ref(ctx))
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    alive = []
    y = Keeps.apply(leaf(1.0))
    y.sum().backward()
    del y
    gc.collect()
    assert alive[0]() is None


def test_unused_inputs():
    x, y = leaf(1.0), leaf(1.0)
    with pytest.raises(RuntimeError, match="not have been used"):
        torch.autograd.grad(x * 2, (x, y))
    gx, gy = torch.autograd.grad(x * 2, (x, y), allow_unused=True)
    assert gx.item() == 2 and gy is None


def test_backward_of_a_vector_needs_a_gradient():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="scalar outputs"):
        (x * 2).backward()
    (x * 2).backward(torch.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 20.0]


def test_long_chains_are_released_without_recursion():
    y = leaf(1.0)
    for _ in range(100_000):
        y = y + 1
    del y


def test_the_class_of_contexts_survives_many_calls():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    def use():
        for _ in range(20):
            Same.apply(torch.ones(1, requires_grad=True)).sum().backward()
        gc.collect()

    use()
    before = sys.getrefcount(Same._backward_cls)
    use()
    after = sys.getrefcount(Same._backward_cls)
    assert after == before


def test_node_objects_may_come_and_go():
    """Their classes are made once and outlive all objects."""
    x = torch.randn(2, 3, requires_grad=True)
    for _ in range(300):
        mean, product = x.mean(), torch.mm(x, x.t())
        assert (type(mean.grad_fn).__name__, type(product.grad_fn).__name__) == ("MeanBackward0", "MmBackward0")
        assert mean.grad_fn is mean.grad_fn and type(x.mean().grad_fn) is type(mean.grad_fn)


def test_nodes_have_pytorchs_names():
    x, target = torch.randn(2, 3, requires_grad=True), torch.tensor([0, 2])
    F = torch.nn.functional
    named = {"Pow": x**2, "Mean": x.mean(), "NllLoss": F.cross_entropy(x, target), "MseLoss": F.mse_loss(x, x * 2), "T": x.t(), "Max": x.max(1)[0],
             "Addmm": F.linear(x, torch.ones(2, 3), torch.ones(2)), "Gelu": F.gelu(x), "NativeBatchNorm": F.batch_norm(x, None, None, training=True),
             "MaxPool2DWithIndices": F.max_pool2d(x.view(1, 1, 2, 3), 2), "Convolution": F.conv2d(x.view(1, 1, 2, 3), torch.ones(1, 1, 2, 2))}
    for name, result in named.items():
        assert result.grad_fn.name() == f"{name}Backward0"
    assert repr(F.mse_loss(x, x.detach())) == "tensor(0., grad_fn=<MseLossBackward0>)"
