"""Recurrent networks: RNN, LSTM, GRU and their cells."""

import math

from msadapter import pytorch as torch
from msadapter.pytorch.nn import init
from msadapter.pytorch.nn._functional import recurrent
from msadapter.pytorch.nn.modules.module import Module
from msadapter.pytorch.nn.parameter import Parameter
from msadapter.pytorch.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _permuted(tensor, order, dim=1):
    return tensor if order is None or tensor is None else tensor.index_select(dim, order)


class RNNBase(Module):
    """What all recurrent networks share: parameters by layer and direction, checks of shapes."""

    def __init__(self, mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0,
                 device=None, dtype=None):
        super().__init__()
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if dropout > 0 and num_layers == 1:
            import warnings

            warnings.warn(f"dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, "
                          f"but got dropout={dropout} and num_layers={num_layers}")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights = []
        directions = 2 if bidirectional else 1
        real_hidden = proj_size if proj_size > 0 else hidden_size
        gates = _GATES[mode] * hidden_size

        def parameter(*size):
            return Parameter(torch.empty(size, device=device, dtype=dtype))

        for layer in range(num_layers):
            for direction in range(directions):
                inputs = input_size if layer == 0 else real_hidden * directions
                suffix = f"_l{layer}" + ("_reverse" if direction == 1 else "")
                new = {"weight_ih" + suffix: parameter(gates, inputs), "weight_hh" + suffix: parameter(gates, real_hidden)}
                if bias:
                    new["bias_ih" + suffix], new["bias_hh" + suffix] = parameter(gates), parameter(gates)
                if proj_size > 0:
                    new["weight_hr" + suffix] = parameter(proj_size, hidden_size)
                for name, value in new.items():
                    setattr(self, name, value)
                self._all_weights.append(list(new))
        self.reset_parameters()

    @property
    def _flat_weights(self):
        parameters = self._parameters
        return [parameters[name] if name in parameters else getattr(self, name) for names in self._all_weights for name in names]

    @property
    def all_weights(self):
        """The parameters, in a list per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Nothing has to be done: the engine takes the parameters where they are."""

    def reset_parameters(self):
        """Draw the initial values: uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes):
        """Raise RuntimeError for an input of another number of dimensions or features."""
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}")

    def _state_size(self, input, batch_sizes, width):
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, width

    def get_expected_hidden_size(self, input, batch_sizes):
        """The shape of the hidden state for this input."""
        return self._state_size(input, batch_sizes, self.proj_size if self.proj_size > 0 else self.hidden_size)

    def get_expected_cell_size(self, input, batch_sizes):
        """The shape of the cell state for this input."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raise RuntimeError for a state of another shape."""
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raise RuntimeError for shapes that do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state with its batch in another order."""
        return _permuted(hx, permutation)

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.proj_size != 0:
            parts.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            parts.append(f"num_layers={self.num_layers}")
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if self.batch_first is not False:
            parts.append(f"batch_first={self.batch_first}")
        if self.dropout != 0:
            parts.append(f"dropout={self.dropout}")
        if self.bidirectional is not False:
            parts.append(f"bidirectional={self.bidirectional}")
        return ", ".join(parts)

    def __setstate__(self, state):
        state = dict(state)
        if "all_weights" in state:
            state["_all_weights"] = state.pop("all_weights")
        state.pop("_flat_weights", None)  # torch keeps a list of them, this class computes it
        state.pop("_flat_weights_names", None)
        state.setdefault("proj_size", 0)
        super().__setstate__(state)

    # Forward, in parts: the state is a tensor, or (hidden, cell) for LSTM.

    def _unbatched(self, input, hx):
        """The input and state of one sample with a batch of one put in."""
        dim = 0 if self.batch_first else 1
        if hx is not None:
            if hx.dim() != 2:
                raise RuntimeError(f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor")
            hx = hx.unsqueeze(1)
        return input.unsqueeze(dim), hx

    def _check_batched_state(self, hx):
        if hx is not None and hx.dim() != 3:
            raise RuntimeError(f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor")

    def _zero_state(self, input, batch_sizes):
        return torch.zeros(self.get_expected_hidden_size(input, batch_sizes), dtype=input.dtype, device=input.device)

    def _drop_batch(self, state):
        return state.squeeze(1)

    def _run(self, input, hx, batch_sizes):
        if batch_sizes is None:
            return recurrent.run(self.mode, input, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                                 self.bidirectional, self.batch_first)
        return recurrent.run_packed(self.mode, input, batch_sizes, hx, self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
                                    self.bidirectional)

    def forward(self, input, hx=None):
        packed, batch_sizes, unsorted = None, None, None
        single = False
        if isinstance(input, PackedSequence):
            packed = input
            input, batch_sizes, order, unsorted = packed
            hx = hx if hx is None else self.permute_hidden(hx, order)
        else:
            if input.dim() not in (2, 3):
                raise AssertionError(f"{self._kind()}: Expected input to be 2-D or 3-D but received {input.dim()}-D tensor")
            single = input.dim() == 2
            if single:
                input, hx = self._unbatched(input, hx)
            else:
                self._check_batched_state(hx)
        if hx is None:
            hx = self._zero_state(input, batch_sizes)
        self.check_forward_args(input, hx, batch_sizes)
        output, hidden = self._run(input, hx, batch_sizes)
        if packed is not None:
            return PackedSequence(output, batch_sizes, packed.sorted_indices, unsorted), self.permute_hidden(hidden, unsorted)
        if single:
            return output.squeeze(0 if self.batch_first else 1), self._drop_batch(hidden)
        return output, hidden

    def _kind(self):
        return self.mode.split("_")[0]


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh) (or relu), in num_layers layers, perhaps in both directions.

    input (L, N, input_size), (N, L, input_size) with batch_first, (L, input_size), or packed; h_0 (layers * directions, N, hidden_size).
    Returns the outputs of the last layer (L, N, directions * hidden_size) and the last states.
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        nonlinearity = kwargs.pop("nonlinearity", "tanh")
        mode = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}.get(nonlinearity)
        if mode is None:
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'")
        super().__init__(mode, *args, **kwargs)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Gated recurrent units (Cho et al. 2014). Arguments, inputs and results as RNN's."""

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with proj_size projected (Sak et al. 2014).

    Inputs and results as RNN's, but that the state is a pair (h, c).
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        return hx if permutation is None else (_permuted(hx[0], permutation), _permuted(hx[1], permutation))

    def _unbatched(self, input, hx):
        if hx is not None:
            if hx[0].dim() != 2 or hx[1].dim() != 2:
                raise RuntimeError(f"For unbatched 2-D input, hx and cx should also be 2-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors")
            hx = (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        return input.unsqueeze(0 if self.batch_first else 1), hx

    def _check_batched_state(self, hx):
        if hx is not None and (hx[0].dim() != 3 or hx[1].dim() != 3):
            raise RuntimeError(f"For batched 3-D input, hx and cx should also be 3-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors")

    def _zero_state(self, input, batch_sizes):
        hidden = super()._zero_state(input, batch_sizes)
        return hidden, torch.zeros(self.get_expected_cell_size(input, batch_sizes), dtype=input.dtype, device=input.device)

    def _drop_batch(self, state):
        return state[0].squeeze(1), state[1].squeeze(1)


class RNNCellBase(Module):
    """What the cells share."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self.weight_ih = Parameter(torch.empty((num_chunks * hidden_size, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(torch.empty((num_chunks * hidden_size, hidden_size), device=device, dtype=dtype))
        if bias:
            self.bias_ih = Parameter(torch.empty(num_chunks * hidden_size, device=device, dtype=dtype))
            self.bias_hh = Parameter(torch.empty(num_chunks * hidden_size, device=device, dtype=dtype))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw the initial values: uniform within 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            parts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(parts)

    def _checked(self, input, states):
        """The input and the states (or zeros), with a batch dimension; and whether it was put in here."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise AssertionError(f"{name}: Expected input to be 1-D or 2-D but received {input.dim()}-D tensor")
        single = input.dim() == 1
        if single:
            input = input.unsqueeze(0)
        if states[0] is None:
            zeros = torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            return input, [zeros] * len(states), single
        return input, [state.unsqueeze(0) if single else state for state in states], single

    def _step(self, mode, input, states):
        return recurrent.cell(mode, input, states, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class RNNCell(RNNCellBase):
    """One step of RNN: input (N, input_size), hx (N, hidden_size) -> (N, hidden_size); or without N."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        input, (hx,), single = self._checked(input, (hx,))
        result = self._step("RNN_TANH" if self.nonlinearity == "tanh" else "RNN_RELU", input, hx)
        return result.squeeze(0) if single else result


class LSTMCell(RNNCellBase):
    """One step of LSTM: input (N, input_size), hx a pair of (N, hidden_size) -> such a pair; or without N."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        input, states, single = self._checked(input, (None, None) if hx is None else hx)
        result = self._step("LSTM", input, tuple(states))
        return tuple(state.squeeze(0) for state in result) if single else tuple(result)


class GRUCell(RNNCellBase):
    """One step of GRU: input (N, input_size), hx (N, hidden_size) -> (N, hidden_size); or without N."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        input, (hx,), single = self._checked(input, (hx,))
        result = self._step("GRU", input, hx)
        return result.squeeze(0) if single else result
