"""unique by counting and by comparing, flips of every width, and histc."""

import math

import pytest

torch = pytest.importorskip("msadapter.pytorch")


@pytest.mark.parametrize("values", [[3, 1, 3, -2, 1], [10 ** 12, -10 ** 18, 10 ** 12, 7], [2 ** 63 - 1, -2 ** 63, 2 ** 63 - 1], []])
def test_unique_integers_of_narrow_and_wide_ranges(values):
    result, inverse, counts = torch.unique(torch.tensor(values, dtype=torch.int64), return_inverse=True, return_counts=True)
    assert result.tolist() == sorted(set(values)) and [result.tolist()[i] for i in inverse.tolist()] == values
    assert counts.tolist() == [values.count(v) for v in sorted(set(values))]


def test_unique_floats_join_zeros_and_keep_each_nan():
    result = torch.unique(torch.tensor([0.0, -0.0, math.nan, 1.0, math.nan]))
    assert result.tolist()[:2] == [0.0, 1.0] and result.isnan().sum().item() == 2


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.float32, torch.float64, torch.complex128])
def test_flip_reverses_elements_of_every_width(dtype):
    x = torch.arange(12).reshape(2, 3, 2).to(dtype)
    assert x.flip(2).tolist() == [[row[::-1] for row in page] for page in x.tolist()]
    assert x.transpose(0, 2).flip(0, 1).tolist() == [page[::-1] for page in x.transpose(0, 2).tolist()[::-1]]


def test_histc_closes_the_last_bin_and_skips_what_is_outside():
    x = torch.tensor([0.0, 1, 2, 3, 4, 5, math.nan])
    assert torch.histc(x, 4, 0, 4).tolist() == [1, 1, 1, 2]
    assert torch.histc(torch.ones(3), 2).tolist() == [0, 3]
    with pytest.raises(RuntimeError):
        torch.histc(x, 4)
    with pytest.raises(RuntimeError):
        torch.histc(x, 4, 2, 1)


def test_logaddexp_of_infinities():
    inf = math.inf
    assert torch.logaddexp(torch.tensor([inf, -inf, inf, 0.0]), torch.tensor([inf, -inf, -inf, 0.0])).tolist() == pytest.approx([inf, -inf, inf, math.log(2)])


@pytest.mark.parametrize("dtype", ["int64", "int16", "uint8", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("count", [1, 5, 13, 14, 30, 100, 5000])
def test_unsorted_unique_lists_values_in_pytorchs_order(dtype, count):
    reference = pytest.importorskip("torch")
    reference.manual_seed(count)
    integral = "int" in dtype
    values = reference.randint(0, 200, (count,)) if integral else reference.randn(count) * 3
    expected = reference.unique(values.to(getattr(reference, dtype)), sorted=False, return_inverse=True, return_counts=True)
    found = torch.unique(torch.tensor(values.tolist()).to(getattr(torch, dtype)), sorted=False, return_inverse=True, return_counts=True)
    assert [t.tolist() for t in found] == [t.tolist() for t in expected]


def test_unsorted_unique_of_integers_lists_the_latest_bucket_first():
    assert torch.unique(torch.tensor([5, 7, 5, 20, 7]), sorted=False).tolist() == [20, 7, 5]


def test_unique_slices_are_ordered_as_the_exchanged_dimensions_list_them():
    x = torch.tensor([[[1, 0], [0, 1]], [[0, 1], [0, 0]]])
    columns = x.transpose(2, 0).reshape(2, -1).tolist()
    assert torch.unique(x, dim=2).transpose(2, 0).reshape(2, -1).tolist() == sorted(columns)
