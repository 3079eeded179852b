"""Pictures in folders: one folder a class."""

import os

from msadapter.torchvision.datasets.vision import VisionDataset

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def pil_loader(path):
    """The picture in a file, as RGB."""
    from PIL import Image

    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


def accimage_loader(path):
    """The picture in a file by accimage, or by Pillow where that fails. Raises ImportError without accimage."""
    import accimage

    try:
        return accimage.Image(path)
    except OSError:
        return pil_loader(path)


def default_loader(path):
    """The picture in a file, read by what set_image_backend chose."""
    from msadapter.torchvision import get_image_backend

    return accimage_loader(path) if get_image_backend() == "accimage" else pil_loader(path)


def has_file_allowed_extension(filename, extensions):
    """Whether a name ends in one of these, in either case."""
    return filename.lower().endswith(extensions if isinstance(extensions, str) else tuple(extensions))


def is_image_file(filename):
    """Whether a name ends as a picture's does."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory):
    """Names of the folders in a directory, sorted, and their numbers. Raises FileNotFoundError when there are none."""
    classes = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: i for i, name in enumerate(classes)}


def make_dataset(directory, class_to_idx=None, extensions=None, is_valid_file=None):
    """(path, class number) of every file that counts. Raises FileNotFoundError for a class without files, ValueError for other arguments."""
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        class_to_idx = find_classes(directory)[1]
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError("Both extensions and is_valid_file cannot be None or not None at the same time")
    counts = is_valid_file or (lambda path: has_file_allowed_extension(path, extensions))
    samples, empty = [], []
    for name in sorted(class_to_idx):
        before = len(samples)
        for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
            samples += [(os.path.join(folder, file), class_to_idx[name]) for file in sorted(files) if counts(os.path.join(folder, file))]
        if len(samples) == before:
            empty.append(name)
    if empty:
        known = "" if extensions is None else f"Supported extensions are: {extensions if isinstance(extensions, str) else ', '.join(extensions)}"
        raise FileNotFoundError(f"Found no valid file for the classes {', '.join(empty)}. {known}")
    return samples


class DatasetFolder(VisionDataset):
    """Files under `root`/CLASS, read by `loader`."""

    def __init__(self, root, loader, extensions=None, transform=None, target_transform=None, is_valid_file=None):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = self.make_dataset(self.root, self.class_to_idx, extensions, is_valid_file)
        self.loader, self.extensions = loader, extensions
        self.targets = [target for _, target in self.samples]

    @staticmethod
    def make_dataset(directory, class_to_idx, extensions=None, is_valid_file=None):
        """The samples; subclasses may find them in another way."""
        if class_to_idx is None:
            raise ValueError("The class_to_idx parameter cannot be None.")
        return make_dataset(directory, class_to_idx, extensions, is_valid_file)

    def find_classes(self, directory):
        """The classes; subclasses may find them in another way."""
        return find_classes(directory)

    def __getitem__(self, index):
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self):
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Pictures under `root`/CLASS."""

    def __init__(self, root, transform=None, target_transform=None, loader=default_loader, is_valid_file=None):
        super().__init__(root, loader, IMG_EXTENSIONS if is_valid_file is None else None, transform, target_transform, is_valid_file)
        self.imgs = self.samples
