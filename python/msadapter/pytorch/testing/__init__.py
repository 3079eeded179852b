"""torch.testing: comparisons for tests, and tensors to test with."""

from msadapter.pytorch.testing._comparison import assert_close
from msadapter.pytorch.testing._creation import make_tensor

__all__ = ["assert_close", "make_tensor"]
