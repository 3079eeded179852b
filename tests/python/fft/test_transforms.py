"""torch.fft against numpy's transforms (computed in double precision), its arguments, errors and gradients."""

import numpy
import pytest

import msadapter.pytorch as torch

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 12, 15, 31, 37, 60, 64, 97, 121, 128, 143, 210, 509]
NORMS = ["backward", "ortho", "forward"]
GENERATOR = numpy.random.default_rng(7)


def lines(kind, *shape, real="float64"):
    values = GENERATOR.standard_normal(shape)
    if kind == "complex":
        values = values + 1j * GENERATOR.standard_normal(shape)
    return values.astype({"float64": "complex128", "float32": "complex64"}[real] if kind == "complex" else real)


def same(result, expected, tolerance=1e-12):
    assert tuple(result.shape) == expected.shape
    assert numpy.abs(result.numpy() - expected).max() <= tolerance * max(numpy.abs(expected).max(), 1)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("name, kind", [("fft", "complex"), ("ifft", "complex"), ("fft", "real"), ("ifft", "real"), ("rfft", "real"),
                                        ("irfft", "complex"), ("hfft", "complex"), ("ihfft", "real")])
def test_one_dimension_agrees_with_numpy_at_every_kind_of_length(name, kind, n):
    for real, tolerance in (("float64", 1e-12), ("float32", 1e-5)):
        x = lines(kind, 5, n, real=real)
        arguments = {"n": n} if name in ("irfft", "hfft") else {}
        wide = x.astype("complex128" if kind == "complex" else "float64")
        same(getattr(torch.fft, name)(torch.tensor(x), **arguments), getattr(numpy.fft, name)(wide, **arguments), tolerance)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [3, 6, 11, 20])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_n_dim_and_norm_cut_pad_and_scale(name, n, norm):
    x = lines("real" if name in ("rfft", "ihfft") else "complex", 4, 11, 3)
    same(getattr(torch.fft, name)(torch.tensor(x), n=n, dim=1, norm=norm), getattr(numpy.fft, name)(x, n=n, axis=1, norm=norm))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2"])
def test_several_dimensions_agree_with_numpy(name, norm):
    x = lines("real" if name.startswith("rfft") else "complex", 6, 5, 7)
    for s, dim in ((None, (0, 2)), ((4, 9), (2, 0)), ((3, 8), (-2, -1))):
        same(getattr(torch.fft, name)(torch.tensor(x), s, dim, norm), getattr(numpy.fft, name)(x, s, dim, norm))


@pytest.mark.parametrize("norm", NORMS)
def test_hermitian_transforms_of_several_dimensions_undo_each_other(norm):
    x = torch.tensor(lines("real", 4, 5, 6))
    assert torch.allclose(torch.fft.hfftn(torch.fft.ihfftn(x, norm=norm), s=x.shape, norm=norm), x)
    assert torch.allclose(torch.fft.hfft2(torch.fft.ihfft2(x, norm=norm), s=x.shape[-2:], norm=norm), x)
    expected = numpy.fft.ifft(numpy.fft.ihfft(x.numpy(), axis=2), axis=1)
    same(torch.fft.ihfft2(x), expected)


def test_strided_and_empty_batches_are_transformed():
    x = lines("complex", 6, 7, 8)
    same(torch.fft.fft(torch.tensor(x).transpose(0, 2)[1::2], dim=1), numpy.fft.fft(x.transpose(2, 1, 0)[1::2], axis=1))
    assert torch.fft.rfft(torch.ones(0, 5)).shape == (0, 3)
    assert torch.fft.rfft(torch.ones(3).expand(2, 3)).shape == (2, 2)


def test_a_nan_stays_in_its_line():
    x = torch.ones(40, 12)
    x[3, 4] = float("nan")
    spectrum = torch.fft.rfft(x)
    assert bool(spectrum[3].isnan().all()) and int(spectrum.isnan().any(1).sum()) == 1


def test_result_types():
    assert torch.fft.fft(torch.ones(4)).dtype == torch.complex64
    assert torch.fft.rfft(torch.ones(4, dtype=torch.int64)).dtype == torch.complex64
    assert torch.fft.irfft(torch.ones(4, dtype=torch.float64)).dtype == torch.float64
    out = torch.empty(0, dtype=torch.complex128)
    assert torch.fft.fft(torch.ones(4), out=out) is out and out.tolist() == [4, 0, 0, 0]


def test_frequencies_and_shifts():
    for n in (1, 4, 7):
        same(torch.fft.fftfreq(n, 0.3, dtype=torch.float64), numpy.fft.fftfreq(n, 0.3))
        same(torch.fft.rfftfreq(n, 0.3, dtype=torch.float64), numpy.fft.rfftfreq(n, 0.3))
    x = lines("real", 4, 5)
    for dim in (None, 0, (0, 1)):
        same(torch.fft.fftshift(torch.tensor(x), dim), numpy.fft.fftshift(x, dim))
        same(torch.fft.ifftshift(torch.tensor(x), dim), numpy.fft.ifftshift(x, dim))


@pytest.mark.parametrize("call, error, text", [
    (lambda: torch.fft.fft(torch.ones(4), n=0), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: torch.fft.irfft(torch.ones(1)), RuntimeError, r"Invalid number of data points \(0\) specified"),
    (lambda: torch.fft.fft(torch.ones(4), norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
    (lambda: torch.fft.fft(torch.ones(4), dim=1), IndexError, "Dimension out of range"),
    (lambda: torch.fft.rfft(torch.ones(4, dtype=torch.complex64)), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
    (lambda: torch.fft.fft(torch.ones(4, dtype=torch.float16)), RuntimeError, "Unsupported dtype Half"),
    (lambda: torch.fft.fftn(torch.ones(4, 4), dim=(1, 1)), RuntimeError, "FFT dims must be unique"),
    (lambda: torch.fft.fftn(torch.ones(4, 4), s=(1, 2, 3)), RuntimeError, "Got shape with 3 values but input tensor only has 2 dimensions."),
    (lambda: torch.fft.fftn(torch.ones(4, 4), s=(1,), dim=(0, 1)), RuntimeError, "dim and shape arguments must have the same length"),
    (lambda: torch.fft.rfftn(torch.tensor(1.0)), RuntimeError, "rfftn must transform at least one axis"),
    (lambda: torch.fft.fftfreq(3, dtype=torch.int64), RuntimeError, "fftfreq requires a floating point or complex dtype"),
    (lambda: torch._fft_c2r(torch.ones(3, dtype=torch.complex64), [0], 0, 9), RuntimeError, "Invalid number of data points"),
])
def test_wrong_arguments_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("name, kind", [("fft", "complex"), ("ifft", "real"), ("rfft", "real"), ("irfft", "complex"), ("hfft", "complex"),
                                        ("ihfft", "real"), ("fftn", "complex"), ("rfftn", "real"), ("irfftn", "complex"), ("hfftn", "complex"),
                                        ("ihfftn", "real")])
@pytest.mark.parametrize("n", [4, 5])
def test_first_and_second_derivatives(name, kind, n):
    x = torch.tensor(lines(kind, 3, n), requires_grad=True)
    call = lambda t: getattr(torch.fft, name)(t, norm="ortho")  # noqa: E731
    assert torch.autograd.gradcheck(call, (x,))
    assert torch.autograd.gradgradcheck(call, (x,))
