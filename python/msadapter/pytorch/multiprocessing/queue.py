"""torch.multiprocessing.queue: queues that send tensors as shared memory."""

from multiprocessing.queues import Queue, SimpleQueue

__all__ = ["Queue", "SimpleQueue"]
