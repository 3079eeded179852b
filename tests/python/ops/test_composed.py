"""Functions made of other operators."""

import pytest

import msadapter.pytorch as torch


def test_einsum_sums_what_the_output_does_not_name():
    a, b = torch.arange(6.0).reshape(2, 3).requires_grad_(), torch.arange(6.0).reshape(3, 2)
    product = torch.einsum("ij,jk->ik", a, b)
    assert product.tolist() == a.matmul(b).tolist()
    product.sum().backward()
    assert a.grad.tolist() == [[1, 5, 9], [1, 5, 9]]
    assert torch.einsum("ii", torch.eye(3)).item() == 3
    with pytest.raises(RuntimeError, match="subscripts"):
        torch.einsum("ijk", a)


def test_vectors_stack_as_rows_and_columns():
    v = torch.tensor([1, 2])
    assert torch.hstack([v, v]).tolist() == [1, 2, 1, 2]
    assert torch.vstack([v, v]).tolist() == [[1, 2], [1, 2]]
    assert torch.column_stack([v, v]).tolist() == [[1, 1], [2, 2]]


def test_grids_follow_their_indexing():
    a, b = torch.tensor([1, 2, 3]), torch.tensor([4, 5])
    assert [g.shape for g in torch.meshgrid(a, b, indexing="ij")] == [(3, 2), (3, 2)]
    assert torch.meshgrid(a, b, indexing="xy")[0].tolist() == [[1, 2, 3], [1, 2, 3]]


def test_uneven_parts_come_first_when_a_tensor_is_split():
    assert [t.tolist() for t in torch.arange(5).tensor_split(2)] == [[0, 1, 2], [3, 4]]


def test_quantiles_lie_between_neighbours():
    assert torch.quantile(torch.tensor([3.0, 1.0, 2.0, 4.0]), 0.5).item() == 2.5


def test_windows_repeat_unless_they_are_symmetric():
    assert torch.hann_window(4).tolist() == pytest.approx([0, 0.5, 1, 0.5])
    assert torch.hann_window(3, periodic=False).tolist() == pytest.approx([0, 1, 0])


def test_masked_scatter_fills_in_order_with_gradients():
    source = torch.tensor([5.0, 6.0, 7.0], requires_grad=True)
    result = torch.zeros(3).masked_scatter(torch.tensor([True, False, True]), source)
    assert result.tolist() == [5, 0, 6]
    result.sum().backward()
    assert source.grad.tolist() == [1, 1, 0]


@pytest.mark.parametrize("call", ["cdist(3, torch.ones(2, 2))", "meshgrid([None, torch.ones(2)])", "complex([1.0], torch.ones(1))", "diff(1)",
                                  "broadcast_tensors(1.5, torch.ones(1))", "cross(torch.ones(3), 'x')", "quantile((1, 2), 0.5)", "tensordot(2.0, torch.ones(2))",
                                  "masked_scatter(1, 2, 3)", "trapezoid(True)"])
def test_what_is_no_tensor_is_a_type_error(call):
    with pytest.raises(TypeError):
        eval("torch." + call)  # noqa: S307
