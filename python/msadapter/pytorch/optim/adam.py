"""Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019)."""

from msadapter import _C
from msadapter import pytorch as torch
from msadapter.pytorch.optim.optimizer import Optimizer, check_dense


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square. Raises ValueError for options out of range."""

    _decoupled = False

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None, maximize=False,
                 capturable=False):
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 <= eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
                                  "foreach": foreach, "capturable": capturable})

    def _state(self, p, amsgrad):
        state = self.state_of(p)
        if not state:
            state["step"] = torch.tensor(0.0)
            for name in ("exp_avg", "exp_avg_sq") + (("max_exp_avg_sq",) if amsgrad else ()):
                state[name] = torch.zeros_like(p, memory_format=torch.contiguous_format)
        return state

    def _step_group(self, group, params, grads):
        check_dense(type(self).__name__, grads)
        states = [self._state(p, group["amsgrad"]) for p in params]
        steps = []
        for state in states:
            if isinstance(state["step"], torch.Tensor):
                state["step"].add_(1)
            else:
                state["step"] += 1
            steps.append(float(state["step"]))
        lists = [params, grads, [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states],
                 [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else []]
        options = (steps, float(group["lr"]), float(group["betas"][0]), float(group["betas"][1]), float(group["eps"]),
                   float(group["weight_decay"]), self._decoupled, group["amsgrad"], group["maximize"])
        if all(t.is_contiguous() and t.dtype in (torch.float32, torch.float64) for part in lists for t in part):
            _C._adam_step(*lists, *options)
            return
        copied = [[(t.detach() if t.dtype == torch.float64 else t.detach().float()).contiguous() for t in part] for part in lists]
        _C._adam_step(*copied, *options)
        for k, part in enumerate(lists):
            for t, c in zip(part, copied[k]) if k != 1 else ():
                t.copy_(c)


class AdamW(Adam):
    """Adam whose weight decay acts on the weights, not on the gradients."""

    _decoupled = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False, foreach=None,
                 capturable=False):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable)
