"""torch.save and torch.load: checkpoints in PyTorch's own file formats.

Tensors in containers and plain values go through the library, which runs nothing from a file. Whole modules and other
objects of classes go through Python's pickle; loading them needs weights_only=False.
"""

import os
import sys

from msadapter import _C

DEFAULT_PROTOCOL = 2
_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL_VERSION = 1001

_STORAGE_TYPES = {
    "BoolStorage": "bool", "ByteStorage": "uint8", "CharStorage": "int8", "ShortStorage": "int16", "IntStorage": "int32",
    "LongStorage": "int64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16", "FloatStorage": "float32",
    "DoubleStorage": "float64", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8", "_UntypedStorage": "uint8"}


def _parameter_class():
    from msadapter.pytorch.nn.parameter import Parameter

    return Parameter


def _is_path(f):
    return isinstance(f, (str, bytes, os.PathLike))


def save(obj, f, pickle_module=None, pickle_protocol=DEFAULT_PROTOCOL, _use_new_zipfile_serialization=True):
    """Write an object to a path or to a file object that is open for binary writing.

    At a path the file appears whole or not at all. Tensors that share memory are stored once. Raises RuntimeError where the
    folder does not exist, NotImplementedError for a pickle_module other than pickle.
    """
    if pickle_module is not None and getattr(pickle_module, "__name__", None) not in ("pickle", "_pickle"):
        raise NotImplementedError("save(): pickle_module other than Python's pickle is not implemented")
    target = os.fspath(f) if _is_path(f) else getattr(f, "write", None)
    if target is None:
        raise AttributeError(f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, got {type(f).__name__}")
    zipped = bool(_use_new_zipfile_serialization)
    if pickle_protocol == DEFAULT_PROTOCOL and _C._pth_save(obj, target, _parameter_class(), zipped):
        return
    pickled, storages = _pickle_object(obj, pickle_protocol, zipped)
    _C._pth_save_pickle(pickled, storages, target, zipped)


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Read what save() wrote, from a path or a file object that is open for binary reading.

    Without weights_only=False no code from the file is run: tensors, containers and plain values are loaded, and
    pickle.UnpicklingError names what else the file asks for. map_location: a device, a dictionary of devices, or a function of
    a storage and its location. mmap=True leaves tensors in the file until they are touched; the file must then stay as it is.
    Raises RuntimeError, EOFError or pickle.UnpicklingError for damaged files.
    """
    custom_pickle = pickle_module is not None and getattr(pickle_module, "__name__", None) not in ("pickle", "_pickle")
    if custom_pickle and weights_only:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if map_location is not None and not isinstance(map_location, (str, _C.device, dict, int)) and not callable(map_location):
        raise TypeError(f"map_location must be a string, torch.device, dict or callable, not {type(map_location).__name__}")
    if isinstance(map_location, (str, _C.device, int)):
        _check_location(map_location)  # before anything is read
    if mmap and not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    trusted = weights_only is not None and not weights_only
    encoding = pickle_load_args.get("encoding", "utf-8")
    simple = {"utf-8": "utf-8", "ascii": "utf-8", "latin1": "latin1", "latin-1": "latin1", "bytes": "bytes"}.get(encoding)
    odd = custom_pickle or simple is None or set(pickle_load_args) - {"encoding"}
    if odd and not trusted:
        if set(pickle_load_args) - {"encoding", "errors", "fix_imports", "buffers"}:
            raise TypeError(f"load() got an unexpected keyword argument {sorted(pickle_load_args)[0]!r}")
        raise NotImplementedError("load(): pickle_module and arguments of pickle need weights_only=False")
    if _is_path(f):
        with open(f, "rb") as file:
            if odd:
                return _load_trusted(file.read(), map_location, pickle_module, pickle_load_args)[0]
            try:
                return _load_safely(file.fileno(), map_location, simple, bool(mmap))[0]
            except Exception as error:
                if not trusted or not _is_unpickling_error(error):
                    raise
            if mmap:
                raise NotImplementedError("load(): mmap=True with objects other than tensors, containers and plain values")
            file.seek(0)
            return _load_trusted(file.read(), map_location, pickle_module, pickle_load_args)[0]
    if not hasattr(f, "read"):
        raise AttributeError(f"expected 'f' to be string, path, or a file-like object with a 'read' attribute, got {type(f).__name__}")
    start = f.tell() if hasattr(f, "seek") and hasattr(f, "tell") else None
    data = f.read()
    if odd:
        result, used = _load_trusted(data, map_location, pickle_module, pickle_load_args)
    else:
        try:
            result, used = _load_safely(data, map_location, simple, False)
        except Exception as error:
            if not trusted or not _is_unpickling_error(error):
                raise
            result, used = _load_trusted(data, map_location, pickle_module, pickle_load_args)
    if start is not None and used < len(data):
        f.seek(start + used)  # what follows belongs to the next load()
    return result


def _is_unpickling_error(error):
    import pickle

    return isinstance(error, pickle.UnpicklingError)


# Devices.


def _check_location(location):
    """Raises, or warns, as every use of that device does."""
    if location != "cpu":
        _C._ops.empty(0, device=location)


def _restored_location(map_location, location):
    """The location that dictionaries and single devices give for one."""
    if isinstance(map_location, dict):
        return map_location.get(location, location)
    if isinstance(map_location, (str, _C.device, int)):
        return map_location
    return location


def _locator(map_location):
    """What the library calls with every storage, for a function as map_location."""
    if map_location is None or isinstance(map_location, (str, _C.device, dict, int)):
        return None

    def locate(storage, location):
        result = map_location(storage, location)
        if result is None:
            _check_location(location)
        return result

    return locate


def _load_safely(source, map_location, encoding, mmap):
    locate = _locator(map_location)
    result, locations, used = _C._pth_load(source, _parameter_class(), mmap, encoding, locate)
    if locate is None:
        for location in locations:
            _check_location(_restored_location(map_location, location))
    return result, used


# Python's pickle, for objects of classes.


class _Name:
    """A global that is written under the name PyTorch has for it, whether or not that can be imported here."""

    known = {}

    def __new__(cls, module, name):
        self = cls.known.get((module, name))
        if self is None:
            self = cls.known[module, name] = super().__new__(cls)
            self.module, self.name = module, name
        return self

    def __call__(self, *args):
        raise TypeError(f"{self.module}.{self.name} is a name only")


class _StorageReference:
    """Stands for a storage while a tensor is pickled."""

    def __init__(self, storage):
        self.storage = storage


class _Plain:
    """A tensor given by the arguments that rebuild it."""

    def __init__(self, args):
        self.args = args


def _pickler_class():
    import pickle
    from collections import OrderedDict

    from msadapter.pytorch._tensor import Tensor

    Parameter = _parameter_class()

    class Pickler(pickle._Pickler):
        dispatch = dict(pickle._Pickler.dispatch)

        def __init__(self, file, protocol, legacy):
            super().__init__(file, protocol)
            self.legacy, self.storages, self.positions, self.kept = legacy, [], {}, []

        def save_name(self, obj):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
            self.memoize(obj)

        dispatch[_Name] = save_name

        def save_dtype(self, obj):
            self.write(pickle.GLOBAL + f"torch\n{str(obj)[6:]}\n".encode())
            self.memoize(obj)

        dispatch[_C.dtype] = save_dtype

        def save_class(self, obj):
            if obj is Tensor:
                self.save(_Name("torch", "Tensor"))
            elif obj in (_C.device, _C.Size, _C.dtype):
                self.save(_Name("torch", obj.__name__))
            else:
                self.save_type(obj)

        dispatch[type] = save_class

        def save_global(self, obj, name=None):
            # What torch re-exports from the extension says so: the package's name for it survives a change of the extension.
            if name is None and getattr(obj, "__module__", None) in ("torch", "torch.nn.functional") and hasattr(obj, "__name__"):
                module = "msadapter.py" + obj.__module__
                if getattr(sys.modules.get(module), obj.__name__, None) is obj:
                    self.write(pickle.GLOBAL + f"{module}\n{obj.__name__}\n".encode())
                    self.memoize(obj)
                    return
            super().save_global(obj, name)

        def persistent_id(self, obj):
            if isinstance(obj, _StorageReference):
                storage = obj.storage
            elif isinstance(obj, (_C.TypedStorage, _C.UntypedStorage)):
                storage = obj
            else:
                return None
            typed = isinstance(storage, _C.TypedStorage)
            dtype = str(storage.dtype)[6:] if typed else "uint8"
            address = _C._storage_address(storage)
            if address not in self.positions:
                self.positions[address] = (len(self.storages), dtype)
                self.storages.append(storage)
            position, known = self.positions[address]
            if known != dtype:
                raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
            name = "UntypedStorage" if not typed else next(n for n, d in _STORAGE_TYPES.items() if d == dtype)
            kind = _Name("torch.storage" if not typed else "torch", name)
            numel = storage.size() if typed else storage.nbytes()
            return ("storage", kind, str(position), "cpu", numel) + ((None,) if self.legacy else ())

        def reducer_override(self, obj):
            if isinstance(obj, Tensor):
                return self.reduce_tensor(obj)
            if isinstance(obj, _C.Size):
                return _Name("torch", "Size"), (tuple(obj),)
            if isinstance(obj, _C.device):
                return _Name("torch", "device"), (str(obj),)
            if isinstance(obj, _C.layout):
                return _Name("torch.serialization", "_get_layout"), (str(obj),)
            return NotImplemented

        def reduce_tensor(self, obj):
            kind = type(obj)
            if kind.__reduce_ex__ not in (_C.TensorBase.__reduce_ex__, Parameter.__reduce_ex__):
                return NotImplemented  # the class says itself how
            if obj.is_sparse:
                plain = obj.detach()
                return _Name("torch._utils", "_rebuild_sparse_tensor"), (obj.layout, (plain._indices(), plain._values(), obj.size()))
            if obj.is_sparse_csr:
                plain = obj.detach()
                return _Name("torch._utils", "_rebuild_sparse_csr_tensor"), (obj.layout, (plain.crow_indices(), plain.col_indices(), plain.values(), obj.size()))
            storage = _StorageReference(obj.storage())
            data = obj.detach() if isinstance(obj, Parameter) else obj
            parameter = isinstance(obj, Parameter)
            rebuild = _Name("torch._utils", "_rebuild_tensor_v2")
            args = (storage, data.storage_offset(), tuple(data.size()), data.stride(), obj.requires_grad and not parameter, OrderedDict())
            self.kept.append(args)  # the memo goes by address
            attributes = {k: v for k, v in obj.__dict__.items() if k != "_backward_hooks"}
            if kind is Tensor and not attributes:
                return rebuild, args
            if parameter:
                rebuild, args = _Name("torch._utils", "_rebuild_parameter"), (_Plain(args), obj.requires_grad, OrderedDict())
                if kind is Parameter and not attributes:
                    return rebuild, args
            named = {Tensor: _Name("torch", "Tensor"), Parameter: _Name("torch.nn.parameter", "Parameter")}.get(kind, kind)
            return _Name("torch._tensor", "_rebuild_from_type_v2"), (rebuild, named, args, attributes)

        def save_plain(self, obj):
            self.save_reduce(_Name("torch._utils", "_rebuild_tensor_v2"), obj.args, obj=obj)

        dispatch[_Plain] = save_plain

    return Pickler


def _pickle_object(obj, protocol, zipped):
    import io

    global _Pickler
    if _Pickler is None:
        _Pickler = _pickler_class()
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, protocol, not zipped)
    pickler.dump(obj)
    return buffer.getvalue(), pickler.storages


_Pickler = None


def _rebuild_tensor_v2(storage, offset, size, stride, requires_grad=False, backward_hooks=None, metadata=None):
    from msadapter import pytorch as torch

    tensor = torch.empty(0, dtype=storage.dtype).set_(storage, offset, tuple(size), tuple(stride))
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_parameter(data, requires_grad, backward_hooks):
    return _parameter_class()(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _parameter_class()(data, requires_grad)
    parameter.__dict__.update(state or {})
    return parameter


def _rebuild_from_type_v2(function, kind, args, state):
    result = function(*args)
    if type(result) is not kind:
        result = result.as_subclass(kind)
    if isinstance(state, tuple):
        for part in state:
            result.__dict__.update(part or {})
    else:
        result.__dict__.update(state or {})
    return result


def _load_from_bytes(data):
    return _load_trusted(data, None, None, {})[0]


class _StorageType:
    """What torch.FloatStorage stands for in a persistent id."""

    def __init__(self, name):
        self.dtype = getattr(_C, _STORAGE_TYPES[name])


def _get_layout(name):
    return getattr(_C, name.rpartition(".")[2])


_OWN_NAMES = {
    ("torch.serialization", "_get_layout"): _get_layout,
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor_v2,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor_v2,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter_with_state,
    ("torch._tensor", "_rebuild_from_type_v2"): _rebuild_from_type_v2,
    ("torch.storage", "_load_from_bytes"): _load_from_bytes,
}


def _find_torch(module, name):
    """Our own object for a name of PyTorch's in a pickle."""
    import importlib

    own = _OWN_NAMES.get((module, name))
    if own is not None:
        return own
    if module in ("torch", "torch.storage") and name in _STORAGE_TYPES:
        return _StorageType(name)
    package = "msadapter.py" + module if module == "torch" or module.startswith("torch.") else "msadapter." + module
    try:
        found = importlib.import_module(package)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise AttributeError(f"load(): the file needs {module}.{name}, which is not implemented") from error
    return found


def _unpickler(pickle_module, arguments, persistent):
    if pickle_module is None:
        import pickle as pickle_module

    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            if module.split(".")[0] in ("torch", "torchvision"):
                return _find_torch(module, name)
            return super().find_class(module, name)

        def persistent_load(self, pid):
            return persistent(pid)

    return lambda file: Unpickler(file, **{"encoding": "utf-8", **arguments})


def _load_trusted(data, map_location, pickle_module, arguments):
    """The object and how many bytes it took; imports and calls what the file names."""
    import io

    file = io.BytesIO(data)
    if data[:4] == b"PK\x03\x04":
        return _load_trusted_zip(file, map_location, pickle_module, arguments), len(data)
    return _load_trusted_legacy(file, map_location, pickle_module, arguments), file.tell()


def _place(storage, location, map_location):
    locate = _locator(map_location)
    if locate is not None:
        result = locate(storage, location)
        return storage if result is None else result
    _check_location(_restored_location(map_location, location))
    return storage


def _load_trusted_zip(file, map_location, pickle_module, arguments):
    import io
    import zipfile

    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise RuntimeError(f"failed reading zip archive: {error}") from error
    names = [n for n in archive.namelist() if n.endswith("/data.pkl")]
    if not names:
        raise RuntimeError("failed reading zip archive: it has no data.pkl, so it is no checkpoint of PyTorch")
    folder = min(names, key=len)[: -len("data.pkl")]
    if f"{folder}byteorder" in archive.namelist() and archive.read(f"{folder}byteorder").decode() != sys.byteorder:
        raise NotImplementedError("load(): weights_only=False with a file of the other byte order")
    storages = {}

    def persistent(pid):
        if not isinstance(pid, tuple) or pid[0] != "storage":
            raise RuntimeError(f"Unknown typename for persistent_load, expected 'storage' but got {pid!r}")
        _, kind, key, location, numel = pid
        if key not in storages:
            storage = _C._storage_from_bytes(archive.read(f"{folder}data/{key}"), kind.dtype)
            storages[key] = _place(storage, location, map_location)
        return storages[key]

    return _unpickler(pickle_module, arguments, persistent)(io.BytesIO(archive.read(f"{folder}data.pkl"))).load()


def _load_trusted_legacy(file, map_location, pickle_module, arguments):
    storages = {}

    def persistent(pid):
        if pid[0] == "module":
            return pid[1]
        _, kind, key, location, numel, view = pid
        if key not in storages:
            storage = _C.TypedStorage(numel, dtype=kind.dtype)
            storages[key] = _place(storage, location, map_location)
        if view is not None:
            raise NotImplementedError("load(): weights_only=False with views of storages in a file of PyTorch before 0.4")
        return storages[key]

    unpickler = _unpickler(pickle_module, arguments, persistent)
    first = unpickler(file).load()
    if first != _MAGIC:
        return first
    if unpickler(file).load() != _PROTOCOL_VERSION:
        raise RuntimeError("Invalid protocol version")
    if unpickler(file).load().get("little_endian", True) != (sys.byteorder == "little"):
        raise NotImplementedError("load(): weights_only=False with a file of the other byte order")
    result = unpickler(file).load()
    for key in unpickler(file).load():
        storage = storages[key]
        if int.from_bytes(file.read(8), sys.byteorder) != storage.size():
            raise RuntimeError("a storage has another size than the pickle says")
        _C._storage_fill(storage, file.read(storage.nbytes()))
    return result
