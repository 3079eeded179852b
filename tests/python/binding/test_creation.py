"""Tensors out of Python values, numpy arrays, buffers, DLPack capsules and storages."""

import array
import gc
import warnings

import numpy as np
import pytest

import msadapter.pytorch as torch


@pytest.mark.parametrize("data, dtype", [
    (1, "int64"), (1.0, "float32"), (True, "bool"), (1j, "complex64"), ([1, 2.0], "float32"), ([True, 2], "int64"), ([], "float32"),
    ([[1], [2]], "int64"), ((1, 2), "int64"), (range(3), "int64"), ([1, 2j], "complex64"), (np.float64(1), "float32"),
    (np.ones(2), "float64"), (np.ones(2, np.float32), "float32"), ([np.ones(2), np.zeros(2)], "float64"), (np.array(3), "int64"),
    ([np.int32(1)], "int32"), (np.ones((2, 0), bool), "bool"),
])
def test_dtype_is_found_from_values(data, dtype):
    t = torch.tensor(data)
    assert t.dtype is getattr(torch, dtype)
    assert np.array_equal(t.numpy(), np.array(data, dtype=dtype))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"])
def test_values_are_stored_in_every_dtype(dtype):
    t = torch.tensor([[1, 0], [True, 3.0]], dtype=getattr(torch, dtype))
    assert np.array_equal(t.numpy(), np.array([[1, 0], [1, 3]], dtype=dtype))


def test_bfloat16_is_rounded_to_nearest_even():
    assert torch.tensor([1.00390625, 1.01171875, float("inf"), 3.3895e38], dtype=torch.bfloat16).tolist() == [1.0, 1.015625, float("inf"), 3.3895313892515355e38]


@pytest.mark.parametrize("data, error", [
    ("a", TypeError), (["a"], Exception), (None, RuntimeError), ([None], RuntimeError), ({1: 2}, RuntimeError), ([[1, 2], [3]], ValueError),
    ([1, [2]], TypeError), ([[1], 2], TypeError), (2**70, RuntimeError), ([torch.ones(2)], ValueError), (object(), RuntimeError),
])
def test_wrong_values_raise(data, error):
    with pytest.raises(error):
        torch.tensor(data)


def test_values_out_of_range_raise():
    for value, dtype in ((300, torch.uint8), (128, torch.int8), (2**31, torch.int32), (float("inf"), torch.int64), (1j, torch.float32)):
        with pytest.raises((RuntimeError, TypeError)):
            torch.tensor(value, dtype=dtype)


def test_recursive_lists_raise():
    data = []
    data.append(data)
    with pytest.raises((ValueError, RecursionError)):
        torch.tensor(data)


def test_a_list_that_shrinks_meanwhile_does_no_harm():
    class Shrinking:
        def __init__(self, owner):
            self.owner = owner

        def __index__(self):
            self.owner.clear()
            return 1

    data = []
    data.extend([1, Shrinking(data), 1, 1, 1])
    with pytest.raises((RuntimeError, TypeError, IndexError, ValueError)):
        torch.tensor(data, dtype=torch.int64)


def test_from_numpy_shares_memory():
    for source in (np.zeros((2, 3), np.float32), np.zeros((4, 6), np.int16)[::2, 1::2], np.zeros((3, 2)).T, np.zeros((0, 3)), np.array(1.0)):
        t = torch.from_numpy(source)
        assert tuple(t.shape) == source.shape and t.stride() == tuple(s // source.itemsize for s in source.strides) or source.size == 0
        t.fill_(3)
        assert (source == 3).all()
        back = t.numpy()
        assert back.shape == source.shape and np.shares_memory(back, source) or source.size == 0
        back[...] = 4
        assert (source == 4).all() and (t == 4).all()


def test_memory_outlives_the_array_and_the_tensor():
    t = torch.from_numpy(np.arange(1000))
    gc.collect()
    array_ = (t * 2).numpy()
    gc.collect()
    assert t[999].item() == 999 and array_[999] == 1998


@pytest.mark.parametrize("source, error", [
    ([1], TypeError), (np.ones(3)[::-1], ValueError), (np.array(["a"]), TypeError), (np.ones(3, np.uint16), TypeError), (np.ones(3, ">f4"), ValueError),
    (np.array([object()]), TypeError), (np.zeros(3, "f4,i1")["f0"], ValueError),
])
def test_arrays_that_tensors_cannot_share(source, error):
    with pytest.raises(error):
        torch.from_numpy(source)


def test_read_only_arrays_warn():
    source = np.ones(3)
    source.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        t = torch.from_numpy(source)
    assert t.sum().item() == 3


def test_numpy_refuses_what_it_cannot_show():
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(2, requires_grad=True).numpy()
    assert torch.ones(2, requires_grad=True).numpy(force=True).sum() == 2
    with pytest.raises(TypeError, match="BFloat16"):
        torch.ones(2, dtype=torch.bfloat16).numpy()


def test_numpy_takes_tensors():
    t = torch.arange(3.0)
    assert np.array_equal(np.asarray(t, dtype=np.int64), [0, 1, 2]) and np.add(1, t.numpy()).sum() == 6
    assert isinstance(np.sin(t), torch.Tensor) and isinstance(t + np.ones(3), torch.Tensor)
    copy = np.array(t)
    copy[0] = 9
    assert t[0].item() == 0
    assert float(t[1]) == 1 and int(t[2]) == 2 and complex(t[1]) == 1 and f"{t[1]:.2f}" == "1.00"


def test_as_tensor_and_asarray_share_where_they_can():
    source = np.zeros(3, np.float32)
    t = torch.as_tensor(source)
    t[0] = 1
    assert source[0] == 1 and torch.as_tensor(t) is t and torch.as_tensor(t, dtype=torch.float64) is not t
    assert torch.as_tensor([1, 2]).dtype is torch.int64
    u = torch.asarray(source, copy=True)
    u[1] = 5
    assert source[1] == 0
    with pytest.raises(ValueError):
        torch.asarray([1, 2], copy=False)
    with pytest.raises(ValueError):
        torch.asarray(source, dtype=torch.int32, copy=False)
    assert torch.asarray(bytearray(b"ab")).tolist() == [97, 98]


def test_frombuffer():
    source = array.array("f", [1, 2, 3, 4])
    t = torch.frombuffer(source, dtype=torch.float32)
    t[0] = 9
    assert source[0] == 9
    assert torch.frombuffer(source, dtype=torch.float32, offset=4, count=2).tolist() == [2, 3]
    for arguments in ({"offset": 3}, {"offset": 16}, {"offset": -1}, {"count": 9}, {"count": 0}):
        with pytest.raises(ValueError):
            torch.frombuffer(source, dtype=torch.float32, **arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.frombuffer(b"\x01\x02", dtype=torch.uint8).tolist() == [1, 2]


def test_tensor_from_tensor_warns_and_copies():
    t = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="copy construct"):
        u = torch.tensor(t)
    assert not u.requires_grad and u.data_ptr() != t.data_ptr()


def test_dlpack_both_ways():
    t = torch.arange(6.0).reshape(2, 3).t()
    source = np.from_dlpack(t)
    assert np.array_equal(source, t.numpy()) and np.shares_memory(source, t.numpy())
    back = torch.from_dlpack(np.arange(4))
    assert back.tolist() == [0, 1, 2, 3]
    capsule = torch.to_dlpack(t)
    u = torch.from_dlpack(capsule)
    u[0, 0] = 50
    assert t[0, 0].item() == 50
    with pytest.raises(RuntimeError, match="only once"):
        torch.from_dlpack(capsule)
    del capsule, u, t
    gc.collect()
    assert source[1, 1] == 4
    with pytest.raises(RuntimeError):
        torch.ones(2, requires_grad=True).__dlpack__()
    assert torch.ones(1).__dlpack_device__() == (1, 0)


def test_old_constructors():
    assert torch.Tensor(2, 3).shape == (2, 3) and torch.Tensor([2, 3]).tolist() == [2, 3] and torch.Tensor().shape == (0,)
    assert torch.Tensor(torch.Size([2, 1])).shape == (2, 1)
    t = torch.ones(2)
    assert torch.Tensor(t).data_ptr() == t.data_ptr()
    assert torch.LongTensor([1.5, 2]).tolist() == [1, 2] and torch.FloatTensor(3).shape == (3,)
    assert isinstance(t, torch.FloatTensor) and not isinstance(t, torch.LongTensor) and t.type() == "torch.FloatTensor"
    with pytest.raises(TypeError):
        torch.LongTensor(t)
    with pytest.raises(TypeError):
        torch.Tensor(2.5)


def test_storages():
    t = torch.arange(6.0).reshape(2, 3)
    s = t[1].storage()
    assert len(s) == 6 and s.tolist() == [0, 1, 2, 3, 4, 5] and s.data_ptr() == t.data_ptr() and s.nbytes() == 24
    s[0] = 9
    s[1:3] = 8
    assert t[0].tolist() == [9, 8, 8] and s[1:3].tolist() == [8, 8]
    for index in (6, -7, "a"):
        with pytest.raises((IndexError, TypeError)):
            s[index]
    u = torch.empty(0)
    u.set_(s, 1, (2, 2), (3, 1))
    assert u.tolist() == [[8, 8], [4, 5]]
    with pytest.raises(RuntimeError):
        u.set_(s, -1, (2,), (1,))
    with pytest.raises(RuntimeError):
        u.set_(s, 0, (2**40, 2**40), (2**40, 1))
    with pytest.raises(RuntimeError):
        torch.from_numpy(np.ones(2)).storage().resize_(100)
    assert torch.zeros(3).share_memory_().is_shared() and torch.TypedStorage(3).fill_(2).tolist() == [2, 2, 2]


def test_new_methods():
    t = torch.ones(2, dtype=torch.float64)
    assert t.new_zeros(2, 3).dtype is torch.float64 and t.new_ones((2,)).tolist() == [1, 1]
    assert t.new_full((2,), 3, dtype=torch.int32).tolist() == [3, 3] and t.new_tensor([1]).dtype is torch.float64
    assert t.new_empty([4]).shape == (4,) and t.new_zeros(1, requires_grad=True).requires_grad
    for call in (lambda: t.new_zeros("a"), lambda: t.new_zeros(2, foo=1), lambda: t.new_full((2,)), lambda: t.new_zeros()):
        with pytest.raises(TypeError):
            call()


def test_to():
    t = torch.ones(2)
    assert t.to("cpu") is t and t.to(torch.float32) is t and t.cpu() is t and t.float() is t
    assert t.to(torch.int64).dtype is torch.int64 and t.to("cpu", torch.float64).dtype is torch.float64 and t.to(dtype=torch.int8).dtype is torch.int8
    assert t.to(torch.ones(1, dtype=torch.int16)).dtype is torch.int16 and t.to(torch.float32, copy=True) is not t
    assert t.type(torch.IntTensor).dtype is torch.int32 and t.type("torch.DoubleTensor").dtype is torch.float64 and t.half().dtype is torch.float16
    for call in (lambda: t.to(1.5), lambda: t.to(), lambda: t.to(foo=1), lambda: t.to(torch.int8, "a")):
        with pytest.raises((TypeError, RuntimeError)):
            call()
    with pytest.raises(ValueError):
        t.type("foo")
