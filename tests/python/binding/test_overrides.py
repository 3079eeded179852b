"""Subclasses of Tensor: their results, and __torch_function__."""

import pytest

import msadapter.pytorch as torch
from msadapter import _C


class Kept(torch.Tensor):
    """Has Tensor's own __torch_function__."""


class Plain(torch.Tensor):
    __torch_function__ = _C._disabled_torch_function_impl


class Logged(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func.__name__, types))
        return super().__torch_function__(func, types, args, kwargs or {})


class Quantity:
    """No tensor at all."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.div:
            return NotImplemented
        return func.__name__, [a.value if isinstance(a, Quantity) else a for a in args]


def test_results_of_subclasses_are_of_the_subclass():
    a, b = Kept([1.0, 2.0]), torch.ones(2)
    for result in (a + 1, b + a, 1 - a, -a, a == b, a.add(b), torch.add(b, a), a[0], a[a > 1], a.T, a.data, a.to(torch.float64), a.clone(),
                   torch.cat([b, a]), torch.max(a, 0).values, *a.unbind(), a.sum(), 2 / a, a.detach()):
        assert type(result) is Kept
    assert type(b + b) is torch.Tensor and a.add_(1) is a
    assert type(b.add_(a)) is torch.Tensor


def test_disabled_classes_give_plain_results():
    a = Plain([1.0, 2.0])
    for result in (a + 1, a[0], a.clone(), torch.cat([a, a]), a.T, a.double()):
        assert type(result) is torch.Tensor


def test_torch_function_is_called():
    a = Logged([1.0, 2.0])
    Logged.calls.clear()
    assert type(torch.add(a, 1)) is Logged and type(a * 2) is Logged and type(a[0]) is Logged and type(torch.relu(input=a)) is Logged
    a[0] = 5
    assert [name for name, _ in Logged.calls] == ["add", "mul", "__getitem__", "relu", "__setitem__"]
    assert all(types == (Logged,) for _, types in Logged.calls)
    with _C.DisableTorchFunction():
        assert type(a + 1) is torch.Tensor
    first, second = torch.max(a.reshape(1, 2), 1)
    assert first.tolist() == [5] and second.tolist() == [0]


def test_objects_that_are_no_tensors():
    q = Quantity(3)
    assert torch.add(torch.ones(1), q)[0] == "add" and torch.cat([torch.ones(1), q])[0] == "cat"
    with pytest.raises(TypeError, match="no implementation found for 'torch.div'"):
        torch.div(q, q)
    assert _C._has_torch_function((q,)) and not _C._has_torch_function((torch.ones(1), Plain([1.0]), 3, "x", None))


def test_functions_of_another_library_are_replaced_or_refused():
    def foreign(name, module):
        def function(x):
            return type(x).__torch_function__(function, (type(x),), (x,))
        function.__name__, function.__module__ = name, module
        return function

    x = torch.tensor([-1.0, 2.0])
    assert foreign("relu", "torch.nn.functional")(x).tolist() == [0, 2] and foreign("neg", "torch")(x).tolist() == [1, -2]
    for name, module in (("no_such_name", "torch"), ("relu", "torch.nosuch"), ("relu", "elsewhere")):
        with pytest.raises(TypeError, match="belongs to another library"):
            foreign(name, module)(x)


def test_reflected_power_takes_only_a_value():
    x, y = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    x.__rpow__(y).backward()
    assert y.grad is None and x.grad.item() == pytest.approx(9 * 1.0986123)
    (2 ** x).backward()
    (y ** x).backward()
    assert y.grad.item() == 6
