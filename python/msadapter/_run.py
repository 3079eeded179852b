"""Runs unchanged PyTorch programs: `torch` and `torchvision` are served by msadapter, whatever else is installed.

`install` puts a finder at the front of sys.meta_path. It answers for the two names and everything below them with the very
module objects of msadapter.pytorch and msadapter.torchvision, so `sys.modules["torch.nn"] is sys.modules["msadapter.pytorch.nn"]`.
`main` then runs a script or a module as the interpreter itself would: argv, path, __main__, tracebacks, exit status. Worker
processes keep the mapping: forked ones inherit it, spawned ones get it with their preparation data.
"""

import os
import sys
from importlib import import_module, util
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder, SourceFileLoader

_ROOTS = {"torch": "msadapter.pytorch", "torchvision": "msadapter.torchvision"}

_USAGE = """\
usage: msadapter run SCRIPT [ARGUMENTS ...]
       msadapter run -m MODULE [ARGUMENTS ...]

Runs an unchanged PyTorch program on msadapter: torch and torchvision, and all their submodules, are msadapter.pytorch
and msadapter.torchvision, even where PyTorch is installed.
"""


def _counterpart(name):
    """The msadapter module that stands for `name`, or None."""
    root, dot, rest = name.partition(".")
    target = _ROOTS.get(root)
    return target and target + dot + rest


class _Loader:
    """Hands out the msadapter module itself."""

    def create_module(self, spec):
        module = import_module(_counterpart(spec.name))
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        """Undoes what the import system wrote on the module, and names the submodules it has brought along."""
        module.__spec__ = self.spec
        for alias, real in _ROOTS.items():
            for name in [name for name in sys.modules if name == real or name.startswith(real + ".")]:
                sys.modules.setdefault(alias + name[len(real) :], sys.modules[name])


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "multiprocessing.spawn":
            return _patching_spec(name, path)
        real = _counterpart(name)
        if real is None:
            return None
        found = util.find_spec(real)
        if found is not None:
            return ModuleSpec(name, _Loader(), origin=found.origin, is_package=found.submodule_search_locations is not None)
        # A probe by importlib.util.find_spec expects None; an import gets the better message.
        if sys._getframe(2).f_code.co_name == "find_spec":
            return None
        raise ModuleNotFoundError(f"No module named {name!r}: msadapter has no {real}", name=name)


def install():
    """Makes torch and torchvision resolve to msadapter in this process and in the workers it starts."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    spawn = sys.modules.get("multiprocessing.spawn")
    if spawn is not None:
        _patch_spawn(spawn)


class _Preparation:
    """Unpickles, in a worker that knows nothing of msadapter yet, into the installation of the mapping."""

    def __reduce__(self):
        site = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        code = f"import sys\nif {site!r} not in sys.path: sys.path.append({site!r})\nfrom msadapter import _run\n_run.install()"
        return exec, (code, {})


def _patch_spawn(spawn):
    """Lets the preparation data of multiprocessing, which a worker reads before anything else, carry the mapping."""
    original = spawn.get_preparation_data

    def get_preparation_data(name):
        # First in the dictionary, and none of the keys that the worker looks at.
        return {"msadapter": _Preparation(), **original(name)}

    spawn.get_preparation_data = get_preparation_data


def _patching_spec(name, path):
    """The ordinary specification of multiprocessing.spawn, patched when it has been executed: importing it early is slow."""
    spec = PathFinder.find_spec(name, path)
    if spec is None:
        return None
    execute = spec.loader.exec_module

    def exec_module(module):
        execute(module)
        _patch_spawn(module)

    spec.loader.exec_module = exec_module
    return spec


def _fresh_main(file, spec, loader, package):
    """A new, empty __main__ in place of the command's own."""
    main_module = type(sys)("__main__")
    main_module.__dict__.update(__builtins__=sys.modules["builtins"], __file__=file, __cached__=spec and spec.cached)
    main_module.__dict__.update(__spec__=spec, __loader__=loader, __package__=package)
    if sys.version_info < (3, 14):
        main_module.__annotations__ = {}
    _kept.append(sys.modules["__main__"])  # its frames are still running
    sys.modules["__main__"] = main_module
    return main_module.__dict__


_kept = []


def _report(error, traceback):
    """Does for an uncaught exception what the interpreter does, with the command's own frames left out."""
    error = error.with_traceback(traceback)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, traceback
    sys.last_exc = error
    try:
        sys.stdout.flush()
    except Exception:  # closed or broken: nothing to add to the report
        pass
    try:
        sys.excepthook(type(error), error, traceback)
    except SystemExit:
        raise
    except BaseException as second:
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(second), second, second.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(type(error), error, traceback)


def _execute(make_code, namespace):
    """Runs code in __main__ and returns the exit status; SystemExit and KeyboardInterrupt leave the interpreter's own way."""
    try:
        exec(make_code(), namespace)
    except SystemExit:
        raise
    except KeyboardInterrupt as error:
        _report(error, _skip_own_frames(error.__traceback__))
        sys.excepthook = lambda *ignored: None
        raise  # the interpreter then ends by the signal, as shells expect
    except BaseException as error:
        _report(error, _skip_own_frames(error.__traceback__))
        return 1
    return 0


def _skip_own_frames(traceback):
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback


def _set_path(folder):
    """Puts the program's folder where the command's own was."""
    if getattr(sys.flags, "safe_path", False):
        return
    if sys.path:
        sys.path[0] = folder
    else:
        sys.path.append(folder)


def _run_script(script, arguments):
    path = os.path.abspath(script)
    sys.argv[:] = [script, *arguments]
    if os.path.isdir(path) or (os.path.isfile(path) and _is_archive(path)):
        return _run_container(script, path)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        print(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        return 2
    _set_path(os.path.dirname(os.path.realpath(path)))
    namespace = _fresh_main(path, None, SourceFileLoader("__main__", path), None)
    return _execute(lambda: compile(source, path, "exec", dont_inherit=True), namespace)


def _is_archive(path):
    import zipimport

    try:
        return bool(zipimport.zipimporter(path))
    except zipimport.ZipImportError:
        return False


def _run_container(script, path):
    """A folder or zip file with a __main__.py, which becomes the first entry of sys.path itself."""
    _set_path(script if script.startswith(os.sep) else path)
    own = sys.modules.pop("__main__")
    spec = util.find_spec("__main__")
    sys.modules["__main__"] = own
    if spec is None or spec.loader is BuiltinImporter:
        print(f"{sys.executable}: can't find '__main__' module in {path!r}", file=sys.stderr)
        return 1
    return _run_spec(spec, "__main__", "")


def _run_spec(spec, name, package):
    namespace = _fresh_main(spec.origin, spec, spec.loader, package)
    return _execute(lambda: spec.loader.get_code(name), namespace)


def _find_module(name):
    """The specification that `python -m name` would run, or None with a message printed."""
    name = _counterpart(name) or name
    try:
        spec = util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name += ".__main__"
            package, spec = spec, util.find_spec(name)
            if spec is None:
                message = f"No module named {name}; {package.name!r} is a package and cannot be directly executed"
                print(f"{sys.executable}: {message}", file=sys.stderr)
                return None
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        message = f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})"
        print(f"{sys.executable}: {message}", file=sys.stderr)
        return None
    if spec is None or not hasattr(spec.loader, "get_code"):
        print(f"{sys.executable}: No module named {name}", file=sys.stderr)
        return None
    return spec


def _run_module(name, arguments):
    sys.argv[:] = ["-m", *arguments]
    _set_path(os.getcwd())
    spec = _find_module(name)
    if spec is None:
        return 1
    sys.argv[0] = spec.origin or name
    return _run_spec(spec, spec.name, spec.parent)


def main(arguments):
    """Runs `SCRIPT ARGUMENTS...` or `-m MODULE ARGUMENTS...`; returns the exit status."""
    first = arguments[0] if arguments else None
    if first in ("-h", "--help"):
        print(_USAGE, end="")
        return 0
    if first == "-m" and len(arguments) > 1:
        install()
        return _run_module(arguments[1], arguments[2:])
    if first == "--":
        arguments = arguments[1:]
        first = arguments[0] if arguments else None
    elif first is not None and first.startswith("-"):
        what = "-m needs the name of a module" if first == "-m" else f"unknown option {first!r}"
        print(f"msadapter run: {what}; see msadapter run --help", file=sys.stderr)
        return 2
    if first is None:
        print(_USAGE, end="", file=sys.stderr)
        return 2
    install()
    return _run_script(first, arguments[1:])
