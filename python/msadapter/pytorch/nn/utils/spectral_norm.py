"""Spectral normalisation (Miyato et al. 2018): weight over its largest singular value, by power iteration."""

from msadapter import pytorch as torch
from msadapter.pytorch.nn.functional import normalize
from msadapter.pytorch.nn.parameter import Parameter, UninitializedParameter

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]

_TRANSPOSED = ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")


class SpectralNorm:
    """The hook that computes the weight before every forward. Version 1 of its state_dict is name_orig and name_u, name_v."""

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight):
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module, do_power_iteration):
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with torch.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(torch.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(normalize(torch.mv(matrix, v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()  # backward needs them as they are now
        return weight / torch.dot(u, torch.mv(matrix, v))

    def remove(self, module):
        with torch.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _solve_v_and_rescale(self, matrix, u, target_sigma):
        """v that matches u in the old format, which did not save it, and with which u^T W v is target_sigma."""
        v = torch.linalg.multi_dot([matrix.t().mm(matrix).pinverse(), matrix.t(), u.unsqueeze(1)]).squeeze(1)
        return v.mul_(target_sigma / torch.dot(u, torch.mv(matrix, v)))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if isinstance(weight, UninitializedParameter):
            raise ValueError("The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward before "
                             "applying spectral normalization")
        with torch.no_grad():
            matrix = hook.reshape_weight_to_matrix(weight)
            rows, columns = matrix.size()
            u = normalize(weight.new_empty(rows).normal_(0, 1), dim=0, eps=eps)
            v = normalize(weight.new_empty(columns).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)  # not a buffer: it would be saved
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Brings a state_dict of the first format (no name_v, but the normalised weight) to the present one."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        name = self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(name + ".version", None)
        if version is not None and version >= 1:
            return
        key = prefix + name
        if version is None and all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v")) and key not in state_dict:
            return
        complete = True
        for suffix in ("_orig", "", "_u"):
            if key + suffix not in state_dict:
                complete = False
                if strict:
                    missing_keys.append(key + suffix)
        if not complete:
            return
        with torch.no_grad():
            original, weight, u = state_dict[key + "_orig"], state_dict.pop(key), state_dict[key + "_u"]
            sigma = (original / weight).mean()
            state_dict[key + "_v"] = self.fn._solve_v_and_rescale(self.fn.reshape_weight_to_matrix(original), u, sigma)


class SpectralNormStateDictHook:
    """Notes the format's version in a state_dict."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata):
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a parameter by its largest singular value, seen as a matrix with the rows of `dim` (1 for transposed convolutions, else 0)."""
    if dim is None:
        from msadapter.pytorch.nn.modules import conv

        dim = 1 if isinstance(module, tuple(getattr(conv, kind) for kind in _TRANSPOSED)) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Undo spectral_norm. Raises ValueError when it is not there."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for hooks, kind in ((module._state_dict_hooks, SpectralNormStateDictHook),
                        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook)):
        for key, hook in hooks.items():
            if isinstance(hook, kind) and hook.fn.name == name:
                del hooks[key]
                break
    return module
