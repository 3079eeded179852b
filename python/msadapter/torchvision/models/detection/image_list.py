"""Pictures of several sizes in one tensor."""


class ImageList:
    """tensors (N, C, H, W), each picture in the upper left corner, and image_sizes, what is the picture: a list of (height, width)."""

    def __init__(self, tensors, image_sizes):
        self.tensors, self.image_sizes = tensors, image_sizes

    def to(self, device):
        """The same on another device."""
        return ImageList(self.tensors.to(device), self.image_sizes)
