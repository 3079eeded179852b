"""Files for TensorBoard. WRITTEN holds what torch.utils.tensorboard 1.13 with TensorBoard 2.21 makes of the same calls."""

import io
import os
import struct

import numpy as np
import pytest
from PIL import Image

import msadapter.pytorch as torch
from msadapter import _C
from msadapter.pytorch.utils.tensorboard import FileWriter, RecordWriter, SummaryWriter, summary
from msadapter.pytorch.utils.tensorboard._messages import encode
from msadapter.pytorch.utils.tensorboard._records import masked_crc

WRITTEN = {
    "scalar": (lambda s: s.scalar("a/b", 2.5),
        "0a0a0a03612f621500002040"),
    "zero": (lambda s: s.scalar("z", 0.0),
        "0a080a017a1500000000"),
    "new": (lambda s: s.scalar("n", 1.5, new_style=True),
        "0a1a0a016e420808012a040000c03f4a0b0a090a077363616c617273"),
    "double": (lambda s: s.scalar("n", 1.5, new_style=True, double_precision=True),
        "0a1e0a016e420c08023208000000000000f83f4a0b0a090a077363616c617273"),
    "histogram": (lambda s: s.histogram_raw("h", 0.0, 1.0, 3, 2.0, 1.5, [0.5, 1.0], [1, 2]),
        "0a4d0a01682a4811000000000000f03f19000000000000084021000000000000004029000000000000f83f3210000000000000e03f000000000000f03f3a10000000000000f0"
        "3f0000000000000040"),
    "text": (lambda s: s.text("t", "hé"),
        "0a290a0e742f746578745f73756d6d617279420d0807120412020801420368c3a94a080a060a0474657874"),
    "audio": (lambda s: s.audio("s", np.array([0.0, 0.5, -1.0]), 8000),
        "0a4d0a017332480d0000fa45100118032232524946462a00000057415645666d74201000000001000100401f0000803e00000200100064617461060000000000ff3f01802a09"
        "617564696f2f776176"),
    "custom": (lambda s: s.custom_scalars({"C": {"one": ["Multiline", ["a", "b"]], "two": ["Margin", ["v", "l", "u"]]}}),
        "0a5e0a18637573746f6d5f7363616c6172735f5f636f6e6669675f5f422e08071200422812260a0143120d0a036f6e6512060a01610a016212120a0374776f1a0b0a090a0176"
        "12016c1a01754a120a100a0e637573746f6d5f7363616c617273"),
    "curve": (lambda s: s.pr_curve("p", np.array([0, 1, 1]), np.array([0.2, 0.9, 0.4]), num_thresholds=4),
        "0a86010a0170426e0801120812020806120208042a6000000040000000400000803f000000000000803f000000000000000000000000000000000000803f0000803f0000803f"
        "00000000000000000000803f00000040abaa2a3f0000803f0000803f000000000000803f0000803f0000003f000000004a110a0f0a0970725f63757276657312021004"),
    "mesh": (lambda s: s.mesh("m", np.arange(6.0).reshape(1, 2, 3), None, np.array([[[0, 1, 1]]]), {"k": 1}),
        "0a580a086d5f564552544558422a0801120c1202080112020802120208032a18000000000000803f0000004000004040000080400000a0404a200a1e0a046d65736812161201"
        "6d18012a087b226b223a20317d320301020338060a4a0a066d5f46414345421e0801120c1202080112020801120208032a0c000000000000803f0000803f4a200a1e0a046d65"
        "7368121612016d18022a087b226b223a20317d32030101033806"),
    "experiment": (lambda s: s.hparams({"lr": 0.5, "opt": "sgd"}, {"acc": 1}, {"opt": ["sgd", "adam"]})[0],
        "0a520a145f68706172616d735f2f6578706572696d656e744a3a0a380a0768706172616d73122d122b22060a026c72200322180a036f707420012a0f0a051a037367640a061a"
        "046164616d2a070a051203616363"),
    "end": (lambda s: s.hparams({}, {})[2],
        "0a2f0a1a5f68706172616d735f2f73657373696f6e5f656e645f696e666f4a110a0f0a0768706172616d73120422020801"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_summaries_are_the_bytes_that_torch_writes(name):
    make, text = WRITTEN[name]
    assert encode("Summary", make(summary)).hex() == text


def records(path):
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        body = data[12:12 + length]
        assert struct.unpack("<I", data[8:12])[0] == masked_crc(data[:8]) and struct.unpack("<I", data[12 + length:16 + length])[0] == masked_crc(body)
        found.append(body)
        data = data[16 + length:]
    return found


def fields(message):
    """[(number, value)] of a message; blocks as bytes."""
    found, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(message):
        key = varint()
        size = {0: 0, 1: 8, 5: 4}.get(key & 7)
        if size == 0:
            found.append((key >> 3, varint()))
            continue
        size = varint() if size is None else size
        found.append((key >> 3, message[at:at + size]))
        at += size
    return found


def values(folder):
    """{tag: value's fields} of the only file in a folder."""
    (path,) = [p for p in folder.iterdir() if p.name.startswith("events.out.tfevents.")]
    events = [dict(fields(r)) for r in records(path)]
    assert events[0][3] == b"brain.Event:2"
    found = {}
    for event in events[1:]:
        for _, value in fields(event.get(5, b"")):
            parts = dict(fields(value))
            found[parts[1].decode()] = (event, parts)
    return found


def test_checksum():
    assert _C._crc32c(b"123456789") == 0xE3069283 and _C._crc32c(b"") == 0
    file = io.BytesIO()
    RecordWriter(file).write(b"abc")
    assert len(file.getvalue()) == 8 + 4 + 3 + 4


def test_a_run(tmp_path):
    torch.manual_seed(0)
    with SummaryWriter(tmp_path, filename_suffix=".x") as w:
        w.add_scalar("loss", torch.tensor(0.25), 7, walltime=5.0)
        w.add_scalars("both", {"a": 1.0, "b": 2.0}, 1)
        w.add_histogram("h", torch.randn(100), 1)
        w.add_histogram("few", torch.randn(100, dtype=torch.bfloat16), 1, bins=20, max_bins=4)
        picture = torch.rand(3, 5, 6)
        w.add_image("i", picture, 1)
        w.add_images("is", torch.rand(5, 1, 4, 4))
        w.add_image_with_boxes("ib", torch.zeros(3, 20, 20), torch.tensor([[2, 3, 15, 12]]), labels=["x"])
        w.add_video("v", torch.rand(3, 2, 1, 4, 5), fps=2)
        w.add_audio("s", torch.zeros(1, 10))
        w.add_pr_curve("pr", torch.tensor([0, 1]), torch.tensor([0.1, 0.9]))
        w.add_hparams({"lr": 0.1, "on": True, "x": torch.tensor(2.0), "none": None}, {"acc": 0.5}, run_name="hp")
        w.add_embedding(torch.eye(2), [["a", 1], ["b", 2]], torch.rand(2, 3, 4, 4), tag="t/u", metadata_header=["n", "k"])
    found = values(tmp_path)
    event, loss = found["loss"]
    assert event[2] == 7 and struct.unpack("<d", event[1]) == (5.0,) and struct.unpack("<f", loss[2]) == (0.25,)
    assert struct.unpack("<f", values(tmp_path / "both_b")["both"][1][2]) == (2.0,)
    histogram = dict(fields(found["h"][1][5]))
    assert struct.unpack("<d", histogram[3]) == (100.0,) and sum(struct.unpack(f"<{len(histogram[7]) // 8}d", histogram[7])) == 100
    assert len(dict(fields(found["few"][1][5]))[7]) // 8 <= 6

    def image(tag):
        parts = dict(fields(found[tag][1][4]))
        return parts, np.asarray(Image.open(io.BytesIO(parts[4])).convert("RGB"))
    parts, pixels = image("i")
    assert (parts[1], parts[2], parts[3]) == (5, 6, 3) and np.array_equal(pixels, (picture.numpy() * 255).astype(np.uint8).transpose(1, 2, 0))
    assert image("is")[1].shape == (4, 20, 3) and image("ib")[1].max() == 255 and image("v")[1].shape == (4, 20, 3)
    assert {"_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info", "acc"} == set(values(tmp_path / "hp"))
    assert (tmp_path / "00000/t%2fu/metadata.tsv").read_text() == "n\tk\na\t1\nb\t2\n"
    assert (tmp_path / "00000/t%2fu/tensors.tsv").read_text() == "1.0\t0.0\n0.0\t1.0\n"
    assert 'tensor_path: "00000/t%2fu/tensors.tsv"' in (tmp_path / "projector_config.pbtxt").read_text()
    assert Image.open(tmp_path / "00000/t%2fu/sprite.png").size == (8, 8)


def test_files_begin_anew_after_close_and_purge(tmp_path):
    w = SummaryWriter(tmp_path / "a", purge_step=3)
    (path,) = (tmp_path / "a").iterdir()
    w.flush()
    assert dict(fields(dict(fields(records(path)[2]))[7])) == {1: 1}  # a session starts
    w.close()
    w.close()
    w.add_text("t", "x")
    w.close()
    assert len(os.listdir(tmp_path / "a")) == 2 and w.get_logdir() == str(tmp_path / "a")
    f = FileWriter(tmp_path / "b", max_queue=1)
    f.add_summary(summary.scalar("x", 1))
    (path,) = (tmp_path / "b").iterdir()
    assert len(records(path)) == 2  # flushed by itself
    f.reopen()
    f.close()


def test_the_folder_without_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    w = SummaryWriter(comment="_mine")
    w.close()
    assert w.log_dir.startswith("runs" + os.sep) and w.log_dir.endswith("_mine") and os.path.isdir(w.log_dir)


def test_errors(tmp_path):
    w = SummaryWriter(tmp_path)
    for call, error in ((lambda: w.add_scalar("x", torch.ones(2)), AssertionError), (lambda: w.add_histogram("x", torch.ones(0)), ValueError),
                        (lambda: w.add_histogram_raw("x", 0, 1, 2, 3, 4, [1], [1, 2]), ValueError), (lambda: w.add_scalar("x", "y"), NotImplementedError),
                        (lambda: w.add_image("x", torch.ones(3, 4)), AssertionError), (lambda: w.add_graph(torch.nn.Linear(1, 1)), NotImplementedError),
                        (lambda: w.add_hparams([], {}), TypeError), (lambda: w.add_hparams({"a": [1]}, {}), ValueError),
                        (lambda: w.add_hparams({"a": 1}, {}, {"a": ["x"]}), TypeError), (lambda: w.add_onnx_graph("x"), NotImplementedError),
                        (lambda: w.add_embedding(torch.ones(2, 2), ["a"]), AssertionError), (lambda: w.add_audio("x", torch.ones(2, 2)), AssertionError),
                        (lambda: w.add_custom_scalars_marginchart(["a"]), AssertionError), (lambda: w.add_video("x", torch.ones(2)), AssertionError)):
        with pytest.raises(error):
            call()
    w.close()
