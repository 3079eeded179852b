"""Damaged and hostile checkpoints give an exception, or at worst other numbers; never a crash, a hang or a giant allocation."""

import io
import pickle
import random
import struct
import zipfile

import pytest

import msadapter.pytorch as torch

ERRORS = (RuntimeError, pickle.UnpicklingError, EOFError)


def example(zipped):
    file = io.BytesIO()
    net = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4))
    torch.save({"state": net.state_dict(), "list": [1, 2.5, "x", b"\xff", None], "views": [net[0].weight, net[0].weight.t()]}, file,
               _use_new_zipfile_serialization=zipped)
    return file.getvalue()


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_truncated_files_give_an_exception(zipped):
    data = example(zipped)
    for size in range(0, len(data), 97):
        with pytest.raises(ERRORS):
            torch.load(io.BytesIO(data[:size]))


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_flipped_bits_never_crash(zipped):
    data, chance = example(zipped), random.Random(1)
    for _ in range(1500):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 1, 5))):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        try:
            torch.load(io.BytesIO(bytes(changed)))
        except (*ERRORS, NotImplementedError, MemoryError):
            pass


def test_flipped_bits_of_the_pickle_never_crash():
    """The zip's checksum would catch them, so the archive is made anew around each."""
    archive, chance = zipfile.ZipFile(io.BytesIO(example(True))), random.Random(2)
    entries = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(500):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as changed:
            for name, content in entries.items():
                if name.endswith("data.pkl"):
                    content = bytearray(content)
                    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
                changed.writestr(name, bytes(content))
        try:
            torch.load(io.BytesIO(file.getvalue()))
        except (*ERRORS, NotImplementedError, MemoryError):
            pass


def checkpoint(pickled, **storages):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", "3\n")
        for key, content in storages.items():
            archive.writestr(f"archive/data/{key}", content)
    return io.BytesIO(file.getvalue())


def tensor_pickle(numel=4, offset=0, size=(4,), stride=(1,), kind="FloatStorage"):
    text = pickle.dumps((offset, size, stride), 2)[2:-1]
    return (b"\x80\x02ctorch._utils\n_rebuild_tensor\n((X\x07\0\0\0storagectorch\n" + kind.encode() + b"\nX\x01\0\0\0aX\x03\0\0\0cpu"
            + pickle.dumps(numel, 2)[2:-1] + b"tQ" + pickle.dumps(offset, 2)[2:-1] + pickle.dumps(size, 2)[2:-1]
            + pickle.dumps(stride, 2)[2:-1] + b"tR.") if text else b""


def test_hostile_geometry_is_refused():
    data = struct.pack("<4f", 1, 2, 3, 4)
    assert torch.load(checkpoint(tensor_pickle(), a=data)).tolist() == [1, 2, 3, 4]
    for bad in ({"numel": 5}, {"numel": 2**62}, {"numel": -1}, {"offset": 1}, {"offset": -1}, {"size": (5,)}, {"size": (-1,)}, {"size": (4, 4)},
                {"stride": (2,)}, {"stride": (-1,)}, {"size": (2**40,), "stride": (2**40,)}, {"size": (2**62, 2**62), "stride": (0, 0)},
                {"size": (1,) * 100, "stride": (1,) * 100}, {"kind": "DoubleStorage"}, {"numel": 1.5}, {"offset": 2**63}):
        with pytest.raises(ERRORS):
            torch.load(checkpoint(tensor_pickle(**bad), a=data))
    with pytest.raises(ERRORS):
        torch.load(checkpoint(tensor_pickle(), b=data))


def test_short_pickles_cannot_ask_for_much():
    text = b"X" + struct.pack("<I", 100000) + b"a" * 100000
    bomb = b"\x80\x02]" + text + b"q\0" + b"0(" + b"c_codecs\nencode\nh\0X\x06\0\0\0latin1\x86R" * 10000 + b"e."
    with pytest.raises(pickle.UnpicklingError, match="memory"):
        torch.load(io.BytesIO(bomb))
    deep = b"\x80\x02)" + b"q\0h\0h\0\x87" * 60 + b"q\x01}h\x01K\x01s."  # a key that takes 3**60 steps to hash
    with pytest.raises(ERRORS):
        torch.load(io.BytesIO(deep))
    with pytest.raises(pickle.UnpicklingError, match="nested"):
        torch.load(io.BytesIO(b"(" * 100000 + b"t" * 100000 + b"."))


def test_keys_that_cannot_be_hashed_are_the_files_fault():
    with pytest.raises(pickle.UnpicklingError, match="unhashable"):
        torch.load(io.BytesIO(b"\x80\x02}]K\x01s."))


def test_files_of_other_kinds_are_named():
    with pytest.raises(RuntimeError, match="data.pkl"):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("readme", "x")
        torch.load(io.BytesIO(file.getvalue()))
    with pytest.raises(pickle.UnpicklingError):
        torch.load(io.BytesIO(b"\x89PNG\r\n"))
    with pytest.raises(EOFError):
        torch.load(io.BytesIO(b""))


def test_the_other_byte_order_is_read():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", tensor_pickle())
        archive.writestr("x/byteorder", "big")
        archive.writestr("x/data/a", struct.pack(">4f", 1, 2, 3, 4))
    assert torch.load(io.BytesIO(file.getvalue())).tolist() == [1, 2, 3, 4]
