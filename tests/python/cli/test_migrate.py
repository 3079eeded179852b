"""`msadapter migrate`: what it writes, what it leaves, what it says."""

import ast
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
import tokenize

import msadapter
import pytest

PACKAGE = os.path.dirname(os.path.abspath(msadapter.__file__))
COMMAND = os.path.join(PACKAGE, "bin", "msadapter")

BEFORE = b"import torch\r\nimport torch.nn as nn\r\nx = 'import torch'  # import torch\r\n"
AFTER = BEFORE.replace(b"import torch\r", b"import msadapter.pytorch as torch\r", 1).replace(b"torch.nn as", b"msadapter.pytorch.nn as")


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_folder_is_rewritten_and_a_second_run_changes_nothing(tmp_path, command):
    script = write(tmp_path / "pkg" / "a.py", BEFORE)
    stub = write(tmp_path / "b.pyi", b"from torch import Tensor as Tensor\n")
    other = write(tmp_path / "c.txt", BEFORE)
    first = command("migrate", tmp_path)
    assert first.returncode == 0 and first.stdout.endswith("2 files changed, 0 unchanged, 0 refused\n")
    assert script.read_bytes() == AFTER and other.read_bytes() == BEFORE
    assert stub.read_bytes() == b"from msadapter.pytorch import Tensor as Tensor\n"
    assert command("migrate", tmp_path).stdout == "0 files changed, 2 unchanged, 0 refused\n"
    assert script.read_bytes() == AFTER


def test_the_working_folder_is_the_default(tmp_path, command):
    script = write(tmp_path / "a.py", b"import torch")
    assert command("migrate", cwd=tmp_path).returncode == 0
    assert script.read_bytes() == b"import msadapter.pytorch as torch"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_ends_are_kept(tmp_path, command, end):
    script = write(tmp_path / "a.py", end.join([b"import os, torch", b"from torchvision import (a,", b"  b)", b""]))
    assert command("migrate", script).returncode == 0
    expected = [b"import os, msadapter.pytorch as torch", b"from msadapter.torchvision import (a,", b"  b)", b""]
    assert script.read_bytes() == end.join(expected)


@pytest.mark.skipif(not shutil.which("patch"), reason="needs the patch program")
def test_a_dry_run_writes_nothing_and_prints_a_diff_that_patch_applies(tmp_path, command):
    lines = [b"line = %d\n" % i for i in range(40)]
    for at in (0, 5, 6, 13, 30, 39):
        lines[at] = b"import torch; import os\n"
    script = write(tmp_path / "a b.py", b"".join(lines).rstrip(b"\n"))
    before = script.read_bytes()
    shown = command("migrate", "--dry-run", cwd=tmp_path)
    assert shown.returncode == 0 and script.read_bytes() == before
    assert shown.stdout.startswith("--- a/a b.py\t\n+++ b/a b.py\t\n@@ -1,") and shown.stdout.count("@@ -") == 3
    assert shown.stdout.endswith("1 file changed, 0 unchanged, 0 refused (dry run: nothing written)\n")
    done = subprocess.run(["patch", "-p1", "--binary"], cwd=tmp_path, input=shown.stdout.encode(), capture_output=True)
    assert done.returncode == 0, done.stdout
    patched = script.read_bytes()
    script.write_bytes(before)
    command("migrate", script)
    assert script.read_bytes() == patched != before


def test_a_file_that_cannot_be_read_is_named_with_its_line_and_the_others_are_done(tmp_path, command):
    good = write(tmp_path / "z.py", b"import torch\n")
    bad = {
        "a.py": b"import torch\nx = (1,\n",
        "b.py": b"import torch\n\n'''x\n",
        "c.py": b"import torch\nx = '\xff'\n",
        "d.py": b"import torch\n\0",
        "e.py": b"import torch\nfrom torch import\n",
    }
    for name, data in bad.items():
        write(tmp_path / name, data)
    done = command("migrate", tmp_path)
    assert done.returncode == 1 and done.stdout.endswith("1 file changed, 0 unchanged, 5 refused\n")
    for name, line in zip(bad, (2, 3, 2, 2, 2)):
        assert f"{tmp_path}/{name}:{line}: refused: " in done.stderr
        assert (tmp_path / name).read_bytes() == bad[name]
    assert good.read_bytes() == b"import msadapter.pytorch as torch\n"


def test_imports_by_name_are_reported_with_their_line(tmp_path, command):
    script = write(tmp_path / "a.py", b"import importlib\n\nm = importlib.import_module('torch.nn')\nn = __import__('torchvision')\n")
    done = command("migrate", script)
    assert done.returncode == 0 and "1 unchanged" in done.stdout
    assert f"{script}:3: warning: import_module() names torch" in done.stderr
    assert f"{script}:4: warning: __import__() names torchvision" in done.stderr


def test_hidden_folders_caches_environments_and_links_are_skipped(tmp_path, command):
    outside = write(tmp_path / "outside" / "a.py", b"import torch\n")
    root = tmp_path / "project"
    skipped = [root / ".git" / "a.py", root / "__pycache__" / "a.py", root / "env" / "lib" / "a.py"]
    for path in skipped:
        write(path, b"import torch\n")
    write(root / "env" / "pyvenv.cfg", b"")
    (root / "link").symlink_to(outside.parent)
    (root / "link.py").symlink_to(outside)
    os.mkfifo(root / "pipe.py")
    assert command("migrate", root).stdout == "0 files changed, 0 unchanged, 0 refused\n"
    assert all(path.read_bytes() == b"import torch\n" for path in [*skipped, outside])


def test_a_file_is_replaced_atomically_with_its_mode(tmp_path, command):
    script = write(tmp_path / "a.py", b"import torch\n")
    script.chmod(0o750)
    holder = open(script, "rb")  # a reader of the old file keeps the old content: it was replaced, not overwritten
    link = tmp_path / "link"
    link.symlink_to(script)
    assert command("migrate", link).returncode == 0
    assert link.is_symlink() and script.read_bytes() == b"import msadapter.pytorch as torch\n"
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    with holder:
        assert holder.read() == b"import torch\n"
    assert sorted(os.listdir(tmp_path)) == ["a.py", "link"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_protected_file_is_refused(tmp_path, command):
    script = write(tmp_path / "a.py", b"import torch\n")
    script.chmod(0o444)
    done = command("migrate", script)
    assert done.returncode == 1 and "Permission denied" in done.stderr and script.read_bytes() == b"import torch\n"


def test_missing_special_and_huge_files_are_refused(tmp_path, command):
    huge = tmp_path / "huge.py"
    with open(huge, "wb") as file:
        file.truncate(65 << 20)
    os.mkfifo(tmp_path / "pipe")
    done = command("migrate", huge, tmp_path / "pipe", tmp_path / "none.py", "")
    assert done.returncode == 1 and "4 refused" in done.stdout
    for message in ("64 MiB", "pipe: refused: not a regular file", "none.py: refused: No such file", "empty path"):
        assert message in done.stderr


def test_names_cannot_forge_output(tmp_path, command):
    write(tmp_path / "a\n\x1b[31m.py", b"import torch\n")
    done = command("migrate", "-n", cwd=tmp_path)
    assert '--- "a/a\\012\\033[31m.py"\n' in done.stdout and "\x1b" not in done.stdout


def test_usage(command):
    assert "--dry-run" in command("migrate", "--help").stdout
    assert command("--version").stdout.startswith("msadapter ")
    for arguments in (["migrate", "--frob"], ["frob"], ["--frob"], []):
        done = command(*arguments)
        assert done.returncode == 2 and (not arguments or "frob" in done.stderr) and not done.stdout


def test_output_that_cannot_be_written_is_an_error(tmp_path):
    write(tmp_path / "a.py", b"import torch\n")
    with open("/dev/full", "w") as full:
        assert subprocess.run([COMMAND, "migrate", "-n", tmp_path], stdout=full, stderr=subprocess.PIPE).returncode == 1


def test_the_python_front_calls_the_command(tmp_path):
    script = write(tmp_path / "a.py", b"import torch\n")
    done = subprocess.run([sys.executable, "-m", "msadapter", "migrate", script], capture_output=True, text=True)
    assert done.returncode == 0 and "1 file changed" in done.stdout
    assert script.read_bytes() == b"import msadapter.pytorch as torch\n"


def test_replace_import_package_takes_a_project_path(tmp_path):
    tool = os.path.join(PACKAGE, "tools", "replace_import_package.sh")
    script = write(tmp_path / "my project" / "a.py", b"import torchvision\n")
    assert subprocess.run(["bash", tool, script.parent], capture_output=True).returncode == 0
    assert script.read_bytes() == b"import msadapter.torchvision as torchvision\n"
    script.write_bytes(b"import torch\n")
    assert subprocess.run(["bash", tool], cwd=script.parent, capture_output=True).returncode == 0
    assert script.read_bytes() == b"import msadapter.pytorch as torch\n"


def test_the_standard_library_is_read_without_refusal_and_unchanged(command):
    """Refused are only the sources that Python itself cannot read: those its own tests keep as bad examples."""
    done = command("migrate", "--dry-run", sysconfig.get_paths()["stdlib"])
    assert done.stdout.startswith("0 files changed, ")
    for line in done.stderr.splitlines():
        if ": refused: " not in line:
            continue
        with pytest.raises((SyntaxError, UnicodeDecodeError, ValueError)):
            with tokenize.open(line.split(":")[0]) as file:
                ast.parse(file.read())


def test_a_rewritten_program_binds_the_same_names(tmp_path, command):
    source = "import os, torch.nn, torch.optim as o, torch\nif 1: from torch import nn as n, x\n"
    script = write(tmp_path / "a.py", source.encode())
    command("migrate", script)

    def bound(text):
        names = [alias for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names]
        return {alias.asname or alias.name.split(".")[0] for alias in names}

    assert bound(script.read_text()) == bound(source) | {"msadapter"}
