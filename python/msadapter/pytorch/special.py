"""torch.special: what the operator table puts there."""

from msadapter import _C

globals().update({name: value for name, value in vars(getattr(_C, "_special", _C._ops)).items() if not name.startswith("_")})
