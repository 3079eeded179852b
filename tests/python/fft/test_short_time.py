"""Short-time Fourier transforms: definition, inverse, arguments, messages, gradients."""

import numpy
import pytest

import msadapter.pytorch as torch


def signal(*shape):
    return torch.tensor(numpy.random.default_rng(3).standard_normal(shape))


def by_definition(x, n_fft, hop, window, center, mode, onesided):
    if center:
        x = numpy.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2,) * 2], mode=mode)
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    frames = numpy.stack([x[..., s:s + n_fft] * window for s in starts], -1)
    return (numpy.fft.rfft if onesided else numpy.fft.fft)(frames, axis=-2)


@pytest.mark.parametrize("center, pad_mode, numpy_mode", [(True, "reflect", "reflect"), (True, "constant", "constant"), (True, "replicate", "edge"),
                                                          (True, "circular", "wrap"), (False, "reflect", None)])
@pytest.mark.parametrize("onesided", [True, False])
def test_frames_are_windowed_and_transformed(center, pad_mode, numpy_mode, onesided):
    x, window = signal(3, 41), torch.hann_window(10, dtype=torch.float64)
    result = torch.stft(x, 10, 4, window=window, center=center, pad_mode=pad_mode, onesided=onesided, return_complex=True)
    expected = by_definition(x.numpy(), 10, 4, window.numpy(), center, numpy_mode, onesided)
    assert result.shape == expected.shape and numpy.abs(result.numpy() - expected).max() < 1e-12
    pairs = x.stft(10, 4, window=window, center=center, pad_mode=pad_mode, onesided=onesided, return_complex=False)
    assert torch.equal(pairs, torch.view_as_real(result))
    halved = x.stft(10, 4, window=window, center=center, pad_mode=pad_mode, onesided=onesided, normalized=True, return_complex=True)
    assert torch.allclose(halved * 10**0.5, result)


def test_a_short_window_stands_in_the_middle_of_the_frame():
    x, window = signal(40), torch.hamming_window(5, dtype=torch.float64)
    padded = torch.nn.functional.pad(window, (1, 2))
    assert torch.equal(torch.stft(x, 8, win_length=5, window=window, return_complex=True), torch.stft(x, 8, window=padded, return_complex=True))
    assert torch.allclose(torch.istft(x.stft(8, win_length=5, window=window, return_complex=True), 8, win_length=5, window=window, length=40), x)


@pytest.mark.parametrize("n_fft, hop, onesided, normalized", [(8, 2, True, False), (9, 3, True, True), (12, 3, False, False)])
def test_istft_undoes_stft(n_fft, hop, onesided, normalized):
    x, window = signal(2, 60), torch.hann_window(n_fft, dtype=torch.float64)
    options = dict(hop_length=hop, window=window, onesided=onesided, normalized=normalized)
    spectra = torch.stft(x, n_fft, return_complex=True, **options)
    assert torch.allclose(torch.istft(spectra, n_fft, length=60, **options), x)
    assert torch.allclose(spectra.istft(n_fft, length=20, **options), x[:, :20])
    assert torch.allclose(torch.istft(torch.view_as_real(spectra), n_fft, length=60, **options), x)
    with pytest.warns(UserWarning, match="padded with zeros"):
        longer = torch.istft(spectra, n_fft, length=80, **options)
    assert longer.shape == (2, 80) and not longer[:, 70:].any()


def test_complex_signals_have_two_sides():
    x = torch.complex(signal(50), signal(50) * 2)
    window = torch.hann_window(8, dtype=torch.float64)
    spectra = torch.stft(x, 8, window=window)
    assert spectra.shape == (8, 26)
    assert torch.allclose(torch.istft(spectra, 8, window=window, length=50, return_complex=True), x)


X = torch.ones(20)
SPECTRA = torch.ones(5, 11, dtype=torch.complex64)


@pytest.mark.parametrize("call, error, text", [
    (lambda: torch.stft(torch.ones(2, 2, 20), 8, return_complex=True), RuntimeError,
     r"stft\(torch.FloatTensor\[2, 2, 28\], n_fft=8, hop_length=2, win_length=8, window=None, normalized=0, onesided=None, return_complex=1\) : "
     "expected a 1D or 2D tensor"),
    (lambda: torch.stft(X, 80, center=False, return_complex=True), RuntimeError, "expected 0 < n_fft < 20, but got n_fft=80"),
    (lambda: torch.stft(X, 8, hop_length=0, return_complex=True), RuntimeError, "expected hop_length > 0, but got hop_length=0"),
    (lambda: torch.stft(X, 8, win_length=9, return_complex=True), RuntimeError, "expected 0 < win_length <= n_fft, but got win_length=9"),
    (lambda: torch.stft(X, 8, window=torch.ones(7), return_complex=True), RuntimeError,
     r"window=torch.FloatTensor\{\[7\]\}.*expected a 1D window tensor of size equal to win_length=8, but got window with size \[7\]"),
    (lambda: torch.stft(X + 0j, 8, onesided=True), RuntimeError, "Cannot have onesided output if window or input is complex"),
    (lambda: torch.istft(SPECTRA[:4], 8), RuntimeError, "frequency dimension .* to match n_fft / 2 . 1 when onsided=True, but got 4"),
    (lambda: torch.istft(SPECTRA, 8, hop_length=9), RuntimeError, "expected 0 < hop_length <= win_length"),
    (lambda: torch.istft(SPECTRA, 8, window=torch.ones(1, 8)), RuntimeError, "Invalid window shape. window has to be 1D and length of `win_length`"),
    (lambda: torch.istft(SPECTRA, 8, window=torch.hann_window(8), center=False), RuntimeError, "window overlap add min: 1"),
    (lambda: torch.istft(SPECTRA[:, :0], 8), RuntimeError, "input tensor cannot be empty"),
    (lambda: torch.istft(SPECTRA, 8, return_complex=True), RuntimeError, "Cannot have onesided output"),
    (lambda: torch.istft(SPECTRA[0], 8), IndexError, "Dimension out of range"),
])
def test_wrong_arguments_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_first_and_second_derivatives():
    x, window = signal(2, 14).requires_grad_(), (signal(6).abs() + 1).requires_grad_()
    forth = lambda x, w: torch.stft(x, 6, 2, window=w, return_complex=True)  # noqa: E731
    back = lambda s, w: torch.istft(s, 6, 2, window=w)  # noqa: E731
    spectra = forth(x, window).detach().requires_grad_()
    assert torch.autograd.gradcheck(forth, (x, window)) and torch.autograd.gradgradcheck(forth, (x, window))
    assert torch.autograd.gradcheck(back, (spectra, window)) and torch.autograd.gradgradcheck(back, (spectra, window))
