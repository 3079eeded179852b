"""assert_close: whether tensors, numbers and structures of them are what was expected, and where they are not."""

import cmath
from collections.abc import Mapping, Sequence

import numpy as np

from msadapter import pytorch as torch

_FLOAT32 = (1.3e-6, 1e-5)
_TOLERANCES = {torch.float16: (1e-3, 1e-5), torch.bfloat16: (0.016, 1e-5), torch.float32: _FLOAT32, torch.float64: (1e-7, 1e-7),
               torch.complex64: _FLOAT32, torch.complex128: (1e-7, 1e-7)}  # relative, absolute
_NUMBERS = {int: torch.int64, float: torch.float64, complex: torch.complex128}


class _Mismatch(Exception):
    """What does not agree: the class of error to raise, and its text."""

    def __init__(self, error, text):
        super().__init__(error, text)
        self.error, self.text = error, text


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True, check_dtype=True,
                 check_layout=True, check_stride=False, msg=None):
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere; sequences and mappings item by item.

    Tensors, arrays and numbers are compared, the last two as tensors where both have one type. Without tolerances those of the loosest dtype
    hold: (rtol, atol) is (1e-3, 1e-5) for float16, (0.016, 1e-5) for bfloat16, (1.3e-6, 1e-5) for float32, (1e-7, 1e-7) for float64, complex
    numbers as their parts, 0 for integers and bool. Shapes always have to agree; dtype, device, layout and stride where they are to be checked.
    `msg` is a text, or a function of the text, for the error. Raises ValueError for only one tolerance, TypeError for what cannot be compared.
    """
    __tracebackhide__ = True  # of pytest
    options = {"allow_subclasses": allow_subclasses, "rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_device": check_device,
               "check_dtype": check_dtype, "check_layout": check_layout, "check_stride": check_stride}
    for place, compare in list(_comparisons(actual, expected, (), options)):  # all structures before any values
        try:
            compare()
        except _Mismatch as mismatch:
            raise _error(mismatch, place, msg) from None


def _error(mismatch, place, msg=None):
    where = "".join(str([step]) for step in place)
    text = mismatch.text + (f"\n\nThe failure occurred for item {where}" if place else "")
    return mismatch.error(msg(text) if callable(msg) else text if msg is None else msg)


def _is_sequence(value):
    return isinstance(value, Sequence) and not isinstance(value, str)


def _comparisons(actual, expected, place, options):
    """(place, function that compares) of every pair in two structures. Structures that don't agree raise at once, before values are looked at."""
    __tracebackhide__ = True
    try:
        if _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                raise _Mismatch(AssertionError, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}")
            items = [(i, a, e) for i, (a, e) in enumerate(zip(actual, expected))]
        elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
            if set(actual) != set(expected):
                raise _Mismatch(AssertionError, "The keys of the mappings do not match:\n"
                                f"Missing keys in the actual mapping: {sorted(set(expected) - set(actual))}\n"
                                f"Additional keys in the actual mapping: {sorted(set(actual) - set(expected))}")
            try:
                keys = sorted(actual)
            except TypeError:  # keys without an order
                keys = list(actual)
            items = [(key, actual[key], expected[key]) for key in keys]
        else:
            yield place, _pair(actual, expected, options)
            return
    except _Mismatch as mismatch:
        raise _error(mismatch, place) from None
    for key, a, e in items:
        yield from _comparisons(a, e, (*place, key), options)


def _pair(actual, expected, options):
    """The function that compares two values, by what they are. Raises _Mismatch where nothing does."""
    if actual is None or expected is None:
        def compare():
            if actual is not expected:
                raise _Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}")
        return compare
    if isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
        def compare():
            if bool(actual) is not bool(expected):
                raise _Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}")
        return compare
    numbers = (int, float, complex, np.number)
    if isinstance(actual, numbers) and isinstance(expected, numbers):
        plain = [value.item() if isinstance(value, np.number) else value for value in (actual, expected)]
        tolerances = _tolerances([_NUMBERS.get(type(value), torch.int64) for value in plain], options)
        return lambda: _compare_numbers(*plain, *tolerances, options)
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if related and (options["allow_subclasses"] or type(actual) is type(expected)):
        try:
            tensors = [value if isinstance(value, torch.Tensor) else torch.as_tensor(value) for value in (actual, expected)]
        except Exception:  # whatever as_tensor says, it is no tensor
            tensors = None
        if tensors:
            tolerances = _tolerances([t.dtype for t in tensors], options)
            return lambda: _compare_tensors(*tensors, *tolerances, options)
    raise _Mismatch(TypeError, f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")


def _tolerances(dtypes, options):
    rtol, atol = options["rtol"], options["atol"]
    if (rtol is None) != (atol is None):
        raise _Mismatch(ValueError, f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {'rtol' if rtol is None else 'atol'}.")
    if rtol is not None:
        return rtol, atol
    return tuple(max(parts) for parts in zip(*(_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes)))


def _report(what, absolute, relative, rtol, atol, extra="", places=("", "")):
    """The text for values that are not close."""
    exact = rtol == 0 and atol == 0
    lines = [f"{what} are not {'equal' if exact else 'close'}!\n"] + ([extra] if extra else [])
    for kind, value, place, limit in (("absolute", absolute, places[0], atol), ("relative", relative, places[1], rtol)):
        head = f"Greatest {kind} difference: {value} at index {place}" if extra else f"{kind.title()} difference: {value}"
        lines.append(head + ("" if exact else f" (up to {limit} allowed)"))
    return "\n".join(lines)


def _compare_numbers(actual, expected, rtol, atol, options):
    if options["check_dtype"] and type(actual) is not type(expected):
        raise _Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    if actual == expected or options["equal_nan"] and cmath.isnan(actual) and cmath.isnan(expected):
        return
    difference = abs(actual - expected)
    if not (cmath.isfinite(difference) and difference <= atol + rtol * abs(expected)):
        raise _Mismatch(AssertionError, _number_report(actual, expected, rtol, atol))


def _number_report(actual, expected, rtol, atol):
    difference = abs(actual - expected)
    return _report("Scalars", difference, float("inf") if expected == 0 else difference / abs(expected), rtol, atol)


def _compare_tensors(actual, expected, rtol, atol, options):
    for name, checked in (("shape", True), ("layout", options["check_layout"]), ("stride()", options["check_stride"]),
                          ("device", options["check_device"]), ("dtype", options["check_dtype"])):
        ours, theirs = (t.stride() if name == "stride()" else getattr(t, name) for t in (actual, expected))
        if checked and ours != theirs:
            raise _Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {ours} != {theirs}.")
    if "meta" in (actual.device.type, expected.device.type):
        return
    actual, expected = (t.detach().to("cpu") for t in (actual, expected))
    if actual.layout != expected.layout:
        actual, expected = (t if t.layout == torch.strided else t.to_dense() for t in (actual, expected))
    common = torch.promote_types(actual.dtype, expected.dtype)
    wide = torch.complex128 if common.is_complex else torch.float64 if common.is_floating_point else torch.int64
    actual, expected = actual.to(common).to(wide), expected.to(common).to(wide)
    close = torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=options["equal_nan"])
    if close.all():
        return
    if actual.dim() == 0:
        raise _Mismatch(AssertionError, _number_report(actual.item(), expected.item(), rtol, atol))
    wrong = ~close
    absolute = torch.where(wrong, (actual - expected).abs(), 0).flatten()
    relative = torch.where(wrong.flatten(), absolute / expected.abs().flatten(), 0)
    count = int(wrong.sum())
    greatest = [(values.max().item(), tuple(map(int, np.unravel_index(int(values.argmax()), tuple(wrong.shape))))) for values in (absolute, relative)]
    raise _Mismatch(AssertionError, _report("Tensor-likes", greatest[0][0], greatest[1][0], rtol, atol,
                                            f"Mismatched elements: {count} / {wrong.numel()} ({count / wrong.numel():.1%})",
                                            (greatest[0][1], greatest[1][1])))
