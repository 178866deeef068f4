"""Polynomials of special functions are as long as the type of the result asks for, and no longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Polynomial

import hloom
from hloom import lax
from hloom.lax import special_tables
from hloom.lax.series import shortened
from hloom.scipy import special, stats
from support.evaluator_fixture import x64  # noqa: F401  # a fixture

_SERIES = ("ERFCX", "I0_NEAR", "I0_FAR", "I1_NEAR", "I1_FAR", "I0_LESS_I1_NEAR", "I0_LESS_I1_FAR")
_POWERS = {"LOG_GAMMA": 0.5, "DIGAMMA": 0.5, "STIRLING": 8.5**-2, "DIGAMMA_TAIL": 8.5**-2}


@pytest.mark.parametrize("bits", [18, 21, 34])
@pytest.mark.parametrize("name", [*_SERIES, *_POWERS])
def test_a_shortened_series_has_the_bits_asked_for(name: str, bits: int) -> None:
    table = getattr(special_tables, name)
    if name in _SERIES:
        low, high, whole = -1.0, 1.0, Chebyshev(table)
    else:
        high = _POWERS[name]
        low = -high if high == 0.5 else 0.0
        whole = Polynomial(table).convert(domain=(low, high), kind=Chebyshev)
    short = shortened(tuple(whole.coef), bits, (low, high))
    t = np.linspace(low, high, 2001)
    np.testing.assert_array_less(np.abs(Polynomial(short)(t) - whole(t)), 2.0**-bits * np.abs(whole(t)))
    assert len(short) < len(table)


_SHORT: dict[str, Callable[..., Any]] = {
    "lgamma": lax.lgamma,
    "digamma": lax.digamma,
    "erfc": lax.erfc,
    "bessel_i0e": lax.bessel_i0e,
    "bessel_i1e": lax.bessel_i1e,
    "i0": special.i0,
    "i1": special.i1,
    "gamma": special.gamma,
    "factorial": special.factorial,
    "erfcx": special.erfcx,
    "ndtr": special.ndtr,
    "ndtri": special.ndtri,
    "log_ndtr": special.log_ndtr,
    "dawsn": special.dawsn,
    "exp1": special.exp1,
    "expi": special.expi,
}


def _operations(function: Callable[..., Any], dtype: str) -> int:
    """Multiplications in the HLO text: more than half of each polynomial's operations."""
    return hloom.jit(function).lower(hloom.ShapeDtypeStruct((8,), dtype)).as_text().count("multiply(")


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", _SHORT)
def test_narrow_types_compute_fewer_terms(name: str) -> None:
    full, single, half = (_operations(_SHORT[name], dtype) for dtype in ("float64", "float32", "float16"))
    assert half < single < full


@pytest.mark.usefixtures("x64")
def test_functions_that_subtract_close_values_keep_all_terms() -> None:
    assert _operations(lambda x: special.betaln(x, x), "float32") == _operations(
        lambda x: special.betaln(x, x), "float64"
    )


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", _SHORT)
def test_float32_is_the_rounded_float64(name: str) -> None:
    rng = np.random.default_rng(3)
    if name == "ndtri":
        x = np.concatenate([rng.uniform(0, 1, 3000), 10.0 ** rng.uniform(-37, 0, 1000)])
    else:
        x = np.concatenate([rng.uniform(-9, 26, 3000), rng.normal(0, 1, 1000), 10.0 ** rng.uniform(-30, 30, 200)])
        x = np.concatenate([x, [0.0, -0.0, np.inf, -np.inf, np.nan, 8.0, 8.5, -1.0, 1.0, 2.0, 27.5]])
    x = x.astype(np.float32)
    found, wide = np.asarray(_SHORT[name](x)), np.asarray(_SHORT[name](x.astype(np.float64)))
    with np.errstate(over="ignore"):
        rounded = wide.astype(np.float32)
    special_places = ~np.isfinite(rounded) | (rounded == 0)
    np.testing.assert_array_equal(found[special_places], rounded[special_places])
    usual = ~special_places
    unit = np.spacing(np.abs(rounded[usual])).astype(np.float64)
    if name in ("lgamma", "digamma"):  # left of 0 both are right beside 1 only
        unit = np.maximum(unit, 2.0**-24)
    assert np.max(np.abs(found[usual] - wide[usual]) / unit) < 0.51


@pytest.mark.usefixtures("x64")
def test_one_logarithm_serves_all_pieces() -> None:
    def logarithms(function: Callable[..., Any], dtype: str) -> int:
        return hloom.jit(function).lower(hloom.ShapeDtypeStruct((8,), dtype)).as_text().count(" log(")

    assert logarithms(lax.lgamma, "float64") == 3
    assert logarithms(lax.lgamma, "float32") == 2
    assert logarithms(special.log_ndtr, "float64") == 1


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["exp1", "expi", "expn", "dawsn"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_series_have_a_length_that_data_do_not_change(name: str, dtype: str) -> None:
    function = getattr(special, name)
    called = (lambda x: function(3, x)) if name == "expn" else function
    assert " while(" not in hloom.jit(called).lower(hloom.ShapeDtypeStruct((8,), dtype)).as_text()


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_wofz_multiplies_real_numbers(dtype: str) -> None:
    """Products of complex numbers are not vectors."""
    text = hloom.jit(special.wofz).lower(hloom.ShapeDtypeStruct((8,), dtype)).as_text()
    products = [line for line in text.splitlines() if " multiply(" in line]
    assert sum("c128" in line for line in products) <= 1
    assert len(products) > 100


@pytest.mark.usefixtures("x64")
def test_the_terms_of_one_parameter_are_computed_once() -> None:
    """Operands are replaced outside of their domain each by itself: what depends on one number stays one number."""

    def products(argument: Callable[..., Any], parameters: int) -> int:
        shapes = [hloom.ShapeDtypeStruct((), "float32")] * parameters + [hloom.ShapeDtypeStruct((1000,), "float32")]
        text = hloom.jit(argument).lower(*shapes).compile().as_text()
        return sum("f64[1000]" in line and " multiply(" in line for line in text.splitlines())

    density = hloom.grad(lambda a, x: special.gammaincc(a, x).sum(), argnums=1)
    beta_density = hloom.grad(lambda a, b, x: special.betainc(a, b, x).sum(), argnums=2)
    assert products(density, 1) < 40
    assert products(beta_density, 2) < 80
    assert products(lambda a, b, x: stats.beta.logpdf(x, a, b), 2) < 80


@pytest.mark.usefixtures("x64")
def test_betaln_takes_one_logarithm_for_each_piece() -> None:
    text = hloom.jit(special.betaln).lower(*[hloom.ShapeDtypeStruct((8,), "float64")] * 2).as_text()
    assert text.count(" log(") == 4
    assert text.count(" log-plus-one(") == 1


@pytest.mark.usefixtures("x64")
def test_the_narrow_inverse_of_ndtr_needs_no_other_function_than_the_logarithm() -> None:
    text = hloom.jit(special.ndtri).lower(hloom.ShapeDtypeStruct((8,), "float32")).as_text()
    assert text.count(" log(") == 2
    assert not any(f" {name}(" in text for name in ("exponential", "sqrt", "divide", "erf-inv"))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["gamma", "factorial"])
def test_the_narrow_gamma_function_takes_one_exponential(name: str) -> None:
    text = hloom.jit(getattr(special, name)).lower(hloom.ShapeDtypeStruct((8,), "float32")).as_text()
    assert text.count(" exponential(") == 1
    assert " power(" not in text
