"""torchvision.datasets."""

from msadapter.torchvision.datasets.arrays import FER2013, PCAM, SEMEION, STL10, SVHN, USPS, PhotoTour
from msadapter.torchvision.datasets.cifar import CIFAR10, CIFAR100
from msadapter.torchvision.datasets.fakedata import FakeData
from msadapter.torchvision.datasets.films import HMDB51, UCF101, Kinetics
from msadapter.torchvision.datasets.flow import HD1K, FlyingChairs, FlyingThings3D, KittiFlow, Sintel
from msadapter.torchvision.datasets.folder import DatasetFolder, ImageFolder
from msadapter.torchvision.datasets.folders import (GTSRB, SUN397, Caltech101, Caltech256, Country211, EuroSAT, ImageNet, INaturalist, LFWPairs, LFWPeople,
                                                    Omniglot, RenderedSST2)
from msadapter.torchvision.datasets.lists import (DTD, SBU, CelebA, CLEVRClassification, FGVCAircraft, Flickr8k, Flickr30k, Flowers102, Food101, Places365,
                                                  StanfordCars, WIDERFace)
from msadapter.torchvision.datasets.mnist import EMNIST, KMNIST, MNIST, QMNIST, FashionMNIST
from msadapter.torchvision.datasets.scenes import (LSUN, Cityscapes, CocoCaptions, CocoDetection, Kitti, LSUNClass, OxfordIIITPet, SBDataset, VOCDetection,
                                                   VOCSegmentation)
from msadapter.torchvision.datasets.vision import VisionDataset

__all__ = ["CIFAR10", "CIFAR100", "CLEVRClassification", "Caltech101", "Caltech256", "CelebA", "Cityscapes", "CocoCaptions", "CocoDetection", "Country211",
           "DTD", "DatasetFolder", "EMNIST", "EuroSAT", "FER2013", "FGVCAircraft", "FakeData", "FashionMNIST", "Flickr30k", "Flickr8k", "Flowers102",
           "FlyingChairs", "FlyingThings3D", "Food101", "GTSRB", "HD1K", "HMDB51", "INaturalist", "ImageFolder", "ImageNet", "KMNIST", "Kinetics", "Kitti",
           "KittiFlow", "LFWPairs", "LFWPeople", "LSUN", "LSUNClass", "MNIST", "Omniglot", "OxfordIIITPet", "PCAM", "PhotoTour", "Places365", "QMNIST",
           "RenderedSST2", "SBDataset", "SBU", "SEMEION", "STL10", "SUN397", "SVHN", "Sintel", "StanfordCars", "UCF101", "USPS", "VOCDetection",
           "VOCSegmentation", "VisionDataset", "WIDERFace"]
