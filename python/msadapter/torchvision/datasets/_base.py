"""What the data sets share: looking for their files, fetching them, and turning an entry into a transformed picture and target."""

import os

from msadapter.torchvision.datasets.sources import fetch, files
from msadapter.torchvision.datasets.vision import VisionDataset

NOT_FOUND = "Dataset not found. You can use download=True to download it"
NOT_FOUND_OR_CORRUPTED = "Dataset not found or corrupted. You can use download=True to download it"


def open_rgb(path):
    """The picture in a file, as RGB."""
    return open_picture(path).convert("RGB")


def open_picture(path):
    """The picture in a file, as it is."""
    from PIL import Image

    with open(path, "rb") as file:
        picture = Image.open(file)
        picture.load()
        return picture


def loadmat(path, error=ImportError, **options):
    """What is in a MATLAB file. Raises `error` where there is no SciPy."""
    try:
        from scipy.io import loadmat as load
    except ImportError:
        raise error("Scipy is not found. This dataset needs to have scipy installed: pip install scipy") from None
    return load(path, **options)


def lines_of(path):
    """The lines of a text file, without white space around them."""
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file]


class Collection(VisionDataset):
    """A set whose files `_check_exists` finds and `download` fetches: the parts named `_sources`, into `_download_root`."""

    _not_found = NOT_FOUND
    _sources = ()
    _says_so = False  # when there is nothing to download

    def _prepare(self, download):
        """Raises RuntimeError when the files aren't there."""
        if download:
            self.download()
        if not self._check_exists():
            raise RuntimeError(self._not_found)

    @property
    def _download_root(self):
        return self.root

    def download(self):
        """Fetch and unpack the files unless they are there."""
        if self._check_exists():
            if self._says_so:
                print("Files already downloaded and verified")
            return
        for key in self._sources:
            for file in files(key):
                fetch(file, self._download_root)


class Pictures(Collection):
    """A list of (file, target), read as RGB."""

    def __getitem__(self, index):
        path, target = self._samples[index]
        return self._transformed(open_rgb(path), target)

    def __len__(self):
        return len(self._samples)

    @property
    def _image_files(self):
        return [path for path, _ in self._samples]

    @property
    def _labels(self):
        return [target for _, target in self._samples]

    def _number(self, classes):
        self.classes = classes
        self.class_to_idx = {name: i for i, name in enumerate(classes)}


class SplitPictures(Pictures):
    """Pictures of one split."""

    def extra_repr(self):
        return f"split={self._split}"


class Arrays(Collection):
    """Pictures in memory: `data` (N, H, W) or (N, H, W, 3) of bytes, and numbers of classes."""

    _not_found = NOT_FOUND_OR_CORRUPTED
    _says_so = True
    _targets = "targets"  # the attribute's name

    def _picture(self, index):
        from PIL import Image

        return Image.fromarray(self.data[index])

    def __getitem__(self, index):
        return self._transformed(self._picture(index), int(getattr(self, self._targets)[index]))

    def __len__(self):
        return len(self.data)


class Several:
    """Targets of several kinds: one comes alone, more as a tuple, none as None."""

    @staticmethod
    def _joined(targets):
        return tuple(targets) if len(targets) > 1 else targets[0] if targets else None


def join(*parts):
    """os.path.join, for parts that may be paths."""
    return os.path.join(*map(str, parts))
