"""Hooks on saved tensors, checkpoints and the search for anomalies."""

import gc
import warnings
import weakref

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch.autograd.graph import save_on_cpu, saved_tensors_hooks
from msadapter.pytorch.utils.checkpoint import checkpoint, checkpoint_sequential


def gradients(run, *leaves):
    """The gradients of run(*leaves).sum(), and second ones of their squares."""
    leaves = [leaf.detach().clone().requires_grad_() for leaf in leaves]
    first = torch.autograd.grad(run(*leaves).sum(), leaves, create_graph=True)
    second = torch.autograd.grad(sum(g.pow(2).sum() for g in first), leaves)
    return [*first, *second]


def net(x, w):
    return (x @ w).tanh().exp() * x.sum(1, keepdim=True) + torch.nn.functional.softmax(x @ w, 1)


X, W = torch.randn(5, 4, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)


def test_hooks_see_what_is_saved_and_give_it_back():
    seen = []

    def pack(t):
        assert not t.requires_grad
        seen.append(t.shape)
        return t.numpy().copy()

    def run(x, w):
        with saved_tensors_hooks(pack, torch.from_numpy):
            return net(x, w)

    plain, packed = gradients(net, X, W), gradients(run, X, W)
    assert all(torch.allclose(a, b) for a, b in zip(plain, packed))
    assert (5, 4) in seen and (4, 3) in seen and (5, 3) in seen


def test_inner_hooks_go_first_and_end_with_their_context():
    order = []

    def named(name):
        return saved_tensors_hooks(lambda t: order.append(name) or t, lambda t: t)

    a = torch.ones(2, requires_grad=True)
    with named("outer"):
        a.exp()
        with named("inner"):
            a.exp()
        a.exp()
    a.exp()
    assert order == ["outer", "inner", "outer"]


def test_hooks_of_functions_and_memory():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return grad * x

    held = []
    a = torch.ones(3, requires_grad=True)
    with saved_tensors_hooks(lambda t: held.append(1) or t + 4, lambda t: t):
        y = Twice.apply(a)
    y.sum().backward()
    assert held == [1] and a.grad.tolist() == [5, 5, 5]

    class Kept:
        pass

    kept = Kept()
    alive = weakref.ref(kept)
    with saved_tensors_hooks(lambda t, kept=kept: (kept, t), lambda packed: packed[1]):
        y = a.exp()
    del kept
    gc.collect()
    assert alive() is not None
    del y
    gc.collect()


def test_hooks_that_fail():
    a = torch.ones(2, requires_grad=True)

    def fail(t):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), saved_tensors_hooks(fail, lambda t: t):
        a.exp()
    with saved_tensors_hooks(lambda t: t, fail):
        y = a.exp()
    with pytest.raises(KeyError, match="mine"):
        y.sum().backward()
    with saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = a.exp()
    with pytest.raises(TypeError, match="expected to be a Tensor"):
        y.sum().backward()


def test_save_on_cpu():
    a = torch.ones(3, requires_grad=True)
    with save_on_cpu():
        y = a * a
    y.sum().backward()
    assert a.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_have_the_same_gradients_and_random_numbers(reentrant):
    torch.manual_seed(0)
    part = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 4))
    x = torch.randn(6, 4)
    results = []
    for run in (lambda t: part(t), lambda t: checkpoint(part, t, use_reentrant=reentrant)):
        part.zero_grad()
        leaf = x.clone().requires_grad_()
        torch.manual_seed(1)
        y = run(leaf).pow(2)
        after = torch.rand(1)
        y.sum().backward()
        results.append([y.detach(), leaf.grad, after] + [p.grad.clone() for p in part.parameters()])
    assert all(torch.allclose(a, b) for a, b in zip(*results))


def test_checkpoints_keep_nothing():
    counts = {"saved": 0}

    class Big(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            counts["saved"] += 1
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            ctx.saved_tensors
            return grad

    def part(x):
        return Big.apply(Big.apply(x))

    for reentrant in (True, False):
        counts["saved"] = 0
        x = torch.ones(2, requires_grad=True)
        y = checkpoint(part, x, use_reentrant=reentrant)
        assert counts["saved"] == 2
        y.sum().backward()
        assert counts["saved"] == 4 and x.grad.tolist() == [1, 1]


def test_arguments_of_checkpoints():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: other"):
        checkpoint(lambda t: t, x, other=1)
    assert checkpoint(lambda t, scale: t * scale, x, use_reentrant=False, scale=3).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="not compatible with .grad"):
        torch.autograd.grad(checkpoint(lambda t: t * 2, x).sum(), x)
    assert torch.autograd.grad(checkpoint(lambda t: t * t, x, use_reentrant=False).sum(), x)[0].tolist() == [2, 2]
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        checkpoint(lambda t: t * 2, torch.ones(2))
    pair = checkpoint(lambda t, n: (t * n, n), x, 3)
    assert pair[1] == 3 and pair[0].requires_grad


def test_checkpoints_of_a_sequence():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(5)])
    x = torch.randn(2, 3, requires_grad=True)
    layers(x).sum().backward()
    wanted = [x.grad.clone()] + [p.grad.clone() for p in layers.parameters()]
    x.grad = None
    layers.zero_grad()
    checkpoint_sequential(layers, 2, x).sum().backward()
    assert all(torch.allclose(a, b) for a, b in zip(wanted, [x.grad] + [p.grad for p in layers.parameters()]))


def test_anomalies_are_found_where_they_were_made():
    def troublesome(a):
        return a.sqrt()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            assert torch.autograd.anomaly_mode.is_anomaly_enabled()
            x = torch.zeros(2, requires_grad=True)
            y = troublesome(x) * 0
            with pytest.raises(RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output"):
                y.sum().backward()
    assert not torch.autograd.anomaly_mode.is_anomaly_enabled()
    assert any("Error detected in SqrtBackward0" in str(w.message) and "troublesome" in str(w.message) for w in caught)


def test_switching_the_search():
    setting = torch.autograd.set_detect_anomaly
    with setting(True, check_nan=False):
        x = torch.zeros(1, requires_grad=True)
        (x.sqrt() * 0).sum().backward()
        assert x.grad.isnan().all()
    assert not torch.autograd.anomaly_mode.is_anomaly_enabled()
    setting(True)
    assert torch.autograd.anomaly_mode.is_anomaly_enabled()
    setting(False)

    class Mine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("from backward")

    with setting(True), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(KeyError, match="from backward"):
            Mine.apply(torch.ones(1, requires_grad=True)).backward()
    assert any("Error detected in MineBackward" in str(w.message) for w in caught)


def test_vjp_stands_for_backward_and_variables_are_tensors():
    class Mine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def vjp(ctx, grad):
            return grad * 3

    x = torch.ones(1, requires_grad=True)
    Mine.apply(x).backward()
    assert x.grad.item() == 3
    assert isinstance(x, torch.autograd.Variable) and torch.autograd.Variable(torch.ones(1), requires_grad=True).requires_grad
    with pytest.raises(NotImplementedError, match="jvp"):
        Mine.jvp(None, x)
