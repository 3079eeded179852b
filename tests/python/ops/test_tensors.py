"""Tensors that alias, promote, broadcast and refuse as PyTorch's do."""
import copy
import pickle

import numpy as np
import pytest

import msadapter.pytorch as torch


def test_views_share_memory():
    a = torch.zeros(4, 6)
    for view in (a.view(24), a[1:3], a.t(), a[0], a.unsqueeze(0), a.diagonal(), a.expand(2, 4, 6), a.reshape(2, 12)):
        before = float(a.sum())
        if view.dim() < 3:
            view.add_(1)
            assert float(a.sum()) > before
        else:
            assert view.data_ptr() == a.data_ptr()


def test_slices_written_in_place():
    boxes = torch.arange(24.0).view(2, 3, 4)
    boxes[0, :, 0::4].clamp_(0, 5)
    assert boxes[0, :, 0].tolist() == [0, 4, 5] and boxes[1, 0, 0] == 12
    boxes[boxes > 20] = -1
    assert boxes[1, 2].tolist() == [20, -1, -1, -1]
    boxes[[0, 1], [0, 1]] += 100
    assert boxes[0, 0, 0] == 100 and boxes[1, 1, 0] == 116


def test_out_is_written_resized_and_returned():
    a, out = torch.ones(2, 3), torch.empty(0)
    assert torch.add(a, 1, out=out) is out and out.shape == (2, 3) and out.sum() == 12
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.add(a, 1.5, out=torch.empty(2, 3, dtype=torch.int64))


def test_promotion_of_tensors_and_numbers():
    i, f, h = torch.ones(2, dtype=torch.int32), torch.ones(2), torch.ones(2, dtype=torch.float16)
    assert (i + 1).dtype == torch.int32 and (i + 1.5).dtype == torch.float32
    assert (i + f).dtype == torch.float32 and (h + f).dtype == torch.float32 and (h + 1.5).dtype == torch.float16
    assert (i / 2).dtype == torch.float32 and (torch.ones(2, dtype=torch.bool) + 1).dtype == torch.int64
    assert (f + torch.tensor(1.0, dtype=torch.float64)).dtype == torch.float32
    assert (f * 1j).dtype == torch.complex64


def test_errors_name_what_does_not_fit():
    with pytest.raises(RuntimeError, match=r"must match the size of tensor b \(4\)"):
        torch.ones(3) + torch.ones(4)
    with pytest.raises(IndexError):
        torch.ones(3)[3]
    with pytest.raises(IndexError):
        torch.ones(3).sum(1)
    with pytest.raises(TypeError):
        torch.ones(3) + "a"
    with pytest.raises(RuntimeError, match="shape '\\[5\\]' is invalid"):
        torch.ones(6).view(5)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.ones(2, dtype=torch.int64) // torch.zeros(2, dtype=torch.int64)


def test_empty_and_scalar_tensors():
    assert torch.ones(0, 3).sum().item() == 0 and torch.ones(0, 3).sum(0).tolist() == [0, 0, 0]
    assert torch.tensor(5).item() == 5 and torch.tensor(2.5).shape == ()
    with pytest.raises(RuntimeError):
        torch.ones(0).max()
    assert bool(torch.tensor(1)) and not bool(torch.tensor(0.0))
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(torch.ones(2))


def test_numpy_shares_memory_both_ways():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = torch.from_numpy(array)
    t += 1
    assert array[0, 0] == 1
    back = t.numpy()
    back[1, 2] = 50
    assert t[1, 2] == 50 and np.asarray(t).base is not None
    assert torch.from_numpy(array[:, ::2]).tolist() == array[:, ::2].tolist()
    assert np.add(torch.ones(2), 1).tolist() == [2, 2]


def test_dlpack_both_ways():
    t = torch.arange(4.0)
    array = np.from_dlpack(t)
    t[0] = 9
    assert array[0] == 9
    again = torch.from_dlpack(np.arange(3.0))
    assert again.tolist() == [0, 1, 2] and torch.from_dlpack(torch.to_dlpack(t)).data_ptr() == t.data_ptr()
    with pytest.raises(RuntimeError):
        capsule = torch.to_dlpack(t)
        torch.from_dlpack(capsule)
        torch.from_dlpack(capsule)


def test_copies_keep_what_they_should():
    t = torch.arange(6.0).view(2, 3).t().requires_grad_()
    twin = copy.deepcopy(t)
    assert twin.requires_grad and torch.equal(twin, t) and twin.data_ptr() != t.data_ptr()
    again = pickle.loads(pickle.dumps(t))
    assert again.requires_grad and torch.equal(again, t)


def test_format_and_conversions():
    assert f"{torch.tensor(0.1234):.2f}" == "0.12" and float(torch.tensor([2.5])) == 2.5 and int(torch.tensor(3)) == 3
    assert [1, 2, 3][torch.tensor(1)] == 2 and len(torch.ones(4, 2)) == 4
    assert [r.tolist() for r in torch.arange(4).view(2, 2)] == [[0, 1], [2, 3]]


def test_identity_and_attributes_of_the_python_object():
    t = torch.ones(2, requires_grad=True)
    t.mark = "mine"
    holder = [t.view(2)]
    assert holder[0]._base is t and holder[0]._base.mark == "mine"
    (t * 2).sum().backward()
    assert t.grad is t.grad


def test_linspace_rounds_the_same_on_every_machine():
    # Values that PyTorch gives with 32-byte vectors; wider vectors, or none, would give others.
    assert torch.linspace(-3, 10, 50, dtype=torch.int64).tolist()[3:9] == [-2, -1, 0, 0, 0, 0]
    assert torch.linspace(4.3, -3, 50, dtype=torch.int32).tolist()[8:17] == [2, 1, 1, 1, 1, 1, 1, 1, 1]
    reference = pytest.importorskip("torch")
    for ends in ((-3, 10), (4.3, -3), (0, 1), (0.1, 0.7)):
        for n in (1, 2, 15, 16, 33, 50, 1000):
            for name in ("float32", "float64", "int32", "int64"):
                ours = torch.linspace(*ends, n, dtype=getattr(torch, name)).numpy()
                assert (ours == reference.linspace(*ends, n, dtype=getattr(reference, name)).numpy()).all(), (ends, n, name)
