"""torchvision.models.segmentation."""

from msadapter.torchvision.models.segmentation.deeplabv3 import *  # noqa: F403
from msadapter.torchvision.models.segmentation.fcn import *  # noqa: F403
from msadapter.torchvision.models.segmentation.lraspp import *  # noqa: F403
