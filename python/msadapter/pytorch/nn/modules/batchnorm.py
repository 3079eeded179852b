"""Batch normalisation (Ioffe and Szegedy 2015), plain, synchronised and lazy."""

from msadapter import pytorch as torch
from msadapter.pytorch.nn import functional as F
from msadapter.pytorch.nn import init
from msadapter.pytorch.nn.modules.lazy import LazyModuleMixin
from msadapter.pytorch.nn.modules.module import Module
from msadapter.pytorch.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "SyncBatchNorm"]

_batch_norm = F.batch_norm


class _NormBase(Module):
    """What batch and instance normalisation share: the affine parameters and the running values."""

    _version = 2

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._make_parameters(device, dtype)

    def _make_parameters(self, device, dtype):
        if self.affine:
            self.weight = Parameter(torch.empty(self.num_features, device=device, dtype=dtype))
            self.bias = Parameter(torch.empty(self.num_features, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)
        if self.track_running_stats:
            self.register_buffer("running_mean", torch.zeros(self.num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", torch.ones(self.num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long, device=device))
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Mean 0, variance 1, no batches seen."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """The running values at their start, weight 1, bias 0."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError(f"{type(self).__name__}: _check_input_dim is not implemented")

    def extra_repr(self):
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"track_running_stats={self.track_running_stats}")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:  # the first version did not count batches
            state_dict.setdefault(prefix + "num_batches_tracked", torch.tensor(0, dtype=torch.long))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)


class _BatchNorm(_NormBase):
    """Batch normalisation of any dimensions."""

    def forward(self, input):
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        training = self.training
        if training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        mean, variance = self.running_mean, self.running_var
        by_batch = training or (mean is None and variance is None)
        if training and not self.track_running_stats:
            mean = variance = None
        return _batch_norm(input, mean, variance, self.weight, self.bias, by_batch, factor, self.eps)


def _check_dims(input, dims):
    if input.dim() not in dims:
        raise ValueError(f"expected {' or '.join(f'{n}D' for n in dims)} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Channels of (N, C) or (N, C, L) made zero mean and unit variance over the batch."""

    def _check_input_dim(self, input):
        _check_dims(input, (2, 3))


class BatchNorm2d(_BatchNorm):
    """Channels of (N, C, H, W) made zero mean and unit variance over the batch."""

    def _check_input_dim(self, input):
        if input.dim() != 4:
            _check_dims(input, (4,))


class BatchNorm3d(_BatchNorm):
    """Channels of (N, C, D, H, W) made zero mean and unit variance over the batch."""

    def _check_input_dim(self, input):
        _check_dims(input, (5,))


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """A normalisation that finds num_features at its first call."""

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None):
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype)

    def _make_parameters(self, device, dtype):
        for name in ("weight", "bias"):
            self.register_parameter(name, UninitializedParameter(device=device, dtype=dtype) if self.affine else None)
        for name in ("running_mean", "running_var"):
            self.register_buffer(name, UninitializedBuffer(device=device, dtype=dtype) if self.track_running_stats else None)
        self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long, device=device) if self.track_running_stats else None)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for value in (self.weight, self.bias, self.running_mean, self.running_var):
                if value is not None:
                    value.materialize((self.num_features,))
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """A BatchNorm1d that finds num_features at its first call."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """A BatchNorm2d that finds num_features at its first call."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """A BatchNorm3d that finds num_features at its first call."""

    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all processes; with one process (the only case so far) that of (N, C, *).

    Raises NotImplementedError for a process_group.
    """

    def __init__(self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None, device=None, dtype=None):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)
        if process_group is not None:
            raise NotImplementedError("SyncBatchNorm: argument 'process_group' is not implemented")
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """`module` with all its batch normalisations replaced by synchronised ones that share their tensors."""
        result = module
        if isinstance(module, _BatchNorm):
            result = SyncBatchNorm(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group)
            if module.affine:
                result.weight, result.bias = module.weight, module.bias
            result.running_mean, result.running_var = module.running_mean, module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
