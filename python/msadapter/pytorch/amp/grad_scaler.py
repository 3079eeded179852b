"""GradScaler: a loss is scaled up so that float16 gradients don't vanish; steps whose gradients overflow are skipped.

Micikevicius et al., "Mixed Precision Training" (2018). The scale grows after growth_interval good steps and shrinks after a bad one.
"""

import math
from collections import defaultdict

from msadapter import _C, pytorch as torch

READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"


def _fresh():
    return {"stage": READY, "found_inf": False}


class GradScaler:
    """Scales losses, and steps optimizers with the gradients scaled back.

    scaler.step(optimizer) uses the parameters' gradients, scaler.step(optimizer, grads) those of a functional step. With enabled=False all
    methods pass their arguments on. Raises RuntimeError where calls come in an order that makes no sense.
    """

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        self._enabled = enabled
        if enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._scale = init_scale, None
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._init_growth_tracker, self._growth_tracker = 0, None
        self._states = defaultdict(_fresh)

    def _start(self):
        if self._scale is None:
            self._scale, self._growth_tracker = float(self._init_scale), self._init_growth_tracker

    def _check_started(self, name):
        if self._scale is None:
            raise AssertionError(f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) "
                                 "earlier in the iteration.")

    def scale(self, outputs):
        """The tensor, or tensors in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        self._start()
        if isinstance(outputs, torch.Tensor):
            # The factor is a float32 tensor in PyTorch: it widens nothing but 0-dim halves.
            return outputs * torch.tensor(self._scale, dtype=torch.float32)
        if isinstance(outputs, (list, tuple)):
            values = [self.scale(value) for value in outputs]
            return type(outputs)(*values) if hasattr(outputs, "_fields") else type(outputs)(values)
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _unscale(self, gradients, allow_float16):
        gradients = [gradient.detach() for gradient in gradients if gradient is not None]
        if not allow_float16 and any(gradient.dtype == torch.float16 for gradient in gradients):
            raise ValueError("Attempting to unscale FP16 gradients.")
        if not gradients:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        return _C._unscale_gradients(gradients, 1.0 / self._scale)

    def unscale_(self, optimizer):
        """Divide the gradients of the optimizer's parameters by the scale, in place; once between updates."""
        if not self._enabled:
            return
        self._check_started("unscale_")
        state = self._states[id(optimizer)]
        if state["stage"] is UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf"] = self._unscale([p.grad for group in optimizer.param_groups for p in group["params"]], False)
        state["stage"] = UNSCALED

    def step(self, optimizer, *args, **kwargs):
        """The optimizer's step, with its result, unless a gradient overflowed; then None.

        The first of `args` may be a functional step's gradients; further ones are the optimizer's.
        """
        gradients = None
        if args and isinstance(args[0], (list, tuple)) and all(g is None or isinstance(g, torch.Tensor) for g in args[0]):
            gradients, args = args[0], args[1:]
        if not self._enabled:
            return optimizer.step(*args, **kwargs) if gradients is None else optimizer(gradients)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_started("step")
        state = self._states[id(optimizer)]
        if state["stage"] is STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        result = None
        if gradients is not None:
            # The caller's gradients stay as they are.
            gradients = [None if g is None else g.detach().clone() for g in gradients]
            state["found_inf"] = self._unscale(gradients, True)
            if not state["found_inf"]:
                result = optimizer(gradients)
        else:
            if state["stage"] is READY:
                self.unscale_(optimizer)
            if not state["found_inf"]:
                result = optimizer.step(*args, **kwargs)
        state["stage"] = STEPPED
        return result

    def update(self, new_scale=None):
        """Adapt the scale to what the steps since the last update found, or set it."""
        if not self._enabled:
            return
        self._check_started("update")
        if new_scale is not None:
            if isinstance(new_scale, torch.Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
                raise AssertionError("new_scale should be a float or a 1-element tensor with requires_grad=False.")
            self._scale = float(new_scale)
        else:
            if not any(state["stage"] is not READY for state in self._states.values()):
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(state["found_inf"] for state in self._states.values()):
                self._scale *= self._backoff_factor
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    grown = self._scale * self._growth_factor
                    if grown <= 3.4028234663852886e38 and math.isfinite(grown):
                        self._scale = grown
                    self._growth_tracker = 0
        self._states = defaultdict(_fresh)

    def get_scale(self):
        """The scale, 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return float(self._init_scale) if self._scale is None else self._scale

    def get_growth_factor(self):
        """What the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Set what the scale grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """What the scale shrinks by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Set what the scale shrinks by."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """Good steps in a row before the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Set the good steps in a row before the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self):
        """Whether it scales at all."""
        return self._enabled

    def state_dict(self):
        """The scale and its settings; empty when disabled."""
        if not self._enabled:
            return {}
        return {"scale": self.get_scale(), "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
                "growth_interval": self._growth_interval,
                "_growth_tracker": self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker}

    def load_state_dict(self, state_dict):
        """Take over what state_dict() gave. RuntimeError for the dictionary of a disabled scaler."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError("The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler.")
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale = float(state_dict["scale"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval, self._init_growth_tracker = state_dict["growth_interval"], state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker = state_dict["_growth_tracker"]

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if self._states:
                raise AssertionError("A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after scaler.update().")
            state.update(_init_scale=self.get_scale(), _scale=None, _growth_tracker=None,
                         _init_growth_tracker=self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker)
        return state
