"""The graph's nodes."""

from msadapter._C import Node

__all__ = ["Node"]
