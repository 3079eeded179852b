"""Writes docs/supported.md: the names that the built package has, found by looking at it.

    make supported                                                            # writes docs/supported.md
    PYTHONPATH=build/root/site .venv/bin/python tools/supported.py            # prints it
"""

import importlib
import re
import sys
import textwrap

SECTIONS = (
    ("torch", "msadapter.pytorch"),
    ("torch.nn", "msadapter.pytorch.nn"),
    ("torch.nn.functional", "msadapter.pytorch.nn.functional"),
    ("torch.nn.init", "msadapter.pytorch.nn.init"),
    ("torch.nn.utils", "msadapter.pytorch.nn.utils"),
    ("torch.autograd", "msadapter.pytorch.autograd"),
    ("torch.fft", "msadapter.pytorch.fft"),
    ("torch.linalg", "msadapter.pytorch.linalg"),
    ("torch.special", "msadapter.pytorch.special"),
    ("torch.distributed", "msadapter.pytorch.distributed"),
    ("torch.distributions", "msadapter.pytorch.distributions"),
    ("torch.masked", "msadapter.pytorch.masked"),
    ("torch.optim", "msadapter.pytorch.optim"),
    ("torch.optim.lr_scheduler", "msadapter.pytorch.optim.lr_scheduler"),
    ("torch.optim.swa_utils", "msadapter.pytorch.optim.swa_utils"),
    ("torch.utils.data", "msadapter.pytorch.utils.data"),
    ("torchvision.datasets", "msadapter.torchvision.datasets"),
    ("torchvision.models", "msadapter.torchvision.models"),
    ("torchvision.models.segmentation", "msadapter.torchvision.models.segmentation"),
    ("torchvision.models.video", "msadapter.torchvision.models.video"),
    ("torchvision.transforms", "msadapter.torchvision.transforms"),
    ("mindspore", "msadapter.mindspore"),
    ("mindspore.ops", "msadapter.mindspore.ops"),
)


# Operators that only gradient formulas use.
HELPER = re.compile(r"_(gradient|backward|values|factors)_?$")


def public(names):
    return sorted({name for name in names if not name.startswith("_") and not HELPER.search(name)}, key=lambda name: (name.lower(), name))


def names_of(module):
    """Public names that a module offers: functions, classes and values, without the modules it imports."""
    kind = type(sys)
    return public(name for name in dir(module) if not isinstance(getattr(module, name, None), kind) and is_there(module, name))


def is_there(owner, name):
    """False for functions that only say that they are not implemented."""
    return not hasattr(getattr(owner, name, None), "is_missing")


def sections():
    """(title, names) of everything that is there."""
    torch = importlib.import_module("msadapter.pytorch")
    for title, module in SECTIONS:
        try:
            yield title, names_of(importlib.import_module(module))
        except ModuleNotFoundError as error:
            if not error.name.startswith("msadapter."):
                raise
        if title == "torch":
            yield "torch.Tensor", public(name for name in dir(torch.Tensor) if is_there(torch.Tensor, name))


def main():
    out = ["# Supported names", "",
           "Written by `tools/supported.py` from the built package. A name that is missing here raises AttributeError or NotImplementedError; an",
           "argument that is not implemented raises NotImplementedError naming it.", ""]
    for title, names in sections():
        out += [f"## {title}", "", f"{len(names)} names.", ""]
        out += textwrap.wrap(", ".join(f"`{name}`" for name in names), 130, break_on_hyphens=False) + [""]
    text = "\n".join(out)
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
