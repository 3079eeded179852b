"""torch.testing, held against the real one: what passes, what fails, and with which words."""

import numpy as np
import pytest

import msadapter.pytorch as torch

reference = pytest.importorskip("torch")

CASES = {
    "equal": lambda t: (t.ones(3), t.ones(3)), "far": lambda t: (t.tensor([[1.0, 2, 3]]), t.tensor([[1.0, 2.5, 0]])),
    "scalars": lambda t: (t.tensor(1.0), t.tensor(2.0)), "integers": lambda t: (t.tensor([1, 2]), t.tensor([1, 3])),
    "shape": lambda t: (t.ones(3), t.ones(3, 1)), "dtype": lambda t: (t.ones(3), t.ones(3, dtype=t.float64)),
    "any dtype": lambda t: (t.ones(3), t.ones(3, dtype=t.int64), {"check_dtype": False}), "numbers": lambda t: (1.0, 1.5), "zero": lambda t: (1.0, 0.0),
    "types": lambda t: (1, 1.0), "any type": lambda t: (1, 1.0, {"check_dtype": False}), "nan": lambda t: (float("nan"), float("nan")),
    "nan allowed": lambda t: (t.tensor(float("nan")), t.tensor(float("nan")), {"equal_nan": True}),
    "list": lambda t: ([1.0, t.ones(2)], [1.0, t.zeros(2)]), "length": lambda t: ([1], [1, 2]), "nested": lambda t: ({"a": [1, 2]}, {"a": [1, 3]}),
    "keys": lambda t: ({"a": 1}, {"b": 1}), "none": lambda t: (None, 1), "nones": lambda t: (None, None), "bools": lambda t: (True, False),
    "bool tensors": lambda t: (t.tensor([True]), t.tensor([False])), "text": lambda t: ("a", "a"), "unlike": lambda t: (t.ones(1), 1.0),
    "arrays": lambda t: (np.ones(3), np.zeros(3)), "array and tensor": lambda t: (np.ones(3), t.ones(3)),
    "tolerance": lambda t: (t.ones(2), t.full((2,), 1.1), {"rtol": 0.2, "atol": 0}), "one tolerance": lambda t: (1.0, 1.0, {"rtol": 0.1}),
    "exact": lambda t: (t.ones(2), t.full((2,), 1.1), {"rtol": 0, "atol": 0}), "stride": lambda t: (t.ones(2, 3), t.ones(3, 2).t(), {"check_stride": True}),
    "complex": lambda t: (t.tensor([1 + 2j]), t.tensor([1 + 3j])), "bfloat16": lambda t: (t.tensor([1.0], dtype=t.bfloat16), t.tensor([1.01], dtype=t.bfloat16)),
    "message": lambda t: (1.0, 2.0, {"msg": "mine"}), "message function": lambda t: ([1.0], [2.0], {"msg": lambda text: "mine: " + text}),
    "numpy numbers": lambda t: (np.float32(1), np.float32(2)), "meta": lambda t: (t.ones(2, device="cpu"), t.ones(2), {"check_device": False}),
}


@pytest.mark.parametrize("name", CASES)
def test_assert_close_says_the_same(name):
    def outcome(library):
        actual, expected, *options = CASES[name](library)
        try:
            library.testing.assert_close(actual, expected, **(options[0] if options else {}))
        except Exception as error:
            return type(error).__name__, str(error).replace("msadapter.pytorch.", "torch.")
    mine, other = outcome(torch), outcome(reference)
    assert mine == other or "No comparison pair" in str(mine) and "No comparison pair" in str(other) and mine[0] == other[0]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("options", [{}, {"low": 1, "high": 5}, {"noncontiguous": True}, {"low": -1000, "high": 1000, "exclude_zero": True}])
def test_make_tensor_draws_the_same(dtype, options):
    def made(library):
        library.manual_seed(3)
        t = library.testing.make_tensor((4, 5), dtype=getattr(library, dtype), device="cpu", **options)
        return t.stride(), (t.float() if dtype == "bfloat16" else t).numpy()
    mine, other = made(torch), made(reference)
    assert mine[0] == other[0]
    np.testing.assert_allclose(mine[1], other[1], rtol=1e-6)


def test_make_tensor_errors():
    for options in ({"low": 2, "high": 1}, {"low": float("nan")}):
        with pytest.raises(ValueError):
            torch.testing.make_tensor(3, dtype=torch.float32, device="cpu", **options)
    with pytest.raises(ValueError):
        torch.testing.make_tensor(3, dtype=torch.int64, device="cpu", requires_grad=True)
    assert torch.testing.make_tensor(3, dtype=torch.float32, device="cpu", requires_grad=True).requires_grad
