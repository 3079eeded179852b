"""torch.backends.mkldnn: oneDNN, which the engine computes with."""


def is_available():
    """Whether oneDNN is there: yes."""
    return True
