"""What is not there: functions and methods that say so when they are called."""

FUNCTIONS = {
    "sparse tensors of other layouts than COO and CSR": "sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_csc_tensor",
    "quantized tensors": "dequantize quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm quantized_max_pool1d "
                         "quantized_max_pool2d",
}
METHODS = {
    "sparse tensors of other layouts than COO and CSR": "to_sparse_bsc to_sparse_bsr to_sparse_csc",
    "named dimensions": "align_as align_to refine_names rename rename_",
    "quantized tensors": "dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme",
    "complex numbers of half precision": "chalf",
    "MKL-DNN tensors": "to_mkldnn",
    "nested tensors": "to_padded_tensor",
}


def _absent(prefix, name, what):
    def function(*args, **kwargs):
        raise NotImplementedError(f"{prefix}{name}(): {what} are not implemented")

    function.__name__ = name
    function.__qualname__ = f"{prefix}{name}"
    function.__doc__ = f"Raises NotImplementedError: {what} are not implemented."
    function.is_missing = True
    return function


def each(table, prefix):
    """(name, function) for all names of a table."""
    for what, names in table.items():
        for name in names.split():
            yield name, _absent(prefix, name, what)
