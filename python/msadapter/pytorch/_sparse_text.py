"""How sparse tensors are printed."""

from msadapter import pytorch as torch

WIDTH = 80


def _part(name, tensor):
    prefix = f"{name}=tensor("
    body = repr(tensor)[len("tensor("):]
    start = "" if not tensor.numel() else " " * len(name + "=")
    if tensor.numel() == 0 and tensor.dim() == 1 and "size=" not in body:
        body = body.replace("[]", "[], size=(0,)", 1)
    kept = ("dtype=torch.int64", f"dtype={tensor.dtype}")
    for note in kept:
        body = body.replace(f", {note}", "")
    return prefix + body.replace("\n", "\n" + start)


def text(tensor, grad_fn):
    """repr() of a sparse tensor; grad_fn is the name of its node or None."""
    plain = tensor.detach()
    indent = "tensor("
    if tensor.is_sparse:
        parts = [_part("indices", plain._indices()), _part("values", plain._values())]
    else:
        parts = [_part("crow_indices", plain.crow_indices()), _part("col_indices", plain.col_indices()), _part("values", plain.values())]
    parts = [part.replace("\n", "\n" + " " * len(indent)) for part in parts]
    notes = [f"size={tuple(tensor.shape)}", f"nnz={tensor._nnz()}"]
    if tensor.dtype not in (torch.get_default_dtype(), torch.int64, torch.bool, torch.complex64) or (tensor._nnz() == 0 and tensor.dtype != torch.get_default_dtype()):
        notes.append(f"dtype={tensor.dtype}")
    notes.append(f"layout={tensor.layout}")
    if grad_fn:
        notes.append(f"grad_fn=<{grad_fn}>")
    elif tensor.requires_grad:
        notes.append("requires_grad=True")
    if tensor.is_sparse:  # the sizes start a line of their own
        out, line = indent + ",\n       ".join(parts), WIDTH
    else:
        out = indent + ",\n       ".join(parts)
        line = len(out) - out.rfind("\n") + 1
    for note in notes:
        if line + len(note) + 2 > WIDTH:
            out, line = f"{out},\n       {note}", len(note) + 7
        else:
            out, line = f"{out}, {note}", line + len(note) + 2
    return out + ")"


__all__ = ["text"]
