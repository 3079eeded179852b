"""msadapter: PyTorch scripts on a small C engine, and MindSpore's functional style beside it.

`import msadapter.pytorch as torch` and `import msadapter.torchvision as torchvision` stand for the packages of those names. After
`import msadapter`, `import mindspore` works too: the real package where it is installed, the names of
`msadapter.mindspore` otherwise.
"""

from msadapter import _mindspore_finder

__version__ = "0.1.0"

_mindspore_finder.install()
