"""Times single operators on a million elements against PyTorch, both sides taking turns, and prints the ratios.

    PYTHONPATH=build/root/site .venv/bin/python bench/operators.py [--reference PYTHON] [--threads 2] [--only REGEX] [--above RATIO]

An operator is an expression over the tensors of `tensors`; those after a `~` are timed a second time with their gradient, that is forward and
backward together. See README.md in this folder.
"""

import argparse
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from run import Side, version_of  # noqa: E402

BLOCKS = 5
BLOCK_SECONDS = 0.03


def tensors(torch):
    """What the expressions are made of: a million elements in most of them."""
    import numpy

    random = numpy.random.RandomState(0)

    def floats(*shape, low=0.1, high=0.9):
        return torch.from_numpy(random.uniform(low, high, shape).astype("float32"))

    def integers(high, *shape, low=0, dtype="int64"):
        return torch.from_numpy(random.randint(low, high, shape).astype(dtype))

    named = {
        "x": floats(1000, 1000), "y": floats(1000, 1000), "z": floats(1000, 1000), "n": floats(1000, 1000, low=-3, high=3), "p": floats(1000, 1000, low=1.1, high=9),
        "row": floats(1000), "column": floats(1000, 1), "flat": floats(1000000), "line": floats(1000000, low=-3, high=3), "cube": floats(100, 100, 100),
        "i": integers(1000, 1000, 1000), "j": integers(1000, 1000, 1000, low=1), "bits": integers(9, 1000, 1000), "index": integers(1000, 1000), "flat_index": integers(1000000, 1000000),
        "b": integers(2, 1000, 1000, dtype="bool"), "d": integers(2, 1000, 1000, dtype="bool"), "bytes_": integers(255, 1000, 1000, dtype="uint8"),
        "t": floats(1000, 1000).t(), "halved": floats(1000, 2000)[:, ::2],
        "c": torch.complex(floats(1000, 500), floats(1000, 500)), "e": torch.complex(floats(1000, 500), floats(1000, 500)),
        "matrices": floats(100, 100, 100, low=-1, high=1), "others": floats(100, 100, 100, low=-1, high=1), "tall": floats(1000, 100), "factor": floats(100, 100, 100, low=-1, high=1),
        "image": floats(8, 32, 64, 64, low=-1, high=1), "series": floats(16, 64, 1000, low=-1, high=1), "volume": floats(4, 16, 25, 25, 25, low=-1, high=1),
        "kernel": floats(32, 32, 3, 3, low=-1, high=1), "depthwise": floats(32, 1, 3, 3, low=-1, high=1), "kernel1": floats(64, 64, 3, low=-1, high=1),
        "kernel3": floats(16, 16, 3, 3, 3, low=-1, high=1), "grid": floats(8, 64, 64, 2, low=-1, high=1), "weight": floats(1000, 1000, low=-1, high=1),
        "target": integers(1000, 1000), "truth": integers(2, 1000, 1000, dtype="float32"), "signs": torch.from_numpy(random.choice([-1.0, 1.0], (1000, 1000)).astype("float32")),
        "channel": floats(32), "table": floats(10000, 100), "words": integers(10000, 100, 100), "edges": torch.from_numpy(numpy.linspace(0, 1, 1000).astype("float32")),
    }
    eye = torch.eye(100)
    named["definite"] = named["matrices"] @ named["matrices"].transpose(-1, -2) + eye
    named["regular"] = named["matrices"] + 10 * eye
    named["lower"] = torch.tril(named["matrices"]) + 10 * eye
    return named


# "expression" or "expression ~ tensors with a gradient". An in-place operator works on a tensor that every call overwrites the same way.
OPERATORS = """
x + y ~ x y
x + row ~ x row
x + column ~ x column
x + t ~ x t
halved + y
x + 1.5
i + 3
x - y
x * y ~ x y
x * 2.5
i * j
c * e ~ c e
x / y ~ x y
c / e
i / j
x // y
i // j
x % y
i % j
torch.fmod(x, y)
torch.div(x, y, rounding_mode="trunc")
x ** 2 ~ x
x ** 3
x ** 0.5
x ** y ~ x y
i ** 2
2.0 ** x
torch.float_power(x, 2)
torch.add(x, y, alpha=2)
x.add_(0.0)
x.mul_(1.0)
x.copy_(t)
x.fill_(0.5)
z.zero_()
torch.addcmul(x, y, z) ~ x y z
torch.addcdiv(x, y, z) ~ x y z
torch.lerp(x, y, 0.3) ~ x y
torch.lerp(x, y, z)
torch.abs(n) ~ n
torch.abs(c) ~ c
torch.angle(c)
torch.conj(c)
torch.conj_physical(c)
torch.view_as_real(c)
torch.complex(x, y)
torch.polar(x, y)
torch.neg(x)
torch.sign(n)
torch.sgn(c)
torch.signbit(n)
torch.ceil(n)
torch.floor(n)
torch.round(n)
torch.round(n, decimals=2)
torch.trunc(n)
torch.frac(n)
torch.frexp(n)
torch.ldexp(x, y)
torch.copysign(x, n)
torch.nextafter(x, y)
torch.square(x)
torch.sqrt(x) ~ x
torch.rsqrt(x) ~ x
torch.reciprocal(x) ~ x
torch.exp(x) ~ x
torch.exp(c)
torch.exp2(x)
torch.expm1(x)
torch.log(x) ~ x
torch.log(c)
torch.log2(x)
torch.log10(x)
torch.log1p(x)
torch.sin(x) ~ x
torch.sin(c)
torch.cos(x) ~ x
torch.tan(x)
torch.asin(x)
torch.acos(x)
torch.atan(x)
torch.atan2(x, y) ~ x y
torch.sinh(x)
torch.cosh(x)
torch.tanh(n) ~ n
torch.asinh(x)
torch.acosh(p)
torch.atanh(x)
torch.sinc(n)
torch.sigmoid(n) ~ n
torch.logit(x) ~ x
torch.erf(n) ~ n
torch.erfc(n)
torch.erfinv(x)
torch.lgamma(p)
torch.digamma(p)
torch.polygamma(1, p)
torch.mvlgamma(p, 2)
torch.i0(n)
torch.special.i0e(n)
torch.special.i1(n)
torch.special.i1e(n)
torch.special.ndtr(n)
torch.special.ndtri(x)
torch.special.log_ndtr(n)
torch.special.entr(x)
torch.special.erfcx(n)
torch.special.xlog1py(x, y)
torch.special.zeta(p, x)
torch.igamma(p, x)
torch.igammac(p, x)
torch.xlogy(x, y)
torch.hypot(x, y)
torch.logaddexp(x, y) ~ x y
torch.logaddexp2(x, y)
torch.deg2rad(x)
torch.rad2deg(x)
torch.heaviside(n, x)
torch.gcd(i, j)
torch.lcm(i, j)
torch.maximum(x, y) ~ x y
torch.minimum(x, y)
torch.fmax(x, y)
torch.fmin(x, y)
torch.clamp(n, -1, 1) ~ n
torch.clamp(n, x, y)
torch.clamp_min(n, 0)
torch.clamp_max(n, 0)
torch.nan_to_num(x)
torch.where(b, x, y) ~ x y
x == y
x != y
x < y
x <= y
x > y
x >= y
i == j
torch.eq(x, 0.5)
torch.isclose(x, y)
torch.allclose(x, x)
torch.equal(x, x)
torch.isnan(x)
torch.isinf(x)
torch.isfinite(x)
torch.isposinf(x)
torch.isneginf(x)
torch.isreal(x)
torch.isin(i, index)
b & d
b | d
b ^ d
~b
i & j
i << 2
torch.bitwise_right_shift(i, bits)
torch.logical_and(b, d)
torch.logical_or(x, y)
torch.logical_xor(b, d)
torch.logical_not(x)
x.to(torch.float64)
x.to(torch.int64)
x.half()
x.bfloat16()
x.bool()
i.float()
b.float()
bytes_.float()
x.clone()
t.contiguous()
halved.contiguous()
image.contiguous(memory_format=torch.channels_last)
torch.zeros(1000, 1000)
torch.ones(1000, 1000)
torch.full((1000, 1000), 2.5)
torch.empty(1000, 1000)
torch.zeros_like(x)
torch.eye(1000)
torch.arange(1000000)
torch.arange(0, 1, 1e-6)
torch.linspace(0, 1, 1000000)
torch.logspace(0, 1, 1000000)
torch.rand(1000, 1000)
torch.randn(1000, 1000)
torch.randint(0, 1000, (1000, 1000))
torch.randperm(1000000)
torch.bernoulli(x)
torch.normal(x, y)
torch.multinomial(x, 10, replacement=True)
z.uniform_()
z.exponential_()
F.dropout(x, 0.5) ~ x
F.rrelu(n, training=True)
x.sum() ~ x
x.sum(0) ~ x
x.sum(1) ~ x
t.sum(1)
cube.sum(1)
cube.sum((0, 2))
i.sum()
b.sum()
c.sum(1)
x.mean(1) ~ x
x.std(1) ~ x
x.var(0) ~ x
torch.var_mean(x, 1)
torch.std_mean(x, 0)
x.prod(1) ~ x
x.nansum(1)
x.nanmean(1)
x.amax(1) ~ x
x.amax(0)
x.amin(1)
torch.aminmax(x)
x.max()
x.max(1) ~ x
x.min(0)
x.argmax(1)
x.argmax(0)
x.argmin()
x.norm() ~ x
x.norm(dim=1) ~ x
x.norm(p=1, dim=1)
torch.linalg.vector_norm(x, 3, dim=1)
torch.linalg.matrix_norm(matrices)
x.logsumexp(1) ~ x
b.all()
b.all(1)
b.any(1)
torch.count_nonzero(b)
x.median(1) ~ x
x.nanmedian(1)
i.mode(1)
x.kthvalue(500, 1)
x.quantile(0.3, dim=1)
x.nanquantile(0.3, dim=1)
x.cumsum(1) ~ x
x.cumsum(0)
x.cumprod(1) ~ x
x.cummax(1)
x.cummin(0)
x.logcumsumexp(1) ~ x
torch.trapezoid(x, dim=1)
torch.cumulative_trapezoid(x, dim=1)
torch.diff(x)
torch.gradient(x)
x.trace()
torch.dist(x, y)
torch.renorm(x, 2, 0, 1.0) ~ x
x.sort(1) ~ x
x.sort(0)
x.argsort(1)
i.sort(1)
flat.sort()
x.msort()
x.topk(10, 1) ~ x
flat.topk(100)
torch.unique(i)
torch.unique_consecutive(i)
torch.unique(bits, return_inverse=True, return_counts=True)
torch.searchsorted(edges, x)
torch.bucketize(x, edges)
torch.histc(x, 100)
torch.histogram(x, 100)
torch.bincount(i.view(-1))
torch.nonzero(b)
torch.argwhere(b)
x[b]
torch.masked_select(x, b) ~ x
x.masked_fill(b, 0.0) ~ x
x.masked_scatter(b, y)
x[index] ~ x
x[index, index]
x[:, index] ~ x
x[:, ::2].clone()
torch.gather(x, 1, i) ~ x
torch.gather(x, 0, i)
torch.take(x, flat_index)
torch.take_along_dim(x, i, 1)
torch.index_select(x, 0, index) ~ x
torch.index_select(x, 1, index)
x.index_add(0, index, y)
x.index_copy(0, index, y)
x.index_fill(0, index, 1.0)
x.index_put((index,), y)
x.index_put((index,), y, accumulate=True)
x.index_reduce(0, index, y, "prod")
x.scatter(1, i, y) ~ x y
x.scatter_add(1, i, y) ~ x y
x.scatter_add(0, i, y)
x.scatter_reduce(1, i, y, "amax")
x.scatter_reduce(1, i, y, "mean")
x.put(flat_index, flat)
torch.repeat_interleave(row, 1000)
x.repeat(2, 2)
x.tile(2, 2)
x.roll(3, 1)
x.flip(0)
x.flip(1)
x.rot90()
x.tril()
x.triu()
torch.tril_indices(1000, 1000)
x.diag()
torch.diag_embed(cube[0])
torch.diagflat(row)
torch.cat((x, y)) ~ x y
torch.cat((x, y), 1) ~ x y
torch.stack((x, y)) ~ x y
torch.stack((x, y), 2)
torch.hstack((x, y))
torch.dstack((x, y))
torch.block_diag(cube[0], cube[1], cube[2])
torch.kron(cube[0, :30, :30], cube[1, :30, :30])
torch.outer(row, row) ~ row
torch.meshgrid(row, row, indexing="ij")[0].contiguous()
torch.cartesian_prod(row, row)
torch.combinations(row)
x.unfold(1, 4, 2).contiguous()
torch.narrow_copy(x, 0, 10, 900)
x.expand(2, 1000, 1000).contiguous()
x.select_scatter(row, 0, 3)
x.slice_scatter(y[:10], 0, 5, 15)
x.diagonal_scatter(row)
x @ y ~ x y
x @ t
torch.mv(x, row) ~ x row
torch.dot(flat, line) ~ flat
torch.vdot(flat, line)
torch.addmm(x, y, z)
torch.addmv(row, x, row)
torch.addr(x, row, row)
torch.bmm(matrices, others) ~ matrices others
torch.baddbmm(cube, matrices, others)
torch.addbmm(cube[0], matrices, others)
torch.einsum("bij,bkj->bik", matrices, others) ~ matrices others
torch.einsum("ij,ij->i", x, y)
torch.tensordot(cube, others, 2)
torch.inner(x, y)
c.conj() @ e.t()
torch.cdist(tall, tall) ~ tall
F.pdist(tall)
torch.cov(x)
torch.corrcoef(x)
torch.cross(x[:, :999].reshape(-1, 3), y[:, :999].reshape(-1, 3))
torch.matrix_exp(matrices)
torch.linalg.matrix_power(matrices, 5)
torch.linalg.multi_dot((x, y, z))
torch.linalg.det(regular) ~ regular
torch.linalg.slogdet(regular)
torch.linalg.inv(regular) ~ regular
torch.linalg.solve(regular, others) ~ regular others
torch.linalg.solve_triangular(lower, others, upper=False)
torch.linalg.cholesky(definite) ~ definite
torch.cholesky_solve(others, lower)
torch.cholesky_inverse(lower)
torch.linalg.lu_factor(regular)
torch.linalg.lu(regular)
torch.linalg.ldl_factor(definite)
torch.linalg.qr(matrices) ~ matrices
torch.geqrf(matrices)
torch.linalg.eigh(definite) ~ definite
torch.linalg.eigvalsh(definite)
torch.linalg.eigvals(matrices)
torch.linalg.eig(matrices)
torch.linalg.svd(matrices) ~ matrices
torch.linalg.svdvals(matrices)
torch.linalg.pinv(matrices)
torch.linalg.lstsq(regular, others)
torch.linalg.cond(matrices)
torch.linalg.matrix_rank(matrices)
torch.linalg.cross(x[:, :3], y[:, :3])
torch.linalg.vander(row, N=1000)
torch.fft.fft(x) ~ x
torch.fft.fft(c)
torch.fft.ifft(c)
torch.fft.rfft(x) ~ x
torch.fft.irfft(c)
torch.fft.hfft(c)
torch.fft.fft2(x)
torch.fft.rfft2(x)
torch.fft.fftn(cube)
torch.fft.fft(flat)
torch.fft.fftshift(x)
torch.stft(flat, 1024, return_complex=True, window=torch.ones(1024))
F.relu(n) ~ n
F.relu6(n)
F.leaky_relu(n) ~ n
F.elu(n) ~ n
F.selu(n)
F.celu(n)
F.gelu(n) ~ n
F.gelu(n, approximate="tanh") ~ n
F.silu(n) ~ n
F.mish(n) ~ n
F.softplus(n) ~ n
F.softsign(n)
F.softshrink(n)
F.hardshrink(n)
F.tanhshrink(n)
F.hardtanh(n)
F.hardsigmoid(n)
F.hardswish(n) ~ n
F.logsigmoid(n) ~ n
F.threshold(n, 0.1, 0.2)
F.prelu(n, row) ~ n row
F.glu(n) ~ n
F.softmax(n, 1) ~ n
F.softmax(n, 0) ~ n
F.log_softmax(n, 1) ~ n
F.softmin(n, 1)
F.gumbel_softmax(n)
F.normalize(n) ~ n
F.cross_entropy(n, target) ~ n
F.nll_loss(n, target) ~ n
F.mse_loss(x, y) ~ x
F.l1_loss(x, y) ~ x
F.smooth_l1_loss(x, y) ~ x
F.huber_loss(x, y)
F.binary_cross_entropy(x, truth) ~ x
F.binary_cross_entropy_with_logits(n, truth) ~ n
F.kl_div(x, y)
F.poisson_nll_loss(x, y)
F.gaussian_nll_loss(x, y, z)
F.hinge_embedding_loss(x, signs)
F.soft_margin_loss(x, signs)
F.margin_ranking_loss(x, y, signs)
F.multi_margin_loss(x, target)
F.multilabel_soft_margin_loss(x, truth)
F.cosine_embedding_loss(x, y, signs[0])
F.cosine_similarity(x, y) ~ x
F.pairwise_distance(x, y)
F.triplet_margin_loss(x, y, z) ~ x
F.ctc_loss(F.log_softmax(series.permute(2, 0, 1), 2), index[:320].view(16, 20) % 63 + 1, (1000,) * 16, (20,) * 16)
F.linear(x, weight, row) ~ x weight
F.bilinear(tall, tall, floats_(50, 100, 100))
F.embedding(words, table) ~ table
F.embedding_bag(words, table) ~ table
F.one_hot(index, 1000)
F.batch_norm(image, channel, channel, training=True) ~ image
F.batch_norm(image, channel, channel)
F.layer_norm(x, (1000,), row, row) ~ x
F.group_norm(image, 8, channel, channel) ~ image
F.instance_norm(image) ~ image
F.local_response_norm(image, 5)
F.conv1d(series, kernel1) ~ series kernel1
F.conv2d(image, kernel) ~ image kernel
F.conv2d(image, kernel, stride=2, padding=1) ~ image kernel
F.conv2d(image, depthwise, groups=32, padding=1) ~ image depthwise
F.conv2d(image, kernel, dilation=2)
F.conv3d(volume, kernel3) ~ volume kernel3
F.conv_transpose1d(series, kernel1)
F.conv_transpose2d(image, kernel, stride=2) ~ image kernel
F.conv_transpose3d(volume, kernel3)
F.max_pool1d(series, 2)
F.max_pool2d(image, 2) ~ image
F.max_pool2d(image, 3, 2, 1) ~ image
F.max_pool3d(volume, 2)
F.avg_pool1d(series, 2)
F.avg_pool2d(image, 2) ~ image
F.avg_pool3d(volume, 2)
F.lp_pool2d(image, 2, 2)
F.adaptive_avg_pool2d(image, 7) ~ image
F.adaptive_max_pool2d(image, 7)
F.adaptive_avg_pool3d(volume, 5)
F.fractional_max_pool2d(image, 2, output_size=30)
F.max_unpool2d(*F.max_pool2d(image, 2, return_indices=True), 2)
F.pad(image, (1, 1, 1, 1)) ~ image
F.pad(image, (1, 1, 1, 1), "reflect") ~ image
F.pad(image, (1, 1, 1, 1), "replicate")
F.pad(image, (1, 1, 1, 1), "circular")
F.interpolate(image, scale_factor=2) ~ image
F.interpolate(image, scale_factor=2, mode="bilinear") ~ image
F.interpolate(image, scale_factor=2, mode="bicubic")
F.interpolate(series, scale_factor=2, mode="linear")
F.interpolate(volume, scale_factor=2, mode="trilinear")
F.interpolate(image, size=32, mode="area")
F.grid_sample(image, grid, align_corners=False) ~ image
F.affine_grid(floats_(8, 2, 3), (8, 3, 250, 250))
F.unfold(image, 3) ~ image
F.fold(F.unfold(image, 2, stride=2), 64, 2, stride=2)
F.pixel_shuffle(image, 2)
F.pixel_unshuffle(image, 2)
F.channel_shuffle(image, 4)
"""


def rows():
    """(expression, names of the tensors that get a gradient) of every measurement."""
    for line in OPERATORS.strip().splitlines():
        expression, _, leaves = line.partition(" ~ ")
        yield expression, []
        if leaves:
            yield expression, leaves.split()


def prepare(torch, expression, leaves):
    """A function without arguments that runs the expression once, with the backward pass where there are leaves."""
    scope = dict(tensors(torch) if not hasattr(prepare, "tensors") else prepare.tensors)
    prepare.tensors = dict(scope)
    scope.update(torch=torch, F=importlib.import_module(torch.__name__ + ".nn.functional"), floats_=lambda *shape: torch.ones(*shape) * 0.5)
    for name in leaves:
        scope[name] = scope[name].detach().clone().requires_grad_()
    if not leaves:
        return eval(f"lambda: {expression}", scope)
    forward, inputs = eval(f"lambda: {expression}", scope), [scope[name] for name in leaves]
    results = forward()
    results = [r for r in (results if isinstance(results, tuple) else (results,)) if r.requires_grad]
    directions = [torch.ones_like(r) for r in results]

    def step():
        outputs = forward()
        outputs = [r for r in (outputs if isinstance(outputs, tuple) else (outputs,)) if r.requires_grad]
        return torch.autograd.grad(outputs, inputs, directions, allow_unused=True)

    return step


def serve(module, threads):
    """Answers requests on standard input: how many calls fill a block, then seconds of blocks."""
    torch = importlib.import_module(module)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    function = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["what"] == "prepare":
                function = prepare(torch, request["expression"], request["leaves"])
                function()
                begun = time.perf_counter()
                function()
                answer = time.perf_counter() - begun
            else:
                begun = time.perf_counter()
                for _ in range(request["count"]):
                    function()
                answer = (time.perf_counter() - begun) / request["count"]
        except Exception as error:
            answer = f"{type(error).__name__}: {error}".splitlines()[0][:150]
        print(json.dumps(answer), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", default=os.environ.get("REFERENCE") or sys.executable, metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", metavar="REGEX", help="the expressions that match")
    parser.add_argument("--above", type=float, default=0, metavar="RATIO", help="print the rows whose ratio is above")
    parser.add_argument("--serve", metavar="MODULE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(args.serve, args.threads)
    print(f"msadapter and PyTorch {version_of(args.reference)}, {args.threads} threads, medians of {BLOCKS} blocks in turns, microseconds")
    script = os.path.abspath(__file__)
    sides = [Side(sys.executable, "msadapter.pytorch", args.threads, script), Side(args.reference, "torch", args.threads, script)]
    ratios, failed = [], 0
    for expression, leaves in rows():
        if not re.search(args.only, expression):
            continue
        name = expression + (" and gradient" if leaves else "")
        once = [side.ask(what="prepare", expression=expression, leaves=leaves) for side in sides]
        if any(isinstance(answer, str) for answer in once):
            failed += 1
            print(f"{name}: " + "; ".join(str(answer) for answer in once), flush=True)
            continue
        counts = [max(1, int(BLOCK_SECONDS / max(seconds, 1e-7))) for seconds in once]
        times = ([], [])
        for block in range(BLOCKS + 1):
            for side, count, seconds in zip(sides, counts, times):
                took = side.ask(what="run", count=count)
                if block:
                    seconds.append(took)
        ours, theirs = map(statistics.median, times)
        ratios.append(ours / theirs)
        if ours / theirs > args.above:
            print(f"{ours / theirs:6.2f} {1e6 * ours:12.1f} {1e6 * theirs:12.1f}  {name}", flush=True)
    for side in sides:
        side.close()
    if ratios:
        above = sum(ratio > 1.5 for ratio in ratios)
        print(f"{len(ratios)} measured, {failed} failed; median ratio {statistics.median(ratios):.2f}, {sum(r <= 1 for r in ratios)} not slower, {above} above 1.5")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
