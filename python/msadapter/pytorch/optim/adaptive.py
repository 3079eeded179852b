"""Optimizers that give each element a rate of its own (Adagrad and what came after it, Rprop), and averaged descent."""

import math

from msadapter import _C
from msadapter import pytorch as torch
from msadapter.pytorch.optim.optimizer import Optimizer, check_at_least_zero, check_betas, check_dense, check_recordable, zeros_like


def _pick(states, name):
    return [state[name] for state in states]


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients (Duchi, Hazan and Singer, 2011). Raises ValueError for options out of
    range."""

    _added_options = {"foreach": None, "maximize": False}
    _counters = ("step",)

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10, foreach=None, *, maximize=False):
        check_at_least_zero(("learning rate", lr), ("lr_decay value", lr_decay), ("weight_decay value", weight_decay),
                            ("initial_accumulator_value value", initial_accumulator_value), ("epsilon value", eps))
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                                  "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize})
        for group in self.param_groups:
            self._states(group, group["params"])

    def _new_state(self, group, p):
        value = group["initial_accumulator_value"]
        return {"step": torch.tensor(0.0),
                "sum": torch.full_like(p, complex(value, value) if torch.is_complex(p) else value, memory_format=torch.preserve_format)}

    def share_memory(self):
        """Move the sums to memory that other processes can share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _step_group(self, group, params, grads):
        sparse = [i for i, g in enumerate(grads) if g.is_sparse]
        if sparse:
            for i in sparse:
                self._step_sparse(group, params[i], grads[i])
            dense = [i for i, g in enumerate(grads) if not g.is_sparse]
            params, grads = [params[i] for i in dense], [grads[i] for i in dense]
        check_dense("Adagrad", grads)
        states = self._states(group, params)
        _C._adagrad_step(params, grads, _pick(states, "sum"), _C._count_steps(_pick(states, "step")), group["lr"], group["lr_decay"],
                         group["weight_decay"], group["eps"], group["maximize"])


    def _step_sparse(self, group, p, grad):
        """The same for the rows that have a gradient alone."""
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        state = self._states(group, [p])[0]
        rate = group["lr"] / (1 + (_C._count_steps([state["step"]])[0] - 1) * group["lr_decay"])
        grad = (-grad if group["maximize"] else grad).coalesce()
        values = grad._values()

        def like_grad(new):
            return torch._sparse_coo_tensor_unsafe(grad._indices(), new, grad.size())

        state["sum"].add_(like_grad(values.pow(2)))
        root = state["sum"].sparse_mask(grad)._values().sqrt_().add_(group["eps"])
        p.add_(like_grad(values / root), alpha=-rate)


class RMSprop(Optimizer):
    """Steps divided by the root of the running mean of squared gradients (Tieleman and Hinton, 2012); centred, of their variance (Graves,
    2013). Raises ValueError for options out of range."""

    _added_options = {"momentum": 0, "centered": False, "foreach": None, "maximize": False, "differentiable": False}

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False, foreach=None, maximize=False,
                 differentiable=False):
        check_at_least_zero(("learning rate", lr), ("epsilon value", eps), ("momentum value", momentum), ("weight_decay value", weight_decay),
                            ("alpha value", alpha))
        super().__init__(params, {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
                                  "foreach": foreach, "maximize": maximize, "differentiable": differentiable})

    def _new_state(self, group, p):
        names = ["square_avg"] + ["momentum_buffer"] * (group["momentum"] > 0) + ["grad_avg"] * bool(group["centered"])
        return {"step": 0, **{name: zeros_like(p) for name in names}}

    def _step_group(self, group, params, grads):
        check_dense("RMSprop", grads)
        states = self._states(group, params)
        for state in states:
            state["step"] += 1
        if group["differentiable"]:
            check_recordable(group)
            for p, g, state in zip(params, grads, states):
                self._step_recorded(group, p, g, state)
            return
        _C._rmsprop_step(params, grads, _pick(states, "square_avg"), _pick(states, "grad_avg") if group["centered"] else [],
                         _pick(states, "momentum_buffer") if group["momentum"] > 0 else [], group["lr"], group["alpha"], group["eps"],
                         group["weight_decay"], group["momentum"], group["centered"], group["maximize"])

    @staticmethod
    def _step_recorded(group, p, g, state):
        """The same out of operators, which record it."""
        alpha = group["alpha"]
        d = -g if group["maximize"] else g
        if group["weight_decay"] != 0:
            d = d.add(p, alpha=group["weight_decay"])
        state["square_avg"].mul_(alpha).addcmul_(d, d, value=1 - alpha)
        square = state["square_avg"].clone()
        if group["centered"]:
            state["grad_avg"].mul_(alpha).add_(d, alpha=1 - alpha)
            square = square.addcmul(state["grad_avg"], state["grad_avg"].clone(), value=-1)
        root = square.sqrt() + group["eps"]
        if group["momentum"] > 0:
            state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(d, root)
            p.add_(state["momentum_buffer"].clone(), alpha=-group["lr"])
        else:
            p.addcdiv_(d, root, value=-group["lr"])


class Adadelta(Optimizer):
    """Steps in the ratio of the running means of past steps and of past gradients (Zeiler, 2012). Raises ValueError for options out of
    range."""

    _added_options = {"foreach": None, "maximize": False}

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, foreach=None, *, maximize=False):
        check_at_least_zero(("learning rate", lr))
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        check_at_least_zero(("epsilon value", eps), ("weight_decay value", weight_decay))
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach})

    def _new_state(self, group, p):
        return {"step": 0, "square_avg": zeros_like(p), "acc_delta": zeros_like(p)}

    def _step_group(self, group, params, grads):
        check_dense("Adadelta", grads)
        states = self._states(group, params)
        for state in states:
            state["step"] += 1
        _C._adadelta_step(params, grads, _pick(states, "square_avg"), _pick(states, "acc_delta"), group["lr"], group["rho"], group["eps"],
                          group["weight_decay"], group["maximize"])


class Adamax(Optimizer):
    """Adam with the largest recent gradient in the place of the root mean square (Kingma and Ba, 2015). Raises ValueError for options out
    of range."""

    _added_options = {"foreach": None, "maximize": False}
    _counters = ("step",)

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None, *, maximize=False):
        check_at_least_zero(("learning rate", lr), ("epsilon value", eps))
        check_betas(betas)
        check_at_least_zero(("weight_decay value", weight_decay))
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize})

    def _new_state(self, group, p):
        return {"step": torch.tensor(0.0), "exp_avg": zeros_like(p), "exp_inf": zeros_like(p)}

    def _step_group(self, group, params, grads):
        check_dense("Adamax", grads)
        states = self._states(group, params)
        _C._adamax_step(params, grads, _pick(states, "exp_avg"), _pick(states, "exp_inf"), _C._count_steps(_pick(states, "step")), group["lr"],
                        *group["betas"], group["eps"], group["weight_decay"], group["maximize"])


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat, 2016). Raises ValueError for options out of range."""

    _added_options = {"foreach": None}
    _counters = ("step", "mu_product")

    def __init__(self, params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, momentum_decay=4e-3, foreach=None):
        check_at_least_zero(("learning rate", lr), ("epsilon value", eps))
        check_betas(betas)
        check_at_least_zero(("weight_decay value", weight_decay), ("momentum_decay value", momentum_decay))
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
                                  "foreach": foreach})

    def _new_state(self, group, p):
        return {"step": torch.tensor(0.0), "mu_product": torch.tensor(1.0), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def _step_group(self, group, params, grads):
        check_dense("NAdam", grads)
        states = self._states(group, params)
        numbers = []
        for state, step in zip(states, _C._count_steps(_pick(states, "step"))):
            state["mu_product"].mul_(group["betas"][0] * (1 - 0.5 * 0.96 ** (step * group["momentum_decay"])))
            numbers += (step, state["mu_product"].item())
        _C._nadam_step(params, grads, _pick(states, "exp_avg"), _pick(states, "exp_avg_sq"), numbers, group["lr"], *group["betas"], group["eps"],
                       group["weight_decay"], group["momentum_decay"])


class RAdam(Optimizer):
    """Adam whose rate is rectified for the variance of the first steps (Liu et al., 2020). Raises ValueError for options out of range."""

    _added_options = {"foreach": None}
    _counters = ("step",)

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, foreach=None):
        check_at_least_zero(("learning rate", lr), ("epsilon value", eps))
        check_betas(betas)
        check_at_least_zero(("weight_decay value", weight_decay))
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach})

    def _new_state(self, group, p):
        return {"step": torch.tensor(0.0), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def _step_group(self, group, params, grads):
        check_dense("RAdam", grads)
        states = self._states(group, params)
        _C._radam_step(params, grads, _pick(states, "exp_avg"), _pick(states, "exp_avg_sq"), _C._count_steps(_pick(states, "step")), group["lr"],
                       *group["betas"], group["eps"], group["weight_decay"])


class Rprop(Optimizer):
    """Steps whose sizes depend on the signs of the gradients alone (Riedmiller and Braun, 1993). Raises ValueError for options out of
    range."""

    _added_options = {"foreach": None, "maximize": False}

    def __init__(self, params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), foreach=None, maximize=False):
        check_at_least_zero(("learning rate", lr))
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize})

    def _new_state(self, group, p):
        return {"step": 0, "prev": zeros_like(p), "step_size": torch.full_like(p, group["lr"], memory_format=torch.preserve_format)}

    def _step_group(self, group, params, grads):
        check_dense("Rprop", grads)
        states = self._states(group, params)
        for state in states:
            state["step"] += 1
        _C._rprop_step(params, grads, _pick(states, "prev"), _pick(states, "step_size"), *group["etas"], *group["step_sizes"], group["maximize"])


class ASGD(Optimizer):
    """Descent that also keeps the mean of its iterates, as state 'ax' (Polyak and Juditsky, 1992). Raises ValueError for options out of
    range."""

    _added_options = {"foreach": None, "maximize": False}
    _counters = ("step", "eta", "mu")

    def __init__(self, params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, foreach=None, maximize=False):
        check_at_least_zero(("learning rate", lr), ("weight_decay value", weight_decay))
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "foreach": foreach,
                                  "maximize": maximize})

    def _new_state(self, group, p):
        return {"step": torch.tensor(0.0), "eta": torch.tensor(group["lr"]), "mu": torch.tensor(1.0), "ax": zeros_like(p)}

    def _step_group(self, group, params, grads):
        check_dense("ASGD", grads)
        states = self._states(group, params)
        steps = _C._count_steps(_pick(states, "step"))
        numbers = [state[name].item() for state in states for name in ("eta", "mu")]
        _C._asgd_step(params, grads, _pick(states, "ax"), numbers, group["lambd"], group["weight_decay"], group["maximize"])
        for state, step in zip(states, steps):
            state["eta"].fill_(group["lr"] / math.pow(1 + group["lambd"] * group["lr"] * step, group["alpha"]))
            state["mu"].fill_(1 / max(1, step - group["t0"]))


class SparseAdam(Optimizer):
    """Adam that moves the rows which have a gradient, and their means, alone. Raises ValueError for options out of range, and from step()
    RuntimeError for dense gradients."""

    _added_options = {"maximize": False}

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        for name, value in (("learning rate", lr), ("epsilon value", eps)):
            if not 0.0 < value:
                raise ValueError(f"Invalid {name}: {value}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse = [i for i, p in enumerate(self.parameters) if p.layout is not torch.strided]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")

    def _new_state(self, group, p):
        return {"step": 0, "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def _step_group(self, group, params, grads):
        if any(g.layout is torch.strided for g in grads):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        beta1, beta2 = group["betas"]
        for p, grad, state in zip(params, grads, self._states(group, params)):
            state["step"] += 1
            grad = (-grad if group["maximize"] else grad).coalesce()
            values = grad._values()
            if values.numel() == 0:
                continue

            def like_grad(new):
                return torch._sparse_coo_tensor_unsafe(grad._indices(), new, grad.size())

            old_mean = state["exp_avg"].sparse_mask(grad)._values()
            mean_change = values.sub(old_mean).mul_(1 - beta1)
            state["exp_avg"].add_(like_grad(mean_change))
            old_square = state["exp_avg_sq"].sparse_mask(grad)._values()
            square_change = values.pow(2).sub_(old_square).mul_(1 - beta2)
            state["exp_avg_sq"].add_(like_grad(square_change))
            mean, root = mean_change.add_(old_mean), square_change.add_(old_square).sqrt_().add_(group["eps"])
            rate = group["lr"] * math.sqrt(1 - beta2 ** state["step"]) / (1 - beta1 ** state["step"])
            p.add_(like_grad(-rate * mean / root))


__all__ = ["ASGD", "Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SparseAdam"]
