"""The text form of tensors."""

import pytest

import msadapter.pytorch as torch


@pytest.mark.parametrize("make, text", [
    (lambda: torch.tensor(1.0), "tensor(1.)"),
    (lambda: torch.tensor([1.0, 2.5]), "tensor([1.0000, 2.5000])"),
    (lambda: torch.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])"),
    (lambda: torch.tensor([[1, 20], [-3, 4]]), "tensor([[ 1, 20],\n        [-3,  4]])"),
    (lambda: torch.tensor([True, False]), "tensor([ True, False])"),
    (lambda: torch.tensor([1 + 2j, 3.5 - 4j]), "tensor([1.0000+2.j, 3.5000-4.j])"),
    (lambda: torch.tensor([1.0, float("nan"), float("-inf")]), "tensor([1., nan, -inf])"),
    (lambda: torch.zeros(0, 3), "tensor([], size=(0, 3))"),
    (lambda: torch.tensor([1, 2], dtype=torch.int32), "tensor([1, 2], dtype=torch.int32)"),
    (lambda: torch.arange(2000), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"),
    (lambda: torch.tensor([1.0], requires_grad=True), "tensor([1.], requires_grad=True)"),
    (lambda: torch.tensor([1.0], requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
])
def test_tensors_print_as_in_torch(make, text):
    assert repr(make()) == text


def test_options_change_digits_and_shortening():
    try:
        torch.set_printoptions(precision=2, threshold=5, edgeitems=1)
        assert repr(torch.arange(10.0) / 4) == "tensor([0.00,  ..., 2.25])"
        torch.set_printoptions(sci_mode=True)
        assert repr(torch.tensor([1.5])) == "tensor([1.50e+00])"
    finally:
        torch.set_printoptions(profile="default")
    assert repr(torch.tensor([1.5])) == "tensor([1.5000])"
