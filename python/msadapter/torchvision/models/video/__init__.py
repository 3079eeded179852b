"""torchvision.models.video."""

from msadapter.torchvision.models.video.resnet import *  # noqa: F403
