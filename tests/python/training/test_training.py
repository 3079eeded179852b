"""Whole training loops: the same losses as PyTorch, and no growth of memory."""
import os
import shutil
import subprocess
import sys

import pytest

import msadapter.pytorch as torch

HERE = os.path.dirname(os.path.abspath(__file__))


def reference_python():
    """An interpreter that has the real torch 1.13, or None."""
    for python in (sys.executable, "/usr/bin/python3", shutil.which("python3")):
        if python and subprocess.run([python, "-c", "import torch; assert torch.__version__.startswith('1.13')"],
                                     capture_output=True).returncode == 0:
            return python
    return None


def losses_of(python, module):
    done = subprocess.run([python, os.path.join(HERE, "script_lenet.py"), module], capture_output=True, text=True, check=True)
    return [float(line.split()[-1]) for line in done.stdout.splitlines()]


def test_lenet_shows_pytorchs_losses_at_every_step():
    python = reference_python()
    if python is None:
        pytest.skip("the real torch 1.13 is not installed")
    expected, got = losses_of(python, "torch"), losses_of(sys.executable, "msadapter.pytorch")
    assert len(got) == len(expected) == 51
    for step, (one, other) in enumerate(zip(expected, got)):
        assert abs(one - other) <= 1e-4 * abs(one), (step, one, other)


def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_a_thousand_steps_do_not_grow():
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.1), nn.Linear(4 * 9, 5))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    x, y = torch.randn(8, 1, 8, 8), torch.randint(0, 5, (8,))
    before = None
    for step in range(1000):
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 200:
            before = resident_mb()
    assert resident_mb() - before < 2
    assert loss.item() < 1.0
