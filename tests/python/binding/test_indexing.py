"""t[key] and t[key] = value against numpy's, and PyTorch's own rules where they differ."""

import numpy as np
import pytest

import msadapter.pytorch as torch

x = np.arange(24).reshape(2, 3, 4)
i1, i2 = np.array([1, 0, 1]), np.array([[0, 2], [1, 1]])
mask = x % 5 == 0

BASIC = [0, -1, np.int64(1), slice(None), slice(1, None), slice(None, -1), slice(0, 3, 2), slice(5, 9), slice(2, 1), None, Ellipsis,
         (0, 1), (0, 1, 2), (slice(None), 1), (Ellipsis, 0), (0, Ellipsis), (None, 0, None), (Ellipsis, None), (slice(None), None, 1, Ellipsis),
         (1, slice(None, None, 2), slice(1, 3)), (), (0, Ellipsis, 1)]
ADVANCED = [i1, (i1,), [0, 1, 1], (slice(None), i1), (Ellipsis, i1), (i1, slice(None), i1), (slice(0, 1), slice(None), i1), (i1, None, 0),
            (slice(None), i2), (i2 // 2, i2), (i1, 2), mask, mask[:, :, 0], (mask[:, 0, 0],), (slice(None), mask[0, :, 0]),
            ([0, 1], [1, 2]), ([[0], [1]], [1, 2]), [[0, 1], [1, 0]], True, False, (True, 0), [True, False], (slice(None), [True, False, True]),
            (i1, Ellipsis, i1), (Ellipsis, mask[0, 0]), (None, i1)]


def as_tensor_key(key):
    if isinstance(key, np.ndarray):
        return torch.from_numpy(key.copy())
    return tuple(map(as_tensor_key, key)) if isinstance(key, tuple) else key


def numpy_key(key):
    # A list of lists is one index here where numpy needs an array.
    return tuple(np.array(k) if isinstance(k, list) else k for k in key) if isinstance(key, tuple) else key


@pytest.mark.parametrize("key", BASIC)
def test_basic_indexing_gives_views(key):
    t = torch.from_numpy(x.copy())
    view = t[key]
    assert view.tolist() == x[key].tolist() and tuple(view.shape) == x[key].shape
    view.fill_(-1)
    expected = x.copy()
    expected[key] = -1
    assert t.tolist() == expected.tolist()


@pytest.mark.parametrize("key", ADVANCED, ids=repr)
def test_advanced_indexing(key):
    if isinstance(key, list) and isinstance(key[0], list):
        expected = x[tuple(key)]  # taken as a tuple
    else:
        expected = x[numpy_key(key)]
    for k in (as_tensor_key(key), key):
        result = torch.from_numpy(x)[k]
        assert tuple(result.shape) == expected.shape and result.tolist() == expected.tolist()


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=repr)
@pytest.mark.parametrize("recorded", [False, True])
def test_assignment(key, recorded):
    expected = x.astype(np.float32)
    place = tuple(key) if isinstance(key, list) and isinstance(key[0], list) else numpy_key(key)
    expected[place] = 7
    t = torch.from_numpy(x).float()
    if recorded:
        t = t.requires_grad_() * 1
    t[as_tensor_key(key)] = 7
    assert t.tolist() == expected.tolist()
    t = torch.from_numpy(x).float()
    value = torch.full((1, 1) + tuple(t[as_tensor_key(key)].shape), 7.0)
    if value.numel():
        t[as_tensor_key(key)] = value[0, 0]
        assert t.tolist() == expected.tolist()


@pytest.mark.parametrize("key", [k for k in BASIC + ADVANCED], ids=repr)
def test_gradients_flow_through_indexing(key):
    t = torch.from_numpy(x).double().requires_grad_()
    picked = t[as_tensor_key(key)]
    picked.sum().backward()
    counts = np.zeros(x.shape)
    place = tuple(key) if isinstance(key, list) and isinstance(key[0], list) else numpy_key(key)
    if place is not False:
        np.add.at(counts, place, 1)
    assert t.grad.tolist() == counts.tolist()


@pytest.mark.parametrize("key, error, message", [
    (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    ((0, 5), IndexError, "index 5 is out of bounds for dimension 1 with size 3"),
    ((0, 0, 0, 0), IndexError, "too many indices for tensor of dimension 3"),
    ("a", TypeError, "invalid data type 'str'"),
    (1.5, IndexError, r"only integers, slices .* are valid indices \(got float\)"),
    (slice(None, None, -1), ValueError, "step must be greater than zero"),
    (slice(None, None, 0), ValueError, "step"),
    ({}, IndexError, "valid indices"),
])
def test_errors(key, error, message):
    t = torch.from_numpy(x.copy())
    with pytest.raises(error, match=message):
        t[key]
    with pytest.raises(error, match=message):
        t[key] = 1


def test_bad_index_tensors():
    t = torch.zeros(2, 3)
    for key in (torch.tensor([5]), torch.tensor([1.0]), torch.ones(3, dtype=torch.bool), [2**40]):
        with pytest.raises(IndexError):
            t[key]
        with pytest.raises(IndexError):
            t[key] = 1


def test_scalars():
    t = torch.tensor(3.0)
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        t[0]
    assert t[None].tolist() == [3] and t[...].item() == 3 and t[()].item() == 3 and t[True].tolist() == [3]
    t[...] = 4
    assert t.item() == 4


def test_values_that_cannot_be_assigned():
    t = torch.zeros(2, 3)
    for value in ("a", [1, 2, 3], np.ones(3), None):
        with pytest.raises(TypeError, match="can't assign a"):
            t[0] = value
    with pytest.raises(RuntimeError):
        t[0] = torch.ones(2)
    with pytest.raises(TypeError):
        del t[0]
    with pytest.raises(RuntimeError):
        torch.zeros(2, requires_grad=True)[0] = 1


def test_assigned_values_are_converted_and_broadcast():
    t = torch.zeros(2, 3, dtype=torch.int32)
    t[:, 0] = torch.tensor([1.9, 2.9])
    t[1] = torch.ones(1, 1, 3)
    t[0, 1] = True
    t[torch.tensor([0]), 2] = 5
    assert t.tolist() == [[1, 1, 5], [1, 1, 1]]


def test_gradient_through_assignment():
    base, value = torch.zeros(3), torch.tensor(2.0, requires_grad=True)
    base[1] = value * 3
    base.sum().backward()
    assert value.grad.item() == 3


def test_containers():
    t = torch.arange(3)
    assert list(t) == [0, 1, 2] and len(t) == 3 and 1 in t and 7 not in t
    assert [1, 2, 3][torch.tensor(1)] == 2 and list(range(5))[torch.tensor(1):torch.tensor(3)] == [1, 2]
    with pytest.raises(TypeError):
        len(torch.tensor(1))
    with pytest.raises(TypeError):
        iter(torch.tensor(1))
    with pytest.raises(RuntimeError):
        "a" in t  # noqa: B015
