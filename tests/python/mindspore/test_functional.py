"""value_and_grad and its relatives, as chapters 2 and 4 of the manual use them."""
import subprocess
import sys

import pytest

import msadapter.pytorch as torch
import mindspore as ms


def test_import_order_does_not_matter_and_nothing_else_is_served():
    code = "import msadapter, mindspore as ms; assert ms.ops.value_and_grad; import mindspore.ops"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(ModuleNotFoundError):
        import mindspore.no_such_module  # noqa: F401


def test_positions_and_weights():
    w = torch.tensor([3.0], requires_grad=True)

    def f(x, y):
        return (w * x * y).sum()

    x, y = torch.tensor([2.0]), torch.tensor([5.0])
    value, grads = ms.ops.value_and_grad(f, (0, 1))(x, y)
    assert value.item() == 30 and [g.item() for g in grads] == [15, 6] and not value.requires_grad
    assert ms.ops.grad(f)(x, y).item() == 15
    of_inputs, of_weights = ms.ops.value_and_grad(f, 1, [w])(x, y)[1]
    assert of_inputs.item() == 6 and of_weights[0].item() == 10
    assert ms.ops.value_and_grad(f, None, w)(x, y)[1].item() == 10
    assert w.grad is None and not x.requires_grad


def test_nested_auxiliary_outputs_and_unused_weights():
    w, unused = torch.tensor([1.0], requires_grad=True), torch.tensor([1.0, 1.0], requires_grad=True)

    def f(x):
        loss = (w * x).sum()
        return loss, {"a": [loss * 2, (x,)]}

    (loss, aux), grads = ms.ops.value_and_grad(f, None, [w, unused], has_aux=True)(torch.tensor([4.0]))
    assert loss.item() == 4 and aux["a"][0].item() == 8 and grads[0].item() == 4 and grads[1].tolist() == [0, 0]


def test_gradient_of_gradient():
    cube = lambda x: (x ** 3).sum()  # noqa: E731
    assert ms.ops.grad(lambda x: ms.ops.grad(cube)(x).sum())(torch.tensor([2.0])).item() == 12


def test_wrong_arguments():
    with pytest.raises(ValueError):
        ms.ops.value_and_grad(lambda x: x, None)
    with pytest.raises(TypeError):
        ms.ops.value_and_grad(lambda x: x, "0")
    with pytest.raises(ValueError):
        ms.ops.grad(lambda x: x.sum(), 1)(torch.ones(1))


def test_clip_by_global_norm():
    clipped = ms.ops.clip_by_global_norm([torch.tensor([3.0]), torch.tensor([4.0])], 1.0)
    assert torch.allclose(torch.cat(clipped), torch.tensor([0.6, 0.8]))
    same = ms.ops.clip_by_global_norm((torch.tensor([0.3]),), 1.0)
    assert isinstance(same, tuple) and torch.allclose(same[0], torch.tensor([0.3]))


def test_context_and_seed():
    ms.set_context(device_target="CPU", mode=ms.PYNATIVE_MODE)
    ms.context.set_context(device_target="CPU")
    assert ms.get_context("device_target") == "CPU"
    with pytest.raises(ValueError):
        ms.set_context(colour="red")
    ms.set_seed(0)
    a = torch.randn(3)
    ms.set_seed(0)
    assert torch.equal(a, torch.randn(3))


def test_mindspore_tensors():
    import numpy as np

    t = ms.Tensor(np.ones((2, 2), np.float32))
    assert t.asnumpy().sum() == 4 and ms.Tensor([1, 2], ms.float32).dtype == torch.float32
    mine = torch.cast_to_adapter_tensor({"a": [t]})["a"][0]
    assert type(mine) is torch.Tensor and mine.data_ptr() == t.data_ptr()
