"""Optimizers make the same steps as the real torch 1.13, keep the same states, and refuse the same options."""
import pytest

import msadapter.pytorch as ours

theirs = pytest.importorskip("torch")
if not theirs.__version__.startswith("1.13"):
    pytest.skip("the real torch 1.13 is not installed", allow_module_level=True)

METHODS = {
    "SGD": [dict(lr=0.1), dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01), dict(lr=0.1, momentum=0.5, dampening=0.3, maximize=True)],
    "Adam": [dict(), dict(lr=0.01, betas=(0.8, 0.9), weight_decay=0.1, amsgrad=True), dict(maximize=True, foreach=True)],
    "AdamW": [dict(), dict(lr=0.01, weight_decay=0.1, amsgrad=True, maximize=True)],
    "Adagrad": [dict(), dict(lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5, maximize=True)],
    "RMSprop": [dict(), dict(momentum=0.9, weight_decay=0.1), dict(centered=True, maximize=True), dict(momentum=0.5, centered=True, alpha=0.8)],
    "Adadelta": [dict(), dict(lr=0.5, rho=0.8, weight_decay=0.1, maximize=True)],
    "Adamax": [dict(), dict(lr=0.01, weight_decay=0.1, betas=(0.7, 0.9), maximize=True)],
    "NAdam": [dict(), dict(lr=0.01, weight_decay=0.1, momentum_decay=0.01)],
    "RAdam": [dict(), dict(lr=0.01, weight_decay=0.1, betas=(0.7, 0.8))],
    "Rprop": [dict(), dict(lr=0.1, etas=(0.3, 1.5), step_sizes=(1e-3, 0.2), maximize=True)],
    "ASGD": [dict(), dict(lr=0.1, t0=3, weight_decay=0.1, lambd=0.01, maximize=True)],
}
CASES = [(name, options) for name, several in METHODS.items() for options in several]
SHAPES = [(3, 4), (2, 3, 2, 2), (5,), (4, 3), (6, 2), ()]


def random(*key):
    import numpy

    return numpy.random.default_rng(list(key))


def parameters(torch, dtype):
    """Plain, channels_last, with gaps, transposed, and one that gets no gradient."""
    out = [torch.tensor(random(0, i).standard_normal(shape)).to(dtype) for i, shape in enumerate(SHAPES)]
    out[1] = out[1].to(memory_format=torch.channels_last)
    out[3] = out[3].t()
    out[4] = out[4].t()[:, ::2]
    return [p.requires_grad_() for p in out]


def give_gradients(torch, params, step):
    for i, p in enumerate(params[:-1]):
        if not (step == 0 and i == 2):  # the third joins at the second step
            g = torch.tensor(random(1, step, i).standard_normal(tuple(p.shape))).to(p.dtype)
            p.grad = g if step % 2 else torch.empty_like(p).copy_(g).detach()


def numbers(value):
    return value.detach().to(ours.float64 if isinstance(value, ours.Tensor) else theirs.float64).tolist() if hasattr(value, "detach") else value


def states(optimizer):
    return {i: {k: numbers(v) for k, v in s.items()} for i, s in sorted(optimizer.state_dict()["state"].items())}


def assert_close(one, other, rel, where):
    if isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_close(one[key], other[key], rel, (*where, key))
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for a, b in zip(one, other):
            assert_close(a, b, rel, where)
    elif one is None or other is None:
        assert one is other, where
    else:
        assert one == pytest.approx(other, rel=rel, abs=rel), where


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, options", CASES)
def test_ten_steps_with_a_change_of_optimizer_half_way(name, options, dtype):
    made = []
    for torch in (ours, theirs):
        params = parameters(torch, getattr(torch, dtype))
        made.append([torch, params, getattr(torch.optim, name)([{"params": params[:2]}, {"params": params[2:], "lr": 0.02}], **options)])
    for step in range(10):
        for entry in made:
            torch, params, optimizer = entry
            if step == 5:
                entry[2] = getattr(torch.optim, name)([{"params": params[:2]}, {"params": params[2:]}], **options)
                entry[2].load_state_dict(optimizer.state_dict())
            give_gradients(torch, params, step)
            entry[2].step()
        (_, got, own), (_, expected, real) = made
        # NAdam and ASGD keep numbers in float32, whatever the parameters' type
        rel = 2e-5 if dtype == "float32" else 1e-6 if name in ("NAdam", "ASGD") else 1e-9
        for i, (one, other) in enumerate(zip(got, expected)):
            assert_close(numbers(one), numbers(other), rel, (step, i))
        assert_close(states(own), states(real), rel, (step, "state"))
        for one, other in zip(own.param_groups, real.param_groups):
            assert {k: v for k, v in one.items() if k != "params"} == {k: v for k, v in other.items() if k != "params"}
            assert list(one) == list(other) or step >= 5


@pytest.mark.parametrize("name", [*METHODS, "SparseAdam", "LBFGS"])
def test_arguments_are_those_of_torch(name):
    import inspect

    one, other = (inspect.signature(getattr(torch.optim, name).__init__).parameters for torch in (ours, theirs))
    assert [(p.name, repr(p.default), p.kind) for p in one.values()] == [(p.name, repr(p.default), p.kind) for p in other.values()]


BAD = [("Adagrad", dict(lr_decay=-1)), ("Adagrad", dict(initial_accumulator_value=-1.0)), ("RMSprop", dict(alpha=-1)), ("Adadelta", dict(rho=1.5)),
       ("Adamax", dict(betas=(0.5, 1.0))), ("NAdam", dict(momentum_decay=-1.0)), ("RAdam", dict(eps=-1.0)), ("Rprop", dict(etas=(1.0, 2.0))),
       ("ASGD", dict(weight_decay=-2)), ("SparseAdam", dict(lr=0.0)), ("SparseAdam", dict()), ("Adam", dict(fused=True)),
       ("Adam", dict(fused=True, differentiable=True)), ("Adam", dict(capturable=True)), ("AdamW", dict(capturable=True)),
       ("RMSprop", dict(differentiable=True, foreach=True)), ("RMSprop", dict(differentiable=True)), ("Adam", dict(differentiable=True)),
       ("SGD", dict(lr=0.1, differentiable=True)), ("LBFGS", dict(line_search_fn="golden"))]


@pytest.mark.parametrize("name, options", BAD)
def test_what_torch_refuses_is_refused_alike(name, options):
    raised = []
    for torch in (ours, theirs):
        p = torch.ones(2, requires_grad=True)
        p.grad = torch.ones(2)
        with pytest.raises(Exception) as caught:
            optimizer = getattr(torch.optim, name)([p], **options)
            optimizer.step(*([lambda: (p * p).sum()] if name == "LBFGS" else []))
        raised.append((caught.type, str(caught.value)))
    if options.get("differentiable") and "foreach" not in options and "fused" not in options:
        assert raised[0][0] is raised[1][0]  # the message is autograd's
    else:
        assert raised[0] == raised[1]


# torch's own Adam and RMSprop overwrite what the second step's gradient needs
@pytest.mark.parametrize("name, steps, options", [("SGD", 3, dict(lr=0.1, momentum=0.9, weight_decay=0.1)),
                                                  ("Adam", 1, dict(amsgrad=True, weight_decay=0.1)),
                                                  ("RMSprop", 1, dict(momentum=0.5, centered=True, weight_decay=0.1))])
def test_recorded_steps_carry_gradients_back_to_the_start(name, steps, options):
    gradients = []
    for torch in (ours, theirs):
        start = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
        scale = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
        p = start.clone()
        p.retain_grad()
        optimizer = getattr(torch.optim, name)([p], differentiable=True, **options)
        for _ in range(steps):
            q = p.clone()  # the step changes p in place, so nothing may have saved it
            p.grad, = torch.autograd.grad((scale * q ** 4).sum(), q, create_graph=True)
            optimizer.step()
        (p ** 2).sum().backward()
        gradients.append((start.grad.tolist(), scale.grad.item()))
    assert gradients[0][0] == pytest.approx(gradients[1][0], rel=1e-7)
    assert gradients[0][1] == pytest.approx(gradients[1][1], rel=1e-7)


@pytest.mark.parametrize("name", METHODS)
def test_checkpoints_from_before_an_option_existed_load_and_step(name):
    results = []
    for torch in (ours, theirs):
        p = torch.tensor([1.0, -2.0], requires_grad=True)
        make = getattr(torch.optim, name)
        optimizer = make([p], lr=0.1)
        p.grad = torch.tensor([0.5, 0.25])
        optimizer.step()
        saved = optimizer.state_dict()
        for group in saved["param_groups"]:
            for key in ("maximize", "foreach", "capturable", "differentiable", "fused"):
                group.pop(key, None)
        for state in saved["state"].values():
            if "step" in state:
                state["step"] = int(state["step"])
        optimizer = make([p], lr=0.1)
        optimizer.load_state_dict(saved)
        optimizer.step()
        results.append((p.tolist(), {k: v for k, v in optimizer.param_groups[0].items() if k != "params"}, type(states(optimizer)[0].get("step"))))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    assert results[0][1:] == results[1][1:]


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad"])
def test_complex_parameters_are_stepped_as_pairs(name):
    results = []
    for torch in (ours, theirs):
        z = torch.tensor([1 + 1j, 2 - 3j], dtype=torch.complex64, requires_grad=True)
        optimizer = getattr(torch.optim, name)([z], lr=0.1)
        for step in range(3):
            z.grad = torch.tensor([1 + 2j, 3.0 - step * 1j], dtype=torch.complex64)
            optimizer.step()
        results.append([f(v) for v in z.tolist() for f in (lambda c: c.real, lambda c: c.imag)])
    assert results[0] == pytest.approx(results[1], rel=1e-5) or name == "RMSprop"  # torch's RMSprop squares the complex number itself


def valley(torch, start, **options):
    """The way of LBFGS down Rosenbrock's valley."""
    x, y = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in start)
    optimizer = torch.optim.LBFGS([x, y], **options)

    def closure():
        optimizer.zero_grad()
        loss = (1 - x) ** 2 + 10 * (y - x ** 2) ** 2
        loss.backward()
        return loss

    trace = []
    for _ in range(4):
        loss = optimizer.step(closure)
        state = optimizer.state[x]
        trace.append((loss.item(), x.item(), y.item(), state["func_evals"], state["n_iter"]))
    return trace, sorted(state)


@pytest.mark.parametrize("options", [dict(lr=0.1), dict(lr=0.1, max_iter=3, history_size=2), dict(line_search_fn="strong_wolfe"),
                                     dict(line_search_fn="strong_wolfe", max_iter=4, history_size=3), dict(lr=0.1, max_eval=2),
                                     dict(line_search_fn="strong_wolfe", lr=3.0)])
@pytest.mark.parametrize("start", [(-1.0, 1.0), (0.5, 2.0)])
def test_lbfgs_goes_the_same_way(options, start):
    (got, keys), (expected, real_keys) = (valley(torch, start, **options) for torch in (ours, theirs))
    assert keys == real_keys
    for one, other in zip(got, expected):
        assert one[3:] == other[3:]
        assert one[:3] == pytest.approx(other[:3], rel=1e-6, abs=1e-12)
