"""Files of data sets: pickles with numpy arrays inside are read with either numpy, and nothing else in them is run."""

import pickle

import numpy
import pytest

from msadapter.torchvision.datasets.utils import load_plain_pickle


def test_arrays_and_numbers_of_any_numpy(tmp_path):
    content = {b"data": numpy.arange(12, dtype="uint8").reshape(3, 4), "labels": [1, 2], "mean": numpy.float64(0.5)}
    for swap in (None, (b"numpy._core.multiarray", b"numpy.core.multiarray"), (b"numpy.core.multiarray", b"numpy._core.multiarray")):
        data = pickle.dumps(content, protocol=2)
        if swap:
            data = data.replace(*swap)
        path = tmp_path / "batch"
        path.write_bytes(data)
        read = load_plain_pickle(str(path))
        assert (list(read.values())[0] == content[b"data"]).all() and read["labels"] == [1, 2] and read["mean"] == 0.5


def test_code_is_refused(tmp_path):
    class Hostile:
        def __reduce__(self):
            return print, ("run",)

    path = tmp_path / "batch"
    path.write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(pickle.UnpicklingError, match="has no place in a data set's file"):
        load_plain_pickle(str(path))
