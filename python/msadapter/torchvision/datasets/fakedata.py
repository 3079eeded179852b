"""Random pictures, for trying things out."""

from msadapter import pytorch as torch
from msadapter.torchvision.datasets.vision import VisionDataset


class FakeData(VisionDataset):
    """`size` random pictures; the same number gives the same picture."""

    def __init__(self, size=1000, image_size=(3, 224, 224), num_classes=10, transform=None, target_transform=None, random_offset=0):
        super().__init__(None, transform=transform, target_transform=target_transform)
        self.size, self.num_classes, self.image_size, self.random_offset = size, num_classes, image_size, random_offset

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        from msadapter.torchvision.transforms import functional

        state = torch.get_rng_state()
        torch.manual_seed(index + self.random_offset)
        picture = torch.randn(*self.image_size)
        target = torch.randint(0, self.num_classes, size=(1,), dtype=torch.int64)[0]
        torch.set_rng_state(state)
        picture, target = self._transformed(functional.to_pil_image(picture), target)
        return picture, int(target)

    def __len__(self):
        return self.size
