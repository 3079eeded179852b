"""Sequences of different lengths: packed, padded, and back."""

from collections import namedtuple

from msadapter import pytorch as torch

__all__ = ["PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence",
           "unpack_sequence", "unpad_sequence"]

_Fields = namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


def invert_permutation(permutation):
    """The permutation that undoes this one; None of None."""
    if permutation is None:
        return None
    output = torch.empty_like(permutation)
    output.scatter_(0, permutation, torch.arange(0, permutation.numel(), device=permutation.device))
    return output


class PackedSequence(_Fields):
    """Sequences step by step, longest first, without padding: data (sum of lengths, *), batch_sizes (longest length).

    sorted_indices tells the order in which the sequences were given, None for the same. Made by pack_padded_sequence and pack_sequence.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:  # the old form: one pair
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("PackedSequence takes data and batch_sizes")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _converted(self, data):
        if data is self.data:
            return self
        order, back = self.sorted_indices, self.unsorted_indices
        if order is not None and order.device != data.device:
            order, back = order.to(data.device), back.to(data.device)
        return type(self)(data, self.batch_sizes, order, back)

    def pin_memory(self):
        """The same with pinned data."""
        return self._converted(self.data.pin_memory())

    def to(self, *args, **kwargs):
        """The same with data on another device or of another dtype."""
        return self._converted(self.data.to(*args, **kwargs))

    def cuda(self, *args, **kwargs):
        """The same with data on the accelerator."""
        return self._converted(self.data.cuda(*args, **kwargs))

    def cpu(self):
        """The same with data on the CPU."""
        return self._converted(self.data.cpu())

    def double(self):
        """The same with float64 data."""
        return self.to(dtype=torch.double)

    def float(self):
        """The same with float32 data."""
        return self.to(dtype=torch.float)

    def half(self):
        """The same with float16 data."""
        return self.to(dtype=torch.half)

    def long(self):
        """The same with int64 data."""
        return self.to(dtype=torch.long)

    def int(self):
        """The same with int32 data."""
        return self.to(dtype=torch.int)

    def short(self):
        """The same with int16 data."""
        return self.to(dtype=torch.short)

    def char(self):
        """The same with int8 data."""
        return self.to(dtype=torch.int8)

    def byte(self):
        """The same with uint8 data."""
        return self.to(dtype=torch.uint8)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        """Whether data is pinned."""
        return self.data.is_pinned()


def _pack(input, lengths, batch_first):
    """(data, batch_sizes) of input whose sequences are sorted by length, longest first."""
    if batch_first:
        input = input.transpose(0, 1)
    counts = lengths.tolist()
    if input.dim() < 2:
        raise RuntimeError("pack_padded_sequence: expected input with at least 2 dimensions")
    if len(counts) != input.size(1):
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={input.size(1)})")
    if counts[-1] <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if any(a < b for a, b in zip(counts, counts[1:])):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to "
                           "pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability.")
    parts, sizes, begin = [], [], 0
    for batch in range(len(counts), 0, -1):  # steps at which `batch` sequences still run
        end = counts[batch - 1]
        if end > begin:
            parts.append(input[begin:end, :batch].reshape((end - begin) * batch, *input.shape[2:]))
            sizes += [batch] * (end - begin)
            begin = end
    return torch.cat(parts), torch.tensor(sizes, dtype=torch.int64)


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack input (T, N, *), or (N, T, *), whose sequences have these lengths (longest first unless enforce_sorted is False)."""
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.as_tensor(lengths, dtype=torch.int64)
    elif lengths.dtype != torch.int64:
        raise RuntimeError("'lengths' argument should be a 1D CPU int64 tensor, but got "
                           f"{lengths.dim()}D {lengths.device.type} {str(lengths.dtype).split('.')[-1].capitalize()} tensor")
    if lengths.dim() != 1:
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.dim()}D {lengths.device.type} Long tensor")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = torch.sort(lengths, descending=True)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    data, batch_sizes = _pack(input, lengths, batch_first)
    return PackedSequence(data, batch_sizes, sorted_indices, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The sequences (T, N, *), or (N, T, *), padded with padding_value to the longest (or to total_length); and their lengths."""
    sizes = sequence.batch_sizes.tolist()
    longest, batch = len(sizes), sizes[0]
    if total_length is not None:
        if total_length < longest:
            raise ValueError(f"Expected total_length to be at least the length of the longest sequence in input, but got "
                             f"total_length={total_length} and max sequence length being {longest}")
        longest = total_length
    data = sequence.data
    nothing = data.size(0)  # the row of padding values behind the data
    rows, begin = [], 0
    for size in sizes:
        rows += range(begin, begin + size)
        rows += [nothing] * (batch - size)
        begin += size
    rows += [nothing] * (batch * (longest - len(sizes)))
    padding = data.new_full((1, *data.shape[1:]), padding_value)
    padded = torch.cat([data, padding]).index_select(0, torch.tensor(rows, dtype=torch.int64)).view(longest, batch, *data.shape[1:])
    lengths = torch.tensor([sum(size > i for size in sizes) for i in range(batch)], dtype=torch.int64)
    unsorted = sequence.unsorted_indices
    if unsorted is not None:
        padded, lengths = padded.index_select(1, unsorted), lengths.index_select(0, unsorted)
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0):
    """Sequences (L_i, *) as one tensor (T, N, *), or (N, T, *), the short ones padded at the end."""
    if isinstance(sequences, torch.Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(sequence.size(0) for sequence in sequences)
    pad = torch.nn.functional.pad
    padded = [sequence if sequence.size(0) == longest
              else pad(sequence, (0, 0) * (sequence.dim() - 1) + (0, longest - sequence.size(0)), "constant", padding_value)
              for sequence in sequences]
    return torch.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of a padded tensor as a list."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[:int(length)] for sequence, length in zip(padded_sequences, lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of sequences (L_i, *), longest first unless enforce_sorted is False."""
    lengths = torch.tensor([sequence.size(0) for sequence in sequences], dtype=torch.int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The sequences of a packed one as a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
