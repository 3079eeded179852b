"""Changes of geometry in place, and what they mean for gradients."""

import pytest

import msadapter.pytorch as torch


@pytest.mark.parametrize("change, shape", [
    (lambda t: t.unsqueeze_(0), (1, 2, 1, 3)), (lambda t: t.squeeze_(), (2, 3)), (lambda t: t.squeeze_(1), (2, 3)), (lambda t: t.transpose_(0, 2), (3, 1, 2)),
    (lambda t: t.swapaxes_(0, 2), (3, 1, 2)), (lambda t: t.swapdims_(dim0=0, dim1=2), (3, 1, 2)), (lambda t: t.as_strided_((3, 2), (1, 3)), (3, 2)),
    (lambda t: t.squeeze_().t_(), (3, 2)),
])
def test_geometry_in_place(change, shape):
    t = torch.arange(6.0).reshape(2, 1, 3)
    data = t.data_ptr()
    assert change(t) is t and tuple(t.shape) == shape and t.data_ptr() == data and t.sum().item() == 15
    leaf = torch.arange(6.0).reshape(2, 1, 3).requires_grad_()
    u = leaf * 2
    assert change(u) is u and u.requires_grad
    (u * torch.arange(6.0).reshape(u.shape)).sum().backward()
    other = torch.arange(6.0).reshape(2, 1, 3)
    weights = change(torch.zeros(2, 1, 3))
    weights.copy_(torch.arange(6.0).reshape(weights.shape))
    back = torch.zeros(6)
    back.as_strided_(weights.shape, weights.stride()).copy_(weights)
    assert leaf.grad.flatten().tolist() == [2 * v for v in back.storage().tolist()] and other.shape == leaf.grad.shape
    with pytest.raises(RuntimeError, match="leaf Variable"):
        change(leaf)


def test_wrong_arguments_leave_the_tensor_alone():
    t = torch.zeros(2, 3)
    for call in (lambda: t.unsqueeze_(5), lambda: t.transpose_(0, 4), lambda: t.transpose_(0), lambda: t.t_(1)):
        with pytest.raises((IndexError, TypeError)):
            call()
    assert t.shape == (2, 3)
