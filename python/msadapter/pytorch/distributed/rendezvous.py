"""How processes find each other: from a URL to (store, rank, world size)."""

import numbers
import os
from urllib.parse import parse_qsl, urlparse

from msadapter.pytorch.distributed.constants import default_pg_timeout
from msadapter.pytorch.distributed.store import FileStore, PrefixStore, TCPStore

_handlers = {}


def register_rendezvous_handler(scheme, handler):
    """Use handler(url, **options), a generator of (store, rank, world size), for the URLs of a scheme. RuntimeError for a scheme twice."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url, rank=-1, world_size=-1, **kwargs):
    """The generator for a URL, to which rank and world_size are added. RuntimeError for a scheme without a handler."""
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    for name, value in (("rank", rank), ("world_size", world_size)):
        if not isinstance(value, numbers.Integral):
            raise RuntimeError(f"`{name}` must be an integer. {value}")
    parts = urlparse(url)
    given = {name: str(value) for name, value in (("rank", rank), ("world_size", world_size)) if value != -1}
    if given:
        query = dict(parse_qsl(parts.query))
        assert "rank" not in query and "world_size" not in query, f"The url: {url} has node-specific arguments(rank, world_size) already."
        query.update(given)
        parts = parts._replace(query="&".join(f"{name}={value}" for name, value in query.items()))
        url = parts.geturl()
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    return _handlers[parts.scheme](url, **kwargs)


def _error(scheme, text):
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {text}")


def _needed(scheme, query):
    for name, words in (("rank", "rank"), ("world_size", "world size")):
        if name not in query:
            raise _error(scheme, f"{words} parameter missing")
    return int(query["rank"]), int(query["world_size"])


def _once(scheme, found):
    yield found
    raise RuntimeError(f"Unable to perform re-rendezvous using {scheme}:// method")


def _tcp_store(host, port, rank, world_size, timeout):
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":  # the launcher serves the store
        return PrefixStore(f"/worker/attempt_{os.environ['TORCHELASTIC_RESTART_COUNT']}", TCPStore(host, port, world_size, False, timeout))
    return TCPStore(host, port, world_size, rank == 0, timeout, multi_tenant=True)


def _from_file(url, **kwargs):
    parts = urlparse(url)
    if not parts.path:
        raise _error("file", "path missing")
    rank, world_size = _needed("file", dict(parse_qsl(parts.query)))
    yield from _once("file", (FileStore(parts.path, world_size), rank, world_size))


def _from_tcp(url, timeout=default_pg_timeout, **kwargs):
    parts = urlparse(url)
    if not parts.port:
        raise _error("tcp", "port number missing")
    rank, world_size = _needed("tcp", dict(parse_qsl(parts.query)))
    yield from _once("tcp", (_tcp_store(parts.hostname, parts.port, rank, world_size, timeout), rank, world_size))


def _from_environment(url, timeout=default_pg_timeout, **kwargs):
    query = dict(parse_qsl(urlparse(url).query))

    def variable(name):
        value = query.get(name.lower()) if name in ("RANK", "WORLD_SIZE") else None
        value = value or os.environ.get(name)
        if not value:
            raise _error("env", f"environment variable {name} expected, but not set")
        return value

    rank, world_size = int(variable("RANK")), int(variable("WORLD_SIZE"))
    host, port = variable("MASTER_ADDR"), int(variable("MASTER_PORT"))
    yield from _once("env", (_tcp_store(host, port, rank, world_size, timeout), rank, world_size))


register_rendezvous_handler("tcp", _from_tcp)
register_rendezvous_handler("env", _from_environment)
register_rendezvous_handler("file", _from_file)
