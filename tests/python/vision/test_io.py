"""torchvision.io against the real one: files, JPEG and PNG in all modes, damaged pictures, films where PyAV is installed."""

import io
import sys

import numpy
import pytest

import msadapter.pytorch as torch
from msadapter.torchvision import io as mine

real_torch = pytest.importorskip("torch")
real = pytest.importorskip("torchvision").io
Image = pytest.importorskip("PIL.Image")

MODES = list(mine.ImageReadMode)


def ours(value):
    return torch.from_numpy(value.numpy().copy()) if isinstance(value, real_torch.Tensor) else value


def same(name, *args, text=True):
    """Both sides give equal tensors or raise errors of one class, and with `text` the same words."""
    my_args = [mine.ImageReadMode(a.value) if isinstance(a, real.ImageReadMode) else ours(a) for a in args]
    try:
        expected = getattr(real, name)(*args)
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            getattr(mine, name)(*my_args)
        assert not text or str(caught.value) == str(error)
        return
    result = getattr(mine, name)(*my_args)
    if expected is None:
        assert result is None
        return
    assert repr(result.dtype) == repr(expected.dtype) and tuple(result.shape) == tuple(expected.shape)
    numpy.testing.assert_array_equal(result.numpy(), expected.numpy())


def stored(picture, kind, **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return real_torch.frombuffer(bytearray(file.getvalue()), dtype=real_torch.uint8)


def pictures():
    values = numpy.random.RandomState(0).randint(0, 256, (17, 22, 4), dtype=numpy.uint8)
    rgb = Image.fromarray(values[..., :3])
    return {"L": Image.fromarray(values[..., 0]), "LA": Image.fromarray(numpy.ascontiguousarray(values[..., :2]), "LA"), "RGB": rgb,
            "RGBA": Image.fromarray(values), "P": rgb.quantize(200), "P of 8": rgb.quantize(8), "1": rgb.convert("1"),
            "16": Image.fromarray(values[..., 0].astype(numpy.uint16) * 256)}


PICTURES = pictures()


def test_modes_are_the_same():
    assert {m.name: m.value for m in MODES} == {m.name: m.value for m in real.ImageReadMode}


@pytest.mark.parametrize("mode", list(real.ImageReadMode))
@pytest.mark.parametrize("kind", list(PICTURES))
def test_png(kind, mode, tmp_path):
    data = stored(PICTURES[kind], "PNG")
    if (kind in ("P", "P of 8", "1") and mode.name.endswith("ALPHA")) or (kind == "P of 8" and mode.name == "UNCHANGED"):
        # torchvision 0.14 returns bytes of which it never wrote some; the alpha that isn't there is full, the indices are the indices.
        result = mine.decode_png(ours(data), mine.ImageReadMode(mode.value))
        if mode.name == "UNCHANGED":
            assert (result[0].numpy() == numpy.asarray(PICTURES[kind])).all()
        else:
            colours = mine.decode_png(ours(data), mine.ImageReadMode[mode.name[:-6]])
            assert torch.equal(result, torch.cat([colours, torch.full_like(colours[:1], 255)]))
        return
    same("decode_png", data, mode)
    same("decode_image", data, mode)
    (tmp_path / "a").write_bytes(bytes(data.tolist()))
    same("read_image", str(tmp_path / "a"), mode)


@pytest.mark.parametrize("mode", list(real.ImageReadMode))
def test_png_with_a_transparent_colour(mode):
    same("decode_png", stored(PICTURES["RGB"], "PNG", transparency=(1, 2, 3)), mode)
    same("decode_png", stored(PICTURES["P"], "PNG", transparency=3), mode)
    same("decode_png", stored(PICTURES["L"], "PNG", transparency=3), mode)


@pytest.mark.parametrize("mode", list(real.ImageReadMode))
@pytest.mark.parametrize("kind", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("options", [{}, {"quality": 30, "progressive": True}, {"quality": 95, "subsampling": 0}])
def test_jpeg(kind, mode, options):
    data = stored(PICTURES["RGB"].convert(kind), "JPEG", **options)
    same("decode_jpeg", data, mode)
    same("decode_image", data, mode)


def test_jpeg_on_other_devices():
    with pytest.raises(RuntimeError, match="nvJPEG"):
        mine.decode_jpeg(ours(stored(PICTURES["L"], "JPEG")), device="cuda")


@pytest.mark.parametrize("channels", [1, 3])
def test_written_pictures(channels, tmp_path):
    x = real_torch.randint(0, 256, (channels, 19, 23), dtype=real_torch.uint8)
    for quality in (1, 75, 100):
        same("encode_jpeg", x, quality)
    for level in (0, 6, 9):
        assert torch.equal(mine.decode_png(mine.encode_png(ours(x), level)), ours(x))
        assert real_torch.equal(real.decode_png(real_torch.from_numpy(mine.encode_png(ours(x), level).numpy())), x)
    mine.write_jpeg(ours(x), str(tmp_path / "a.jpg"), 60)
    real.write_jpeg(x, str(tmp_path / "b.jpg"), 60)
    assert (tmp_path / "a.jpg").read_bytes() == (tmp_path / "b.jpg").read_bytes()
    mine.write_png(ours(x).permute(0, 2, 1).contiguous().permute(0, 2, 1), str(tmp_path / "a.png"), 3)
    same("read_image", str(tmp_path / "a.png"))


def test_pictures_that_cannot_be_written():
    good = real_torch.zeros(3, 4, 4, dtype=real_torch.uint8)
    for name in ("encode_jpeg", "encode_png"):
        for wrong in (good.float(), good[0], good.repeat(2, 1, 1), good[:2], good[:, :0]):
            same(name, wrong)
    for quality in (0, 101):
        same("encode_jpeg", good, quality)
    for level in (-1, 10):
        same("encode_png", good, level)
    same("encode_jpeg", good, 1.5, text=False)
    with pytest.raises(RuntimeError, match="as JPEG"):
        mine.encode_jpeg(torch.zeros(1, 1, 70000, dtype=torch.uint8))


def test_files(tmp_path):
    data = real_torch.randint(0, 256, (100,), dtype=real_torch.uint8)
    mine.write_file(str(tmp_path / "a"), ours(data))
    same("read_file", str(tmp_path / "a"))
    (tmp_path / "empty").touch()
    same("read_file", str(tmp_path / "empty"))
    same("read_file", str(tmp_path / "missing"))
    same("read_file", tmp_path / "a", text=False)
    same("read_file", str(tmp_path), text=False)
    for wrong in (data.float(), data.view(10, 10)):
        same("write_file", str(tmp_path / "b"), wrong)
    same("write_file", str(tmp_path / "none" / "b"), data)


def test_what_is_no_picture():
    junk = real_torch.arange(50, dtype=real_torch.uint8)
    for name in ("decode_jpeg", "decode_png", "decode_image"):
        for wrong in (junk, junk.float(), junk.view(5, 10), junk[:0]):
            same(name, wrong)
        same(name, [1, 2], text=False)
        same(name, junk, 3)
    same("decode_png", stored(PICTURES["L"], "JPEG"))
    same("decode_jpeg", stored(PICTURES["L"], "PNG"))


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_damaged_pictures_are_errors_or_pictures(kind):
    data = bytes(stored(PICTURES["RGB"], kind).tolist())
    random = numpy.random.RandomState(1)
    for cut in [3, 8, 20, 25, 40, len(data) // 2, len(data) - 50]:
        with pytest.raises(RuntimeError):
            mine.decode_image(torch.frombuffer(bytearray(data[:cut]), dtype=torch.uint8))
    same("decode_jpeg" if kind == "JPEG" else "decode_png", real_torch.frombuffer(bytearray(data[:len(data) // 2]), dtype=real_torch.uint8))
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(4):
            changed[random.randint(len(data))] = random.randint(256)
        try:
            mine.decode_image(torch.frombuffer(changed, dtype=torch.uint8), MODES[random.choice([0, 1, 3])])
        except RuntimeError:
            pass


def test_sixteen_bits(tmp_path):
    import struct
    import zlib

    from msadapter.torchvision.io.image import _read_png_16

    real_read = __import__("torchvision.io.image", fromlist=["x"])._read_png_16

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    values = numpy.random.RandomState(2).randint(0, 65536, (5, 7, 3)).astype(">u2")
    for colour, part in ((2, values), (0, values[..., 0])):
        rows = b"".join(b"\0" + row.tobytes() for row in part)
        head = struct.pack(">IIBBBBB", 7, 5, 16, colour, 0, 0, 0)
        path = tmp_path / f"{colour}.png"
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
        result, expected = _read_png_16(str(path)), real_read(str(path))
        assert repr(result.dtype) == repr(expected.dtype)
        numpy.testing.assert_array_equal(result.numpy(), expected.numpy())
    PICTURES["RGB"].save(tmp_path / "8.png")
    with pytest.raises(RuntimeError, match="16 bits"):
        _read_png_16(str(tmp_path / "8.png"))


def test_without_pyav(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "av", None)
    (tmp_path / "a.mp4").touch()
    path = str(tmp_path / "a.mp4")
    for call in (lambda: mine.read_video(path), lambda: mine.read_video_timestamps(path), lambda: mine.VideoReader(path),
                 lambda: mine.write_video(path, torch.zeros(1, 2, 2, 3), 5)):
        with pytest.raises(ImportError, match="PyAV is not installed, and is necessary for the video operations in torchvision"):
            call()
    with pytest.raises(ValueError, match="output_format should be either 'THWC' or 'TCHW', got CHW"):
        mine.read_video(path, output_format="chw")
    with pytest.raises(RuntimeError, match="File not found"):
        mine.read_video(path + "x")
    with pytest.raises(RuntimeError, match="GPU"):
        mine.VideoReader(path, device="cuda")


def test_film_data():
    mine_data, theirs = mine.VideoMetaData(), real.VideoMetaData()
    for name in real.VideoMetaData.__slots__:
        if "timebase" in name:
            base = getattr(mine_data, name)
            assert isinstance(base, mine.Timebase) and (base.numerator, base.denominator) == (0, 1)
        else:
            assert getattr(mine_data, name) == getattr(theirs, name)


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    pytest.importorskip("av")
    path = str(tmp_path_factory.mktemp("films") / "film.mp4")
    frames = (torch.arange(40).view(40, 1, 1, 1) * 5 + torch.zeros(40, 32, 48, 3)).to(torch.uint8)
    sound = torch.sin(torch.arange(4 * 44100) / 50.0)[None]
    mine.write_video(path, frames, 10.0, options={"crf": "5"}, audio_array=sound, audio_fps=44100, audio_codec="aac")
    return path


@pytest.mark.filterwarnings("ignore:The pts_unit 'pts'")
@pytest.mark.parametrize("args", [(), (0.5, 2.0, "sec"), (1.03, 1.5, "sec", "TCHW"), (0, 5000, "pts"), (3, None, "sec")])
def test_read_films(film, args):
    result, expected = mine.read_video(film, *args), real.read_video(film, *args)
    assert result[2] == expected[2]
    for a, b in zip(result[:2], expected[:2]):
        assert repr(a.dtype) == repr(b.dtype)
        numpy.testing.assert_array_equal(a.numpy(), b.numpy())


def test_times_of_films(film, tmp_path):
    for unit in ("pts", "sec"):
        assert mine.read_video_timestamps(film, unit) == real.read_video_timestamps(film, unit)
    with pytest.raises(ValueError, match="end_pts should be larger"):
        mine.read_video(film, 3, 1)
    (tmp_path / "junk.mp4").write_bytes(b"no film")
    with pytest.warns(RuntimeWarning, match="Failed to open container"):
        assert mine.read_video_timestamps(str(tmp_path / "junk.mp4")) == ([], None)
    frames, sound, info = mine.read_video(str(tmp_path / "junk.mp4"))
    assert frames.shape == (0, 1, 1, 3) and sound.shape == (1, 0) and info == {}
    with pytest.raises(RuntimeError, match="cannot open"):
        mine.VideoReader(str(tmp_path / "junk.mp4"))


def test_frame_by_frame(film):
    reader = mine.VideoReader(film, "video")
    frames, _, _ = mine.read_video(film, pts_unit="sec", output_format="TCHW")
    read = list(reader)
    assert torch.equal(torch.stack([one["data"] for one in read]), frames) and [round(one["pts"], 6) for one in read] == [i / 10 for i in range(40)]
    assert round(next(reader.seek(1.05))["pts"], 6) == 1.1 and next(reader.seek(2.0, keyframes_only=True))["pts"] <= 2.0
    data = reader.get_metadata()
    assert data["video"] == {"duration": [4.0], "fps": [10.0]} and data["audio"]["framerate"] == [44100.0]
    assert reader.set_current_stream("audio:0") and next(reader)["data"].shape == (1024, 2)
    assert not reader.set_current_stream("video:7")
    for wrong in ("picture", "video:x"):
        with pytest.raises(RuntimeError):
            reader.set_current_stream(wrong)
