"""skip_init: modules without initial values."""

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """module_cls(*args, **kwargs), its values not drawn. Raises RuntimeError for classes that take no device."""
    import inspect

    from msadapter.pytorch.nn.modules.module import Module

    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    from msadapter.pytorch.nn import init

    names = [name for name in vars(init) if name.endswith("_") and not name.startswith("_")]
    before = {name: getattr(init, name) for name in names}
    try:  # the initialising functions do nothing for as long as the module is made
        for name in names:
            setattr(init, name, lambda tensor, *rest, **options: tensor)
        return module_cls(*args, **kwargs)
    finally:
        for name, function in before.items():
            setattr(init, name, function)
