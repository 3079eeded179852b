"""DistributedDataParallel: the same module in several processes, whose gradients are averaged while backward runs."""

from contextlib import contextmanager

from msadapter import pytorch as torch
from msadapter.pytorch.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]

_FIRST_BUCKET = 1 << 20  # bytes: small, so that averaging begins early


class _Bucket:
    """Parameters whose gradients travel together, in the order in which backward makes them."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.reset()

    def reset(self):
        self.missing, self.future, self.work, self.flat = len(self.parameters), None, None, None


def _make_buckets(parameters, bytes_each):
    """Buckets of one dtype each, at most so large (one parameter at least), in the order in which they are complete."""
    done, open_ones = [], {}
    for parameter in reversed(parameters):
        filling = open_ones.setdefault(parameter.dtype, [])
        filling.append(parameter)
        limit = min(_FIRST_BUCKET, bytes_each) if not done else bytes_each
        if sum(p.numel() * p.element_size() for p in filling) >= limit:
            done.append(_Bucket(open_ones.pop(parameter.dtype)))
    return done + [_Bucket(filling) for filling in open_ones.values()]


def _tensors_in(value):
    """All tensors in tuples, lists, dictionaries and the attributes of data classes."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors_in(getattr(value, name))


class DistributedDataParallel(Module):
    """Calls `module`; after backward the gradients of its parameters are the mean over all processes of the group.

    All processes start from the parameters and buffers of rank 0, and take over its buffers before each forward (broadcast_buffers).
    Gradients travel in buckets of bucket_cap_mb megabytes, each as soon as it is complete. Parameters that a step does not use have to
    be looked for (find_unused_parameters); else backward of the next step raises RuntimeError. With gradient_as_bucket_view gradients
    are views of the buckets. A static_graph is looked through anew at each step.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, process_group=None, bucket_cap_mb=25,
                 find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False, static_graph=False):
        super().__init__()
        from msadapter.pytorch import distributed

        self._dist = distributed
        parameters = [p for p in module.parameters() if p.requires_grad]
        if not parameters:
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient.")
        if device_ids or output_device is not None:
            raise ValueError("DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or "
                             f"CPU modules, but got device_ids {device_ids}, output_device {output_device}, and module parameters "
                             f"{ {p.device for p in parameters} }.")
        if any(torch.nn.parameter.is_lazy(p) for p in parameters):
            raise RuntimeError("Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy forward pass to "
                               "correctly initialize the modules")
        if check_reduction:
            raise NotImplementedError("DistributedDataParallel: argument 'check_reduction' is not implemented")
        self.process_group = distributed.distributed_c10d._get_default_group() if process_group is None else process_group
        self.device_ids, self.output_device, self.dim, self.module = None, None, dim, module
        self.device = parameters[0].device
        self.broadcast_buffers, self.gradient_as_bucket_view = broadcast_buffers, gradient_as_bucket_view
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._names = {p: name for name, p in module.named_parameters()}
        parameters = [p for p in parameters if self._names[p] not in self.parameters_to_ignore]
        self._buffers_to_sync = [(name, b) for name, b in module.named_buffers() if name not in self.parameters_to_ignore]
        self._reduced = parameters
        self._verify()
        self._broadcast([value.detach() for name, value in module.state_dict(keep_vars=True).items()
                         if isinstance(value, torch.Tensor) and name not in self.parameters_to_ignore])
        self.bucket_bytes_cap = int(bucket_cap_mb * 1024 * 1024)
        self._buckets = _make_buckets(parameters, self.bucket_bytes_cap)
        self._hook = self._hook_state = None
        self._steps = 0
        self._connect()

    def _connect(self):
        """A hook behind every parameter's accumulation of its gradient."""
        self._bucket_of = {p: bucket for bucket in self._buckets for p in bucket.parameters}
        self._expecting, self._used, self._ready = False, set(), set()
        self._accumulators = []
        with torch.enable_grad():
            for parameter in self._reduced:
                node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                node.register_hook(lambda *_, parameter=parameter: self._arrived(parameter))
                self._accumulators.append(node)

    def __getstate__(self):
        state = dict(self.__dict__)
        for name in ("process_group", "_accumulators", "_bucket_of", "_buckets", "_dist", "_used", "_ready", "_names"):
            state.pop(name, None)
        return state

    def __setstate__(self, state):
        from msadapter.pytorch import distributed

        super().__setstate__(state)
        self._dist = distributed
        self.process_group = distributed.distributed_c10d._get_default_group()
        self._names = {p: name for name, p in self.module.named_parameters()}
        self._buckets = _make_buckets(self._reduced, self.bucket_bytes_cap)
        self._connect()

    def _verify(self):
        """The parameters have the same number and shapes in all processes."""
        own = [(tuple(p.shape), str(p.dtype)) for p in self._reduced]
        everybody = [None] * self.process_group.size()
        self._dist.all_gather_object(everybody, own, self.process_group)
        rank = self.process_group.rank()
        for other, theirs in enumerate(everybody):
            if len(theirs) != len(everybody[0]):
                raise RuntimeError(f"DDP expects same model across all ranks, but Rank {rank} has {len(own)} params, while rank {other} has inconsistent "
                                   f"{len(theirs)} params.")
            for i, (mine, yours) in enumerate(zip(everybody[0], theirs)):
                if mine != yours:
                    raise RuntimeError(f"[{rank}]: params[{i}] in this process with sizes {list(own[i][0])} appears not to match sizes of the same param in "
                                       f"process {other if rank == 0 else 0}.")

    def _broadcast(self, tensors):
        works = [self.process_group.broadcast([tensor], 0) for tensor in tensors]
        for work in works:
            work.wait()

    @contextmanager
    def no_sync(self):
        """Within it, forward and backward average nothing: gradients add up in each process."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """Not there: raises NotImplementedError."""
        raise NotImplementedError("DistributedDataParallel.join() is not implemented: give all processes the same number of batches")

    def register_comm_hook(self, state, hook):
        """Average by hook(state, GradBucket), which returns a future of the tensor that takes the bucket's place. Once only."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._hook_state, self._hook = state, hook

    def _register_builtin_comm_hook(self, comm_hook_type):
        if comm_hook_type is self._dist.BuiltinCommHookType.FP16_COMPRESS:
            self.register_comm_hook(None, self._as_half)
        elif comm_hook_type is not self._dist.BuiltinCommHookType.ALLREDUCE:
            raise TypeError(f"a BuiltinCommHookType is needed, not {comm_hook_type!r}")

    def _as_half(self, state, bucket):
        half = bucket.buffer().half().div_(self.process_group.size())
        dtype = bucket.buffer().dtype
        return self.process_group.allreduce([half]).get_future().then(lambda future: future.value()[0].to(dtype))

    def forward(self, *inputs, **kwargs):
        """module(*inputs, **kwargs)"""
        if self.require_forward_param_sync and self.broadcast_buffers and self._buffers_to_sync:
            self._broadcast([buffer.detach() for _, buffer in self._current_buffers()])
        recording = torch.is_grad_enabled()
        if recording and self.require_backward_grad_sync:
            self._check_finished()
        output = self.module(*inputs, **kwargs)
        if recording:
            self.require_forward_param_sync = self.require_backward_grad_sync
            if self.require_backward_grad_sync:
                self._prepare(output)
        return output

    def _current_buffers(self):
        return [(name, b) for name, b in self.module.named_buffers() if name not in self.parameters_to_ignore]

    def _check_finished(self):
        if self._expecting and self._ready and len(self._ready) < len(self._reduced):
            missing = [self._names[p] for p in self._reduced if p not in self._ready]
            indices = [i for i, p in enumerate(self._reduced) if p not in self._ready]
            raise RuntimeError("Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your "
                               "module has parameters that were not used in producing loss. You can enable unused parameter detection by passing the "
                               "keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all "
                               f"`forward` function outputs participate in calculating loss. \nParameters without gradients: {', '.join(missing)}\n"
                               f"Parameter indices which did not receive grad for rank {self.process_group.rank()}: {' '.join(map(str, indices))}")

    def _prepare(self, output):
        for bucket in self._buckets:
            bucket.reset()
        self._expecting, self._next, self._ready, self._used = True, 0, set(), set(self._reduced)
        if self.find_unused_parameters or self.static_graph:
            self._used = self._reached_from(output)
            for parameter in self._reduced:
                if parameter not in self._used:
                    self._mark_ready(parameter)

    def _reached_from(self, output):
        """The parameters that the output depends on."""
        waiting = [t.grad_fn for t in _tensors_in(output) if t.grad_fn is not None]
        seen, reached = set(waiting), {t for t in _tensors_in(output) if t.is_leaf}
        while waiting:
            node = waiting.pop()
            variable = getattr(node, "variable", None)
            if variable is not None:
                reached.add(variable)
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    waiting.append(following)
        return {p for p in self._reduced if p in reached}

    def _arrived(self, parameter):
        """A gradient has been accumulated."""
        if not self._expecting or not self.require_backward_grad_sync:
            return
        if parameter in self._ready:
            if parameter in self._used:
                raise RuntimeError(f"Expected to mark a variable ready only once: the parameter {self._names[parameter]} got its gradient twice in one step")
            raise RuntimeError(f"the parameter {self._names[parameter]} got a gradient, but no output of forward depends on it")
        self._mark_ready(parameter)

    def _mark_ready(self, parameter):
        self._ready.add(parameter)
        bucket = self._bucket_of[parameter]
        bucket.missing -= 1
        while self._next < len(self._buckets) and self._buckets[self._next].missing == 0:  # in one order in all processes
            self._launch(self._next)
            self._next += 1
        if self._next == len(self._buckets):
            self._finish()

    def _launch(self, index):
        bucket = self._buckets[index]
        bucket.flat = torch.cat([(torch.zeros_like(p) if p.grad is None or p not in self._used else p.grad).detach().reshape(-1)
                                 for p in bucket.parameters])
        if self._hook is not None:
            handed = self._dist.GradBucket(index, bucket.flat, bucket.parameters, index == len(self._buckets) - 1)
            bucket.future = self._hook(self._hook_state, handed)
            return
        bucket.flat.div_(self.process_group.size())
        bucket.work = self.process_group.allreduce([bucket.flat])

    def _finish(self):
        """All gradients are under way: wait for the means, and put them where gradients are."""
        self._expecting = False
        self._steps += 1
        used = None
        if self.find_unused_parameters or self.static_graph:
            used = torch.tensor([int(p in self._used) for p in self._reduced])
            self.process_group.allreduce([used]).wait()
            used = {p for p, count in zip(self._reduced, used.tolist()) if count}
        with torch.no_grad():
            for bucket in self._buckets:
                self._take(bucket, used)
                bucket.flat = bucket.work = bucket.future = None

    def _take(self, bucket, used):
        if bucket.work is not None:
            bucket.work.wait()
            result = bucket.flat
        else:
            result = bucket.future.wait()
            result = result[0] if isinstance(result, (list, tuple)) else result
        for parameter, part in zip(bucket.parameters, result.split([p.numel() for p in bucket.parameters])):
            if used is not None and parameter not in used:
                continue  # nobody's: it stays as it was
            mean = part.view(parameter.shape)
            if parameter.grad is None or self.gradient_as_bucket_view:
                parameter.grad = mean if self.gradient_as_bucket_view else mean.clone()
            else:
                parameter.grad.copy_(mean)

    def train(self, mode=True):
        """Module.train()."""
        super().train(mode)
        return self

    def _get_ddp_logging_data(self):
        raise NotImplementedError("DistributedDataParallel._get_ddp_logging_data() is not implemented")

    def _set_static_graph(self):
        self.static_graph = True
