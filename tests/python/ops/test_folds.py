"""Elements folded into places (scatter_reduce, index_reduce, put), histograms, quantiles and derivatives of samples."""

import pytest

torch = pytest.importorskip("msadapter.pytorch")


def test_scatter_reduce_folds_in_every_way():
    source, index = torch.tensor([1.0, 2, 3, 4]), torch.tensor([0, 0, 2, 2])
    start = torch.tensor([10.0, 20, 30])
    for reduce, expected, alone in [("sum", [13, 20, 37], [3, 20, 7]), ("prod", [20, 20, 360], [2, 20, 12]), ("mean", [13 / 3, 20, 37 / 3], [1.5, 20, 3.5]),
                                    ("amax", [10, 20, 30], [2, 20, 4]), ("amin", [1, 20, 3], [1, 20, 3])]:
        assert torch.allclose(torch.scatter_reduce(start, 0, index, source, reduce), torch.tensor(expected, dtype=torch.float32))
        assert torch.allclose(start.scatter_reduce(0, index, source, reduce, include_self=False), torch.tensor(alone, dtype=torch.float32))


def test_mean_of_integers_is_rounded_down():
    folded = torch.tensor([-3]).scatter_reduce(0, torch.tensor([0]), torch.tensor([-4]), "mean")
    assert folded.tolist() == [-4]


def test_gradient_of_a_product_with_one_zero():
    source = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    torch.ones(1).scatter_reduce(0, torch.zeros(3, dtype=torch.int64), source, "prod").sum().backward()
    assert source.grad.tolist() == [0, 6, 0]


def test_equal_extremes_share_the_gradient():
    start, source = torch.tensor([5.0, 0.0], requires_grad=True), torch.tensor([5.0, 5.0, 1.0], requires_grad=True)
    start.scatter_reduce(0, torch.tensor([0, 0, 1]), source, "amax").sum().backward()
    assert torch.allclose(start.grad, torch.tensor([1 / 3, 0])) and torch.allclose(source.grad, torch.tensor([1 / 3, 1 / 3, 1]))


def test_index_reduce_folds_slices():
    result = torch.ones(2, 2).index_reduce(1, torch.tensor([0, 0]), torch.tensor([[2.0, 3], [4, 5]]), "prod")
    assert result.tolist() == [[6, 1], [20, 1]]
    with pytest.raises(RuntimeError):
        torch.ones(2).index_reduce(0, torch.tensor([2]), torch.ones(1), "prod")
    with pytest.raises(RuntimeError):
        torch.ones(2).index_reduce(0, torch.tensor([0]), torch.ones(1), "sum")


def test_put_writes_into_the_flat_tensor():
    t = torch.zeros(2, 2)
    assert t.put(torch.tensor([1, -1]), torch.tensor([5.0, 7.0])).tolist() == [[0, 5], [0, 7]]
    t.put_(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]), accumulate=True)
    assert t[0, 0].item() == 3
    with pytest.raises(IndexError):
        t.put_(torch.tensor([4]), torch.tensor([1.0]))


def test_histogram_counts_and_weighs():
    x = torch.tensor([0.0, 1, 1, 2, 4, float("nan")])
    hist, edges = torch.histogram(x, bins=4, range=(0, 4))
    assert hist.tolist() == [1, 2, 1, 1] and edges.tolist() == [0, 1, 2, 3, 4]
    result = torch.histogram(x, torch.tensor([0.0, 1, 4]), weight=torch.ones(6) * 2, density=True)
    assert torch.allclose(result.hist, torch.tensor([0.2, 0.8 / 3])) and result.bin_edges.tolist() == [0, 1, 4]
    with pytest.raises(RuntimeError):
        torch.histogram(x, bins=3)


def test_histogramdd_has_a_dimension_for_each_coordinate():
    points = torch.tensor([[0.0, 0], [1, 5], [1, 6], [9, 9]])
    hist, edges = torch.histogramdd(points, [2, 2], range=[0, 2, 0, 10])
    assert hist.tolist() == [[1, 0], [0, 2]] and [e.tolist() for e in edges] == [[0, 1, 2], [0, 5, 10]]


def test_nanquantile_skips_nan():
    x = torch.tensor([[1.0, float("nan"), 3.0], [float("nan")] * 3])
    assert x.nanquantile(0.5, dim=1)[0].item() == 2
    assert torch.isnan(x.nanquantile(0.5, dim=1)[1]) and torch.isnan(x.quantile(0.5))


def test_gradient_of_a_parabola_is_exact():
    x = torch.tensor([0.0, 1, 3, 4, 6], dtype=torch.float64)
    slope, = torch.gradient(x * x, spacing=(x,), edge_order=2)
    assert torch.allclose(slope, 2 * x)
    rows, columns = torch.gradient(torch.arange(6.0).reshape(2, 3))
    assert rows.tolist() == [[3] * 3] * 2 and columns.tolist() == [[1] * 3] * 2


def test_vander_and_kaiser_window():
    assert torch.vander(torch.tensor([2, 3]), 3).tolist() == [[4, 2, 1], [9, 3, 1]]
    window = torch.kaiser_window(5, periodic=False, beta=0.0)
    assert torch.allclose(window, torch.ones(5))


def test_out_of_gather_is_exact_and_apart():
    x, index = torch.arange(4.0), torch.tensor([0, 1])
    with pytest.raises(RuntimeError):
        torch.gather(x, 0, index, out=torch.empty(2, dtype=torch.float64))
    with pytest.raises(RuntimeError):
        torch.gather(x, 0, index, out=x[1:3])
