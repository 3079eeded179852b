"""Convolutions in single precision against the same ones in double, over the sizes where another method takes over."""

import os
import subprocess
import sys

import pytest

import msadapter.pytorch as torch
import msadapter.pytorch.nn.functional as F

# n, channels, out channels, height, width, padding: full and cut tiles, narrow pictures, all paddings, few tiles, odd channels.
SIZES = [(4, 32, 64, 17, 23, 1), (2, 64, 32, 16, 16, 0), (8, 64, 64, 9, 9, 2), (1, 64, 64, 40, 3, 1), (32, 256, 256, 4, 4, 1), (3, 96, 32, 30, 31, 1),
         (2, 48, 40, 20, 20, 1), (2, 32, 32, 12, 4, (1, 2)), (1, 32, 32, 8, 8, 1)]


def relative(a, b):
    return ((a.double() - b).abs().max() / b.std()).item()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels_last", [False, True])
def test_values_and_gradients_of_3x3_windows(size, channels_last):
    n, channels, out, height, width, padding = size
    torch.manual_seed(0)
    x, bias = torch.randn(n, channels, height, width), torch.randn(out)
    weight = torch.randn(out, channels, 3, 3) / (9 * channels) ** 0.5
    results = []
    for dtype in (torch.float32, torch.float64):
        leaves = [t.detach().to(dtype, copy=True).requires_grad_() for t in (x, weight, bias)]
        y = F.conv2d(leaves[0].contiguous(memory_format=torch.channels_last) if channels_last else leaves[0], *leaves[1:], padding=padding)
        torch.manual_seed(1)
        y.backward(torch.randn(y.shape).to(dtype))
        turned = F.conv_transpose2d(leaves[0].detach(), leaves[1].detach().transpose(0, 1), padding=padding)
        results.append([y.detach(), turned] + [leaf.grad for leaf in leaves])
    for single, double in zip(*results):
        assert relative(single, double) < 1e-4


def test_an_odd_weight_memory_is_read_rightly():
    x, weight = torch.randn(4, 64, 20, 20), torch.randn(3, 3, 64, 32).permute(3, 2, 0, 1)
    assert relative(F.conv2d(x, weight, padding=1), F.conv2d(x.double(), weight.double(), padding=1)) < 1e-4


def test_the_direct_method_can_be_asked_for():
    code = ("import msadapter.pytorch as torch; torch.manual_seed(0); x = torch.randn(4, 64, 32, 32); w = torch.randn(64, 64, 3, 3);"
            "f = torch.nn.functional.conv2d; y = f(x.double(), w.double());"
            "print(((f(x, w).double() - y).abs().max() / y.std()).item())")
    errors = [float(subprocess.run([sys.executable, "-c", code], env={**os.environ, "MSADAPTER_WINOGRAD": v}, capture_output=True, text=True,
                                   check=True).stdout) for v in "01"]
    assert errors[0] < errors[1] < 1e-4
