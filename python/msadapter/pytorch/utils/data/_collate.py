"""Batches out of samples."""

import collections.abc

from msadapter import pytorch as torch


def default_convert(data):
    """Arrays in data, however nested, as tensors."""
    if isinstance(data, torch.Tensor):
        return data
    if type(data).__module__ == "numpy" and type(data).__name__ not in ("str_", "string_", "bytes_"):
        return torch.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(item) for item in data))
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return [default_convert(item) for item in data]
    return data


def default_collate(batch):
    """A batch of samples as one: tensors stacked, numbers made tensors, containers gone through. Raises TypeError for other types."""
    first = batch[0]
    if isinstance(first, torch.Tensor):
        return torch.stack(list(batch), 0)
    if type(first).__module__ == "numpy":
        if type(first).__name__ == "ndarray":
            if first.dtype.kind in "SUO":
                raise TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {first.dtype}")
            return torch.stack([torch.as_tensor(item) for item in batch], 0)
        return torch.as_tensor(batch)
    if isinstance(first, bool) or isinstance(first, int):
        return torch.tensor(batch)
    if isinstance(first, float):
        return torch.tensor(batch, dtype=torch.float64)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(part) for part in zip(*batch)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(part) for part in zip(*batch)]
    raise TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}")
