"""Sizes given as one number or one per dimension, as tuples."""

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n):
    def as_tuple(x):
        if hasattr(x, "__iter__"):
            return tuple(x)
        return (x,) * n

    return as_tuple


_single, _pair, _triple, _quadruple = (_ntuple(n) for n in (1, 2, 3, 4))


def _reverse_repeat_tuple(t, n):
    """Each entry n times, last dimension first: the order of F.pad."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults):
    """out_size with None replaced by the input's size."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size):])]


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Take `prefix` off all keys (and the versions) of a state_dict, in place: what DataParallel had put there."""
    for key in sorted(state_dict.keys()):
        if key.startswith(prefix):
            state_dict[key[len(prefix):]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata.keys()):
            if len(key) > 0 and (key == prefix[:-1] or key.startswith(prefix)):
                metadata[key[len(prefix):]] = metadata.pop(key)
