"""Finds the package under test: one that PYTHONPATH or the interpreter has, else the one in build/."""

import importlib.util
import os
import sys

BUILT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build", "root", "site")

if importlib.util.find_spec("msadapter") is None:
    sys.path.insert(0, BUILT)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (BUILT, os.environ.get("PYTHONPATH"))))
