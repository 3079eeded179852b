"""Gradients through functions of complex numbers."""

import pytest

torch = pytest.importorskip("msadapter.pytorch")

def test_gradient_of_complex_sinc_is_conjugated():
    z = torch.tensor([0.3 + 0.4j], dtype=torch.complex128, requires_grad=True)
    torch.sinc(z).real.sum().backward()
    with torch.no_grad():
        step = 1e-6
        real = (torch.sinc(z + step).real - torch.sinc(z - step).real).item() / (2 * step)
        imaginary = (torch.sinc(z + 1j * step).real - torch.sinc(z - 1j * step).real).item() / (2 * step)
    assert z.grad.item() == pytest.approx(complex(real, imaginary), rel=1e-7)
