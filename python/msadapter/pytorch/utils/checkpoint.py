"""Parts of a network that keep no intermediate results, but compute them again in backward (Chen et al. 2016)."""

import contextlib
import warnings
import weakref

import msadapter.pytorch as torch
from msadapter import _C
from msadapter.pytorch import amp
from msadapter.pytorch.autograd.graph import saved_tensors_hooks

__all__ = ["checkpoint", "checkpoint_sequential"]


def _autocast_now():
    """A function that makes the contexts of mixed precision as they are now."""
    gpu = (torch.is_autocast_enabled(), torch.get_autocast_gpu_dtype())
    cpu = (torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype())
    cached = torch.is_autocast_cache_enabled()

    @contextlib.contextmanager
    def again():
        with amp.autocast("cuda", enabled=gpu[0], dtype=gpu[1], cache_enabled=cached), \
                amp.autocast("cpu", enabled=cpu[0], dtype=cpu[1], cache_enabled=cached):
            yield

    return again


@contextlib.contextmanager
def _random_state(state):
    """The random state of forward while something is computed again."""
    if state is None:
        yield
        return
    with torch.random.fork_rng():
        torch.set_rng_state(state)
        yield


class CheckpointFunction(torch.autograd.Function):
    """Runs a function without recording, and again with recording in backward."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        ctx.run_function = run_function
        ctx.autocast = _autocast_now()
        ctx.random = torch.get_rng_state() if preserve_rng_state else None
        ctx.places = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
        ctx.others = [None if i in ctx.places else arg for i, arg in enumerate(args)]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        if not any(args[i].requires_grad for i in ctx.places):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None")
        with torch.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not _C._is_checkpoint_valid():
            raise RuntimeError("Checkpointing is not compatible with .grad() or when an `inputs` parameter is passed to .backward(). "
                               "Please use .backward() and do not pass its `inputs` argument.")
        inputs = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors):
            inputs[place] = tensor.detach().requires_grad_(tensor.requires_grad)
        with _random_state(ctx.random), torch.enable_grad(), ctx.autocast():
            outputs = ctx.run_function(*inputs)
        outputs = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        wanted = [(out, grad) for out, grad in zip(outputs, grads) if isinstance(out, torch.Tensor) and out.requires_grad]
        if not wanted:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        torch.autograd.backward([out for out, _ in wanted], [grad for _, grad in wanted])
        return (None, None) + tuple(arg.grad if isinstance(arg, torch.Tensor) else None for arg in inputs)


class _Place:
    """Stands for a saved tensor of a checkpointed part until it is computed again."""


def _without_reentry(function, preserve_rng_state, args, kwargs):
    """Records as usual, but with places for saved tensors, which the first one to be used fills by computing all again."""
    again = _autocast_now()
    state = torch.get_rng_state() if preserve_rng_state else None
    places, found = [], weakref.WeakKeyDictionary()

    def pack(tensor):
        place = _Place()
        places.append(weakref.ref(place))
        return place

    def recompute():
        count = 0

        def keep(tensor):
            nonlocal count
            if count < len(places) and places[count]() is not None:
                found[places[count]()] = tensor.detach()
            count += 1

        def never(value):
            raise RuntimeError("checkpoint: backward was called inside of the part that is computed again, which is not supported")

        with _random_state(state), torch.enable_grad(), again(), saved_tensors_hooks(keep, never):
            function(*args, **kwargs)
        if count != len(places):
            raise RuntimeError(f"checkpoint: {len(places)} tensors were saved in forward, {count} when it was computed again: "
                               "the function has to do the same both times")

    def unpack(place):
        if place not in found:
            recompute()
        if place not in found:
            raise RuntimeError("checkpoint: a saved tensor was not computed again: the function has to do the same both times")
        return found.pop(place)

    with saved_tensors_hooks(pack, unpack):
        return function(*args, **kwargs)


def checkpoint(function, *args, use_reentrant=True, **kwargs):
    """function(*args), whose intermediate results are not kept but computed again in backward.

    use_reentrant=True runs another backward inside of backward: gradients flow only where an argument requires one, and torch.autograd.grad()
    does not work through it. use_reentrant=False has neither limit and takes keyword arguments for the function. preserve_rng_state=False leaves
    the random numbers of the second run to chance. Raises ValueError for keyword arguments with use_reentrant=True.
    """
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if not use_reentrant:
        return _without_reentry(function, preserve_rng_state, args, kwargs)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def checkpoint_sequential(functions, segments, input, **kwargs):
    """input through the functions (a list, or the children of a Sequential), in `segments` parts of which all but the last are checkpointed."""
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if isinstance(functions, torch.nn.Sequential) else list(functions)

    def run(start, end):
        def forward(x):
            for function in functions[start:end]:
                x = function(x)
            return x

        return forward

    size = len(functions) // segments
    for start in range(0, size * (segments - 1), size):
        input = checkpoint(run(start, start + size), input, preserve_rng_state=preserve_rng_state)
    return run(size * (segments - 1), len(functions))(input)
