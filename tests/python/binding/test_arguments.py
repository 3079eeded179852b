"""How operators take their arguments: forms, aliases, conversions, and what they say about wrong ones."""

import numpy as np
import pytest

import msadapter.pytorch as torch

a = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("call, expected", [
    (lambda: torch.sum(a, dim=0), [3, 5, 7]),
    (lambda: torch.sum(a, axis=0), [3, 5, 7]),
    (lambda: torch.sum(input=a, dim=(0,)), [3, 5, 7]),
    (lambda: torch.sum(a, 1, True), [[3], [12]]),
    (lambda: a.sum(1, keepdims=True), [[3], [12]]),
    (lambda: a.sum(axis=[0, 1]), 15),
    (lambda: a.view(3, 2), [[0, 1], [2, 3], [4, 5]]),
    (lambda: a.view((3, 2)), [[0, 1], [2, 3], [4, 5]]),
    (lambda: a.view(torch.Size([6])), [0, 1, 2, 3, 4, 5]),
    (lambda: a.view(size=(6,)), [0, 1, 2, 3, 4, 5]),
    (lambda: a.reshape(torch.tensor(3), np.int64(2)), [[0, 1], [2, 3], [4, 5]]),
    (lambda: a.permute(1, 0), [[0, 3], [1, 4], [2, 5]]),
    (lambda: a[0].expand(2, -1), [[0, 1, 2], [0, 1, 2]]),
    (lambda: torch.zeros(2, 1, dtype=torch.int64), [[0], [0]]),
    (lambda: torch.zeros([2]), [0, 0]),
    (lambda: torch.zeros(()), 0),
    (lambda: torch.ones(size=(2,), dtype=float), [1, 1]),
    (lambda: torch.full((2,), 3), [3, 3]),
    (lambda: torch.add(a[0], 1, alpha=2), [2, 3, 4]),
    (lambda: torch.add(a[0], other=1.5), [1.5, 2.5, 3.5]),
    (lambda: torch.mul(2, a[0]), [0, 2, 4]),
    (lambda: a[0].add(np.float32(1)), [1, 2, 3]),
    (lambda: a[0].mul(torch.tensor(2)), [0, 2, 4]),
    (lambda: torch.cat([a, a], dim=0).sum(), 30),
    (lambda: torch.cat((a, a), 1).shape, (2, 6)),
    (lambda: torch.max(a, 1).indices, [2, 2]),
    (lambda: torch.max(a, dim=1)[0], [2, 5]),
])
def test_forms_of_calls(call, expected):
    result = call()
    assert (result.tolist() if isinstance(result, torch.Tensor) else result) == expected


@pytest.mark.parametrize("call, message", [
    (lambda: torch.add(a, "x"), r"add\(\): argument 'other' \(position 2\) must be Tensor, not str"),
    (lambda: a.add("x"), r"add\(\): argument 'other' \(position 1\) must be Tensor, not str"),
    (lambda: torch.relu(), r'relu\(\) missing 1 required positional arguments: "input"'),
    (lambda: torch.relu(a, foo=1), r"relu\(\) got an unexpected keyword argument 'foo'"),
    (lambda: torch.relu(a, input=a), r"relu\(\) got multiple values for argument 'input'"),
    (lambda: torch.max("x"), r"max\(\) received an invalid combination of arguments - got \(str\)"),
    (lambda: torch.zeros(True), r"zeros\(\): argument 'size' \(position 1\) must be tuple of ints, not bool"),
    (lambda: torch.zeros(2, dtype="float32"), r"must be torch.dtype, not str"),
    (lambda: torch.cat(a), r"must be tuple of Tensors, not Tensor"),
    (lambda: torch.cat([a, 1]), r"expected Tensor as element 1 in argument 0, but got int"),
    (lambda: a.view("x"), r"view\(\) received an invalid combination of arguments - got \(str\)"),
    (lambda: a.transpose(0), r"missing 1 required"),
    (lambda: torch.relu(a, out=3), r"out"),
    (lambda: torch.add(a, a, out=3), r"argument 'out' must be Tensor, not int"),
])
def test_wrong_arguments(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_too_large_ints_and_long_lists_raise():
    with pytest.raises(RuntimeError):
        torch.zeros(2**70)
    with pytest.raises(RuntimeError):
        torch.zeros([1] * 65)
    with pytest.raises(RuntimeError):
        a.view(*[1] * 500)
    with pytest.raises(RuntimeError):
        torch.zeros(-1)


def test_out_arguments():
    out = torch.empty(2, 3)
    assert torch.add(a, 1, out=out) is out and out.sum().item() == 21
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.int64)
    result = torch.max(a, 1, out=(values, indices))
    assert result.values is values and indices.tolist() == [2, 2]
    with pytest.raises(TypeError):
        torch.max(a, 1, out=values)


def test_named_results():
    result = torch.max(a, 1)
    assert type(result).__name__ == "max" and result.values is result[0]
    assert repr(result).startswith("torch.return_types.max(\nvalues=tensor(")
    values, indices = result
    assert values.tolist() == [2, 5] and indices.tolist() == [2, 2]


def test_operators_tell_what_they_are():
    assert torch.add.__name__ == "add" and "add(input, other, *, alpha=1, out=None) -> Tensor" in torch.add.__doc__
    assert torch.Tensor.add.__name__ == "add"
    assert a.add.__name__ == "add" and a.add(1)[0, 0].item() == 1


def test_numbers_keep_tensors_types():
    half, ints = torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.int8)
    assert (half + 1.5).dtype is torch.float16 and (ints + 1).dtype is torch.int8
    assert (ints + 1.5).dtype is torch.float32 and (ints * True).dtype is torch.int8
    assert (half + 1j).dtype is torch.complex64 or (half + 1j).dtype.is_complex
    assert (torch.ones(2, dtype=torch.bool) + 1).dtype is torch.int64


def test_methods_of_other_objects_are_refused():
    with pytest.raises(TypeError):
        torch.Tensor.add(3, 4)
    with pytest.raises(TypeError):
        torch.Tensor.add()


def test_numbers_alone_are_no_tensors():
    assert torch.add(1, 2).item() == 3 and torch.remainder(5, torch.tensor([3])).tolist() == [2]
    for function in (torch.remainder, torch.maximum, torch.atan2):
        with pytest.raises(TypeError):
            function(2, 3)


def test_kernels_run_beside_python():
    import threading

    stop, turns = threading.Event(), []

    def count():
        while not stop.is_set():
            turns.append(1)

    big = torch.ones(400, 400)
    thread = threading.Thread(target=count)
    thread.start()
    shared = [big, big]
    for _ in range(20):
        torch.cat(shared, 0).sum(dim=[0])
        shared[0] = big + 0
    stop.set()
    thread.join()
    assert turns
