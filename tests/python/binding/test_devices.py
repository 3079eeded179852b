"""What scripts ask about GPUs and libraries before and while they train."""

import os
import threading

import pytest

import msadapter.pytorch as torch


def test_flags_of_the_gpu_libraries_are_kept():
    cudnn = torch.backends.cudnn
    cudnn.benchmark, cudnn.deterministic = True, True
    with cudnn.flags(benchmark=False):
        assert not torch.backends.cudnn.benchmark
    assert cudnn.benchmark and cudnn.version() is None and not cudnn.is_available()
    cudnn.benchmark = cudnn.deterministic = False
    torch.backends.cuda.matmul.allow_tf32 = True
    assert torch.backends.cuda.matmul.allow_tf32 and torch.backends.mkldnn.is_available() and torch.backends.openmp.is_available()
    with pytest.raises(AttributeError):
        torch.backends.cuda.matmul.allow_everything = True


def test_what_a_gpu_alone_could_answer_raises():
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0 and torch.cuda.current_device() == 0
    for call in (torch.cuda.get_device_name, torch.cuda.mem_get_info, torch.cuda.Stream, torch.cuda.Event, torch.cuda.CUDAGraph):
        with pytest.raises(AssertionError, match="not compiled with CUDA"):
            call()
    torch.cuda.set_device(0)
    with pytest.raises(RuntimeError):
        torch.cuda.set_device(3)
    with torch.cuda.device(0), torch.cuda.stream(None):
        pass


def test_memory_is_counted():
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.zeros(1 << 20)
    assert torch.cuda.memory_allocated() - before >= 4 << 20
    del x
    assert torch.cuda.memory_allocated() == before and torch.cuda.max_memory_allocated() - before >= 4 << 20
    assert torch.cuda.memory_stats()["allocated_bytes.all.peak"] == torch.cuda.max_memory_allocated()


def resident():
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer keeps freed memory")
def test_memory_of_sizes_that_change_is_given_back():
    torch.zeros(18 << 20)  # the most that is in use at once
    before = resident()
    for k in range(60):
        torch.ones((1 << 18) * 23 * (k + 1) // 20)  # 1 to 70 MB, of ever another size
    assert resident() - before < 100 << 20


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the address sanitizer keeps freed memory")
def test_threads_that_end_give_back_what_they_kept():
    def work():
        for size in range(8, 1024, 24):
            torch.ones(100, size).unbind()
            held = [torch.ones(size) for _ in range(64)]
        del held

    def run(count):
        for _ in range(count):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()

    run(5)
    before = resident()
    run(40)
    assert resident() - before < 16 << 20
