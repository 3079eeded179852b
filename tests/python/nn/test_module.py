"""nn.Module: registering parts, attributes, calls with hooks, conversion, state_dict, copies and pickles, text."""

import copy
import pickle
from collections import OrderedDict

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2, bias=False)
        self.register_buffer("kept", torch.ones(2))
        self.register_buffer("lost", torch.ones(2), persistent=False)

    def forward(self, x, scale=1.0):
        return self.second(self.first(x)) * scale


def test_users_attribute_names_are_theirs():
    net = Net()
    net.phase, net.cls_name, net.cell_type, net.training_step = "a", "b", "c", 4
    assert (net.phase, net.cls_name, net.cell_type, net.training_step) == ("a", "b", "c", 4)


def test_parts_are_found_by_name_in_order():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["first.weight", "first.bias", "second.weight"]
    assert [name for name, _ in net.named_buffers()] == ["kept", "lost"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "second"]
    assert net.get_submodule("first") is net.first and net.get_parameter("first.bias") is net.first.bias
    assert net.get_buffer("kept") is net.kept
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'third'"):
        net.third
    with pytest.raises(AttributeError, match="Net has no attribute `third`"):
        net.get_submodule("third.x")


def test_a_shared_parameter_is_listed_once_unless_asked():
    net = Net()
    net.again = net.first
    assert len(list(net.parameters())) == 3
    assert len(list(net.named_parameters(remove_duplicate=False))) == 5


def test_assignments_that_do_not_fit_are_refused():
    net = Net()
    with pytest.raises(TypeError, match="as parameter 'weight'"):
        net.first.weight = torch.ones(4, 3)
    with pytest.raises(TypeError, match="as child module 'first'"):
        net.first = 3
    with pytest.raises(TypeError, match="as buffer 'kept'"):
        net.kept = 3
    with pytest.raises(KeyError, match="attribute 'forward' already exists"):
        net.register_parameter("forward", nn.Parameter(torch.ones(1)))
    with pytest.raises(ValueError, match="non-leaf"):
        net.register_parameter("product", (torch.ones(1, requires_grad=True) * 2).as_subclass(nn.Parameter))
    bare = Net.__new__(Net)
    with pytest.raises(AttributeError, match="before Module.__init__"):
        bare.weight = nn.Parameter(torch.ones(1))
    with pytest.raises(AttributeError, match="before Module.__init__"):
        bare.child = nn.ReLU()


def test_forward_hooks_see_and_replace():
    net, x = Net(), torch.ones(1, 3)
    plain = net(x)
    seen = []
    before = net.register_forward_pre_hook(lambda module, inputs: (inputs[0] * 2,))
    after = net.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].sum().item()) or output + 1)
    assert torch.allclose(net(x), net.second(net.first(x * 2)) + 1) and seen == [6.0]
    before.remove()
    after.remove()
    assert torch.equal(net(x), plain) and torch.equal(net(x, scale=2.0), plain * 2)


def test_global_hooks_apply_to_every_module_until_removed():
    seen = []
    handle = nn.modules.module.register_module_forward_hook(lambda module, inputs, output: seen.append(type(module).__name__))
    Net()(torch.ones(1, 3))
    handle.remove()
    Net()(torch.ones(1, 3))
    assert seen == ["Linear", "Linear", "Net"]


def test_full_backward_hooks_get_and_replace_gradients():
    net, x = Net(), torch.ones(1, 3, requires_grad=True)
    net(x).sum().backward()
    expected, x.grad = x.grad.clone(), None
    seen = []
    net.register_full_backward_hook(lambda module, inputs, outputs: seen.append((inputs[0].clone(), outputs[0])) or (inputs[0] * 3,))
    net(x).sum().backward()
    assert torch.allclose(seen[0][0], expected) and seen[0][1].tolist() == [[1.0, 1.0]]
    assert torch.allclose(x.grad, expected * 3)
    with pytest.raises(RuntimeError, match="both regular backward hooks and full"):
        net.register_backward_hook(lambda *args: None)


def test_full_backward_hook_without_gradients_of_inputs():
    net, seen = nn.Linear(3, 2), []
    net.register_full_backward_hook(lambda module, inputs, outputs: seen.append((inputs, outputs[0].shape)))
    net(torch.ones(1, 3)).sum().backward()
    assert seen == [((None,), (1, 2))]


def test_state_dict_round_trip_and_messages():
    net, other = Net(), Net()
    state = net.state_dict()
    assert list(state) == ["kept", "first.weight", "first.bias", "second.weight"]
    assert state._metadata["first"] == {"version": 1}
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    assert torch.equal(other.first.weight, net.first.weight) and state["first.weight"].data_ptr() == net.first.weight.data_ptr()
    broken = OrderedDict(state)
    del broken["first.bias"]
    broken["new"] = torch.ones(1)
    broken["second.weight"] = torch.ones(3, 4)
    with pytest.raises(RuntimeError) as error:
        other.load_state_dict(broken)
    assert str(error.value) == (
        'Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "first.bias". \n\t'
        'Unexpected key(s) in state_dict: "new". \n\tsize mismatch for second.weight: copying a param with shape torch.Size([3, 4]) '
        "from checkpoint, the shape in current model is torch.Size([2, 4]).")
    del broken["second.weight"]
    result = other.load_state_dict(broken, strict=False)
    assert result.missing_keys == ["first.bias", "second.weight"] and result.unexpected_keys == ["new"]


def test_extra_state_is_saved_and_loaded():
    class Counting(nn.Linear):
        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state):
            self.count = state["count"]

    first, second = Counting(2, 2), Counting(2, 2)
    first.count, second.count = 7, 0
    second.load_state_dict(first.state_dict())
    assert second.count == 7


def test_conversion_keeps_the_objects_that_optimizers_hold():
    net = Net()
    weight = net.first.weight
    net(torch.ones(1, 3)).sum().backward()
    net.double()
    assert net.first.weight is weight and weight.dtype == torch.float64 and weight.grad.dtype == torch.float64 and net.kept.dtype == torch.float64
    assert net.to(torch.float16).first.weight.dtype == torch.float16
    assert net.float().to("cpu", torch.bfloat16).kept.dtype == torch.bfloat16
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        net.to(torch.int64)


def test_train_eval_apply_zero_grad_and_requires_grad():
    net = Net()
    assert net.eval().first.training is False and net.train().first.training is True
    names = []
    net.apply(lambda module: names.append(type(module).__name__))
    assert names == ["Linear", "Linear", "Net"]
    net(torch.ones(1, 3)).sum().backward()
    net.zero_grad()
    assert net.first.bias.grad.tolist() == [0.0] * 4
    net.zero_grad(set_to_none=True)
    assert net.first.bias.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_copies_and_pickles_are_independent():
    net, x = Net(), torch.ones(1, 3)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(other(x), net(x)) and isinstance(other.first.weight, nn.Parameter)
        with torch.no_grad():
            other.first.weight.zero_()
        assert net.first.weight.abs().sum() > 0


def test_text_of_nested_modules():
    net = nn.Sequential(OrderedDict([("a", nn.Conv2d(3, 16, 5, padding=2, bias=False)), ("b", nn.Sequential(nn.ReLU(inplace=True)))]))
    assert repr(net) == ("Sequential(\n  (a): Conv2d(3, 16, kernel_size=(5, 5), stride=(1, 1), padding=(2, 2), bias=False)\n"
                         "  (b): Sequential(\n    (0): ReLU(inplace=True)\n  )\n)")


def test_own_gradient_by_bprop():
    class Triple(nn.Module):
        def forward(self, x, y):
            return x * y, x + y

        def bprop(self, x, y, out, grad_output):
            assert torch.equal(out[0], x * y) and len(grad_output) == 2
            return 3 * grad_output[0] * y, grad_output[0] * x

    class Subclass(Triple):
        def forward(self, x, y):
            return super().forward(x, y)

    for module in (Triple(), Subclass()):
        x, y = torch.tensor([2.0], requires_grad=True), torch.tensor([5.0], requires_grad=True)
        module(x, y=y)[0].sum().backward()
        assert x.grad.tolist() == [15.0] and y.grad.tolist() == [2.0]


def test_missing_forward_is_named():
    class Empty(nn.Module):
        pass

    with pytest.raises(NotImplementedError, match='Module \\[Empty\\] is missing the required "forward" function'):
        Empty()(1)


def test_lazy_modules_take_their_shapes_from_the_first_input():
    with pytest.warns(UserWarning, match="Lazy modules"):
        net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert net[0].has_uninitialized_params() and repr(net[3].weight) == "<UninitializedParameter>"
    with pytest.raises(RuntimeError, match="shape of an uninitialized parameter"):
        net[3].weight.shape
    assert net(torch.ones(2, 3, 5, 5)).shape == (2, 2)
    assert [type(m) for m in net] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear] and type(net[3].weight) is nn.Parameter
    assert type(net[1].running_mean) is torch.Tensor
