"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009): 60,000 pictures of 32x32."""

import os

from msadapter.torchvision.datasets._base import NOT_FOUND_OR_CORRUPTED, Arrays
from msadapter.torchvision.datasets.sources import files, pairs
from msadapter.torchvision.datasets.utils import check_integrity, download_and_extract_archive, load_plain_pickle


class CIFAR10(Arrays):
    """Pictures of ten classes in `root`/cifar-10-batches-py. Raises RuntimeError when files are missing or damaged."""

    base_folder = "cifar-10-batches-py"
    filename, tgz_md5, url = files("cifar10")[0]
    train_list, test_list = pairs("cifar10/train"), pairs("cifar10/test")
    meta = {"filename": "batches.meta", "key": "label_names", "md5": pairs("cifar10/meta")[0][1]}

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if not self._check_integrity():
            raise RuntimeError(NOT_FOUND_OR_CORRUPTED)
        import numpy

        pictures, self.targets = [], []
        for name, _ in self.train_list if train else self.test_list:
            entry = load_plain_pickle(os.path.join(self.root, self.base_folder, name))
            pictures.append(entry["data"])
            self.targets.extend(entry["labels"] if "labels" in entry else entry["fine_labels"])
        self.data = numpy.ascontiguousarray(numpy.vstack(pictures).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        self._load_meta()

    def _load_meta(self):
        path = os.path.join(self.root, self.base_folder, self.meta["filename"])
        if not check_integrity(path, self.meta["md5"]):
            raise RuntimeError("Dataset metadata file not found or corrupted. You can use download=True to download it")
        self.classes = load_plain_pickle(path)[self.meta["key"]]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}

    def _check_integrity(self):
        return all(check_integrity(os.path.join(self.root, self.base_folder, name), md5) for name, md5 in self.train_list + self.test_list)

    def download(self):
        """Fetch and unpack the archive unless all files are there."""
        if self._check_integrity():
            print("Files already downloaded and verified")
            return
        download_and_extract_archive(self.url, self.root, filename=self.filename, md5=self.tgz_md5)

    def extra_repr(self):
        return f"Split: {'Train' if self.train else 'Test'}"


class CIFAR100(CIFAR10):
    """Pictures of a hundred classes in `root`/cifar-100-python."""

    base_folder = "cifar-100-python"
    filename, tgz_md5, url = files("cifar100")[0]
    train_list, test_list = pairs("cifar100/train"), pairs("cifar100/test")
    meta = {"filename": "meta", "key": "fine_label_names", "md5": pairs("cifar100/meta")[0][1]}
