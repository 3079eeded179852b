"""Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019)."""

from msadapter import _C
from msadapter import pytorch as torch
from msadapter.pytorch.optim.optimizer import Optimizer, check_at_least_zero, check_betas, check_dense, check_recordable, zeros_like


class _AdamSteps(Optimizer):
    """What both do. `_decoupled`: whether the decay acts on the weights rather than on the gradients."""

    _decoupled = False
    _counters = ("step",)

    def __init__(self, params, defaults):
        check_at_least_zero(("learning rate", defaults["lr"]), ("epsilon value", defaults["eps"]))
        check_betas(defaults["betas"])
        check_at_least_zero(("weight_decay value", defaults["weight_decay"]))
        super().__init__(params, defaults)

    def _new_state(self, group, p):
        names = ("exp_avg", "exp_avg_sq") + (("max_exp_avg_sq",) if group["amsgrad"] else ())
        return {"step": torch.tensor(0.0), **{name: zeros_like(p) for name in names}}

    def _step_group(self, group, params, grads):
        check_dense(type(self).__name__, grads)
        if group["capturable"]:
            raise AssertionError("If capturable=True, params and state_steps must be CUDA tensors.")
        states = self._states(group, params)
        steps = _C._count_steps([s["step"] for s in states])
        if group.get("differentiable"):
            check_recordable(group)
            for p, g, state, step in zip(params, grads, states, steps):
                self._step_recorded(group, p, g, state, step)
            return
        _C._adam_step(params, grads, [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states],
                      [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else [], steps, group["lr"], *group["betas"], group["eps"],
                      group["weight_decay"], self._decoupled, group["amsgrad"], group["maximize"])


class Adam(_AdamSteps):
    """Steps scaled by running means of the gradient and of its square.

    Raises ValueError for options out of range, RuntimeError for `fused`, which no CPU parameter can have.
    """

    _added_options = {"amsgrad": False, "maximize": False, "foreach": None, "capturable": False, "differentiable": False, "fused": False}

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False, *, foreach=None, maximize=False,
                 capturable=False, differentiable=False, fused=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
                                  "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused})
        if fused:
            raise RuntimeError("`fused` cannot be `differentiable`" if differentiable
                               else "FusedAdam requires all the params to be CUDA, floating point")

    @staticmethod
    def _step_recorded(group, p, g, state, step):
        """The same out of operators, which record it."""
        beta1, beta2 = group["betas"]
        d = -g if group["maximize"] else g
        if group["weight_decay"] != 0:
            d = d.add(p, alpha=group["weight_decay"])
        state["exp_avg"].mul_(beta1).add_(d, alpha=1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(d, d.conj(), value=1 - beta2)
        square = state["exp_avg_sq"].clone()
        if group["amsgrad"]:
            state["max_exp_avg_sq"].copy_(torch.maximum(state["max_exp_avg_sq"].clone(), square))
            square = state["max_exp_avg_sq"].clone()
        root = square.sqrt() / (1 - beta2 ** step) ** 0.5 + group["eps"]
        p.addcdiv_(state["exp_avg"].clone(), root, value=-group["lr"] / (1 - beta1 ** step))


class AdamW(_AdamSteps):
    """Adam whose weight decay acts on the weights, not on the gradients. Raises ValueError for options out of range."""

    _decoupled = True
    _added_options = {"amsgrad": False, "maximize": False, "foreach": None, "capturable": False}

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False, foreach=None,
                 capturable=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "foreach": foreach,
                                  "maximize": maximize, "capturable": capturable})
