"""Models and weights from elsewhere: `torch.hub`.

A repository is a folder with a file hubconf.py whose public functions make models; its list `dependencies` names modules that they need. Folders on
this machine are read as they are; repositories on GitHub and weights are downloaded once and kept in get_dir().
"""

import contextlib
import errno
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import warnings

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_dir = None
_HASH = re.compile(r"-([a-f0-9]*)\.")  # resnet18-bfd8deac.pth


def get_dir():
    """The folder of what has been downloaded: that of set_dir(), else $TORCH_HOME/hub, else $XDG_CACHE_HOME/torch/hub, else ~/.cache/torch/hub."""
    if os.getenv("TORCH_HUB"):
        warnings.warn("TORCH_HUB is deprecated, please use env TORCH_HOME instead")
    if _dir is not None:
        return _dir
    home = os.getenv("TORCH_HOME", os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch"))
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d):
    """Makes `d` the folder of downloads."""
    global _dir
    _dir = os.path.expanduser(d)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Downloads url to the file dst, which is there only when all of it has come.

    hash_prefix: how the SHA-256 sum of the file begins; RuntimeError where it does not. Raises urllib.error.URLError where url cannot be had.
    """
    from urllib.request import Request, urlopen

    with urlopen(Request(url, headers={"User-Agent": "msadapter"})) as answer:
        length = answer.headers.get("Content-Length")
        total, done = int(length) if length else None, 0
        dst = os.path.expanduser(dst)
        part = tempfile.NamedTemporaryFile(delete=False, dir=os.path.dirname(dst) or ".")
        try:
            digest = hashlib.sha256()
            with part:
                while chunk := answer.read(1 << 16):
                    part.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    if progress and total:
                        sys.stderr.write(f"\r{done / total:4.0%} of {total / 2**20:.1f} MB")
            if progress and total:
                sys.stderr.write("\n")
            if hash_prefix is not None and digest.hexdigest()[:len(hash_prefix)] != hash_prefix:
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            shutil.move(part.name, dst)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(part.name)


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None):
    """What torch.load() reads from the file of url, which is downloaded into model_dir (get_dir()/checkpoints) unless it is there.

    check_hash: the file's name tells how its SHA-256 sum begins, as in name-<digits>.ext.
    """
    from urllib.parse import urlparse

    from msadapter.pytorch.serialization import load as load_file

    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(model_dir, exist_ok=True)
    path = os.path.join(model_dir, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = _HASH.search(os.path.basename(path)) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress=progress)
    return load_file(path, map_location=map_location)


@contextlib.contextmanager
def _on_path(folder):
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _parse(github):
    """(owner, name, branch or tag) of "owner/name[:ref]"; the branch is main where none is given."""
    repository, _, ref = github.partition(":")
    if repository.count("/") != 1:
        raise ValueError(f"hub: expected a repository as 'owner/name' or 'owner/name:ref', got {github!r}")
    return (*repository.split("/"), ref or "main")


def _trusted(owner, name, trust_repo):
    """Asks or warns, as trust_repo says, before code of a repository runs for the first time."""
    if trust_repo not in (None, True, False, "check"):
        raise ValueError(f"hub: expected trust_repo to be True, False, 'check' or None, got {trust_repo!r}")
    path = os.path.join(get_dir(), "trusted_list")
    known = set()
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = set(file.read().split())
    entry = f"{owner}_{name}"
    if trust_repo is None and entry not in known:
        warnings.warn(f"You are about to download and run code from an untrusted repository ({owner}/{name}). In a future release, this won't be allowed. "
                      "To add the repository to your trusted list, pass trust_repo=True or answer the question of trust_repo='check'.")
        return
    if trust_repo is False or trust_repo == "check" and entry not in known:
        answer = input(f"The repository {owner}/{name} does not belong to the list of trusted repositories. Do you trust it and wish to run it (y/N)?")
        if answer.strip().lower() not in ("y", "yes"):
            raise Exception("Untrusted repository.")
    if trust_repo is not None and entry not in known:
        with open(path, "a", encoding="utf-8") as file:
            file.write(entry + "\n")


def _fetched(github, force_reload, trust_repo, verbose=True):
    """The folder of a GitHub repository."""
    owner, name, ref = _parse(github)
    os.makedirs(get_dir(), exist_ok=True)
    folder = os.path.join(get_dir(), "_".join((owner, name, ref.replace("/", "_"))))
    _trusted(owner, name, trust_repo)
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    import zipfile

    archive = os.path.join(get_dir(), f"{os.path.basename(folder)}.zip")
    url = f"https://github.com/{owner}/{name}/zipball/{ref}"
    if verbose:
        sys.stderr.write(f'Downloading: "{url}" to {archive}\n')
    download_url_to_file(url, archive, progress=False)
    try:
        with zipfile.ZipFile(archive) as zipped, tempfile.TemporaryDirectory(dir=get_dir()) as place:
            zipped.extractall(place)  # never leaves the folder: zipfile drops absolute paths and ..
            top = [entry for entry in os.listdir(place) if os.path.isdir(os.path.join(place, entry))]
            if len(top) != 1:
                raise RuntimeError(f"hub: the archive of {github} holds {len(top)} folders, expected one")
            shutil.rmtree(folder, ignore_errors=True)
            shutil.move(os.path.join(place, top[0]), folder)
    finally:
        os.remove(archive)
    return folder


def _entries(folder):
    """The module hubconf.py of a folder. RuntimeError where modules are missing that it needs."""
    path = os.path.join(folder, "hubconf.py")
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    with _on_path(folder):
        spec = importlib.util.spec_from_file_location("hubconf", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    missing = [name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module, name):
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def list(github, force_reload=False, skip_validation=False, trust_repo=None):  # noqa: A001
    """The names of the functions in the hubconf.py of "owner/name[:ref]"."""
    module = _entries(_fetched(github, force_reload, trust_repo))
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo=None):  # noqa: A001
    """The docstring of a function in the hubconf.py of "owner/name[:ref]"."""
    return _entry(_entries(_fetched(github, force_reload, trust_repo)), model).__doc__


def load(repo_or_dir, model, *args, source="github", trust_repo=None, force_reload=False, verbose=True, skip_validation=False, **kwargs):
    """What the function `model` of a repository's hubconf.py gives for the arguments.

    source: "github", where repo_or_dir is "owner/name[:ref]", or "local", where it is a folder; ValueError for anything else.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = repo_or_dir if source == "local" else _fetched(repo_or_dir, force_reload, trust_repo, verbose)
    with _on_path(folder):
        return _entry(_entries(folder), model)(*args, **kwargs)
