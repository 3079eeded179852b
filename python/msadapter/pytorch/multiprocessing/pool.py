"""torch.multiprocessing.pool: a pool whose queues send tensors as shared memory."""

from multiprocessing.pool import Pool

__all__ = ["Pool"]
