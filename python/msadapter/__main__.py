"""The `msadapter` command in Python: `python -m msadapter`, and the entry point `msadapter`.

`run` happens in this interpreter; everything else is the C command, which lies in the package's bin folder.
"""

import os
import sys


def _exec_command(arguments):
    """Replaces this process by the C command."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "msadapter")
    try:
        os.execv(path, ["msadapter", *arguments])
    except OSError as error:
        print(f"msadapter: cannot start {path}: {error.strerror}; is the package installed completely?", file=sys.stderr)
        return 1


def main(arguments=None):
    """Runs the command with `arguments` (default: sys.argv[1:]) and returns its exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["run"]:
        from msadapter import _run

        return _run.main(arguments[1:])
    return _exec_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
