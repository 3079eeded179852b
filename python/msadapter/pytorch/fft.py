"""torch.fft: discrete Fourier transforms, as the operator table has them."""

from msadapter import _C

# The table spells them fft_rfft as PyTorch's messages do; scripts say torch.fft.rfft.
globals().update({name: value for name, value in vars(_C._fft).items() if not name.startswith(("_", "fft_"))})
