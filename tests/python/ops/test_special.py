"""torch.special against published values, identities and numeric gradients."""

import math

import pytest

torch = pytest.importorskip("msadapter.pytorch")
special = torch.special


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def assert_gradient(function, x, step=1e-5):
    """The recorded gradient of function(x).sum() against central differences, elementwise functions only."""
    x.requires_grad_()
    function(x).sum().backward()
    with torch.no_grad():
        slope = (function(x + step) - function(x - step)) / (2 * step)
    assert torch.allclose(x.grad, slope, rtol=1e-7, atol=1e-8)


# Abramowitz and Stegun's tables, and DLMF.
VALUES = [
    ("i0e", (2.0,), 0.30850832255367103), ("i1", (1.0,), 0.56515910399248503), ("i1e", (10.0,), 0.12126268138445557),
    ("zeta", (2.0, 1.0), math.pi ** 2 / 6), ("entr", (0.5,), 0.5 * math.log(2)), ("erfcx", (1.0,), 0.42758357615580700),
    ("erfcx", (30.0,), 0.018795888861416751), ("ndtr", (-1.0,), 0.15865525393145705), ("ndtri", (0.025,), -1.9599639845400545),
    ("log_ndtr", (-20.0,), -203.91715537109727), ("gammainc", (2.0, 1.0), 1 - 2 / math.e), ("gammaincc", (0.5, 4.0), math.erfc(2)),
    ("bessel_j0", (1.0,), 0.76519768655796655), ("bessel_j1", (1.0,), 0.44005058574493352), ("bessel_y0", (1.0,), 0.08825696421567696),
    ("bessel_y1", (1.0,), -0.78121282130028872), ("modified_bessel_k0", (1.0,), 0.42102443824070834),
    ("modified_bessel_k1", (1.0,), 0.60190723019723458), ("modified_bessel_k0", (5.0,), 0.0036910983340425943),
    ("scaled_modified_bessel_k1", (0.5,), 1.6564411200033009 * math.exp(0.5)), ("spherical_bessel_j0", (0.0,), 1.0),
    ("airy_ai", (0.0,), 0.35502805388781724), ("airy_ai", (1.0,), 0.13529241631288141), ("airy_ai", (-5.0,), 0.35076100902411431),
    ("chebyshev_polynomial_t", (0.5, 3.0), -1.0), ("chebyshev_polynomial_u", (0.5, 2.0), 0.0), ("hermite_polynomial_h", (0.5, 3.0), -5.0),
    ("hermite_polynomial_he", (2.0, 3.0), 2.0), ("laguerre_polynomial_l", (1.0, 2.0), -0.5), ("legendre_polynomial_p", (0.5, 2.0), -0.125),
]


@pytest.mark.parametrize("name, arguments, expected", VALUES)
def test_function_gives_the_published_value(name, arguments, expected):
    result = getattr(special, name)(*[double(a) for a in arguments])
    assert result.dtype is torch.float64
    assert result.item() == pytest.approx(expected, rel=2e-14, abs=1e-15)


def test_functions_at_the_ends_of_their_domains():
    assert special.ndtri(double(0, 1)).tolist() == [-math.inf, math.inf]
    assert special.entr(double(0, -1)).tolist() == [0, -math.inf]
    assert special.xlog1py(double(0), double(-2)).item() == 0
    assert math.isnan(special.gammainc(double(-1), double(1)).item())
    assert special.modified_bessel_k0(double(0)).item() == math.inf
    assert special.hermite_polynomial_h(double(2), double(-1)).item() == 0


@pytest.mark.parametrize("name", ["i0e", "i1", "i1e", "entr", "ndtr", "log_ndtr", "erfcx", "ndtri", "multigammaln"])
def test_gradient_of_one_operand(name):
    extra = (2,) if name == "multigammaln" else ()
    assert_gradient(lambda t: getattr(special, name)(t, *extra), double(0.2, 0.5, 0.9) + (2 if extra else 0))


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "zeta"])
def test_gradient_by_the_second_operand(name):
    assert_gradient(lambda t: getattr(special, name)(double(1.5, 2.0, 3.0), t), double(0.5, 1.5, 4.0))


def test_incomplete_gamma_functions_add_up_to_one():
    a = torch.logspace(-2, 7, 40, dtype=torch.float64)
    for ratio in (0.5, 0.99, 1.0, 1.01, 2.0):
        total = torch.igamma(a, a * ratio) + torch.igammac(a, a * ratio)
        assert torch.allclose(total, torch.ones_like(a), rtol=0, atol=1e-12)


def test_frexp_takes_numbers_apart():
    mantissa, exponent = torch.frexp(torch.tensor([8.0, -0.3, 0.0]))
    assert exponent.dtype is torch.int32 and exponent.tolist() == [4, -1, 0]
    assert torch.equal(mantissa * 2.0 ** exponent, torch.tensor([8.0, -0.3, 0.0]))
    with pytest.raises(RuntimeError):
        torch.frexp(torch.tensor([1]))


def test_float_power_in_place_refuses_a_narrow_base():
    with pytest.raises(RuntimeError):
        torch.ones(2).float_power_(2)
    assert torch.tensor([3.0], dtype=torch.float64).float_power_(2).item() == 9
