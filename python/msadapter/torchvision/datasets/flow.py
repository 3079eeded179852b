"""Optical flow: pairs of pictures and how far each pixel moves, (2, H, W) of float32, with a mask (H, W) where only some are known."""

import abc
import glob
import itertools
import os
import re

from msadapter.torchvision.datasets._base import join, lines_of, open_rgb
from msadapter.torchvision.datasets.utils import verify_str_arg
from msadapter.torchvision.datasets.vision import VisionDataset


def _values(data, dtype, shape, path):
    """An array of this shape. Raises ValueError unless the bytes are as many."""
    import numpy

    if any(size < 0 for size in shape) or len(data) != numpy.dtype(dtype).itemsize * shape[0] * shape[1] * shape[2]:
        raise ValueError(f"{path}: the header says {tuple(shape)}, which does not fit {len(data)} bytes")
    return numpy.frombuffer(data, dtype).reshape(shape)


def _read_flo(path):
    """A .flo file as (2, H, W): PIEH, width, height, then pairs by rows. Raises ValueError."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] != b"PIEH" or len(data) < 12:
        raise ValueError("Magic number incorrect. Invalid .flo file")
    width, height = (int.from_bytes(data[i:i + 4], "little", signed=True) for i in (4, 8))
    return _values(data[12:], "<f4", (height, width, 2), path).transpose(2, 0, 1).copy()


def _read_pfm(path, slice_channels=2):
    """The first channels of a .pfm file as (C, H, W): kind, sizes, scale (negative for little endian), then rows from below. Raises ValueError."""
    with open(path, "rb") as file:
        kind, sizes, scale, data = file.readline().rstrip(), file.readline(), file.readline(), file.read()
    found = re.fullmatch(rb"(\d+)\s(\d+)\s", sizes)
    if kind not in (b"PF", b"Pf") or found is None:
        raise ValueError("Invalid PFM file")
    width, height = map(int, found.groups())
    values = _values(data, "<f4" if float(scale) < 0 else ">f4", (height, width, 3 if kind == b"PF" else 1), path)
    return values[::-1].transpose(2, 0, 1)[:slice_channels].astype("float32")


def _read_masked(path):
    """A PNG of 16 bits as flow (2, H, W), 64ths of a pixel from 2^15, and a mask (H, W)."""
    from msadapter import pytorch as torch
    from msadapter.torchvision.io.image import _read_png_16

    values = _read_png_16(path)
    if len(values) != 3:
        raise ValueError(f"{path} has {len(values)} channels instead of 3")
    return ((values[:2].to(torch.float32) - 2**15) / 64).numpy(), (values[2] != 0).numpy()


class FlowDataset(abc.ABC, VisionDataset):
    """Pairs of pictures, and flow where the split has it. `transforms` takes and returns both pictures, flow and mask."""

    _has_builtin_flow_mask = False

    def __init__(self, root, transforms=None):
        super().__init__(root=root)
        self.transforms = transforms
        self._flow_list, self._image_list = [], []

    @abc.abstractmethod
    def _read_flow(self, file_name):
        """The flow, with a mask where the set has one."""

    def __getitem__(self, index):
        first, second = map(open_rgb, self._image_list[index])
        flow = mask = None
        if self._flow_list:
            flow = self._read_flow(self._flow_list[index])
            if self._has_builtin_flow_mask:
                flow, mask = flow
        if self.transforms is not None:
            first, second, flow, mask = self.transforms(first, second, flow, mask)
        return (first, second, flow, mask) if self._has_builtin_flow_mask or mask is not None else (first, second, flow)

    def __len__(self):
        return len(self._image_list)

    def __rmul__(self, v):
        from msadapter.pytorch.utils.data import ConcatDataset

        return ConcatDataset([self] * v)

    def _found(self, *parts):
        """The files in a folder of `root` that fit the pattern, which is the last part, sorted."""
        return sorted(glob.glob(join(glob.escape(join(self.root, *parts[:-1])), parts[-1])))


class Sintel(FlowDataset):
    """An animated film in `root`/Sintel (Butler et al., 2012), in a clean and a final rendering."""

    def __init__(self, root, split="train", pass_name="clean", transforms=None):
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "test"))
        verify_str_arg(pass_name, "pass_name", ("clean", "final", "both"))
        folder = "training" if split == "train" else "test"
        for name in ("clean", "final") if pass_name == "both" else (pass_name,):
            for scene in sorted(os.listdir(join(self.root, "Sintel", folder, name))):
                pictures = self._found("Sintel", folder, name, scene, "*.png")
                self._image_list += [list(pair) for pair in zip(pictures, pictures[1:])]
                if split == "train":
                    self._flow_list += self._found("Sintel", "training", "flow", scene, "*.flo")

    def _read_flow(self, file_name):
        return _read_flo(file_name)


class KittiFlow(FlowDataset):
    """Roads in `root`/KittiFlow (Menze and Geiger, 2015)."""

    _has_builtin_flow_mask = True

    def __init__(self, root, split="train", transforms=None):
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "test"))
        first, second = (self._found("KittiFlow", split + "ing", "image_2", f"*_{number}.png") for number in (10, 11))
        if not first or not second:
            raise FileNotFoundError("Could not find the Kitti flow images. Please make sure the directory structure is correct.")
        self._image_list = [list(pair) for pair in zip(first, second)]
        if split == "train":
            self._flow_list = self._found("KittiFlow", "training", "flow_occ", "*_10.png")

    def _read_flow(self, file_name):
        return _read_masked(file_name)


class FlyingChairs(FlowDataset):
    """Rendered chairs in `root`/FlyingChairs (Dosovitskiy et al., 2015), split by FlyingChairs_train_val.txt: 1 for training, 2 for validation."""

    def __init__(self, root, split="train", transforms=None):
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "val"))
        listed = join(self.root, "FlyingChairs", "FlyingChairs_train_val.txt")
        if not os.path.exists(listed):
            raise FileNotFoundError("The FlyingChairs_train_val.txt file was not found - please download it from the dataset page (see docstring).")
        pictures, flows = self._found("FlyingChairs", "data", "*.ppm"), self._found("FlyingChairs", "data", "*.flo")
        parts = [int(float(word)) for line in lines_of(listed) for word in line.split()]
        for i, flow in enumerate(flows):
            if parts[i] == (1 if split == "train" else 2):
                self._flow_list.append(flow)
                self._image_list.append([pictures[2 * i], pictures[2 * i + 1]])

    def _read_flow(self, file_name):
        return _read_flo(file_name)


class FlyingThings3D(FlowDataset):
    """Rendered things in `root`/FlyingThings3D (Mayer et al., 2016), from the left camera or the right, forwards and backwards in time."""

    def __init__(self, root, split="train", pass_name="clean", camera="left", transforms=None):
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "test"))
        verify_str_arg(pass_name, "pass_name", ("clean", "final", "both"))
        verify_str_arg(camera, "camera", ("left", "right", "both"))
        passes = ["frames_cleanpass"] * (pass_name != "final") + ["frames_finalpass"] * (pass_name != "clean")
        cameras = ("left", "right") if camera == "both" else (camera,)
        for rendering, side, direction in itertools.product(passes, cameras, ("into_future", "into_past")):
            picture_folders = self._found("FlyingThings3D", rendering, split.upper(), "*/*")
            flow_folders = self._found("FlyingThings3D", "optical_flow", split.upper(), "*/*")
            if not picture_folders or not flow_folders:
                raise FileNotFoundError("Could not find the FlyingThings3D flow images. Please make sure the directory structure is correct.")
            for picture_folder, flow_folder in zip(picture_folders, flow_folders):
                pictures = self._found(picture_folder, side, "*.png")
                flows = self._found(flow_folder, direction, side, "*.pfm")
                for i in range(len(flows) - 1):
                    ahead = direction == "into_future"
                    self._image_list.append([pictures[i], pictures[i + 1]] if ahead else [pictures[i + 1], pictures[i]])
                    self._flow_list.append(flows[i] if ahead else flows[i + 1])

    def _read_flow(self, file_name):
        return _read_pfm(file_name)


class HD1K(FlowDataset):
    """Roads in `root`/hd1k (Kondermann et al., 2016)."""

    _has_builtin_flow_mask = True

    def __init__(self, root, split="train", transforms=None):
        super().__init__(root, transforms)
        verify_str_arg(split, "split", ("train", "test"))
        if split == "train":
            for sequence in range(36):
                flows = self._found("hd1k", "hd1k_flow_gt", "flow_occ", f"{sequence:06d}_*.png")
                pictures = self._found("hd1k", "hd1k_input", "image_2", f"{sequence:06d}_*.png")
                self._flow_list += flows[:-1]
                self._image_list += [[pictures[i], pictures[i + 1]] for i in range(len(flows) - 1)]
        else:
            first, second = (self._found("hd1k", "hd1k_challenge", "image_2", f"*{number}.png") for number in (10, 11))
            self._image_list = [list(pair) for pair in zip(first, second)]
        if not self._image_list:
            raise FileNotFoundError("Could not find the HD1K images. Please make sure the directory structure is correct.")

    def _read_flow(self, file_name):
        return _read_masked(file_name)
