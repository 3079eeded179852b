"""functional_call: a module called with other parameters and buffers than its own."""

from msadapter.pytorch.nn.modules.module import Module

__all__ = ["functional_call"]


_ABSENT = object()


def _table_of(module, dotted):
    """The dictionary that holds a parameter or buffer (a plain attribute where there is none of that name), and its key there."""
    path, _, name = dotted.rpartition(".")
    owner = module.get_submodule(path)
    for table in (owner._parameters, owner._buffers):
        if name in table:
            return table, name
    return owner.__dict__, name


def functional_call(module, parameters_and_buffers, args, kwargs=None):
    """module(*args, **kwargs) with the tensors of a dictionary of dotted names in place of its own; the module is not changed.

    Gradients flow to these tensors. A name that the module does not have is an attribute during the call. Raises AttributeError for
    submodules that are not there.
    """
    if not isinstance(module, Module):
        raise RuntimeError(f"functional_call takes a Module, got {type(module).__name__}")
    if kwargs is None:
        kwargs = {}
    if not isinstance(args, tuple):
        args = (args,)
    changed = []
    try:
        for dotted, value in parameters_and_buffers.items():
            table, name = _table_of(module, dotted)
            changed.append((table, name, table.get(name, _ABSENT)))
            table[name] = value
        return module(*args, **kwargs)
    finally:
        for table, name, value in reversed(changed):
            if value is _ABSENT:
                del table[name]
            else:
                table[name] = value
