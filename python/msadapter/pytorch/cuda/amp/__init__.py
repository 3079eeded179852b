"""torch.cuda.amp: autocast with the lists for GPUs, and the gradient scaler."""

from msadapter import pytorch as torch
from msadapter.pytorch.amp import autocast_mode
from msadapter.pytorch.amp.autocast_mode import custom_bwd, custom_fwd
from msadapter.pytorch.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(autocast_mode.autocast):
    """torch.autocast("cuda", ...)."""

    def __init__(self, enabled=True, dtype=torch.float16, cache_enabled=True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
