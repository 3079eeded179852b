"""dtype, device, Size, memory formats, finfo, iinfo, Generator."""

import warnings

import pytest

import msadapter.pytorch as torch


def test_dtypes():
    assert repr(torch.float32) == "torch.float32" and torch.float is torch.float32 and torch.long is torch.int64
    assert torch.float16.is_floating_point and torch.complex64.is_complex and not torch.int8.is_floating_point
    assert torch.float64.itemsize == 8 and torch.float32.to_complex() is torch.complex64 and torch.complex128.to_real() is torch.float64
    assert torch.uint8.is_signed is False and {torch.int8: 1}[torch.int8] == 1
    with pytest.raises(TypeError):
        torch.dtype()


def test_devices():
    assert repr(torch.device("cpu")) == "device(type='cpu')" and repr(torch.device("cuda:1")) == "device(type='cuda', index=1)"
    assert str(torch.device("cuda", 0)) == "cuda:0" and torch.device(1) == torch.device("cuda:1")
    assert torch.device("npu").type == "npu" and torch.device("cpu").index is None and torch.device(torch.device("cpu")).type == "cpu"
    assert torch.device("cpu") != torch.device("cuda") and hash(torch.device("cuda:1")) == hash(torch.device("cuda", 1))
    for text in ("foo", "cuda:x", "cuda:-1", "cuda:", "", "cuda:99999999999999"):
        with pytest.raises(RuntimeError):
            torch.device(text)
    with pytest.raises(TypeError):
        torch.device(1.5)
    with pytest.raises(RuntimeError):
        torch.device("cuda:0", 1)


def test_other_devices_mean_the_cpu(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.ones(2).to("cuda").device.type == "cpu" and torch.zeros(2, device="cuda:0").device.type == "cpu"
    monkeypatch.setenv("MSADAPTER_STRICT_DEVICE", "1")
    with pytest.raises(RuntimeError):
        torch.ones(2).to("cuda")


def test_sizes():
    s = torch.ones(2, 3).shape
    assert s == (2, 3) and repr(s) == "torch.Size([2, 3])" and s.numel() == 6 and isinstance(s, tuple)
    assert isinstance(s[:1], torch.Size) and s[-1] == 3 and isinstance(s + (1,), torch.Size) and isinstance(s * 2, torch.Size)
    assert torch.Size([torch.tensor(2), 3]) == (2, 3) and list(s) == [2, 3] and len(s) == 2
    with pytest.raises(TypeError):
        torch.Size([1.5])
    t = torch.ones(2, 3)
    assert t.size() == s and t.size(1) == t.size(dim=-1) == 3 and t.stride() == (3, 1) and t.stride(0) == 3 and t.dim() == t.ndim == 2
    with pytest.raises(IndexError):
        t.size(2)


def test_limits():
    assert torch.finfo(torch.float32).eps == 2**-23 and torch.finfo(torch.float16).max == 65504 and torch.finfo().bits == 32
    assert torch.finfo(torch.bfloat16).eps == 2**-7 and torch.finfo(torch.complex64).tiny == torch.finfo(torch.float32).tiny
    assert torch.iinfo(torch.int8).min == -128 and torch.iinfo(torch.uint8).max == 255 and torch.iinfo(torch.int64).max == 2**63 - 1
    assert repr(torch.iinfo(torch.int32)) == "iinfo(min=-2.14748e+09, max=2.14748e+09, dtype=int32)"
    with pytest.raises(TypeError):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError):
        torch.iinfo(torch.float32)


def test_generators():
    g = torch.Generator().manual_seed(7)
    state = g.get_state()
    assert g.initial_seed() == 7 and state.dtype is torch.uint8
    g.manual_seed(-1)
    assert g.initial_seed() == 2**64 - 1
    g.set_state(state)
    assert g.initial_seed() == 7
    with pytest.raises((TypeError, RuntimeError)):
        g.set_state(torch.zeros(3, dtype=torch.uint8))
    with pytest.raises(TypeError):
        g.set_state(torch.zeros(3))
    with pytest.raises(RuntimeError):
        g.manual_seed(2**70)
    before = torch.get_rng_state()
    torch.manual_seed(3)
    assert torch.initial_seed() == 3
    torch.set_rng_state(before)


def test_settings():
    n = torch.get_num_threads()
    torch.set_num_threads(1)
    assert torch.get_num_threads() == 1
    torch.set_num_threads(n)
    with pytest.raises((RuntimeError, TypeError)):
        torch.set_num_threads(0)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor(1.0).dtype is torch.float64 and torch.ones(1).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    with pytest.raises(TypeError):
        torch.set_default_dtype(torch.int32)


def test_promotion():
    assert torch.promote_types(torch.int32, torch.float16) is torch.float16 and torch.can_cast(torch.int32, torch.float32)
    assert torch.result_type(torch.ones(1, dtype=torch.int8), 1.5) is torch.float32
    assert torch.result_type(torch.ones(1, dtype=torch.int8), torch.tensor(5)) is torch.int8


def test_truth_and_conversions():
    assert bool(torch.tensor(1)) and not torch.tensor(0.0) and int(torch.tensor(2.7)) == 2 and float(torch.tensor(3)) == 3
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(torch.ones(0))
    with pytest.raises(ValueError):
        float(torch.ones(2))
    with pytest.raises(TypeError):
        [1][torch.tensor(1.0)]
    assert (torch.ones(2) == None) is False and (torch.ones(2) != "a") is True  # noqa: E711
    with pytest.raises(TypeError):
        torch.ones(2) < "a"  # noqa: B015


@pytest.mark.parametrize("expression, expected", [
    ("t + 1", [2, 3]), ("1 + t", [2, 3]), ("t - 1", [0, 1]), ("1 - t", [0, -1]), ("t * 2", [2, 4]), ("t / 2", [0.5, 1]), ("2 / t", [2, 1]),
    ("t // 2", [0, 1]), ("5 // t", [5, 2]), ("t % 2", [1, 0]), ("5 % t", [0, 1]), ("t ** 2", [1, 4]), ("2 ** t", [2, 4]), ("-t", [-1, -2]),
    ("+t", [1, 2]), ("abs(-t)", [1, 2]), ("~t", [-2, -3]), ("t & 1", [1, 0]), ("1 | t", [1, 3]), ("t ^ t", [0, 0]), ("t << 1", [2, 4]),
    ("t >> 1", [0, 1]), ("1 << t", [2, 4]), ("t < 2", [True, False]), ("1 < t", [False, True]), ("t == t", [True, True]), ("t @ t", 5),
])
def test_operators_of_the_language(expression, expected):
    assert eval(expression, {"t": torch.tensor([1, 2])}).tolist() == expected


def test_operators_in_place_keep_the_object():
    t = original = torch.tensor([4, 6])
    t += 1
    t -= 2
    t *= 2
    t //= 2
    t %= 4
    t |= 8
    t &= 15
    t ^= 1
    t <<= 1
    t >>= 1
    assert t is original and t.tolist() == [10, 8]
    f = g = torch.tensor([2.0])
    f /= 4
    f **= 2
    assert f is g and f.item() == 0.25
