"""Batch normalisation folded into the convolution or linear map before it, for evaluation."""

from msadapter import pytorch as torch

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _copied(module, bn):
    """A copy of module, which is to take bn in. Raises AssertionError unless both are in evaluation mode."""
    import copy

    if module.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    return copy.deepcopy(module)


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of conv that computes bn(conv(x)); both in evaluation mode."""
    fused = _copied(conv, bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
                                                    transpose)
    return fused


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """The weight and bias of the fused convolution."""
    conv_b = torch.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = torch.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = torch.zeros_like(bn_rm) if bn_b is None else bn_b
    scale = bn_w * torch.rsqrt(bn_rv + bn_eps)
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    parameter = torch.nn.Parameter
    return (parameter((conv_w * scale.reshape(shape)).detach(), conv_w.requires_grad),
            parameter(((conv_b - bn_rm) * scale + bn_b).detach(), conv_b.requires_grad))


def fuse_linear_bn_eval(linear, bn):
    """A copy of linear that computes bn(linear(x)); both in evaluation mode."""
    fused = _copied(linear, bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return fused


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """The weight and bias of the fused linear map."""
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
