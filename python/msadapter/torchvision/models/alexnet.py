"""AlexNet, in the form of "One weird trick for parallelizing convolutional neural networks" (Krizhevsky 2014)."""

from msadapter.pytorch import nn
from msadapter.torchvision.models._api import builder, enums
from msadapter.torchvision.models._utils import Classifier

__all__ = ["AlexNet", "AlexNet_Weights", "alexnet"]

AlexNet_Weights = enums("AlexNet_Weights")


class AlexNet(Classifier):
    """Pictures (N, 3, H, W) of at least 63 x 63 to scores (N, num_classes)."""

    def __init__(self, num_classes=1000, dropout=0.5):
        super().__init__()
        layers, channels = [], 3
        for width, kernel, stride, padding, pooled in ((64, 11, 4, 2, True), (192, 5, 1, 2, True), (384, 3, 1, 1, False), (256, 3, 1, 1, False),
                                                       (256, 3, 1, 1, True)):
            layers += [nn.Conv2d(channels, width, kernel_size=kernel, stride=stride, padding=padding), nn.ReLU(inplace=True)]
            if pooled:
                layers.append(nn.MaxPool2d(kernel_size=3, stride=2))
            channels = width
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(nn.Dropout(p=dropout), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True), nn.Dropout(p=dropout),
                                        nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, num_classes))


alexnet = builder("alexnet", AlexNet, AlexNet_Weights, "AlexNet.")
