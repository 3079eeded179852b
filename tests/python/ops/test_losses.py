"""Losses of elements, and padding and resizing of pictures."""

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch.nn import functional as F


def test_mean_squared_error_and_its_gradient():
    x = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    loss = F.mse_loss(x, torch.tensor([1.0, 0.0, 1.0]))
    loss.backward()
    assert loss.item() == pytest.approx(13 / 3)
    assert x.grad.tolist() == pytest.approx([0, 4 / 3, 2])


def test_cross_entropy_of_certain_probabilities_is_finite():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    loss = F.binary_cross_entropy(x, torch.tensor([1.0, 1.0]), reduction="none")
    loss.sum().backward()
    assert loss.tolist() == [100, 0]
    assert x.grad.isfinite().all()


def test_probabilities_outside_of_0_and_1_are_refused():
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        F.binary_cross_entropy(torch.tensor([1.5]), torch.tensor([1.0]))


def test_constant_padding_crops_where_negative_and_gives_the_gradient_back():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = F.pad(x, [1, -1], value=9.0)
    assert y.tolist() == [[9, 0, 1], [9, 3, 4]]
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1, 0], [1, 1, 0]]


def test_blocks_fold_back_as_often_as_they_overlap():
    x = torch.ones(1, 1, 3, 3)
    assert F.fold(F.unfold(x, 2), (3, 3), 2).tolist() == [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]


def test_linear_resizing_of_a_line():
    x = torch.tensor([[[0.0, 1.0, 2.0]]])
    assert F.interpolate(x, size=5, mode="linear", align_corners=True).tolist() == [[[0, 0.5, 1, 1.5, 2]]]
