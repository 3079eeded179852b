"""torch.optim: optimizers whose step is one C call over all parameters, and learning-rate schedulers."""

from msadapter.pytorch.optim.optimizer import Optimizer
from msadapter.pytorch.optim.adam import Adam, AdamW
from msadapter.pytorch.optim.adaptive import ASGD, Adadelta, Adagrad, Adamax, NAdam, RAdam, RMSprop, Rprop, SparseAdam
from msadapter.pytorch.optim.lbfgs import LBFGS
from msadapter.pytorch.optim.sgd import SGD
from msadapter.pytorch.optim import lr_scheduler, swa_utils

__all__ = ["ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD",
           "SparseAdam", "lr_scheduler", "swa_utils"]
