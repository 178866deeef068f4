"""Powers with small multiples of one half as exponents: accuracy, and every special value of C99's pow."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import hlo, lax

EXPONENTS = [k / 2 for k in range(-16, 17)]
DTYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32)}
LIMITS = {"f16": 0.502, "bf16": 0.501, "f32": 0.501}
"""In units in the last place."""

TEXT = """HloModule m
ENTRY e {{
  x = {type}[{size}] parameter(0)
  n = {type}[] constant({n})
  ns = {type}[{size}] broadcast(n), dimensions={{}}
  ROOT y = {type}[{size}] power(x, ns)
}}"""


def arguments(dtype: np.dtype) -> np.ndarray:
    rng = np.random.default_rng(5)
    limits = ml_dtypes.finfo(dtype)
    usual = np.exp(rng.uniform(-12, 12, 600)) * rng.choice((1, 1, -1), 600)
    wide = np.exp2(rng.uniform(float(limits.minexp), float(limits.maxexp), 300)) * rng.choice((1, 1, -1), 300)
    with np.errstate(over="ignore"):
        edges = [0.0, 1.0, 2.0, np.inf, np.nan, limits.max, limits.smallest_normal, limits.smallest_subnormal]
        return np.concatenate([usual, wide, edges, -np.array(edges, np.float64)]).astype(dtype)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("n", EXPONENTS)
def test_accuracy_and_special_values(name: str, n: float) -> None:
    x = arguments(DTYPES[name])
    (got,) = hloom.run_hlo(TEXT.format(type=name, size=x.size, n=n), x)
    got = np.asarray(got)
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), np.longdouble(n))
        rounded = exact.astype(np.float64).astype(x.dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
    np.testing.assert_array_equal(np.signbit(got)[~np.isnan(rounded)], np.signbit(rounded)[~np.isnan(rounded)])
    if n == 3:  # x * x * x in the type itself
        return
    finite = np.isfinite(rounded) & np.isfinite(got)
    np.testing.assert_array_equal(got[~finite & ~np.isnan(rounded)], rounded[~finite & ~np.isnan(rounded)])
    with np.errstate(over="ignore"):  # above the largest number
        ulp = np.abs(np.spacing(rounded[finite])).astype(np.float64)
    wrong = np.abs(got[finite].astype(np.longdouble) - exact[finite]) / ulp
    assert wrong.max() <= LIMITS[name], (x[finite][wrong.argmax()], wrong.max())


@pytest.mark.parametrize(("n", "op"), [(0.5, "sqrt"), (-1.5, "sqrt"), (4, "multiply"), (1.25, "power"), (8.5, "power")])
def test_only_small_multiples_of_a_half(n: float, op: str) -> None:
    text = hloom.jit(lambda x: x**n).lower(np.ones(3, np.float32)).compile().as_text()
    assert f" {op}(" in text and (" power(" in text) == (op == "power")


@pytest.mark.parametrize("n", [-0.5, 1.5, 2.5, 4.0])
def test_nothing_changes_in_f64_and_for_complex_numbers(n: float) -> None:
    for name in ("f64", "c64"):
        text = TEXT.format(type=name, size=3, n=n if name == "f64" else f"({n}, 0)")
        assert " power(" in hlo.optimize(hlo.parse(text))[0].to_text()


def test_the_root_of_f64() -> None:
    x = np.array([-np.inf, -1.0, -0.0, 0.0, 2.0, 1e-310, np.inf, np.nan])
    (got,) = hloom.run_hlo(TEXT.format(type="f64", size=8, n=0.5), x)
    expected = np.array([np.inf, np.nan, 0.0, 0.0, np.sqrt(2.0), np.sqrt(1e-310), np.inf, np.nan])
    np.testing.assert_array_equal(np.asarray(got), expected)
    assert not np.signbit(np.asarray(got)[2])


NEVER_NEGATIVE = {
    "a square": lambda x: x * x,
    "a sum of squares": lambda x: jnp.sum(x * x, 0),
    "a sum of squares and a number": lambda x: jnp.sum(x * x, 0) + 0.01,
    "a quotient": lambda x: jnp.abs(x) / jnp.exp(x),
    "a choice": lambda x: jnp.where(x > 1, x * x, 2.0),
}
PERHAPS_NEGATIVE = {
    "an argument": lambda x: x,
    "a product": lambda x: x * (x + 1),
    "a sum": lambda x: jnp.sum(x, 0),
    "a sum with a negative number": lambda x: x * x - 0.01,
    "a sum from -0": lambda x: lax.reduce(x * x, np.float32(-0.0), lax.add, (0,)),
    "a negated square": lambda x: -(x * x),
    "a choice": lambda x: jnp.where(x > 1, x * x, x),
}


@pytest.mark.parametrize("n", [1.5, -1.5, 2.5])
@pytest.mark.parametrize("base", [*NEVER_NEGATIVE.items(), *PERHAPS_NEGATIVE.items()])
def test_the_root_of_a_number_that_is_never_negative_needs_no_tests(base: tuple[str, Any], n: float) -> None:
    name, function = base
    x = np.array([[-np.inf, -1, -0.0, 0, 2, 1e-30, np.inf, np.nan], [1, 2, -0.0, -0.0, -2, 1, -np.inf, 3]], np.float32)
    compiled = hloom.jit(lambda x: function(x) ** n)
    text = compiled.lower(x).compile().as_text()
    assert ("constant(-inf)" not in text) == (function in NEVER_NEGATIVE.values())
    with np.errstate(all="ignore"):
        exact = np.power(np.asarray(hloom.jit(function)(x)).astype(np.float64), n).astype(np.float32)
    got, known = np.asarray(compiled(x)), ~np.isnan(exact)
    np.testing.assert_array_equal(got, exact, err_msg=name)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(exact[known]), err_msg=name)


def test_derivatives() -> None:
    x = jnp.array([0.5, 2.0, 3.0])
    got = hloom.grad(lambda x: jnp.sum(x**-1.5))(x)
    np.testing.assert_allclose(got, -1.5 * np.asarray(x) ** -2.5, rtol=1e-6)
    assert isinstance(hlo.parse(hloom.jit(hloom.grad(lambda x: jnp.sum(x**2.5))).lower(x).as_text()), hlo.HloModule)
