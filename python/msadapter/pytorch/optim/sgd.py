"""Stochastic gradient descent."""

from msadapter import _C
from msadapter import pytorch as torch
from msadapter.pytorch.optim.optimizer import Optimizer, check_dense, check_recordable, required, zeros_like


class SGD(Optimizer):
    """p -= lr * b with b the running sum of gradients (momentum), optionally Nesterov's. Raises ValueError for options out of range."""

    _added_options = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False}

    def __init__(self, params, lr=required, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None,
                 differentiable=False):
        for name, value in (("learning rate", lr), ("momentum value", momentum), ("weight_decay value", weight_decay)):
            if value is not required and value < 0.0:
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
                                  "maximize": maximize, "foreach": foreach, "differentiable": differentiable})

    def _step_group(self, group, params, grads):
        sparse = [i for i, g in enumerate(grads) if g.is_sparse]
        if sparse:  # one by one: their steps touch the rows that have gradients
            for i in sparse:
                self._step_recorded(group, params[i], grads[i], self.state[params[i]])
            dense = [i for i, g in enumerate(grads) if not g.is_sparse]
            params, grads = [params[i] for i in dense], [grads[i] for i in dense]
        check_dense("SGD", grads)
        states = [self.state[p] for p in params]
        if group["differentiable"]:
            check_recordable(group)
            for p, g, state in zip(params, grads, states):
                self._step_recorded(group, p, g, state)
            return
        buffers, first = [], []
        for p, state in zip(params, states):
            buffer = state.setdefault("momentum_buffer", None)
            if group["momentum"] != 0:
                first.append(buffer is None)
                if buffer is None:
                    buffer = state["momentum_buffer"] = zeros_like(p)
                buffers.append(buffer)
        _C._sgd_step(params, grads, buffers, first, group["lr"], group["momentum"], group["dampening"], group["weight_decay"], group["nesterov"],
                     group["maximize"])

    @staticmethod
    def _step_recorded(group, p, g, state):
        """The same out of operators, which record it."""
        d = -g if group["maximize"] else g
        if group["weight_decay"] != 0:
            d = d.add(p, alpha=group["weight_decay"])
        buffer = state.setdefault("momentum_buffer", None)
        if group["momentum"] != 0:
            if buffer is None:
                buffer = state["momentum_buffer"] = torch.clone(d).detach()
            else:
                buffer.mul_(group["momentum"]).add_(d, alpha=1 - group["dampening"])
            d = d.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        p.add_(d, alpha=-group["lr"])
