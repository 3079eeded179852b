"""Mixed precision: types that operators choose, gradients in the leaves' types, kept weights, loss scaling with skipped steps."""

import pickle

import pytest

import msadapter.pytorch as torch
import mindspore as ms
from mindspore.amp import DynamicLossScaler, StaticLossScaler, all_finite, auto_mixed_precision
from msadapter.pytorch import nn
from msadapter.pytorch.cuda.amp import GradScaler, autocast, custom_bwd, custom_fwd
from msadapter.pytorch.nn import functional as F

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


def test_cpu_lists():
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    with torch.autocast("cpu"):
        assert (a @ b).dtype == torch.mm(a, b).dtype == F.linear(a, b).dtype == torch.einsum("ij,jk", a, b).dtype == BF16
        assert F.conv2d(a.view(1, 1, 4, 4), b.view(1, 1, 4, 4)).dtype == BF16 and torch.exp(a.bfloat16()).dtype == BF16
        assert F.mse_loss(a.bfloat16(), b.bfloat16()).dtype == F32 and torch.cat([a, b.bfloat16()]).dtype == F32
        assert (a + b).dtype == F32 and (a.double() @ b.double()).dtype == torch.float64
        with torch.autocast("cpu", enabled=False):
            assert (a @ b).dtype == F32
        assert torch.is_autocast_cpu_enabled() and not torch.is_autocast_enabled()
    assert (a @ b).dtype == F32 and not torch.is_autocast_cpu_enabled()


def test_cuda_lists():
    a, b = torch.randn(4, 4), torch.randn(4, 4)
    with autocast():
        assert (a @ b).dtype == F16 and torch.exp(a.half()).dtype == F.softmax(a.half(), -1).dtype == a.half().sum().dtype == F32
        assert torch.addcmul(a.half(), a, b.half()).dtype == F32 and torch.relu(a.half()).dtype == F16
    with torch.autocast("cuda", dtype=BF16):
        assert (a @ b).dtype == BF16
    with pytest.warns(UserWarning, match="Disabling autocast"), torch.autocast("cuda", dtype=torch.float64):
        assert (a @ b).dtype == F32
    with pytest.raises(RuntimeError, match="autocast device_type"):
        torch.autocast("abacus")


def test_gradients_and_kept_weights():
    layer, x = nn.Linear(8, 8), torch.randn(4, 8)
    with torch.autocast("cpu"):
        first, second = layer(x), layer(x)
        assert torch.equal(first, second)
        with torch.no_grad():
            layer.weight.mul_(2)
        assert not torch.equal(first, layer(x))
        loss = first.float().sum()
    loss.backward()
    assert layer.weight.grad.dtype == F32 and torch.allclose(layer.bias.grad, torch.full((8,), 4.0))
    assert torch.allclose(layer.weight.grad, x.sum(0).expand(8, 8), atol=0.1)


def test_custom_functions_keep_their_precision():
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @custom_fwd
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            seen.append((a @ b).dtype)
            return a @ b

        @staticmethod
        @custom_bwd
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            seen.append((grad.float() @ b).dtype)
            return (grad @ b.t()).to(a.dtype), (a.t() @ grad).to(b.dtype)

    class InFloat(torch.autograd.Function):
        @staticmethod
        @custom_fwd(cast_inputs=F32)
        def forward(ctx, a):
            seen.append((a.dtype, (a @ a).dtype))
            return a * 2

        @staticmethod
        @custom_bwd
        def backward(ctx, grad):
            return grad * 2

    a, b = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)
    with autocast():
        out = Product.apply(a, b)
        half = InFloat.apply(a.half())
    out.float().sum().backward()
    assert seen == [F16, (F32, F32), F16] and half.dtype == F32


def test_the_scale_grows_and_backs_off_and_skips():
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=1.0)
    scaler = GradScaler(init_scale=4.0, growth_interval=2)
    for wanted in (4.0, 8.0):
        optimizer.zero_grad()
        scaler.scale((p * torch.tensor([1.0, 2.0])).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == wanted
    assert p.tolist() == [-1.0, -3.0]
    p.grad = torch.tensor([float("inf"), 1.0])
    assert scaler.step(optimizer) is None
    scaler.update()
    assert p.tolist() == [-1.0, -3.0] and scaler.get_scale() == 4.0
    state = scaler.state_dict()
    assert state == {"scale": 4.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 0}
    again = GradScaler()
    again.load_state_dict(state)
    assert again.state_dict() == state == pickle.loads(pickle.dumps(scaler)).state_dict()


def test_unscaling_for_clipping_and_wrong_orders():
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=1.0)
    scaler = GradScaler(init_scale=8.0)
    with pytest.raises(AssertionError, match="scale"):
        scaler.step(optimizer)
    scaler.scale(p.sum()).backward()
    assert p.grad.tolist() == [8, 8]
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="since the last update"):
        scaler.step(optimizer)
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    off = GradScaler(enabled=False)
    assert off.scale(p) is p and off.get_scale() == 1.0 and off.state_dict() == {}


def test_functional_steps_leave_the_gradients_alone():
    net = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
    scaler = GradScaler(init_scale=1024.0)
    before = net.weight.detach().clone()
    step = ms.ops.value_and_grad(lambda x: scaler.scale(net(x).sum()), None, optimizer.parameters)
    _, grads = step(torch.ones(1, 2))
    scaler.step(optimizer, grads)
    scaler.update()
    assert grads[0].tolist() == [[1024, 1024]] and torch.allclose(net.weight, before - 1)
    scaler.step(optimizer, [torch.full((1, 2), float("nan"))])
    scaler.update()
    assert torch.allclose(net.weight, before - 1) and scaler.get_scale() == 512


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
@pytest.mark.parametrize("dtype", [F16, BF16])
def test_levels_of_mixed_precision(level, dtype):
    torch.manual_seed(0)
    seen = {}
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))
    net[1].register_forward_pre_hook(lambda m, args: seen.update(norm=args[0].dtype))
    plain = net(torch.ones(2, 3, 8, 8)).detach()
    assert auto_mixed_precision(net, level, dtype) is net and auto_mixed_precision(net, level, dtype) is net
    out = net(torch.ones(2, 3, 8, 8))
    assert out.dtype == (F32 if level == "O0" else dtype) and torch.allclose(out.float(), plain, atol=0.1)
    out.float().sum().backward()
    assert all(p.dtype == F32 and p.grad.dtype == F32 for p in net.parameters())
    with pytest.raises(ValueError, match="amp_level"):
        auto_mixed_precision(net, "O9")


def test_mindspores_loss_scalers():
    scaler = DynamicLossScaler(scale_value=1024, scale_factor=2, scale_window=2)
    assert scaler.scale(torch.tensor(2.0)).item() == 2048
    assert scaler.unscale((torch.tensor(2048.0), torch.tensor(1024.0))) == (torch.tensor(2.0), torch.tensor(1.0))
    for finite, wanted in ((True, 1024), (True, 2048), (False, 1024), (True, 1024)):
        scaler.adjust(torch.tensor(finite))
        assert scaler.scale_value.item() == wanted
    fixed = StaticLossScaler(8)
    assert not fixed.adjust(False) and fixed.scale([torch.ones(1)])[0].item() == 8
    assert bool(all_finite([torch.ones(2)])) and not bool(all_finite([torch.ones(1), torch.tensor([float("inf")])]))
