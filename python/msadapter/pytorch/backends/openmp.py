"""torch.backends.openmp: whether OpenMP is there."""


def is_available():
    """Whether OpenMP is there: yes."""
    return True
