"""Files of data sets: pickles are read with either numpy and nothing in them is run, archives stay in their folder; normalisation."""

import http.client
import io
import pickle
import tarfile

import numpy
import pytest

import msadapter.pytorch as torch
from msadapter.torchvision import transforms
from msadapter.torchvision.datasets.utils import download_url, extract_archive, load_plain_pickle


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


def _tar(path, *names):
    with tarfile.open(path, "w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            archive.addfile(member, io.BytesIO(b""))


def test_archives_are_unpacked_inside_their_folder_only(tmp_path):
    _tar(tmp_path / "good.tar", "./", "./folder/", "./folder/a", "b")
    extract_archive(str(tmp_path / "good.tar"), str(tmp_path / "out"))
    assert (tmp_path / "out" / "folder" / "a").exists() and (tmp_path / "out" / "b").exists()
    for name in ("../evil", "/evil", "folder/../../evil", "../out2/evil"):
        _tar(tmp_path / "bad.tar", "fine", name)
        with pytest.raises(RuntimeError, match="refusing the member"):
            extract_archive(str(tmp_path / "bad.tar"), str(tmp_path / "other"))
        assert not (tmp_path / "other" / "fine").exists()


def test_a_broken_download_says_what_to_do(tmp_path, monkeypatch):
    def broken(*args, **kwargs):
        raise http.client.IncompleteRead(b"half")

    monkeypatch.setattr("urllib.request.urlopen", broken)
    with pytest.raises(RuntimeError, match="get data.bin some other way and put it into"):
        download_url("https://example.org/data.bin", str(tmp_path))


def test_normalize_refuses_means_for_other_channels():
    with pytest.raises(RuntimeError):
        transforms.functional.normalize(torch.rand(1, 4, 4), (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    picture = torch.rand(3, 4, 4)
    kept = picture.clone()
    assert torch.allclose(transforms.functional.normalize(picture, [0.5], [0.25]), (kept - 0.5) / 0.25) and torch.equal(picture, kept)
