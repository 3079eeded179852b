"""torch.amp: mixed precision."""

from msadapter.pytorch.amp.autocast_mode import autocast, autocast_decorator, custom_bwd, custom_fwd
from msadapter.pytorch.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
