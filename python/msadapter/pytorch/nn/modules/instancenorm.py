"""Instance normalisation (Ulyanov et al. 2016), plain and lazy."""

from msadapter.pytorch.nn import functional as F
from msadapter.pytorch.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d"]


class _InstanceNorm(_NormBase):
    """Instance normalisation of any dimensions; a sample without a batch works too."""

    _spatial = 0

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=False, track_running_stats=False, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    def _check_input_dim(self, input):
        n = self._spatial
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")

    def _get_no_batch_dim(self):
        return self._spatial + 1

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            stale = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if stale:  # before 0.4 they were saved, and used, by mistake
                names = " and ".join(f'"{key}"' for key in stale)
                error_msgs.append(f"Unexpected running stats buffer(s) {names} for {type(self).__name__} with track_running_stats=False. If state_dict "
                                  "is a checkpoint saved before 0.4.0, this may be expected because {} does not track running stats by default "
                                  "since 0.4.0. Please remove these keys from state_dict. If the running stats are actually needed, instead set "
                                  "track_running_stats=True in {} to enable them. See the documentation of {} for details.".format(
                                      *[type(self).__name__] * 3))
                for key in stale:
                    state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def forward(self, input):
        self._check_input_dim(input)
        single = input.dim() == self._get_no_batch_dim()
        result = F.instance_norm(input.unsqueeze(0) if single else input, self.running_mean, self.running_var, self.weight, self.bias,
                                 self.training or not self.track_running_stats, self.momentum if self.momentum is not None else 0.0, self.eps)
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    """Channels of each sample of (N, C, L) or (C, L) made zero mean and unit variance."""

    _spatial = 1


class InstanceNorm2d(_InstanceNorm):
    """Channels of each sample of (N, C, H, W) or (C, H, W) made zero mean and unit variance."""

    _spatial = 2


class InstanceNorm3d(_InstanceNorm):
    """Channels of each sample of (N, C, D, H, W) or (C, D, H, W) made zero mean and unit variance."""

    _spatial = 3


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """An InstanceNorm1d that finds num_features at its first call."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """An InstanceNorm2d that finds num_features at its first call."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """An InstanceNorm3d that finds num_features at its first call."""

    cls_to_become = InstanceNorm3d
