"""The C steps refuse lists that do not belong together."""
import pytest

import msadapter.pytorch as torch
from msadapter import _C


def test_missing_gradients_and_states_are_errors():
    p = [torch.ones(3)]
    with pytest.raises(ValueError):
        _C._sgd_step(p, [], [], [], 0.1, 0.0, 0.0, 0.0, False, False)
    with pytest.raises(ValueError):
        _C._sgd_step(p, p, [], [], 0.1, 0.9, 0.0, 0.0, False, False)
    with pytest.raises(ValueError):
        _C._adam_step(p, p, [], [], [], [1.0], 0.1, 0.9, 0.99, 1e-8, 0.0, False, False, False)


def test_gradients_of_other_shapes_are_errors():
    with pytest.raises(RuntimeError, match="shape"):
        _C._sgd_step([torch.ones(3)], [torch.ones(2)], [], [], 0.1, 0.0, 0.0, 0.0, False, False)


OPTIMIZERS = {"SGD": dict(lr=0.1, momentum=0.9), "Adam": dict(lr=0.1, amsgrad=True), "AdamW": dict(lr=0.1), "Adagrad": dict(lr=0.1),
              "RMSprop": dict(lr=0.1, momentum=0.9, centered=True), "Adadelta": dict(), "Adamax": dict(lr=0.1), "NAdam": dict(lr=0.1),
              "RAdam": dict(lr=0.1), "Rprop": dict(lr=0.1), "ASGD": dict(lr=0.1, t0=1)}


def stepped(name, layout, dtype=torch.float32):
    values = torch.arange(48.0).reshape(2, 3, 4, 2).sin()
    p = layout(values.to(dtype)).detach().requires_grad_()
    optimizer = getattr(torch.optim, name)([p], **OPTIMIZERS[name])
    for step in range(3):
        p.grad = (values * (step - 0.5) + 0.1).to(dtype)
        optimizer.step()
    return p.detach().float()


def gapped(t):
    return torch.zeros(2, 3, 4, 4).to(t.dtype)[..., ::2].copy_(t)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("layout", [lambda t: t.to(memory_format=torch.channels_last), lambda t: t.transpose(0, 2).contiguous().transpose(0, 2), gapped],
                         ids=["channels_last", "transposed", "gapped"])
def test_the_layout_of_a_parameter_does_not_change_its_steps(name, layout):
    assert layout(torch.ones(2, 3, 4, 2)).is_contiguous() is False
    assert torch.equal(stepped(name, layout), stepped(name, lambda t: t.clone()))


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bit_parameters_are_stepped_in_float(name, dtype):
    assert torch.allclose(stepped(name, lambda t: t.clone(), dtype), stepped(name, lambda t: t.clone()), atol=0.1)


def test_infinite_parameters_stay_infinite_without_decay():
    p = torch.tensor([float("inf"), 1.0], requires_grad=True)
    for name, options in OPTIMIZERS.items():
        if name != "ASGD":  # which decays by lambd
            p.grad = torch.ones(2)
            getattr(torch.optim, name)([p], **options).step()
            assert p[0].item() == float("inf"), name


def test_parameters_whose_elements_share_memory_are_refused():
    p = torch.nn.Parameter(torch.ones(4, 1).expand(4, 3))
    p.grad = torch.ones(4, 3)
    with pytest.raises(RuntimeError, match="share one place"):
        torch.optim.SGD([p], lr=0.1).step()


def test_wrong_arguments_of_the_steps_are_errors():
    x = [torch.ones(3)]
    for lists, error in (((x, [x[0].int()], x, [1.0]), TypeError), ((x, x, x, [1.0, 2.0]), ValueError), ((x, x, x, ["1"]), TypeError),
                         ((x, [None], x, [1.0]), TypeError), ((1, 2, 3, 4), TypeError)):
        with pytest.raises(error):
            _C._adagrad_step(*lists, 0.1, 0.0, 0.0, 0.0, False)
    with pytest.raises(TypeError):
        _C._adagrad_step(x)
    with pytest.raises(ValueError):
        _C._count_steps([torch.ones(2)])


def test_sparse_adam_refuses_dense_gradients_and_lbfgs_given_ones():
    p = torch.ones(2, requires_grad=True)
    p.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        torch.optim.SparseAdam([p]).step()
    with pytest.raises(NotImplementedError, match="closure"):
        torch.optim.LBFGS([p])([p.grad])


def test_optimizers_are_pickled_with_their_state():
    import copy
    import pickle

    p = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam([p])
    torch.optim.lr_scheduler.StepLR(optimizer, 2)  # puts a counter around step
    p.grad = torch.ones(3)
    optimizer.step()
    for other in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        q = other.param_groups[0]["params"][0]
        assert q is not p and other.state[q]["step"].item() == 1
        q.grad = torch.ones(3)
        other.step()
        assert other.state[q]["step"].item() == 2 and optimizer.state[p]["step"].item() == 1
