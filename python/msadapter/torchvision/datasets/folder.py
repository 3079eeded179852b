"""Pictures in folders: one folder a class."""

import os

from msadapter.torchvision.datasets.vision import VisionDataset

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def pil_loader(path):
    """The picture in a file, as RGB."""
    from PIL import Image

    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


default_loader = pil_loader


def find_classes(directory):
    """Names of the folders in a directory, sorted, and their numbers. Raises FileNotFoundError when there are none."""
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: i for i, name in enumerate(classes)}


def make_dataset(directory, class_to_idx, extensions=None, is_valid_file=None):
    """(path, class number) of every file that counts. Raises FileNotFoundError for a class without files."""
    if (extensions is None) == (is_valid_file is None):
        raise ValueError("Both extensions and is_valid_file cannot be None or not None at the same time")
    counts = is_valid_file or (lambda path: path.lower().endswith(tuple(extensions)))
    samples, empty = [], []
    for name in sorted(class_to_idx):
        before = len(samples)
        for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
            samples += [(os.path.join(folder, file), class_to_idx[name]) for file in sorted(files) if counts(os.path.join(folder, file))]
        if len(samples) == before:
            empty.append(name)
    if empty:
        raise FileNotFoundError(f"Found no valid file for the classes {', '.join(empty)}.")
    return samples


class DatasetFolder(VisionDataset):
    """Files under `root`/CLASS, read by `loader`."""

    def __init__(self, root, loader, extensions=None, transform=None, target_transform=None, is_valid_file=None):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = find_classes(self.root)
        self.samples = make_dataset(self.root, self.class_to_idx, extensions, is_valid_file)
        self.loader, self.extensions = loader, extensions
        self.targets = [target for _, target in self.samples]

    def __getitem__(self, index):
        path, target = self.samples[index]
        sample = self.loader(path)
        if self.transform is not None:
            sample = self.transform(sample)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return sample, target

    def __len__(self):
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Pictures under `root`/CLASS."""

    def __init__(self, root, transform=None, target_transform=None, loader=default_loader, is_valid_file=None):
        super().__init__(root, loader, IMG_EXTENSIONS if is_valid_file is None else None, transform, target_transform, is_valid_file)
        self.imgs = self.samples
