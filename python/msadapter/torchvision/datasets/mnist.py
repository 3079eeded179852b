"""MNIST (LeCun et al., 1998) and its kin: 28x28 grey pictures in the idx format."""

import os

from msadapter import pytorch as torch
from msadapter.torchvision.datasets.utils import check_integrity, download_and_extract_archive
from msadapter.torchvision.datasets.vision import VisionDataset


def read_idx(path):
    """A file of unsigned bytes in the idx format as a tensor. Raises RuntimeError when header and size do not fit."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 4 or data[:3] != b"\0\0\x08" or not 1 <= data[3] <= 3 or len(data) < 4 + 4 * data[3]:
        raise RuntimeError(f"{path} is not an idx file of unsigned bytes")
    ndim = data[3]
    sizes = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(ndim)]
    numel = 1
    for size in sizes:
        numel *= size
    if numel != len(data) - 4 - 4 * ndim:
        raise RuntimeError(f"{path}: the header says {sizes}, the file holds {len(data) - 4 - 4 * ndim} bytes")
    if numel == 0:
        return torch.empty(sizes, dtype=torch.uint8)
    return torch.frombuffer(bytearray(data[4 + 4 * ndim:]), dtype=torch.uint8).view(*sizes)


class MNIST(VisionDataset):
    """Handwritten digits in `root`/MNIST/raw. Raises RuntimeError when files are missing."""

    mirrors = ["http://yann.lecun.com/exdb/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ]
    classes = ["0 - zero", "1 - one", "2 - two", "3 - three", "4 - four", "5 - five", "6 - six", "7 - seven", "8 - eight", "9 - nine"]

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError("Dataset not found. You can use download=True to download it")
        kind = "train" if train else "t10k"
        self.data = read_idx(os.path.join(self.raw_folder, f"{kind}-images-idx3-ubyte"))
        self.targets = read_idx(os.path.join(self.raw_folder, f"{kind}-labels-idx1-ubyte")).long()

    @property
    def raw_folder(self):
        """Where the unpacked files lie."""
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def class_to_idx(self):
        """Class names and their numbers."""
        return {name: i for i, name in enumerate(self.classes)}

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

    def __getitem__(self, index):
        from PIL import Image

        picture, target = Image.fromarray(self.data[index].numpy(), mode="L"), int(self.targets[index])
        if self.transform is not None:
            picture = self.transform(picture)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return picture, target

    def __len__(self):
        return len(self.data)

    def extra_repr(self):
        return f"Split: {'Train' if self.train else 'Test'}"


class FashionMNIST(MNIST):
    """Pictures of clothes (Xiao et al., 2017) in `root`/FashionMNIST/raw."""

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ]
    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
