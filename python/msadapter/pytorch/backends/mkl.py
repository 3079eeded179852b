"""torch.backends.mkl: whether Intel MKL is there."""


def is_available():
    """Whether Intel MKL is there: no."""
    return False
