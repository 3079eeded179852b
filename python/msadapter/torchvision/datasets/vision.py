"""The base of data sets of pictures."""

import os

from msadapter.pytorch.utils.data import Dataset


class StandardTransform:
    """One transform for the picture, one for its target."""

    def __init__(self, transform=None, target_transform=None):
        self.transform, self.target_transform = transform, target_transform

    def __call__(self, input, target):
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def __repr__(self):
        lines = [type(self).__name__]
        for head, part in (("Transform: ", self.transform), ("Target transform: ", self.target_transform)):
            if part is not None:
                text = repr(part).splitlines()
                lines += [head + text[0]] + [" " * len(head) + line for line in text[1:]]
        return "\n".join(lines)


class VisionDataset(Dataset):
    """Keeps root and transforms. Raises ValueError when both transforms and transform or target_transform are given."""

    _repr_indent = 4

    def __init__(self, root, transforms=None, transform=None, target_transform=None):
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        if transforms is not None and (transform is not None or target_transform is not None):
            raise ValueError("Only transforms or transform/target_transform can be passed as argument")
        self.transform, self.target_transform = transform, target_transform
        if transform is not None or target_transform is not None:
            transforms = StandardTransform(transform, target_transform)
        self.transforms = transforms

    def _transformed(self, sample, target):
        return StandardTransform(self.transform, self.target_transform)(sample, target)

    def __repr__(self):
        body = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            body.append(f"Root location: {self.root}")
        body += self.extra_repr().splitlines()
        if self.transforms is not None:
            body += [repr(self.transforms)]
        return "\n".join([f"Dataset {type(self).__name__}"] + [" " * self._repr_indent + part for part in body])

    def extra_repr(self):
        """What a subclass adds to the printed form."""
        return ""
