"""Running a function in several forked processes that form a process group."""

import time
from datetime import timedelta

import pytest

import msadapter.pytorch.distributed as dist
import msadapter.pytorch.multiprocessing as mp


def _member(rank, size, path, seconds, function, arguments):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size, timeout=timedelta(seconds=seconds))
    function(rank, *arguments)
    if dist.is_initialized():
        dist.destroy_process_group()


@pytest.fixture
def together(tmp_path):
    """together(size, function, *arguments, seconds=10): function(rank, *arguments) in each process; fails when one fails or hangs."""
    count = 0

    def run(size, function, *arguments, seconds=10):
        nonlocal count
        count += 1
        started = mp.start_processes(_member, (size, tmp_path / f"store{count}", seconds, function, arguments), nprocs=size, join=False,
                                     daemon=True, start_method="fork")
        end = time.monotonic() + 25
        while not started.join(1):
            if time.monotonic() > end:
                for process in started.processes:
                    process.kill()
                pytest.fail("the processes hang")

    return run
