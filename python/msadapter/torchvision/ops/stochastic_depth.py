"""Residual branches left out at random while training (Huang et al. 2016)."""

import msadapter.pytorch as torch
from msadapter.pytorch import nn

__all__ = ["StochasticDepth", "stochastic_depth"]


def stochastic_depth(input, p, mode, training=True):
    """input (N, ...) with probability p set to zero, all of it ("batch") or row by row ("row"), and what stays divided by 1 - p.

    Raises ValueError for p outside [0, 1] and other modes.
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"drop probability has to be between 0 and 1, but got {p}")
    if mode not in ("batch", "row"):
        raise ValueError(f"mode has to be either 'batch' or 'row', but got {mode}")
    if not training or p == 0.0:
        return input
    survival = 1.0 - p
    shape = [input.shape[0] if mode == "row" else 1] + [1] * (input.ndim - 1)
    noise = torch.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(survival)
    return input * (noise.div_(survival) if survival > 0.0 else noise)


class StochasticDepth(nn.Module):
    """stochastic_depth() as a module."""

    def __init__(self, p, mode):
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input):
        return stochastic_depth(input, self.p, self.mode, self.training)

    def __repr__(self):
        return f"{type(self).__name__}(p={self.p}, mode={self.mode})"
