"""Schedulers set the rates and momenta of the real torch 1.13, epoch by epoch, and refuse the same options."""
import inspect
import warnings
import weakref

import pytest

import msadapter.pytorch as ours

theirs = pytest.importorskip("torch")
if not theirs.__version__.startswith("1.13"):
    pytest.skip("the real torch 1.13 is not installed", allow_module_level=True)


SCHEDULES = {
    "StepLR": [dict(step_size=3), dict(step_size=2, gamma=0.5)],
    "MultiStepLR": [dict(milestones=[2, 5, 5, 9], gamma=0.3)],
    "ConstantLR": [dict(factor=0.5, total_iters=4)],
    "LinearLR": [dict(start_factor=0.25, total_iters=5), dict(start_factor=1.0, end_factor=0.1, total_iters=7)],
    "ExponentialLR": [dict(gamma=0.8)],
    "PolynomialLR": [dict(total_iters=6, power=2.0), dict()],
    "LambdaLR": [dict(lr_lambda=[lambda epoch: 0.9 ** epoch, lambda epoch: epoch + 1])],
    "MultiplicativeLR": [dict(lr_lambda=lambda epoch: 0.7)],
    "CosineAnnealingLR": [dict(T_max=5), dict(T_max=20, eta_min=0.01)],
    "CosineAnnealingWarmRestarts": [dict(T_0=3), dict(T_0=2, T_mult=2, eta_min=0.01)],
    "CyclicLR": [dict(base_lr=0.01, max_lr=0.2, step_size_up=3), dict(base_lr=[0.01, 0.02], max_lr=0.2, mode="triangular2", step_size_up=2,
                                                                       step_size_down=4),
                 dict(base_lr=0.01, max_lr=0.2, mode="exp_range", gamma=0.9, step_size_up=4, base_momentum=0.5),
                 dict(base_lr=0.01, max_lr=0.2, step_size_up=3, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations", cycle_momentum=False)],
    "OneCycleLR": [dict(max_lr=0.5, total_steps=16), dict(max_lr=[0.5, 0.1], epochs=5, steps_per_epoch=4, pct_start=0.4,
                                                          anneal_strategy="linear", three_phase=True)],
    "ReduceLROnPlateau": [dict(patience=1, factor=0.5), dict(mode="max", patience=0, cooldown=2, threshold_mode="abs", min_lr=[0.01, 0.05])],
    "SWALR": [dict(swa_lr=0.05, anneal_epochs=4), dict(swa_lr=[0.05, 0.5], anneal_strategy="linear"), dict(swa_lr=0.05, anneal_epochs=0)],
    "SequentialLR": [dict(milestones=[4])],
    "ChainedScheduler": [dict()],
}
CASES = [(name, options) for name, several in SCHEDULES.items() for options in several]
METRICS = [1.0, 0.9, 0.95, 0.96, 0.97, 0.5, 0.6, 0.61, 0.62, 0.63, 0.64, 0.65, float("nan"), 0.1, 0.1]


def make_optimizer(torch, name="SGD", **options):
    groups = [{"params": [torch.ones(2, requires_grad=True)], "lr": lr} for lr in (0.1, 0.2)]
    return getattr(torch.optim, name)(groups, **{"lr": 0.1, **({"momentum": 0.9} if name == "SGD" else {}), **options})


def make(torch, name, optimizer, options):
    module = torch.optim.swa_utils if name == "SWALR" else torch.optim.lr_scheduler
    if name in ("SequentialLR", "ChainedScheduler"):
        parts = [module.ConstantLR(optimizer, factor=0.1, total_iters=3), module.ExponentialLR(optimizer, gamma=0.9)]
        return module.SequentialLR(optimizer, parts, **options) if options else module.ChainedScheduler(parts)
    return getattr(module, name)(optimizer, **options)


def groups_of(optimizer):
    return [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, options", CASES)
def test_rates_are_those_of_torch_with_a_state_dict_round_trip(name, options):
    traces, alive = [], []  # torch's CyclicLR that loads a state uses the one that the state came from
    for torch in (ours, theirs):
        optimizer = make_optimizer(torch)
        scheduler = make(torch, name, optimizer, options)
        alive.append(scheduler)
        trace = [groups_of(optimizer)]
        for step in range(15):
            if step == 7 and name not in ("SequentialLR", "ChainedScheduler"):
                state, rates = scheduler.state_dict(), groups_of(optimizer)
                scheduler = make(torch, name, optimizer, options)
                scheduler.load_state_dict(state)
                for group, kept in zip(optimizer.param_groups, rates):
                    group.update(kept)
            optimizer.step()
            scheduler.step(*([METRICS[step]] if name == "ReduceLROnPlateau" else []))
            trace.append(groups_of(optimizer))
            trace.append(list(scheduler._last_lr))
        traces.append(trace)
    for step, (one, other) in enumerate(zip(*traces)):
        if isinstance(one[0], dict):
            for a, b in zip(one, other):
                assert list(a) == list(b), step
                for key in a:
                    assert a[key] == pytest.approx(b[key], rel=1e-12, abs=1e-15) if isinstance(a[key], float) else a[key] == b[key], (step, key)
        else:
            assert one == pytest.approx(other, rel=1e-12, abs=1e-15), step


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, options", [case for case in CASES if case[0] not in ("SequentialLR", "ChainedScheduler", "ReduceLROnPlateau")])
def test_given_epochs_verbose_text_and_arguments(name, options, capsys):
    texts = []
    for torch in (ours, theirs):
        optimizer = make_optimizer(torch)
        verbose = {} if name == "SWALR" else {"verbose": True}
        scheduler = make(torch, name, optimizer, {**options, **verbose})
        scheduler.step()
        for epoch in (4, 9, 2.5, None):
            scheduler.step(epoch)
            print([f"{group['lr']:.10f}" for group in optimizer.param_groups], scheduler.last_epoch)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    one, other = (inspect.signature(type(make(torch, name, make_optimizer(torch), options)).__init__) for torch in (ours, theirs))
    assert [(p.name, repr(p.default)) for p in one.parameters.values()] == [(p.name, repr(p.default)) for p in other.parameters.values()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, options", CASES)
def test_state_dicts_have_torchs_names(name, options):
    one, other = (set(make(torch, name, make_optimizer(torch), options).state_dict()) for torch in (ours, theirs))
    functions = {"anneal_func", "_anneal_strategy", "_scale_fn_ref"}  # torch keeps functions there, which files should not name
    assert one - functions == other - functions


BAD = [("StepLR", "optimizer", dict(step_size=2)), ("CyclicLR", "optimizer", dict(base_lr=0.1, max_lr=1)),
       ("ReduceLROnPlateau", "optimizer", dict()), ("ReduceLROnPlateau", "SGD", dict(factor=2)), ("ReduceLROnPlateau", "SGD", dict(mode="x")),
       ("ReduceLROnPlateau", "SGD", dict(min_lr=[1])), ("StepLR", "SGD", dict(step_size=2, last_epoch=3)),
       ("LambdaLR", "SGD", dict(lr_lambda=[abs])), ("MultiplicativeLR", "SGD", dict(lr_lambda=[abs] * 3)),
       ("LinearLR", "SGD", dict(start_factor=2)), ("LinearLR", "SGD", dict(end_factor=-1)), ("ConstantLR", "SGD", dict(factor=3)),
       ("CosineAnnealingWarmRestarts", "SGD", dict(T_0=0)), ("CosineAnnealingWarmRestarts", "SGD", dict(T_0=2.5)),
       ("CosineAnnealingWarmRestarts", "SGD", dict(T_0=2, T_mult=0)), ("CyclicLR", "SGD", dict(base_lr=[0.1], max_lr=1)),
       ("CyclicLR", "SGD", dict(base_lr=0.1, max_lr=1, mode="x")), ("CyclicLR", "Adam", dict(base_lr=0.1, max_lr=1)),
       ("OneCycleLR", "SGD", dict(max_lr=0.1)), ("OneCycleLR", "SGD", dict(max_lr=0.1, total_steps=-1)),
       ("OneCycleLR", "SGD", dict(max_lr=0.1, epochs=3)), ("OneCycleLR", "SGD", dict(max_lr=0.1, epochs=3, steps_per_epoch=0)),
       ("OneCycleLR", "SGD", dict(max_lr=0.1, total_steps=5, pct_start=2)), ("OneCycleLR", "SGD", dict(max_lr=0.1, total_steps=5, anneal_strategy="x")),
       ("OneCycleLR", "Rprop", dict(max_lr=0.1, total_steps=5)), ("SWALR", "SGD", dict(swa_lr=1, anneal_epochs=-1)),
       ("SWALR", "SGD", dict(swa_lr=[1])), ("SWALR", "SGD", dict(swa_lr=1, anneal_strategy="x")), ("SequentialLR", "SGD", dict(milestones=[1, 2])),
       ("OneCycleLR", "Adam", dict(max_lr=0.1, total_steps=5))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, optimizer, options", BAD)
def test_what_torch_refuses_is_refused_alike(name, optimizer, options):
    raised = []
    for torch in (ours, theirs):
        made = object() if optimizer == "optimizer" else make_optimizer(torch, optimizer)
        with pytest.raises(Exception) as caught:
            scheduler = make(torch, name, made, options)
            for step in range(8):
                scheduler.step()
        raised.append((caught.type, str(caught.value), optimizer == "Adam" and name == "OneCycleLR" and step))
    assert raised[0] == raised[1]


def test_cycles_move_the_first_beta_of_optimizers_without_momentum():
    betas = []
    for torch in (ours, theirs):
        optimizer = make_optimizer(torch, "Adam")
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=6)
        for _ in range(3):
            optimizer.step()
            scheduler.step()
        betas.append([beta for group in optimizer.param_groups for beta in group["betas"]])
    assert betas[0] == pytest.approx(betas[1], rel=1e-12)


def test_warnings_come_where_torchs_do():
    seen = []
    for torch in (ours, theirs):
        optimizer = make_optimizer(torch)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
        counts = []
        for action in (scheduler.step, scheduler.step, lambda: scheduler.step(3), scheduler.get_lr, optimizer.step):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                action()
            counts.append([w.category for w in caught])
        seen.append(counts)
    assert seen[0] == seen[1]


def test_optimizers_with_schedulers_go_when_nothing_refers_to_them():
    import gc

    optimizer = make_optimizer(ours)
    gone = weakref.ref(optimizer)
    scheduler = ours.optim.lr_scheduler.StepLR(optimizer, 2)
    gc.disable()
    try:
        del optimizer, scheduler
        assert gone() is None
    finally:
        gc.enable()


def averaged(torch, **options):
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    with torch.no_grad():
        for i, p in enumerate(net.parameters()):
            p.copy_(torch.arange(p.numel(), dtype=torch.float32).reshape(p.shape).sin() + i)
    mean = torch.optim.swa_utils.AveragedModel(net, **options)
    x = torch.arange(18.0).reshape(6, 3).cos()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
    for _ in range(3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()
        mean.update_parameters(net)
    before = [v.double().tolist() for v in mean.state_dict().values()]
    mean.eval()
    torch.optim.swa_utils.update_bn([(x, None), [x * 2]], mean)
    assert not mean.training and mean.module[1].momentum == 0.1
    return list(mean.state_dict()), before, [v.double().tolist() for v in mean.state_dict().values()], mean(x).tolist()


@pytest.mark.parametrize("options", [dict(), dict(use_buffers=True), dict(avg_fn=lambda mean, new, count: 0.9 * mean + 0.1 * new)])
def test_averaged_models_have_torchs_parameters_and_statistics(options):
    (names, before, after, y), (real_names, *real) = averaged(ours, **options), averaged(theirs, **options)
    assert names == real_names

    def flat(value):
        return [x for v in value for x in flat(v)] if isinstance(value, list) else [value]

    for got, expected in zip((before, after, y), real):
        assert flat(got) == pytest.approx(flat(expected), rel=1e-5, abs=1e-6)


def test_callable_objects_keep_their_state():
    class Halving:
        calls = 0

        def __call__(self, epoch):
            self.calls += 1
            return 0.5 ** epoch

    states = []
    for torch in (ours, theirs):
        optimizer = make_optimizer(torch)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, [Halving(), lambda epoch: 1])
        optimizer.step()
        scheduler.step()
        state = scheduler.state_dict()
        other = torch.optim.lr_scheduler.LambdaLR(make_optimizer(torch), [Halving(), lambda epoch: 1])
        other.load_state_dict(state)
        assert other.lr_lambdas[0].calls == scheduler.lr_lambdas[0].calls
        states.append(state["lr_lambdas"])
    assert states[0] == states[1]
