"""Data sets: things with samples by number, or to iterate over."""

import bisect

from msadapter import pytorch as torch


class Dataset:
    """Samples by number: subclasses give __getitem__, and __len__ where the number of samples is known."""

    def __class_getitem__(cls, item):
        return cls

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Samples in an order of their own: subclasses give __iter__."""

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Tensors of one length; sample i is the tuple of their i-th elements, as tensors."""

    def __init__(self, *tensors):
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class ConcatDataset(Dataset):
    """One data set after the other."""

    @staticmethod
    def cumsum(sequence):
        """Running totals of the lengths."""
        totals, total = [], 0
        for part in sequence:
            total += len(part)
            totals.append(total)
        return totals

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        part = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[part][index - (self.cumulative_sizes[part - 1] if part else 0)]


class ChainDataset(IterableDataset):
    """Iterable data sets one after the other."""

    def __init__(self, datasets):
        super().__init__()
        self.datasets = datasets

    def __iter__(self):
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from part

    def __len__(self):
        return sum(len(part) for part in self.datasets)


class Subset(Dataset):
    """The samples of a data set at some indices."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Subsets of the given lengths, or fractions of the whole, drawn at random without overlap. Raises ValueError for a wrong sum."""
    lengths = list(lengths)
    if lengths and sum(lengths) <= 1 and any(isinstance(n, float) for n in lengths):
        whole = [int(len(dataset) * part) for part in lengths]
        for i in range(len(dataset) - sum(whole)):
            whole[i % len(whole)] += 1
        lengths = whole
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = torch.randperm(sum(lengths), generator=generator or torch.random.default_generator).tolist()
    parts, start = [], 0
    for n in lengths:
        parts.append(Subset(dataset, order[start:start + n]))
        start += n
    return parts
