"""Recurrent operators against their equations written step by step, values, gradients and gradients of gradients."""

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch import nn

HIDDEN, PROJECTED = 4, 3
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def step(kind, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr=None):
    """(h, c) after one step."""
    from_x, from_h = x @ w_ih.t(), h @ w_hh.t()
    if b_ih is not None:
        from_x, from_h = from_x + b_ih, from_h + b_hh
    if kind == "lstm":
        i, f, g, o = (from_x + from_h).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        return (h if w_hr is None else h @ w_hr.t()), c
    if kind == "gru":
        (r, z, n), (rh, zh, nh) = from_x.chunk(3, 1), from_h.chunk(3, 1)
        z = (z + zh).sigmoid()
        return (1 - z) * (n + (r + rh).sigmoid() * nh).tanh() + z * h, None
    return ((from_x + from_h).tanh() if kind == "rnn_tanh" else (from_x + from_h).relu()), None


def sequence(kind, xs, h, c, weights, reverse):
    """One sequence (L, features), h and c of one row: its outputs, the last h and c."""
    outputs = []
    for x in reversed(xs.unbind(0)) if reverse else xs.unbind(0):
        h, c = step(kind, x[None], h, c, *weights)
        outputs.append(h)
    return torch.cat(outputs[::-1] if reverse else outputs), h, c


def network(kind, sequences, h, c, params, biases, layers, directions):
    """Each sequence by itself: outputs, last h and c, as lists by sequence."""
    each, results = len(params) // (layers * directions), []
    for n, at in enumerate(sequences):
        hs, cs = [], []
        for layer in range(layers):
            outs = []
            for d in range(directions):
                place = layer * directions + d
                p = list(params[place * each:(place + 1) * each])
                weights = p[:4] if biases else [*p[:2], None, None]
                weights += p[4 if biases else 2:]
                out, last_h, last_c = sequence(kind, at, h[place, n:n + 1], None if c is None else c[place, n:n + 1], weights, d == 1)
                outs.append(out)
                hs.append(last_h)
                cs.append(last_c)
            at = torch.cat(outs, 1)
        results.append((at, torch.cat(hs), None if c is None else torch.cat(cs)))
    return results


def made(kind, batch, inputs, layers, directions, biases, projected, dtype=torch.float64):
    """States and parameters."""
    torch.manual_seed(3)
    out, rows = PROJECTED if projected else HIDDEN, GATES[kind] * HIDDEN

    def leaf(*sizes):
        return (torch.randn(*sizes, dtype=dtype) * 0.6).requires_grad_()

    params = []
    for layer in range(layers):
        for _ in range(directions):
            params += [leaf(rows, inputs if layer == 0 else out * directions), leaf(rows, out)]
            params += [leaf(rows), leaf(rows)] if biases else []
            params += [leaf(out, HIDDEN)] if projected else []
    places = layers * directions
    return leaf(places, batch, out), leaf(places, batch, HIDDEN) if kind == "lstm" else None, params


def call(kind, x, h, c, params, *rest):
    return getattr(torch, kind)(*x, (h, c) if kind == "lstm" else h, params, *rest)


def check(results, expected, leaves):
    """Values and gradients of a weighted sum of all results."""
    assert len(results) == len(expected)
    sums = []
    for values in (results, expected):
        for a, b in zip(results, expected):
            assert a.shape == b.shape
            assert torch.allclose(a, b, atol=1e-10)
        sums.append(sum((v * torch.arange(v.numel(), dtype=v.dtype).reshape(v.shape).cos()).sum() for v in values))
    for a, b in zip(*(torch.autograd.grad(s, leaves) for s in sums)):
        assert torch.allclose(a, b, atol=1e-9)


CASES = [(kind, False) for kind in GATES] + [("lstm", True)]


@pytest.mark.parametrize("kind, projected", CASES)
@pytest.mark.parametrize("layers, directions, biases, batch_first", [(1, 1, True, False), (1, 2, False, True), (2, 2, True, False)])
@pytest.mark.parametrize("batch", [1, 9])
def test_layers_follow_their_equations(kind, projected, layers, directions, biases, batch_first, batch):
    h, c, params = made(kind, batch, 5, layers, directions, biases, projected)
    x = torch.randn(3, batch, 5, dtype=torch.float64, requires_grad=True)
    results = call(kind, [x.transpose(0, 1) if batch_first else x], h, c, params, biases, layers, 0.0, True, directions == 2, batch_first)
    outs, hs, cs = zip(*network(kind, x.unbind(1), h, c, params, biases, layers, directions))
    expected = [torch.stack(outs, 0 if batch_first else 1), torch.stack(hs, 1)] + ([torch.stack(cs, 1)] if c is not None else [])
    check(results, expected, [x, h, *([c] if c is not None else []), *params])


@pytest.mark.parametrize("kind, projected", CASES)
def test_packed_sequences_end_where_they_end(kind, projected):
    lengths = [4, 3, 3, 1]
    h, c, params = made(kind, 4, 5, 2, 2, True, projected)
    sequences = [torch.randn(n, 5, dtype=torch.float64, requires_grad=True) for n in lengths]
    sizes = [sum(n > t for n in lengths) for t in range(4)]

    def packed(parts):
        return torch.cat([torch.stack([p[t] for p in parts[:n]]) for t, n in enumerate(sizes)])

    results = call(kind, [packed(sequences), torch.tensor(sizes)], h, c, params, True, 2, 0.0, False, True)
    outs, hs, cs = zip(*network(kind, sequences, h, c, params, True, 2, 2))
    expected = [packed(outs), torch.stack(hs, 1)] + ([torch.stack(cs, 1)] if c is not None else [])
    check(results, expected, [*sequences, h, *([c] if c is not None else []), *params])


@pytest.mark.parametrize("kind, projected", CASES)
def test_gradients_of_gradients(kind, projected):
    h, c, params = made(kind, 2, 2, 1, 2, True, projected)
    x = torch.randn(2, 2, 2, dtype=torch.float64, requires_grad=True)
    states = [h] if c is None else [h, c]

    def f(x, *rest):
        h, c = rest[0], rest[1] if len(states) == 2 else None
        return call(kind, [x], h, c, list(rest[len(states):]), True, 1, 0.0, True, True, False)

    inputs = [x, *states, *params]
    assert torch.autograd.gradcheck(f, inputs)
    results = f(*inputs)
    grads = torch.autograd.grad(sum((r * r).sum() for r in results), inputs, create_graph=True)
    outs, hs, cs = zip(*network(kind, x.unbind(1), h, c, params, True, 1, 2))
    expected = [torch.stack(outs, 1), torch.stack(hs, 1)] + ([torch.stack(cs, 1)] if c is not None else [])
    grads_expected = torch.autograd.grad(sum((r * r).sum() for r in expected), inputs, create_graph=True)
    check(grads, grads_expected, inputs)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("batch", [0, 1, 3, 19])
def test_single_precision_agrees_with_double(kind, batch):
    """Sizes that are no multiple of any tile's: none, one and a few sequences, and more than a tile has rows."""
    torch.manual_seed(0)
    cls = {"lstm": nn.LSTM, "gru": nn.GRU}.get(kind, nn.RNN)
    net = cls(37, 70, 2, bidirectional=True, **({"nonlinearity": kind[4:]} if cls is nn.RNN else {}))
    x = torch.randn(5, batch, 37)
    single, _ = net(x)
    single.square().sum().backward()
    grads = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    wide = net.double()
    double, _ = wide(x.double())
    double.square().sum().backward()
    assert torch.allclose(single.double(), double, atol=1e-5)
    for a, p in zip(grads, wide.parameters()):
        assert torch.allclose(a.double(), p.grad.double(), rtol=1e-4, atol=1e-6 + 1e-4 * float(p.grad.abs().max()))


def test_results_may_be_written_to_before_backward():
    net = nn.LSTM(3, 4)
    out, (h, c) = net(torch.randn(2, 5, 3))
    out.mul_(2)
    h.add_(1)
    (out.sum() + h.sum() + c.sum()).backward()
    assert net.weight_hh_l0.grad.abs().sum() > 0


@pytest.mark.parametrize("kind", GATES)
def test_cells_are_one_step(kind):
    h, c, params = made(kind, 3, 5, 1, 1, True, False)
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    result = getattr(torch, kind + "_cell")(x, (h[0], c[0]) if c is not None else h[0], *params)
    new_h, new_c = step(kind, x, h[0], None if c is None else c[0], *params)
    check(result if kind == "lstm" else [result], [new_h, new_c] if kind == "lstm" else [new_h], [x, h, *params])


def test_complex_networks():
    torch.manual_seed(0)
    x, h = torch.randn(2, 3, 2, dtype=torch.complex128), torch.zeros(1, 3, 2, dtype=torch.complex128)
    w, b = torch.randn(2, 2, dtype=torch.complex128), torch.zeros(2, dtype=torch.complex128)
    out, last = torch.rnn_tanh(x, h, [w, w, b, b], True, 1, 0.0, False, False, False)
    first = (x[0] @ w.t()).tanh()
    assert torch.allclose(out[0], first)
    assert torch.allclose(last[0], (x[1] @ w.t() + first @ w.t()).tanh())


def test_what_does_not_fit_raises():
    h, c, params = made("lstm", 2, 5, 1, 1, True, False, torch.float32)
    x = torch.zeros(3, 2, 5)
    rest = (True, 1, 0.0, False, False, False)
    for wrong in (
            lambda: torch.lstm(x, (h,), params, *rest),
            lambda: torch.lstm(x, (h, c), params[:3], *rest),
            lambda: torch.lstm(x, (h, c), [params[1].t(), *params[1:]], *rest),
            lambda: torch.lstm(x, (h[:, :1], c), params, *rest),
            lambda: torch.lstm(x[..., :4], (h, c), params, *rest),
            lambda: torch.lstm(x.double(), (h, c), params, *rest),
            lambda: torch.lstm(x[:0], (h, c), params, *rest),
            lambda: torch.lstm(x[0], torch.tensor([1, 2]), (h, c), params, *rest[:-1]),
            lambda: torch.lstm(x[0], torch.tensor([9]), (h, c), params, *rest[:-1]),
            lambda: torch.lstm(x, (h, c), params, True, 0, 0.0, False, False, False),
            lambda: torch.lstm_cell(x[0], (h[0], c[0]), params[0][:15], *params[1:])):
        with pytest.raises(RuntimeError):
            wrong()


@pytest.mark.parametrize("cls, lower", [(nn.LSTM, False), (nn.GRU, False), (nn.RNN, True)])
def test_autocast_gives_the_type_of_the_equations(cls, lower):
    net, x = cls(3, 4), torch.randn(2, 5, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert net(x)[0].dtype == (torch.bfloat16 if lower else torch.float32)
        out = net(x.bfloat16())[0]
    assert out.dtype == torch.bfloat16
    out.float().sum().backward()
    assert net.weight_ih_l0.grad.dtype == torch.float32
