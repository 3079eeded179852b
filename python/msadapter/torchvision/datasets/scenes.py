"""Published sets with masks, boxes or texts for each picture: VOC, SBD, Cityscapes, Kitti, COCO, pets; LSUN. Their transforms take picture and target."""

import collections
import collections.abc
import csv
import json
import os
import shutil

from msadapter.torchvision.datasets import utils
from msadapter.torchvision.datasets._base import NOT_FOUND_OR_CORRUPTED, Collection, Several, join, lines_of, loadmat, open_picture, open_rgb
from msadapter.torchvision.datasets.sources import fetch, files
from msadapter.torchvision.datasets.utils import iterable_to_str, verify_str_arg


class _Scenes(Collection):
    """`images` and what `_target` makes of an index, transformed together."""

    def _picture(self, index):
        return open_rgb(self.images[index])

    def __getitem__(self, index):
        picture, target = self._picture(index), self._target(index)
        return (picture, target) if self.transforms is None else self.transforms(picture, target)

    def __len__(self):
        return len(self.images)


class _VOC(_Scenes):
    """A year of Pascal VOC under `root`, by the list of `image_set` (Everingham et al., 2010)."""

    _not_found = NOT_FOUND_OR_CORRUPTED

    def __init__(self, root, year="2012", image_set="train", download=False, transform=None, target_transform=None, transforms=None):
        super().__init__(root, transforms, transform, target_transform)
        self.year = verify_str_arg(year, "year", [str(number) for number in range(2007, 2013)])
        self.image_set = verify_str_arg(image_set, "image_set", ["train", "trainval", "val"] + ["test"] * (year == "2007"))
        file, = files("voc/2007-test" if (year, image_set) == ("2007", "test") else f"voc/{year}")
        self.filename, self.md5, self.url = file
        folder = join(self.root, *(["TrainVal"] if year == "2011" else []), "VOCdevkit", f"VOC{year}")
        if download:
            fetch(file, self.root)
        if not os.path.isdir(folder):
            raise RuntimeError(self._not_found)
        names = lines_of(join(folder, "ImageSets", self._LISTS, image_set + ".txt"))
        self.images = [join(folder, "JPEGImages", name + ".jpg") for name in names]
        self.targets = [join(folder, self._TARGETS, name + self._ENDING) for name in names]


class VOCSegmentation(_VOC):
    """Pictures and masks of classes, as pictures with a palette."""

    _LISTS, _TARGETS, _ENDING = "Segmentation", "SegmentationClass", ".png"

    @property
    def masks(self):
        """The masks' files."""
        return self.targets

    def _target(self, index):
        return open_picture(self.targets[index])


class VOCDetection(_VOC):
    """Pictures and their annotations, as dictionaries of texts."""

    _LISTS, _TARGETS, _ENDING = "Main", "Annotations", ".xml"

    @property
    def annotations(self):
        """The annotations' files."""
        return self.targets

    def _target(self, index):
        from xml.etree import ElementTree

        return self.parse_voc_xml(ElementTree.parse(self.targets[index]).getroot())

    @staticmethod
    def parse_voc_xml(node):
        """A node of XML as {tag: text or children}; children of one tag are a list where there are several, objects always."""
        children = list(node)
        if not children:
            return {node.tag: node.text.strip()} if node.text else {}
        found = collections.defaultdict(list)
        for child in map(VOCDetection.parse_voc_xml, children):
            for tag, value in child.items():
                found[tag].append(value)
        if node.tag == "annotation":
            found["object"] = [found["object"]]
        return {node.tag: {tag: values[0] if len(values) == 1 else values for tag, values in found.items()}}


class SBDataset(_Scenes):
    """Pictures of VOC 2011 with masks or boundaries (20, H, W) of classes, under `root` (Hariharan et al., 2011). Raises RuntimeError without SciPy."""

    _not_found = NOT_FOUND_OR_CORRUPTED
    num_classes = 20

    def __init__(self, root, image_set="train", mode="boundaries", download=False, transforms=None):
        super().__init__(root, transforms)
        self.image_set = verify_str_arg(image_set, "image_set", ("train", "val", "train_noval"))
        self.mode = verify_str_arg(mode, "mode", ("segmentation", "boundaries"))
        if download:
            self.download()
        if not os.path.isdir(self.root):
            raise RuntimeError(self._not_found)
        names = lines_of(join(self.root, image_set + ".txt"))
        self.images = [join(self.root, "img", name + ".jpg") for name in names]
        self.masks = [join(self.root, "cls", name + ".mat") for name in names]

    def download(self):
        """Fetch and unpack the archive and the list of VOC's pictures that aren't for validation."""
        archive, listed = files("sbd")
        fetch(archive, self.root)
        for name in ("cls", "img", "inst", "train.txt", "val.txt"):
            shutil.move(join(self.root, "benchmark_RELEASE", "dataset", name), self.root)
        fetch(listed, self.root)

    def _target(self, index):
        import numpy
        from PIL import Image

        entry = loadmat(self.masks[index], RuntimeError)["GTcls"][0]
        if self.mode == "segmentation":
            return Image.fromarray(entry["Segmentation"][0])
        return numpy.stack([entry["Boundaries"][0][i][0].toarray() for i in range(self.num_classes)])

    def extra_repr(self):
        return f"Image set: {self.image_set}\nMode: {self.mode}"


_CITYSCAPES = """unlabeled,0,255,void,0,0,1,0,0,0|ego vehicle,1,255,void,0,0,1,0,0,0|rectification border,2,255,void,0,0,1,0,0,0
out of roi,3,255,void,0,0,1,0,0,0|static,4,255,void,0,0,1,0,0,0|dynamic,5,255,void,0,0,1,111,74,0|ground,6,255,void,0,0,1,81,0,81
road,7,0,flat,1,0,0,128,64,128|sidewalk,8,1,flat,1,0,0,244,35,232|parking,9,255,flat,1,0,1,250,170,160|rail track,10,255,flat,1,0,1,230,150,140
building,11,2,construction,2,0,0,70,70,70|wall,12,3,construction,2,0,0,102,102,156|fence,13,4,construction,2,0,0,190,153,153
guard rail,14,255,construction,2,0,1,180,165,180|bridge,15,255,construction,2,0,1,150,100,100|tunnel,16,255,construction,2,0,1,150,120,90
pole,17,5,object,3,0,0,153,153,153|polegroup,18,255,object,3,0,1,153,153,153|traffic light,19,6,object,3,0,0,250,170,30
traffic sign,20,7,object,3,0,0,220,220,0|vegetation,21,8,nature,4,0,0,107,142,35|terrain,22,9,nature,4,0,0,152,251,152|sky,23,10,sky,5,0,0,70,130,180
person,24,11,human,6,1,0,220,20,60|rider,25,12,human,6,1,0,255,0,0|car,26,13,vehicle,7,1,0,0,0,142|truck,27,14,vehicle,7,1,0,0,0,70
bus,28,15,vehicle,7,1,0,0,60,100|caravan,29,255,vehicle,7,1,1,0,0,90|trailer,30,255,vehicle,7,1,1,0,0,110|train,31,16,vehicle,7,1,0,0,80,100
motorcycle,32,17,vehicle,7,1,0,0,0,230|bicycle,33,18,vehicle,7,1,0,119,11,32|license plate,-1,-1,vehicle,7,0,1,0,0,142"""


_CityscapesClass = collections.namedtuple("CityscapesClass", "name id train_id category category_id has_instances ignore_in_eval color")


def _cityscapes_classes():
    rows = (entry.split(",") for line in _CITYSCAPES.splitlines() for entry in line.split("|"))
    return [_CityscapesClass(name, int(number), int(train), group, int(group_number), several == "1", ignored == "1", tuple(map(int, colour)))
            for name, number, train, group, group_number, several, ignored, *colour in rows]


class Cityscapes(Several, _Scenes):
    """Streets under `root`, with fine or coarse annotations (Cordts et al., 2016).

    `target_type` is one of, or a list of: "instance", "semantic", "color" (pictures), "polygon" (a dictionary). Unpacks the published archives
    when they lie in `root`. Raises RuntimeError when neither is there.
    """

    CityscapesClass = _CityscapesClass
    classes = _cityscapes_classes()
    _ENDINGS = {"instance": "instanceIds.png", "semantic": "labelIds.png", "polygon": "polygons.json", "color": "color.png"}

    def __init__(self, root, split="train", mode="fine", target_type="instance", transform=None, target_transform=None, transforms=None):
        super().__init__(root, transforms, transform, target_transform)
        verify_str_arg(mode, "mode", ("fine", "coarse"))
        splits = ("train", "test", "val") if mode == "fine" else ("train", "train_extra", "val")
        verify_str_arg(split, "split", splits, f"Unknown value '{split}' for argument split if mode is '{mode}'. "
                                               f"Valid values are {{{iterable_to_str(splits)}}}.")
        self.mode, self.split = "gtFine" if mode == "fine" else "gtCoarse", split
        self.target_type = target_type if isinstance(target_type, list) else [target_type]
        for kind in self.target_type:
            verify_str_arg(kind, "target_type", tuple(self._ENDINGS))
        self.images_dir, self.targets_dir = join(self.root, "leftImg8bit", split), join(self.root, self.mode, split)
        self._unpack()
        self.images, self.targets = [], []
        for city in sorted(os.listdir(self.images_dir)):
            for name in sorted(os.listdir(join(self.images_dir, city))):
                start = join(self.targets_dir, city, f"{name.split('_leftImg8bit')[0]}_{self.mode}_")
                self.images.append(join(self.images_dir, city, name))
                self.targets.append([start + self._ENDINGS[kind] for kind in self.target_type])

    def _unpack(self):
        if os.path.isdir(self.images_dir) and os.path.isdir(self.targets_dir):
            return
        archives = ["leftImg8bit_trainextra.zip" if self.split == "train_extra" else "leftImg8bit_trainvaltest.zip",
                    "gtFine_trainvaltest.zip" if self.mode == "gtFine" else "gtCoarse.zip"]
        if not all(os.path.isfile(join(self.root, name)) for name in archives):
            raise RuntimeError('Dataset not found or incomplete. Please make sure all required folders for the specified "split" and "mode" are inside '
                               'the "root" directory')
        for name in archives:
            utils.extract_archive(join(self.root, name), self.root)

    def _target(self, index):
        targets = []
        for kind, path in zip(self.target_type, self.targets[index]):
            if kind == "polygon":
                with open(path, encoding="utf-8") as file:
                    targets.append(json.load(file))
            else:
                targets.append(open_picture(path))
        return self._joined(targets)

    def extra_repr(self):
        return f"Split: {self.split}\nMode: {self.mode}\nType: {self.target_type}"


class Kitti(_Scenes):
    """Roads in `root`/Kitti/raw (Geiger et al., 2012); targets are lists of dictionaries, None for the test pictures."""

    _not_found = "Dataset not found. You may use download=True to download it."
    _sources = ("kitti",)

    def __init__(self, root, train=True, transform=None, target_transform=None, transforms=None, download=False):
        super().__init__(root, transform=transform, target_transform=target_transform, transforms=transforms)
        self.train = train
        self._folder = join(self._download_root, "training" if train else "testing")
        self._prepare(download)
        names = sorted(os.listdir(join(self._folder, "image_2")))
        self.images = [join(self._folder, "image_2", name) for name in names]
        self.targets = [join(self._folder, "label_2", name.split(".")[0] + ".txt") for name in names] if train else []

    @property
    def _download_root(self):
        return join(self.root, type(self).__name__, "raw")

    def _check_exists(self):
        return all(os.path.isdir(join(self._folder, name)) for name in ("image_2", "label_2")[:1 + self.train])

    def _picture(self, index):
        return open_picture(self.images[index])

    def _target(self, index):
        if not self.train:
            return None
        target = []
        with open(self.targets[index], newline="", encoding="utf-8") as file:
            for words in csv.reader(file, delimiter=" "):
                numbers = [0.0] + [float(word) for word in words[1:15]]
                target.append({"type": words[0], "truncated": numbers[1], "occluded": int(words[2]), "alpha": numbers[3], "bbox": numbers[4:8],
                               "dimensions": numbers[8:11], "location": numbers[11:14], "rotation_y": numbers[14]})
        return target


class OxfordIIITPet(Several, _Scenes):
    """Cats and dogs of 37 breeds in `root`/oxford-iiit-pet (Parkhi et al., 2012).

    `target_types` is one of, or a list of: "category" (a number), "segmentation" (a picture).
    """

    _sources = ("oxfordiiitpet",)

    def __init__(self, root, split="trainval", target_types="category", transforms=None, transform=None, target_transform=None, download=False):
        self._split = verify_str_arg(split, "split", ("trainval", "test"))
        kinds = [target_types] if isinstance(target_types, str) else target_types
        self._target_types = [verify_str_arg(kind, "target_types", ("category", "segmentation")) for kind in kinds]
        super().__init__(root, transforms=transforms, transform=transform, target_transform=target_transform)
        self._folder = join(self.root, "oxford-iiit-pet")
        self._prepare(download)
        entries = [line.split()[:2] for line in lines_of(join(self._folder, "annotations", f"{split}.txt"))]
        self._labels = [int(number) - 1 for _, number in entries]
        breeds = sorted({(label, name.rsplit("_", 1)[0]) for (name, _), label in zip(entries, self._labels)})
        self.classes = [" ".join(part.title() for part in name.split("_")) for _, name in breeds]
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        self.images = [join(self._folder, "images", name + ".jpg") for name, _ in entries]
        self._masks = [join(self._folder, "annotations", "trimaps", name + ".png") for name, _ in entries]

    @property
    def _download_root(self):
        return self._folder

    def _check_exists(self):
        return all(os.path.isdir(join(self._folder, name)) for name in ("images", "annotations"))

    def _target(self, index):
        return self._joined([self._labels[index] if kind == "category" else open_picture(self._masks[index]) for kind in self._target_types])


class _Annotations:
    """A file of COCO's annotations, for where pycocotools isn't installed: pictures and annotations by id."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.dataset = json.load(file)
        self.imgs = {entry["id"]: entry for entry in self.dataset.get("images", [])}
        self.anns = {entry["id"]: entry for entry in self.dataset.get("annotations", [])}
        self.imgToAnns = collections.defaultdict(list)
        for entry in self.dataset.get("annotations", []):
            self.imgToAnns[entry["image_id"]].append(entry)


class CocoDetection(_Scenes):
    """Pictures in `root` with lists of annotations from `annFile` (Lin et al., 2014), read by pycocotools where that is installed."""

    def __init__(self, root, annFile, transform=None, target_transform=None, transforms=None):
        super().__init__(root, transforms, transform, target_transform)
        try:
            from pycocotools.coco import COCO
        except ImportError:
            COCO = _Annotations
        self.coco = COCO(annFile)
        self.ids = sorted(self.coco.imgs)

    def _picture(self, index):
        return open_rgb(join(self.root, self.coco.imgs[self.ids[index]]["file_name"]))

    def _target(self, index):
        return list(self.coco.imgToAnns[self.ids[index]])

    def __len__(self):
        return len(self.ids)


class CocoCaptions(CocoDetection):
    """Pictures in `root` with lists of captions from `annFile`."""

    def _target(self, index):
        return [entry["caption"] for entry in super()._target(index)]


class LSUNClass(Collection):
    """Pictures of one class in an LMDB folder. Raises ImportError without lmdb. The keys are read each time, where torchvision keeps them in a file."""

    def __init__(self, root, transform=None, target_transform=None):
        import lmdb

        super().__init__(root, transform=transform, target_transform=target_transform)
        self.env = lmdb.open(self.root, max_readers=1, readonly=True, lock=False, readahead=False, meminit=False)
        with self.env.begin(write=False) as transaction:
            self.length = transaction.stat()["entries"]
            self.keys = list(transaction.cursor().iternext(keys=True, values=False))

    def __getitem__(self, index):
        import io

        from PIL import Image

        with self.env.begin(write=False) as transaction:
            data = transaction.get(self.keys[index])
        return self._transformed(Image.open(io.BytesIO(data)).convert("RGB"), None)

    def __len__(self):
        return self.length


class LSUN(Collection):
    """Scenes of ten kinds in `root`/CLASS_lmdb (Yu et al., 2015). `classes` is a split, or a list of CLASS_SPLIT. Raises ValueError for others."""

    _CLASSES = ("bedroom", "bridge", "church_outdoor", "classroom", "conference_room", "dining_room", "kitchen", "living_room", "restaurant", "tower")
    _SPLITS = ("train", "val", "test")

    def __init__(self, root, classes="train", transform=None, target_transform=None):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes = self._verified(classes)
        self.dbs = [LSUNClass(join(self.root, name + "_lmdb"), transform) for name in self.classes]
        self.indices, self.length = [], 0
        for one in self.dbs:
            self.length += len(one)
            self.indices.append(self.length)

    def _verified(self, classes):
        if isinstance(classes, str) and classes in self._SPLITS:
            return ["test"] if classes == "test" else [f"{name}_{classes}" for name in self._CLASSES]
        if not isinstance(classes, collections.abc.Iterable):
            raise ValueError(f"Expected type str or Iterable for argument classes, but got type {type(classes)}.")
        classes = list(classes)
        for name in classes:
            verify_str_arg(name)
            kind, _, split = name.rpartition("_")
            text = "Unknown value '{}' for {}. Valid values are {{{}}}."
            verify_str_arg(kind, None, self._CLASSES, text.format(kind, "LSUN class", iterable_to_str(self._CLASSES)))
            verify_str_arg(split, None, self._SPLITS, text.format(split, "postfix", iterable_to_str(self._SPLITS)))
        return classes

    def __getitem__(self, index):
        import bisect

        if not -self.length <= index < self.length:
            raise IndexError(f"{type(self).__name__} index out of range")
        index %= self.length
        target = bisect.bisect_right(self.indices, index)
        picture, _ = self.dbs[target][index - (self.indices[target - 1] if target else 0)]
        return picture, target if self.target_transform is None else self.target_transform(target)

    def __len__(self):
        return self.length

    def extra_repr(self):
        return f"Classes: {self.classes}"
