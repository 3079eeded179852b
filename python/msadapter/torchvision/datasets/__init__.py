"""torchvision.datasets."""

from msadapter.torchvision.datasets.cifar import CIFAR10, CIFAR100
from msadapter.torchvision.datasets.fakedata import FakeData
from msadapter.torchvision.datasets.folder import DatasetFolder, ImageFolder
from msadapter.torchvision.datasets.mnist import MNIST, FashionMNIST
from msadapter.torchvision.datasets.vision import VisionDataset

__all__ = ["CIFAR10", "CIFAR100", "DatasetFolder", "FakeData", "FashionMNIST", "ImageFolder", "MNIST", "VisionDataset"]
