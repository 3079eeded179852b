"""torch.multiprocessing: the standard library's multiprocessing, with tensors sent as shared memory.

Importing it teaches the pickles of queues, pipes and process arguments about tensors: the receiver's tensor lies over the sender's
memory, which is moved to shared memory (Tensor.share_memory_) for that.
"""

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F401, F403

from msadapter import _C as _C
from msadapter._C import _prctl_pr_set_pdeathsig  # noqa: F401
from msadapter.pytorch.multiprocessing.reductions import init_reductions as _init_reductions
from msadapter.pytorch.multiprocessing.spawn import (ProcessContext, ProcessException, ProcessExitedException, ProcessRaisedException,  # noqa: F401
                                                     SpawnContext, spawn, start_processes)

__all__ = ["set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies", *_multiprocessing.__all__]

_sharing_strategy = "file_descriptor"
_all_sharing_strategies = {"file_descriptor", "file_system"}


def set_sharing_strategy(new_strategy):
    """How memory is shared from now on: "file_descriptor" or "file_system". AssertionError for another name.

    By descriptor, each shared storage keeps a file open, and a sender has to live until the receiver has taken the tensor. By name
    neither holds, but a process that is killed leaves its files in /dev/shm.
    """
    global _sharing_strategy
    assert new_strategy in _all_sharing_strategies
    _sharing_strategy = new_strategy
    _C._set_sharing_by_name(new_strategy == "file_system")


def get_sharing_strategy():
    """The name of the strategy by which memory is shared."""
    return _sharing_strategy


def get_all_sharing_strategies():
    """The names of the strategies there are, a set."""
    return _all_sharing_strategies


_init_reductions()
