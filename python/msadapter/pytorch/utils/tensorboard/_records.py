"""Files of records: each is its length, the length's checksum, the bytes, and theirs (the format of TFRecord files)."""

import itertools
import os
import socket
import struct
import threading
import time

from msadapter import _C
from msadapter.pytorch.utils.tensorboard._messages import encode

_numbers = itertools.count()


def masked_crc(data):
    """The checksum as records carry it."""
    crc = _C._crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class RecordWriter:
    """Write records to an open binary file."""

    def __init__(self, writer):
        self._writer = writer

    def write(self, data):
        """One record."""
        head = struct.pack("<Q", len(data))
        self._writer.write(head + struct.pack("<I", masked_crc(head)) + data + struct.pack("<I", masked_crc(data)))

    def flush(self):
        self._writer.flush()

    def close(self):
        self._writer.close()


class EventFile:
    """events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER in log_dir. Events go to the file when max_queue of them wait or flush_secs have passed."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        os.makedirs(log_dir, exist_ok=True)
        self.log_dir, self._max_queue, self._flush_secs, self._suffix = log_dir, max_queue, flush_secs, filename_suffix
        self._lock = threading.Lock()
        self.open()

    def open(self):
        """Begin a file."""
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{self._suffix}"
        self._records = RecordWriter(open(os.path.join(self.log_dir, name), "wb"))
        self._waiting, self._flushed = 0, time.monotonic()
        self.add({"wall_time": time.time(), "file_version": "brain.Event:2"})
        self.flush()

    def add(self, event):
        """Write an event. Raises ValueError after close()."""
        data = encode("Event", event)
        with self._lock:
            self._records.write(data)
            self._waiting += 1
            if self._waiting >= self._max_queue or time.monotonic() - self._flushed >= self._flush_secs:
                self._flush()

    def _flush(self):
        self._records.flush()
        self._waiting, self._flushed = 0, time.monotonic()

    def flush(self):
        with self._lock:
            self._flush()

    def close(self):
        with self._lock:
            self._records.close()
