"""MNIST (LeCun et al., 1998) and its kin: 28x28 grey pictures in the idx format."""

import os
import shutil
import string
import warnings

from msadapter import pytorch as torch
from msadapter.torchvision.datasets._base import Collection
from msadapter.torchvision.datasets.sources import fetch, files
from msadapter.torchvision.datasets.utils import check_integrity, download_and_extract_archive, extract_archive, list_files, verify_str_arg


def _resources(key):
    return [(file.name, file.md5) for file in files(key)]


_IDX_TYPES = {8: "uint8", 9: "int8", 11: "int16", 12: "int32", 13: "float32", 14: "float64"}


def read_idx(path):
    """A file in the idx format as a tensor. Raises RuntimeError when header and size do not fit."""
    import numpy

    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _IDX_TYPES or not 1 <= data[3] <= 3 or len(data) < 4 + 4 * data[3]:
        raise RuntimeError(f"{path} is not an idx file")
    ndim, dtype = data[3], numpy.dtype(_IDX_TYPES[data[2]])
    sizes = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(ndim)]
    numel = 1
    for size in sizes:
        numel *= size
    if numel * dtype.itemsize != len(data) - 4 - 4 * ndim:
        raise RuntimeError(f"{path}: the header says {sizes} of {dtype}, the file holds {len(data) - 4 - 4 * ndim} bytes")
    values = numpy.frombuffer(data, dtype.newbyteorder(">"), offset=4 + 4 * ndim)
    return torch.from_numpy(values.astype(dtype).reshape(sizes))


def read_image_file(path):
    """Pictures (N, H, W) of bytes. Raises TypeError and ValueError for other files."""
    return _checked(read_idx(path), 3)


def read_label_file(path):
    """Labels (N,) as int64. Raises TypeError and ValueError for other files than bytes of one dimension."""
    return _checked(read_idx(path), 1).long()


def _checked(values, ndim):
    if values.dtype != torch.uint8:
        raise TypeError(f"x should be of dtype torch.uint8 instead of {values.dtype}")
    if values.dim() != ndim:
        raise ValueError(f"x should have {ndim} dimension instead of {values.dim()}")
    return values


class MNIST(Collection):
    """Handwritten digits in `root`/MNIST/raw, or as older versions left them in `root`/MNIST/processed. Raises RuntimeError when files are missing."""

    mirrors = ["http://yann.lecun.com/exdb/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"]
    resources = _resources("mnist")
    training_file, test_file = "training.pt", "test.pt"
    classes = ["0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six", "7 - seven", "8 - eight", "9 - nine"]

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if all(check_integrity(os.path.join(self.processed_folder, name)) for name in (self.training_file, self.test_file)):
            self.data, self.targets = torch.load(os.path.join(self.processed_folder, self.training_file if train else self.test_file))
            return
        self._prepare(download)
        self.data, self.targets = self._load_data()

    @property
    def raw_folder(self):
        """Where the unpacked files lie."""
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def processed_folder(self):
        """Where older versions of torchvision left tensors."""
        return os.path.join(self.root, type(self).__name__, "processed")

    @property
    def class_to_idx(self):
        """Class names and their numbers."""
        return {name: i for i, name in enumerate(self.classes)}

    def _renamed(name, now):  # noqa: N805
        def old(self):
            warnings.warn(f"{name} has been renamed {now}", stacklevel=2)
            return getattr(self, now)

        return property(old)

    train_labels, test_labels = _renamed("train_labels", "targets"), _renamed("test_labels", "targets")
    train_data, test_data = _renamed("train_data", "data"), _renamed("test_data", "data")
    del _renamed

    @property
    def images_file(self):
        """The unpacked file of the pictures."""
        return os.path.join(self.raw_folder, f"{'train' if self.train else 't10k'}-images-idx3-ubyte")

    @property
    def labels_file(self):
        """The unpacked file of the labels."""
        return os.path.join(self.raw_folder, f"{'train' if self.train else 't10k'}-labels-idx1-ubyte")

    def _load_data(self):
        return read_image_file(self.images_file), read_label_file(self.labels_file)

    def _check_exists(self):
        return all(check_integrity(os.path.join(self.raw_folder, name[:-3])) for name, _ in self.resources)

    def download(self):
        """Fetch and unpack what is missing, from the first mirror that answers."""
        if self._check_exists():
            return
        for name, md5 in self.resources:
            failure = None
            for mirror in self.mirrors:
                try:
                    download_and_extract_archive(mirror + name, self.raw_folder, filename=name, md5=md5)
                    break
                except RuntimeError as error:
                    failure = error
            else:
                raise failure

    def _target(self, index):
        return int(self.targets[index])

    def __getitem__(self, index):
        from PIL import Image

        return self._transformed(Image.fromarray(self.data[index].numpy(), mode="L"), self._target(index))

    def __len__(self):
        return len(self.data)

    def extra_repr(self):
        return f"Split: {'Train' if self.train else 'Test'}"


class FashionMNIST(MNIST):
    """Pictures of clothes (Xiao et al., 2017) in `root`/FashionMNIST/raw."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = _resources("fashionmnist")
    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


class KMNIST(MNIST):
    """Ten characters of cursive Japanese (Clanuwat et al., 2018) in `root`/KMNIST/raw."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = _resources("kmnist")
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


class EMNIST(MNIST):
    """Handwritten characters (Cohen et al., 2017) in `root`/EMNIST/raw, in one of six divisions."""

    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    _all_classes = set(string.digits + string.ascii_letters)
    _merged_classes = set("cijklmopsuvwxyz")  # look like their capitals
    classes_split_dict = {"byclass": sorted(_all_classes), "bymerge": sorted(_all_classes - _merged_classes),
                          "balanced": sorted(_all_classes - _merged_classes), "letters": ["N/A", *string.ascii_lowercase],
                          "digits": list(string.digits), "mnist": list(string.digits)}

    def __init__(self, root, split, **kwargs):
        self.split = verify_str_arg(split, "split", self.splits)
        self.training_file, self.test_file = f"training_{split}.pt", f"test_{split}.pt"
        super().__init__(root, **kwargs)
        self.classes = self.classes_split_dict[split]

    @property
    def images_file(self):
        return os.path.join(self.raw_folder, f"emnist-{self.split}-{'train' if self.train else 'test'}-images-idx3-ubyte")

    @property
    def labels_file(self):
        return os.path.join(self.raw_folder, f"emnist-{self.split}-{'train' if self.train else 'test'}-labels-idx1-ubyte")

    def _check_exists(self):
        return check_integrity(self.images_file) and check_integrity(self.labels_file)

    def download(self):
        """Fetch and unpack the archive, which holds all divisions."""
        if self._check_exists():
            return
        fetch(*files("emnist"), self.raw_folder)
        folder = os.path.join(self.raw_folder, "gzip")
        for path in list_files(folder, ".gz", True):
            extract_archive(path, self.raw_folder)
        shutil.rmtree(folder)


class QMNIST(MNIST):
    """MNIST's digits with their origins (Yadav and Bottou, 2019) in `root`/QMNIST/raw.

    `what` is "train", "test", "test10k", "test50k" or "nist"; targets are classes, or without `compat` rows of eight numbers.
    """

    subsets = {"train": "train", "test": "test", "test10k": "test", "test50k": "test", "nist": "nist"}
    resources = {part: [(file.url, file.md5) for file in files(f"qmnist/{part}")] for part in ("train", "test", "nist")}

    def __init__(self, root, what=None, compat=True, train=True, **kwargs):
        self.what = verify_str_arg(("train" if train else "test") if what is None else what, "what", tuple(self.subsets))
        self.compat = compat
        self.training_file = self.test_file = self.data_file = self.what + ".pt"
        super().__init__(root, train, **kwargs)

    def _unpacked(self, which):
        return os.path.join(self.raw_folder, os.path.splitext(os.path.basename(self.resources[self.subsets[self.what]][which][0]))[0])

    @property
    def images_file(self):
        return self._unpacked(0)

    @property
    def labels_file(self):
        return self._unpacked(1)

    def _check_exists(self):
        return check_integrity(self.images_file) and check_integrity(self.labels_file)

    def _load_data(self):
        data, targets = read_image_file(self.images_file), read_idx(self.labels_file).long()
        if targets.dim() != 2:
            raise ValueError(f"targets should have 2 dimensions instead of {targets.dim()}")
        part = {"test10k": slice(10000), "test50k": slice(10000, None)}.get(self.what, slice(None))
        return data[part].clone(), targets[part].clone()

    def download(self):
        """Fetch and unpack the two files of the part."""
        if self._check_exists():
            return
        for url, md5 in self.resources[self.subsets[self.what]]:
            download_and_extract_archive(url, self.raw_folder, md5=md5)

    def _target(self, index):
        return int(self.targets[index][0]) if self.compat else self.targets[index]

    def extra_repr(self):
        return f"Split: {self.what}"
