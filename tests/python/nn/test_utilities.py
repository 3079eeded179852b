"""Lazy parameters before their shape is known, and functional_call."""

import pytest

import msadapter.pytorch as torch
from msadapter.pytorch import nn
from msadapter.pytorch.nn.utils.stateless import functional_call


def test_nothing_is_computed_with_a_parameter_without_shape():
    layer = nn.LazyLinear(3)
    for wrong in (lambda: layer.weight + 1, lambda: torch.add(layer.weight, 1), lambda: layer.weight.sum()):
        with pytest.raises(ValueError, match="uninitialized parameter"):
            wrong()
    with pytest.raises(RuntimeError, match="uninitialized"):
        layer.share_memory()
    assert layer(torch.ones(2, 4)).shape == (2, 3)
    assert (layer.weight + 1).shape == (3, 4)


def test_functional_call_lends_names_that_the_module_lacks():
    class Scaled(nn.Linear):
        def forward(self, x):
            return super().forward(x) * getattr(self, "scale", 1.0)

    layer, x = Scaled(3, 2), torch.ones(1, 3)
    scale = torch.tensor(2.0, requires_grad=True)
    doubled = functional_call(layer, {"scale": scale, "weight": torch.ones(2, 3)}, x)
    assert torch.allclose(doubled, (3 + layer.bias) * 2)
    doubled.sum().backward()
    assert scale.grad is not None and not hasattr(layer, "scale")


@pytest.mark.parametrize("rows, columns", [(4, 4), (3, 5), (5, 3)])
@pytest.mark.parametrize("options", [{}, {"orthogonal_map": "cayley"}, {"orthogonal_map": "householder"}, {"use_trivialization": False}])
def test_orthogonal_weights_stay_orthogonal(rows, columns, options):
    layer = nn.utils.parametrizations.orthogonal(nn.Linear(columns, rows).double(), **options)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    before = layer.weight.detach().clone()
    layer(torch.ones(2, columns, dtype=torch.float64)).square().sum().backward()
    optimizer.step()
    w = layer.weight
    product = w @ w.t() if rows <= columns else w.t() @ w
    assert torch.allclose(product, torch.eye(min(rows, columns), dtype=torch.float64), atol=1e-8)
    assert not torch.allclose(w, before)
