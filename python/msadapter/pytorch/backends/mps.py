"""torch.backends.mps: whether Apple's GPU backend is there."""


def is_available():
    """Whether Apple's GPU backend is there: no."""
    return False


def is_built():
    """Whether it was built in: no."""
    return False
