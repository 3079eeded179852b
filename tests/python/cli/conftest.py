"""The command and the package under test, as installed."""

import os
import subprocess
import sys

import msadapter
import pytest

PACKAGE = os.path.dirname(os.path.abspath(msadapter.__file__))
COMMAND = os.path.join(PACKAGE, "bin", "msadapter")


@pytest.fixture
def command():
    """Calls the C command; returns the completed process with text output, newlines untouched."""

    def call(*arguments, **options):
        environment = {**os.environ, "MSADAPTER_PYTHON": sys.executable, **options.pop("env", {})}
        done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, env=environment, timeout=120, **options)
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done

    return call
