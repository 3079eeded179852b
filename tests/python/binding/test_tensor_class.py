"""Methods of Tensor that are written in Python, and tensor types as classes."""

import inspect

import pytest

import msadapter.pytorch as torch


def test_python_methods():
    t = torch.arange(6).reshape(2, 3)
    assert t.unflatten(1, (3, 1)).shape == (2, 3, 1) and t.unflatten(-1, (-1, 3)).shape == (2, 1, 3)
    assert t.ravel().tolist() == [0, 1, 2, 3, 4, 5] and t.T.ravel().tolist() == [0, 3, 1, 4, 2, 5]
    assert t.adjoint().tolist() == t.T.tolist() and list(reversed(t[0])) == [2, 1, 0]
    assert t.storage_type() is torch.TypedStorage and t.to_dense() is t and "unflatten" in dir(t)
    for call in (lambda: t.unflatten(5, (1,)), lambda: t.unflatten(0, ()), lambda: t.unflatten(0, (3,))):
        with pytest.raises((IndexError, RuntimeError)):
            call()


def test_what_is_not_there_says_so():
    with pytest.raises(NotImplementedError, match=r"Tensor.rename\(\): named dimensions are not implemented"):
        torch.ones(1).rename("N")


def test_tensor_types_are_classes():
    assert inspect.isclass(torch.FloatTensor) and repr(torch.FloatTensor) == "<class 'torch.FloatTensor'>"
    assert torch.FloatTensor.dtype is torch.float32 and torch.ones(1).type(torch.LongTensor).dtype is torch.int64
    assert not isinstance(3, torch.FloatTensor) and torch.FloatTensor.__name__ == "FloatTensor"
    with pytest.raises(TypeError):
        torch.FloatTensor("a")


def test_swapped_axes_have_both_names():
    assert torch.swapaxes(torch.ones(2, 3), axis0=0, axis1=1).shape == (3, 2)
