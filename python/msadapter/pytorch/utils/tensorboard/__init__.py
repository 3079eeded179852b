"""torch.utils.tensorboard: files that TensorBoard shows. They are written by this package itself; TensorBoard is needed to look at them only."""

from msadapter.pytorch.utils.tensorboard._records import RecordWriter
from msadapter.pytorch.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
