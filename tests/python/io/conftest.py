"""What the tests of checkpoints share: a real PyTorch, where one is installed, in a process of its own."""

import subprocess
import sys

import pytest


@pytest.fixture
def real_torch():
    """Runs a script that imports PyTorch and returns what it prints; skips where there is none."""

    def run(script, *arguments):
        probe = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, timeout=300)
        if probe.returncode != 0:
            pytest.skip("no PyTorch is installed")
        done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
