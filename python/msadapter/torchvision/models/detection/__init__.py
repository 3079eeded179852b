"""torchvision.models.detection."""

from msadapter.torchvision.models.detection.faster_rcnn import *  # noqa: F403
from msadapter.torchvision.models.detection.fcos import *  # noqa: F403
from msadapter.torchvision.models.detection.keypoint_rcnn import *  # noqa: F403
from msadapter.torchvision.models.detection.mask_rcnn import *  # noqa: F403
from msadapter.torchvision.models.detection.retinanet import *  # noqa: F403
from msadapter.torchvision.models.detection.ssd import *  # noqa: F403
from msadapter.torchvision.models.detection.ssdlite import *  # noqa: F403
