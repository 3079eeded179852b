"""The training script of chapter 2 of the manual, in both of its forms."""
import pytest

import msadapter.pytorch as torch
import msadapter.pytorch.nn as nn
import msadapter.pytorch.nn.functional as F
import mindspore as ms
from msadapter.pytorch.utils.data import DataLoader
from msadapter.torchvision import datasets, transforms


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


def loader(root, train=True):
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))])
    pictures = datasets.CIFAR10(root=root, train=train, download=True, transform=transform)
    return DataLoader(pictures, batch_size=100, shuffle=train, num_workers=2, drop_last=True)


def accuracy(net, root):
    net.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader(root, train=False):
            right += int((net(x).argmax(1) == y).sum())
            total += len(y)
    return right / total


def functional_step(net, criterion, optimizer):
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
    def train_step(data, label):
        out = net(data)
        loss = criterion(out, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return train_step


def train(make_step, root, epochs):
    torch.manual_seed(0)
    net = LeNet().to("cpu")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=0.0005)
    step = make_step(net, nn.CrossEntropyLoss(), optimizer)
    net.train()
    losses = []
    for i in range(epochs):
        for x, y in loader(root):
            losses.append(step(x.to("cpu"), y.to("cpu")))
        assert "------>epoch:{}, loss:{:.6f}".format(i, losses[-1]).startswith(f"------>epoch:{i}, loss:")
    return net, [float(loss.numpy()) for loss in losses]


def test_both_forms_learn_and_show_the_same_losses(cifar_root):
    net, functional = train(functional_step, cifar_root, 12)
    assert accuracy(net, cifar_root) > 0.9
    _, backward = train(backward_step, cifar_root, 1)
    assert backward == pytest.approx(functional[:len(backward)], rel=1e-5)
