"""Small pictures in CIFAR-10's own file format: each class is a pattern of its own under noise, so that a net can learn them."""
import hashlib
import os
import pickle

import numpy as np
import pytest

PICTURES = 200  # in each of the six files


def _write(folder):
    random = np.random.RandomState(0)
    patterns = random.randint(0, 256, (10, 3072))
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        labels = random.randint(0, 10, PICTURES)
        noise = random.randint(0, 256, (PICTURES, 3072))
        data = (0.7 * patterns[labels] + 0.3 * noise).astype(np.uint8)
        with open(os.path.join(folder, name), "wb") as file:
            pickle.dump({"data": data, "labels": labels.tolist()}, file, protocol=2)
    with open(os.path.join(folder, "batches.meta"), "wb") as file:
        pickle.dump({"label_names": [str(i) for i in range(10)]}, file, protocol=2)


@pytest.fixture(scope="session")
def cifar_root(tmp_path_factory):
    """The folder to give as root, with datasets.CIFAR10 told of the files' checksums."""
    from msadapter.torchvision import datasets

    root = tmp_path_factory.mktemp("data")
    folder = root / "cifar-10-batches-py"
    folder.mkdir()
    _write(folder)

    def md5(name):
        return hashlib.md5((folder / name).read_bytes()).hexdigest()

    datasets.CIFAR10.train_list = [[f"data_batch_{i}", md5(f"data_batch_{i}")] for i in range(1, 6)]
    datasets.CIFAR10.test_list = [["test_batch", md5("test_batch")]]
    datasets.CIFAR10.meta = {"filename": "batches.meta", "key": "label_names", "md5": md5("batches.meta")}
    return str(root)
