"""torch.save and torch.load: everything comes back as it was, sharing and geometry included."""

import io
import os
import pickle
from collections import Counter, OrderedDict, defaultdict

import pytest

import msadapter.pytorch as torch

both_formats = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def saved(obj, zipped=True, **arguments):
    file = io.BytesIO()
    torch.save(obj, file, _use_new_zipfile_serialization=zipped, **arguments)
    return file.getvalue()


def round_trip(obj, zipped=True, **arguments):
    return torch.load(io.BytesIO(saved(obj, zipped)), **arguments)


@both_formats
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_comes_back(name, zipped):
    t = torch.tensor([0, 1, 1, 0, 1]).to(getattr(torch, name))
    result = round_trip(t, zipped)
    assert result.dtype is t.dtype and torch.equal(result, t)


@both_formats
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4, 1, 2, 2)])
def test_every_shape_comes_back(shape, zipped):
    t = torch.ones(shape)
    result = round_trip(t, zipped)
    assert result.shape == t.shape and result.stride() == t.stride() and torch.equal(result, t)


@both_formats
def test_views_share_their_storage_and_keep_their_geometry(zipped):
    base = torch.arange(24.0).reshape(4, 6)
    result = round_trip({"base": base, "t": base.t(), "step": base[1:, ::2], "wide": base[:, :1].expand(4, 6)}, zipped)
    for name, view in (("t", base.t()), ("step", base[1:, ::2]), ("wide", base[:, :1].expand(4, 6))):
        assert result[name].stride() == view.stride() and result[name].storage_offset() == view.storage_offset()
        assert torch.equal(result[name], view)
    result["base"][1, 0] = 100
    assert result["t"][0, 1] == 100 and result["step"][0, 0] == 100 and result["wide"][1, 5] == 100


@both_formats
def test_one_storage_is_stored_once(zipped):
    t = torch.zeros(10000)
    assert len(saved([t, t.view(100, 100), t[5:]], zipped)) < 50000


def test_the_same_object_comes_back_as_one_object():
    shared = [1, 2]
    result = round_trip({"a": shared, "b": shared, "t": (shared,)})
    assert result["a"] is result["b"] and result["t"][0] is result["a"]


@both_formats
def test_plain_values_keep_their_types(zipped):
    values = [None, True, False, 0, -1, 255, 256, 65536, -2**31, 2**31, 2**63 - 1, -2**63, 2**63, 2**2000, -2**2000, 1.5, float("inf"), 1 + 2j,
              "", "text", "\u00e9\u4e2d\U0001F600", "\ud800", b"", bytes(range(256)), bytearray(b"ab"), (), (1,), (1, 2), (1, 2, 3, 4), [], [[]], {},
              {1: "a", (2, 3): "b", None: 0}, OrderedDict([("z", 1), ("a", 2)]), Counter("aab"), defaultdict(list, {1: [2]}), {1, 2},
              frozenset([3]), slice(1, None, 2), range(0, 9, 3), torch.Size([2, 3]), torch.device("cpu"), torch.bfloat16, torch.strided,
              list(range(5000)), {str(i): i for i in range(3000)}]
    for value, result in zip(values, round_trip(values, zipped), strict=True):
        assert type(result) is type(value) and result == value
    assert list(round_trip(OrderedDict([("z", 1), ("a", 2)]))) == ["z", "a"]


@both_formats
def test_parameters_stay_parameters_and_leaves_keep_requires_grad(zipped):
    leaf = torch.ones(2, requires_grad=True)
    result = round_trip({"p": torch.nn.Parameter(torch.ones(3)), "frozen": torch.nn.Parameter(torch.ones(1), False), "leaf": leaf, "deep": leaf * 2},
                        zipped)
    assert type(result["p"]) is torch.nn.Parameter and result["p"].requires_grad
    assert type(result["frozen"]) is torch.nn.Parameter and not result["frozen"].requires_grad
    assert type(result["leaf"]) is torch.Tensor and result["leaf"].requires_grad and result["deep"].is_leaf
    (result["p"].sum() * 2).backward()
    assert result["p"].grad.tolist() == [2, 2, 2]


def test_attributes_of_tensors_come_back():
    t = torch.ones(2)
    t.note = "kept"
    assert round_trip(t).note == "kept"


def model():
    return torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Flatten(), torch.nn.Linear(72, 3))


@both_formats
def test_state_of_modules_comes_back_with_its_versions(zipped):
    state = model().state_dict()
    result = round_trip(state, zipped)
    assert type(result) is OrderedDict and result._metadata == state._metadata
    other = model()
    other.load_state_dict(result, strict=True)
    for key, value in other.state_dict().items():
        assert torch.equal(value, state[key])


def test_state_of_optimizers_comes_back():
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    net(torch.randn(2, 1, 8, 8)).sum().backward()
    optimizer.step()
    result = round_trip({"epoch": 3, "net": net.state_dict(), "optimizer": optimizer.state_dict()})
    fresh = torch.optim.Adam(model().parameters())
    fresh.load_state_dict(result["optimizer"])
    assert fresh.state_dict()["param_groups"][0]["lr"] == 0.1
    first = optimizer.state_dict()["state"][0]["exp_avg"]
    assert torch.equal(fresh.state_dict()["state"][0]["exp_avg"], first)


@both_formats
def test_whole_modules_need_the_callers_word(zipped):
    net = model().eval()
    data = saved(net, zipped)
    with pytest.raises(pickle.UnpicklingError, match="weights_only=False"):
        torch.load(io.BytesIO(data))
    with pytest.raises(pickle.UnpicklingError, match="nn.modules.container.Sequential"):
        torch.load(io.BytesIO(data), weights_only=True)
    result = torch.load(io.BytesIO(data), weights_only=False)
    x = torch.randn(2, 1, 8, 8)
    assert not result.training and torch.equal(result(x), net(x))


@both_formats
def test_storages_shared_by_a_module_stay_shared(zipped):
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    net[1].weight = net[0].weight
    result = round_trip(net, zipped, weights_only=False)
    assert result[0].weight is result[1].weight


def test_numpy_numbers_and_arrays_are_loaded_safely():
    numpy = pytest.importorskip("numpy")
    array = numpy.asfortranarray(numpy.arange(6, dtype=numpy.float64).reshape(2, 3))
    result = round_trip({"a": array, "s": numpy.float32(1.5), "b": numpy.array([True, False]), "u": numpy.array(["ab", "c"]), "d": numpy.dtype("<i4")})
    assert (result["a"] == array).all() and result["a"].flags.f_contiguous and result["a"].flags.writeable
    assert result["s"] == 1.5 and result["s"].dtype == numpy.float32 and result["b"].tolist() == [True, False]
    assert result["u"].tolist() == ["ab", "c"] and result["d"] == numpy.dtype("<i4")
    with pytest.raises(pickle.UnpicklingError, match="dtype O"):
        round_trip(numpy.array([[1], None], dtype=object))


class Runs:
    """What a hostile file does: names a function to be called."""

    def __reduce__(self):
        return os.mkdir, ("/tmp/msadapter-was-here",)


@both_formats
def test_loading_runs_nothing(zipped):
    for data in (saved({"a": [Runs()]}, zipped), pickle.dumps(Runs(), 0), pickle.dumps(Runs(), 4)):
        with pytest.raises(pickle.UnpicklingError, match="mkdir"):
            torch.load(io.BytesIO(data))
    assert not os.path.exists("/tmp/msadapter-was-here")


def test_bare_pickles_of_every_protocol_are_read():
    value = {"a": [1, 2.5, None, True, "x\u00e9", 2**80], "b": ({1, 2}, frozenset([3])), "c": b"\x00\xff"}
    for protocol in range(6):
        assert torch.load(io.BytesIO(pickle.dumps(value, protocol))) == value


def test_objects_that_contain_themselves_go_through_pickle():
    loop = []
    loop.append(loop)
    data = saved(loop)
    with pytest.raises(pickle.UnpicklingError, match="contains itself"):
        torch.load(io.BytesIO(data))
    result = torch.load(io.BytesIO(data), weights_only=False)
    assert result[0] is result


def test_files_follow_one_another():
    file = io.BytesIO()
    torch.save([1], file, _use_new_zipfile_serialization=False)
    torch.save(torch.ones(2), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert torch.load(file) == [1] and torch.load(file).tolist() == [1, 1]


def test_paths_of_every_kind(tmp_path):
    path = tmp_path / "net.pth"
    for kind in (path, str(path), os.fsencode(path)):
        torch.save([torch.ones(2)], kind)
        assert torch.load(kind)[0].tolist() == [1, 1]
    assert os.listdir(tmp_path) == ["net.pth"]
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pth")
    with pytest.raises(RuntimeError, match="Parent directory"):
        torch.save(1, tmp_path / "no" / "net.pth")
    with pytest.raises(AttributeError):
        torch.load(3)
    with pytest.raises(AttributeError):
        torch.save(1, 3)


def test_an_error_while_saving_leaves_the_old_file(tmp_path):
    path = tmp_path / "net.pth"
    torch.save([1], path)
    t = torch.zeros(4)
    with pytest.raises(RuntimeError, match="different types"):
        torch.save([t, t.view(torch.int32)], path)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save(lambda: 0, path)
    assert torch.load(path) == [1] and os.listdir(tmp_path) == ["net.pth"]


def test_an_error_of_the_file_object_comes_through():
    class Full:
        def write(self, data):
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        torch.save(torch.ones(2), Full())


def test_mapped_files_are_read_when_touched(tmp_path):
    path = tmp_path / "net.pth"
    torch.save({"a": torch.arange(100000.0), "b": torch.ones(2, dtype=torch.bfloat16)}, path)
    result = torch.load(path, mmap=True)
    result["a"][0] = 5
    assert result["a"].sum() == torch.arange(100000.0).sum() + 5 and result["b"].tolist() == [1, 1]
    assert torch.load(path)["a"][0] == 0  # changes stay in memory
    with pytest.raises(ValueError):
        torch.load(io.BytesIO(saved(1)), mmap=True)
    torch.save([1], path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap"):
        torch.load(path, mmap=True)


def test_map_location_in_its_forms():
    data = saved([torch.ones(2), torch.zeros(3, dtype=torch.int64)])

    def load(where):
        return torch.load(io.BytesIO(data), map_location=where)

    seen = []
    for where in (None, "cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, location: storage,
                  lambda storage, location: seen.append((storage.size(), location))):
        assert [t.tolist() for t in load(where)] == [[1, 1], [0, 0, 0]]
    assert seen == [(2, "cpu"), (3, "cpu")]
    with pytest.raises(RuntimeError, match="device"):
        load("nowhere")
    with pytest.raises(TypeError):
        load(1.5)
    with pytest.raises(ZeroDivisionError):
        load(lambda storage, location: 1 / 0)


def test_strings_of_python_2(tmp_path):
    data = b"U\x02\xe9a."
    assert torch.load(io.BytesIO(data), encoding="latin1") == "\u00e9a" and torch.load(io.BytesIO(data), encoding="bytes") == b"\xe9a"
    with pytest.raises(pickle.UnpicklingError):
        torch.load(io.BytesIO(data))


def test_arguments_that_are_not_there_are_refused():
    with pytest.raises(TypeError):
        torch.load(io.BytesIO(saved(1)), nonsense=1)
    with pytest.raises(NotImplementedError, match="pickle_module"):
        torch.save(1, io.BytesIO(), pickle_module=os)
