"""Published sets whose annotations list files with a number of a class or a caption for each."""

import collections
import csv
import glob
import html.parser
import json
import os

from msadapter import pytorch as torch
from msadapter.torchvision.datasets import utils
from msadapter.torchvision.datasets._base import NOT_FOUND_OR_CORRUPTED, Pictures, Several, SplitPictures, join, lines_of, loadmat, open_picture
from msadapter.torchvision.datasets.folder import default_loader
from msadapter.torchvision.datasets.sources import fetch, files, whole
from msadapter.torchvision.datasets.utils import verify_str_arg


class DTD(SplitPictures):
    """Textures of 47 kinds in `root`/dtd/dtd, in ten partitions (Cimpoi et al., 2014). Raises ValueError for another partition."""

    _sources = ("dtd",)

    def __init__(self, root, split="train", partition=1, transform=None, target_transform=None, download=False):
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        if not isinstance(partition, int) or not 1 <= partition <= 10:
            raise ValueError(f"Parameter 'partition' should be an integer with `1 <= partition <= 10`, but got {partition} instead")
        self._partition = partition
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._data_folder = join(self.root, "dtd", "dtd")
        self._prepare(download)
        names = [line.split("/") for line in lines_of(join(self._data_folder, "labels", f"{split}{partition}.txt"))]
        self._number(sorted({name for name, _ in names}))
        self._samples = [(join(self._data_folder, "images", *parts), self.class_to_idx[parts[0]]) for parts in names]

    @property
    def _download_root(self):
        return join(self.root, "dtd")

    def _check_exists(self):
        return os.path.isdir(self._data_folder)

    def extra_repr(self):
        return f"split={self._split}, partition={self._partition}"


class FGVCAircraft(Pictures):
    """Aeroplanes in `root`/fgvc-aircraft-2013b by variant, family or manufacturer (Maji et al., 2013)."""

    _sources = ("fgvcaircraft",)
    _CLASSES = {"variant": "variants.txt", "family": "families.txt", "manufacturer": "manufacturers.txt"}

    def __init__(self, root, split="trainval", annotation_level="variant", transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", ("train", "val", "trainval", "test"))
        self._annotation_level = verify_str_arg(annotation_level, "annotation_level", tuple(self._CLASSES))
        self._data_path = join(self.root, "fgvc-aircraft-2013b")
        self._prepare(download)
        data = join(self._data_path, "data")
        self._number(lines_of(join(data, self._CLASSES[annotation_level])))
        entries = [line.split(" ", 1) for line in lines_of(join(data, f"images_{annotation_level}_{split}.txt"))]
        self._samples = [(join(data, "images", name + ".jpg"), self.class_to_idx[label]) for name, label in entries]

    def _check_exists(self):
        return os.path.isdir(self._data_path)


class Flowers102(SplitPictures):
    """Flowers of 102 kinds in `root`/flowers-102 (Nilsback and Zisserman, 2008). Raises ImportError without SciPy."""

    _not_found = NOT_FOUND_OR_CORRUPTED
    _sources = ("flowers102",)

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        self._folder = join(self.root, "flowers-102")
        self._prepare(download)
        _, labels, splits = (join(self._folder, file.name) for file in files("flowers102"))
        numbers = loadmat(splits, squeeze_me=True)[{"train": "trnid", "val": "valid", "test": "tstid"}[split]].tolist()
        labels = (loadmat(labels, squeeze_me=True)["labels"] - 1).tolist()
        self._samples = [(join(self._folder, "jpg", f"image_{number:05d}.jpg"), labels[number - 1]) for number in numbers]

    @property
    def _download_root(self):
        return self._folder

    def _check_exists(self):
        annotations = files("flowers102")[1:]
        return os.path.isdir(join(self._folder, "jpg")) and all(utils.check_integrity(join(self._folder, file.name), file.md5) for file in annotations)


class Food101(SplitPictures):
    """Dishes of 101 kinds in `root`/food-101 (Bossard et al., 2014)."""

    _sources = ("food101",)

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        self._folder = join(self.root, "food-101")
        self._prepare(download)
        with open(join(self._folder, "meta", f"{split}.json"), encoding="utf-8") as file:
            listed = json.load(file)
        self._number(sorted(listed))
        self._samples = [(join(self._folder, "images", *f"{name}.jpg".split("/")), self.class_to_idx[label]) for label in listed for name in listed[label]]

    def _check_exists(self):
        return all(os.path.isdir(join(self._folder, name)) for name in ("meta", "images"))


class StanfordCars(Pictures):
    """Cars of 196 kinds in `root`/stanford_cars (Krause et al., 2013). Raises RuntimeError without SciPy."""

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._split = verify_str_arg(split, "split", ("train", "test"))
        self._sources = ("stanfordcars", f"stanfordcars/{split}")
        self._folder = join(self.root, "stanford_cars")
        self._annotations = join(self._folder, *(("devkit", "cars_train_annos.mat") if split == "train" else ("cars_test_annos_withlabels.mat",)))
        self._prepare(download)
        entries = loadmat(self._annotations, RuntimeError, squeeze_me=True)["annotations"]
        self._samples = [(join(self._folder, f"cars_{split}", entry["fname"]), int(entry["class"]) - 1) for entry in entries]
        self._number(loadmat(join(self._folder, "devkit", "cars_meta.mat"), RuntimeError, squeeze_me=True)["class_names"].tolist())

    @property
    def _download_root(self):
        return self._folder

    def _check_exists(self):
        return all(map(os.path.exists, (join(self._folder, "devkit"), self._annotations, join(self._folder, f"cars_{self._split}"))))


class CLEVRClassification(SplitPictures):
    """Rendered solids in `root`/clevr/CLEVR_v1.0 (Johnson et al., 2017); the target is their number, None for the test split."""

    _not_found = NOT_FOUND_OR_CORRUPTED
    _sources = ("clevr",)

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        self._split = verify_str_arg(split, "split", ("train", "val", "test"))
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._folder = join(self.root, "clevr", "CLEVR_v1.0")
        self._prepare(download)
        counts = {}
        if split != "test":
            with open(join(self._folder, "scenes", f"CLEVR_{split}_scenes.json"), encoding="utf-8") as file:
                counts = {scene["image_filename"]: len(scene["objects"]) for scene in json.load(file)["scenes"]}
        pictures = sorted(glob.glob(join(glob.escape(join(self._folder, "images", split)), "*")))
        self._samples = [(path, None if split == "test" else counts[os.path.basename(path)]) for path in pictures]

    @property
    def _download_root(self):
        return join(self.root, "clevr")

    def _check_exists(self):
        return os.path.isdir(self._folder)


class Places365(Pictures):
    """Scenes of 365 kinds in `root` (Zhou et al., 2017), large or of 256 pixels (`small`). Raises RuntimeError when files are missing or damaged."""

    def __init__(self, root, split="train-standard", small=False, download=False, transform=None, target_transform=None, loader=default_loader):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", ("train-standard", "train-challenge", "val"))
        self.small, self.loader = small, loader
        self.classes, self.class_to_idx = self.load_categories(download)
        self.imgs, self.targets = self.load_file_list(download)
        if download:
            self.download_images()

    @property
    def _samples(self):
        return self.imgs

    @property
    def variant(self):
        """Which of the two collections the split belongs to."""
        return "challenge" if "challenge" in self.split else "standard"

    @property
    def images_dir(self):
        """The folder of the pictures."""
        size = "256" if self.small else "large"
        return join(self.root, f"data_{size}_{self.variant}" if self.split.startswith("train") else f"{self.split}_{size}")

    def __getitem__(self, index):
        path, target = self.imgs[index]
        picture = self.loader(path)
        return (picture, target) if self.transforms is None else self.transforms(picture, target)

    def _listed(self, key, download):
        """[name, number] of a list that belongs to the devkit."""
        file, = files(key)
        path = join(self.root, file.name)
        if not utils.check_integrity(path, file.md5):
            if not download:
                raise RuntimeError(f"The file {path} does not exist or is corrupted. You can set download=True to download it.")
            self.download_devkit()
        return [(name, int(number)) for name, number in map(str.split, lines_of(path))]

    def load_categories(self, download=True):
        """(names, {name: number})."""
        numbers = dict(self._listed("places365/categories", download))
        return sorted(numbers), numbers

    def load_file_list(self, download=True):
        """([(path, number)], numbers)."""
        listed = [(join(self.images_dir, *name.lstrip("/").split("/")), number) for name, number in self._listed(f"places365/{self.split}", download)]
        return listed, [number for _, number in listed]

    def download_devkit(self):
        """Fetch the lists."""
        fetch(*files(f"places365/devkit-{self.variant}"), self.root)

    def download_images(self):
        """Fetch the pictures. Raises RuntimeError when their folder is there."""
        if os.path.exists(self.images_dir):
            raise RuntimeError(f"The directory {self.images_dir} already exists. If you want to re-download or re-extract the images, delete the directory.")
        fetch(*files(f"places365/{self.split}/{'256' if self.small else 'large'}"), self.root)
        if self.split.startswith("train"):
            os.rename(self.images_dir.rsplit("_", 1)[0], self.images_dir)

    def extra_repr(self):
        return f"Split: {self.split}\nSmall: {self.small}"


class _Flickr8kPage(html.parser.HTMLParser):
    """Captions of pictures from the page that lists them: a link to each picture and a list of its captions."""

    def __init__(self, root):
        super().__init__()
        self.root, self.annotations = root, {}
        self._in_table, self._tag, self._picture = False, None, None

    def handle_starttag(self, tag, attrs):
        self._tag, self._in_table = tag, self._in_table or tag == "table"

    def handle_endtag(self, tag):
        self._tag, self._in_table = None, self._in_table and tag != "table"

    def handle_data(self, data):
        if not self._in_table:
            return
        if data == "Image Not Found":
            self._picture = None
        elif self._tag == "a":
            self._picture = glob.glob(join(glob.escape(self.root), glob.escape(data.split("/")[-2]) + "_*.jpg"))[0]
            self.annotations[self._picture] = []
        elif self._tag == "li" and self._picture:
            self.annotations[self._picture].append(data.strip())


class _Captioned(Pictures):
    """Pictures with lists of captions: `annotations` by `ids`, which are files' names in `root` or whole paths."""

    def _listed(self, annotations, folder):
        self.annotations, self.ids = annotations, sorted(annotations)
        self._samples = [(join(folder, name) if folder else name, annotations[name]) for name in self.ids]


class Flickr8k(_Captioned):
    """Pictures with five captions each (Hodosh et al., 2013), from the page `ann_file`."""

    def __init__(self, root, ann_file, transform=None, target_transform=None):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.ann_file = os.path.expanduser(ann_file)
        page = _Flickr8kPage(self.root)
        with open(self.ann_file, encoding="utf-8") as file:
            page.feed(file.read())
        self._listed(page.annotations, None)


class Flickr30k(_Captioned):
    """Pictures with five captions each (Young et al., 2014), from `ann_file`: NAME#n, tab, caption."""

    def __init__(self, root, ann_file, transform=None, target_transform=None):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.ann_file = os.path.expanduser(ann_file)
        annotations = collections.defaultdict(list)
        for line in lines_of(self.ann_file):
            name, caption = line.split("\t")
            annotations[name[:-2]].append(caption)
        self._listed(annotations, self.root)


class SBU(Pictures):
    """Photographs with captions in `root`/dataset (Ordonez et al., 2011)."""

    _not_found = NOT_FOUND_OR_CORRUPTED
    _says_so = True
    _sources = ("sbu",)

    def __init__(self, root, transform=None, target_transform=None, download=True):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self._folder = join(self.root, "dataset")
        self._prepare(download)
        captions = lines_of(join(self._folder, "SBU_captioned_photo_dataset_captions.txt"))
        named = zip(map(os.path.basename, self._urls()), captions)
        there = [(name, caption) for name, caption in named if os.path.exists(join(self._folder, name))]
        self.photos, self.captions = [name for name, _ in there], [caption for _, caption in there]
        self._samples = [(join(self._folder, name), caption) for name, caption in there]

    def _urls(self):
        return lines_of(join(self._folder, "SBU_captioned_photo_dataset_urls.txt"))

    def _check_exists(self):
        return whole(self.root, "sbu")

    def download(self):
        """Fetch the lists, then every photograph that can still be had."""
        there = self._check_exists()
        super().download()
        for url in () if there else self._urls():
            try:
                utils.download_url(url, self._folder)
            except RuntimeError:
                continue


def _parsed_faces(lines, folder):
    """(path, target) of WIDERFace's lines: file, number of boxes, and ten numbers for each box."""
    place = 0
    while place < len(lines):
        name, count = lines[place], max(int(lines[place + 1]), 1)  # a picture without faces has a line of zeros
        boxes = torch.tensor([[int(word) for word in line.split(" ")] for line in lines[place + 2:place + 2 + count]])
        fields = {field: boxes[:, 4 + i] for i, field in enumerate(("blur", "expression", "illumination", "occlusion", "pose", "invalid"))}
        yield os.path.abspath(join(folder, name)), {"bbox": boxes[:, :4], **fields}
        place += 2 + count


class WIDERFace(Pictures):
    """Faces in crowds in `root`/widerface (Yang et al., 2016); targets are boxes (N, 4) of x, y, width, height and six attributes (N,)."""

    _not_found = "Dataset not found or corrupted. You can use download=True to download and prepare it"
    _says_so = True
    _sources = ("widerface",)

    def __init__(self, root, split="train", transform=None, target_transform=None, download=False):
        super().__init__(join(root, "widerface"), transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", ("train", "val", "test"))
        self._prepare(download)
        folder, listed = join(self.root, f"WIDER_{split}", "images"), join(self.root, "wider_face_split")
        if split == "test":
            self.img_info = [{"img_path": os.path.abspath(join(folder, name))} for name in lines_of(join(listed, "wider_face_test_filelist.txt"))]
        else:
            parsed = _parsed_faces(lines_of(join(listed, f"wider_face_{split}_bbx_gt.txt")), folder)
            self.img_info = [{"img_path": path, "annotations": boxes} for path, boxes in parsed]

    def _check_exists(self):
        return all(os.path.exists(join(self.root, os.path.splitext(file.name)[0])) for file in files("widerface"))

    def __getitem__(self, index):
        entry = self.img_info[index]
        return self._transformed(open_picture(entry["img_path"]), entry.get("annotations"))

    def __len__(self):
        return len(self.img_info)

    def extra_repr(self):
        return f"Split: {self.split}"


class CelebA(Several, Pictures):
    """Faces of celebrities in `root`/celeba (Liu et al., 2015).

    `target_type` is one of, or a list of: "attr" (40 of 0 and 1), "identity", "bbox" (x, y, width, height), "landmarks" (ten coordinates).
    Raises RuntimeError when files are missing, ValueError for another type.
    """

    _not_found = NOT_FOUND_OR_CORRUPTED
    _says_so = True
    _sources = ("celeba",)

    def __init__(self, root, split="train", target_type="attr", transform=None, target_transform=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = split
        self.target_type = target_type if isinstance(target_type, list) else [target_type]
        if not self.target_type and self.target_transform is not None:
            raise RuntimeError("target_transform is specified but target_type is empty")
        self._folder = join(self.root, "celeba")
        self._prepare(download)
        wanted = {"train": 0, "valid": 1, "test": 2, "all": None}[verify_str_arg(split.lower(), "split", ("train", "valid", "test", "all"))]
        _, names, parts = self._table("list_eval_partition.txt")
        chosen = slice(None) if wanted is None else (parts[:, 0] == wanted)
        self.filename = names if wanted is None else [names[i] for i in chosen.nonzero()[:, 0].tolist()]
        self.identity = self._table("identity_CelebA.txt")[2][chosen]
        self.bbox = self._table("list_bbox_celeba.txt", 2)[2][chosen]
        self.landmarks_align = self._table("list_landmarks_align_celeba.txt", 2)[2][chosen]
        self.attr_names, _, attributes = self._table("list_attr_celeba.txt", 2)
        self.attr = (attributes[chosen] + 1) // 2  # from -1 and 1

    def _table(self, name, heads=0):
        """(names of the columns, of the rows, integers (rows, columns)); the names of the columns are the last of the `heads` lines."""
        with open(join(self._folder, name), newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file, delimiter=" ", skipinitialspace=True))
        return rows[heads - 1] if heads else [], [row[0] for row in rows[heads:]], torch.tensor([list(map(int, row[1:])) for row in rows[heads:]])

    def _check_exists(self):
        listed = [file for file in files("celeba") if file.name.endswith(".txt")]
        return all(utils.check_integrity(join(self._folder, file.name), file.md5) for file in listed) and os.path.isdir(join(self._folder, "img_align_celeba"))

    @property
    def _download_root(self):
        return self._folder

    def __getitem__(self, index):
        picture = open_picture(join(self._folder, "img_align_celeba", self.filename[index]))
        kinds = {"attr": lambda: self.attr[index], "identity": lambda: self.identity[index, 0], "bbox": lambda: self.bbox[index],
                 "landmarks": lambda: self.landmarks_align[index]}
        for kind in self.target_type:
            if kind not in kinds:
                raise ValueError(f'Target type "{kind}" is not recognized.')
        return self._transformed(picture, self._joined([kinds[kind]() for kind in self.target_type]))

    def __len__(self):
        return len(self.attr)

    def extra_repr(self):
        return f"Target type: {self.target_type}\nSplit: {self.split}"
