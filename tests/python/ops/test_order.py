"""Order statistics: values against Python's own sorting, and the places of equal elements as PyTorch gives them."""

import math
import random

import pytest

torch = pytest.importorskip("msadapter.pytorch")


def median_of_three_killer(n):
    """A row that makes quicksort with the median of three quadratic, so that it turns to the heap (Musser 1997)."""
    k, row = n // 2, [0] * n
    for i in range(1, k + 1):
        if i % 2:
            row[i - 1], row[i] = i, k + i
        row[k + i - 1] = 2 * i
    return row


def rows():
    generator = random.Random(0)
    for n in (1, 2, 3, 15, 17, 64, 65, 200, 1000):
        for kinds in (1, 2, 9, 10 * n):
            row = [generator.randrange(kinds) for _ in range(n)]
            yield row
            yield sorted(row)
            yield sorted(row, reverse=True)
    yield median_of_three_killer(3000)


def test_everything_agrees_with_sorting():
    for row in rows():
        n, t, ordered = len(row), torch.tensor(row), sorted(row)
        for descending in (False, True):
            values, places = t.sort(descending=descending)
            assert values.tolist() == sorted(row, reverse=descending) and [row[i] for i in places.tolist()] == values.tolist()
            assert sorted(places.tolist()) == list(range(n))
            stable = sorted(range(n), key=lambda i: -row[i] if descending else row[i])
            assert t.sort(stable=True, descending=descending)[1].tolist() == stable
        for k in {0, 1, n // 64, n // 2, n}:
            values, places = t.topk(k)
            assert values.tolist() == ordered[::-1][:k] and [row[i] for i in places.tolist()] == values.tolist()
            assert sorted(t.topk(k, largest=False, sorted=False)[0].tolist()) == ordered[:k]
            if k:
                value, place = t.kthvalue(k)
                assert value.item() == ordered[k - 1] == row[place.item()]
        value, place = t.median(0)
        assert value.item() == ordered[(n - 1) // 2] == row[place.item()]


def test_nan_is_the_largest_and_zeros_are_equal():
    x = torch.tensor([1.0, math.nan, -0.0, 0.0, -math.inf, math.inf])
    assert x.sort(stable=True)[1].tolist() == [4, 2, 3, 0, 5, 1]
    assert x.topk(2)[1].tolist() == [1, 5] and x.double().topk(2, largest=False)[1].tolist()[0] == 4
    assert torch.isnan(x.median()) and x.nanmedian().item() == 0


def test_equal_elements_lie_where_pytorch_puts_them():
    x = torch.tensor([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1])
    assert x.sort()[1].tolist() == [1, 15, 10, 9, 8, 7, 6, 4, 3, 2, 5, 11, 12, 13, 14, 0, 16]
    assert torch.zeros(4).median(0)[1].item() == 1 and torch.tensor([1, 0, 1, 0]).median(0)[1].item() == 3
