"""Sparse tensors against the real torch: what they hold, print, refuse, compute, and how gradients pass through them."""

import copy
import io
import pickle

import pytest

import msadapter.pytorch as ours

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
BOTH = (torch, ours)
INDICES, VALUES, SIZE = [[0, 1, 1, 0], [2, 0, 2, 2]], [3.0, 4.0, 5.0, 6.0], (2, 3)


def make(lib, requires_grad=False, dtype=None, coalesced=False):
    s = lib.sparse_coo_tensor(INDICES, VALUES, SIZE, dtype=dtype)
    return (s.coalesce() if coalesced else s).requires_grad_(requires_grad)


def make_csr(lib):
    return lib.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], (2, 3))


def hybrid(lib):
    return lib.sparse_coo_tensor([[0, 2, 0]], lib.arange(6.0).reshape(3, 2), (3, 2))


def plain(x):
    """A result as something both libraries' results can be compared by."""
    if hasattr(x, "layout"):
        grad = x.requires_grad
        x = x.detach()
        if x.layout in (torch.sparse_coo, ours.sparse_coo):
            return ("coo", str(x.dtype), tuple(x.shape), x.is_coalesced(), x._indices().tolist(), x._values().tolist(), grad)
        if x.layout in (torch.sparse_csr, ours.sparse_csr):
            return ("csr", str(x.dtype), tuple(x.shape), x.crow_indices().tolist(), x.col_indices().tolist(), x.values().tolist(), grad)
        return (str(x.dtype), tuple(x.shape), [round(v, 4) for v in x.flatten().tolist()] if x.is_floating_point() else x.tolist(), grad)
    return tuple(map(plain, x)) if isinstance(x, (tuple, list)) else x


def outcome(function, lib):
    try:
        return plain(function(lib))
    except Exception as error:
        return type(error).__name__


SAME = {
    "values and size": make,
    "coalesce": lambda t: make(t).coalesce(),
    "is_coalesced": lambda t: (make(t).is_coalesced(), make(t).coalesce().is_coalesced()),
    "size found": lambda t: t.sparse_coo_tensor(INDICES, VALUES),
    "size alone": lambda t: t.sparse_coo_tensor(size=(2, 3)),
    "unsafe": lambda t: t._sparse_coo_tensor_unsafe(t.tensor(INDICES), t.tensor(VALUES), SIZE),
    "dtype": lambda t: make(t, dtype=t.int32),
    "hybrid": hybrid,
    "hybrid coalesced": lambda t: hybrid(t).coalesce(),
    "dims": lambda t: (hybrid(t).sparse_dim(), hybrid(t).dense_dim(), hybrid(t)._nnz(), make_csr(t)._nnz()),
    "is_sparse": lambda t: (make(t).is_sparse, make(t).is_sparse_csr, make_csr(t).is_sparse, make_csr(t).is_sparse_csr, t.ones(1).is_sparse),
    "numel": lambda t: (make(t).numel(), make(t).dim(), len(make(t))),
    "to_dense": lambda t: make(t).to_dense(),
    "to_dense hybrid": lambda t: hybrid(t).to_dense(),
    "to_dense strided": lambda t: t.ones(2).to_dense(),
    "to_sparse": lambda t: make(t).to_dense().to_sparse(),
    "to_sparse dim": lambda t: make(t).to_dense().to_sparse(1),
    "to_sparse bool": lambda t: t.tensor([[True, False], [False, True]]).to_sparse(),
    "to_sparse empty": lambda t: t.empty(0, 3).to_sparse(),
    "to_sparse dim out of range": lambda t: t.ones(2).to_sparse(2),
    "to_sparse_csr": lambda t: make(t).to_sparse_csr(),
    "csr": make_csr,
    "csr to dense": lambda t: make_csr(t).to_dense(),
    "csr to coo": lambda t: make_csr(t).to_sparse(),
    "crow and col": lambda t: (make_csr(t).crow_indices(), make_csr(t).col_indices()),
    "indices": lambda t: make(t, coalesced=True).indices(),
    "values": lambda t: make(t, coalesced=True).values(),
    "indices uncoalesced": lambda t: make(t).indices(),
    "values uncoalesced": lambda t: make(t).values(),
    "sparse_mask": lambda t: t.arange(6.0).reshape(2, 3).sparse_mask(make(t, coalesced=True)),
    "resize": lambda t: make(t).sparse_resize_((4, 5), 2, 0),
    "resize and clear": lambda t: make(t).sparse_resize_and_clear_((4, 5, 6), 1, 2),
    "resize to less": lambda t: make(t).sparse_resize_((1, 1), 2, 0),
    "resize of sparse dims": lambda t: make(t).sparse_resize_((2, 3, 1), 3, 0),
    "clone": lambda t: make(t).clone(),
    "double": lambda t: make(t).double(),
    "transpose": lambda t: make(t, coalesced=True).t().coalesce(),
    "T": lambda t: make(t).T.coalesce(),
    "neg": lambda t: -make(t),
    "times number": lambda t: make(t) * 2,
    "number times": lambda t: 2 * make(t),
    "divided": lambda t: make(t) / 2,
    "plus": lambda t: (make(t) + make(t, coalesced=True)).coalesce(),
    "plus coalesced": lambda t: make(t, coalesced=True) + make(t, coalesced=True),
    "minus": lambda t: (make(t) - make(t, coalesced=True) * 2).coalesce(),
    "dense plus sparse": lambda t: t.ones(2, 3) + make(t),
    "dense minus sparse": lambda t: t.ones(2, 3) - hybrid(t).to_dense().t().contiguous().to_sparse(),
    "dense add_ sparse": lambda t: t.ones(2, 3).add_(make(t), alpha=0.5),
    "dense sub_ sparse": lambda t: t.ones(2, 3).sub_(make(t)),
    "strided add_ sparse": lambda t: t.ones(3, 2).t().add_(make(t)),
    "add_ of sparse": lambda t: make(t, coalesced=True).add_(make(t, coalesced=True)),
    "mul_": lambda t: make(t).mul_(3),
    "div_": lambda t: make(t).div_(t.tensor(2.0)),
    "neg_": lambda t: make(t).neg_(),
    "zero_": lambda t: make(t).zero_().to_dense(),
    "copy_": lambda t: make(t).copy_(make(t, coalesced=True)),
    "zeros_like": lambda t: t.zeros_like(make(t)).to_dense(),
    "sparse plus dense": lambda t: make(t) + t.ones(2, 3),
    "sparse over dense": lambda t: make(t) / t.ones(2, 3),
    "other sizes": lambda t: make(t) + t.sparse_coo_tensor([[0], [0]], [1.0], (2, 2)),
    "mul of sparse": lambda t: (make(t, coalesced=True) * make(t, coalesced=True)).to_dense(),
    "mm": lambda t: t.sparse.mm(make(t), t.arange(6.0).reshape(3, 2)),
    "mm double": lambda t: t.sparse.mm(make(t).double(), t.arange(6.0).double().reshape(3, 2)),
    "mm of csr": lambda t: make_csr(t) @ t.arange(6.0).reshape(3, 2),
    "mm of sparse": lambda t: t.sparse.mm(make(t), make(t).t()).to_dense(),
    "mm sizes": lambda t: t.sparse.mm(make(t), t.ones(2, 2)),
    "matmul": lambda t: make(t) @ t.arange(6.0).reshape(3, 2),
    "mv": lambda t: make(t).mv(t.arange(3.0)),
    "matmul vector": lambda t: make(t) @ t.arange(3.0),
    "addmm": lambda t: t.sparse.addmm(t.ones(2, 2), make(t), t.arange(6.0).reshape(3, 2), beta=2, alpha=0.5),
    "hspmm": lambda t: t.hspmm(make(t), t.arange(6.0).reshape(3, 2)),
    "smm": lambda t: t.smm(make(t), t.arange(6.0).reshape(3, 2)).to_dense(),
    "sspaddmm": lambda t: t.sspaddmm(t.eye(2).to_sparse(), make(t), t.arange(6.0).reshape(3, 2), beta=2, alpha=3).to_dense(),
    "sum": lambda t: t.sparse.sum(make(t)),
    "sum sparse dim": lambda t: t.sparse.sum(make(t), 0),
    "sum all dims": lambda t: t.sparse.sum(make(t), (0, 1)),
    "sum dense dim": lambda t: t.sparse.sum(hybrid(t).coalesce(), 1),
    "sum dtype": lambda t: t.sparse.sum(make(t), dtype=t.float64),
    "sum dim out of range": lambda t: t.sparse.sum(make(t), 2),
    "softmax": lambda t: t.sparse.softmax(make(t), 1).to_dense(),
    "softmax dim 0": lambda t: t.sparse.softmax(make(t), 0).to_dense(),
    "softmax hybrid": lambda t: t.sparse.softmax(hybrid(t), 1).to_dense(),
    "softmax hybrid sparse": lambda t: t.sparse.softmax(hybrid(t), 0).to_dense(),
    "log_softmax": lambda t: t.sparse.log_softmax(make(t), 1).to_dense(),
    "sampled_addmm mismatched": lambda t: t.sparse.sampled_addmm(make(t), t.ones(2, 4), t.ones(4, 3)),
    "norm": lambda t: t.norm(make(t)),
    "deepcopy": lambda t: copy.deepcopy(make(t)),
    "pickle": lambda t: pickle.loads(pickle.dumps(make(t))),
    "index -1": lambda t: t.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)),
    "index -1 without size": lambda t: t.sparse_coo_tensor([[0, -1]], [1.0, 2.0]),
    "index too large": lambda t: t.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,)),
    "1-D indices": lambda t: t.sparse_coo_tensor([0, 1], [1.0, 2.0], (3,)),
    "sizes too many": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 3)),
    "nnz mismatch": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0], (3,)),
    "negative size": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (-3,)),
    "crow of other length": lambda t: t.sparse_csr_tensor([0, 2], [0, 1], [1.0, 2.0], (2, 2)),
    "crow starts at 1": lambda t: t.sparse_csr_tensor([1, 2, 2], [0, 1], [1.0, 2.0], (2, 2)),
    "crow falls": lambda t: t.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0], (2, 2)),
    "column too large": lambda t: t.sparse_csr_tensor([0, 1, 2], [0, 7], [1.0, 2.0], (2, 2)),
    "column negative": lambda t: t.sparse_csr_tensor([0, 1, 2], [0, -1], [1.0, 2.0], (2, 2)),
    "exp": lambda t: t.exp(make(t)),
    "dense _nnz": lambda t: t.ones(2)._nnz(),
    "dense indices": lambda t: t.ones(2).indices(),
    "dense values": lambda t: t.ones(2).values(),
    "dense is_coalesced": lambda t: t.ones(2).is_coalesced(),
    "dense coalesce": lambda t: t.ones(2).coalesce(),
    "dense crow": lambda t: t.ones(2).crow_indices(),
    "dense sparse_dim": lambda t: t.ones(2).sparse_dim(),
    "dense dense_dim": lambda t: t.ones(2).dense_dim(),
    "storage": lambda t: make(t).storage(),
    "item": lambda t: make(t).item(),
    "equal": lambda t: t.equal(make(t), make(t)),
}


@pytest.mark.parametrize("name", SAME)
def test_same_result_or_class_of_error(name):
    expected, got = (outcome(SAME[name], lib) for lib in BOTH)
    assert got == expected


@pytest.mark.parametrize("tensor", [make, make_csr, hybrid, lambda t: make(t, True), lambda t: make(t).double(), lambda t: make(t).int(),
                                    lambda t: t.sparse_coo_tensor(size=(2, 3)), lambda t: make(t, dtype=t.float64, requires_grad=True)])
def test_printed_as_torch_prints(tensor):
    assert repr(tensor(ours)) == repr(tensor(torch))


@pytest.mark.parametrize("touch", [
    lambda t: t.numpy(), lambda t: t.tolist(), lambda t: t.data_ptr(), lambda t: t[0], lambda t: t.exp(), lambda t: t.view(-1), lambda t: t.stride(),
    lambda t: t.apply_(abs), lambda t: t.as_strided((1,), (1,)), lambda t: t.__dlpack__(), lambda t: t.resize_(3), lambda t: ours.cat([t, t]),
    lambda t: ours.ones(2, 3).copy_(t), lambda t: ours.ones(3, 3) @ t.exp(), lambda t: ours.nn.functional.conv1d(t, t), lambda t: t.share_memory_(),
    lambda t: t.unsqueeze_(0), lambda t: t.t_(), lambda t: ours.add(ours.ones(2, 3), 1, out=t), lambda t: bool(t), lambda t: list(t),
    lambda t: t.set_(ours.ones(1)), lambda t: ours.ones(1).set_(t), lambda t: t.fill_(1), lambda t: t.index_select(0, ours.tensor([0])), lambda t: t == t])
@pytest.mark.parametrize("tensor", [make, make_csr])
def test_what_needs_memory_refuses_sparse_tensors(touch, tensor):
    with pytest.raises((RuntimeError, TypeError, ValueError, NotImplementedError)):
        touch(tensor(ours))


def gradients(function, lib, *shapes):
    generator = torch.Generator().manual_seed(1)
    leaves = [lib.tensor(torch.randn(s, generator=generator).tolist(), requires_grad=True) for s in shapes]
    function(lib, *leaves).backward()
    return [plain(x.grad if x.grad.layout is lib.strided else x.grad.to_dense()) for x in leaves]


def coo(lib, values):
    return lib.sparse_coo_tensor(lib.tensor(INDICES), values, SIZE)


@pytest.mark.parametrize("function, shapes", [
    (lambda t, v: (coo(t, v).to_dense() ** 2).sum(), [(4,)]),
    (lambda t, v: (coo(t, v).coalesce().values() ** 2).sum(), [(4,)]),
    (lambda t, v, d: (t.sparse.mm(coo(t, v), d) ** 2).sum(), [(4,), (3, 2)]),
    (lambda t, v, d, m: (t.sparse.addmm(m, coo(t, v), d, beta=2, alpha=3) ** 2).sum(), [(4,), (3, 2), (2, 2)]),
    (lambda t, v: ((coo(t, v) * 2 + coo(t, v).neg()).to_dense() ** 2).sum(), [(4,)]),
    (lambda t, v: (t.sparse.sum(coo(t, v), 0).to_dense() ** 2).sum(), [(4,)]),
    (lambda t, v: t.sparse.sum(coo(t, v)) ** 2, [(4,)]),
    (lambda t, v: (t.sparse.softmax(coo(t, v), 1).to_dense() ** 2).sum(), [(4,)]),
    (lambda t, v: (t.sparse.log_softmax(coo(t, v), 1).to_dense() ** 2).sum(), [(4,)]),
    (lambda t, x: (x.to_sparse().to_dense() ** 2).sum(), [(2, 3)]),
    (lambda t, x, d: (t.sparse.mm(x.to_sparse(), d) ** 2).sum(), [(2, 3), (3, 2)]),
    (lambda t, x: (x.sparse_mask(make(t, coalesced=True)).to_dense() ** 2).sum(), [(2, 3)]),
])
def test_gradients(function, shapes):
    assert gradients(function, ours, *shapes) == gradients(function, torch, *shapes)


def test_gradient_of_a_sparse_leaf_is_sparse():
    for lib in BOTH:
        s = make(lib, True)
        lib.sparse.mm(s, lib.ones(3, 2)).sum().backward()
        assert s.grad.is_sparse
    a, b = make(torch, True), make(ours, True)
    torch.sparse.mm(a, torch.ones(3, 2)).sum().backward()
    ours.sparse.mm(b, ours.ones(3, 2)).sum().backward()
    assert plain(a.grad.coalesce()) == plain(b.grad.coalesce())


def test_embedding_gradients_are_sparse_and_accumulate():
    results = []
    for lib in BOTH:
        layer = lib.nn.Embedding(6, 3, sparse=True, padding_idx=2)
        seen = []
        for rows in ([1, 2, 4, 1], [[0, 5]]):
            (layer(lib.tensor(rows)) * 2).sum().backward()
            seen.append((layer.weight.grad._nnz(), plain(layer.weight.grad.coalesce())))
        layer.zero_grad()
        results.append((seen, layer.weight.grad is None))
    assert results[0][0] == results[1][0]


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_embedding_bag_gradients(mode):
    results = []
    for lib in BOTH:
        weight = lib.arange(15.0).reshape(5, 3).requires_grad_()
        bags = lib.nn.functional.embedding_bag(lib.tensor([0, 3, 3, 1]), weight, lib.tensor([0, 3]), mode=mode, sparse=True)
        (bags ** 2).sum().backward()
        assert weight.grad.is_sparse
        results.append(plain(weight.grad.to_dense()))
    assert results[0] == results[1]


def test_sparse_and_dense_gradients_of_one_weight_add_up():
    results = []
    for lib in BOTH:
        weight = lib.arange(6.0).reshape(3, 2).requires_grad_()
        (lib.nn.functional.embedding(lib.tensor([1, 1]), weight, sparse=True).sum() + (weight ** 2).sum()).backward()
        results.append(plain(weight.grad))
        (lib.nn.functional.embedding(lib.tensor([0]), weight, sparse=True).sum()).backward()
        results.append(plain(weight.grad))
    assert results[:2] == results[2:]


def test_frequency_scaling_with_sparse_gradients_is_refused():
    for lib in BOTH:
        layer = lib.nn.Embedding(4, 2, sparse=True, scale_grad_by_freq=True)
        with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
            layer(lib.tensor([1])).sum().backward()


@pytest.mark.parametrize("name, options", [("SGD", dict(lr=0.1)), ("SGD", dict(lr=0.1, momentum=0.9)), ("Adagrad", dict(lr=0.1, lr_decay=0.1)),
                                           ("SparseAdam", dict(lr=0.1)), ("SparseAdam", dict(lr=0.1, maximize=True))])
def test_optimizers_take_sparse_gradients(name, options):
    results = []
    for lib in BOTH:
        weight = lib.nn.Parameter(lib.arange(12.0).reshape(4, 3) / 10)
        optimizer = getattr(lib.optim, name)([weight], **options)
        for rows in ([1, 1, 3], [0, 1], [3, 3]):
            optimizer.zero_grad()
            (lib.nn.functional.embedding(lib.tensor(rows), weight, sparse=True) ** 2).sum().backward()
            optimizer.step()
        results.append(plain(weight))
    assert results[0] == results[1]


def test_optimizers_without_sparse_steps_refuse():
    for lib in BOTH:
        for name in ("Adam", "RMSprop", "Adamax", "Rprop"):
            weight = lib.nn.Parameter(lib.ones(3, 2))
            lib.nn.functional.embedding(lib.tensor([1]), weight, sparse=True).sum().backward()
            with pytest.raises(RuntimeError):
                getattr(lib.optim, name)([weight]).step()


def test_clipping_scales_sparse_gradients():
    """The reference returns the norm and leaves the sparse gradient as it was: what is scaled there is a copy."""
    norms = []
    for lib in BOTH:
        weight = lib.nn.Parameter(lib.ones(3, 2))
        lib.nn.functional.embedding(lib.tensor([1, 2, 2]), weight, sparse=True).sum().backward()
        norm = lib.nn.utils.clip_grad_norm_([weight], 1.0)
        norms.append(plain(norm))
    assert norms[0] == norms[1] and abs(weight.grad.to_dense().norm().item() - 1) < 1e-4


@pytest.mark.parametrize("tensor", [lambda t: make(t, coalesced=True), make, make_csr])
def test_files_go_both_ways(tensor):
    for writer, reader in ((ours, torch), (torch, ours), (ours, ours)):
        buffer = io.BytesIO()
        writer.save({"s": tensor(writer)}, buffer)
        buffer.seek(0)
        loaded = reader.load(buffer)["s"]
        assert plain(loaded.to_dense()) == plain(tensor(reader).to_dense()) and str(loaded.layout) == str(tensor(reader).layout)


def test_sampled_addmm_follows_its_definition():
    s, a, b = make_csr(ours), ours.arange(4.0).reshape(2, 2), ours.arange(6.0).reshape(2, 3)
    got = ours.sparse.sampled_addmm(s, a, b, beta=2.0, alpha=0.5)
    where = s.to_dense() != 0
    assert ours.equal(got.to_dense(), ours.where(where, 0.5 * (a @ b) + 2 * s.to_dense(), ours.zeros(2, 3)))


def test_indices_stay_as_they_were_checked():
    indices = ours.tensor([[0, 1]])
    s = ours.sparse_coo_tensor(indices, [1.0, 2.0], (2,))
    indices.fill_(10 ** 9)
    s._indices().fill_(10 ** 9)
    assert s.to_dense().tolist() == [1, 2]


def test_aliases_keep_their_sizes_when_one_grows():
    s = ours.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,))
    other = s.detach()
    s.sparse_resize_((10 ** 6,), 1, 0).add_(ours.sparse_coo_tensor([[999999]], [1.0], (10 ** 6,)))
    assert other.to_dense().tolist() == [1, 2] and s._nnz() == 3


def test_sparse_gradients_stop_where_a_formula_needs_memory():
    weight = ours.ones(3, 2, requires_grad=True)
    with pytest.raises(NotImplementedError):
        ours.nn.functional.embedding(ours.tensor([1]), weight.cumsum(0), sparse=True).sum().backward()


@pytest.mark.parametrize("name", ["addmm", "sampled_addmm"])
def test_complex_factors(name):
    ours.manual_seed(0)
    dense = ours.randn(4, 4).relu().to(ours.complex128)
    a, b = (ours.randn(*shape, dtype=ours.complex128, requires_grad=True) for shape in ((4, 3), (3, 4)))
    sparse = dense.to_sparse_csr()

    def function(a, b):
        if name == "addmm":
            return ours.addmm(a @ b, sparse, a @ b, beta=1 + 2j, alpha=2 + 3j)
        return ours.sparse.sampled_addmm(sparse, a, b, beta=1 + 2j, alpha=2 + 3j).to_dense()

    product = a @ b
    first, second = (product, dense @ product) if name == "addmm" else (dense, product * (dense != 0))
    assert ours.allclose(function(a, b), (1 + 2j) * first + (2 + 3j) * second)
    assert ours.autograd.gradcheck(function, (a, b))
