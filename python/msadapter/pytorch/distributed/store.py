"""Key-value stores, over which processes find each other: in one process, in a file, or served by one process over TCP.

Values are bytes, keys are text. What waits for a key that doesn't come raises RuntimeError after the store's timeout.
"""

import fcntl
import os
import socket
import struct
import threading
import time
import weakref
from datetime import timedelta

from msadapter.pytorch.distributed.constants import default_store_timeout

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

_LARGEST = 1 << 30  # bytes of a key or value


def _bytes(name, value):
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise TypeError(f"{name}(): a value must be str or bytes, not {type(value).__name__}")


def _key(name, key):
    if not isinstance(key, str):
        raise TypeError(f"{name}(): a key must be str, not {type(key).__name__}")
    return key


def _seconds(timeout):
    if not isinstance(timeout, timedelta):
        raise TypeError(f"a timeout must be datetime.timedelta, not {type(timeout).__name__}")
    return timeout.total_seconds()


class Store:
    """What all stores can do. A subclass defines what it can; the rest raises NotImplementedError."""

    def __init__(self):
        self._timeout = default_store_timeout

    @property
    def timeout(self):
        """How long get() and wait() wait, a timedelta."""
        return self._timeout

    def set_timeout(self, timeout):
        """Change the time that get() and wait() wait, a timedelta."""
        _seconds(timeout)
        self._timeout = timeout

    def _absent(self, name):
        raise NotImplementedError(f"{type(self).__name__}.{name}() is not implemented")

    def set(self, key, value):
        """Store a value, text or bytes."""
        self._absent("set")

    def get(self, key):
        """The value of a key, bytes; waits until it is there."""
        self._absent("get")

    def add(self, key, amount):
        """Add to a number that is stored as decimal text, 0 at first. The sum; ValueError for what is no number."""
        self._absent("add")

    def compare_set(self, key, expected_value, desired_value):
        """Store the desired value if the key's is the expected one, or if there is none and none ("") is expected. The value afterwards."""
        self._absent("compare_set")

    def wait(self, keys, timeout=None):
        """Wait until all keys are there."""
        self._absent("wait")

    def delete_key(self, key):
        """Remove a key. Whether it was there."""
        self._absent("delete_key")

    def num_keys(self):
        """The number of keys."""
        self._absent("num_keys")


class _Table:
    """The keys and values of a process, and how all stores change them."""

    def __init__(self):
        self.values = {}
        self.changed = threading.Condition()

    def set(self, key, value):
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def add(self, key, amount):
        with self.changed:
            total = int(self.values.get(key, b"0")) + amount
            self.set(key, str(total).encode())
        return total

    def compare_set(self, key, expected, desired):
        with self.changed:
            if key not in self.values and expected:
                return expected
            if self.values.get(key, b"") == expected:
                self.set(key, desired)
            return self.values[key]

    def delete(self, key):
        with self.changed:
            return self.values.pop(key, None) is not None

    def wait(self, keys, seconds):
        """The values, or None when the time is over."""
        with self.changed:
            if not self.changed.wait_for(lambda: all(key in self.values for key in keys), seconds):
                return None
            return [self.values[key] for key in keys]


class HashStore(Store):
    """A store for the threads of one process."""

    def __init__(self):
        super().__init__()
        self._table = _Table()

    def set(self, key, value):
        self._table.set(_key("set", key), _bytes("set", value))

    def get(self, key):
        return self._wait([_key("get", key)], self._timeout)[0]

    def add(self, key, amount):
        return self._table.add(_key("add", key), int(amount))

    def compare_set(self, key, expected_value, desired_value):
        return self._table.compare_set(_key("compare_set", key), _bytes("compare_set", expected_value), _bytes("compare_set", desired_value))

    def wait(self, keys, timeout=None):
        self._wait([_key("wait", key) for key in keys], self._timeout if timeout is None else timeout)

    def _wait(self, keys, timeout):
        values = self._table.wait(keys, _seconds(timeout))
        if values is None:
            raise RuntimeError("Wait timeout: Connection timed out")
        return values

    def delete_key(self, key):
        return self._table.delete(_key("delete_key", key))

    def num_keys(self):
        return len(self._table.values)


class PrefixStore(Store):
    """Another store's keys that begin with `prefix` and a slash."""

    def __init__(self, prefix, store):
        super().__init__()
        self._prefix, self.underlying_store = _key("PrefixStore", prefix), store

    def _full(self, key):
        return f"{self._prefix}/{key}"

    @property
    def timeout(self):
        return self.underlying_store.timeout

    def set_timeout(self, timeout):
        self.underlying_store.set_timeout(timeout)

    def set(self, key, value):
        self.underlying_store.set(self._full(_key("set", key)), value)

    def get(self, key):
        return self.underlying_store.get(self._full(_key("get", key)))

    def add(self, key, amount):
        return self.underlying_store.add(self._full(_key("add", key)), amount)

    def compare_set(self, key, expected_value, desired_value):
        return self.underlying_store.compare_set(self._full(_key("compare_set", key)), expected_value, desired_value)

    def wait(self, keys, timeout=None):
        keys = [self._full(_key("wait", key)) for key in keys]
        self.underlying_store.wait(keys) if timeout is None else self.underlying_store.wait(keys, timeout)

    def delete_key(self, key):
        return self.underlying_store.delete_key(self._full(_key("delete_key", key)))

    def num_keys(self):
        return self.underlying_store.num_keys()


# FileStore: a record is a key and a value, each behind its length; a length of 2^64 - 1 instead of the value's: the key is deleted.
_LENGTH = struct.Struct("<Q")
_DELETED = 2**64 - 1


class FileStore(Store):
    """A store in a file that all processes reach and that is locked for each change.

    With world_size > 0 the last of so many processes that gives up its store removes the file.
    """

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self.path = os.fspath(file_name)
        self._table, self._read_to, self._lock = _Table(), 0, threading.Lock()
        self._change(lambda: None)  # the file has to be one that can be made
        if world_size > 0:
            weakref.finalize(self, _leave_file, self.path, world_size, os.getpid())

    def _change(self, function):
        """function() with the file locked and read, and what it returned; records it appends are written."""
        with self._lock, open(self.path, "a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._catch_up(file)
            before = dict(self._table.values)
            result = function()
            after = self._table.values
            records = b"".join(_record(key, value) for key, value in after.items() if before.get(key) != value)
            records += b"".join(_record(key, None) for key in before if key not in after)
            if records:
                file.write(records)
                self._read_to += len(records)
        return result

    def _catch_up(self, file):
        file.seek(self._read_to)
        data = file.read()
        at = 0
        while at < len(data):
            fields = []
            for _ in range(2):
                length = _LENGTH.unpack_from(data, at)[0] if at + 8 <= len(data) else _LARGEST + 1
                at += 8
                if length == _DELETED and fields:
                    fields.append(None)
                elif length > _LARGEST or at + length > len(data):
                    raise RuntimeError(f"FileStore: {self.path} is damaged")
                else:
                    fields.append(data[at:at + length])
                    at += length
            key = fields[0].decode(errors="replace")
            if fields[1] is None:
                self._table.values.pop(key, None)
            else:
                self._table.values[key] = fields[1]
        self._read_to += len(data)

    def set(self, key, value):
        key, value = _key("set", key), _bytes("set", value)
        self._change(lambda: self._table.set(key, value))

    def get(self, key):
        return self._wait([_key("get", key)], self._timeout, f"Timeout waiting for key: {key} after {{}} ms")[0]

    def add(self, key, amount):
        return self._change(lambda: self._table.add(_key("add", key), int(amount)))

    def compare_set(self, key, expected_value, desired_value):
        expected, desired = _bytes("compare_set", expected_value), _bytes("compare_set", desired_value)
        return self._change(lambda: self._table.compare_set(_key("compare_set", key), expected, desired))

    def wait(self, keys, timeout=None):
        self._wait([_key("wait", key) for key in keys], self._timeout if timeout is None else timeout, "Wait timeout")

    def _wait(self, keys, timeout, text):
        deadline = time.monotonic() + _seconds(timeout)
        while True:
            values = self._change(lambda: [self._table.values.get(key) for key in keys])
            if None not in values:
                return values
            if time.monotonic() >= deadline:
                raise RuntimeError(text.format(round(_seconds(timeout) * 1000)))
            time.sleep(0.01)

    def delete_key(self, key):
        return self._change(lambda: self._table.delete(_key("delete_key", key)))

    def num_keys(self):
        return self._change(lambda: len([key for key in self._table.values if key != _LEFT]))


_LEFT = "\0left"  # how many processes have given up their store


def _record(key, value):
    key = key.encode()
    end = _LENGTH.pack(_DELETED) if value is None else _LENGTH.pack(len(value)) + value
    return _LENGTH.pack(len(key)) + key + end


def _leave_file(path, world_size, process):
    if os.getpid() != process or not os.path.exists(path):
        return
    try:
        if FileStore(path).add(_LEFT, 1) >= world_size:
            os.remove(path)
    except (OSError, RuntimeError):  # somebody else has removed or spoilt it
        return


# TCPStore. A request is one byte and fields, each behind its length (a number of 4 bytes); an answer is fields.
_COUNT = struct.Struct("<I")


def _send(connection, *fields, command=b""):
    connection.sendall(command + b"".join(_COUNT.pack(len(field)) + field for field in fields))


def _read(connection, count):
    data = bytearray()
    while len(data) < count:
        part = connection.recv(min(count - len(data), 1 << 20))
        if not part:
            raise ConnectionResetError("Connection reset by peer")
        data += part
    return bytes(data)


def _receive(connection):
    count = _COUNT.unpack(_read(connection, 4))[0]
    if count > _LARGEST:
        raise ConnectionResetError("Connection reset by peer")
    return _read(connection, count)


class _Server:
    """The process that holds the table: a thread that accepts, and one for each connection."""

    def __init__(self, host, port):
        self.table = _Table()
        self.connections = weakref.WeakSet()
        self.listener = _listen(host, port)
        self.port = self.listener.getsockname()[1]
        _servers.add(self)
        threading.Thread(target=_serve, args=(self.listener, self.table, self.connections), daemon=True, name="TCPStore").start()
        weakref.finalize(self, _end_server, self.listener, self.connections, os.getpid())


_servers = weakref.WeakSet()
_clients = weakref.WeakSet()
_shared_servers = weakref.WeakValueDictionary()  # by port: for stores that are to share one


def _close_in_child():
    """A forked child holds none of its parent's connections open."""
    for server in list(_servers):
        for connection in (server.listener, *server.connections):
            connection.close()
    for client in list(_clients):
        client._connection.close()


os.register_at_fork(after_in_child=_close_in_child)


def _end_server(listener, connections, process):
    if os.getpid() != process:
        return
    for connection in (listener, *connections):
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended already
        connection.close()


def _is_local(host):
    try:
        return all(address[4][0].startswith("127.") or address[4][0] == "::1" for address in socket.getaddrinfo(host, None))
    except OSError:
        return False


def _listen(host, port):
    """A listening socket: on the loopback device where the host is this machine by that name, on all devices otherwise."""
    families = [(socket.AF_INET, "127.0.0.1")] if _is_local(host) else [(socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")]
    failures = []
    for family, address in families:
        listener = None
        try:
            listener = socket.socket(family, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listener.bind((address, port))
            listener.listen(512)
            return listener
        except OSError as error:
            if listener is not None:
                listener.close()
            failures.append(f" The server socket has failed to bind to {address}:{port} (errno: {error.errno} - {os.strerror(error.errno or 0)}).")
    raise RuntimeError("The server socket has failed to listen on any local network address." + "".join(failures))


def _serve(listener, table, connections):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connections.add(connection)
        threading.Thread(target=_answer, args=(connection, table), daemon=True, name="TCPStore").start()


def _answer(connection, table):
    try:
        with connection:
            while True:
                _COMMANDS[_read(connection, 1)](connection, table)
    except (OSError, ValueError, KeyError):
        return  # gone, or no client of ours


def _text(connection):
    return _receive(connection).decode(errors="replace")


def _answer_set(connection, table):
    table.set(_text(connection), _receive(connection))


def _answer_add(connection, table):
    _send(connection, str(table.add(_text(connection), int(_receive(connection)))).encode())


def _answer_compare_set(connection, table):
    _send(connection, table.compare_set(_text(connection), _receive(connection), _receive(connection)))


def _answer_delete(connection, table):
    _send(connection, b"1" if table.delete(_text(connection)) else b"")


def _answer_count(connection, table):
    _send(connection, str(len(table.values)).encode())


def _answer_wait(connection, table):
    milliseconds, keys = int(_receive(connection)), [_text(connection) for _ in range(int(_receive(connection)))]
    values = table.wait(keys, milliseconds / 1000)
    _send(connection, b"" if values is None else b"1", values[0] if values else b"")


_COMMANDS = {b"s": _answer_set, b"a": _answer_add, b"c": _answer_compare_set, b"d": _answer_delete, b"n": _answer_count, b"w": _answer_wait}


class TCPStore(Store):
    """A store that the process with is_master serves on host_name and port (0: a free one, see `port`), and all others call.

    With world_size, the master waits until so many processes have called. TimeoutError when nobody answers there in time.
    """

    def __init__(self, host_name, port, world_size=None, is_master=False, timeout=default_store_timeout, wait_for_workers=True, multi_tenant=False):
        super().__init__()
        self.set_timeout(timeout)
        if not 0 <= port < 65536:
            raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
        self._lock = threading.Lock()
        self._server = None
        if is_master:
            self._server = _shared_servers.get(port) if multi_tenant else None
            if self._server is None:
                self._server = _Server(host_name, port)
                if multi_tenant:
                    _shared_servers[self._server.port] = self._server
        self.host, self.port = host_name, self._server.port if is_master else port
        self._connect()
        if wait_for_workers:
            self._wait_for(world_size)

    def _wait_for(self, world_size):
        here = self.add("init/", 1)
        if self._server is None or not world_size or world_size < 0:
            return
        deadline = time.monotonic() + _seconds(self._timeout)
        while here < world_size:
            if time.monotonic() >= deadline:
                raise RuntimeError(f"Timed out after {round(_seconds(self._timeout)) + 1} seconds waiting for clients. {here}/{world_size} clients joined.")
            time.sleep(0.01)
            here = self.add("init/", 0)

    def _connect(self):
        seconds = _seconds(self._timeout)
        deadline = time.monotonic() + seconds
        pause = 0.01
        while True:
            try:
                self._connection = socket.create_connection((self.host, self.port), max(deadline - time.monotonic(), 0.01))
                break
            except OSError:
                if time.monotonic() + pause >= deadline:
                    raise TimeoutError(f"The client socket has timed out after {seconds:g}s while trying to connect to "
                                       f"({self.host}, {self.port}).") from None
                time.sleep(pause)
                pause = min(2 * pause, 0.5)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.settimeout(None)
        self._process = os.getpid()
        _clients.add(self)

    def _local_address(self):
        """This machine's address, as the others reach it."""
        return self._connection.getsockname()[0]

    def _ask(self, command, *fields, answers=1, seconds=None):
        with self._lock:
            if self._process != os.getpid():
                self._connect()  # the connection was the parent's
            try:
                self._connection.settimeout(None if seconds is None else seconds + 60)  # the server looks at the time itself
                _send(self._connection, *fields, command=command)
                return [_receive(self._connection) for _ in range(answers)]
            except OSError as error:
                raise RuntimeError("Connection reset by peer" if isinstance(error, ConnectionError) else "Socket Timeout") from None

    def set(self, key, value):
        self._ask(b"s", _key("set", key).encode(), _bytes("set", value), answers=0)

    def get(self, key):
        return self._wait([_key("get", key)], self._timeout)

    def add(self, key, amount):
        return int(self._ask(b"a", _key("add", key).encode(), str(int(amount)).encode())[0])

    def compare_set(self, key, expected_value, desired_value):
        return self._ask(b"c", _key("compare_set", key).encode(), _bytes("compare_set", expected_value), _bytes("compare_set", desired_value))[0]

    def wait(self, keys, timeout=None):
        self._wait([_key("wait", key) for key in keys], self._timeout if timeout is None else timeout)

    def _wait(self, keys, timeout):
        deadline = time.monotonic() + _seconds(timeout)
        while True:  # in short turns, so that other threads can use the connection too
            seconds = min(max(deadline - time.monotonic(), 0), 0.2)
            fields = [str(round(seconds * 1000)), str(len(keys)), *keys]
            there, value = self._ask(b"w", *(field.encode() for field in fields), answers=2, seconds=seconds)
            if there:
                return value
            if time.monotonic() >= deadline:
                raise RuntimeError("Socket Timeout")
            time.sleep(0.001)

    def delete_key(self, key):
        return bool(self._ask(b"d", _key("delete_key", key).encode())[0])

    def num_keys(self):
        return int(self._ask(b"n")[0])
