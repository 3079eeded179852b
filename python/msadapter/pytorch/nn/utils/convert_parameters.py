"""Parameters as one vector, and back."""

from msadapter import pytorch as torch

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters):
    """All elements of all parameters, one after the other."""
    return torch.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec, parameters):
    """Make the parameters views of consecutive parts of vec. Raises TypeError when vec is no tensor."""
    if not isinstance(vec, torch.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec)}")
    begin = 0
    for parameter in parameters:
        end = begin + parameter.numel()
        parameter.data = vec[begin:end].view_as(parameter).data
        begin = end
