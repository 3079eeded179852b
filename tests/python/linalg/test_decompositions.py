"""Decompositions give back what they were made of, refuse what has none, and have the derivatives that differences show."""

import math

import pytest

import msadapter.pytorch as torch

TYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]


def random(*sizes, dtype=torch.float64):
    torch.manual_seed(sum(sizes))
    return torch.randn(*sizes, dtype=dtype)


def positive(*sizes, dtype=torch.float64):
    a = random(*sizes, dtype=dtype)
    return a @ a.mH + torch.eye(sizes[-1], dtype=dtype)


def close(a, b):
    assert a.shape == b.shape
    single = a.dtype in (torch.float32, torch.complex64)
    assert torch.allclose(a, b, atol=1e-3 if single else 1e-9, rtol=1e-3 if single else 1e-9)


@pytest.mark.parametrize("dtype", TYPES)
def test_factors_multiply_to_the_matrix(dtype):
    a, square = random(2, 4, 3, dtype=dtype), random(2, 4, 4, dtype=dtype)
    p = positive(2, 4, 4, dtype=dtype)
    L = torch.linalg.cholesky(p)
    close(L @ L.mH, p)
    P, L, U = torch.linalg.lu(a)
    close(P @ L @ U, a)
    for mode in ("reduced", "complete"):
        Q, R = torch.linalg.qr(a, mode)
        close(Q @ R, a)
    for full in (False, True):
        U, S, Vh = torch.linalg.svd(a, full)
        close(U[..., :3] * S.unsqueeze(-2) @ Vh[..., :3, :], a)
    w, V = torch.linalg.eigh(p)
    close(V * w.unsqueeze(-2) @ V.mH, p)
    w, V = torch.linalg.eig(square)
    close(V * w.unsqueeze(-2), square.to(V.dtype) @ V)


@pytest.mark.parametrize("dtype", TYPES)
def test_solvers_solve(dtype):
    a, b = random(2, 4, 4, dtype=dtype), random(2, 4, 3, dtype=dtype)
    close(a @ torch.linalg.solve(a, b), b)
    close(torch.linalg.solve(a, b.mT, left=False) @ a, b.mT)
    close(a @ torch.linalg.inv(a), torch.eye(4, dtype=dtype).expand(2, 4, 4))
    LU, pivots = torch.linalg.lu_factor(a)
    close(a @ torch.linalg.lu_solve(LU, pivots, b), b)
    close(a.mH @ torch.linalg.lu_solve(LU, pivots, b, adjoint=True), b)
    close(a.triu() @ torch.linalg.solve_triangular(a, b, upper=True), b)
    tall = random(2, 5, 3, dtype=dtype)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        close(torch.linalg.lstsq(tall, tall @ b[..., :3, :], driver=driver).solution, b[..., :3, :])
    symmetric = a + a.mT
    LD, pivots = torch.linalg.ldl_factor(symmetric)
    close(symmetric @ torch.linalg.ldl_solve(LD, pivots, b), b)


def test_empty_matrices_and_batches():
    none, batch = torch.zeros(0, 0), torch.zeros(0, 3, 3)
    assert torch.linalg.det(none).item() == 1
    assert torch.linalg.inv(none).shape == (0, 0) and torch.linalg.inv(batch).shape == (0, 3, 3)
    assert torch.linalg.cholesky(batch).shape == (0, 3, 3) and torch.linalg.eigh(none)[0].shape == (0,)
    assert torch.linalg.svd(torch.zeros(3, 0))[0].tolist() == torch.eye(3).tolist()
    assert torch.linalg.qr(torch.zeros(3, 0), "complete")[0].tolist() == torch.eye(3).tolist()
    assert torch.linalg.eig(batch)[1].shape == (0, 3, 3) and torch.linalg.pinv(torch.zeros(2, 0)).shape == (0, 2)


def test_matrices_without_a_decomposition_raise_linalg_error():
    assert issubclass(torch.linalg.LinAlgError, RuntimeError)
    with pytest.raises(torch.linalg.LinAlgError, match="the leading minor of order 2 is not positive-definite"):
        torch.linalg.cholesky(torch.tensor([[1.0, 0.0], [0.0, -1.0]]))
    with pytest.raises(torch.linalg.LinAlgError, match=r"linalg.inv: \(Batch element 1\): The diagonal element 2 is zero"):
        torch.linalg.inv(torch.stack([torch.eye(2), torch.tensor([[1.0, 1.0], [1.0, 1.0]])]))
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.solve(torch.zeros(2, 2), torch.ones(2))
    with pytest.raises(RuntimeError):
        torch.linalg.svd(torch.full((3, 3), math.nan))
    with pytest.raises(RuntimeError):
        torch.linalg.eig(torch.full((3, 3), math.inf))
    assert torch.linalg.cholesky_ex(-torch.eye(2)).info.item() == 1


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_non_finite_input_raises_and_does_not_end_the_process(value, dtype):
    a = torch.full((3, 3), value, dtype=dtype)
    for function in (torch.linalg.eigh, torch.linalg.svd, torch.linalg.svdvals, torch.linalg.eig, torch.linalg.pinv):
        with pytest.raises(RuntimeError):
            function(a)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        for x, y in ((a, torch.ones(3, 3, dtype=dtype)), (torch.ones(3, 3, dtype=dtype), a)):
            with pytest.raises(RuntimeError):
                torch.linalg.lstsq(x, y, driver=driver)


def test_pivots_that_are_none_are_refused():
    a, b = torch.eye(3), torch.ones(3, 1)
    for bad in ([0, 2, 3], [4, 2, 3], [-1, 2, 3]):
        pivots = torch.tensor(bad, dtype=torch.int32)
        with pytest.raises(RuntimeError):
            torch.linalg.lu_solve(a, pivots, b)
        with pytest.raises(RuntimeError):
            torch.lu_unpack(a, pivots)
    with pytest.raises(RuntimeError):
        torch.linalg.ldl_solve(a, torch.tensor([1, 2, -3], dtype=torch.int32), b)


def first_and_second_derivative(function, a):
    """Both along one direction, by the tape and by central differences."""
    direction, h = random(*reversed(a.shape)).mT.contiguous(), 1e-4

    def slope(x, graph=False):
        x = x.detach().requires_grad_()
        g, = torch.autograd.grad(function(x), x, create_graph=True)
        first = (g * direction).sum()
        return (first, torch.autograd.grad(first, x)[0]) if graph else first.item()

    first, second = slope(a, True)
    up, down = a + h * direction, a - h * direction
    assert abs(first.item() - (function(up).item() - function(down).item()) / (2 * h)) < 1e-4 * max(1, abs(first.item()))
    by_differences = (slope(up) - slope(down)) / (2 * h)
    assert abs((second * direction).sum().item() - by_differences) < 1e-4 * max(1, abs(by_differences))


weights = random(4, 4)
FUNCTIONS = {
    "cholesky": lambda a: (weights * torch.linalg.cholesky(a @ a.mT + 4 * torch.eye(4, dtype=a.dtype))).sum(),
    "lu": lambda a: sum((weights * t).sum() for t in torch.linalg.lu(a)[1:]),
    "inv": lambda a: (weights * torch.linalg.inv(a)).sum(),
    "det": lambda a: torch.linalg.det(a),
    "slogdet": lambda a: torch.linalg.slogdet(a)[1],
    "qr": lambda a: sum((weights * t).sum() for t in torch.linalg.qr(a)),
    "eigh": lambda a: (weights[0] * torch.linalg.eigh(a + a.mT)[0]).sum() + (weights * torch.linalg.eigh(a + a.mT)[1].abs()).sum(),
    "eig": lambda a: torch.linalg.eigvals(a).abs().sum() + (torch.linalg.eig(a)[1].abs() ** 2).sum(),
    "svd": lambda a: (weights[0] * torch.linalg.svdvals(a)).sum() + (weights * torch.linalg.svd(a)[0].abs()).sum(),
    "solve": lambda a: (weights * torch.linalg.solve(a, weights + a)).sum(),
    "lu_solve": lambda a: (weights * torch.linalg.lu_solve(*torch.linalg.lu_factor(a), weights, adjoint=True)).sum(),
    "triangular": lambda a: (weights * torch.linalg.solve_triangular(a + 4 * torch.eye(4, dtype=a.dtype), weights, upper=True, left=False)).sum(),
    "matrix_exp": lambda a: (weights * torch.matrix_exp(a)).sum(),
    "pinv": lambda a: (weights[:3] * torch.linalg.pinv(a[:, :3])).sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_agree_with_differences(name):
    torch.manual_seed(7)
    first_and_second_derivative(FUNCTIONS[name], 0.3 * torch.randn(4, 4, dtype=torch.float64) + torch.diag(torch.arange(2.0, 6.0, dtype=torch.float64)))
