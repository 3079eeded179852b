"""torchvision.models.optical_flow against the real torchvision."""

import os

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.torchvision.models import optical_flow

reference = pytest.importorskip("torch")
theirs = pytest.importorskip("torchvision.models.optical_flow")
THEIR_UTILS = pytest.importorskip("torchvision.models.optical_flow._utils")


def close(ours, wanted, tolerance=1e-5):
    assert tuple(ours.shape) == tuple(wanted.shape)
    assert abs(ours.detach().numpy() - wanted.detach().numpy()).max() <= tolerance * max(1.0, float(wanted.abs().max()))


def mine(tensor):
    return torch.from_numpy(tensor.numpy().copy())


def pair(name, **options):
    """A model of each library, from the same seed; so are the pictures drawn then."""
    torch.manual_seed(3), reference.manual_seed(3)
    return getattr(optical_flow, name)(**options), getattr(theirs, name)(**options)


@pytest.mark.parametrize("name", ["raft_large", "raft_small"])
def test_parameters_flows_and_gradients(name):
    ours, other = pair(name)
    state, wanted = ours.state_dict(), other.state_dict()
    assert list(state) == list(wanted) and [n for n, _ in ours.named_modules()] == [n for n, _ in other.named_modules()]
    assert all((state[key].numpy() == value.numpy()).all() for key, value in wanted.items())
    a, b = (reference.rand(1, 3, 128, 136) * 2 - 1 for _ in range(2))
    flows, their_flows = ours(mine(a), mine(b), num_flow_updates=3), other(a, b, num_flow_updates=3)
    assert len(flows) == 3
    for flow, their_flow in zip(flows, their_flows):
        close(flow, their_flow)
    sum(flow.abs().mean() for flow in flows).backward()
    sum(flow.abs().mean() for flow in their_flows).backward()
    for (key, parameter), their_parameter in zip(ours.named_parameters(), other.parameters()):  # activations that rounding turns on and off move some
        wanted = mine(their_parameter.grad)
        assert float((wanted - parameter.grad).norm()) < max(0.1 * float(wanted.norm()), 1e-4), key


@pytest.mark.parametrize("name", ["raft_large", "raft_small"])
def test_gradients_of_the_parts(name):
    """In float64, which lookups of correlations don't take."""
    ours, other = (model.double() for model in pair(name))
    x, c, f = (reference.rand(2, n, size, size, dtype=reference.float64) for n, size in ((3, 32), (other.corr_block.out_channels, 8), (2, 8)))
    hidden = other.update_block.hidden_state_size
    h = reference.rand(2, hidden, 8, 8, dtype=reference.float64)
    for model, convert in ((ours, mine), (other, lambda t: t)):
        context = convert(x[:, :1, :8, :8]).expand(2, model.context_encoder.output_dim - hidden, 8, 8)
        state, step = model.update_block(convert(h), context, convert(c), convert(f))
        parts = [model.feature_encoder(convert(x)), model.context_encoder(convert(x)), state, step]
        if model.mask_predictor is not None:
            parts.append(model.mask_predictor(state))
        sum((part ** 3).sum() for part in parts).backward()
    for (key, parameter), their_parameter in zip(ours.named_parameters(), other.parameters()):
        close(parameter.grad, their_parameter.grad, 1e-8)


def test_evaluation():
    ours, other = pair("raft_small")
    ours.eval(), other.eval()
    a, b = (reference.rand(2, 3, 128, 128) * 2 - 1 for _ in range(2))
    with torch.no_grad(), reference.no_grad():
        close(ours(mine(a), mine(b), 2)[-1], other(a, b, 2)[-1], 1e-4)


def test_flows_and_places():
    utils = optical_flow._utils
    flow, mask, image = reference.randn(2, 2, 3, 4), reference.randn(2, 9 * 64, 3, 4), reference.rand(2, 3, 5, 6)
    close(utils.upsample_flow(mine(flow)), THEIR_UTILS.upsample_flow(flow))
    close(utils.upsample_flow(mine(flow), mine(mask)), THEIR_UTILS.upsample_flow(flow, mask))
    close(utils.upsample_flow(mine(flow), factor=2), THEIR_UTILS.upsample_flow(flow, factor=2))
    close(utils.make_coords_grid(2, 3, 4), THEIR_UTILS.make_coords_grid(2, 3, 4))
    grid = reference.rand(2, 4, 4, 2) * 5
    close(utils.grid_sample(mine(image), mine(grid), align_corners=True), THEIR_UTILS.grid_sample(image, grid, align_corners=True))
    close(utils.grid_sample(mine(image[:, :, :1]), mine(grid), align_corners=True), THEIR_UTILS.grid_sample(image[:, :, :1], grid, align_corners=True))


def test_blocks():
    raft, other = optical_flow.raft, theirs.raft
    x, places = reference.rand(1, 8, 16, 16), reference.rand(1, 2, 16, 16) * 16
    torch.manual_seed(1), reference.manual_seed(1)
    for options in ({"stride": 2}, {}, {"always_project": True}):
        a, b = (m.ResidualBlock(8, 8, norm_layer=n.BatchNorm2d, **options) for m, n in ((raft, nn), (other, reference.nn)))
        assert repr(a) == repr(b)
        close(a(mine(x)), b(x))
    a, b = (m.RecurrentBlock(input_size=4, hidden_size=4, kernel_size=(3,), padding=(1,)) for m in (raft, other))
    close(a(mine(x[:, :4]), mine(x[:, 4:])), b(x[:, :4], x[:, 4:]))
    a, b = (m.CorrBlock(num_levels=2, radius=1) for m in (raft, other))
    a.build_pyramid(mine(x), mine(x * 2)), b.build_pyramid(x, x * 2)
    close(a.index_pyramid(mine(places)), b.index_pyramid(places))


def test_errors():
    raft = optical_flow.raft
    for make in (lambda: raft.FeatureEncoder(layers=(1, 2)), lambda: raft.MotionEncoder(in_channels_corr=3, flow_layers=(1,)),
                 lambda: raft.MotionEncoder(in_channels_corr=3, corr_layers=(1, 2, 3)), lambda: raft.RecurrentBlock(input_size=1, hidden_size=1, padding=(1,)),
                 lambda: raft.RecurrentBlock(input_size=1, hidden_size=1, kernel_size=(1,) * 3, padding=(1,) * 3),
                 lambda: raft.RAFT(feature_encoder=None, context_encoder=None, corr_block=None, update_block=None),
                 lambda: raft.CorrBlock().build_pyramid(torch.rand(1, 2, 3, 3), torch.rand(1, 2, 3, 4)),
                 lambda: optical_flow.raft_small(context_encoder=raft.FeatureEncoder(layers=(8, 8, 8, 8, 96)))(*[torch.rand(1, 3, 128, 128)] * 2),
                 lambda: optical_flow.raft_small(feature_encoder=nn.Identity())(*[torch.rand(1, 3, 128, 128)] * 2),
                 lambda: optical_flow.raft_small(context_encoder=nn.Identity())(*[torch.rand(1, 3, 128, 128)] * 2)):
        with pytest.raises(ValueError):
            make()
    model = optical_flow.raft_small()
    for sizes, text in (((128, 136), "same shape"), ((130, 130), "divisible by 8")):
        with pytest.raises(ValueError, match=text):
            model(torch.rand(1, 3, sizes[0], 128), torch.rand(1, 3, sizes[1], 128))
    with pytest.raises(TypeError):
        optical_flow.raft_small(colour=3)


def test_weights(tmp_path, monkeypatch):
    for name in ("Raft_Large_Weights", "Raft_Small_Weights"):
        ours, wanted = getattr(optical_flow, name), getattr(theirs, name)
        assert list(ours.__members__) == list(wanted.__members__)
        for entry in wanted.__members__:
            assert ours[entry].url == wanted[entry].url and repr(ours[entry].transforms()) == repr(wanted[entry].transforms())
            assert all(ours[entry].meta[key] == wanted[entry].meta[key] for key in ("num_params", "min_size", "_metrics"))
    pictures = [reference.randint(0, 256, (1, 3, 8, 8), dtype=reference.uint8) for _ in range(2)]
    for found, wanted in zip(ours.DEFAULT.transforms()(*map(mine, pictures)), wanted.DEFAULT.transforms()(*pictures)):
        close(found, wanted)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    os.makedirs(tmp_path / "hub" / "checkpoints")
    made = optical_flow.raft_small()
    torch.save(made.state_dict(), tmp_path / "hub" / "checkpoints" / os.path.basename(ours.DEFAULT.url))
    with pytest.warns(UserWarning, match="'pretrained' is deprecated"):
        loaded = optical_flow.raft_small(pretrained=True)
    assert all(torch.equal(a, b) for a, b in zip(made.parameters(), loaded.parameters()))
