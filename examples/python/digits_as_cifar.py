"""Writes scikit-learn's handwritten digits in CIFAR-10's own file format: 32x32 pictures in three channels.

    python digits_as_cifar.py FOLDER

They stand in for CIFAR-10 where the machine has no network. 1,797 digits: five training files of 280 and a test file of 397.
"""

import hashlib
import os
import pickle
import sys

TRAIN_EACH = 280
FOLDER = "cifar-10-batches-py"


def write(root):
    """Write the six files and the list of names under root/cifar-10-batches-py."""
    import numpy as np
    from PIL import Image
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.images))
    grey = np.stack([np.asarray(Image.fromarray((image * 15.9).astype(np.uint8)).resize((32, 32), Image.BICUBIC)) for image in digits.images[order]])
    data, labels = np.repeat(grey[:, None], 3, axis=1).reshape(len(grey), 3072), digits.target[order].tolist()
    folder = os.path.join(root, FOLDER)
    os.makedirs(folder, exist_ok=True)
    cuts = [i * TRAIN_EACH for i in range(6)] + [len(grey)]
    for name, begin, end in zip([f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"], cuts, cuts[1:]):
        with open(os.path.join(folder, name), "wb") as file:
            pickle.dump({"data": data[begin:end], "labels": labels[begin:end]}, file, protocol=2)
    with open(os.path.join(folder, "batches.meta"), "wb") as file:
        pickle.dump({"label_names": [str(i) for i in range(10)]}, file, protocol=2)


def accept(datasets, root):
    """Tell datasets.CIFAR10 the checksums of the files under `root`."""

    def md5(name):
        with open(os.path.join(root, FOLDER, name), "rb") as file:
            return hashlib.md5(file.read()).hexdigest()

    datasets.CIFAR10.train_list = [[f"data_batch_{i}", md5(f"data_batch_{i}")] for i in range(1, 6)]
    datasets.CIFAR10.test_list = [["test_batch", md5("test_batch")]]
    datasets.CIFAR10.meta = {"filename": "batches.meta", "key": "label_names", "md5": md5("batches.meta")}


if __name__ == "__main__":
    write(sys.argv[1])
