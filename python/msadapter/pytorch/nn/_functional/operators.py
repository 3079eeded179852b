"""Finds the extension's operators by name for nn.functional."""

from msadapter import _C


def find(name):
    """The operator `name`: the extension's, else the composed one; where there is none, a function that raises NotImplementedError."""
    found = getattr(_C._nn, name, None) or getattr(_C._ops, name, None)
    if found is None:
        from msadapter.pytorch.nn._functional import composed, composed_sequence, composed_vision

        found = getattr(composed, name, None) or getattr(composed_vision, name, None) or getattr(composed_sequence, name, None)
    if found is None:
        def found(*args, **kwargs):
            raise NotImplementedError(f"{name}: this operator is not implemented")

        found.__name__ = found.__qualname__ = name
        found.is_missing = True
    return found


# Functions of torch itself that belong to nn.
_TORCH_NAMES = """adaptive_avg_pool1d adaptive_max_pool1d affine_grid_generator avg_pool1d bilinear binary_cross_entropy_with_logits
channel_shuffle constant_pad_nd conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d cosine_embedding_loss
cosine_similarity ctc_loss embedding embedding_bag embedding_renorm_ grid_sampler hinge_embedding_loss kl_div log_softmax
margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool2d max_pool3d native_channel_shuffle pairwise_distance pdist
pixel_shuffle pixel_unshuffle poisson_nll_loss rrelu rrelu_ softmax triplet_margin_loss""".split()


def add_to_torch(namespace):
    """Give the torch namespace what it has beside nn.functional: the operators that are there, under ATen's arguments."""
    for name in _TORCH_NAMES:
        if name not in namespace:
            operator = find(name)
            if not hasattr(operator, "is_missing"):
                namespace[name] = operator


_CODES = {"none": 0, "mean": 1, "sum": 2}


def reduction_code(reduction, size_average=None, reduce=None):
    """ATen's number for a loss's reduction; the two old arguments decide where one of them is given."""
    if size_average is not None or reduce is not None:
        reduction = old_reduction(size_average, reduce)
    code = _CODES.get(reduction)
    if code is None:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return code


def old_reduction(size_average, reduce, emit_warning=True):
    """The reduction that the old arguments size_average and reduce stand for."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = ("mean" if size_average else "sum") if reduce else "none"
    if emit_warning:
        import warnings

        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    return reduction


def reduced(values, code):
    """The mean (1) or sum (2) of values, or the values themselves (0)."""
    return values.mean() if code == 1 else values.sum() if code == 2 else values
