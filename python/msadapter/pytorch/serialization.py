"""save and load: PyTorch's checkpoint files, both ways.

The zip format holds a pickle in which each storage is a persistent id, and the storages' bytes beside it; the older format is a row of
pickles with the bytes behind. Loading goes through an unpickler that knows a fixed list of constructors and runs nothing else,
unless the caller says weights_only=False.
"""

import io
import os
import pickle
import sys
from collections import OrderedDict


from msadapter import pytorch as torch

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_STORAGES = {
    "FloatStorage": torch.float32, "DoubleStorage": torch.float64, "HalfStorage": torch.float16, "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64, "IntStorage": torch.int32, "ShortStorage": torch.int16, "CharStorage": torch.int8, "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool, "ComplexFloatStorage": torch.complex64, "ComplexDoubleStorage": torch.complex128,
}
_STORAGE_OF = {dtype: name for name, dtype in _STORAGES.items()}
_OURS, _THEIRS = "msadapter.pytorch", "torch"


class _StorageType:
    """Stands for torch.FloatStorage and its kin inside a pickle."""

    def __init__(self, name):
        self.name, self.dtype = name, _STORAGES[name]


class _Bytes:
    """A storage that has been read: a flat tensor of its elements' type."""

    def __init__(self, flat):
        self.flat = flat


# Reading.


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad=False, backward_hooks=None, metadata=None):
    flat = storage.flat
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride) or any(not isinstance(n, int) or n < 0 for n in (*size, *stride, storage_offset)):
        raise RuntimeError("load: a tensor's geometry in the file is damaged")
    t = flat.as_strided(size, stride, storage_offset)
    t = t.detach()
    return t.requires_grad_(True) if requires_grad else t


def _rebuild_tensor(storage, storage_offset, size, stride):
    return _rebuild_tensor_v2(storage, storage_offset, size, stride)


def _rebuild_parameter(data, requires_grad, backward_hooks=None):
    return torch.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _rebuild_parameter(data, requires_grad)
    if isinstance(state, dict):
        parameter.__dict__.update(state)
    return parameter


def _encode(text, encoding):
    """_codecs.encode, as protocol 2 writes bytes."""
    if encoding != "latin1" or not isinstance(text, str):
        raise pickle.UnpicklingError("load: _codecs.encode with arguments other than pickle's own")
    return text.encode("latin1")


def _numpy_scalar(dtype, data):
    import numpy

    return numpy.frombuffer(data, dtype, 1)[0]


def _numpy_dtype(*args):
    import numpy

    dtype = numpy.dtype(*args)
    if dtype.hasobject:
        raise pickle.UnpicklingError("load: numpy arrays of objects are refused")
    return dtype


def _numpy_array(*args):
    import numpy

    return numpy.core.multiarray._reconstruct(numpy.ndarray, (0,), b"b")


def _safe_globals():
    table = {
        ("collections", "OrderedDict"): OrderedDict, ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor_v2,
        ("torch._utils", "_rebuild_tensor"): _rebuild_tensor, ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
        ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter_with_state, ("torch", "Size"): torch.Size,
        ("torch", "device"): torch.device, ("torch.nn.parameter", "Parameter"): torch.nn.Parameter, ("_codecs", "encode"): _encode,
        ("torch.serialization", "_get_layout"): lambda name: torch.strided,
        ("numpy.core.multiarray", "scalar"): _numpy_scalar, ("numpy", "dtype"): _numpy_dtype,
        ("numpy._core.multiarray", "scalar"): _numpy_scalar, ("numpy.core.multiarray", "_reconstruct"): _numpy_array,
        ("numpy._core.multiarray", "_reconstruct"): _numpy_array, ("numpy", "ndarray"): "numpy.ndarray",
    }
    for name in ("set", "frozenset", "complex", "bytearray", "slice", "range"):
        table["builtins", name] = table["__builtin__", name] = getattr(__import__("builtins"), name)
    from collections import Counter, defaultdict

    table["collections", "Counter"], table["collections", "defaultdict"] = Counter, defaultdict
    for dtype in _STORAGE_OF:
        table["torch", str(dtype).split(".")[1]] = dtype
    for name in _STORAGES:
        table["torch", name] = _StorageType(name)
        table["torch.storage", name] = table["torch", name]
    return table


class _Unpickler(pickle.Unpickler):
    """Knows the constructors of _safe_globals; every other class only with `trusting`."""

    def __init__(self, file, find_storage, trusting, **options):
        super().__init__(file, **options)
        self.persistent_load, self._trusting, self._globals = find_storage, trusting, _safe_globals()

    def find_class(self, module, name):
        if module == _OURS or module.startswith(_OURS + "."):
            module = _THEIRS + module[len(_OURS):]
        found = self._globals.get((module, name))
        if found is not None:
            return found
        if not self._trusting:
            raise pickle.UnpicklingError(
                f"load: the file wants {module}.{name}, which is not among the constructors that are safe. If you trust where the file "
                f"comes from, load it with weights_only=False.")
        if module == _THEIRS or module.startswith(_THEIRS + "."):
            module = _OURS + module[len(_THEIRS):]
        return super().find_class(module, name)


def _flat_tensor(data, dtype, numel):
    """A tensor over a copy of a storage's bytes. Raises RuntimeError when there are fewer than `numel` elements need."""
    size = torch.empty(0, dtype=dtype).element_size()
    if not isinstance(numel, int) or numel < 0 or numel * size > len(data):
        raise RuntimeError(f"load: a storage of {numel} elements of {dtype} needs more bytes than the file has ({len(data)})")
    if numel == 0:
        return torch.empty(0, dtype=dtype)
    return torch.frombuffer(bytearray(data[:numel * size]), dtype=dtype)


def _mapped(flat, location, map_location):
    """What map_location makes of a storage; there is one device, so only callables can change anything."""
    if map_location is None or isinstance(map_location, (str, dict, torch.device)):
        return flat
    if not callable(map_location):
        raise TypeError(f"load: argument 'map_location' must be a string, a device, a dictionary or a function, got {type(map_location).__name__}")
    map_location(flat.storage(), location)
    return flat


def _load_zip(file, map_location, trusting, options):
    import zipfile

    try:
        archive = zipfile.ZipFile(file)
        names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError) as error:
        raise RuntimeError(f"load: the file is not a whole zip archive: {error}") from None
    root = next((name[:-len("/data.pkl")] for name in names if name.endswith("/data.pkl")), None)
    if root is None:
        raise RuntimeError("load: the archive has no data.pkl; was it written by torch.save?")
    known, storages = set(names), {}

    def read(name):
        if name not in known:
            raise RuntimeError(f"load: the archive lacks {name}")
        try:
            return archive.read(name)
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, RuntimeError, NotImplementedError, OverflowError) as error:
            raise RuntimeError(f"load: {name} in the archive is damaged: {error}") from None
        except Exception as error:  # zlib.error, struct.error
            raise RuntimeError(f"load: {name} in the archive is damaged: {error}") from None

    if f"{root}/byteorder" in known and read(f"{root}/byteorder") != sys.byteorder.encode():
        raise RuntimeError("load: files of the other byte order are not supported")

    def find_storage(saved):
        if not isinstance(saved, tuple) or len(saved) != 5 or saved[0] != "storage" or not isinstance(saved[1], _StorageType):
            raise pickle.UnpicklingError("load: a persistent id in the file is not a storage")
        _, kind, key, location, numel = saved
        if key not in storages:
            flat = _flat_tensor(read(f"{root}/data/{key}"), kind.dtype, numel)
            storages[key] = _Bytes(_mapped(flat, location, map_location))
        return storages[key]

    return _unpickle(io.BytesIO(read(f"{root}/data.pkl")), find_storage, trusting, options)


def _unpickle(file, find_storage, trusting, options):
    try:
        return _Unpickler(file, find_storage, trusting, **options).load()
    except (pickle.UnpicklingError, RuntimeError, EOFError):
        raise
    except Exception as error:
        if trusting:
            raise
        raise pickle.UnpicklingError(f"load: the pickle in the file is damaged: {type(error).__name__}: {error}") from None


def _load_legacy(file, map_location, trusting, options):
    def nothing(saved):
        raise pickle.UnpicklingError("load: unexpected persistent id")

    magic = _unpickle(file, nothing, False, options)
    if magic != _MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    protocol = _unpickle(file, nothing, False, options)
    if protocol != _PROTOCOL:
        raise RuntimeError(f"Invalid protocol version: {protocol}")
    _unpickle(file, nothing, False, options)  # sizes of C types, which nobody needs
    storages = {}

    def find_storage(saved):
        if not isinstance(saved, tuple) or len(saved) != 6 or saved[0] != "storage" or not isinstance(saved[1], _StorageType):
            raise pickle.UnpicklingError("load: a persistent id in the file is not a storage")
        _, kind, key, location, numel, view = saved
        if view is not None:
            raise NotImplementedError("load: views of storages in files of this age are not implemented")
        if key not in storages:
            if not isinstance(numel, int) or numel < 0 or numel > remaining // torch.empty(0, dtype=kind.dtype).element_size():
                raise RuntimeError(f"load: a storage of {numel} elements is larger than the file")
            storages[key] = _Bytes(_mapped(torch.empty(numel, dtype=kind.dtype), location, map_location))
        return storages[key]

    here = file.tell()
    remaining = file.seek(0, os.SEEK_END) - here
    file.seek(here)
    result = _unpickle(file, find_storage, trusting, options)
    for key in _unpickle(file, nothing, False, options):
        if key not in storages:
            raise RuntimeError(f"load: the file holds a storage that nothing refers to: {key!r}")
        flat = storages[key].flat
        count = int.from_bytes(file.read(8), sys.byteorder)
        if count != flat.numel():
            raise RuntimeError(f"load: storage {key!r} has {count} elements, expected {flat.numel()}")
        data = file.read(count * flat.element_size())
        flat.copy_(_flat_tensor(data, flat.dtype, count))
    return result


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """What was saved in the file `f` (a path or a file object that can seek), by PyTorch or by msadapter.

    Only tensors, numbers, texts and containers of them are built unless weights_only=False says that the file is to be trusted. Raises
    pickle.UnpicklingError for anything else in it, RuntimeError for a file that is damaged, FileNotFoundError.
    """
    if mmap:
        raise NotImplementedError("load: argument 'mmap'=True is not implemented")
    if pickle_module is not None and pickle_module is not pickle:
        raise NotImplementedError("load: argument 'pickle_module' other than pickle is not implemented")
    pickle_load_args.setdefault("encoding", "utf-8")
    trusting = weights_only is False
    if isinstance(f, (str, bytes, os.PathLike)):
        with open(f, "rb") as file:
            return _load_from(file, map_location, trusting, pickle_load_args)
    return _load_from(f, map_location, trusting, pickle_load_args)


def _load_from(file, map_location, trusting, options):
    start = file.tell()
    signature = file.read(4)
    file.seek(start)
    if not signature:
        raise EOFError("Ran out of input")
    if signature == b"PK\x03\x04":
        return _load_zip(file, map_location, trusting, options)
    return _load_legacy(file, map_location, trusting, options)


# Writing.


class _Pickler(pickle._Pickler):
    """Writes tensors as PyTorch does, under PyTorch's names, so that files open there without msadapter."""

    def __init__(self, file, protocol, storage_id):
        super().__init__(file, protocol)
        self._storage_id = storage_id

    def _global(self, module, name):
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, torch.Tensor) and id(obj) not in self.memo:
            self._save_tensor(obj)
        elif isinstance(obj, torch.dtype):
            self._global("torch", str(obj).split(".")[1])
        elif isinstance(obj, torch.Size):
            self._global("torch", "Size")
            super().save((tuple(obj),))
            self.write(pickle.REDUCE)
        else:
            super().save(obj, save_persistent_id)

    def _save_tensor(self, t):
        if isinstance(t, torch.nn.Parameter):
            self._global("torch._utils", "_rebuild_parameter")
            self.write(pickle.MARK)
            self._save_plain(t.detach())
            super().save(t.requires_grad)
            self._empty_dictionary()
            self.write(pickle.TUPLE + pickle.REDUCE)
        else:
            self._save_plain(t)
        self.memoize(t)

    def _empty_dictionary(self):
        self._global("collections", "OrderedDict")
        self.write(pickle.EMPTY_TUPLE + pickle.REDUCE)

    def _save_plain(self, t):
        if t.requires_grad and t.grad_fn is not None:
            flag = True
        else:
            flag = t.requires_grad
        self._global("torch._utils", "_rebuild_tensor_v2")
        self.write(pickle.MARK)
        self._save_storage(t)
        for value in (t.storage_offset(), tuple(t.shape), tuple(t.stride()), flag):
            super().save(value)
        self._empty_dictionary()
        self.write(pickle.TUPLE + pickle.REDUCE)

    def _save_storage(self, t):
        key, numel = self._storage_id(t)
        self.write(pickle.MARK)
        super().save("storage")
        self._global("torch", _STORAGE_OF[t.dtype])
        for value in (key, "cpu", numel):
            super().save(value)
        self._after_storage()
        self.write(pickle.TUPLE + pickle.BINPERSID)

    def _after_storage(self):
        """The older format's persistent ids have one entry more."""


class _LegacyPickler(_Pickler):
    def _after_storage(self):
        self.save(None)


class _Storages:
    """The storages met so far, by address and type, each with the number that the file knows it by."""

    def __init__(self):
        self.found = {}

    def __call__(self, t):
        flat = _whole_storage(t)
        where = (flat.data_ptr(), t.dtype) if flat.numel() else (id(t), t.dtype)
        if where not in self.found:
            self.found[where] = (str(len(self.found)), flat)
        key, flat = self.found[where]
        return key, flat.numel()


def _whole_storage(t):
    """All of the storage under a tensor, as a flat tensor of its type."""
    size = t.element_size()
    count = t.storage().nbytes() // size
    return t.detach().as_strided((count,), (1,), 0)


def _bytes_of(flat):
    if flat.numel() == 0:
        return b""
    return flat.view(torch.uint8).numpy().tobytes()


def save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True):
    """Write `obj` to a path or file object in PyTorch's format. A path is written under a temporary name and renamed at the end."""
    if pickle_module is not None and pickle_module is not pickle:
        raise NotImplementedError("save: argument 'pickle_module' other than pickle is not implemented")
    write = _save_zip if _use_new_zipfile_serialization else _save_legacy
    if not isinstance(f, (str, bytes, os.PathLike)):
        write(obj, f, pickle_protocol)
        return
    path = os.fsdecode(f)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
    temporary = os.path.join(folder, f".{os.path.basename(path)}.{os.getpid()}.part")
    try:
        with open(temporary, "wb") as file:
            write(obj, file, pickle_protocol)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _save_zip(obj, file, protocol):
    import zipfile

    storages, pickled = _Storages(), io.BytesIO()
    _Pickler(pickled, protocol, storages).dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        def entry(name, data):
            info = zipfile.ZipInfo("archive/" + name, (1980, 1, 1, 0, 0, 0))
            if name.startswith("data/"):
                # PyTorch maps data that starts at a multiple of 64 bytes: an extra field fills up to there.
                header = archive.fp.tell() + 30 + len(info.filename)
                padding = -(header + 4) % 64
                info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
            archive.writestr(info, data)

        entry("data.pkl", pickled.getvalue())
        for key, flat in storages.found.values():
            entry(f"data/{key}", _bytes_of(flat))
        entry("version", b"3\n")


def _save_legacy(obj, file, protocol):
    storages = _Storages()
    for value in (_MAGIC, _PROTOCOL, {"protocol_version": _PROTOCOL, "little_endian": sys.byteorder == "little",
                                      "type_sizes": {"short": 2, "int": 4, "long": 4}}):
        pickle.dump(value, file, protocol)
    _LegacyPickler(file, protocol, storages).dump(obj)
    found = {key: flat for key, flat in storages.found.values()}
    pickle.dump(sorted(found), file, protocol)
    for key in sorted(found):
        file.write(found[key].numel().to_bytes(8, sys.byteorder))
        file.write(_bytes_of(found[key]))


__all__ = ["load", "save"]
