"""The C steps refuse lists that do not belong together."""
import pytest

import msadapter.pytorch as torch
from msadapter import _C


def test_missing_gradients_and_states_are_errors():
    p = [torch.ones(3)]
    with pytest.raises(ValueError):
        _C._sgd_step(p, [], [], [], 0.1, 0.0, 0.0, 0.0, False, False)
    with pytest.raises(ValueError):
        _C._sgd_step(p, p, [], [], 0.1, 0.9, 0.0, 0.0, False, False)
    with pytest.raises(ValueError):
        _C._adam_step(p, p, [], [], [], [1.0], 0.1, 0.9, 0.99, 1e-8, 0.0, False, False, False)


def test_gradients_of_other_shapes_are_errors():
    with pytest.raises(RuntimeError, match="shape"):
        _C._sgd_step([torch.ones(3)], [torch.ones(2)], [], [], 0.1, 0.0, 0.0, 0.0, False, False)
