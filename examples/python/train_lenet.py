"""Trains the manual's LeNet twice, in MindSpore's functional form and with loss.backward(), and shows what came of it.

    python train_lenet.py [--epochs N] [--data FOLDER] [--out FOLDER]

CIFAR-10 is used where the data folder holds it; otherwise handwritten digits in CIFAR-10's format are made there. Leaves the loss
curve (loss.png) and the trained weights (lenet.pth) in the out folder, and loads the weights back.
"""

import argparse
import os
import sys
import time

import msadapter.pytorch as torch
import msadapter.pytorch.nn as nn
import msadapter.pytorch.nn.functional as F
from msadapter.pytorch.utils.data import DataLoader
from msadapter.torchvision import datasets, transforms
import mindspore as ms

import digits_as_cifar


class LeNet(nn.Module):
    def __init__(self):
        super(LeNet, self).__init__()
        self.conv1 = nn.Conv2d(3, 16, 5)
        self.pool1 = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(16, 32, 5)
        self.pool2 = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(32 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = self.pool1(x)
        x = F.relu(self.conv2(x))
        x = self.pool2(x)
        x = x.view(-1, 32 * 5 * 5)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        x = self.fc3(x)
        return x


def data_sets(root):
    """(training set, test set, whether these are the stand-in digits)."""
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))])

    def both():
        return (datasets.CIFAR10(root=root, train=True, download=False, transform=transform),
                datasets.CIFAR10(root=root, train=False, download=False, transform=transform))

    try:
        return (*both(), False)
    except RuntimeError:
        if not os.path.exists(os.path.join(root, digits_as_cifar.FOLDER, "batches.meta")):
            print(f"no CIFAR-10 in {root}: writing handwritten digits in its format there")
            digits_as_cifar.write(root)
        digits_as_cifar.accept(datasets, root)
        return (*both(), True)


def functional_step(net, criterion, optimizer):
    """One step as MindSpore writes it."""

    def forward_fn(data, label):
        logits = net(data)
        loss = criterion(logits, label)
        return loss, logits

    grad_fn = ms.ops.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)

    def train_step(data, label):
        (loss, _), grads = grad_fn(data, label)
        optimizer(grads)
        return loss

    return train_step


def backward_step(net, criterion, optimizer):
    """One step as PyTorch writes it."""

    def train_step(data, label):
        loss = criterion(net(data), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return train_step


def accuracy(net, test_set):
    """The part of the test set that the net gets right."""
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in DataLoader(test_set, batch_size=128):
            right += int((net(x).argmax(1) == y).sum())
    net.train()
    return right / len(test_set)


def train(form, train_set, test_set, epochs):
    """A trained net and the loss of every step."""
    torch.manual_seed(0)
    net = LeNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=0.0005)
    step = form(net, nn.CrossEntropyLoss(), optimizer)
    train_data = DataLoader(train_set, batch_size=128, shuffle=True, num_workers=2, drop_last=True, persistent_workers=True)
    net.train()
    losses, begun = [], time.perf_counter()
    for i in range(epochs):
        for X, y in train_data:
            losses.append(step(X, y).item())
        print("------>epoch:{}, loss:{:.6f}, {:.1f} s".format(i, losses[-1], time.perf_counter() - begun), flush=True)
    print(f"accuracy on {len(test_set)} pictures that it has not seen: {100 * accuracy(net, test_set):.1f} %")
    return net, losses


def draw(curves, path):
    """The losses as a picture, one curve for each name."""
    from PIL import Image, ImageDraw

    width, height, margin = 720, 420, 50
    image = Image.new("RGB", (width, height), "white")
    pen = ImageDraw.Draw(image)
    top = max(max(losses) for losses in curves.values())
    for k in range(6):
        y = height - margin - k * (height - 2 * margin) / 5
        pen.line([(margin, y), (width - margin, y)], fill="#dddddd")
        pen.text((8, y - 6), f"{top * k / 5:.2f}", fill="black")
    for (name, losses), colour, at in zip(curves.items(), ("#1f77b4", "#d62728"), range(2)):
        scale = (width - 2 * margin) / max(len(losses) - 1, 1)
        points = [(margin + i * scale, height - margin - loss / top * (height - 2 * margin)) for i, loss in enumerate(losses)]
        pen.line(points, fill=colour, width=3 - 2 * at)
        pen.text((width - 240, margin / 2 + 14 * at), name, fill=colour)
    pen.text((width / 2 - 20, height - 30), f"step (1 to {max(map(len, curves.values()))})", fill="black")
    image.save(path)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    top = os.path.dirname(os.path.dirname(here))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=None, help="default: 30 for the digits, 10 for CIFAR-10")
    parser.add_argument("--data", default=os.path.join(top, "data"))
    parser.add_argument("--out", default=os.path.join(top, "build", "demo"))
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    train_set, test_set, digits = data_sets(args.data)
    epochs = args.epochs or (30 if digits else 10)
    curves = {}
    for name, form in (("functional form", functional_step), ("loss.backward() form", backward_step)):
        print(f"training in {name}")
        net, curves[name] = train(form, train_set, test_set, epochs)
    picture, weights = os.path.join(args.out, "loss.png"), os.path.join(args.out, "lenet.pth")
    draw(curves, picture)
    torch.save(net.state_dict(), weights)
    again = LeNet()
    again.load_state_dict(torch.load(weights), strict=True)
    reached = accuracy(again, test_set)
    print(f"loss curve: {picture}\nweights: {weights}, loaded back: {100 * reached:.1f} % right")
    if digits and args.epochs is None and reached <= 0.95:
        sys.exit(f"the net should get more than 95 % of the digits right, got {100 * reached:.1f} %")


if __name__ == "__main__":
    main()
