"""Fifty steps of the manual's LeNet from seed 0, on whichever torch is named; prints a loss a line.

    python script_lenet.py torch|msadapter.pytorch
"""
import importlib
import sys

torch = importlib.import_module(sys.argv[1])
nn, F = torch.nn, torch.nn.functional
data = importlib.import_module(sys.argv[1] + ".utils.data")


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.pool1 = nn.Conv2d(3, 16, 5), nn.MaxPool2d(2, 2)
        self.conv2, self.pool2 = nn.Conv2d(16, 32, 5), nn.MaxPool2d(2, 2)
        self.fc1, self.fc2, self.fc3 = nn.Linear(32 * 5 * 5, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = self.pool1(F.relu(self.conv1(x)))
        x = self.pool2(F.relu(self.conv2(x)))
        x = x.view(-1, 32 * 5 * 5)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def main():
    torch.manual_seed(0)
    images, labels = torch.randn(320, 3, 32, 32), torch.randint(0, 10, (320,))
    net = LeNet()
    print("weights", float(sum(p.double().sum() for p in net.parameters())))
    loader = data.DataLoader(data.TensorDataset(images, labels), batch_size=32, shuffle=True, drop_last=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=0.0005)
    criterion = nn.CrossEntropyLoss()
    for _ in range(5):
        for x, y in loader:
            loss = criterion(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(repr(loss.item()))


main()
