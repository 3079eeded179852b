"""Memory layouts of convolution weights."""

from msadapter import pytorch as torch

__all__ = ["convert_conv2d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module, memory_format):
    """Lay out the weights of all 2-D convolutions in a module in this way, in place."""
    if isinstance(module, (torch.nn.Conv2d, torch.nn.ConvTranspose2d)):
        module.weight.data = module.weight.detach().clone().contiguous(memory_format=memory_format)
    for child in module.children():
        convert_conv2d_weight_memory_format(child, memory_format)
    return module
