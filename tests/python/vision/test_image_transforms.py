"""Transforms against the real torchvision, on pictures and on tensors, for the same seeds."""

import warnings

import pytest

import msadapter.pytorch as torch
from msadapter.torchvision import transforms
from msadapter.torchvision.transforms import functional

reference = pytest.importorskip("torch")
their_transforms = pytest.importorskip("torchvision.transforms")
their_functional = their_transforms.functional
Image = pytest.importorskip("PIL.Image")


def picture(mode="RGB"):
    import numpy

    rng = numpy.random.default_rng(0)
    array = rng.integers(0, 256, (37, 46, 3), dtype=numpy.uint8)
    array[5:25, 10:30] = rng.integers(90, 110, 3, dtype=numpy.uint8)
    return Image.fromarray(array).convert(mode)


def tensors(dtype="uint8", shape=(3, 21, 26)):
    reference.manual_seed(1)
    values = reference.randint(0, 256, shape, dtype=reference.uint8)
    values = values if dtype == "uint8" else values.to(reference.float32) / 255
    return torch.from_numpy(values.numpy()), values


def close(mine, other, steps=1, some=0.0):
    """Equal but for `steps` of 255, and for a part `some` of the values (places that lie between two pixels)."""
    if isinstance(other, tuple):
        assert len(mine) == len(other)
        for a, b in zip(mine, other):
            close(a, b, steps, some)
        return
    if isinstance(other, Image.Image):
        import numpy

        assert mine.mode == other.mode and mine.size == other.size
        mine, other = torch.from_numpy(numpy.array(mine)), reference.from_numpy(numpy.array(other))
    if not isinstance(other, reference.Tensor):
        assert mine == other
        return
    assert tuple(mine.shape) == tuple(other.shape) and str(mine.dtype) == str(other.dtype)
    difference = (mine.double() - torch.from_numpy(other.numpy()).double()).abs()
    limit = steps if not mine.is_floating_point() else 2e-5
    assert float((difference > limit).double().mean()) <= some, float(difference.max())


COLOURS = {
    "adjust_brightness": [(0.4,), (1.7,)], "adjust_contrast": [(0.4,), (1.7,)], "adjust_saturation": [(0.4,), (1.7,)], "adjust_gamma": [(0.7,), (2.2, 1.1)],
    "adjust_hue": [(-0.3,), (0.25,)], "adjust_sharpness": [(0.3,), (1.8,)], "autocontrast": [()], "equalize": [()], "invert": [()], "posterize": [(3,), (8,)],
    "solarize": [(100,)], "gaussian_blur": [(3,), ([5, 3], [0.8, 1.5])], "rgb_to_grayscale": [(3,)],
}
PLACES = {
    "affine": [(20.0, [3, -2], 1.2, [10.0, 5.0]), (-35.0, [0, 0], 0.8, 7.0)], "rotate": [(30.0,), (-75.5,)], "resized_crop": [(2, 3, 15, 12, [20, 18])],
    "five_crop": [([8, 9],)], "ten_crop": [([8, 9],)],
    "perspective": [([[0, 0], [25, 0], [25, 20], [0, 20]], [[2, 3], [22, 1], [24, 18], [1, 16]])],
}


@pytest.mark.parametrize("name, arguments", [(name, a) for name, all_of in COLOURS.items() for a in all_of])
def test_colours(name, arguments):
    mine, other = getattr(functional, name), getattr(their_functional, name)
    close(mine(picture(), *arguments), other(picture(), *arguments), some=0.001)
    for dtype in ("uint8", "float32"):
        ours, theirs = tensors(dtype)
        if dtype == "float32" and name in ("equalize", "posterize"):
            with pytest.raises(TypeError):
                mine(ours, *arguments)
            continue
        given = (0.4,) if dtype == "float32" and name == "solarize" else arguments
        close(mine(ours, *given), other(theirs, *given))


@pytest.mark.parametrize("name, arguments", [(name, a) for name, all_of in PLACES.items() for a in all_of])
def test_places(name, arguments):
    mine, other = getattr(functional, name), getattr(their_functional, name)
    close(mine(picture(), *arguments), other(picture(), *arguments), some=0.002)
    for dtype in ("uint8", "float32"):
        ours, theirs = tensors(dtype)
        close(mine(ours, *arguments), other(theirs, *arguments), some=0.01)


@pytest.mark.parametrize("kwargs", [{"expand": True}, {"center": [4, 5]}, {"fill": [100.0, 20.0, 3.0]}, {"fill": 7},
                                    {"expand": True, "fill": 9, "interpolation": "bilinear"}])
def test_ways_of_rotating(kwargs):
    def given(library):
        return {k: getattr(library.InterpolationMode, v.upper()) if k == "interpolation" else v for k, v in kwargs.items()}

    ours, theirs = tensors("float32")
    close(functional.rotate(ours, 33.0, **given(transforms)), their_functional.rotate(theirs, 33.0, **given(their_transforms)), some=0.01)
    if not isinstance(kwargs.get("fill"), list):
        close(functional.rotate(picture("L"), 33.0, **given(transforms)), their_functional.rotate(picture("L"), 33.0, **given(their_transforms)), some=0.01)


RANDOM = {
    "ColorJitter": [(0.4, 0.3, 0.2, 0.1), (0.4,), ((0.5, 1.5), 0, 0, (-0.1, 0.3))], "RandomInvert": [()], "RandomAutocontrast": [()], "RandomEqualize": [()],
    "RandomPosterize": [(3,)], "RandomSolarize": [(120.0,)], "RandomAdjustSharpness": [(2,)], "GaussianBlur": [(5,), ((3, 5), 1.2)],
    "RandomRotation": [(30,), ((10, 80),)], "RandomAffine": [(15, (0.1, 0.2), (0.8, 1.2), 10), ((0, 30), None, None, (1, 5, 2, 8))],
    "RandomPerspective": [()], "RandomResizedCrop": [(12,), ((10, 14), (0.3, 0.6))], "RandomCrop": [(10,)], "FiveCrop": [(8,)], "TenCrop": [(8, True)],
    "AutoAugment": [()], "RandAugment": [(), (3, 20)], "TrivialAugmentWide": [()], "AugMix": [(), (5, 2, 2)], "RandomHorizontalFlip": [()],
    "RandomGrayscale": [(0.5,)],
}


@pytest.mark.parametrize("name, arguments", [(name, a) for name, all_of in RANDOM.items() for a in all_of])
def test_random_ones_draw_as_torchvision(name, arguments):
    mine, other = getattr(transforms, name)(*arguments), getattr(their_transforms, name)(*arguments)
    assert repr(mine) == repr(other).replace("), antialias=None)", ")")  # newer than torchvision 0.13
    assert isinstance(mine, torch.nn.Module) and isinstance(other, reference.nn.Module)
    steps = 3 if "Aug" in name or name == "ColorJitter" else 1
    for seed in range(8):
        ours, theirs = tensors()
        for a, b in ((picture(), picture()), (ours, theirs)):
            torch.manual_seed(seed), reference.manual_seed(seed)
            got, wanted = mine(a), other(b)
            close(got, wanted, steps, some=0.03)


@pytest.mark.parametrize("policy", ["CIFAR10", "SVHN"])
def test_policies(policy):
    mine = transforms.AutoAugment(getattr(transforms.AutoAugmentPolicy, policy))
    other = their_transforms.AutoAugment(getattr(their_transforms.AutoAugmentPolicy, policy))
    assert [tuple(map(tuple, pair)) for pair in mine.policies] == [tuple(pair) for pair in other.policies]


def test_erasing_and_whitening():
    ours, theirs = tensors("float32")
    for arguments in ({}, {"p": 1, "value": "random"}, {"p": 1, "value": (0.1, 0.2, 0.3)}):
        mine, other = transforms.RandomErasing(**arguments), their_transforms.RandomErasing(**arguments)
        for seed in range(5):
            torch.manual_seed(seed), reference.manual_seed(seed)
            close(mine(ours), other(theirs))
    matrix, mean = reference.randn(12, 12), reference.randn(12)
    x = reference.randn(3, 2, 2)
    mine = transforms.LinearTransformation(torch.from_numpy(matrix.numpy()), torch.from_numpy(mean.numpy()))
    close(mine(torch.from_numpy(x.numpy())), their_transforms.LinearTransformation(matrix, mean)(x))
    erased = torch.ones(1, 4, 4)
    assert functional.erase(erased, 1, 1, 2, 2, torch.zeros(1)).sum() == 12 and erased.sum() == 16
    functional.erase(erased, 1, 1, 2, 2, torch.zeros(1), inplace=True)
    assert erased.sum() == 12


def test_in_a_sequence():
    chain = torch.nn.Sequential(transforms.CenterCrop(10), transforms.ConvertImageDtype(torch.float32), transforms.Normalize((0.5,) * 3, (0.5,) * 3))
    assert chain(tensors()[0]).shape == (3, 10, 10)


@pytest.mark.parametrize("make", [
    lambda t: t.ColorJitter(-1), lambda t: t.ColorJitter(hue=(-0.7, 0.7)), lambda t: t.ColorJitter("a"), lambda t: t.GaussianBlur(4), lambda t: t.GaussianBlur(3, 0),
    lambda t: t.RandomRotation(-1), lambda t: t.RandomRotation((1,)), lambda t: t.RandomAffine(1, translate=(2, 0)), lambda t: t.RandomAffine(1, scale=(0, 1)),
    lambda t: t.RandomErasing(p=2), lambda t: t.RandomErasing(value="x"), lambda t: t.RandomErasing(scale=3), lambda t: t.AugMix(severity=11),
    lambda t: t.functional.posterize(picture(), 9), lambda t: t.functional.adjust_hue(picture(), 0.6), lambda t: t.functional.adjust_gamma(picture(), -1),
    lambda t: t.functional.gaussian_blur(picture(), 4), lambda t: t.functional.gaussian_blur(picture(), 3, [-1.0, 1.0]),
    lambda t: t.functional.affine(picture(), 0, [1], 1.0, 0.0), lambda t: t.functional.affine(picture(), 0, [1, 1], -1.0, 0.0),
    lambda t: t.functional.affine(picture(), "a", [1, 1], 1.0, 0.0), lambda t: t.functional.rotate(picture(), 10, fill=(1, 2)),
    lambda t: t.functional.five_crop(picture(), 100), lambda t: t.functional.invert(3), lambda t: t.functional.rotate(picture(), 10, interpolation="x")])
def test_errors(make):
    def kind(library):
        with warnings.catch_warnings(), pytest.raises(Exception) as caught:
            warnings.simplefilter("ignore")
            make(library)
        return type(caught.value).__name__

    assert kind(transforms) == kind(their_transforms)
