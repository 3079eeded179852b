"""Checkpoints pass between PyTorch itself and this library, both ways and in both formats."""

import pytest

import msadapter.pytorch as torch

both_formats = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])

# The same lines run on either side: what is made here is what is expected there.
MAKE = """
def make(torch):
    from collections import OrderedDict
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    value = {"base": base, "t": base.t(), "step": base[1:, ::2], "wide": base[:, :1].expand(4, 6), "zero": torch.tensor(3.5),
             "empty": torch.zeros(3, 0), "p": torch.nn.Parameter(torch.ones(2)), "frozen": torch.nn.Parameter(torch.ones(1), False),
             "leaf": torch.ones(2, requires_grad=True), "size": torch.Size([2, 3]), "device": torch.device("cpu"), "dtype": torch.float16,
             "nested": OrderedDict(a=[1, (2.5, None)], b={"x": b"\\xff\\x00", "y": 2**80}), "set": {1, 2}}
    for name in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split():
        value[name] = torch.tensor([0, 1, 1]).to(getattr(torch, name))
    return value

def compare(torch, value, expected):
    assert list(value) == list(expected)
    for key, e in expected.items():
        v = value[key]
        assert type(v) is type(e), key
        if isinstance(e, torch.Tensor):
            assert v.dtype == e.dtype and v.shape == e.shape and v.stride() == e.stride() and v.storage_offset() == e.storage_offset(), key
            assert torch.equal(v, e) and v.requires_grad == e.requires_grad, key
        else:
            assert v == e, key
    assert value["t"].data_ptr() == value["base"].data_ptr() == value["wide"].data_ptr()

def net(torch):
    return torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Flatten(), torch.nn.Linear(72, 3))

def state(torch):
    torch.manual_seed(0)
    model = net(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(2, 1, 8, 8)).pow(2).sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}

def restore(torch, checkpoint):
    model = net(torch)
    model.load_state_dict(checkpoint["model"], strict=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.1)
    optimizer.load_state_dict(checkpoint["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.1 and optimizer.param_groups[0]["momentum"] == 0.9
    assert checkpoint["model"]._metadata["1"] == {"version": 2}
    buffers = [optimizer.state[p]["momentum_buffer"] for p in model.parameters()]
    return [round(float(x.double().abs().sum()), 3) for x in [*model.state_dict().values(), *buffers]]
"""
exec(MAKE)


@both_formats
def test_real_torch_reads_what_is_saved_here(real_torch, tmp_path, zipped):
    torch.save(make(torch), tmp_path / "all.pth", _use_new_zipfile_serialization=zipped)  # noqa: F821
    checkpoint = state(torch)  # noqa: F821
    torch.save(checkpoint, tmp_path / "state.pth", _use_new_zipfile_serialization=zipped)
    # 1.13's safe mode reads no floats, so it gets weights alone, not the optimizer's state.
    torch.save({"a": torch.ones(2), "b": torch.arange(3)}, tmp_path / "weights.pth", _use_new_zipfile_serialization=zipped)  # noqa: F821
    script = MAKE + """
import sys, torch
compare(torch, torch.load(sys.argv[1] + "/all.pth", weights_only=False), make(torch))
weights = torch.load(sys.argv[1] + "/weights.pth", weights_only=True)
assert all(isinstance(v, torch.Tensor) for v in weights.values())
print(restore(torch, torch.load(sys.argv[1] + "/state.pth", weights_only=False)))
"""
    expected = restore(torch, checkpoint)  # noqa: F821
    assert real_torch(script, tmp_path).split("\n")[:1] == [str(expected)]


@both_formats
def test_what_real_torch_saves_is_read_here(real_torch, tmp_path, zipped):
    script = MAKE + """
import sys, torch
torch.save(make(torch), sys.argv[1] + "/all.pth", _use_new_zipfile_serialization=sys.argv[2] == "True")
checkpoint = state(torch)
torch.save(checkpoint, sys.argv[1] + "/state.pth", _use_new_zipfile_serialization=sys.argv[2] == "True")
print(restore(torch, checkpoint))
import pickle
with open(sys.argv[1] + "/bare.pkl", "wb") as f:
    pickle.dump([torch.ones(2), torch.nn.Parameter(torch.zeros(1))], f)
"""
    expected = real_torch(script, tmp_path, zipped).strip()
    compare(torch, torch.load(tmp_path / "all.pth"), make(torch))  # noqa: F821
    compare(torch, torch.load(tmp_path / "all.pth", weights_only=False), make(torch))  # noqa: F821
    assert str(restore(torch, torch.load(tmp_path / "state.pth"))) == expected  # noqa: F821
    ones, zeros = torch.load(tmp_path / "bare.pkl")
    assert ones.tolist() == [1, 1] and type(zeros) is torch.nn.Parameter


@both_formats
def test_whole_modules_of_real_torch_become_ours(real_torch, tmp_path, zipped):
    script = MAKE + """
import sys, torch
torch.manual_seed(0)
model = net(torch).eval()
torch.save(model, sys.argv[1] + "/net.pth", _use_new_zipfile_serialization=sys.argv[2] == "True")
print([round(x, 4) for x in model(torch.ones(1, 1, 8, 8))[0].tolist()])
"""
    expected = real_torch(script, tmp_path, zipped).strip()
    model = torch.load(tmp_path / "net.pth", weights_only=False)
    assert type(model) is torch.nn.Sequential and not model.training
    result = model(torch.ones(1, 1, 8, 8))[0].tolist()
    assert result == pytest.approx(eval(expected), abs=2e-4)
