"""The base of all schedules of learning rates."""

import functools
import warnings
import weakref

from msadapter.pytorch.optim.optimizer import Optimizer


def check_optimizer(optimizer):
    """Raises TypeError for what is none."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def count_steps(optimizer):
    """Have the optimizer count its steps in _step_count, so that schedules notice being called too early."""
    step = optimizer.step
    function = getattr(step, "__func__", None)
    if getattr(step, "_with_counter", False) or function is None:
        return
    weak = weakref.ref(optimizer)  # the optimizer holds the function that is made here

    @functools.wraps(function)
    def counted(*args, **kwargs):
        optimizer = weak()
        optimizer._step_count += 1
        return function(optimizer, *args, **kwargs)

    counted._with_counter = True
    optimizer.step = counted


def warn_of_epoch():
    """The epoch of step() is on its way out."""
    warnings.warn("The epoch parameter in `scheduler.step()` is deprecated: call scheduler.step() once an epoch. With an epoch, the closed "
                  "form of the schedule is used where there is one", UserWarning, stacklevel=3)


def one_for_each_group(optimizer, name, value):
    """A list with a value for each parameter group. Raises ValueError for lists of another length."""
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [value] * n
    if len(value) != n:
        raise ValueError(f"expected {n} values for {name}, got {len(value)}")
    return list(value)


class LRScheduler:
    """Counts epochs. Subclasses give `get_lr`, the rates from the current ones, and where one exists `_get_closed_form_lr`, the rates from
    the epoch alone. Raises TypeError for what is no optimizer, KeyError when resuming without initial rates."""

    def __init__(self, optimizer, last_epoch=-1, verbose=False):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        count_steps(optimizer)
        self.verbose = verbose
        self._initial_step()

    def _initial_step(self):
        self.optimizer._step_count = 0
        self._step_count = 0
        self.step()

    def get_lr(self):
        """The rates of all groups at `last_epoch`, for step() to set."""
        raise NotImplementedError

    def get_last_lr(self):
        """The rates that the last step set."""
        return self._last_lr

    def step(self, epoch=None):
        """On to the next epoch, or to the one given."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch()
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = getattr(self, "_get_closed_form_lr", None)
        self._get_lr_called_within_step = True
        try:
            rates = closed() if epoch is not None and closed else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates, epoch)

    def _set(self, rates, epoch):
        for i, (group, rate) in enumerate(zip(self.optimizer.param_groups, rates)):
            group["lr"] = rate
            self.print_lr(self.verbose, i, rate, epoch)
        self._last_lr = self._current()

    def _check_order(self):
        """At the second step: has the optimizer made one?"""
        if not getattr(self.optimizer.step, "_with_counter", False):
            warnings.warn("optimizer.step() has been replaced after the scheduler was made, so whether it comes before scheduler.step() cannot "
                          "be told", UserWarning, stacklevel=3)
        elif self.optimizer._step_count < 1:
            warnings.warn("Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first rate of the schedule is skipped. Call "
                          "the optimizer first", UserWarning, stacklevel=3)

    def _check_within_step(self):
        """get_lr computes the rates after the current ones, so it is not what shows those."""
        if not self._get_lr_called_within_step:
            warnings.warn("get_lr() computes the next rates; get_last_lr() gives those that the scheduler has set", UserWarning, stacklevel=3)

    def print_lr(self, is_verbose, group, lr, epoch=None):
        """Say what rate a group got."""
        if is_verbose and epoch is None:
            print(f"Adjusting learning rate of group {group} to {lr:.4e}.")
        elif is_verbose:
            print(f"Epoch {epoch_text(epoch)}: adjusting learning rate of group {group} to {lr:.4e}.")

    def state_dict(self):
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take over what state_dict gave."""
        self.__dict__.update(state_dict)

    def _current(self):
        return [group["lr"] for group in self.optimizer.param_groups]


def epoch_text(epoch):
    """An epoch as messages show it."""
    return f"{epoch:.2f}" if isinstance(epoch, float) else f"{epoch:05d}"


__all__ = ["LRScheduler", "check_optimizer", "epoch_text", "one_for_each_group", "warn_of_epoch"]
