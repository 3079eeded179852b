"""examples/c/lenet.c builds against the installed package through pkg-config, as README.md says, and learns."""
import os
import pathlib
import re
import shutil
import struct
import subprocess

import msadapter
import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
FOLDER = pathlib.Path(msadapter.__file__).parent


@pytest.fixture(scope="module")
def lenet(tmp_path_factory):
    if not shutil.which("cc") or not shutil.which("pkg-config"):
        pytest.skip("no C compiler or no pkg-config")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(FOLDER / "pkgconfig")}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "msadapter"], env=environment, capture_output=True, text=True, check=True)
    program = tmp_path_factory.mktemp("c") / "lenet"
    done = subprocess.run(["cc", "-O2", "-Wall", "-Wextra", TOP / "examples" / "c" / "lenet.c", *flags.stdout.split(), "-lm", "-o", program],
                          capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return program


def test_it_learns_made_up_pictures(lenet):
    done = subprocess.run([lenet, "-", "5"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    accuracies = [float(a) for a in re.findall(r"accuracy ([\d.]+)%", done.stdout)]
    assert len(accuracies) == 5 and accuracies[-1] > 95, done.stdout


def test_it_reads_cifars_binary_files_and_refuses_others(lenet, tmp_path):
    for i, name in enumerate([f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]):
        (tmp_path / name).write_bytes(b"".join(struct.pack("B", j % 10) + bytes([25 * (j % 10)]) * 3072 for j in range(20)))
    done = subprocess.run([lenet, tmp_path, "1"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and done.stdout.startswith("epoch 1: loss 2."), done.stdout + done.stderr
    (tmp_path / "data_batch_3.bin").write_bytes(b"\xff" * 3073)
    done = subprocess.run([lenet, tmp_path, "1"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "has label 255" in done.stderr
    done = subprocess.run([lenet, tmp_path / "nowhere"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "cannot open" in done.stderr
