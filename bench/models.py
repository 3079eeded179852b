"""The networks and small calls that are timed, written against whichever torch is given."""


def lenet(torch):
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 16, 5), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Linear(800, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    return net, torch.randn(128, 3, 32, 32), torch.randint(0, 10, (128,))


def resnet18(torch):
    """ResNet-18 (He et al., 2016) with a 3x3 stem, as is usual for 32x32 pictures."""
    nn = torch.nn

    class Residual(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
            same = stride == 1 and inputs == outputs
            self.short = nn.Sequential() if same else nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            return torch.relu(self.body(x) + self.short(x))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            layers, width = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
            for stage in range(4):
                for block in range(2):
                    layers.append(Residual(width, 64 << stage, 2 if stage and not block else 1))
                    width = 64 << stage
            self.features, self.head = nn.Sequential(*layers), nn.Linear(512, 10)

        def forward(self, x):
            return self.head(self.features(x).mean((2, 3)))

    return ResNet(), torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,))


def gpt(torch):
    """A decoder in the manner of GPT-2 (Radford et al., 2019), attention written out."""
    nn, width, heads, length, vocabulary = torch.nn, 256, 8, 128, 96

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.register_buffer("hidden", torch.tril(torch.ones(length, length)) == 0)

        def forward(self, x):
            n = x.shape[0]
            q, k, v = (t.view(n, length, heads, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).split(width, 2))
            scores = (q @ k.transpose(2, 3)) / (width // heads) ** 0.5
            weights = torch.softmax(scores.masked_fill(self.hidden, float("-inf")), -1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(n, length, width))
            return x + self.narrow(nn.functional.gelu(self.wide(self.norm2(x))))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.layers = nn.Sequential(*(Layer() for _ in range(4)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, x):
            return self.head(self.norm(self.layers(self.tokens(x) + self.places(torch.arange(length)))))

    return Decoder(), torch.randint(0, vocabulary, (16, length)), torch.randint(0, vocabulary, (16, length))


def lstm(torch):
    """A language model of two LSTM layers."""
    nn, width, vocabulary = torch.nn, 256, 96

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.lstm = nn.Embedding(vocabulary, width), nn.LSTM(width, width, 2, batch_first=True)
            self.head = nn.Linear(width, vocabulary)

        def forward(self, x):
            return self.head(self.lstm(self.tokens(x))[0])

    return Model(), torch.randint(0, vocabulary, (32, 64)), torch.randint(0, vocabulary, (32, 64))


MODELS = {"lenet": lenet, "resnet18": resnet18, "gpt": gpt, "lstm": lstm}


def training_step(torch, name):
    """A function of no arguments that does one training step and returns the loss."""
    net, x, y = MODELS[name](torch)
    if name in ("gpt", "lstm"):
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=0.0005)

    def step():
        out = net(x)
        loss = torch.nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def small_calls(torch):
    """Name -> function: calls whose arithmetic is next to nothing."""
    a, b, w = torch.ones(8, 8), torch.ones(8, 8), torch.ones(8, 8, requires_grad=True)
    linear, x = torch.nn.Linear(8, 8), torch.ones(4, 8)
    relus = torch.nn.Sequential(*(torch.nn.ReLU() for _ in range(10)))
    return {
        "add": lambda: a + b, "add a number": lambda: a + 1.0, "add in place": lambda: a.add_(0.0), "add, recorded": lambda: w + b,
        "view": lambda: a.view(-1), "index": lambda: a[2, 3], "slice": lambda: a[1:3], "transpose": lambda: a.transpose(0, 1),
        "sum": lambda: a.sum(), "matmul": lambda: a @ b, "cat": lambda: torch.cat((a, b)), "item": lambda: a[0, 0].item(),
        "Linear module": lambda: linear(x), "10 ReLU modules": lambda: relus(x),
        "backward of 3 operators": lambda: (w * b + a).sum().backward(),
    }
