"""torch.cpu.amp: autocast for the CPU."""

from msadapter import pytorch as torch
from msadapter.pytorch.amp import autocast_mode

__all__ = ["autocast"]


class autocast(autocast_mode.autocast):
    """torch.autocast("cpu", ...)."""

    def __init__(self, enabled=True, dtype=torch.bfloat16, cache_enabled=True):
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
