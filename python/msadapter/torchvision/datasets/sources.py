"""Where the data sets' files come from: files.txt lists set[/part], MD5 sum, name and place of each."""

import collections
import functools
import os
import pathlib

from msadapter.torchvision.datasets import utils

File = collections.namedtuple("File", "name md5 url")


@functools.lru_cache(maxsize=None)
def _table():
    table = collections.defaultdict(list)
    for line in (pathlib.Path(__file__).parent / "files.txt").read_text(encoding="ascii").splitlines():
        if line and not line.startswith("#"):
            key, *rest = line.split()
            md5, name, url = (None if word == "-" else word for word in rest)
            table[key].append(File(name, md5, url))
    return table


def files(key):
    """The files of a set or of one part of it."""
    if key not in _table():
        raise KeyError(f"files.txt knows no {key}")
    return list(_table()[key])


def pairs(key):
    """[name, MD5 sum] of the files of a part, in torchvision's form."""
    return [[file.name, file.md5] for file in files(key)]


def whole(root, *keys):
    """Whether all files of these parts lie in `root` and have their sums."""
    return all(utils.check_integrity(os.path.join(root, file.name), file.md5) for key in keys for file in files(key))


def fetch(file, root, extract_root=None):
    """Download a file into `root` unless it's there, and unpack it if it's an archive."""
    if file.url.startswith("drive:"):
        utils.download_file_from_google_drive(file.url[6:], str(root), file.name, file.md5)
    else:
        utils.download_url(file.url, str(root), file.name, file.md5)
    if file.name.endswith((".zip", ".tar", ".tgz", ".gz", ".xz")):
        utils.extract_archive(os.path.join(root, file.name), str(extract_root or root))
