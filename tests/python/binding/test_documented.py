"""Parameters under the names that PyTorch documents, beside those its own parser takes."""

import pytest

import msadapter.pytorch as torch

x, y = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[2.0, 2.0], [2.0, 2.0]])


@pytest.mark.parametrize("call, expected", [
    (lambda: x.div(value=2), x / 2),
    (lambda: x.div(value=y, rounding_mode="floor"), x // y),
    (lambda: x.clone().mul_(value=3), x * 3),
    (lambda: x.fmod(divisor=2), x.fmod(2)),
    (lambda: x.matmul(tensor2=y), x @ y),
    (lambda: x[None].bmm(batch2=y[None]), (x @ y)[None]),
    (lambda: x.narrow(dimension=1, start=0, length=1), x[:, :1]),
    (lambda: x.take(indices=torch.tensor([3])), torch.tensor([4.0])),
    (lambda: torch.true_divide(dividend=x, divisor=2), x / 2),
    (lambda: torch.dot(x[0], other=y[0]), torch.tensor(6.0)),
    (lambda: torch.broadcast_to(x[0], shape=(2, 2)), x[0].expand(2, 2)),
    (lambda: torch.where(x > 2, x=x, y=y), torch.where(x > 2, x, y)),
    (lambda: torch.where(x > 2, input=x, other=y), torch.where(x > 2, x, y)),
    (lambda: torch.linalg.vector_norm(x=x), x.norm()),
    (lambda: torch.nn.functional.one_hot(tensor=torch.tensor([1, 0])), torch.tensor([[0, 1], [1, 0]])),
])
def test_documented_names_are_understood(call, expected):
    assert torch.equal(call(), expected)


def test_documented_lines_stand_above_the_overloads():
    lines = torch.Tensor.div.__doc__.splitlines()
    assert lines[0] == "div(value, *, rounding_mode=None) -> Tensor" and lines[1] == "div(other) -> Tensor"


def test_unknown_names_are_still_refused():
    with pytest.raises(TypeError, match="div"):
        x.div(divisor=2)
    with pytest.raises(TypeError):
        x.div(value=2, other=2)


def test_repeat_interleave_of_counts_alone():
    counts = torch.tensor([1, 2, 0, 3])
    assert torch.repeat_interleave(counts).tolist() == [0, 1, 1, 3, 3, 3]
    assert torch.repeat_interleave(counts.int(), output_size=6).dtype is torch.int32
    for bad in (torch.ones(2, 2).long(), torch.tensor([-1]), torch.tensor([2 ** 62] * 3), torch.ones(2)):
        with pytest.raises(RuntimeError):
            torch.repeat_interleave(bad)


def test_einsum_with_lists_of_subscripts():
    assert torch.equal(torch.einsum(x, [0, 1], y, [1, 2], [0, 2]), x @ y)
    assert torch.equal(torch.einsum(x, [0, 0]), x.trace())
    assert torch.equal(torch.einsum(x, [..., 1], y, [1, ...]), torch.einsum("...B,B...->...", x, y))
    for bad in ((x, [0, 52]), ("ij",), (x,)):
        with pytest.raises(ValueError, match="einsum"):
            torch.einsum(*bad)
