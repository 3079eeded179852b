"""CONTRIBUTING.md's worked example of an operator does what it says."""
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[3]
TEXT = (TOP / "CONTRIBUTING.md").read_text(encoding="utf-8")
HELPERS = sorted((TOP / "src" / "ops").glob("helpers*.h"))


def block(language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.M | re.S)
    return found


def generate(tmp_path):
    """Runs the generator on the table with the example's row added; returns the folder of its output."""
    (table,) = re.findall(r"here `src/ops/(\w+\.yaml)`", TEXT)
    rows = sorted((TOP / "src" / "ops").glob("*.yaml"))
    changed = tmp_path / table
    changed.write_text((TOP / "src" / "ops" / table).read_text(encoding="utf-8") + "\n" + block("yaml"), encoding="utf-8")
    rows = [changed if row.name == table else row for row in rows]
    done = subprocess.run([sys.executable, TOP / "tools" / "opgen", tmp_path, "--helpers", *HELPERS, "--rows", *rows],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_the_example_row_becomes_entry_points_and_compiles(tmp_path):
    pytest.importorskip("yaml")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    folder = generate(tmp_path)
    header = (folder / "msadapter" / "ops.h").read_text()
    for name in ("msa_softsquare(", "msa_softsquare_(", "msa_softsquare_out("):
        assert name in header
    for source, flags in (("entries.c", []), ("table.c", []), ("pointwise_rows.c", ["-DMSA_ISA=baseline"])):
        done = subprocess.run(["cc", "-std=gnu11", "-fsyntax-only", "-D_GNU_SOURCE", "-fopenmp", f"-I{folder}", f"-I{TOP / 'include'}",
                               f"-I{TOP / 'src'}", *flags, folder / source], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:3000]


def test_the_examples_test_is_right_about_the_formula():
    """The example's own test, with the row's expressions standing in for the operator that isn't built."""
    import msadapter.pytorch as torch

    row = block("yaml")
    forward = re.search(r'f: "(.*?)"', row).group(1).replace("F(fabs)", "torch.abs")
    backward = re.search(r'self: "(.*?)"', row).group(1)

    class Softsquare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, scale):
            ctx.save_for_backward(a)
            ctx.scale = scale
            return eval(forward, {"torch": torch, "a": a, "scale": scale})

        @staticmethod
        def backward(ctx, grad):
            names = {"self": ctx.saved_tensors[0], "grad": grad, "scale": ctx.scale, "abs": torch.abs, "square": torch.square}
            return eval(backward, names), None

    x = torch.linspace(-3, 3, 7, dtype=torch.float64, requires_grad=True)
    y = Softsquare.apply(x, 2)
    assert torch.allclose(y, x * x / (2 + x.abs()))
    y.sum().backward()
    h = 1e-6
    with torch.no_grad():
        numeric = (Softsquare.apply(x + h, 2) - Softsquare.apply(x - h, 2)) / (2 * h)
    assert torch.allclose(x.grad, numeric, atol=1e-6)
