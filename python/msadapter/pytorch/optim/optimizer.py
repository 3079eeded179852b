"""The base of all optimizers: parameter groups, state, and both ways of stepping."""

from collections import defaultdict

from msadapter import pytorch as torch


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()


class Optimizer:
    """Holds parameter groups and a state for each parameter.

    `step()` uses the parameters' grad, as in PyTorch. Called with gradients, `optimizer(grads)`, it makes a step with those, in the
    order of `optimizer.parameters`, as in MindSpore.
    """

    _added_options = {}
    """Options that came after the first release, with what they are in checkpoints that do not have them."""
    _counters = ()
    """Names of states that are 0-dim tensors, and were plain numbers in older checkpoints."""

    def __init__(self, params, defaults):
        if isinstance(params, torch.Tensor):
            raise TypeError("params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                            + params.type())
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    @property
    def parameters(self):
        """All parameters, in the order of the groups."""
        return [p for group in self.param_groups for p in group["params"]]

    def __call__(self, grads):
        """A step with the given gradients, one for each of `parameters` (None: no step for that one). Their grad is left alone."""
        parameters = self.parameters
        grads = list(grads)
        if len(grads) != len(parameters):
            raise ValueError(f"optimizer: {len(parameters)} gradients expected, one for each parameter, got {len(grads)}")
        with torch.set_grad_enabled(self.defaults.get("differentiable", False)):
            self._step(dict(zip(map(id, parameters), grads)))
        return True

    def step(self, closure=None):
        """A step with the parameters' grad. `closure`, if given, is called with recording on, and what it returns is returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.set_grad_enabled(self.defaults.get("differentiable", False)):
            self._step({id(p): p.grad for p in self.parameters})
        return loss

    def _step(self, gradients):
        """Update every group; `gradients` maps id(parameter) to its gradient or None."""
        for group in self.param_groups:
            pairs = [(p, gradients[id(p)]) for p in group["params"] if gradients[id(p)] is not None]
            if pairs:
                self._step_group(group, [p for p, _ in pairs], [g for _, g in pairs])

    def _step_group(self, group, params, grads):
        raise NotImplementedError

    def _states(self, group, params):
        """The states of the parameters; those that are missing are made, by `_new_state`."""
        states = [self.state[p] for p in params]
        for p, state in zip(params, states):
            if not state:
                state.update(self._new_state(group, p))
        return states

    def _new_state(self, group, parameter):
        raise NotImplementedError

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        for group in self.param_groups:
            for name, default in self._added_options.items():
                group.setdefault(name, default)
        for values in self.state.values():
            for name in self._counters:
                if name in values and not isinstance(values[name], torch.Tensor):
                    values[name] = torch.tensor(float(values[name]))

    def zero_grad(self, set_to_none=False):
        """Clear the gradients: to zero, or to None."""
        for p in self.parameters:
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
            else:
                if p.grad.grad_fn is not None:
                    p.grad.detach_()
                else:
                    p.grad.requires_grad_(False)
                p.grad.zero_()

    def add_param_group(self, param_group):
        """One more group of parameters, with options of its own."""
        if not isinstance(param_group, dict):
            raise TypeError("param group must be a dict")
        params = param_group["params"]
        if isinstance(params, torch.Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
                            "change between runs. Please use a list instead.")
        else:
            param_group["params"] = list(params)
        for p in param_group["params"]:
            if not isinstance(p, torch.Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + type(p).__name__)
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        ids = [id(p) for p in param_group["params"]]
        if len(ids) != len(set(ids)):
            import warnings

            warnings.warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
                          "github.com/pytorch/pytorch/issues/40967 for more information", stacklevel=3)
        if {id(p) for p in self.parameters} & set(ids):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def state_dict(self):
        """State and options, parameters named by their number."""
        numbers, groups = {}, []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        return {"state": {numbers[id(k)] if isinstance(k, torch.Tensor) else k: s for k, s in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict):
        """Take over a state_dict of an optimizer with groups of the same sizes."""
        import copy

        saved = copy.deepcopy(state_dict)
        groups = saved["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(self.param_groups, groups)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        by_number = {number: p for group, own in zip(groups, self.param_groups) for number, p in zip(group["params"], own["params"])}

        def cast(parameter, value, key=None):
            if isinstance(value, torch.Tensor):
                return value.to(parameter.dtype) if key != "step" and parameter.is_floating_point() else value
            if isinstance(value, dict):
                return {k: cast(parameter, v, k) for k, v in value.items()}
            return type(value)(cast(parameter, v) for v in value) if type(value) in (list, tuple) else value

        state = defaultdict(dict)
        for key, value in saved["state"].items():
            if key in by_number:
                state[by_number[key]] = cast(by_number[key], value)
            else:
                state[key] = value
        groups = [{**group, "params": own["params"]} for group, own in zip(groups, self.param_groups)]
        self.__setstate__({"state": state, "param_groups": groups})

    def __repr__(self):
        text = type(self).__name__ + " ("
        for number, group in enumerate(self.param_groups):
            text += f"\nParameter Group {number}\n"
            text += "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return text + ")"


def check_dense(name, grads):
    """Sparse gradients need optimizers made for them."""
    for g in grads:
        if g.layout is not torch.strided:
            raise RuntimeError(f"{name} does not support sparse gradients")


def check_at_least_zero(*options):
    """Pairs of what an option is called in the message, and its value. Raises ValueError for negative ones."""
    for name, value in options:
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name}: {value}")


def check_betas(betas):
    """Decay rates of running means. Raises ValueError outside [0, 1)."""
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def zeros_like(parameter):
    """A state as large as a parameter and laid out like it, so that steps need no copies."""
    return torch.zeros_like(parameter, memory_format=torch.preserve_format)


def check_recordable(group):
    """Steps that are recorded go parameter by parameter."""
    if group["foreach"]:
        raise AssertionError("_foreach ops don't support autograd")


__all__ = ["Optimizer", "check_at_least_zero", "check_betas", "check_dense", "check_recordable", "required", "zeros_like"]
