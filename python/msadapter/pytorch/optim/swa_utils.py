"""Stochastic weight averaging (Izmailov et al., 2018): the averaged model, its learning rates, and its batch statistics."""

import copy
import itertools
import math

from msadapter import pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.optim.scheduler import LRScheduler


def _running_mean(averaged, new, count):
    """The mean of count + 1 values, out of the mean of count and one more."""
    return averaged + (new - averaged) / (count + 1)


class AveragedModel(nn.Module):
    """A copy of a model whose parameters are means over those it was shown by `update_parameters`.

    avg_fn(averaged, new, number so far) replaces the equal mean; with `use_buffers` buffers are averaged as well.
    """

    def __init__(self, model, device=None, avg_fn=None, use_buffers=False):
        super().__init__()
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", torch.tensor(0, dtype=torch.long, device=device))
        self.avg_fn = _running_mean if avg_fn is None else avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Take the model's parameters into the means."""
        own, new = ((itertools.chain(m.parameters(), m.buffers()) if self.use_buffers else m.parameters()) for m in (self.module, model))
        for averaged, value in zip(own, new):
            averaged, value = averaged.detach(), value.detach().to(averaged.device)
            averaged.copy_(value if self.n_averaged == 0 else self.avg_fn(averaged, value, self.n_averaged.to(averaged.device)))
        self.n_averaged += 1


@torch.no_grad()
def update_bn(loader, model, device=None):
    """Compute the batch statistics of a model's BatchNorm layers anew, over all inputs of a loader (the first of each tuple or list)."""
    layers = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    if not layers:
        return
    momenta = [layer.momentum for layer in layers]
    was_training = model.training
    for layer in layers:
        layer.running_mean = torch.zeros_like(layer.running_mean)
        layer.running_var = torch.ones_like(layer.running_var)
        layer.momentum = None  # the mean over all batches
        layer.num_batches_tracked *= 0
    model.train()
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for layer, momentum in zip(layers, momenta):
        layer.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the current rates to swa_lr over anneal_epochs, along a cosine or a line. Raises ValueError for options out of range."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        n = len(optimizer.param_groups)
        if isinstance(swa_lr, (list, tuple)) and len(swa_lr) != n:
            raise ValueError("swa_lr must have the same length as optimizer.param_groups: "
                             f"swa_lr has {len(swa_lr)}, optimizer.param_groups has {n}")
        rates = swa_lr if isinstance(swa_lr, (list, tuple)) else [swa_lr] * n
        for rate, group in zip(rates, optimizer.param_groups):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step):
        """How much of swa_lr there is in the rate of a step."""
        part = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * part)) / 2 if self._anneal_strategy == "cos" else part

    def get_lr(self):
        self._check_within_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            goal = group["swa_lr"]
            start = goal if before == 1 else (group["lr"] - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates


__all__ = ["AveragedModel", "SWALR", "update_bn"]
