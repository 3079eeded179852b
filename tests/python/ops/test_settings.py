"""Settings that only remember, fake quantisation, and what says that it is not there."""

import inspect

import pytest

torch = pytest.importorskip("msadapter.pytorch")


def test_settings_remember_and_refuse_nonsense():
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.are_deterministic_algorithms_enabled() and torch.get_deterministic_debug_mode() == 1
    torch.set_deterministic_debug_mode("default")
    assert not torch.are_deterministic_algorithms_enabled()
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    with pytest.raises(RuntimeError):
        torch.set_float32_matmul_precision("low")
    with pytest.raises(RuntimeError):
        torch.set_deterministic_debug_mode(7)


def test_default_tensor_type_sets_the_default_dtype():
    try:
        torch.set_default_tensor_type("torch.DoubleTensor")
        assert torch.ones(1).dtype is torch.float64
        torch.set_default_tensor_type(torch.FloatTensor)
        assert torch.ones(1).dtype is torch.float32
        with pytest.raises(TypeError):
            torch.set_default_tensor_type("torch.LongTensor")
    finally:
        torch.set_default_dtype(torch.float32)


def test_fake_quantize_rounds_to_levels_and_cuts_the_gradient():
    x = torch.tensor([0.26, -0.04, 5.0], requires_grad=True)
    y = torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -8, 7)
    y.sum().backward()
    assert torch.allclose(y, torch.tensor([0.3, 0.0, 0.7])) and x.grad.tolist() == [1, 1, 0]
    rows = torch.tensor([[0.26], [0.26]])
    by_row = torch.fake_quantize_per_channel_affine(rows, torch.tensor([0.1, 0.2]), torch.tensor([0, 0], dtype=torch.int32), 0, -8, 7)
    assert torch.allclose(by_row, torch.tensor([[0.3], [0.2]]))
    with pytest.raises(RuntimeError):
        torch.fake_quantize_per_tensor_affine(x, 0.1, 100, -8, 7)


def test_absent_kinds_of_tensors_say_so():
    with pytest.raises(NotImplementedError, match="to_sparse_bsr"):
        torch.ones(2, 2).to_sparse_bsr((1, 1))
    with pytest.raises(NotImplementedError, match="quantize_per_tensor"):
        torch.quantize_per_tensor(torch.ones(2), 0.1, 0, None)


def test_methods_made_of_functions_have_self():
    assert next(iter(inspect.signature(torch.Tensor.quantile).parameters)) == "self"
    assert next(iter(inspect.signature(torch.quantile).parameters)) == "input"


def test_results_are_written_to_out():
    out = torch.empty(0)
    assert torch.kron(torch.ones(2), torch.arange(3.0), out=out) is out and out.tolist() == [0, 1, 2, 0, 1, 2]
    with pytest.raises(RuntimeError):
        torch.kron(torch.ones(2), torch.ones(2), out=torch.empty(4, dtype=torch.float64))
