"""Stochastic gradient descent."""

from msadapter import _C
from msadapter import pytorch as torch
from msadapter.pytorch.optim.optimizer import Optimizer, check_dense, required


class SGD(Optimizer):
    """p -= lr * b with b the running sum of gradients (momentum), optionally Nesterov's. Raises ValueError for options out of range."""

    def __init__(self, params, lr=required, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False, foreach=None):
        for name, value in (("learning rate", lr), ("momentum value", momentum), ("weight_decay value", weight_decay)):
            if value is not required and value < 0.0:
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
                                  "maximize": maximize, "foreach": foreach})

    def _step_group(self, group, params, grads):
        check_dense("SGD", grads)
        buffers, first = [], []
        if group["momentum"] != 0:
            for p in params:
                state = self.state_of(p)
                buffer = state.get("momentum_buffer")
                first.append(buffer is None)
                if buffer is None:
                    buffer = state["momentum_buffer"] = torch.zeros_like(p, memory_format=torch.contiguous_format)
                buffers.append(buffer)
        else:
            for p in params:
                self.state_of(p).setdefault("momentum_buffer", None)
        if not all(t.is_contiguous() and t.dtype in (torch.float32, torch.float64) for t in (*params, *grads)):
            self._step_through_copies(group, params, grads, buffers, first)
            return
        _C._sgd_step(params, grads, buffers, first, float(group["lr"]), float(group["momentum"]), float(group["dampening"]),
                     float(group["weight_decay"]), group["nesterov"], group["maximize"])

    def _step_through_copies(self, group, params, grads, buffers, first):
        def plain(t):
            return (t if t.dtype == torch.float64 else t.float()).contiguous()

        copied = [[plain(t.detach()) for t in part] for part in (params, grads, buffers)]
        _C._sgd_step(*copied, first, float(group["lr"]), float(group["momentum"]), float(group["dampening"]), float(group["weight_decay"]),
                     group["nesterov"], group["maximize"])
        for part, copies in ((params, copied[0]), (buffers, copied[2])):
            for t, c in zip(part, copies):
                t.copy_(c)
