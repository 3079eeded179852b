"""The exception that PyTorch raises where a function written in Python gets something else than a tensor."""

from functools import wraps


def takes_tensors(function):
    """`function`, which raises TypeError naming the argument when it asked something of an argument that only a tensor has."""
    import types

    if not isinstance(function, types.FunctionType):
        return function
    code = function.__code__
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def checked(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except AttributeError as error:
            wrong = error.obj
            for position, value in enumerate(args):
                found = value is wrong or (isinstance(value, (list, tuple)) and any(item is wrong for item in value))
                if found and not hasattr(wrong, "requires_grad"):
                    name = names[position] if position < len(names) else "tensors"
                    raise TypeError(f"{function.__name__}(): argument '{name}' (position {position + 1}) must be Tensor, not "
                                    f"{type(wrong).__name__}") from None
            for name, value in kwargs.items():
                if value is wrong and not hasattr(wrong, "requires_grad"):
                    raise TypeError(f"{function.__name__}(): argument '{name}' must be Tensor, not {type(wrong).__name__}") from None
            raise

    return checked
