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


def test_jit_freezes_copies_and_keeps_settings():
    net = torch.nn.Linear(2, 2)
    with pytest.raises(RuntimeError, match="eval mode"):
        torch.jit.freeze(net)
    x = torch.ones(1, 2)
    frozen, ready = torch.jit.freeze(net.eval()), torch.jit.optimize_for_inference(net)
    assert torch.equal(frozen(x), net(x)) and torch.equal(ready(x), net(x)) and not frozen(x).requires_grad and net(x).requires_grad
    net.weight.data.zero_()
    assert not torch.equal(frozen(x), net(x)) and torch.jit.run_frozen_optimizations(frozen) is None
    before = torch.jit.set_fusion_strategy([("STATIC", 3)])
    assert torch.jit.set_fusion_strategy(before) == [("STATIC", 3)]
    torch.jit.enable_onednn_fusion(True)
    assert torch.jit.onednn_fusion_enabled()
    torch.jit.enable_onednn_fusion(False)
    with torch.jit.fuser("fuser1"), pytest.warns(UserWarning, match="script mode"), torch.jit.strict_fusion():
        pass
    with pytest.raises(Exception, match="unrecognized fuser"), torch.jit.fuser("x"):
        pass
    assert isinstance(torch.jit.ScriptModule(), torch.nn.Module) and not isinstance(torch.jit.script(net), torch.jit.ScriptModule)
    for call in (lambda: torch.jit.freeze(3), lambda: torch.jit.set_fusion_strategy([("x", 1)]), lambda: torch.jit.optimize_for_inference(3)):
        with pytest.raises(RuntimeError):
            call()
    for call in (torch.jit.ScriptFunction, lambda: torch.jit.export_opnames(net), torch.jit.last_executed_optimized_graph,
                 lambda: torch.jit.save_jit_module_to_flatbuffer(net, "x")):
        with pytest.raises(NotImplementedError):
            call()


def test_onnx_answers_questions_and_refuses_to_export(capsys):
    onnx = torch.onnx
    net = torch.nn.Linear(2, 2)
    with onnx.select_model_mode_for_export(net, onnx.TrainingMode.EVAL):
        assert not net.training and not onnx.is_in_onnx_export()
    assert net.training
    with onnx.select_model_mode_for_export(net, onnx.TrainingMode.PRESERVE):
        assert net.training
    with pytest.raises(TypeError, match="TrainingMode"), onnx.select_model_mode_for_export(net, None):
        pass
    with pytest.raises(NotImplementedError, match="torch.onnx.export"):
        onnx.export(net, torch.ones(1, 2), "x.onnx")
    onnx.log("no")
    onnx.enable_log()
    onnx.log("x", 3)
    onnx.disable_log()
    assert capsys.readouterr().out == "x3\n" and not onnx.is_onnx_log_enabled()
    onnx.register_custom_op_symbolic("mine::op", lambda g, x: x, 11)
    onnx.unregister_custom_op_symbolic("mine::op", 11)
    with pytest.raises(RuntimeError, match="Failed to register"):
        onnx.register_custom_op_symbolic("mine", None, 11)
    assert onnx.TensorProtoDataType.BFLOAT16 == 16 and issubclass(onnx.CheckerError, RuntimeError)


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
