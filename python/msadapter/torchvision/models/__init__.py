"""torchvision.models: networks for classification, segmentation, detection, video and optical flow, with torchvision's parameter names and initial values."""

from msadapter.torchvision.models import detection, optical_flow, segmentation, video  # noqa: F401
from msadapter.torchvision.models._api import get_weight  # noqa: F401
from msadapter.torchvision.models.alexnet import *  # noqa: F403
from msadapter.torchvision.models.convnext import *  # noqa: F403
from msadapter.torchvision.models.densenet import *  # noqa: F403
from msadapter.torchvision.models.efficientnet import *  # noqa: F403
from msadapter.torchvision.models.googlenet import *  # noqa: F403
from msadapter.torchvision.models.inception import *  # noqa: F403
from msadapter.torchvision.models.mnasnet import *  # noqa: F403
from msadapter.torchvision.models.mobilenetv2 import *  # noqa: F403
from msadapter.torchvision.models.mobilenetv3 import *  # noqa: F403
from msadapter.torchvision.models.regnet import *  # noqa: F403
from msadapter.torchvision.models.resnet import *  # noqa: F403
from msadapter.torchvision.models.shufflenetv2 import *  # noqa: F403
from msadapter.torchvision.models.squeezenet import *  # noqa: F403
from msadapter.torchvision.models.swin_transformer import *  # noqa: F403
from msadapter.torchvision.models.vgg import *  # noqa: F403
from msadapter.torchvision.models.vision_transformer import *  # noqa: F403
