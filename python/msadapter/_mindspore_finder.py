"""Serves `import mindspore` from msadapter.mindspore where MindSpore itself is not installed.

The finder stands last in sys.meta_path, so it is asked only after every real package has been looked for.
"""

import importlib
import importlib.machinery
import sys


class _Loader:
    """Hands out the module of msadapter that stands for one of mindspore."""

    def create_module(self, spec):
        return importlib.import_module("msadapter." + spec.name)

    def exec_module(self, module):
        """Nothing is left to do: the module has been run under its own name."""


class MindSporeFinder:
    """Finds `mindspore` and those of its submodules that msadapter has."""

    def find_spec(self, name, path=None, target=None):
        if name != "mindspore" and not name.startswith("mindspore."):
            return None
        own = "msadapter." + name
        try:
            found = importlib.util.find_spec(own)
        except ModuleNotFoundError:
            return None
        if found is None:
            return None
        spec = importlib.machinery.ModuleSpec(name, _Loader(), origin=found.origin,
                                              is_package=found.submodule_search_locations is not None)
        return spec


def install():
    """Put the finder at the end of sys.meta_path, once."""
    import importlib.util  # noqa: F401  (find_spec is used above)

    if not any(isinstance(finder, MindSporeFinder) for finder in sys.meta_path):
        sys.meta_path.append(MindSporeFinder())
