"""torchvision.models against the real torchvision: parameters, initial values, results, weights."""

import os
import warnings

import pytest

import msadapter.pytorch as torch
from msadapter.torchvision import models

reference = pytest.importorskip("torch")
their_models = pytest.importorskip("torchvision.models")

# model -> size of the picture that it is tried with; one of each kind of block
SMALL = {"alexnet": 64, "convnext_tiny": 32, "densenet121": 32, "efficientnet_b0": 32, "efficientnet_v2_s": 32, "googlenet": 32, "inception_v3": 96,
         "mnasnet0_5": 32, "mobilenet_v2": 32, "mobilenet_v3_small": 32, "regnet_x_400mf": 32, "regnet_y_400mf": 32, "resnet18": 32, "resnext50_32x4d": 32,
         "shufflenet_v2_x0_5": 32, "squeezenet1_0": 64, "squeezenet1_1": 64, "swin_t": 58}
DRAWN_BY_ERFINV = ("convnext", "googlenet", "inception", "swin", "vit")  # whose last bit differs


def pair(make, **kwargs):
    """A model of each library, from the same seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(3), reference.manual_seed(3)
        return make(models)(**kwargs), make(their_models)(**kwargs)


def same_parameters(mine, other, exact=True):
    ours, theirs = mine.state_dict(), other.state_dict()
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        assert tuple(ours[name].shape) == tuple(value.shape), name
        wanted = torch.from_numpy(value.numpy())
        assert torch.equal(ours[name], wanted) if exact else torch.allclose(ours[name], wanted, atol=1e-6), name


def same_results(mine, other, shape):
    mine.load_state_dict({name: torch.from_numpy(value.numpy()) for name, value in other.state_dict().items()})
    mine.eval(), other.eval()
    x = reference.rand(shape)
    with torch.no_grad(), reference.no_grad():
        ours, theirs = mine(torch.from_numpy(x.numpy())), other(x)
    for name in theirs if isinstance(theirs, dict) else [None]:
        got, wanted = (ours, theirs) if name is None else (ours[name], theirs[name])
        wanted = torch.from_numpy(wanted.numpy())
        assert got.shape == wanted.shape
        assert (got - wanted).abs().max() <= 2e-5 * max(float(wanted.abs().max()), 1e-3)


@pytest.mark.parametrize("name", SMALL)
def test_classifiers(name):
    mine, other = pair(lambda library: getattr(library, name))
    if name != "mnasnet0_5":  # wants the version, which a dict of tensors alone has not
        same_parameters(mine, other, exact=not name.startswith(DRAWN_BY_ERFINV))
        same_results(mine, other, (2, 3, SMALL[name], SMALL[name]))


@pytest.mark.parametrize("name", ["fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large"])
def test_segmentation(name):
    kwargs = {} if name.startswith("lraspp") else {"aux_loss": True}
    mine, other = pair(lambda library: getattr(library.segmentation, name), weights_backbone=None, num_classes=5, **kwargs)
    same_parameters(mine, other)
    same_results(mine, other, (1, 3, 48, 48))


@pytest.mark.parametrize("name", ["r3d_18", "mc3_18", "r2plus1d_18"])
def test_video(name):
    mine, other = pair(lambda library: getattr(library.video, name), num_classes=7)
    same_parameters(mine, other)
    same_results(mine, other, (1, 3, 4, 32, 32))


def test_a_transformer_with_a_stem_of_convolutions():
    def make(library):
        module = library.vision_transformer
        return lambda: module.VisionTransformer(32, 16, 2, 4, 32, 64, num_classes=10, representation_size=24,
                                                conv_stem_configs=[module.ConvStemConfig(8, 3, 2), module.ConvStemConfig(16, 3, 2),
                                                                   module.ConvStemConfig(16, 3, 2), module.ConvStemConfig(16, 3, 2)])

    mine, other = pair(make)
    same_parameters(mine, other, exact=False)
    reference.nn.init.normal_(other.heads.head.weight)
    same_results(mine, other, (2, 3, 32, 32))
    with pytest.raises(AssertionError, match="Wrong image height"):
        mine(torch.rand(1, 3, 48, 32))


def test_training_outputs():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = models.googlenet(num_classes=5)
    out = model(torch.rand(2, 3, 64, 64))
    assert isinstance(out, models.GoogLeNetOutputs) and out.aux_logits2.shape == (2, 5)
    (out.logits.sum() + out.aux_logits1.sum() + out.aux_logits2.sum()).backward()
    assert all(p.grad is not None for p in model.parameters())


def test_memory_efficient_densenet_has_the_same_gradients():
    torch.manual_seed(0)
    plain = models.DenseNet(8, (2, 2), 8, num_classes=3)
    torch.manual_seed(0)
    saving = models.DenseNet(8, (2, 2), 8, num_classes=3, memory_efficient=True)
    x = torch.rand(2, 3, 32, 32)
    for model in (plain, saving):
        model(x.clone().requires_grad_()).sum().backward()
    for a, b in zip(plain.parameters(), saving.parameters()):
        assert torch.allclose(a.grad, b.grad, atol=1e-6)


def test_weights():
    weights = models.ResNet50_Weights
    assert weights.DEFAULT is weights.IMAGENET1K_V2 and weights.verify("IMAGENET1K_V1") is weights.IMAGENET1K_V1
    assert repr(weights.DEFAULT) == "ResNet50_Weights.IMAGENET1K_V2"
    assert models.get_weight("ResNet50_Weights.IMAGENET1K_V1") is weights.IMAGENET1K_V1
    theirs = their_models.ResNet50_Weights.IMAGENET1K_V2
    assert weights.DEFAULT.url == theirs.url and weights.DEFAULT.meta["num_params"] == theirs.meta["num_params"]
    assert weights.DEFAULT.meta["_metrics"] == theirs.meta["_metrics"]
    for name in ("none", "ResNet50_Weights.none", "A.b"):
        with pytest.raises(ValueError):
            models.get_weight(name)
    with pytest.raises(TypeError, match="expected ResNet50_Weights"):
        weights.verify(models.ResNet18_Weights.DEFAULT)
    picture = torch.randint(0, 256, (3, 300, 400), dtype=torch.uint8)
    wanted = theirs.transforms()(reference.from_numpy(picture.numpy()))
    assert torch.allclose(weights.DEFAULT.transforms()(picture), torch.from_numpy(wanted.numpy()), atol=0.02)  # one of 255 steps
    assert repr(weights.DEFAULT.transforms()) == repr(theirs.transforms())


def test_loading_weights_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    os.makedirs(tmp_path / "hub" / "checkpoints")
    entry = models.ShuffleNet_V2_X0_5_Weights.DEFAULT
    made = models.shufflenet_v2_x0_5()
    torch.save(made.state_dict(), tmp_path / "hub" / "checkpoints" / os.path.basename(entry.url))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = [models.shufflenet_v2_x0_5(weights=entry), models.shufflenet_v2_x0_5(weights="DEFAULT"), models.shufflenet_v2_x0_5(pretrained=True)]
    assert any("'pretrained' is deprecated" in str(w.message) for w in caught)
    for model in loaded:
        assert all(torch.equal(a, b) for a, b in zip(made.parameters(), model.parameters()))
    with pytest.raises(ValueError, match="num_classes"):
        models.shufflenet_v2_x0_5(weights=entry, num_classes=10)
    assert models.shufflenet_v2_x0_5(False, num_classes=10).fc.out_features == 10


@pytest.mark.parametrize("make", [
    lambda m: m.SqueezeNet("2_0"), lambda m: m.MNASNet(-1.0), lambda m: m.ShuffleNetV2([1], [1]), lambda m: m.MobileNetV2(inverted_residual_setting=[]),
    lambda m: m.ResNet(m.resnet.BasicBlock, [1, 1, 1, 1], width_per_group=32), lambda m: m.ResNet(m.resnet.BasicBlock, [1], replace_stride_with_dilation=[1]),
    lambda m: m.ConvNeXt([]), lambda m: m.ConvNeXt([1]), lambda m: m.EfficientNet([], 0.1), lambda m: m.MobileNetV3([3], 8),
    lambda m: m.regnet.BlockParams.from_init_params(8, 9, 1.0, 2.0, 8), lambda m: m.segmentation.lraspp_mobilenet_v3_large(aux_loss=True)])
def test_errors(make):
    def kind(library):
        with warnings.catch_warnings(), pytest.raises(Exception) as caught:
            warnings.simplefilter("ignore")
            make(library)
        return type(caught.value).__name__

    assert kind(models) == kind(their_models)
