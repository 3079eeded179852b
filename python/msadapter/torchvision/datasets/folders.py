"""Published sets with a folder for each class: Country211, EuroSAT, GTSRB, ImageNet, RenderedSST2, and those with numbers in the files' names."""

import csv
import os
import shutil

from msadapter import pytorch as torch
from msadapter.torchvision.datasets import utils
from msadapter.torchvision.datasets._base import (NOT_FOUND_OR_CORRUPTED, Collection, Pictures, Several, SplitPictures, join, lines_of, loadmat, open_picture,
                                                  open_rgb)
from msadapter.torchvision.datasets.folder import ImageFolder, make_dataset
from msadapter.torchvision.datasets.sources import files, whole
from msadapter.torchvision.datasets.utils import list_dir, list_files, verify_str_arg


class _PublishedFolder(Collection, ImageFolder):
    """An ImageFolder that is a part of `root`, which stays what is shown."""

    def _open(self, root, folder, transform, target_transform, download):
        self.root = os.path.expanduser(root)
        self._base_folder = join(self.root, folder)
        self._prepare(download)
        ImageFolder.__init__(self, self._data_folder, transform=transform, target_transform=target_transform)
        self.root = os.path.expanduser(root)


class Country211(_PublishedFolder):
    """Photographs from 211 countries in `root`/country211/SPLIT/COUNTRY (Radford et al., 2021)."""

    _sources = ("country211",)

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        self._split = verify_str_arg(split, "split", ("train", "valid", "test"))
        self._open(root, "country211", transform, target_transform, download)

    @property
    def _data_folder(self):
        return join(self._base_folder, self._split)

    def _check_exists(self):
        return os.path.isdir(self._base_folder)


class EuroSAT(_PublishedFolder):
    """Sentinel-2 pictures of ten kinds of land in `root`/eurosat/2750/CLASS (Helber et al., 2019)."""

    _sources = ("eurosat",)

    def __init__(self, root, transform=None, target_transform=None, download=False):
        self._open(root, "eurosat", transform, target_transform, download)

    @property
    def _data_folder(self):
        return join(self._base_folder, "2750")

    @property
    def _download_root(self):
        return self._base_folder

    def _check_exists(self):
        return os.path.exists(self._data_folder)


class RenderedSST2(SplitPictures):
    """Sentences as pictures, negative and positive, in `root`/rendered-sst2 (Radford et al., 2021)."""

    _sources = ("renderedsst2",)

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        self._folder = join(self.root, "rendered-sst2", "valid" if split == "val" else split)
        self._number(["negative", "positive"])
        self._prepare(download)
        self._samples = make_dataset(self._folder, extensions=("png",))

    def _check_exists(self):
        return all(os.path.isdir(join(self._folder, name)) for name in self.classes)


class GTSRB(Pictures):
    """German traffic signs of 43 kinds in `root`/gtsrb (Stallkamp et al., 2012)."""

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        self._sources = (f"gtsrb/{split}",)
        self._base_folder = join(self.root, "gtsrb")
        self._target_folder = join(self._base_folder, "GTSRB", "Training" if split == "train" else "Final_Test/Images")
        self._prepare(download)
        if split == "train":
            self._samples = make_dataset(self._target_folder, extensions=(".ppm",))
        else:
            with open(join(self._base_folder, "GT-final_test.csv"), newline="", encoding="utf-8") as file:
                rows = csv.DictReader(file, delimiter=";", skipinitialspace=True)
                self._samples = [(join(self._target_folder, row["Filename"]), int(row["ClassId"])) for row in rows]

    @property
    def _download_root(self):
        return self._base_folder

    def _check_exists(self):
        return os.path.isdir(self._target_folder)


class SUN397(Pictures):
    """Scenes of 397 kinds in `root`/SUN397 (Xiao et al., 2010)."""

    _sources = ("sun397",)

    def __init__(self, root, transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._data_dir = join(self.root, "SUN397")
        self._prepare(download)
        self._number([name[3:] for name in lines_of(join(self._data_dir, "ClassName.txt"))])  # without "/a/", the folder of the first letter
        self._samples = []
        for folder, _, names in sorted(os.walk(self._data_dir)):
            inside = os.path.relpath(folder, self._data_dir).split(os.sep)[1:]
            self._samples += [(join(folder, name), self.class_to_idx["/".join(inside)]) for name in sorted(names)
                              if name.startswith("sun_") and name.endswith(".jpg")]

    def _check_exists(self):
        return os.path.isdir(self._data_dir)


class _Caltech(Several, Collection):
    """Files numbered from 1 in the folders of their classes."""

    _not_found = NOT_FOUND_OR_CORRUPTED
    _says_so = True

    def _open(self, folder, download, counts=lambda name: True):
        os.makedirs(self.root, exist_ok=True)
        self._folder = join(self.root, folder)
        self._prepare(download)
        self.categories = [name for name in sorted(os.listdir(self._folder)) if name != "BACKGROUND_Google"]
        self.index, self.y = [], []
        for i, name in enumerate(self.categories):
            count = sum(map(counts, os.listdir(join(self._folder, name))))
            self.index += range(1, count + 1)
            self.y += [i] * count

    def _check_exists(self):
        return os.path.exists(self._folder)

    def __len__(self):
        return len(self.index)


class Caltech101(_Caltech):
    """Pictures of 101 things in `root`/caltech101 (Fei-Fei et al., 2004); targets are numbers of classes ("category") or outlines ("annotation")."""

    _sources = ("caltech101",)
    _ANNOTATED_AS = {"Faces": "Faces_2", "Faces_easy": "Faces_3", "Motorbikes": "Motorbikes_16", "airplanes": "Airplanes_Side_2"}

    def __init__(self, root, target_type="category", transform=None, target_transform=None, download=False):
        super().__init__(join(root, "caltech101"), transform=transform, target_transform=target_transform)
        kinds = [target_type] if isinstance(target_type, str) else target_type
        self.target_type = [verify_str_arg(kind, "target_type", ("category", "annotation")) for kind in kinds]
        self._open("101_ObjectCategories", download)
        self.annotation_categories = [self._ANNOTATED_AS.get(name, name) for name in self.categories]

    def __getitem__(self, index):
        number, label = self.index[index], self.y[index]
        picture = open_picture(join(self._folder, self.categories[label], f"image_{number:04d}.jpg"))
        targets = []
        for kind in self.target_type:
            if kind == "category":
                targets.append(label)
            else:
                path = join(self.root, "Annotations", self.annotation_categories[label], f"annotation_{number:04d}.mat")
                targets.append(loadmat(path)["obj_contour"])
        return self._transformed(picture, self._joined(targets))

    def extra_repr(self):
        return f"Target type: {self.target_type}"


class Caltech256(_Caltech):
    """Pictures of 256 things, and clutter, in `root`/caltech256 (Griffin et al., 2007)."""

    _sources = ("caltech256",)

    def __init__(self, root, transform=None, target_transform=None, download=False):
        super().__init__(join(root, "caltech256"), transform=transform, target_transform=target_transform)
        self._open("256_ObjectCategories", download, lambda name: name.endswith(".jpg"))

    def __getitem__(self, index):
        number, label = self.index[index], self.y[index]
        return self._transformed(open_picture(join(self._folder, self.categories[label], f"{label + 1:03d}_{number:04d}.jpg")), label)


class Omniglot(Pictures):
    """Characters of fifty alphabets in `root`/omniglot-py (Lake et al., 2015), as grey pictures."""

    _not_found = NOT_FOUND_OR_CORRUPTED
    _says_so = True

    def __init__(self, root, background=True, transform=None, target_transform=None, download=False):
        super().__init__(join(root, "omniglot-py"), transform=transform, target_transform=target_transform)
        self.background = background
        name = "images_background" if background else "images_evaluation"
        self._sources = (f"omniglot/{name}",)
        self._prepare(download)
        self.target_folder = join(self.root, name)
        self._alphabets = list_dir(self.target_folder)
        self._characters = [join(alphabet, character) for alphabet in self._alphabets for character in list_dir(join(self.target_folder, alphabet))]
        self._samples = [(path, i) for i, character in enumerate(self._characters) for path in list_files(join(self.target_folder, character), ".png", True)]

    def _check_exists(self):
        return whole(self.root, *self._sources)

    def __getitem__(self, index):
        path, target = self._samples[index]
        return self._transformed(open_picture(path).convert("L"), target)


class ImageNet(ImageFolder):
    """ILSVRC 2012 in `root`/train or `root`/val, unpacked from the archives in `root` where need be (Russakovsky et al., 2015).

    Raises RuntimeError when neither the folders nor the archives are there: the archives can only be had at image-net.org.
    """

    def __init__(self, root, split="train", **kwargs):
        root = self.root = os.path.expanduser(root)
        self.split = verify_str_arg(split, "split", ("train", "val"))
        self.parse_archives()
        names = load_meta_file(root)[0]
        super().__init__(self.split_folder, **kwargs)
        self.root = root
        self.wnids, self.wnid_to_idx = self.classes, self.class_to_idx
        self.classes = [names[wnid] for wnid in self.wnids]
        self.class_to_idx = {name: i for i, several in enumerate(self.classes) for name in several}

    @property
    def split_folder(self):
        """The folder with the folders of the classes."""
        return join(self.root, self.split)

    def parse_archives(self):
        """Unpack what isn't yet."""
        if not utils.check_integrity(join(self.root, _META)):
            _unpack_devkit(self.root)
        if not os.path.isdir(self.split_folder):
            (_unpack_train if self.split == "train" else _unpack_val)(self.root)

    def extra_repr(self):
        return f"Split: {self.split}"


_META = "meta.bin"  # names of the classes, and the classes of the pictures for validation


def load_meta_file(root, file=None):
    """({wnid: names}, [wnid of each picture for validation]). Raises RuntimeError when `root` has no such file."""
    path = join(root, file or _META)
    if not utils.check_integrity(path):
        raise RuntimeError(f"The meta file {path} is not present in the root directory or is corrupted. "
                           "This file is automatically created by the ImageNet dataset.")
    return torch.load(path)


def _imagenet_archive(root, part):
    file, = files(f"imagenet/{part}")
    path = join(root, file.name)
    if not utils.check_integrity(path, file.md5):
        raise RuntimeError(f"The archive {file.name} is not present in the root directory or is corrupted. "
                           f"You need to download it externally and place it in {root}.")
    return path


def _unpack_devkit(root):
    import tempfile

    archive = _imagenet_archive(root, "devkit")
    with tempfile.TemporaryDirectory() as folder:
        utils.extract_archive(archive, folder)
        data = join(folder, "ILSVRC2012_devkit_t12", "data")
        leaves = [entry for entry in loadmat(join(data, "meta.mat"), squeeze_me=True)["synsets"] if entry[4] == 0]
        wnids = {int(entry[0]): str(entry[1]) for entry in leaves}
        names = {str(entry[1]): tuple(str(entry[2]).split(", ")) for entry in leaves}
        order = [wnids[int(line)] for line in lines_of(join(data, "ILSVRC2012_validation_ground_truth.txt"))]
    torch.save((names, order), join(root, _META))


def _unpack_train(root):
    archive, folder = _imagenet_archive(root, "train"), join(root, "train")
    os.makedirs(folder)
    utils.extract_archive(archive, folder)
    for path in list_files(folder, ".tar", True):
        os.makedirs(os.path.splitext(path)[0], exist_ok=True)
        utils.extract_archive(path, os.path.splitext(path)[0], remove_finished=True)


def _unpack_val(root):
    wnids = load_meta_file(root)[1]
    archive, folder = _imagenet_archive(root, "val"), join(root, "val")
    os.makedirs(folder)
    utils.extract_archive(archive, folder)
    pictures = sorted(os.listdir(folder))
    for wnid in set(wnids):
        os.mkdir(join(folder, wnid))
    for wnid, name in zip(wnids, pictures):
        shutil.move(join(folder, name), join(folder, wnid, name))


class INaturalist(Several, Collection):
    """Animals and plants in `root`/VERSION (Van Horn et al., 2018, 2021).

    `target_type` is "full", or for 2021 a rank from "kingdom" to "genus", for earlier versions "super"; or a list of these. Raises RuntimeError
    for folders that don't follow the published names.
    """

    _not_found = NOT_FOUND_OR_CORRUPTED
    _RANKS = ("kingdom", "phylum", "class", "order", "family", "genus")
    _VERSIONS = ("2017", "2018", "2019", "2021_train", "2021_train_mini", "2021_valid")

    def __init__(self, root, version="2021_train", target_type="full", transform=None, target_transform=None, download=False):
        self.version = verify_str_arg(version, "version", self._VERSIONS)
        super().__init__(join(root, version), transform=transform, target_transform=target_transform)
        os.makedirs(os.path.dirname(self.root), exist_ok=True)
        self._prepare(download)
        recent = version.startswith("2021")
        kinds = target_type if isinstance(target_type, list) else [target_type]
        self.target_type = [verify_str_arg(kind, "target_type", ("full", *self._RANKS) if recent else ("full", "super")) for kind in kinds]
        self.all_categories, self.categories_map = [], []
        self.categories_index = {rank: {} for rank in (self._RANKS if recent else ("super",))}
        (self._read_ranks if recent else self._read_super)()
        self.index = [(i, name) for i, folder in enumerate(self.all_categories) for name in sorted(os.listdir(join(self.root, folder)))]

    def _read_ranks(self):
        """Folders are named number_kingdom_..._genus_species."""
        self.all_categories = sorted(os.listdir(self.root))
        for i, folder in enumerate(self.all_categories):
            parts = folder.split("_")
            if len(parts) != 8:
                raise RuntimeError(f"Unexpected category name {folder}, wrong number of pieces")
            if parts[0] != f"{i:05d}":
                raise RuntimeError(f"Unexpected category id {parts[0]}, expecting {i:05d}")
            known = self.categories_index
            self.categories_map.append({rank: known[rank].setdefault(name, len(known[rank])) for rank, name in zip(self._RANKS, parts[1:7])})

    def _read_super(self):
        """Folders are SUPER/SPECIES, in 2017 by name and later by number."""
        places = {}
        for i, group in enumerate(sorted(os.listdir(self.root))):
            self.categories_index["super"][group] = i
            for name in sorted(os.listdir(join(self.root, group))):
                if self.version != "2017" and not name.isdecimal():
                    raise RuntimeError(f"Unexpected non-numeric dir name: {name}")
                number = len(places) if self.version == "2017" else int(name)
                if number in places:
                    raise RuntimeError(f"Duplicate category {name}")
                places[number] = join(group, name), {"super": i}
        for number in range(len(places)):
            if number not in places:
                raise RuntimeError(f"Missing category {number}")
            folder, group = places[number]
            self.all_categories.append(folder)
            self.categories_map.append(group)

    def __getitem__(self, index):
        category, name = self.index[index]
        picture = open_picture(join(self.root, self.all_categories[category], name))
        return self._transformed(picture, self._joined([category if kind == "full" else self.categories_map[category][kind] for kind in self.target_type]))

    def __len__(self):
        return len(self.index)

    def category_name(self, category_type, category_id):
        """The name of a category's number. Raises ValueError when there is none."""
        if category_type == "full":
            return self.all_categories[category_id]
        if category_type not in self.categories_index:
            raise ValueError(f"Invalid category type '{category_type}'")
        for name, number in self.categories_index[category_type].items():
            if number == category_id:
                return name
        raise ValueError(f"Invalid category id {category_id} for {category_type}")

    def _check_exists(self):
        return os.path.exists(self.root) and len(os.listdir(self.root)) > 0

    def download(self):
        """Fetch and unpack. Raises RuntimeError when the folder is there."""
        if self._check_exists():
            raise RuntimeError(f"The directory {self.root} already exists. If you want to re-download or re-extract the images, delete the directory.")
        folder = os.path.dirname(self.root)
        file, = files(f"inaturalist/{self.version}")
        utils.download_and_extract_archive(file.url, folder, filename=file.name, md5=file.md5)
        unpacked = join(folder, os.path.basename(file.url)[:-len(".tar.gz")])
        if not os.path.exists(unpacked):
            raise RuntimeError(f"Unable to find downloaded files at {unpacked}")
        os.rename(unpacked, self.root)
        print(f"Dataset version '{self.version}' has been downloaded and prepared for use")


class LFWPeople(Pictures):
    """Faces of people in `root`/lfw-py (Huang et al., 2007); targets are numbers of people."""

    _not_found = NOT_FOUND_OR_CORRUPTED
    _says_so = True
    _view = "people"
    _names = ("lfw/lfw-names.txt",)
    _FOLDERS = {"original": "lfw", "funneled": "lfw_funneled", "deepfunneled": "lfw-deepfunneled"}

    def __init__(self, root, split="10fold", image_set="funneled", transform=None, target_transform=None, download=False):
        super().__init__(join(root, "lfw-py"), transform=transform, target_transform=target_transform)
        self.image_set = verify_str_arg(image_set.lower(), "image_set", self._FOLDERS)
        self.split = verify_str_arg(split.lower(), "split", ["10fold", "train", "test"])
        self.view = self._view
        self.labels_file = self._view + {"10fold": "", "train": "DevTrain", "test": "DevTest"}[self.split] + ".txt"
        self._sources = (f"lfw/{self.image_set}", f"lfw/{self.labels_file}", *self._names)
        self._prepare(download)
        self.images_dir = join(self.root, self._FOLDERS[self.image_set])
        self._read([line.split("\t") for line in lines_of(join(self.root, self.labels_file))])

    def _check_exists(self):
        return whole(self.root, *self._sources)

    def _path(self, name, number):
        return join(self.images_dir, name, f"{name}_{int(number):04d}.jpg")

    def _read(self, lines):
        """One line for the number of folds, then for each fold one with the number of people, and theirs: name, number of pictures."""
        self.class_to_idx = {line.split()[0]: i for i, line in enumerate(lines_of(join(self.root, "lfw-names.txt"))) if line}
        self.data, self.targets = [], []
        folds, place = (int(lines[0][0]), 1) if self.split == "10fold" else (1, 0)
        for _ in range(folds):
            count = int(lines[place][0])
            for name, number in lines[place + 1:place + count + 1]:
                self.data += [self._path(name, i) for i in range(1, int(number) + 1)]
                self.targets += [self.class_to_idx[name]] * int(number)
            place += count + 1

    def __getitem__(self, index):
        return self._transformed(open_rgb(self.data[index]), self.targets[index])

    def __len__(self):
        return len(self.data)

    def extra_repr(self):
        return f"Alignment: {self.image_set}\nSplit: {self.split}\nClasses (identities): {len(self.class_to_idx)}"


class LFWPairs(LFWPeople):
    """Pairs of faces in `root`/lfw-py; the target is 1 where both are of one person."""

    _view = "pairs"
    _names = ()

    def _read(self, lines):
        """In each fold as many lines for equal pairs (name, number, number) as for others (name, number, name, number)."""
        self.pair_names, self.data, self.targets = [], [], []
        folds, count = map(int, lines[0]) if self.split == "10fold" else (1, int(lines[0][0]))
        for i, line in enumerate(lines[1:1 + 2 * folds * count]):
            same = i // count % 2 == 0
            first, second = (line[0], line[1]), (line[0], line[2]) if same else (line[2], line[3])
            self.pair_names.append((first[0], second[0]))
            self.data.append((self._path(*first), self._path(*second)))
            self.targets.append(int(same))

    def __getitem__(self, index):
        first, second = map(open_rgb, self.data[index])
        if self.transform is not None:
            first, second = self.transform(first), self.transform(second)
        target = self.targets[index]
        return first, second, target if self.target_transform is None else self.target_transform(target)

    def extra_repr(self):
        return f"Alignment: {self.image_set}\nSplit: {self.split}"
