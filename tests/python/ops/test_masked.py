"""torch.masked, segment_reduce and as_strided_scatter against the real torch."""

import pytest

import msadapter.pytorch as torch

reference = pytest.importorskip("torch")
pytest.importorskip("torch.masked")

VALUES = [[1.5, -2.0, 3.0, 0.5], [4.0, 4.0, -1.0, 2.0], [0.0, 1.0, 7.0, -3.0]]
MASKS = [[[True, False, True, True], [False, False, False, False], [True, True, False, True]], [True, False, False, True], None]


def both(call, dtype="float32"):
    results = []
    for lib in (torch, reference):
        x = lib.tensor(VALUES).to(getattr(lib, dtype))
        try:
            results.append(call(lib, x))
        except NotImplementedError:
            results.append("RuntimeError")  # which it is a kind of
        except Exception as error:
            results.append(type(error).__name__)
    return results


def agree(mine, other):
    if isinstance(other, str):
        assert mine == other
        return
    assert str(mine.dtype) == str(other.dtype) and tuple(mine.shape) == tuple(other.shape)
    assert torch.allclose(mine.detach().double(), torch.from_numpy(other.detach().double().numpy()), rtol=1e-4, equal_nan=True)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean", "var", "std", "argmax", "argmin", "median", "logsumexp", "norm", "softmax",
                                  "log_softmax", "softmin", "cumsum", "cumprod", "normalize"])
def test_under_a_mask(name, dtype, mask):
    def call(lib, x):
        arguments = {"norm": (2.0, 1), "normalize": (2.0, 1)}.get(name, (1,))
        return getattr(lib.masked, name)(x, *arguments, mask=None if mask is None else lib.tensor(mask))

    mine, other = both(call, dtype)
    if dtype == "int64" and name == "logsumexp":
        return  # the reference lets the mask's identity overflow
    agree(mine, other)


def test_wrong_masks_and_dimensions():
    for call in (lambda lib, x: lib.masked.sum(x, 5), lambda lib, x: lib.masked.sum(x, (0, 0)), lambda lib, x: lib.masked.sum(x[0], 0, mask=x > 0)):
        mine, other = both(call)
        assert mine == other


def test_gradients_stop_at_the_mask():
    x = torch.tensor(VALUES, requires_grad=True)
    mask = torch.tensor(MASKS[1])
    torch.masked.softmax(x, 1, mask=mask).pow(2).sum().backward()
    assert (x.grad[:, 1:3] == 0).all() and (x.grad[:, ::3] != 0).all()


@pytest.mark.parametrize("kind", ["max", "min", "sum", "mean", "prod"])
@pytest.mark.parametrize("initial", [None, 2.0])
def test_segments(kind, initial):
    def call(lib, _):
        x = lib.tensor([[3.0, 3.0, 0.0, 7.0], [2.0, 2.0, 5.0, 5.0]], requires_grad=True)
        y = lib.segment_reduce(x, kind, lengths=lib.tensor([[3, 0, 1], [2, 2, 0]]), axis=1, initial=initial)
        y[:, 0].sum().backward()
        return lib.cat([y, x.grad], 1)

    agree(*both(call))
    agree(*both(lambda lib, x: lib.segment_reduce(x, kind, offsets=lib.tensor([0, 1, 1, 3]), initial=initial)))


def test_segments_that_do_not_fit():
    for call in (lambda lib, x: lib.segment_reduce(x, "sum", lengths=lib.tensor([1, 1])), lambda lib, x: lib.segment_reduce(x, "sum"),
                 lambda lib, x: lib.segment_reduce(x, "sum", lengths=lib.tensor([4, -1])), lambda lib, x: lib.segment_reduce(x, "none", lengths=lib.tensor([3])),
                 lambda lib, x: lib.segment_reduce(x, "sum", lengths=lib.tensor([3]), axis=4)):
        mine, other = both(call)
        assert mine == other
    with pytest.raises(RuntimeError, match="offsets"):
        torch.segment_reduce(torch.ones(3), "sum", offsets=torch.tensor([0, 9]))


def test_as_strided_scatter():
    agree(*both(lambda lib, x: lib.as_strided_scatter(x, lib.ones(2, 2), (2, 2), (1, 3), 1)))
