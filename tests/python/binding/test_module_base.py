"""ModuleBase: calls, attributes that are parameters, and classes that override either."""

import pytest

from msadapter import _C


class Module(_C.ModuleBase):
    def __init__(self):
        self._parameters, self._buffers, self._modules = {"w": 1}, {"b": 2}, {"m": 3}
        self._forward_hooks, self._forward_pre_hooks, self._backward_hooks = {}, {}, {}

    def forward(self, *args, **kwargs):
        return args, kwargs

    def _call_with_hooks(self, *args, **kwargs):
        return "hooks", args, kwargs


def test_calls_go_to_forward():
    m = Module()
    assert m(1, 2, k=3) == ((1, 2), {"k": 3}) and m() == ((), {}) and m(*range(20))[0] == tuple(range(20))
    m.forward = lambda x: x + 1
    assert m(1) == 2
    with pytest.raises(TypeError):
        m(1, 2)


def test_hooks_go_another_way():
    m = Module()
    m._forward_hooks[0] = print
    assert m(1, k=2) == ("hooks", (1,), {"k": 2})
    m._forward_hooks.clear()
    _C.set_global_hooks(True)
    try:
        assert m(1)[0] == "hooks"
    finally:
        _C.set_global_hooks(False)
    assert m(1) == ((1,), {})


def test_attributes_are_looked_for_among_parameters_buffers_and_modules():
    m = Module()
    assert (m.w, m.b, m.m) == (1, 2, 3)
    m.w = 5  # instance attributes come first
    assert m.w == 5
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'missing'"):
        m.missing  # noqa: B018
    assert getattr(m, "missing", 7) == 7 and not hasattr(m, "missing")
    assert m.__getattr__("b") == 2


def test_subclasses_may_override_getattr():
    class Proxy(Module):
        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return f"proxied {name}"

    class Below(Proxy):
        pass

    for m in (Proxy(), Below()):
        assert m.w == 1 and m.other == "proxied other"


def test_subclasses_may_override_call():
    class Callable(Module):
        def __call__(self, x):
            return super().__call__(x, 9)

    assert Callable()(1) == ((1, 9), {})
    m = Module()

    class Late(Module):
        pass

    late = Late()
    Late.__call__ = lambda self, x, k=0: ("late", x, k)
    assert late(1, k=2) == ("late", 1, 2) and m(1) == ((1,), {})


def test_getattr_assigned_later_is_used():
    class Late(Module):
        pass

    Late.__getattr__ = lambda self, name: name
    assert Late().anything == "anything"


def test_properties_that_raise_keep_their_error():
    class Broken(Module):
        @property
        def p(self):
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        Broken().p  # noqa: B018


def test_modules_without_init_do_not_crash():
    class Bare(_C.ModuleBase):
        pass

    with pytest.raises(AttributeError):
        Bare().x  # noqa: B018
    with pytest.raises(AttributeError):
        Bare()(1)
    m = Bare()
    m.__dict__["_parameters"] = 3
    m.__dict__["_forward_hooks"] = None
    with pytest.raises(AttributeError):
        m.x  # noqa: B018
