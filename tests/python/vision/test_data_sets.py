"""Every data set against the real torchvision on one small tree that the test writes: lengths, entries, classes, printed forms, errors."""

import bz2
import csv
import gzip
import inspect
import itertools
import json
import lzma
import pathlib
import struct
import sys
import tarfile
import types
import zlib

import numpy
import pytest

import msadapter.pytorch as torch
from msadapter.torchvision import datasets

real_torch = pytest.importorskip("torch")
real = pytest.importorskip("torchvision").datasets
Image = pytest.importorskip("PIL.Image")
scipy_io = pytest.importorskip("scipy.io")

counter = itertools.count()


def picture(path, size=(12, 10), mode="RGB"):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    random = numpy.random.RandomState(next(counter))
    shape = size[::-1] + ((3,) if mode == "RGB" else ())
    Image.fromarray(random.randint(0, 256, shape, dtype=numpy.uint8)).save(path)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content) if isinstance(content, bytes) else path.write_text(content)


def mat(path, **content):
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy_io.savemat(path, content)


def idx(values, kind=8):
    return struct.pack(">BBBB", 0, 0, kind, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def grey(*shape):
    return numpy.random.RandomState(next(counter)).randint(0, 256, shape, dtype=numpy.uint8)


# One function for each set writes its tree; what it returns are the arguments to try, root aside.

def caltech101(root):
    for name, count in (("Faces", 2), ("ant", 1), ("BACKGROUND_Google", 1)):
        for i in range(1, count + 1):
            picture(root / f"caltech101/101_ObjectCategories/{name}/image_{i:04d}.jpg")
            annotated = {"Faces": "Faces_2"}.get(name, name)
            mat(root / f"caltech101/Annotations/{annotated}/annotation_{i:04d}.mat", obj_contour=numpy.arange(4.0 * i).reshape(2, -1))
    return [{}, {"target_type": "annotation"}, {"target_type": ["category", "annotation"]}, {"target_type": "other"}]


def caltech256(root):
    for i, name in enumerate(("001.ak47", "002.flag")):
        for k in (1, 2):
            picture(root / f"caltech256/256_ObjectCategories/{name}/{i + 1:03d}_{k:04d}.jpg")
        write(root / f"caltech256/256_ObjectCategories/{name}/notes.txt", "x")
    return [{}]


def celeba(root):
    names = [f"{i:06d}.jpg" for i in range(1, 8)]
    for name in names:
        picture(root / "celeba/img_align_celeba" / name)
    table = lambda heads, row: "\n".join(heads + [f"{name}  {row(i)}" for i, name in enumerate(names)]) + "\n"  # noqa: E731
    write(root / "celeba/list_eval_partition.txt", table([], lambda i: (0, 0, 1, 2, 0, 1, 2)[i]))
    write(root / "celeba/identity_CelebA.txt", table([], lambda i: 100 + i))
    write(root / "celeba/list_bbox_celeba.txt", table(["5", "image_id x_1 y_1 width height"], lambda i: f"{i} 2  30 40"))
    write(root / "celeba/list_landmarks_align_celeba.txt", table(["5", "lefteye_x lefteye_y"], lambda i: f"{i} 7"))
    write(root / "celeba/list_attr_celeba.txt", table(["5", "Bald Young Smiling "], lambda i: f"-1  1 {-1 if i % 2 else 1}"))
    return [{"split": s} for s in ("train", "valid", "test", "all", "none")] + [{"target_type": ["attr", "identity", "bbox", "landmarks"]}, {"target_type": []}]


def cityscapes(root):
    for mode, split in (("gtFine", "train"), ("gtCoarse", "train_extra")):
        for city in ("aachen", "bonn"):
            start = f"{city}_000000_000019"
            picture(root / f"leftImg8bit/{split}/{city}/{start}_leftImg8bit.png")
            for kind in ("instanceIds", "labelIds", "color"):
                picture(root / f"{mode}/{split}/{city}/{start}_{mode}_{kind}.png", mode="L")
            write(root / f"{mode}/{split}/{city}/{start}_{mode}_polygons.json", json.dumps({"city": city}))
    return [{}, {"target_type": ["instance", "polygon", "color", "semantic"]}, {"mode": "coarse", "split": "train_extra"}, {"split": "val"},
            {"split": "train_extra"}, {"mode": "other"}, {"target_type": "other"}]


def clevr(root):
    base = root / "clevr/CLEVR_v1.0"
    for split in ("train", "val", "test"):
        for i in range(3):
            picture(base / f"images/{split}/CLEVR_{split}_{i:06d}.png")
        scenes = [{"image_filename": f"CLEVR_{split}_{i:06d}.png", "objects": [{}] * (i + 1)} for i in range(3)]
        write(base / f"scenes/CLEVR_{split}_scenes.json", json.dumps({"scenes": scenes}))
    return [{}, {"split": "val"}, {"split": "test"}, {"split": "other"}]


def country211(root):
    for split, name in itertools.product(("train", "valid", "test"), ("AD", "ZW")):
        picture(root / f"country211/{split}/{name}/1.jpg")
    return [{}, {"split": "valid"}, {"split": "val"}]


def dtd(root):
    for name in ("banded", "dotted"):
        picture(root / f"dtd/dtd/images/{name}/{name}_0001.jpg")
    for split, partition in (("train", 1), ("val", 1), ("test", 10)):
        write(root / f"dtd/dtd/labels/{split}{partition}.txt", "dotted/dotted_0001.jpg\nbanded/banded_0001.jpg\n")
    return [{}, {"split": "test", "partition": 10}, {"split": "other"}]


def eurosat(root):
    for name in ("Forest", "River"):
        picture(root / f"eurosat/2750/{name}/{name}_1.jpg")
    return [{}]


def fer2013(root):
    for split in ("train", "test"):
        rows = [{"emotion": i, "pixels": " ".join(map(str, grey(48 * 48)))} for i in range(2)]
        (root / "fer2013").mkdir(exist_ok=True)
        with open(root / f"fer2013/{split}.csv", "w", newline="") as file:
            out = csv.DictWriter(file, ["emotion", "pixels"] if split == "train" else ["pixels"], extrasaction="ignore")
            out.writeheader()
            out.writerows(rows)
    return [{}, {"split": "test"}, {"split": "val"}]


def fgvc(root):
    data = root / "fgvc-aircraft-2013b/data"
    for name in ("0034309", "0034310"):
        picture(data / f"images/{name}.jpg")
    for level, file in (("variant", "variants"), ("family", "families"), ("manufacturer", "manufacturers")):
        write(data / f"{file}.txt", "707-320\nBoeing 717\n")
        write(data / f"images_{level}_trainval.txt", "0034309 Boeing 717\n0034310 707-320\n")
    return [{}, {"annotation_level": "family"}, {"annotation_level": "manufacturer"}, {"annotation_level": "other"}, {"split": "other"}]


def flickr8k(root):
    for name in ("1000_abc", "1001_xyz"):
        picture(root / f"{name}.jpg")
    page = "<html><table>" + "".join(f"<tr><td><a href='x'>http://www.flickr.com/photos/me/{n}/</a></td><td><ul><li>a dog {n} </li><li> two</li></ul></td></tr>"
                                     for n in (1001, 1000)) + "<tr><td>Image Not Found</td><td><ul><li>lost</li></ul></td></tr></table><li>no</li></html>"
    write(root / "page.html", page)
    return [{"ann_file": str(root / "page.html")}]


def flickr30k(root):
    for name in ("1000.jpg", "1001.jpg"):
        picture(root / name)
    write(root / "captions.token", "1001.jpg#0\ta dog\n1001.jpg#1\ta cat\n1000.jpg#0\ta cow\n")
    return [{"ann_file": str(root / "captions.token")}]


def flowers(root):
    for i in range(1, 7):
        picture(root / f"flowers-102/jpg/image_{i:05d}.jpg")
    mat(root / "flowers-102/imagelabels.mat", labels=numpy.array([[3, 1, 2, 1, 5, 6]], dtype=numpy.uint8))
    mat(root / "flowers-102/setid.mat", trnid=numpy.array([[1, 3]]), valid=numpy.array([[2, 4]]), tstid=numpy.array([[6, 5]]))
    return [{}, {"split": "val"}, {"split": "test"}, {"split": "other"}]


def food(root):
    for name in ("pie", "apple"):
        for i in (1, 2):
            picture(root / f"food-101/images/{name}/{i}.jpg")
    for split, i in (("train", 1), ("test", 2)):
        write(root / f"food-101/meta/{split}.json", json.dumps({name: [f"{name}/{i}"] for name in ("pie", "apple")}))
    return [{}, {"split": "test"}, {"split": "val"}]


def gtsrb(root):
    for name in ("00000", "00001"):
        picture(root / f"gtsrb/GTSRB/Training/{name}/00000_00000.ppm")
    picture(root / "gtsrb/GTSRB/Final_Test/Images/00000.ppm")
    write(root / "gtsrb/GT-final_test.csv", "Filename;Width;ClassId\n00000.ppm;53;16\n")
    return [{}, {"split": "test"}, {"split": "val"}]


def imagenet(root):
    for split, name in itertools.product(("train", "val"), ("n01440764", "n01443537")):
        picture(root / f"{split}/{name}/1.jpg")
    real_torch.save(({"n01440764": ("tench", "Tinca tinca"), "n01443537": ("goldfish",)}, ["n01443537", "n01440764"]), root / "meta.bin")
    return [{}, {"split": "val"}, {"split": "test"}]


def inaturalist(root):
    for i, species in enumerate(("Animalia_Chordata_Aves_A_B_C_d", "Animalia_Chordata_Aves_A_E_F_g", "Plantae_P_Q_R_S_T_u")):
        picture(root / f"2021_train/{i:05d}_{species}/a{i}.jpg")
    for group, name in (("Birds", "0"), ("Plants", "1")):
        picture(root / f"2018/{group}/{name}/{group}.jpg")
        picture(root / f"2017/{group}/Some {group}/{group}.jpg")
    picture(root / "2019/Birds/name/1.jpg")
    picture(root / "2021_valid/wrong/1.jpg")
    return [{}, {"target_type": ["full", "kingdom", "genus"]}, {"version": "2018", "target_type": "super"},
            {"version": "2017", "target_type": ["full", "super"]},
            {"version": "2019"}, {"version": "2021_valid"}, {"version": "2020"}, {"target_type": "super"}]


def mnist_like(name):
    def build(root):
        raw = root / name / "raw"
        for kind, count in (("train", 5), ("t10k", 3)):
            write(raw / f"{kind}-images-idx3-ubyte", idx(grey(count, 28, 28)))
            write(raw / f"{kind}-labels-idx1-ubyte", idx(grey(count) % 10))
        return [{}, {"train": False}]
    return build


def emnist(root):
    for split, kind in (("letters", "train"), ("byclass", "test")):
        write(root / f"EMNIST/raw/emnist-{split}-{kind}-images-idx3-ubyte", idx(grey(4, 28, 28)))
        write(root / f"EMNIST/raw/emnist-{split}-{kind}-labels-idx1-ubyte", idx(grey(4) % 26))
    return [{"split": "letters"}, {"split": "byclass", "train": False}, {"split": "other"}, {"split": "digits"}]


def qmnist(root):
    for name, count in (("qmnist-train", 5), ("qmnist-test", 10003), ("xnist", 2)):
        write(root / f"QMNIST/raw/{name}-images-idx3-ubyte", idx(numpy.zeros((count, 2, 2), numpy.uint8)))
        write(root / f"QMNIST/raw/{name}-labels-idx2-int", idx(numpy.arange(count * 8).reshape(count, 8).astype(">i4"), 12))
    return [{}, {"compat": False}, {"what": "test50k"}, {"what": "nist"}, {"what": "other"}]


def kitti(root):
    for i in range(2):
        for part in ("training", "testing"):
            picture(root / f"Kitti/raw/{part}/image_2/{i:06d}.png")
        write(root / f"Kitti/raw/training/label_2/{i:06d}.txt", "Car 0.00 0 -1.67 642.2 178.5 680.1 208.7 1.38 1.49 3.32 2.41 1.66 34.98 -1.6\n" * (i + 1))
    return [{}, {"train": False}]


def lfw(view):
    def build(root):
        base = root / "lfw-py"
        for name, count in (("Ann", 2), ("Bob", 2)):
            for i in range(1, count + 1):
                picture(base / f"lfw_funneled/{name}/{name}_{i:04d}.jpg")
        write(base / "lfw-funneled.tgz", "")
        write(base / "lfw-names.txt", "Ann\t2\nBob\t2\n")
        write(base / "people.txt", "2\n1\nAnn\t2\n1\nBob\t2\n")
        write(base / "peopleDevTrain.txt", "2\nAnn\t2\nBob\t1\n")
        write(base / "pairs.txt", "2\t1\nAnn\t1\t2\nAnn\t1\tBob\t2\nBob\t1\t2\nAnn\t2\tBob\t1\n")
        write(base / "pairsDevTrain.txt", "1\nAnn\t1\t2\nAnn\t1\tBob\t2\n")
        return [{}, {"split": "train"}, {"split": "test"}, {"image_set": "original"}, {"image_set": "other"}, {"split": "val"}]
    return build


def omniglot(root):
    for part, alphabet in itertools.product(("images_background", "images_evaluation"), ("Greek", "Latin")):
        picture(root / f"omniglot-py/{part}/{alphabet}/character01/0001_01.png", mode="L")
        write(root / f"omniglot-py/{part}.zip", "")
    return [{}, {"background": False}]


def pets(root):
    for name in ("Abyssinian_1", "great_pyrenees_2"):
        picture(root / f"oxford-iiit-pet/images/{name}.jpg")
        picture(root / f"oxford-iiit-pet/annotations/trimaps/{name}.png", mode="L")
    for split in ("trainval", "test"):
        write(root / f"oxford-iiit-pet/annotations/{split}.txt", "Abyssinian_1 1 1 1\ngreat_pyrenees_2 2 2 1\n")
    return [{}, {"split": "test", "target_types": ["category", "segmentation"]}, {"target_types": []}, {"target_types": "other"}]


def phototour(root):
    folder = root / "liberty"
    folder.mkdir()
    for i in range(2):
        Image.fromarray(grey(128, 192)).save(folder / f"patches{i:04d}.bmp")
    write(folder / "info.txt", "".join(f"{i // 2} 0\n" for i in range(12)))
    write(folder / "m50_100000_100000_0.txt", "0 0 0 1 0 0 0\n3 1 0 7 3 0 0\n")
    return [{"name": "liberty"}, {"name": "liberty", "train": False}]


def places(root):
    write(root / "categories_places365.txt", "/a/airfield 0\n/b/bridge 1\n")
    write(root / "places365_val.txt", "Places365_val_1.jpg 1\nPlaces365_val_2.jpg 0\n")
    write(root / "places365_train_standard.txt", "/a/airfield/1.jpg 0\n")
    for i in (1, 2):
        picture(root / f"val_large/Places365_val_{i}.jpg")
    picture(root / "data_256_standard/a/airfield/1.jpg")
    return [{"split": "val"}, {"small": True}, {"split": "train-challenge"}, {"split": "other"}]


def sst2(root):
    for split, name in itertools.product(("train", "valid", "test"), ("negative", "positive")):
        picture(root / f"rendered-sst2/{split}/{name}/0.png")
    return [{}, {"split": "val"}, {"split": "other"}]


def sbd(root):
    import scipy.sparse

    picture(root / "img/2008_1.jpg")
    edges = numpy.empty((20, 1), dtype=object)
    for i in range(20):
        edges[i, 0] = scipy.sparse.csc_matrix(grey(4, 5) > 200).astype(float)
    mat(root / "cls/2008_1.mat", GTcls={"Boundaries": edges, "Segmentation": grey(4, 5), "CategoriesPresent": 1})
    write(root / "train.txt", "2008_1\n")
    return [{}, {"mode": "segmentation"}, {"mode": "other"}, {"image_set": "test"}]


def sbu(root):
    picture(root / "dataset/a.jpg")
    picture(root / "dataset/c.jpg")
    write(root / "SBUCaptionedPhotoDataset.tar.gz", "")
    write(root / "dataset/SBU_captioned_photo_dataset_urls.txt", "".join(f"http://x.org/1/{n}.jpg\n" for n in "abc"))
    write(root / "dataset/SBU_captioned_photo_dataset_captions.txt", "one\ntwo\nthree\n")
    return [{"download": False}, {}]


def semeion(root):
    random = numpy.random.RandomState(0)
    rows = [" ".join([f"{x:.4f}" for x in random.randint(0, 2, 256)] + ["1" if k == i else "0" for k in range(10)]) + " \n" for i in (3, 0, 9)]
    write(root / "semeion.data", "".join(rows))
    return [{}]


def cars(root):
    base = root / "stanford_cars"
    kind = [("fname", object), ("class", object)]
    for split, place in (("train", "devkit/cars_train_annos.mat"), ("test", "cars_test_annos_withlabels.mat")):
        for i in (1, 2):
            picture(base / f"cars_{split}/{i:05d}.jpg")
        mat(base / place, annotations=numpy.array([("00001.jpg", 2), ("00002.jpg", 1)], dtype=kind))
    mat(base / "devkit/cars_meta.mat", class_names=numpy.array(["Audi", "BMW X5"], dtype=object))
    return [{}, {"split": "test"}, {"split": "val"}]


def stl10(root):
    base = root / "stl10_binary"
    for name, count in (("train", 4), ("test", 2), ("unlabeled", 2)):
        write(base / f"{name}_X.bin", grey(count, 3, 96, 96).tobytes())
        if name != "unlabeled":
            write(base / f"{name}_y.bin", (grey(count) % 10 + 1).tobytes())
    write(base / "fold_indices.txt", "0 2\n" * 9 + "3 1 \n")
    write(base / "class_names.txt", "airplane\nbird\n")
    return [{}, {"split": "test"}, {"split": "unlabeled"}, {"split": "train+unlabeled", "folds": 0}, {"folds": 9}, {"folds": 10},
            {"folds": "1"}, {"split": "x"}]


def sun397(root):
    picture(root / "SUN397/a/abbey/sun_1.jpg")
    picture(root / "SUN397/b/building/outdoor/sun_2.jpg")
    write(root / "SUN397/ClassName.txt", "/a/abbey\n/b/building/outdoor\n")
    return [{}]


def svhn(root):
    for split in ("train", "test", "extra"):
        mat(root / f"{split}_32x32.mat", X=grey(32, 32, 3, 4), y=numpy.array([[1], [10], [9], [3]], dtype=numpy.uint8))
    return [{}, {"split": "extra"}, {"split": "val"}]


def usps(root):
    random = numpy.random.RandomState(0)
    for name in ("usps.bz2", "usps.t.bz2"):
        lines = [f"{label} " + " ".join(f"{i + 1}:{x:.4f}" for i, x in enumerate(random.uniform(-1, 1, 256))) + "\n" for label in (10, 3)]
        write(root / name, bz2.compress("".join(lines).encode()))
    return [{}, {"train": False}]


def voc(root):
    annotation = "<annotation><folder>V</folder><size><width>5</width></size>{}</annotation>"
    one = "<object><name>cat</name><bndbox><xmin>1</xmin></bndbox><part><name>head</name></part><part><name>hand</name></part></object>"
    for base in ("VOCdevkit/VOC2012", "TrainVal/VOCdevkit/VOC2011", "VOCdevkit/VOC2007"):
        for i in (1, 2):
            picture(root / f"{base}/JPEGImages/{i}.jpg")
            write(root / f"{base}/Annotations/{i}.xml", annotation.format(one * i))
            Image.fromarray(grey(10, 12)).convert("P").save(_made(root / f"{base}/SegmentationClass/{i}.png"))
        for kind, part in itertools.product(("Main", "Segmentation"), ("train", "trainval", "val", "test")):
            write(root / f"{base}/ImageSets/{kind}/{part}.txt", "1\n2\n")
    return [{}, {"year": "2011", "image_set": "val"}, {"year": "2007", "image_set": "test"}, {"year": "2010"}, {"year": "2013"}, {"image_set": "test"}]


def _made(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def widerface(root):
    base = root / "widerface"
    for split in ("train", "val", "test"):
        for i in range(2):
            picture(base / f"WIDER_{split}/images/0--Parade/{i}.jpg")
    one = "449 330 122 149 0 1 0 2 0 1 \n"
    for split in ("train", "val"):
        write(base / f"wider_face_split/wider_face_{split}_bbx_gt.txt", f"0--Parade/0.jpg\n2\n{one}{one}0--Parade/1.jpg\n0\n0 0 0 0 0 0 0 0 0 0 \n")
    write(base / "wider_face_split/wider_face_test_filelist.txt", "0--Parade/0.jpg\n0--Parade/1.jpg\n")
    return [{}, {"split": "val"}, {"split": "test"}, {"split": "other"}]


def _flo(path, shape=(6, 7)):
    values = numpy.random.RandomState(next(counter)).randn(*shape, 2).astype("<f4")
    write(path, b"PIEH" + struct.pack("<ii", shape[1], shape[0]) + values.tobytes())


def _masked_png(path, shape=(5, 7)):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    values = numpy.random.RandomState(next(counter)).randint(0, 65536, shape + (3,)).astype(">u2")
    values[..., 2] %= 2
    rows = b"".join(b"\0" + row.tobytes() for row in values)
    head = struct.pack(">IIBBBBB", shape[1], shape[0], 16, 2, 0, 0, 0)
    write(path, b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def sintel(root):
    for scene in ("alley", "bamboo"):
        for i in range(3):
            for part in ("training/clean", "training/final", "test/clean"):
                picture(root / f"Sintel/{part}/{scene}/frame_{i}.png")
            if i < 2:
                _flo(root / f"Sintel/training/flow/{scene}/frame_{i}.flo")
    return [{}, {"split": "test"}, {"pass_name": "both"}, {"pass_name": "other"}, {"split": "val"}]


def kitti_flow(root):
    for part, i in itertools.product(("training", "testing"), range(2)):
        for k in (10, 11):
            picture(root / f"KittiFlow/{part}/image_2/{i:06d}_{k}.png")
        if part == "training":
            _masked_png(root / f"KittiFlow/{part}/flow_occ/{i:06d}_10.png")
    return [{}, {"split": "test"}, {"split": "val"}]


def hd1k(root):
    for i in range(3):
        picture(root / f"hd1k/hd1k_input/image_2/000003_{i:04d}.png")
        _masked_png(root / f"hd1k/hd1k_flow_gt/flow_occ/000003_{i:04d}.png")
    for k in (10, 11):
        picture(root / f"hd1k/hd1k_challenge/image_2/0000_{k}.png")
    return [{}, {"split": "test"}, {"split": "val"}]


def chairs(root):
    for i in range(1, 4):
        picture(root / f"FlyingChairs/data/{i:05d}_img1.ppm")
        picture(root / f"FlyingChairs/data/{i:05d}_img2.ppm")
        _flo(root / f"FlyingChairs/data/{i:05d}_flow.flo")
    write(root / "FlyingChairs/FlyingChairs_train_val.txt", "1\n2\n1\n")
    return [{}, {"split": "val"}, {"split": "test"}]


def things(root):
    for side, i in itertools.product(("left", "right"), range(3)):
        for rendering in ("frames_cleanpass", "frames_finalpass"):
            picture(root / f"FlyingThings3D/{rendering}/TRAIN/A/0000/{side}/{i:04d}.png")
        for direction in ("into_future", "into_past"):
            values = numpy.random.RandomState(next(counter)).randn(5, 6, 3)
            data = values.astype("<f4" if i else ">f4").tobytes()
            write(root / f"FlyingThings3D/optical_flow/TRAIN/A/0000/{direction}/{side}/{i:04d}.pfm", b"PF\n6 5\n" + (b"-1.0\n" if i else b"1.0\n") + data)
    return [{}, {"pass_name": "both", "camera": "both"}, {"pass_name": "final", "camera": "right"}, {"split": "test"}, {"camera": "middle"}]


SETS = {"Caltech101": caltech101, "Caltech256": caltech256, "CelebA": celeba, "Cityscapes": cityscapes, "CLEVRClassification": clevr, "Country211": country211,
        "DTD": dtd, "EuroSAT": eurosat, "FER2013": fer2013, "FGVCAircraft": fgvc, "Flickr8k": flickr8k, "Flickr30k": flickr30k, "Flowers102": flowers,
        "Food101": food, "GTSRB": gtsrb, "ImageNet": imagenet, "INaturalist": inaturalist, "MNIST": mnist_like("MNIST"), "KMNIST": mnist_like("KMNIST"),
        "FashionMNIST": mnist_like("FashionMNIST"), "EMNIST": emnist, "Kitti": kitti, "LFWPeople": lfw("people"), "LFWPairs": lfw("pairs"),
        "Omniglot": omniglot, "OxfordIIITPet": pets, "PhotoTour": phototour, "Places365": places, "RenderedSST2": sst2, "SBDataset": sbd, "SBU": sbu,
        "SEMEION": semeion, "StanfordCars": cars, "STL10": stl10, "SUN397": sun397, "SVHN": svhn, "USPS": usps, "VOCDetection": voc, "VOCSegmentation": voc,
        "WIDERFace": widerface, "Sintel": sintel, "KittiFlow": kitti_flow, "HD1K": hd1k, "FlyingChairs": chairs, "FlyingThings3D": things}
UNORDERED = {"Kitti", "Cityscapes", "SUN397", "INaturalist", "Omniglot", "Sintel"}  # torchvision takes files as the file system lists them


@pytest.fixture(autouse=True)
def any_sum(monkeypatch):
    """Small files don't have the published sums."""
    for module in (real.utils, datasets.utils):
        monkeypatch.setattr(module, "check_md5", lambda path, md5, **options: True)


def plain(value):
    """What an entry holds, in a form that compares."""
    if isinstance(value, Image.Image):
        return value.mode, value.size, value.tobytes(), tuple(value.getpalette() or ())
    if isinstance(value, (torch.Tensor, real_torch.Tensor)):
        return str(value.dtype).replace("msadapter.pytorch", "torch"), tuple(value.shape), value.numpy().tolist()
    if isinstance(value, numpy.ndarray):
        return str(value.dtype), value.shape, value.tolist()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def entries(data):
    return [plain(data[i]) for i in range(min(len(data), 12))]


def made(owner, name, root, options):
    try:
        return getattr(owner, name)(str(root), **options)
    except Exception as error:
        return error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(SETS))
def test_a_small_tree(name, tmp_path):
    tries = SETS[name](tmp_path)
    for options in tries:
        mine, theirs = made(datasets, name, tmp_path, options), made(real, name, tmp_path, options)
        if isinstance(theirs, Exception):
            assert type(mine) is type(theirs) and str(mine) == str(theirs), (options, mine, theirs)
            continue
        if isinstance(mine, Exception):
            raise mine
        assert len(mine) == len(theirs) > 0 and repr(mine) == repr(theirs)
        for attribute in ("classes", "class_to_idx", "targets", "labels", "split", "train", "wnids", "wnid_to_idx", "attr_names", "categories",
                          "all_categories", "categories_index", "target_type", "data", "means", "stds", "lens", "mean", "annotations", "ids", "captions",
                          "photos"):
            if hasattr(theirs, attribute) and not (name in UNORDERED and attribute == "targets"):
                assert plain(getattr(mine, attribute)) == plain(getattr(theirs, attribute)), attribute
        if name == "CelebA":
            assert mine.filename == theirs.filename
        left, right = entries(mine), entries(theirs)
        assert left == right or name in UNORDERED and sorted(map(repr, left)) == sorted(map(repr, right))
        if name in UNORDERED and len(mine) > 12:
            assert sorted(map(repr, (plain(mine[i]) for i in range(len(mine))))) == sorted(map(repr, (plain(theirs[i]) for i in range(len(mine)))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(SETS))
def test_transforms_are_called(name, tmp_path):
    options = SETS[name](tmp_path)[0]
    accepted = inspect.signature(getattr(real, name)).parameters
    own = {"transform": lambda x: ("picture", plain(x))}
    if "target_transform" in accepted or name in ("ImageNet", "EMNIST"):
        own["target_transform"] = lambda y: ("target", plain(y))
    elif "transform" not in accepted:
        own = {"transforms": lambda *values: tuple(("both", plain(value)) for value in values)}
    left, right = (getattr(owner, name)(str(tmp_path), **options, **own) for owner in (datasets, real))
    assert repr(sorted(map(repr, map(plain, entries(left))))) == repr(sorted(map(repr, map(plain, entries(right)))))


@pytest.mark.parametrize("name", [n for n in SETS if n not in ("USPS", "Flickr8k", "Flickr30k", "PhotoTour", "SBDataset", "Sintel", "ImageNet")])
def test_an_empty_folder(name, tmp_path):
    options = {"EMNIST": {"split": "letters"}, "SBU": {"download": False}, "SEMEION": {"download": False}}.get(name, {})
    if "download" in inspect.signature(getattr(real, name)).parameters:
        options = {**options, "download": False}
    mine, theirs = (made(owner, name, tmp_path, options) for owner in (datasets, real))
    assert isinstance(theirs, Exception) and type(mine) is type(theirs) and str(mine) == str(theirs)


def test_imagenet_unpacks_its_archives(tmp_path):
    def tar(path, files, mode="w"):
        with tarfile.open(path, mode) as archive:
            for name, file in files:
                archive.add(file, name)

    work, root = tmp_path / "work", tmp_path / "root"
    root.mkdir()
    for i, wnid in enumerate(("n01", "n02")):
        picture(work / f"{wnid}_1.jpg")
        picture(work / f"ILSVRC2012_val_{i + 1}.jpg")
        tar(work / f"{wnid}.tar", [(f"{wnid}_1.JPEG", work / f"{wnid}_1.jpg")])
    synsets = numpy.array([(1, "n01", "tench, fish", "a fish", 0), (2, "n02", "bird", "a bird", 0), (3, "n00", "animal", "both", 2)],
                          dtype=[("ILSVRC2012_ID", object), ("WNID", object), ("words", object), ("gloss", object), ("num_children", object)])
    mat(work / "meta.mat", synsets=synsets)
    write(work / "truth.txt", "2\n1\n")
    data = "ILSVRC2012_devkit_t12/data/"
    tar(root / "ILSVRC2012_devkit_t12.tar.gz", [(data + "meta.mat", work / "meta.mat"),
                                                (data + "ILSVRC2012_validation_ground_truth.txt", work / "truth.txt")], "w:gz")
    tar(root / "ILSVRC2012_img_train.tar", [(f"{wnid}.tar", work / f"{wnid}.tar") for wnid in ("n01", "n02")])
    tar(root / "ILSVRC2012_img_val.tar", [(f"ILSVRC2012_val_{i}.JPEG", work / f"ILSVRC2012_val_{i}.jpg") for i in (1, 2)])
    for split in ("train", "val"):
        mine, theirs = datasets.ImageNet(str(root), split), real.ImageNet(str(root), split)
        assert entries(mine) == entries(theirs) and mine.class_to_idx == theirs.class_to_idx
        assert mine.classes == theirs.classes == [("tench", "fish"), ("bird",)]
    assert [str(path) for path, _ in mine.samples] == [str(root / "val/n01/ILSVRC2012_val_2.JPEG"), str(root / "val/n02/ILSVRC2012_val_1.JPEG")]
    with pytest.raises(RuntimeError, match="The archive ILSVRC2012_devkit_t12.tar.gz is not present"):
        datasets.ImageNet(str(tmp_path / "none"))


def test_coco(tmp_path):
    for i in (1, 2):
        picture(tmp_path / f"{i}.jpg")
    notes = [{"id": 5, "image_id": 2, "caption": "a"}, {"id": 6, "image_id": 1, "caption": "b"}, {"id": 7, "image_id": 2, "caption": "c"}]
    write(tmp_path / "notes.json", json.dumps({"images": [{"id": i, "file_name": f"{i}.jpg"} for i in (2, 1)], "annotations": notes}))
    boxes, texts = (kind(str(tmp_path), str(tmp_path / "notes.json")) for kind in (datasets.CocoDetection, datasets.CocoCaptions))
    assert boxes.ids == [1, 2] and len(texts) == 2
    assert [boxes[i][1] for i in range(len(boxes))] == [[notes[1]], [notes[0], notes[2]]]
    assert [texts[i][1] for i in range(len(texts))] == [["b"], ["a", "c"]]
    assert plain(boxes[0][0]) == plain(Image.open(tmp_path / "1.jpg").convert("RGB"))


class _Store(dict):
    """Stands for a file of h5py, and for an environment of lmdb."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def begin(self, write):
        assert not write
        return self

    def stat(self):
        return {"entries": len(self)}

    def cursor(self):
        return self

    def iternext(self, keys, values):
        return iter(self)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The real LSUN leaves a file in the working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_pcam(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    for owner in (datasets, real):
        with pytest.raises(RuntimeError, match="h5py is not found"):
            owner.PCAM(str(here))
    stores = {"x": _Store(x=grey(3, 6, 6, 3)), "y": _Store(y=grey(3, 1, 1, 1) % 2)}
    monkeypatch.setitem(sys.modules, "h5py", types.SimpleNamespace(File=lambda path, mode="r": stores[str(path)[-4]]))
    for split, name in (("train", "train"), ("val", "valid"), ("test", "test")):
        for kind in "xy":
            write(here / f"pcam/camelyonpatch_level_2_split_{name}_{kind}.h5", "")
        mine, theirs = (owner.PCAM(str(here), split) for owner in (datasets, real))
        assert entries(mine) == entries(theirs) and len(mine) == len(theirs) == 3 and repr(mine) == repr(theirs)


def test_lsun(here, monkeypatch):
    stores = {}
    for name in ("bedroom_val", "tower_val", "tower_train"):
        store = _Store()
        for i in range(2):
            picture(here / "one.png")
            store[f"{name}{i}".encode()] = (here / "one.png").read_bytes()
        stores[name] = store
    monkeypatch.setitem(sys.modules, "lmdb", types.SimpleNamespace(open=lambda root, **options: stores[root.rsplit("/", 1)[-1][:-5]]))
    for classes in (["bedroom_val", "tower_val"], ("tower_train",), ["bed_val"], ["tower_none"], [3], 7):
        mine, theirs = (made(owner, "LSUN", here, {"classes": classes, "target_transform": abs}) for owner in (datasets, real))
        if isinstance(theirs, Exception):
            assert type(mine) is type(theirs) is ValueError
        else:
            assert entries(mine) == entries(theirs) and repr(mine) == repr(theirs)
    assert mine is not None and datasets.LSUN._verified(datasets.LSUN, "test") == ["test"] and len(datasets.LSUN._verified(datasets.LSUN, "val")) == 10
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(ImportError):
        datasets.LSUNClass(str(here))


def test_qmnist(tmp_path):
    """Not against torchvision 0.14, which turns the order of the labels round where it means to turn that of their bytes."""
    for options in qmnist(tmp_path):
        if options.get("what") == "other":
            with pytest.raises(ValueError, match="Unknown value 'other' for argument what"):
                datasets.QMNIST(str(tmp_path), **options)
            continue
        mine, theirs = (owner.QMNIST(str(tmp_path), **options, target_transform=plain) for owner in (datasets, real))
        first = 10000 if options.get("what") == "test50k" else 0
        assert len(mine) == len(theirs) and repr(mine) == repr(theirs) and mine[1][0].tobytes() == theirs[1][0].tobytes()
        rows = [list(range(8 * i, 8 * i + 8)) for i in range(first, first + len(mine))]
        assert mine.targets.tolist() == rows and mine[1][1] == (rows[1][0] if options.get("compat", True) else ("torch.int64", (8,), rows[1]))
    assert len(datasets.QMNIST(str(tmp_path), "test10k")) == 10000 and datasets.QMNIST(str(tmp_path), train=False).what == "test"


def test_old_mnist(tmp_path):
    folder = tmp_path / "MNIST" / "processed"
    folder.mkdir(parents=True)
    for name in ("training.pt", "test.pt"):
        real_torch.save((real_torch.from_numpy(grey(3, 28, 28)), real_torch.tensor([1, 2, 3])), folder / name)
    for train in (True, False):
        mine, theirs = (owner.MNIST(str(tmp_path), train) for owner in (datasets, real))
        assert entries(mine) == entries(theirs)
    with pytest.warns(UserWarning, match="train_labels has been renamed targets"):
        assert mine.train_labels is mine.targets


def test_damaged_files_are_errors(tmp_path):
    from msadapter.torchvision.datasets.flow import _read_flo, _read_pfm
    from msadapter.torchvision.datasets.mnist import read_idx, read_image_file, read_label_file

    for data in (b"", b"PIEH", b"JUNKxxxxxxxx", b"PIEH" + struct.pack("<ii", 1 << 30, 1 << 30) + b"x" * 8, b"PIEH" + struct.pack("<ii", -1, -1) + b"x" * 8):
        write(tmp_path / "a.flo", data)
        with pytest.raises(ValueError):
            _read_flo(str(tmp_path / "a.flo"))
    for data in (b"", b"PF\n", b"PX\n1 1\n-1\nxxxx", b"Pf\n99999999 99999999\n-1\nxxxx", b"Pf\n1 1\nword\nxxxx"):
        write(tmp_path / "a.pfm", data)
        with pytest.raises(ValueError):
            _read_pfm(str(tmp_path / "a.pfm"))
    for data in (b"", b"\0\0\x08\x03", b"\0\0\x07\x01\0\0\0\1x", b"\0\0\x0c\x01\xff\xff\xff\xffxxxx", b"\1\0\x08\x01\0\0\0\1x"):
        write(tmp_path / "a", data)
        with pytest.raises(RuntimeError):
            read_idx(str(tmp_path / "a"))
    write(tmp_path / "a", idx(grey(3)))
    with pytest.raises(ValueError):
        read_image_file(str(tmp_path / "a"))
    write(tmp_path / "a", idx(numpy.arange(3, dtype=">i4"), 12))
    with pytest.raises(TypeError):
        read_label_file(str(tmp_path / "a"))


def test_archives_of_one_file(tmp_path):
    for ending, packed in ((".gz", gzip.compress(b"abc")), (".xz", lzma.compress(b"abc"))):
        write(tmp_path / ("file" + ending), packed)
        datasets.utils.extract_archive(str(tmp_path / ("file" + ending)))
        assert (tmp_path / "file").read_bytes() == b"abc"


def test_every_file_that_is_listed_has_a_place_or_is_a_member():
    from msadapter.torchvision.datasets import sources

    for key, files in sources._table().items():
        for file in files:
            assert file.md5 is None or len(file.md5) == 32 and set(file.md5) <= set("0123456789abcdef"), key
            assert file.url is None or file.url.startswith(("http://", "https://", "drive:")), key
    with pytest.raises(KeyError, match="knows no"):
        sources.files("nothing")


@pytest.mark.parametrize("name", [n for n in SETS if "download" in inspect.signature(getattr(real, n)).parameters and n != "INaturalist"])
def test_download_asks_for_the_same_places(name, tmp_path, monkeypatch):
    """What download=True fetches first, and under which name."""
    class Asked(Exception):
        pass

    def stop(url, root, filename=None, md5=None, **options):
        raise Asked(str(url).replace("https://drive.google.com/file/d/", "drive:").replace("/view", ""), filename or str(url).rsplit("/", 1)[-1], md5)

    def stop_drive(file_id, root, filename=None, md5=None):
        stop("drive:" + file_id, root, filename, md5)

    def asked(owner, modules):
        for module in modules:
            for function, replacement in (("download_url", stop), ("download_file_from_google_drive", stop_drive)):
                if hasattr(module, function):
                    monkeypatch.setattr(module, function, replacement)
            if hasattr(module, "download_and_extract_archive"):
                monkeypatch.setattr(module, "download_and_extract_archive", lambda url, download_root, extract_root=None, filename=None, md5=None, **options:
                                    stop(url, download_root, filename, md5))
        try:
            getattr(owner, name)(str(tmp_path / owner.__name__), download=True, **{"PhotoTour": {"name": "liberty"}}.get(name, {}))
        except Asked as found:
            return found.args

    mine = asked(datasets, [datasets.utils, sys.modules[getattr(datasets, name).__module__]])
    theirs = asked(real, [sys.modules[getattr(real, name).__module__], real.utils])
    assert mine is not None and mine == theirs


def test_inaturalist_downloads_and_renames(tmp_path, monkeypatch):
    def unpacked(url, root, filename=None, md5=None):
        assert (url.rsplit("/", 1)[-1], filename, md5) == ("train_mini.tar.gz", "2021_train_mini.tgz", "db6ed8330e634445efc8fec83ae81442")
        picture(pathlib.Path(root) / "train_mini/00000_A_B_C_D_E_F_g/1.jpg")

    monkeypatch.setattr(datasets.utils, "download_and_extract_archive", unpacked)
    data = datasets.INaturalist(str(tmp_path), "2021_train_mini", ["genus", "full"], download=True)
    assert data[0][1] == (0, 0) and data.category_name("genus", 0) == "F" and data.category_name("full", 0) == "00000_A_B_C_D_E_F_g"
    for wrong in (("genus", 1), ("species", 0)):
        with pytest.raises(ValueError):
            data.category_name(*wrong)
    with pytest.raises(RuntimeError, match="already exists"):
        data.download()


def test_kinetics_sorts_films_by_class(tmp_path):
    data = datasets.Kinetics.__new__(datasets.Kinetics)
    data.split_folder = str(tmp_path / "train")
    write(tmp_path / "train/abc_000005_000015.mp4", "film")
    write(tmp_path / "train.csv", "label,youtube_id,time_start,time_end\nblowing (glass) at one's,abc,5,15\nother,xyz,1,2\n")
    data._sort_films(str(tmp_path / "train.csv"))
    assert (tmp_path / "train/blowing_glass_at_ones/abc_000005_000015.mp4").read_text() == "film"


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """Six films of twenty frames in two classes."""
    pytest.importorskip("av")
    from msadapter.torchvision import io

    root = tmp_path_factory.mktemp("films")
    for name, i in itertools.product(("run", "walk"), range(3)):
        _made(root / f"train/{name}/{name}{i}.avi")
        frames = torch.from_numpy(numpy.random.RandomState(i).randint(0, 256, (20, 16, 16, 3), dtype=numpy.uint8))
        io.write_video(str(root / f"train/{name}/{name}{i}.avi"), frames, 10, "mpeg4")
    return root


@pytest.mark.filterwarnings("ignore")
def test_sets_of_films(films, tmp_path):
    for name in ("run", "walk"):
        write(tmp_path / f"{name}_test_split1.txt", f"{name}0.avi 1\n{name}1.avi 2\n{name}2.avi 0\n")
    write(tmp_path / "trainlist01.txt", "run/run0.avi 1\nwalk/walk2.avi 2\n")
    write(tmp_path / "testlist01.txt", "run/run1.avi\n")
    root, options = str(films / "train"), {"num_workers": 0}
    cases = [("HMDB51", (root, str(tmp_path), 5), {"step_between_clips": 4}), ("HMDB51", (root, str(tmp_path), 5), {"train": False, "output_format": "TCHW"}),
             ("UCF101", (root, str(tmp_path), 4), {"frame_rate": 5}), ("UCF101", (root, str(tmp_path), 4), {"frame_rate": 7, "train": False}),
             ("Kinetics", (str(films), 6), {"step_between_clips": 7}), ("Kinetics", (root, 6), {"_legacy": True, "frame_rate": 10})]
    for name, args, more in cases:
        mine, theirs = (getattr(owner, name)(*args, **more, **options) for owner in (datasets, real))
        assert len(mine) == len(theirs) > 0 and repr(mine) == repr(theirs) and mine.classes == theirs.classes
        for i in (0, len(mine) // 2, len(mine) - 1):
            assert plain(mine[i]) == plain(theirs[i])
        assert mine.metadata["video_fps"] == theirs.metadata["video_fps"] and plain(mine.metadata["video_pts"]) == plain(theirs.metadata["video_pts"])
    again = datasets.Kinetics(root, 6, _legacy=True, frame_rate=10, _precomputed_metadata=mine.metadata)
    assert len(again) == len(mine)
    with pytest.raises(IndexError):
        mine.video_clips.get_clip(len(mine))
    with pytest.raises(ValueError, match="_video_width"):
        datasets.Kinetics(root, 6, _legacy=True, _video_width=8, **options)[0]


def test_arguments_of_films(tmp_path):
    for owner in (datasets, real):
        for kind in (owner.HMDB51, owner.UCF101):
            with pytest.raises(ValueError, match="fold should be between 1 and 3, got 4"):
                kind(str(tmp_path), str(tmp_path), 2, fold=4)
        with pytest.raises(ValueError, match="Unknown value '500' for argument num_classes"):
            owner.Kinetics(str(tmp_path), 2, num_classes="500")
        with pytest.raises(ValueError, match="legacy_structure"):
            owner.Kinetics(str(tmp_path), 2, _legacy=True, download=True)


def test_windows_and_choice_of_frames():
    from msadapter.torchvision.datasets.video_utils import VideoClips, unfold

    theirs = __import__("torchvision.datasets.video_utils", fromlist=["x"])
    for numel, size, step, dilation in ((10, 3, 2, 1), (10, 3, 1, 2), (2, 3, 1, 1), (7, 7, 3, 1)):
        assert unfold(torch.arange(numel), size, step, dilation).tolist() == theirs.unfold(real_torch.arange(numel), size, step, dilation).tolist()
    with pytest.raises(ValueError):
        unfold(torch.zeros(2, 2), 1, 1)
    for fps, rate in ((10, None), (10, 5), (10, 7), (None, 3), (30, 60)):
        mine = VideoClips.compute_clips_for_video(torch.arange(20), 3, 2, fps, rate)
        expected = theirs.VideoClips.compute_clips_for_video(real_torch.arange(20), 3, 2, fps, rate)
        assert mine[0].tolist() == expected[0].tolist() and [plain(x) for x in mine[1]] == [plain(x) for x in expected[1]]
