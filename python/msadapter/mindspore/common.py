"""Tensors, parameters, types and the seed under MindSpore's names."""

from msadapter import pytorch as torch

dtype_names = {
    "bool_": torch.bool, "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
    "uint8": torch.uint8, "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32,
    "float64": torch.float64, "complex64": torch.complex64, "complex128": torch.complex128,
}

_seed = None


class Tensor(torch.Tensor):
    """A tensor made MindSpore's way: Tensor(input_data, dtype=None). It is a torch tensor as well, over the same memory."""

    @staticmethod
    def __new__(cls, input_data=None, dtype=None):
        if input_data is None:
            raise ValueError("Tensor: input_data is missing")
        if not isinstance(input_data, torch.Tensor):
            input_data = torch.tensor(input_data)
        if dtype is not None:
            input_data = input_data.to(dtype)
        return torch.Tensor._make_subclass(cls, input_data.detach(), input_data.requires_grad)

    def asnumpy(self):
        """The values as a numpy array that shares memory."""
        return self.detach().numpy()

    def astype(self, dtype):
        """A tensor of another type."""
        return self.to(dtype)


def Parameter(default_input, name=None, requires_grad=True):
    """A trainable tensor; `name` becomes its attribute."""
    parameter = torch.nn.Parameter(torch.as_tensor(default_input), requires_grad=requires_grad)
    if name is not None:
        parameter.param_name = name
    return parameter


def set_seed(seed):
    """Seed the generator of msadapter and numpy's global one. Raises TypeError and ValueError for what is no natural number."""
    global _seed
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"set_seed: argument 'seed' must be an int, got {type(seed).__name__}")
    if seed < 0:
        raise ValueError(f"set_seed: argument 'seed' must not be negative, got {seed}")
    import numpy

    _seed = seed
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def get_seed():
    """What set_seed was last given, or None."""
    return _seed
