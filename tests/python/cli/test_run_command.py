"""`msadapter run`: the program behaves as under plain Python, except that torch and torchvision are msadapter's.

Most tests use small stand-ins for msadapter.pytorch and msadapter.torchvision beside copies of the real front, and a decoy torch on the
path that must never be imported.
"""

import os
import shutil
import signal
import subprocess
import sys
from importlib import util

import msadapter
import pytest

PACKAGE = os.path.dirname(os.path.abspath(msadapter.__file__))
COMMAND = os.path.join(PACKAGE, "bin", "msadapter")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def site(tmp_path):
    """A folder for PYTHONPATH with the stand-ins and the decoy."""
    folder = tmp_path / "site"
    package = folder / "msadapter"
    write(package / "__init__.py", "")
    for name in ("__main__.py", "_run.py"):
        shutil.copy(os.path.join(PACKAGE, name), package / name)
    (package / "bin").mkdir()
    shutil.copy(COMMAND, package / "bin" / "msadapter")
    write(package / "pytorch" / "__init__.py", "from . import nn\nvalue = 7\n")
    write(package / "pytorch" / "nn" / "__init__.py", "class Module: pass\n")
    write(package / "pytorch" / "nn" / "functional.py", "from msadapter.pytorch.nn import Module\ndef relu(x): return max(x, 0)\n")
    write(package / "pytorch" / "utils" / "__init__.py", "")
    write(package / "pytorch" / "utils" / "tool.py", "import sys\nprint(__name__, sys.argv[1:])\n")
    write(package / "torchvision" / "__init__.py", "")
    write(package / "torchvision" / "transforms.py", "import msadapter.pytorch as torch\n")
    write(folder / "torch" / "__init__.py", "raise SystemExit('the decoy torch was imported')\n")
    write(folder / "torch" / "_dynamo.py", "raise SystemExit('the decoy torch was imported')\n")
    return folder


def call(arguments, site, cwd=None, **environment):
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run([str(a) for a in arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def run(arguments, site, **options):
    return call([sys.executable, "-m", "msadapter", "run", *arguments], site, **options)


MAPPING = """
import sys
import torch, torchvision
import torch.nn as nn, torch.nn.functional as F
from torch.nn.functional import relu
import torchvision.transforms as T
from torchvision import transforms
import msadapter.pytorch
assert torch is msadapter.pytorch and torch.value == 7 and torch.__name__ == "msadapter.pytorch"
for name in [name for name in sys.modules if name.partition(".")[0] in ("torch", "torchvision")]:
    real = "msadapter." + ("pytorch" if name.partition(".")[0] == "torch" else "torchvision") + name[len(name.partition(".")[0]):]
    assert sys.modules[name] is sys.modules[real], name
    assert sys.modules[name].__spec__.name == real, name
assert sys.modules["torch.nn"] is sys.modules["msadapter.pytorch.nn"] is nn is torch.nn
assert F is torch.nn.functional and F.Module is nn.Module and T is transforms and T.torch is torch
print("mapped")
"""


@pytest.mark.parametrize("front", ["command", "module"])
def test_torch_is_msadapter_even_where_another_torch_is_installed(tmp_path, site, front):
    script = write(tmp_path / "s.py", MAPPING)
    if front == "module":
        assert run([script], site) == (0, "mapped\n", "")
    else:
        command = [site / "msadapter" / "bin" / "msadapter", "run", script]
        assert call(command, site, MSADAPTER_PYTHON=sys.executable) == (0, "mapped\n", "")


def test_the_command_finds_its_package_and_the_interpreter_beside_it(tmp_path, site):
    script = write(tmp_path / "s.py", "import torch, sys; print(torch.value, sys.argv)")
    command = site / "msadapter" / "bin" / "msadapter"
    shim = write(command.parent / "python3", f'#!/bin/sh\necho beside\nexec "{sys.executable}" "$@"\n')
    shim.chmod(0o755)
    assert call([command, "run", script, "-x"], tmp_path) == (0, f"beside\n7 {[str(script), '-x']}\n", "")
    done = call([command, "run", script], tmp_path, MSADAPTER_PYTHON="/nonexistent/python")
    assert done[0] == 1 and "/nonexistent/python" in done[2] and "MSADAPTER_PYTHON" in done[2]


def test_a_missing_submodule_is_named_and_can_be_probed(tmp_path, site):
    script = write(
        tmp_path / "s.py",
        """
import importlib.util
assert importlib.util.find_spec("torch._dynamo") is None
assert importlib.util.find_spec("torch.nn.functional") is not None
for statement in ("import torch._dynamo", "from torch._dynamo import x", "import torch._dynamo.y"):
    try:
        exec(statement)
    except ModuleNotFoundError as error:
        assert error.name == "torch._dynamo", error.name
        print(error)
try:
    from torch import nothing
except ImportError as error:
    print(type(error).__name__)
""",
    )
    message = "No module named 'torch._dynamo': msadapter has no msadapter.pytorch._dynamo\n"
    assert run([script], site) == (0, message * 3 + "ImportError\n", "")


PROGRAMS = {
    "identity": "import sys, os\nprint(sys.argv, sys.path[0], __name__, __file__, __package__, __spec__, type(__loader__).__name__)\n"
    "print(sorted(globals()), sys.modules['__main__'].__dict__ is globals(), os.getcwd())",
    "traceback": "def f(n):\n    return 1 / n\n\ntry:\n    f(0)\nexcept ZeroDivisionError as e:\n    raise ValueError('bad') from e\n",
    "context": "try:\n    x\nexcept NameError:\n    [][1]\n",
    "exit status": "import sys\nsys.exit(3)\n",
    "exit message": "raise SystemExit('stopped')\n",
    "exit nothing": "raise SystemExit\n",
    "syntax error": "x = 1\nif x\n",
    "interrupted": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n",
    "atexit": "import atexit, sys\natexit.register(print, 'atexit')\nprint('body')\nsys.stderr.write('error\\n')\n1/0\n",
    "own hook": "import sys\nsys.excepthook = lambda t, v, tb: print(t.__name__, v, tb.tb_lineno, tb.tb_next)\n1/0\n",
    "future": "def f(x: nothing): pass\nprint(f.__annotations__) if False else None\n",
    "annotations": "from __future__ import annotations\ndef f(x: nothing): pass\nprint(f.__annotations__)\n",
    "encoding": "# coding: latin-1\nprint(ascii('\u00e9'))\n".encode("latin-1"),
    "stdin": "import sys\nprint(sys.stdin.read())\n",
    "group": "raise ExceptionGroup('g', [ValueError(1)])\n" if sys.version_info >= (3, 11) else "raise OSError\n",
    "thread": "import threading\nt = threading.Thread(target=lambda: print('thread'))\nt.start()\nraise KeyError('k')\n",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n",
}


@pytest.fixture
def interruptible():
    """Background jobs of a shell ignore SIGINT, and so do their children: these here do not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_behaves_as_under_plain_python(tmp_path, site, name):
    source = PROGRAMS[name]
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "s.py").write_bytes(source if isinstance(source, bytes) else source.encode())
    for arguments in (["dir/s.py", "a", "--b", "-m"], [tmp_path / "dir" / "s.py"]):
        plain = call([sys.executable, *arguments], site, cwd=tmp_path)
        assert run(arguments, site, cwd=tmp_path) == plain
        if name == "interrupted":
            assert plain[0] == -signal.SIGINT


def test_a_script_that_is_no_text_is_a_syntax_error(tmp_path, site):
    (tmp_path / "s.py").write_bytes(b"x = '\xff'\n")
    status, out, error = run([tmp_path / "s.py"], site)
    assert status == 1 and not out and "SyntaxError" in error and "Traceback" not in error


def test_a_script_reached_by_a_link_gets_the_real_folder(tmp_path, site):
    write(tmp_path / "real" / "s.py", "import sys, helper\nprint(sys.path[0], sys.argv, __file__)\n")
    write(tmp_path / "real" / "helper.py", "")
    (tmp_path / "s.py").symlink_to(tmp_path / "real" / "s.py")
    plain = call([sys.executable, "s.py"], site, cwd=tmp_path)
    assert plain[0] == 0 and run(["s.py"], site, cwd=tmp_path) == plain


def test_modules_packages_folders_and_archives_run_as_python_runs_them(tmp_path, site):
    body = "import sys\nprint(sys.argv, sys.path[0], __name__, __file__, __package__, __spec__.name)\n"
    write(tmp_path / "mod.py", body)
    write(tmp_path / "pkg" / "__init__.py", "")
    write(tmp_path / "pkg" / "__main__.py", body)
    write(tmp_path / "pkg" / "sub.py", "from . import __name__ as n\nprint(n)\n" + body)
    shutil.make_archive(str(tmp_path / "app"), "zip", tmp_path / "pkg", "__main__.py")
    for arguments in (["-m", "mod", "x"], ["-m", "pkg"], ["-m", "pkg.sub", "-y"], ["pkg", "z"], ["app.zip", "z"]):
        plain = call([sys.executable, *arguments], site, cwd=tmp_path)
        assert plain[0] == 0 and run(arguments, site, cwd=tmp_path) == plain
    for arguments in (["none.py"], ["-m", "none"], ["-m", "pkg.none"], ["site"]):
        plain = call([sys.executable, *arguments], site, cwd=tmp_path)
        assert plain[0] != 0 and run(arguments, site, cwd=tmp_path) == plain


def test_a_module_of_torch_runs_as_msadapters(tmp_path, site):
    assert run(["-m", "torch.utils.tool", "x"], site) == (0, "__main__ ['x']\n", "")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_worker_processes_keep_the_mapping(tmp_path, site, method):
    script = write(
        tmp_path / "s.py",
        f"""
import multiprocessing, sys
import torch.nn

class Net(torch.nn.Module):
    pass

def work(net):
    import torch.nn.functional, msadapter.pytorch
    assert isinstance(net, torch.nn.Module)
    return torch is msadapter.pytorch and torch.nn.functional.relu(-1) == 0 and torch.value

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    with context.Pool(1) as pool:
        print(pool.apply(work, (Net(),)))
    assert "torch" not in [m.__name__ for m in sys.modules.values() if hasattr(m, "__name__")]
""",
    )
    assert run([script], site) == (0, "7\n", "")
    # The package is then found without PYTHONPATH, by the command alone; its workers have to find it as well.
    command = [site / "msadapter" / "bin" / "msadapter", "run", script]
    assert call(command, tmp_path, MSADAPTER_PYTHON=sys.executable) == (0, "7\n", "")


def test_multiprocessing_is_not_imported_for_programs_without_workers(tmp_path, site):
    script = write(tmp_path / "s.py", "import sys\nprint([m for m in sys.modules if m.startswith(('multiprocessing', 'zipfile', 'msadapter.pytorch'))])\n")
    assert run([script], site) == (0, "[]\n", "")


def test_usage(site):
    assert run(["--help"], site)[1].startswith("usage: msadapter run")
    for arguments, said in ([], "usage"), (["-m"], "-m needs"), (["--frob"], "--frob"):
        status, out, error = run(arguments, site)
        assert status == 2 and not out and said in error


@pytest.mark.skipif(not util.find_spec("msadapter.pytorch"), reason="the package is not built")
def test_an_unchanged_script_trains_on_the_real_package(tmp_path):
    script = write(
        tmp_path / "s.py",
        """
import torch
import torch.nn as nn
import torch.nn.functional as F
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(64, 2)
y = x.sum(1, keepdim=True)
losses = []
for step in range(50):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 5, losses
print(torch.__name__)
""",
    )
    assert run([script], os.path.dirname(PACKAGE)) == (0, "msadapter.pytorch\n", "")
