"""Recurrent layers by the extension's operators."""

from msadapter import _C

_NAMES = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}


def _as_state(mode, results):
    """(output, state) of an operator's results."""
    return (results[0], (results[1], results[2])) if mode == "LSTM" else (results[0], results[1])


def cell(mode, input, state, w_ih, w_hh, b_ih, b_hh):
    """One step: input (N, input_size); the state (hx, or (hx, cx) for LSTM) and the result (N, hidden_size). Raises RuntimeError."""
    return getattr(_C._ops, _NAMES[mode] + "_cell")(input, state, w_ih, w_hh, b_ih, b_hh)


def run(mode, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """Outputs and last state of input (L, N, *), or (N, L, *) with batch_first; hx (layers * directions, N, *), a pair for LSTM."""
    operator = getattr(_C._ops, _NAMES[mode])
    return _as_state(mode, operator(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first))


def run_packed(mode, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    """The same for the data of a packed sequence."""
    operator = getattr(_C._ops, _NAMES[mode])
    return _as_state(mode, operator(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional))
