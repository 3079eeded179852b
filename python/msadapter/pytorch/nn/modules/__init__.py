"""All modules of torch.nn, by family in the files that torch has."""

from msadapter.pytorch.nn.modules.activation import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.adaptive import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.batchnorm import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.channelshuffle import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.container import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.conv import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.distance import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.dropout import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.flatten import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.fold import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.instancenorm import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.linear import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.loss import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.module import Module  # noqa: F401
from msadapter.pytorch.nn.modules.normalization import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.padding import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.pixelshuffle import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.pooling import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.rnn import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.sparse import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.transformer import *  # noqa: F401,F403
from msadapter.pytorch.nn.modules.upsampling import *  # noqa: F401,F403

__all__ = [name for name, value in list(globals().items()) if isinstance(value, type) and issubclass(value, Module)]
