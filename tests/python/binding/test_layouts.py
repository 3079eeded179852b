"""Changing between layouts, whatever the number of channels and positions."""

import pytest

import msadapter.pytorch as torch


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.float64, torch.complex128])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 8, 33, 36])
def test_channels_last_and_back(channels, dtype):
    for height, width in ((1, 1), (1, 3), (5, 5), (6, 7), (8, 8), (9, 37)):
        x = torch.arange(2 * channels * height * width).reshape(2, channels, height, width).to(dtype)
        y = x.contiguous(memory_format=torch.channels_last)
        assert torch.equal(x, y) and torch.equal(y.contiguous(), x)
        assert y.permute(0, 2, 3, 1).is_contiguous() and torch.equal(y.permute(0, 2, 3, 1).contiguous(), x.permute(0, 2, 3, 1))


@pytest.mark.parametrize("channels, out, size", [(3, 8, 9), (5, 33, 7), (4, 36, 8)])
def test_results_of_convolutions_read_in_plain_order(channels, out, size):
    x, w = torch.randn(2, channels, size, size), torch.randn(out, channels, 1, 1)
    y = torch.nn.functional.conv2d(x, w)
    wanted = torch.einsum("nchw,oc->nohw", x, w[:, :, 0, 0])
    assert torch.allclose(y.view(2, -1), wanted.reshape(2, -1), atol=1e-4) and torch.allclose(y.flatten()[-5:], wanted.flatten()[-5:], atol=1e-4)
