"""Files of data sets: checksums, downloads with a progress bar, archives unpacked inside their folder only."""

import hashlib
import os
import sys


def calculate_md5(fpath, chunk_size=1024 * 1024):
    """The MD5 sum of a file, in hexadecimal digits."""
    md5 = hashlib.md5(usedforsecurity=False)
    with open(fpath, "rb") as file:
        while chunk := file.read(chunk_size):
            md5.update(chunk)
    return md5.hexdigest()


def check_md5(fpath, md5):
    """Whether a file has this MD5 sum."""
    return md5 == calculate_md5(fpath)


def check_integrity(fpath, md5=None):
    """Whether a file is there and, where a sum is given, is whole."""
    return os.path.isfile(fpath) and (md5 is None or check_md5(fpath, md5))


def _show_progress(done, total):
    if total:
        width = 40
        filled = int(width * done / total)
        sys.stderr.write(f"\r[{'#' * filled}{'.' * (width - filled)}] {done / 2**20:.1f} of {total / 2**20:.1f} MB")
        sys.stderr.flush()


def download_url(url, root, filename=None, md5=None):
    """Fetch a file into `root` unless it is there and whole. Raises RuntimeError with what to do when it cannot be had."""
    import http.client
    import urllib.error
    import urllib.request

    os.makedirs(root, exist_ok=True)
    filename = filename or os.path.basename(url)
    path = os.path.join(root, filename)
    if check_integrity(path, md5):
        print("Using downloaded and verified file: " + path)
        return
    print(f"Downloading {url} to {path}")
    part = path + ".part"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"User-Agent": "msadapter"}), timeout=30) as answer, open(part, "wb") as file:
            total, done = int(answer.headers.get("Content-Length") or 0), 0
            while chunk := answer.read(1 << 16):
                file.write(chunk)
                done += len(chunk)
                _show_progress(done, total)
            sys.stderr.write("\n")
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        if os.path.exists(part):
            os.unlink(part)
        raise RuntimeError(f"cannot download {url} ({getattr(error, 'reason', error)}): get {filename} some other way and put it into "
                           f"{os.path.abspath(root)}") from None
    if md5 is not None and not check_md5(part, md5):
        os.unlink(part)
        raise RuntimeError(f"{url} arrived damaged: its MD5 sum is not {md5}; try again, or put {filename} into {os.path.abspath(root)}")
    os.replace(part, path)


def download_file_from_google_drive(file_id, root, filename=None, md5=None):
    """Fetch a file from Google Drive into `root`. Raises RuntimeError; without a sum an answer that is a page about quotas would go unnoticed."""
    download_url(f"https://drive.usercontent.google.com/download?id={file_id}&export=download&confirm=t", root, filename or file_id, md5)


def verify_str_arg(value, arg=None, valid_values=None, custom_msg=None):
    """`value`. Raises ValueError when it's no text or none of the valid ones."""
    if not isinstance(value, str):
        raise ValueError(f"Expected type str{f' for argument {arg}' if arg is not None else ''}, but got type {type(value)}.")
    if valid_values is not None and value not in valid_values:
        raise ValueError(custom_msg or f"Unknown value '{value}' for argument {arg}. Valid values are {{{iterable_to_str(valid_values)}}}.")
    return value


def iterable_to_str(iterable):
    """The values in quotes, with commas."""
    return "'" + "', '".join(map(str, iterable)) + "'"


def list_dir(root, prefix=False):
    """Names of the folders in a folder, sorted, or their paths."""
    root = os.path.expanduser(root)
    return [os.path.join(root, name) if prefix else name for name in sorted(os.listdir(root)) if os.path.isdir(os.path.join(root, name))]


def list_files(root, suffix, prefix=False):
    """Names of the files in a folder that end so, sorted, or their paths."""
    root = os.path.expanduser(root)
    return [os.path.join(root, name) if prefix else name for name in sorted(os.listdir(root))
            if name.endswith(suffix) and os.path.isfile(os.path.join(root, name))]


def _inside(root, name):
    root = os.path.realpath(root)
    place = os.path.realpath(os.path.join(root, name))
    return place == root or place.startswith(root.rstrip(os.sep) + os.sep)


def extract_archive(from_path, to_path=None, remove_finished=False):
    """Unpack a tar, zip, gz or xz file. Raises RuntimeError for members that would land outside `to_path` or are no plain files or folders."""
    import gzip
    import lzma
    import shutil
    import tarfile
    import zipfile

    to_path = to_path or os.path.dirname(from_path)
    if tarfile.is_tarfile(from_path):
        with tarfile.open(from_path) as archive:
            members = archive.getmembers()
            for member in members:
                if not (member.isfile() or member.isdir()) or not _inside(to_path, member.name):
                    raise RuntimeError(f"{from_path}: refusing the member {member.name!r}")
            for member in members:
                archive.extract(member, to_path)
    elif zipfile.is_zipfile(from_path):
        with zipfile.ZipFile(from_path) as archive:
            for name in archive.namelist():
                if not _inside(to_path, name):
                    raise RuntimeError(f"{from_path}: refusing the member {name!r}")
            archive.extractall(to_path)
    elif from_path.endswith((".gz", ".xz")):
        target = os.path.join(to_path, os.path.basename(from_path)[:-3])
        with (gzip if from_path.endswith(".gz") else lzma).open(from_path, "rb") as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file)
    else:
        raise RuntimeError(f"{from_path} is no archive that can be unpacked (tar, zip, gz, xz)")
    if remove_finished:
        os.unlink(from_path)
    return to_path


def download_and_extract_archive(url, download_root, extract_root=None, filename=None, md5=None, remove_finished=False):
    """Fetch an archive and unpack it."""
    filename = filename or os.path.basename(url)
    download_url(url, download_root, filename, md5)
    extract_archive(os.path.join(download_root, filename), extract_root or download_root, remove_finished)


def load_plain_pickle(path):
    """A pickle of dictionaries, lists, texts, numbers and numpy arrays. Anything else in it raises pickle.UnpicklingError."""
    import importlib
    import pickle

    import numpy

    allowed = {("numpy", "dtype"): numpy.dtype, ("numpy", "ndarray"): numpy.ndarray}
    modules = ("numpy.core.multiarray", "numpy._core.multiarray")  # before and since numpy 2
    here = importlib.import_module(modules[numpy.lib.NumpyVersion(numpy.__version__) >= "2.0.0"])
    for module in modules:
        for name in ("_reconstruct", "scalar"):
            allowed[module, name] = getattr(here, name)

    def encode(text, encoding):
        return text.encode("latin1")

    allowed["_codecs", "encode"] = encode

    class Plain(pickle.Unpickler):
        def find_class(self, module, name):
            if (module, name) not in allowed:
                raise pickle.UnpicklingError(f"{path}: {module}.{name} has no place in a data set's file")
            return allowed[module, name]

    with open(path, "rb") as file:
        return Plain(file, encoding="latin1").load()
