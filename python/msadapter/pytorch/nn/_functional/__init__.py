"""The functions of nn.functional by family; nn/functional.py gathers them."""
