"""Distances between rows, and search in sorted rows."""

import math

import pytest

torch = pytest.importorskip("msadapter.pytorch")


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("rows", [3, 30])
def test_cdist_is_the_norm_of_differences(p, rows):
    torch.manual_seed(0)
    a, b = torch.randn(2, rows, 4, dtype=torch.float64), torch.randn(2, 2, 4, dtype=torch.float64)
    expected = torch.linalg_vector_norm(a.unsqueeze(-2) - b.unsqueeze(-3), p, [-1])
    assert torch.allclose(torch.cdist(a, b, p), expected)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, math.inf])
def test_gradients_of_cdist(p):
    torch.manual_seed(0)
    a, b = torch.randn(3, 4, dtype=torch.float64, requires_grad=True), torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, y: torch.cdist(x, y, p), (a, b))
    if p != math.inf:
        assert torch.autograd.gradgradcheck(lambda x, y: torch.cdist(x, y, p), (a, b))


def test_equal_points_have_no_gradient():
    x = torch.ones(30, 3, requires_grad=True)
    torch.cdist(x, x).sum().backward()
    assert x.grad.abs().max() == 0


def test_cdist_refuses_what_does_not_fit():
    with pytest.raises(RuntimeError):
        torch.cdist(torch.ones(2, 3), torch.ones(2, 4))
    with pytest.raises(RuntimeError):
        torch.cdist(torch.ones(2, 3), torch.ones(2, 3), p=-1)
    assert torch.cdist(torch.ones(0, 3), torch.ones(2, 3)).shape == (0, 2)


def test_searchsorted_finds_both_sides_in_rows():
    rows = torch.tensor([[1, 3, 3, 5], [2, 4, 6, 8]])
    values = torch.tensor([[3, 9], [2, 5]])
    assert torch.searchsorted(rows, values).tolist() == [[1, 4], [0, 2]]
    assert torch.searchsorted(rows, values, right=True).tolist() == [[3, 4], [1, 2]]
    order = torch.tensor([2, 0, 1])
    assert torch.searchsorted(torch.tensor([5.0, 9.0, 1.0]), torch.tensor([4.0, math.nan]), sorter=order).tolist() == [1, 3]
    assert torch.bucketize(torch.tensor([0.5, 2.0]), torch.tensor([1.0, 2.0]), out_int32=True).dtype is torch.int32
    with pytest.raises(RuntimeError):
        torch.searchsorted(rows, torch.ones(3, 2))
    with pytest.raises(IndexError):
        torch.searchsorted(torch.ones(2), torch.ones(1), sorter=torch.tensor([0, 7]))


def test_isin_of_many_elements_agrees_with_few():
    torch.manual_seed(0)
    elements, tests = torch.randint(0, 1000, (500,)), torch.randint(0, 1000, (300,))
    assert torch.equal(torch.isin(elements, tests), (elements.unsqueeze(1) == tests).any(1))
    assert not torch.isin(torch.full((100,), math.nan), torch.full((100,), math.nan)).any()
