"""Methods that approximate a few singular vectors or eigenpairs find those that the whole decomposition has."""

import pytest

import msadapter.pytorch as torch


def symmetric(n, *batch):
    torch.manual_seed(n)
    a = torch.randn(*batch, n, n, dtype=torch.float64)
    return a @ a.mT


@pytest.mark.parametrize("largest", [True, False])
def test_lobpcg_finds_the_extreme_eigenpairs(largest):
    A, B = symmetric(20, 2), symmetric(20) + 20 * torch.eye(20, dtype=torch.float64)
    values, vectors = torch.lobpcg(A, 3, largest=largest, tol=1e-9)
    expected = torch.linalg.eigvalsh(A)
    expected = expected.flip(-1)[..., :3] if largest else expected[..., :3]
    assert torch.allclose(values, expected, atol=1e-6)
    assert torch.allclose(A @ vectors, vectors * values.unsqueeze(-2), atol=1e-4)
    values, vectors = torch.lobpcg(A, 2, B, largest=largest, tol=1e-9)
    assert torch.allclose(A @ vectors, B @ vectors * values.unsqueeze(-2), atol=1e-4)


def test_lobpcg_refuses_what_it_cannot_do():
    with pytest.raises(ValueError):
        torch.lobpcg(symmetric(5), 2)
    with pytest.raises(NotImplementedError, match="tracker"):
        torch.lobpcg(symmetric(9), 1, tracker=print)
    with pytest.raises(NotImplementedError, match="derivative"):
        torch.lobpcg(symmetric(9).requires_grad_(), 1)


def test_low_rank_methods_recover_matrices_of_low_rank():
    torch.manual_seed(0)
    for m, n in ((30, 12), (12, 30)):
        a = torch.randn(m, 3, dtype=torch.float64) @ torch.randn(3, n, dtype=torch.float64)
        U, S, V = torch.svd_lowrank(a, 4)
        assert torch.allclose(U * S @ V.mT, a, atol=1e-9)
        U, S, V = torch.pca_lowrank(a, 4)
        assert torch.allclose(U * S @ V.mT, a - a.mean(-2, True), atol=1e-9)
