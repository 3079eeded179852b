"""The modules themselves: initial values, containers, recurrent networks, attention, packing, reparametrisation, clipping."""

import math

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch import nn


def close(tensor, values, tolerance=1e-5):
    return torch.allclose(tensor.detach().flatten()[:len(values)].double(), torch.tensor(values, dtype=torch.float64), atol=tolerance)


def test_initial_values_are_those_of_pytorch():
    torch.manual_seed(0)
    assert close(nn.Linear(3, 2).weight, [-0.00432253, 0.30971527, -0.47518534])
    assert nn.init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / 1.04)
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_uniform_(torch.ones(3))


def test_containers_behave_like_lists_and_dictionaries():
    net = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.Sigmoid())
    assert type(net[-1]) is nn.Sigmoid and len(net[:2]) == 2
    net.insert(1, nn.ELU())
    del net[0]
    assert [type(m).__name__ for m in net] == ["ELU", "Tanh", "Sigmoid"] and list(net._modules) == ["0", "1", "2"]
    with pytest.raises(IndexError):
        net[3]
    modules = nn.ModuleList([nn.ReLU()]) + [nn.Tanh()]
    assert len(modules) == 2 and type(modules.pop(0)) is nn.ReLU and len(modules) == 1
    named = nn.ModuleDict({"a": nn.ReLU()})
    named["b"] = nn.Tanh()
    assert list(named) == ["a", "b"] and "a" in named
    listed = nn.ParameterList([torch.ones(2)])
    listed.append(torch.ones(3))
    assert [tuple(p.shape) for p in listed.parameters()] == [(2,), (3,)]
    keyed = nn.ParameterDict({"w": torch.ones(1)})
    keyed["v"] = nn.Parameter(torch.zeros(1))
    assert list(keyed.keys()) == ["w", "v"] and isinstance(keyed["w"], nn.Parameter)
    assert [name for name, _ in keyed.named_parameters()] == ["w", "v"]


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_recurrent_networks_agree_with_their_cells_and_train(kind):
    torch.manual_seed(1)
    net, x = kind(3, 4), torch.randn(5, 2, 3)
    cell = {nn.RNN: nn.RNNCell, nn.GRU: nn.GRUCell, nn.LSTM: nn.LSTMCell}[kind](3, 4)
    cell.load_state_dict({key[:-3]: value for key, value in net.state_dict().items()})
    outputs, _ = net(x)
    state = None
    for t in range(5):
        state = cell(x[t], state)
        assert torch.allclose(outputs[t], state[0] if kind is nn.LSTM else state, atol=1e-6)
    outputs.sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in net.parameters())


def test_packed_sequences_give_what_each_sequence_alone_gives():
    torch.manual_seed(2)
    net = nn.LSTM(2, 3, num_layers=2, bidirectional=True)
    sequences = [torch.randn(n, 2) for n in (3, 5, 1)]
    packed = nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 2, 1, 1]
    outputs, (hidden, _) = net(packed)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
    assert lengths.tolist() == [3, 5, 1]
    for i, sequence in enumerate(sequences):
        alone, (last, _) = net(sequence)
        assert torch.allclose(padded[i, :len(sequence)], alone, atol=1e-6) and torch.allclose(hidden[:, i], last, atol=1e-6)


def test_packing_checks_lengths():
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1), [1, 3])
    with pytest.raises(RuntimeError, match="greater than 0"):
        nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1), [3, 0])


def test_recurrent_shapes_are_checked():
    net = nn.LSTM(3, 4)
    with pytest.raises(RuntimeError, match="input.size\\(-1\\) must be equal to input_size. Expected 3, got 2"):
        net(torch.ones(5, 2, 2))
    with pytest.raises(RuntimeError, match="Expected hidden\\[0\\] size \\(1, 2, 4\\), got \\[1, 1, 4\\]"):
        net(torch.ones(5, 2, 3), (torch.ones(1, 1, 4), torch.ones(1, 1, 4)))
    with pytest.raises(ValueError, match="proj_size"):
        nn.GRU(3, 4, proj_size=2)


def test_weight_norm_and_its_removal():
    torch.manual_seed(3)
    net, x = nn.Linear(3, 2), torch.randn(1, 3)
    expected = net(x)
    nn.utils.weight_norm(net)
    assert sorted(net.state_dict()) == ["bias", "weight_g", "weight_v"] and torch.allclose(net(x), expected, atol=1e-6)
    with torch.no_grad():
        net.weight_g.mul_(2)
    assert torch.allclose(net(x) - net.bias, (expected - net.bias) * 2, atol=1e-5)
    nn.utils.remove_weight_norm(net)
    assert sorted(net.state_dict()) == ["bias", "weight"]


def test_spectral_norm_brings_the_largest_singular_value_to_one():
    torch.manual_seed(4)
    net = nn.utils.spectral_norm(nn.Linear(4, 4), n_power_iterations=50)
    net(torch.ones(1, 4))
    u, v = net.weight_u, net.weight_v
    assert abs(torch.dot(u, torch.mv(net.weight, v)).item() - 1) < 1e-4
    assert {"weight_orig", "weight_u", "weight_v"} <= set(net.state_dict())


def test_parametrizations_compute_assign_and_leave():
    from msadapter.pytorch.nn.utils import parametrize

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).t()

        def right_inverse(self, value):
            return value.triu()

    net = nn.Linear(3, 3)
    parametrize.register_parametrization(net, "weight", Symmetric())
    assert torch.equal(net.weight, net.weight.t()) and parametrize.is_parametrized(net, "weight")
    assert "parametrizations.weight.original" in net.state_dict() and type(net).__name__ == "ParametrizedLinear"
    with parametrize.cached():
        assert net.weight is net.weight
    net.weight = torch.eye(3)
    assert torch.equal(net.weight, torch.eye(3))
    parametrize.remove_parametrizations(net, "weight")
    assert type(net) is nn.Linear and torch.equal(net.weight, torch.eye(3))


def test_pruning_masks_the_smallest():
    from msadapter.pytorch.nn.utils import prune

    net = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[1.0, -4.0], [3.0, 0.5]]))
    prune.l1_unstructured(net, "weight", amount=2)
    assert net.weight.tolist() == [[0.0, -4.0], [3.0, 0.0]] and prune.is_pruned(net)
    assert sorted(net.state_dict()) == ["weight_mask", "weight_orig"]
    prune.remove(net, "weight")
    assert not prune.is_pruned(net) and isinstance(net.weight, nn.Parameter)


def test_functional_call_uses_and_differentiates_what_it_is_given():
    from msadapter.pytorch.nn.utils.stateless import functional_call

    net, weight = nn.Linear(2, 1, bias=False), torch.ones(1, 2, requires_grad=True)
    before = net.weight
    functional_call(net, {"weight": weight}, torch.ones(1, 2)).sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0]] and net.weight is before and before.grad is None


def test_gradients_are_clipped_by_norm_and_by_value():
    parameters = [nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))]
    for parameter, value in zip(parameters, (3.0, 4.0)):
        parameter.grad = torch.full((1,), value)
    assert abs(nn.utils.clip_grad_norm_(parameters, 1.0).item() - 5) < 1e-6
    assert abs(parameters[0].grad.item() - 0.6) < 1e-5
    nn.utils.clip_grad_value_(parameters, 0.7)
    assert abs(parameters[1].grad.item() - 0.7) < 1e-6
    parameters[0].grad.fill_(float("nan"))
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)


def test_parameters_to_vector_and_back():
    net = nn.Linear(2, 2)
    vector = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(vector * 0, net.parameters())
    assert vector.shape == (6,) and net.weight.abs().sum().item() == 0


def test_batch_normalisation_keeps_running_values_and_folds_into_convolutions():
    torch.manual_seed(5)
    conv, norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
    x = torch.randn(4, 2, 6, 6)
    norm(conv(x))
    assert norm.num_batches_tracked.item() == 1 and norm.running_mean.abs().sum() > 0
    conv.eval(), norm.eval()
    fused = nn.utils.fuse_conv_bn_eval(conv, norm)
    assert torch.allclose(fused(x), norm(conv(x)), atol=1e-5)
    with pytest.raises(ValueError, match="expected 4D input \\(got 3D input\\)"):
        norm(torch.ones(2, 3, 4))


def test_constructors_refuse_what_does_not_fit():
    for make, message in ((lambda: nn.Conv2d(3, 4, 3, groups=2), "in_channels must be divisible by groups"),
                          (lambda: nn.Conv2d(2, 4, 3, padding="big"), "Invalid padding string"),
                          (lambda: nn.Dropout(2), "dropout probability has to be between 0 and 1"),
                          (lambda: nn.GroupNorm(2, 3), "num_channels must be divisible by num_groups"),
                          (lambda: nn.ConvTranspose2d(2, 2, 3, padding_mode="reflect"), 'Only "zeros" padding mode'),
                          (lambda: nn.FractionalMaxPool2d(3), "requires specifying either an output size")):
        with pytest.raises(ValueError, match=message):
            make()


@pytest.mark.parametrize("name", ["adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
                                  "adaptive_avg_pool3d"])
def test_outrageous_output_sizes_are_refused(name):
    x = torch.randn(2, *[3] * (int(name[-2]) + 1))
    for size in (2**62, 2**63 - 1, 2**40, -1):
        with pytest.raises(RuntimeError):
            getattr(torch.nn.functional, name)(x, size)
