"""torchvision.models.optical_flow."""

from msadapter.torchvision.models.optical_flow.raft import *  # noqa: F403
