"""out= takes the result and is resized to it."""

import pytest

torch = pytest.importorskip("msadapter.pytorch")


OUT = {
    "arange": lambda out: torch.arange(3, out=out),
    "arange.start": lambda out: torch.arange(2.0, 5, 0.5, out=out),
    "eye": lambda out: torch.eye(2, out=out),
    "eye.m": lambda out: torch.eye(2, 3, out=out),
    "softmax": lambda out: torch.softmax(torch.arange(3.0), 0, out=out),
    "log_softmax": lambda out: torch.log_softmax(torch.arange(3.0), 0, out=out),
    "avg_pool2d": lambda out: torch.nn.functional.avg_pool2d(torch.ones(1, 4, 4), 2, out=out),
    "avg_pool3d": lambda out: torch.nn.functional.avg_pool3d(torch.ones(1, 2, 4, 4), 2, out=out),
    "diff": lambda out: torch.diff(torch.arange(4.0) ** 2, out=out),
    "narrow_copy": lambda out: torch.narrow_copy(torch.arange(4.0), 0, 1, 2, out=out),
}


@pytest.mark.parametrize("name", OUT)
def test_out_receives_the_result_and_is_resized(name):
    out = torch.empty(0)
    assert OUT[name](out) is out
    assert torch.equal(out, OUT[name](None).to(torch.float32)) and out.numel() > 0


def test_isin_writes_to_out():
    out = torch.empty(0, dtype=torch.bool)
    assert torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2]), out=out) is out
    assert out.tolist() == [False, True, False]
