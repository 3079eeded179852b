"""Context managers and decorators that switch recording: no_grad, enable_grad, set_grad_enabled, inference_mode."""

from msadapter import _C


class _Decorating:
    """A context manager that can also wrap functions, generators included: each resumption runs inside it."""

    def clone(self):
        return type(self)()

    def __call__(self, function):
        if isinstance(function, type):
            raise TypeError(f"{type(self).__name__} cannot decorate a class")
        import functools
        import inspect

        if inspect.isgeneratorfunction(function):
            return self._around_generator(function)

        @functools.wraps(function)
        def run(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return run

    def _around_generator(self, function):
        import functools

        @functools.wraps(function)
        def run(*args, **kwargs):
            generator = function(*args, **kwargs)
            try:
                with self.clone():
                    response = generator.send(None)
                while True:
                    try:
                        request = yield response
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            response = generator.throw(error)
                    else:
                        with self.clone():
                            response = generator.send(request)
            except StopIteration as stop:
                return stop.value

        return run


class no_grad(_Decorating):
    """Nothing is recorded inside."""

    def __init__(self):
        self.before = False

    def __enter__(self):
        self.before = _C._set_grad_enabled(False)

    def __exit__(self, *error):
        _C._set_grad_enabled(self.before)


class enable_grad(_Decorating):
    """Recording is on inside."""

    def __enter__(self):
        self.before = _C._set_grad_enabled(True)

    def __exit__(self, *error):
        _C._set_grad_enabled(self.before)


class set_grad_enabled(_Decorating):
    """Switches recording at once; as a context manager switches back at the end."""

    def __init__(self, mode):
        self.mode = bool(mode)
        self.before = _C._set_grad_enabled(self.mode)

    def clone(self):
        return type(self)(self.mode)

    def __call__(self, function):
        _C._set_grad_enabled(self.before)  # as a decorator it acts inside the function only
        return super().__call__(function)

    def __enter__(self):
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *error):
        _C._set_grad_enabled(self.before)


class inference_mode(_Decorating):
    """Nothing is recorded inside, and tensors made there can never be part of a graph."""

    def __init__(self, mode=True):
        self.mode = bool(mode)

    def clone(self):
        return type(self)(self.mode)

    def __enter__(self):
        self.before = _C._set_inference_mode(self.mode), _C._set_grad_enabled(not self.mode and _C.is_grad_enabled())

    def __exit__(self, *error):
        _C._set_inference_mode(self.before[0])
        _C._set_grad_enabled(self.before[1])
