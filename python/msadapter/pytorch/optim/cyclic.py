"""Schedules that raise the learning rate again: restarts, cycles, and the one cycle."""

import math

from msadapter.pytorch.optim.scheduler import LRScheduler, check_optimizer, one_for_each_group


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the base rate to eta_min over T_0 epochs, then again over T_mult times as many (Loshchilov and Hutter, 2017).
    Raises ValueError for T_0 or T_mult that are no integers from 1."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0, last_epoch=-1, verbose=False):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self):
        self._check_within_step()
        return [self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2 for base in self.base_lrs]

    def step(self, epoch=None):
        """On to the next epoch, or to the one given, which may be a fraction. Raises ValueError for negative ones."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_cur, self.T_i = epoch, self.T_0
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult ** n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult ** n
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates, epoch)


class CyclicLR(LRScheduler):
    """Between base_lr and max_lr, up over step_size_up steps and down over step_size_down, momentum the other way (Smith, 2017).

    Raises ValueError for an unknown mode without a scale_fn, for lists of another length than the groups, and for optimizers that have no
    momentum to cycle.
    """

    def __init__(self, optimizer, base_lr, max_lr, step_size_up=2000, step_size_down=None, mode="triangular", gamma=1.0, scale_fn=None,
                 scale_mode="cycle", cycle_momentum=True, base_momentum=0.8, max_momentum=0.9, last_epoch=-1, verbose=False):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = one_for_each_group(optimizer, "base_lr", base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups):
                group["lr"] = rate
        self.max_lrs = one_for_each_group(optimizer, "max_lr", max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum with `cycle_momentum` option enabled")
            self.base_momentums = one_for_each_group(optimizer, "base_momentum", base_momentum)
            self.max_momentums = one_for_each_group(optimizer, "max_momentum", max_momentum)
            if last_epoch == -1:
                for momentum, group in zip(self.base_momentums, optimizer.param_groups):
                    group["momentum"] = momentum
        super().__init__(optimizer, last_epoch, verbose)
        self.base_lrs = base_lrs

    def scale_fn(self, x):
        """What the height of a cycle is multiplied with: of the cycle's number from 1, or of the step's."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma ** x

    def get_lr(self):
        """The rates of all groups at `last_epoch`; sets the momenta."""
        self._check_within_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums):
                group["momentum"] = high - (high - low) * height * scale
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs)]


def anneal_cos(start, end, part):
    """From start to end along half a cosine as `part` goes from 0 to 1."""
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def anneal_linear(start, end, part):
    """From start to end along a line as `part` goes from 0 to 1."""
    return (end - start) * part + start


class OneCycleLR(LRScheduler):
    """From max_lr / div_factor up to max_lr and down to 1 / final_div_factor of the start, once over all steps, momentum the other way
    (Smith and Topin, 2019). Raises ValueError for options out of range, and from step() after the last one."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3, anneal_strategy="cos",
                 cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0, final_div_factor=1e4, three_phase=False,
                 last_epoch=-1, verbose=False):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = self._count(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = self._phases(pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        max_lrs = one_for_each_group(optimizer, "max_lr", max_lr)
        if last_epoch == -1:
            for rate, group in zip(max_lrs, optimizer.param_groups):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            highs = one_for_each_group(optimizer, "max_momentum", max_momentum)
            lows = one_for_each_group(optimizer, "base_momentum", base_momentum)
            if last_epoch == -1:
                for high, low, group in zip(highs, lows, optimizer.param_groups):
                    self._set_momentum(group, high)
                    group["max_momentum"], group["base_momentum"] = high, low
        super().__init__(optimizer, last_epoch, verbose)

    @staticmethod
    def _count(total_steps, epochs, steps_per_epoch):
        if total_steps is None and epochs is None and steps_per_epoch is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch} if total_steps is None else {"total_steps": total_steps}
        for name, value in given.items():
            if value <= 0 or not isinstance(value, int):
                raise ValueError(f"Expected positive integer {name}, but got {value}")
        return math.prod(given.values())

    def _phases(self, pct_start, three_phase):
        def phase(end, lr, momentum):
            return {"end_step": end, "start_lr": lr[0], "end_lr": lr[1], "start_momentum": momentum[0], "end_momentum": momentum[1]}

        phases = [phase(float(pct_start * self.total_steps) - 1, ("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))]
        if not three_phase:
            return phases + [phase(self.total_steps - 1, ("max_lr", "min_lr"), ("base_momentum", "max_momentum"))]
        return phases + [phase(float(2 * pct_start * self.total_steps) - 2, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum")),
                         phase(self.total_steps - 1, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum"))]

    def _set_momentum(self, group, momentum):
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum

    def get_lr(self):
        """The rates of all groups at `last_epoch`; sets the momenta."""
        self._check_within_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step + 1} times. The specified number of total steps is {self.total_steps}")
        start = 0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        part = (step - start) / (phase["end_step"] - start)
        anneal = anneal_cos if self._anneal_strategy == "cos" else anneal_linear
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(anneal(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                self._set_momentum(group, anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], part))
        return rates


__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]
