"""torch.optim: optimizers whose step is one C call over all parameters, and learning-rate schedulers."""

from msadapter.pytorch.optim.optimizer import Optimizer
from msadapter.pytorch.optim.adam import Adam, AdamW
from msadapter.pytorch.optim.sgd import SGD
from msadapter.pytorch.optim import lr_scheduler

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "lr_scheduler"]
