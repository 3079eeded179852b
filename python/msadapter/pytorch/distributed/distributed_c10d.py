"""The functions of torch.distributed: process groups, collectives, messages."""

import os
import pickle
import time
import warnings
from datetime import timedelta
from enum import Enum

from msadapter import pytorch as torch
from msadapter.pytorch.distributed.constants import default_pg_timeout
from msadapter.pytorch.distributed.process_group import ProcessGroup, ProcessGroupGloo, ReduceOp, Work
from msadapter.pytorch.distributed.rendezvous import rendezvous
from msadapter.pytorch.distributed.store import PrefixStore

__all__ = [
    "Backend", "DebugLevel", "GroupMember", "P2POp", "all_gather", "all_gather_coalesced", "all_gather_multigpu", "all_gather_object", "all_reduce",
    "all_reduce_coalesced", "all_reduce_multigpu", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_multigpu",
    "broadcast_object_list", "destroy_process_group", "gather", "gather_object", "get_backend", "get_debug_level", "get_rank", "get_world_size", "group",
    "init_process_group", "irecv", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "isend",
    "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration", "recv", "reduce", "reduce_multigpu", "reduce_scatter",
    "reduce_scatter_multigpu", "scatter", "scatter_object_list", "send", "set_debug_level", "set_debug_level_from_env", "supports_complex",
]


class DebugLevel(Enum):
    """How much TORCH_DISTRIBUTED_DEBUG asks for."""

    OFF, INFO, DETAIL = range(3)


_debug_level = DebugLevel.OFF


def get_debug_level():
    """The DebugLevel."""
    return _debug_level


def set_debug_level(arg0, /):
    """Set the DebugLevel. It is kept for those who ask; sizes of messages are compared at every level."""
    global _debug_level
    if not isinstance(arg0, DebugLevel):
        raise TypeError(f"set_debug_level() expects a DebugLevel, not {type(arg0).__name__}")
    _debug_level = arg0


def set_debug_level_from_env():
    """Set the DebugLevel to what TORCH_DISTRIBUTED_DEBUG says. RuntimeError for no level's name."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG") or "OFF"
    if name.upper() not in DebugLevel.__members__:
        raise RuntimeError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    set_debug_level(DebugLevel[name.upper()])


class Backend:
    """Backend("GLOO") is "gloo": the checked, small name of a backend. ValueError for what is none."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, TCP = "undefined", "gloo", "nccl", "ucc", "mpi", "tcp"
    _plugins = {}

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend name must be a string, but got: {name}")
        value = getattr(Backend, name.upper(), Backend.UNDEFINED)
        if value == Backend.TCP:
            raise ValueError("TCP backend has been deprecated. Please use Gloo or MPI backend for collective operations on CPU tensors.")
        if value == Backend.UNDEFINED or not isinstance(value, str):
            raise ValueError(f"Invalid backend: '{name}'")
        return value.lower()

    @classmethod
    def register_backend(cls, name, func):
        """Make func(store, rank, size, timeout) the maker of process groups of this backend. AssertionError for a name that is taken."""
        assert not hasattr(Backend, name.upper()), f"{name.upper()} c10d backend already exist"
        setattr(Backend, name.upper(), name.upper())
        Backend._plugins[name.lower()] = func


class group:
    """The group of all processes, None before init_process_group()."""

    WORLD = None


class GroupMember:
    """The same; and what new_group() returns in processes that are not in the group."""

    WORLD = None
    NON_GROUP_MEMBER = object()


_groups = {}  # ProcessGroup -> (backend, ranks in the order of the group, store)
_made = 0     # groups so far, the same in all processes


def is_mpi_available():
    """False: "mpi" is not there."""
    return False


def is_nccl_available():
    """False: there are no devices for it."""
    return False


def is_gloo_available():
    """True: TCP between CPUs."""
    return True


def is_initialized():
    """Whether init_process_group() has been called."""
    return GroupMember.WORLD is not None


def is_torchelastic_launched():
    """Whether torchelastic has started this process."""
    return os.getenv("TORCHELASTIC_RUN_ID") is not None


def _get_default_group():
    if not is_initialized():
        raise RuntimeError("Default process group has not been initialized, please make sure to call init_process_group.")
    return GroupMember.WORLD


def _get_default_store():
    return _groups[_get_default_group()][2]


def _outside(group, what=None):
    """Whether this process is not in the group; what it does not take part in is warned of."""
    if group is not GroupMember.NON_GROUP_MEMBER:
        return False
    if what:
        rank = -1 if GroupMember.WORLD is None else GroupMember.WORLD.rank()
        warnings.warn(f"Running {what} on global rank {rank} which does not belong to the given group.")
    return True


_rank_not_in_group = _outside


def _resolve(group):
    return _get_default_group() if group is None else group


def get_group_rank(group, global_rank):
    """The rank in a group of a process. RuntimeError when it is not there."""
    if group is GroupMember.WORLD:
        return global_rank
    if group not in _groups:
        raise RuntimeError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    if global_rank not in _groups[group][1]:
        raise RuntimeError(f"Global rank {global_rank} is not part of group {group}")
    return _groups[group][1].index(global_rank)


def get_global_rank(group, group_rank):
    """The rank among all processes of a rank in a group. RuntimeError when there is none."""
    if group is GroupMember.WORLD:
        return group_rank
    if group not in _groups:
        raise RuntimeError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    ranks = _groups[group][1]
    if not 0 <= group_rank < len(ranks):
        raise RuntimeError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def _in_group(group, rank):
    """(group, the rank there)"""
    pg = _resolve(group)
    return pg, rank if pg is GroupMember.WORLD else get_group_rank(pg, rank)


def get_backend(group=None):
    """The name of a group's backend. RuntimeError in processes outside it."""
    pg = _resolve(group)
    if _outside(pg):
        raise RuntimeError("Invalid process group specified")
    assert pg in _groups, "Invalid process group specified"
    return _groups[pg][0]


def get_rank(group=None):
    """This process's rank in a group, -1 outside it."""
    if _outside(group):
        return -1
    world = _get_default_group()
    return world.rank() if group is None or group is world else get_group_rank(group, world.rank())


def get_world_size(group=None):
    """The number of processes in a group, -1 outside it."""
    return -1 if _outside(group) else _resolve(group).size()


def _check_timeout(timeout):
    if not isinstance(timeout, timedelta):
        raise RuntimeError("Expected timeout argument to be of typedatetime.timedelta")


def _refuse_mpi():
    launched = next((name for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK") if name in os.environ), None)
    if launched:
        raise NotImplementedError(f"backend 'mpi' is not implemented, though {launched} is set: use 'gloo' with RANK, WORLD_SIZE, MASTER_ADDR and "
                                  "MASTER_PORT set from the launcher's variables")
    raise RuntimeError("Distributed package doesn't have MPI built in. MPI is only included if you build PyTorch from source on a host that has "
                       "MPI installed.")


def _new_group(backend, name, store, rank, size, ranks, timeout, pg_options):
    if backend == Backend.MPI:
        _refuse_mpi()
    if backend in (Backend.NCCL, Backend.UCC):
        raise RuntimeError(f"Distributed package doesn't have {backend.upper()} built in")
    if rank is None:
        return GroupMember.NON_GROUP_MEMBER
    own = PrefixStore(name, store)
    if backend == Backend.GLOO:
        if pg_options is not None:
            raise RuntimeError("GLOO options not supported")
        pg = ProcessGroupGloo(own, rank, size, timeout)
    else:
        assert backend in Backend._plugins, f"Unknown c10d backend type {backend.upper()}"
        pg = Backend._plugins[backend](own, rank, size, timeout)
    _groups[pg] = (backend, ranks, store)
    return pg


def _wait_for_all(rank, store, size, timeout):
    """All processes have come to this point, those outside the new group too."""
    key = f"store_based_barrier_key:{_made}"
    here = store.add(key, 1)
    deadline = time.monotonic() + timeout.total_seconds()
    pause = 0.001
    while here != size:
        if time.monotonic() > deadline:
            raise RuntimeError(f"Timed out initializing process group in store based barrier on rank: {rank}, for key: {key} (world_size={size}, "
                               f"worker_count={here}, timeout={timeout})")
        time.sleep(pause)
        pause = min(2 * pause, 0.01)
        here = store.add(key, 0)


def _next_name():
    global _made
    _made += 1
    return str(_made - 1)


def init_process_group(backend, init_method=None, timeout=default_pg_timeout, world_size=-1, rank=-1, store=None, group_name="", pg_options=None):
    """Make the group of all processes, which call this at the same time.

    They find each other by a store, with rank and world_size, or by a URL: "env://" (the variables RANK, WORLD_SIZE, MASTER_ADDR and
    MASTER_PORT), "tcp://host:port", "file:///path". `timeout` is how long anything in the group may take. The backend is "gloo".
    """
    _check_timeout(timeout)
    if is_initialized():
        raise RuntimeError("trying to initialize the default process group twice!")
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    if store is not None:
        assert world_size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    backend = Backend(backend)
    if backend == Backend.MPI:
        if world_size != -1 or rank != -1:
            warnings.warn(f"For MPI backend, world_size ({world_size}) and rank ({rank}) are ignored since they are assigned by the MPI runtime.")
        _refuse_mpi()
    if store is None:
        store, rank, world_size = next(rendezvous("env://" if init_method is None else init_method, rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
        store = PrefixStore("default_pg", store)
    name = group_name or _next_name()
    pg = _new_group(backend, name, store, rank, world_size, list(range(world_size)), timeout, pg_options)
    GroupMember.WORLD = group.WORLD = pg
    try:
        _wait_for_all(rank, store, world_size, timeout)
    except BaseException:
        destroy_process_group()
        raise


def new_group(ranks=None, timeout=default_pg_timeout, backend=None, pg_options=None):
    """A group of some ranks (None: all). All processes call this, those outside it too; they get GroupMember.NON_GROUP_MEMBER."""
    world = _get_default_group()
    default_backend, _, store = _groups[world]
    ranks = list(range(world.size())) if ranks is None else sorted(ranks)
    if len(ranks) > world.size():
        raise RuntimeError("the new group's world size should be less or equal to the world size set by init_process_group")
    if any(rank < 0 or rank >= world.size() for rank in ranks):
        raise RuntimeError("The new group's rank should be within the the world_size set by init_process_group")
    _check_timeout(timeout)
    backend = Backend(backend or default_backend)
    own_rank = ranks.index(world.rank()) if world.rank() in ranks else None
    pg = _new_group(backend, _next_name(), store, own_rank, len(ranks), ranks, timeout, pg_options)
    _wait_for_all(world.rank(), store, world.size(), timeout)
    return pg


def _check_cuda():
    if not torch.cuda.is_available():
        raise ValueError("Subgroups can only be created when CUDA is available")


def new_subgroups(group_size=None, group=None, timeout=default_pg_timeout, backend=None, pg_options=None):
    """Groups of group_size consecutive ranks each: (this process's, all). ValueError, as there is no CUDA."""
    _check_cuda()
    if group is not None:
        raise NotImplementedError("new_subgroups(): argument 'group' is not implemented")
    size, world_size = torch.cuda.device_count() if group_size is None else group_size, get_world_size()
    if world_size < size:
        raise ValueError("The arg 'group_size' must not exceed the world size")
    if world_size % size != 0:
        raise ValueError("The world size must be divisible by 'group_size'")
    return new_subgroups_by_enumeration([list(range(at, at + size)) for at in range(0, world_size, size)], timeout, backend, pg_options)


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=default_pg_timeout, backend=None, pg_options=None):
    """Groups of the given ranks: (this process's, all). ValueError, as there is no CUDA."""
    _check_cuda()
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    own, groups, seen = None, [], {}
    for ranks in ranks_per_subgroup_list:
        groups.append(new_group(ranks, timeout, backend, pg_options))
        for rank in ranks:
            if rank in seen:
                raise ValueError(f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}")
            seen[rank] = ranks
        if get_rank() in ranks:
            own = groups[-1]
    return own, groups


def destroy_process_group(group=None):
    """End a group; that of all processes (None) and all others with it. RuntimeError for what is no group."""
    global _made
    if _outside(group):
        return
    pg = GroupMember.WORLD if group is None else group
    assert pg is not None
    if pg not in _groups:
        raise RuntimeError("Invalid process group specified")
    ending = list(_groups) if pg is GroupMember.WORLD else [pg]
    if pg is GroupMember.WORLD:
        GroupMember.WORLD = globals()["group"].WORLD = None
        _made = 0
    for each in ending:
        del _groups[each]
        if hasattr(each, "close"):
            each.close()


# Checks of arguments.


def _check_single_tensor(value, name):
    if not isinstance(value, torch.Tensor):
        raise RuntimeError(f"Invalid function argument. Expected parameter `{name}` to be of type torch.Tensor.")


def _check_tensor_list(value, name):
    if not isinstance(value, list) or not all(isinstance(item, torch.Tensor) for item in value):
        raise RuntimeError(f"Invalid function argument. Expected parameter `{name}` to be of type List[torch.Tensor].")


def _check_one_dtype(*values):
    first = None
    for value in values:
        for tensor in value if isinstance(value, list) else (value,):
            dtype = {torch.complex64: torch.float32, torch.complex128: torch.float64}.get(tensor.dtype, tensor.dtype)
            if first is not None and first != dtype:
                raise RuntimeError(f"Invalid usage of tensors with different dtypesFound {first} and  {tensor.dtype}")
            first = dtype


def supports_complex(reduceOp):
    """Whether complex numbers can be reduced so."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)


def _check_complex(tensors, op):
    if any(tensor.is_complex() for tensor in tensors) and not supports_complex(op):
        raise RuntimeError(f"all_reduce does not support {op} on complex tensors")


def _done(work, async_op):
    if async_op:
        return work
    work.wait()
    return None


# Messages.


def isend(tensor, dst, group=None, tag=0):
    """Start to send a tensor to the process dst, which must receive with the same tag. A Work; the tensor must not change before it is done."""
    _check_single_tensor(tensor, "tensor")
    if _outside(group, "isend"):
        return None
    pg, rank = _in_group(group, dst)
    return pg.send(tensor, rank, tag)


def irecv(tensor, src=None, group=None, tag=0):
    """Start to receive into a tensor from the process src (None: from any). A Work."""
    _check_single_tensor(tensor, "tensor")
    if _outside(group, "irecv"):
        return None
    pg, rank = (_resolve(group), -1) if src is None else _in_group(group, src)
    if src is not None and rank < 0:
        raise RuntimeError(f"invalid source rank: {src}")
    return pg.recv(tensor, rank, tag)


def send(tensor, dst, group=None, tag=0):
    """Send a tensor to the process dst; returns when the tensor may change again."""
    _check_single_tensor(tensor, "tensor")
    if not _outside(group, "send"):
        isend(tensor, dst, group, tag).wait()


def recv(tensor, src=None, group=None, tag=0):
    """Receive into a tensor from the process src (None: from any). The sender's rank, -1 outside the group."""
    _check_single_tensor(tensor, "tensor")
    if _outside(group, "recv"):
        return -1
    work = irecv(tensor, src, group, tag)
    work.wait()
    return get_global_rank(_resolve(group), work._source_rank()) if src is None else src


class P2POp:
    """A message for batch_isend_irecv(): op is isend or irecv. RuntimeError for another."""

    def __init__(self, op, tensor, peer, group=None, tag=0):
        if op not in (isend, irecv):
            raise RuntimeError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``.")
        _check_single_tensor(tensor, "tensor")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list):
    """Start several messages of one group; their Works."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise RuntimeError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if any(op.group != p2p_op_list[0].group for op in p2p_op_list):
        raise RuntimeError("All ops need to use the same group.")
    works = [op.op(op.tensor, op.peer, op.group, op.tag) for op in p2p_op_list]
    return [work for work in works if work is not None]


# Collectives. All processes of the group call the same ones in the same order. With async_op they return a Work at once.


def broadcast(tensor, src, group=None, async_op=False):
    """Give all processes the values of the process src."""
    _check_single_tensor(tensor, "tensor")
    if _outside(group, "broadcast"):
        return None
    pg, root = _in_group(group, src)
    return _done(pg.broadcast([tensor], root), async_op)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Replace the values of all processes by their reduction, the same bits in all.

    Integers, floats, bools (their sum is "or", their product "and") and, for sums, complex numbers. Bit operations need integers or bools.
    """
    _check_single_tensor(tensor, "tensor")
    if _outside(group, "all_reduce"):
        return None
    _check_complex([tensor], op)
    return _done(_resolve(group).allreduce([tensor], op), async_op)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """all_reduce() of several tensors of one dtype. With async_op a future of them."""
    _deprecated("all_reduce_coalesced", "collective-functions")
    _check_tensor_list(tensors, "tensor")
    _check_one_dtype(tensors)
    if _outside(group, "all_reduce_coalesced"):
        return None
    _check_complex(tensors, op)
    work = _done(_resolve(group).allreduce(tensors, op), async_op)
    return work and work.get_future()


def reduce(tensor, dst, op=ReduceOp.SUM, group=None, async_op=False):
    """Replace the values of the process dst by the reduction of all; the others keep theirs."""
    _check_single_tensor(tensor, "tensor")
    if _outside(group, "reduce"):
        return None
    pg, root = _in_group(group, dst)
    return _done(pg.reduce(tensor, root, op), async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Write the tensors of all processes into tensor_list, one for each rank."""
    _check_tensor_list(tensor_list, "tensor_list")
    _check_single_tensor(tensor, "tensor")
    _check_one_dtype(tensor_list, tensor)
    if _outside(group, "all_gather"):
        return None
    return _done(_resolve(group).allgather(tensor_list, tensor), async_op)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """all_gather() of several tensors: output_tensor_lists[rank][i] becomes the i-th tensor of that rank. With async_op a future of them."""
    _deprecated("all_gather_coalesced", "collective-functions")
    if _outside(group, "all_gather_coalesced"):
        return None
    _check_tensor_list(input_tensor_list, "tensor_list")
    _check_one_dtype(input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise RuntimeError("Invalid function argument: output_tensor_lists should be a list")
    for outputs in output_tensor_lists:
        _check_tensor_list(outputs, "output_tensor_lists")
        _check_one_dtype(outputs)
        if len(outputs) != len(input_tensor_list):
            raise RuntimeError(f"Invalid function argument: output_tensor_lists should hold lists of {len(input_tensor_list)} tensors")
    pg = _resolve(group)
    works = [pg.allgather([outputs[i] for outputs in output_tensor_lists], tensor) for i, tensor in enumerate(input_tensor_list)]
    work = _done(pg._together(works), async_op)
    return work and work.get_future()


def _check_gather_list(rank, dst, gather_list):
    if dst == rank and not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if dst != rank and gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")


def gather(tensor, gather_list=None, dst=0, group=None, async_op=False):
    """Write the tensors of all processes into gather_list of the process dst, one for each rank."""
    _check_single_tensor(tensor, "tensor")
    gather_list = gather_list or []
    _check_tensor_list(gather_list, "gather_list")
    _check_one_dtype(tensor, gather_list)
    if _outside(group, "gather"):
        return None
    pg, root = _in_group(group, dst)
    _check_gather_list(get_rank(), dst, gather_list)
    return _done(pg.gather(gather_list, tensor, root), async_op)


def scatter(tensor, scatter_list=None, src=0, group=None, async_op=False):
    """Write one tensor out of scatter_list of the process src into each process's tensor."""
    _check_single_tensor(tensor, "tensor")
    scatter_list = scatter_list or []
    _check_tensor_list(scatter_list, "scatter_list")
    _check_one_dtype(tensor, scatter_list)
    if _outside(group, "scatter"):
        return None
    pg, root = _in_group(group, src)
    if src == get_rank() and not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if src != get_rank() and scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return _done(pg.scatter(tensor, scatter_list, root), async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Write the reduction of the rank-th tensors of all processes' lists into `output`."""
    _check_single_tensor(output, "output")
    _check_tensor_list(input_list, "input_list")
    _check_one_dtype(output, input_list)
    if _outside(group, "reduce_scatter"):
        return None
    return _done(_resolve(group).reduce_scatter(output, input_list, op), async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Send the i-th tensor to rank i, and write what comes from rank i into the i-th output."""
    if _outside(group, "all_to_all"):
        return None
    _check_tensor_list(output_tensor_list, "output_tensor_list")
    _check_tensor_list(input_tensor_list, "input_tensor_list")
    _check_one_dtype(output_tensor_list, input_tensor_list)
    return _done(_resolve(group).alltoall(output_tensor_list, input_tensor_list), async_op)


def _split(tensor, sizes, n):
    if not sizes:
        if tensor.dim() == 0 or tensor.size(0) % n != 0:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        return list(tensor.chunk(n)) if tensor.size(0) else [tensor] * n
    if len(sizes) != n:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != tensor.size(0) or min(sizes) < 0:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return list(tensor.split(list(sizes)))


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """all_to_all() of the parts of one tensor each, along dimension 0: of equal sizes, or of the given ones."""
    if _outside(group, "all_to_all_single"):
        return None
    _check_single_tensor(output, "output")
    _check_single_tensor(input, "input")
    _check_one_dtype(output, input)
    pg = _resolve(group)
    inputs = _split(input.detach(), input_split_sizes, pg.size())
    return _done(pg.alltoall(_split(output.detach(), output_split_sizes, pg.size()), inputs), async_op)


def barrier(group=GroupMember.WORLD, async_op=False, device_ids=None):
    """Wait until all processes of the group have called this."""
    if _outside(group, "barrier"):
        return None
    if device_ids is not None:
        raise RuntimeError(f"Function argument device_ids not supported for the selected backend {get_backend(group)}")
    return _done(_resolve(group).barrier(), async_op)


def monitored_barrier(group=GroupMember.WORLD, timeout=None, wait_all_ranks=False):
    """A barrier whose failure names the ranks that did not come: the first one, or all. RuntimeError after the timeout, a timedelta."""
    if _outside(group, "monitored_barrier"):
        return None
    if get_backend(group) != Backend.GLOO:
        raise RuntimeError("monitored_barrier is only implemented for GLOO backend.")
    return _resolve(group).monitored_barrier(default_pg_timeout if timeout is None else timeout, wait_all_ranks)


# Objects, as pickles: only for processes that trust each other.


def _to_tensor(obj):
    data = pickle.dumps(obj)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _to_object(tensor):
    return pickle.loads(bytes(tensor.contiguous().numpy()))


def _padded(tensor, size):
    result = torch.zeros(size, dtype=torch.uint8)
    result[:tensor.numel()] = tensor
    return result


def _all_sizes(tensor, group):
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(get_world_size(group))]
    all_gather(sizes, torch.tensor([tensor.numel()]), group)
    return [int(size) for size in sizes]


def all_gather_object(object_list, obj, group=None):
    """Put the objects of all processes into object_list, one for each rank."""
    if _outside(group, "all_gather_object"):
        return
    data = _to_tensor(obj)
    sizes = _all_sizes(data, group)
    outputs = [torch.empty(max(sizes), dtype=torch.uint8) for _ in sizes]
    all_gather(outputs, _padded(data, max(sizes)), group)
    for i, size in enumerate(sizes):
        object_list[i] = _to_object(outputs[i][:size])


def gather_object(obj, object_gather_list=None, dst=0, group=None):
    """Put the objects of all processes into object_gather_list of the process dst, one for each rank."""
    if _outside(group, "gather_object"):
        return
    rank = get_rank()
    _check_gather_list(rank, dst, object_gather_list)
    data = _to_tensor(obj)
    sizes = _all_sizes(data, group)
    outputs = [torch.empty(max(sizes), dtype=torch.uint8) for _ in sizes] if rank == dst else None
    gather(_padded(data, max(sizes)), outputs, dst, group)
    for i, size in enumerate(sizes if rank == dst else ()):
        object_gather_list[i] = _to_object(outputs[i][:size])


def broadcast_object_list(object_list, src=0, group=None, device=None):
    """Replace the objects of the list by those of the process src. `device` may only be the CPU."""
    if _outside(group, "broadcast_object_list"):
        return
    if device is not None and torch.device(device).type != "cpu":
        raise NotImplementedError("broadcast_object_list(): argument 'device' must be the CPU")
    own = get_rank() == src
    parts = [_to_tensor(obj) for obj in object_list] if own else []
    sizes = torch.tensor([part.numel() for part in parts]) if own else torch.zeros(len(object_list), dtype=torch.int64)
    broadcast(sizes, src, group)
    data = torch.cat(parts) if own else torch.empty(int(sizes.sum()), dtype=torch.uint8)
    broadcast(data, src, group)
    if not own:
        for i, part in enumerate(data.split(sizes.tolist())):
            object_list[i] = _to_object(part)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list, src=0, group=None):
    """Put one object out of the list of the process src into the first place of each process's output list."""
    if _outside(group, "scatter_object_list"):
        return
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise RuntimeError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    own = get_rank() == src
    parts = [_to_tensor(obj) for obj in scatter_object_input_list] if own else []
    largest = torch.tensor([max((part.numel() for part in parts), default=0)])
    broadcast(largest, src, group)
    output, size = torch.empty(int(largest), dtype=torch.uint8), torch.zeros(1, dtype=torch.int64)
    scatter(output, [_padded(part, int(largest)) for part in parts] if own else None, src, group)
    scatter(size, [torch.tensor([part.numel()]) for part in parts] if own else None, src, group)
    scatter_object_output_list[0] = _to_object(output[:int(size)])


# Several devices in one process: there is one, so the lists hold one tensor.


def _deprecated(name, section):
    warnings.warn(f"torch.distributed.{name} will be deprecated. If you must use it, please revisit our documentation later at "
                  f"https://pytorch.org/docs/master/distributed.html#{section}")


def _one(name, *lists):
    _deprecated(name, "multi-gpu-collective-functions")
    for tensors in lists:
        if len(tensors) != 1:
            raise RuntimeError(f"{name}: one device has one tensor in each list, got {len(tensors)}")


def broadcast_multigpu(tensor_list, src, group=None, async_op=False, src_tensor=0):
    """broadcast() of the only tensor of a list. RuntimeError for more."""
    _one("broadcast_multigpu", tensor_list)
    if src_tensor != 0:
        raise RuntimeError(f"broadcast_multigpu: invalid root tensor: {src_tensor}")
    return broadcast(tensor_list[0], src, group, async_op)


def all_reduce_multigpu(tensor_list, op=ReduceOp.SUM, group=None, async_op=False):
    """all_reduce() of the only tensor of a list. RuntimeError for more."""
    _one("all_reduce_multigpu", tensor_list)
    return all_reduce(tensor_list[0], op, group, async_op)


def reduce_multigpu(tensor_list, dst, op=ReduceOp.SUM, group=None, async_op=False, dst_tensor=0):
    """reduce() of the only tensor of a list. RuntimeError for more."""
    _one("reduce_multigpu", tensor_list)
    if dst_tensor != 0:
        raise RuntimeError(f"reduce_multigpu: invalid root tensor: {dst_tensor}")
    return reduce(tensor_list[0], dst, op, group, async_op)


def all_gather_multigpu(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """all_gather() of the only tensor of a list. RuntimeError for more."""
    _one("all_gather_multigpu", output_tensor_lists, input_tensor_list)
    return all_gather(output_tensor_lists[0], input_tensor_list[0], group, async_op)


def reduce_scatter_multigpu(output_tensor_list, input_tensor_lists, op=ReduceOp.SUM, group=None, async_op=False):
    """reduce_scatter() of the only list of a list. RuntimeError for more."""
    _one("reduce_scatter_multigpu", output_tensor_list, input_tensor_lists)
    return reduce_scatter(output_tensor_list[0], input_tensor_lists[0], op, group, async_op)


__all__ += ["ProcessGroup", "ProcessGroupGloo", "ReduceOp", "Work", "get_global_rank", "get_group_rank"]
