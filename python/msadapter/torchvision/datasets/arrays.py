"""Published sets that are read into memory, or from one file of arrays: SEMEION, USPS, SVHN, STL10, FER2013, PCAM, PhotoTour."""

import csv
import os

from msadapter import pytorch as torch
from msadapter.torchvision.datasets import utils
from msadapter.torchvision.datasets._base import Arrays, Collection, join, lines_of, loadmat, open_picture
from msadapter.torchvision.datasets.sources import files, pairs, whole
from msadapter.torchvision.datasets.utils import verify_str_arg


class SEMEION(Arrays):
    """1593 handwritten digits of 16x16 in `root`/semeion.data: 256 pixels, then ten indicators of the class, to a line."""

    _sources = ("semeion",)
    _targets = "labels"

    def __init__(self, root, transform=None, target_transform=None, download=True):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._prepare(download)
        import numpy

        table = numpy.loadtxt(join(self.root, "semeion.data"), ndmin=2)
        self.data = (table[:, :256] * 255).astype("uint8").reshape(-1, 16, 16)
        self.labels = numpy.nonzero(table[:, 256:])[1]

    def _check_exists(self):
        return whole(self.root, "semeion")


class USPS(Arrays):
    """9298 handwritten digits of 16x16 in `root` (Hull, 1994): lines of LIBSVM's form with values from -1 to 1, packed by bzip2."""

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        import bz2

        import numpy

        file, = files(f"usps/{'train' if train else 'test'}")
        path = join(self.root, file.name)
        if download and not os.path.exists(path):
            utils.download_url(file.url, self.root, file.name, file.md5)
        with bz2.open(path, "rt", encoding="ascii") as lines:
            rows = [line.split() for line in lines]
        values = numpy.asarray([[word.rpartition(":")[2] for word in row[1:]] for row in rows], dtype=numpy.float32).reshape(-1, 16, 16)
        self.data = ((values + 1) / 2 * 255).astype(numpy.uint8)
        self.targets = [int(row[0]) - 1 for row in rows]


class SVHN(Arrays):
    """House numbers of 32x32 in `root`/SPLIT_32x32.mat (Netzer et al., 2011); `data` is (N, 3, 32, 32). Raises ImportError without SciPy."""

    _targets = "labels"

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", ("train", "test", "extra"))
        self._sources = (f"svhn/{split}",)
        self._prepare(download)
        file, = files(self._sources[0])
        self.filename, self.file_md5, self.url = file
        content = loadmat(join(self.root, file.name))
        self.labels = content["y"].astype("int64").squeeze() % 10  # the file has 10 for the digit 0
        self.data = content["X"].transpose(3, 2, 0, 1)

    def _check_exists(self):
        return whole(self.root, *self._sources)

    def _picture(self, index):
        from PIL import Image

        return Image.fromarray(self.data[index].transpose(1, 2, 0))

    def extra_repr(self):
        return f"Split: {self.split}"


class STL10(Arrays):
    """Pictures of 96x96 in `root`/stl10_binary (Coates et al., 2011); `data` is (N, 3, 96, 96), targets of unlabelled pictures are -1.

    `folds` chooses one of ten published parts of the training pictures. Raises ValueError for others.
    """

    _targets = "labels"
    _sources = ("stl10",)
    splits = ("train", "train+unlabeled", "unlabeled", "test")

    def __init__(self, root, split="train", folds=None, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", self.splits)
        if folds is not None and not isinstance(folds, int):
            raise ValueError(f"Expected type None or int for argument folds, but got type {type(folds)}.")
        if folds is not None and not 0 <= folds < 10:
            raise ValueError(f"Value for argument folds should be in the range [0, 10), but got {folds}.")
        self.folds = folds
        self._folder = join(self.root, "stl10_binary")
        self._prepare(download)
        import numpy

        data, labels = [], []
        if split != "unlabeled":
            data.append(self._file("test_X.bin" if split == "test" else "train_X.bin").reshape(-1, 3, 96, 96))
            labels.append(self._file("test_y.bin" if split == "test" else "train_y.bin") - 1)
        if folds is not None and split.startswith("train"):
            chosen = numpy.array(lines_of(join(self._folder, "fold_indices.txt"))[folds].split(), dtype=numpy.int64)
            data[0], labels[0] = data[0][chosen], labels[0][chosen]
        if "unlabeled" in split:
            data.append(self._file("unlabeled_X.bin").reshape(-1, 3, 96, 96))
            labels.append(numpy.full(len(data[-1]), -1))
        # The files are stored by columns.
        self.data, self.labels = numpy.concatenate(data).transpose(0, 1, 3, 2), numpy.concatenate(labels)
        names = join(self._folder, "class_names.txt")
        if os.path.isfile(names):
            self.classes = lines_of(names)

    def _file(self, name):
        import numpy

        return numpy.fromfile(join(self._folder, name), dtype=numpy.uint8)

    def _check_exists(self):
        return all(utils.check_integrity(join(self._folder, name), md5) for name, md5 in pairs("stl10/members"))

    def _picture(self, index):
        from PIL import Image

        return Image.fromarray(self.data[index].transpose(1, 2, 0))

    def extra_repr(self):
        return f"Split: {self.split}"


class FER2013(Collection):
    """Faces of 48x48 with seven expressions in `root`/fer2013/SPLIT.csv (Goodfellow et al., 2013); targets are None where the file has none."""

    def __init__(self, root, split="train", transform=None, target_transform=None):
        self._split = verify_str_arg(split, "split", ("train", "test"))
        super().__init__(root, transform=transform, target_transform=target_transform)
        folder, (file,) = join(self.root, "fer2013"), files(f"fer2013/{split}")
        if not utils.check_integrity(join(folder, file.name), file.md5):
            raise RuntimeError(f"{file.name} not found in {folder} or corrupted. You can download it from "
                               "https://www.kaggle.com/c/challenges-in-representation-learning-facial-expression-recognition-challenge")
        with open(join(folder, file.name), newline="", encoding="utf-8") as lines:
            self._samples = [(torch.tensor(list(map(int, row["pixels"].split())), dtype=torch.uint8).reshape(48, 48),
                              int(row["emotion"]) if "emotion" in row else None) for row in csv.DictReader(lines)]

    def __getitem__(self, index):
        from PIL import Image

        pixels, target = self._samples[index]
        return self._transformed(Image.fromarray(pixels.numpy()), target)

    def __len__(self):
        return len(self._samples)

    def extra_repr(self):
        return f"split={self._split}"


class PCAM(Collection):
    """Patches of 96x96 of lymph nodes, with tumour or without, in `root`/pcam (Veeling et al., 2018). Raises RuntimeError without h5py."""

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        try:
            import h5py
        except ImportError:
            raise RuntimeError("h5py is not found. This dataset needs to have h5py installed: please run pip install h5py") from None
        self.h5py = h5py
        self._split = verify_str_arg(split, "split", ("train", "test", "val"))
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._sources = (f"pcam/{split}",)
        self._pictures, self._targets = (join(self._download_root, file.name[:-len(".gz")]) for file in files(self._sources[0]))
        self._prepare(download)

    @property
    def _download_root(self):
        return join(self.root, "pcam")

    def _check_exists(self):
        return os.path.exists(self._pictures) and os.path.exists(self._targets)

    def __len__(self):
        with self.h5py.File(self._pictures, "r") as file:
            return file["x"].shape[0]

    def __getitem__(self, index):
        from PIL import Image

        with self.h5py.File(self._pictures, "r") as pictures, self.h5py.File(self._targets, "r") as targets:
            return self._transformed(Image.fromarray(pictures["x"][index]).convert("RGB"), int(targets["y"][index, 0, 0, 0]))


class PhotoTour(Collection):
    """Patches of 64x64 around points of photographs of a sight, in `root`/NAME (Winder and Brown, 2007).

    `data` (N, 64, 64) of bytes, `labels` (N,) of points, `matches` (M, 3): two patches and whether they show one point. Training gives patches,
    testing pairs with the third number. The patches are kept in `root`/NAME.pt.
    """

    means = {name: value for place, value in (("notredame", 0.4854), ("yosemite", 0.4844), ("liberty", 0.4437)) for name in (place, place + "_harris")}
    stds = {name: value for place, value in (("notredame", 0.1864), ("yosemite", 0.1818), ("liberty", 0.2019)) for name in (place, place + "_harris")}
    lens = {"notredame": 468159, "yosemite": 633587, "liberty": 450092, "liberty_harris": 379587, "yosemite_harris": 450912, "notredame_harris": 325295}

    def __init__(self, root, name, train=True, transform=None, download=False):
        super().__init__(root, transform=transform)
        self.name, self.train = name, train
        self.data_dir, self.data_down, self.data_file = (join(self.root, name + ending) for ending in ("", ".zip", ".pt"))
        self.mean, self.std = self.means[name], self.stds[name]
        if download:
            self.download()
        if not os.path.exists(self.data_file):
            self.cache()
        self.data, self.labels, self.matches = torch.load(self.data_file)

    def __getitem__(self, index):
        changed = self.transform or (lambda patch: patch)
        if self.train:
            return changed(self.data[index])
        first, second, same = self.matches[index]
        return changed(self.data[first]), changed(self.data[second]), same

    def __len__(self):
        return len(self.data if self.train else self.matches)

    def download(self):
        """Fetch and unpack the archive unless its folder, or what was kept of it, is there."""
        if os.path.exists(self.data_file):
            print(f"# Found cached data {self.data_file}")
        elif not os.path.exists(self.data_dir):
            file, = files(f"phototour/{self.name}")
            utils.download_and_extract_archive(file.url, self.root, self.data_dir, file.name, file.md5, remove_finished=True)

    def cache(self):
        """Read patches, points and matches, and keep them as a file."""
        print(f"# Caching data {self.data_file}")
        import numpy

        sheets = [numpy.asarray(open_picture(path).convert("L")) for path in utils.list_files(self.data_dir, "bmp", True)]
        patches = [sheet.reshape(sheet.shape[0] // 64, 64, sheet.shape[1] // 64, 64).transpose(0, 2, 1, 3).reshape(-1, 64, 64) for sheet in sheets]
        points = [int(line.split()[0]) for line in lines_of(join(self.data_dir, "info.txt"))]
        rows = [line.split() for line in lines_of(join(self.data_dir, "m50_100000_100000_0.txt"))]
        matches = [[int(row[0]), int(row[3]), int(row[1] == row[4])] for row in rows]
        data = torch.from_numpy(numpy.concatenate(patches)[:self.lens[self.name]].copy())
        torch.save((data, torch.tensor(points), torch.tensor(matches)), self.data_file)

    def extra_repr(self):
        return f"Split: {'Train' if self.train else 'Test'}"
