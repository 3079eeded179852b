"""Recurrent layers: the extension's operators where it has them, otherwise their equations step by step."""

from msadapter import _C
from msadapter import pytorch as torch
from msadapter.pytorch.nn._functional.activation import dropout as drop
from msadapter.pytorch.nn._functional.convolution import linear

_NAMES = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}


def _operator(mode, suffix=""):
    name = _NAMES[mode] + suffix
    return getattr(_C._nn, name, None) or getattr(_C._ops, name, None)


def _lstm_gates(gates, cell):
    """(hidden, cell) of the four gates' inputs."""
    i, f, g, o = gates.chunk(4, -1)
    cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _step(mode, from_input, state, w_hh, b_hh, w_hr):
    """The next state, and its output; from_input is W_ih x + b_ih."""
    if mode == "LSTM":
        hidden, cell = _lstm_gates(from_input + linear(state[0], w_hh, b_hh), state[1])
        if w_hr is not None:
            hidden = linear(hidden, w_hr)
        return (hidden, cell), hidden
    if mode == "GRU":
        r_x, z_x, n_x = from_input.chunk(3, -1)
        r_h, z_h, n_h = linear(state, w_hh, b_hh).chunk(3, -1)
        z = (z_x + z_h).sigmoid()
        n = (n_x + (r_x + r_h).sigmoid() * n_h).tanh()
        state = n + z * (state - n)
        return state, state
    state = from_input + linear(state, w_hh, b_hh)
    state = state.tanh() if mode == "RNN_TANH" else state.relu()
    return state, state


def cell(mode, input, state, w_ih, w_hh, b_ih, b_hh):
    """One step: input (N, input_size); the state (hx, or (hx, cx) for LSTM) and the result (N, hidden_size). Raises RuntimeError."""
    hidden = state[0] if mode == "LSTM" else state
    if input.size(1) != w_ih.size(1):
        raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {w_ih.size(1)}")
    if input.size(0) != hidden.size(0):
        raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden0 batch size {hidden.size(0)}")
    if hidden.size(1) != w_hh.size(1):
        raise RuntimeError(f"hidden0 has inconsistent hidden_size: got {hidden.size(1)}, expected {w_hh.size(1)}")
    return _step(mode, linear(input, w_ih, b_ih), state, w_hh, b_hh, None)[0]


def _rows(state, start, stop):
    return tuple(s[start:stop] for s in state) if isinstance(state, tuple) else state[start:stop]


def _joined(parts):
    """States of separate rows, one below the other."""
    if len(parts) == 1:
        return parts[0]
    return tuple(torch.cat(p) for p in zip(*parts)) if isinstance(parts[0], tuple) else torch.cat(parts)


def _layer(mode, steps, state, weights, has_biases, reverse):
    """One layer in one direction over a list of (N_t, features), N_t not growing: the outputs as such a list, and the last state."""
    weights = list(weights)
    w_ih, w_hh = weights[:2]
    b_ih, b_hh = weights[2:4] if has_biases else (None, None)
    expected = 4 if has_biases else 2
    w_hr = weights[expected] if len(weights) > expected else None
    from_input = linear(torch.cat(steps), w_ih, b_ih).split([step.size(0) for step in steps])
    outputs, total = [None] * len(steps), steps[0].size(0)
    if reverse:
        start, size = state, steps[-1].size(0)
        state = _rows(start, 0, size)
        for t in range(len(steps) - 1, -1, -1):
            if steps[t].size(0) > size:  # sequences that end here begin now
                state = _joined([state, _rows(start, size, steps[t].size(0))])
                size = steps[t].size(0)
            state, outputs[t] = _step(mode, from_input[t], state, w_hh, b_hh, w_hr)
        return outputs, state
    ended, size = [], total
    for t, step in enumerate(steps):
        if step.size(0) < size:
            ended.append(_rows(state, step.size(0), size))
            size = step.size(0)
            state = _rows(state, 0, size)
        state, outputs[t] = _step(mode, from_input[t], state, w_hh, b_hh, w_hr)
    return outputs, _joined([state] + ended[::-1])


def _network(mode, steps, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    """All layers over a list of steps: the outputs as a list, and the last states, stacked."""
    directions = 2 if bidirectional else 1
    per_layer = len(params) // (num_layers * directions)
    finals = []
    for layer in range(num_layers):
        results = []
        for direction in range(directions):
            index = layer * directions + direction
            state = (hx[0][index], hx[1][index]) if mode == "LSTM" else hx[index]
            outputs, final = _layer(mode, steps, state, params[index * per_layer:(index + 1) * per_layer], has_biases, direction == 1)
            results.append(outputs)
            finals.append(final)
        steps = results[0] if directions == 1 else [torch.cat(pair, -1) for pair in zip(*results)]
        if dropout > 0 and train and layer < num_layers - 1:
            sizes = [step.size(0) for step in steps]
            steps = drop(torch.cat(steps), dropout, True).split(sizes)
    if mode == "LSTM":
        return steps, tuple(torch.stack(states) for states in zip(*finals))
    return steps, torch.stack(finals)


def _as_state(mode, results):
    """(output, state) of an operator's results."""
    return (results[0], (results[1], results[2])) if mode == "LSTM" else (results[0], results[1])


def run(mode, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """Outputs and last state of input (L, N, *), or (N, L, *) with batch_first; hx (layers * directions, N, *), a pair for LSTM."""
    operator = _operator(mode)
    if operator is not None:
        return _as_state(mode, operator(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first))
    time = 1 if batch_first else 0
    if input.size(time) == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    steps, state = _network(mode, input.unbind(time), hx, params, has_biases, num_layers, dropout, train, bidirectional)
    return torch.stack(steps, time), state


def run_packed(mode, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    """The same for the data of a packed sequence."""
    operator = _operator(mode)
    if operator is not None:
        return _as_state(mode, operator(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional))
    steps, state = _network(mode, data.split(batch_sizes.tolist()), hx, params, has_biases, num_layers, dropout, train, bidirectional)
    return torch.cat(tuple(steps)), state
