"""Parts of torch that are loaded when they are first asked for: jit, futures; scaled_dot_product_attention beside them."""

import typing

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch.nn import functional as F


def test_jit_keeps_functions_and_refuses_recording():
    @torch.jit.script
    def double(x):
        return x * 2

    @torch.jit.ignore(drop=True)
    def other(x):
        return x

    net = torch.jit.script(torch.nn.Linear(2, 2))
    assert double(torch.ones(1)).item() == 2 and other(3) == 3 and isinstance(net, torch.nn.Linear)
    assert not torch.jit.is_scripting() and not torch.jit.is_tracing() and torch.jit.annotate(int, 3) == 3
    assert torch.jit.isinstance([1, 2], typing.List[int]) and not torch.jit.isinstance([1, "a"], typing.List[int])
    assert torch.jit.isinstance({"a": 1}, typing.Dict[str, int]) and torch.jit.isinstance(None, typing.Optional[int])
    assert torch.jit.wait(torch.jit.fork(lambda x: x + 1, 2)) == 3
    with pytest.raises(NotImplementedError, match="torch.jit.trace"):
        torch.jit.trace(double, torch.ones(1))


def test_futures():
    future = torch.futures.Future()
    seen = []
    following = future.then(lambda f: f.wait() + 1)
    future.add_done_callback(lambda f: seen.append(f.value()))
    assert not future.done()
    with pytest.raises(RuntimeError):
        future.value()
    future.set_result(4)
    assert following.wait() == 5 and seen == [4]
    with pytest.raises(RuntimeError, match="once"):
        future.set_result(1)
    bad = torch.futures.Future()
    bad.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        torch.futures.wait_all([future, bad])
    assert torch.futures.wait_all([future, following]) == [4, 5] and torch.futures.collect_all([]).wait() == []


def test_attention_against_its_definition():
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 3)
    scores = q @ k.transpose(-2, -1) / 8**0.5
    assert torch.allclose(F.scaled_dot_product_attention(q, k, v), scores.softmax(-1) @ v, atol=1e-6)
    mask = torch.rand(5, 6) > 0.3
    mask[:, 0] = True
    wanted = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v
    assert torch.allclose(F.scaled_dot_product_attention(q, k, v, mask), wanted, atol=1e-6)
    added = torch.zeros(5, 6).masked_fill(~mask, float("-inf"))
    assert torch.allclose(F.scaled_dot_product_attention(q, k, v, added, scale=1 / 8**0.5), wanted, atol=1e-6)
    causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(causal[:, :, 0], v[:, :, 0], atol=1e-6)
    shared = F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
    assert torch.allclose(shared, F.scaled_dot_product_attention(q, k[:, [0, 0, 1, 1]], v[:, [0, 0, 1, 1]]))
    with pytest.raises(RuntimeError, match="is_causal"):
        F.scaled_dot_product_attention(q, k, v, mask, is_causal=True)


def test_names_of_pytorch_2():
    torch.set_default_device("cpu")
    assert torch.get_default_device() == torch.device("cpu")
    with pytest.raises(RuntimeError):
        torch.set_default_device("abacus")
    net = torch.nn.Linear(2, 2)
    assert torch.compile(net, disable=True) is net

    @torch.compile(disable=True)
    def double(x):
        return x * 2

    assert double(2) == 4
