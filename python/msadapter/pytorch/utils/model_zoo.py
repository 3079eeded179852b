"""torch.utils.model_zoo, the old place of what is now torch.hub."""

from msadapter.pytorch.hub import load_state_dict_from_url as load_url  # noqa: F401
