"""Objects of tensors: identity, life time, attributes, copies and pickles."""

import copy
import gc
import io
import pickle
import weakref

import numpy as np
import pytest

import msadapter.pytorch as torch
from msadapter import _C


class Labelled(torch.Tensor):
    """A subclass that carries attributes."""


def test_a_tensor_has_one_object():
    a = torch.ones(3, requires_grad=True)
    b = a * 2
    assert b.add_(0) is b
    assert a.requires_grad_() is a
    b.sum().backward()
    assert a.grad is a.grad
    a.grad.mark = 1
    gc.collect()
    assert a.grad.mark == 1


def test_object_with_attributes_survives_while_the_graph_holds_the_tensor():
    a = torch.ones(3, requires_grad=True)
    a.name_of_mine = "weight"
    b = (a * a).sum()
    reference = weakref.ref(a)
    del a
    gc.collect()
    node = b.grad_fn.next_functions[0][0].next_functions[0][0]
    assert node.variable.name_of_mine == "weight"
    assert node.variable is node.variable
    assert reference() is node.variable
    del b, node
    gc.collect()
    assert reference() is None


def test_subclass_object_survives_many_turns_of_ownership():
    leaf = Labelled([1.0, 2.0]).requires_grad_()
    graph = (leaf * leaf).sum()
    node = graph.grad_fn.next_functions[0][0].next_functions[0][0]
    identity = None
    del leaf
    for _ in range(5):
        variable = node.variable
        assert type(variable) is Labelled
        assert identity in (None, id(variable))
        identity = id(variable)
        del variable
        gc.collect()


def test_cycles_through_attributes_are_collected():
    a = torch.ones(2)
    a.self_reference = a
    reference = weakref.ref(a)
    del a
    gc.collect()
    assert reference() is None


def test_weak_references_and_hashes():
    a = torch.ones(2)
    reference = weakref.ref(a)
    assert reference() is a and a in {a} and hash(a) == hash(a)
    del a
    assert reference() is None


def test_many_objects_come_and_go():
    kept = [torch.ones(2) for _ in range(1000)]
    assert all(t.tolist() == [1, 1] for t in kept)
    del kept
    assert [torch.full((1,), float(i)).item() for i in range(1000)] == list(range(1000))


def test_dict_attributes():
    a = torch.ones(2)
    a.x, a.y = 1, [2]
    assert a.__dict__ == {"x": 1, "y": [2]}
    a.__dict__ = {"z": 3}
    assert a.z == 3 and not hasattr(a, "x")
    with pytest.raises(AttributeError):
        a.missing  # noqa: B018


def test_deepcopy_keeps_class_attributes_gradient_and_sharing():
    a = Labelled([1.0, 2.0]).requires_grad_()
    a.tag = ["t"]
    (a * 3).sum().backward()
    b, c = copy.deepcopy([a, a])
    assert b is c and type(b) is Labelled and b.requires_grad and b.tag == ["t"] and b.tag is not a.tag
    assert b.grad.tolist() == [3, 3] and b.grad is not a.grad
    with torch.no_grad():
        b.add_(1)
    assert a.tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(a * 2)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol):
    a = torch.arange(6).reshape(2, 3).t()
    b = torch.ones(2, dtype=torch.bfloat16).requires_grad_()
    b.note = "n"
    values = (a, b, torch.float32, torch.Size([2, 3]), torch.device("cuda", 1), torch.channels_last, torch.strided, torch.LongTensor,
              torch.ones(2).storage())
    a2, b2, *others = pickle.loads(pickle.dumps(values, protocol))
    assert a2.tolist() == a.tolist() and a2.dtype is torch.int64
    assert b2.requires_grad and b2.dtype is torch.bfloat16 and b2.note == "n"
    assert others[:6] == list(values[2:8]) and others[0] is torch.float32
    assert others[6].tolist() == [1, 1]


def test_hostile_rebuild_arguments_raise():
    rebuild = _C._rebuild_tensor
    for args in [(b"abc", torch.float32, (1,), False, None, None), (b"", torch.float32, (-1,), False, None, None),
                 (b"", torch.float32, (2**62, 2**62), False, None, None), (b"", 3, (1,), False, None, None),
                 (b"abcd", torch.float32, (1,), False, int, None), (b"abcd", torch.float32, (1,), False, None, 5),
                 (b"a", torch.bool, (1,), True, None, None)]:
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            rebuild(*args)


def test_make_subclass_shares_memory():
    a = torch.zeros(3)
    b = torch.Tensor._make_subclass(Labelled, a, True)
    assert type(b) is Labelled and b.requires_grad and b.is_leaf
    with torch.no_grad():
        b += 1
    assert a.tolist() == [1, 1, 1]
    with pytest.raises(TypeError):
        torch.Tensor._make_subclass(int, a)


def test_data_shares_memory_and_can_be_replaced():
    a = torch.zeros(3, requires_grad=True)
    a.data.add_(1)
    assert a.tolist() == [1, 1, 1] and not a.data.requires_grad
    a.data = torch.arange(4.0)
    assert a.tolist() == [0, 1, 2, 3] and a.requires_grad and a.is_leaf
    with pytest.raises(TypeError):
        a.data = [1, 2]
    for name in ("data", "real"):
        with pytest.raises(TypeError):
            delattr(a, name)


def test_operators_release_nothing_twice():
    a = torch.ones(4)
    for _ in range(2000):
        b = a + 1
        c = b[1:3]
        d = c.view(-1)
        b = torch.max(d.reshape(1, 2), 1)
        assert b.values.item() == 2


def test_save_to_a_file_like_object_by_pickle():
    stream = io.BytesIO()
    pickle.dump({"w": torch.ones(2, 2)}, stream)
    stream.seek(0)
    assert np.array_equal(pickle.load(stream)["w"].numpy(), np.ones((2, 2)))


def test_classes_of_collected_objects_survive():
    class Local(torch.Tensor):
        pass

    kept = [Local([1.0]) for _ in range(100)]
    for t in kept:
        t.mark = t
    gc.collect()
    assert all(type(t) is Local for t in kept)
    reference = weakref.ref(Local)
    del kept, t, Local
    gc.collect()
    assert reference() is None


def test_direct_subclasses_of_the_base_come_and_go():
    class Direct(_C.TensorBase):
        pass

    reference = weakref.ref(Direct)
    for _ in range(1000):
        t = Direct([1.0, 2.0])
        t.x = t
        assert t.tolist() == [1, 2]
    with pytest.raises(RuntimeError):
        _C.set_tensor_class(Direct)
    assert type(Direct([1.0]) + 1) in (torch.Tensor, Direct)
    del t, Direct
    gc.collect()
    assert reference() is None
