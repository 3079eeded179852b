"""DistributedDataParallel and DistributedSampler."""

import warnings
from datetime import timedelta

import pytest

import msadapter.pytorch as torch
import msadapter.pytorch.distributed as dist


def network(package):
    nn = package.nn
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def train(package, dist, rank, options):
    """Parameters, buffers, gradients after some steps, with their names."""
    package.manual_seed(rank)  # other parameters in each process: rank 0's count
    model = package.nn.parallel.DistributedDataParallel(network(package), **options)
    optimizer = package.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(4):
        optimizer.zero_grad(set_to_none=step != 2)
        if step == 1 and not options.get("static_graph"):  # which the reference doesn't take together with no_sync
            with model.no_sync():
                model(package.randn(5, 4)).square().sum().backward()
        model(package.randn(5, 4)).cos().mean().backward()
        optimizer.step()
    model.eval()
    with package.no_grad():
        model(package.zeros(1, 4))
    return [(name, value.tolist()) for name, value in model.state_dict().items()] + [p.grad.tolist() for p in model.parameters()]


def close(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    return a == b if isinstance(a, str) else a == pytest.approx(b, rel=1e-4, abs=1e-5)


def compare(rank, path, all_options):
    import torch as reference
    import torch.distributed as reference_dist

    reference_dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2, timeout=timedelta(seconds=10))
    for options in all_options:
        assert close(train(torch, dist, rank, options), train(reference, reference_dist, rank, options)), options


def test_training_gives_what_the_reference_gives(together, tmp_path):
    pytest.importorskip("torch")
    together(2, compare, tmp_path / "reference",
             [{}, {"find_unused_parameters": True}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 5e-5}, {"broadcast_buffers": False},
              {"static_graph": True}])


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList([torch.nn.Linear(2, 1, bias=False) for _ in range(3)])

    def forward(self, x, which):
        return {"out": [self.parts[i](x) for i in which]}


def branches(rank):
    model = torch.nn.parallel.DistributedDataParallel(Branches(), find_unused_parameters=True)
    x = torch.full((1, 2), rank + 1.0)
    for _ in range(2):
        model.zero_grad(set_to_none=True)
        out = model(x, [0, rank])["out"]
        sum(o.sum() for o in out).backward()
        grads = [part.weight.grad for part in model.module.parts]
        assert grads[0].tolist() == [[2.0, 2.0]]  # (1 + 1 of rank 0, twice used; 2 of rank 1) / 2
        assert grads[1].tolist() == [[1.0, 1.0]]  # only rank 1 used it
        assert grads[2] is None  # nobody did
    strict = torch.nn.parallel.DistributedDataParallel(Branches())
    strict(x, [0])["out"][0].sum().backward()
    with pytest.raises(RuntimeError, match="Expected to have finished reduction in the prior iteration"):
        strict(x, [0])


def test_parameters_that_are_not_used(together):
    together(2, branches)


def hooks(rank):
    x = torch.full((1, 2), rank + 1.0)
    for kind in ("own", "half"):
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        seen = []

        def hook(state, bucket):
            state.append((bucket.index(), bucket.is_last(), [tuple(g.shape) for g in bucket.gradients()], len(bucket.parameters())))
            bucket.set_buffer(bucket.buffer() * 10)
            work = dist.all_reduce(bucket.buffer(), async_op=True)
            return work.get_future().then(lambda future: future.value()[0])

        if kind == "own":
            model.register_comm_hook(seen, hook)
            with pytest.raises(RuntimeError, match="can only be called once"):
                model.register_comm_hook(seen, hook)
        else:
            model._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
        model(x).sum().backward()
        assert model.module.weight.grad.tolist() == ([[30.0, 30.0]] if kind == "own" else [[1.5, 1.5]])
        assert seen == ([(0, True, [(1,), (1, 2)], 2)] if kind == "own" else [])


def test_hooks_average_their_own_way(together):
    together(2, hooks)


def refused(rank):
    data_parallel = torch.nn.parallel.DistributedDataParallel
    for module, options, kind, text in ((torch.nn.ReLU(), {}, RuntimeError, "doesn't have any parameters that require a gradient"),
                                        (torch.nn.Linear(1, 1), {"device_ids": [0]}, ValueError, "but got device_ids"),
                                        (torch.nn.LazyLinear(1), {}, RuntimeError, "uninitialized parameters"),
                                        (torch.nn.Linear(1, 1), {"check_reduction": True}, NotImplementedError, "check_reduction")):
        with pytest.raises(kind, match=text):
            data_parallel(module, **options)
    with pytest.raises(RuntimeError, match="appears not to match sizes|expects same model"):
        data_parallel(torch.nn.Linear(1 + rank, 1))
    with pytest.raises(NotImplementedError, match="join"):
        data_parallel(torch.nn.Linear(1, 1)).join()
    sampler = torch.utils.data.DistributedSampler(range(5), shuffle=False)
    assert (sampler.num_replicas, sampler.rank, list(sampler)) == (2, rank, [[0, 2, 4], [1, 3, 0]][rank])


def test_what_cannot_be_is_refused_and_samplers_know_the_group(together):
    together(2, refused)
    with pytest.raises(RuntimeError, match="Default process group has not been initialized"):
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    with pytest.raises(RuntimeError, match="Default process group has not been initialized"):
        torch.utils.data.DistributedSampler([1])


def test_samplers_split_as_the_references_do():
    reference = pytest.importorskip("torch.utils.data")
    for drop_last in (False, True):
        for rank in range(3):
            ours, theirs = (package.DistributedSampler(range(11), 3, rank, seed=5, drop_last=drop_last) for package in (torch.utils.data, reference))
            ours.set_epoch(2)
            theirs.set_epoch(2)
            assert list(ours) == list(theirs) and len(ours) == len(theirs)


def test_one_process_is_a_group_too():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
            model(torch.ones(2, 3)).sum().backward()
        assert model.module.bias.grad.tolist() == [2.0]
        assert list(model.state_dict()) == ["module.weight", "module.bias"]
    finally:
        dist.destroy_process_group()
