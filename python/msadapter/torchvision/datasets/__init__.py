"""torchvision.datasets. A data set's module is loaded when the data set is first asked for."""

import importlib as _importlib

_PARTS = {
    "arrays": "FER2013 PCAM SEMEION STL10 SVHN USPS PhotoTour",
    "cifar": "CIFAR10 CIFAR100",
    "fakedata": "FakeData",
    "films": "HMDB51 UCF101 Kinetics",
    "flow": "HD1K FlyingChairs FlyingThings3D KittiFlow Sintel",
    "folder": "DatasetFolder ImageFolder",
    "folders": "GTSRB SUN397 Caltech101 Caltech256 Country211 EuroSAT ImageNet INaturalist LFWPairs LFWPeople Omniglot RenderedSST2",
    "lists": "DTD SBU CelebA CLEVRClassification FGVCAircraft Flickr8k Flickr30k Flowers102 Food101 Places365 StanfordCars WIDERFace",
    "mnist": "EMNIST KMNIST MNIST QMNIST FashionMNIST",
    "scenes": "LSUN Cityscapes CocoCaptions CocoDetection Kitti LSUNClass OxfordIIITPet SBDataset VOCDetection VOCSegmentation",
    "vision": "VisionDataset",
}
_HOME = {name: part for part, names in _PARTS.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME and name not in (*_PARTS, "utils", "video_utils"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = _importlib.import_module(f"{__name__}.{_HOME.get(name, name)}")
    if name in _HOME:
        found = getattr(found, name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *__all__, *_PARTS})
