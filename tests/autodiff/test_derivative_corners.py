"""Derivatives at points where a number is right and a careless formula has NaN, infinity or zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import nn

inf, nan = np.inf, np.nan
HALF = math.sqrt(0.5)

# ---- the length and the angle of a point

HYPOT: list[tuple[float, float, tuple[float, float], tuple[tuple[float, float], tuple[float, float]]]] = [
    (2, 2, (HALF, HALF), ((HALF / 4, -HALF / 4), (-HALF / 4, HALF / 4))),
    (-2, 2, (-HALF, HALF), ((HALF / 4, HALF / 4), (HALF / 4, HALF / 4))),
    (3, -4, (0.6, -0.8), ((0.128, 0.096), (0.096, 0.072))),
    (0, 2, (0, 1), ((0.5, 0), (0, 0))),
    (2, 0, (1, 0), ((0, 0), (0, 0.5))),
    (0, 0, (0.5, 0.5), ((0, 0), (0, 0))),  # there is none: a convention, which is JAX's
    (inf, 1, (1, 0), ((0, 0), (0, 0))),
    (1, -inf, (0, -1), ((0, 0), (0, 0))),
    (-inf, inf, (-HALF, HALF), ((0, 0), (0, 0))),
    (3e38, 3e38, (HALF, HALF), ((0, 0), (0, 0))),
    (1e-40, 1e-40, (HALF, HALF), ((inf, -inf), (-inf, inf))),
    (1e30, 1e-30, (1, 0), ((0, 0), (0, 1e-30))),
    (nan, 1, (nan, nan), ((nan, nan), (nan, nan))),
]


@pytest.mark.parametrize("wrap", [lambda f: f, hloom.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("row", HYPOT, ids=str)
def test_hypot(row: Any, wrap: Any) -> None:
    x, y = np.float32(row[0]), np.float32(row[1])
    np.testing.assert_allclose(wrap(hloom.grad(jnp.hypot, (0, 1)))(x, y), row[2], rtol=1e-6, atol=1e-38)
    second = np.asarray(wrap(hloom.hessian(jnp.hypot, (0, 1)))(x, y))
    finite = np.isfinite(row[3]) | np.isnan(row[3])
    np.testing.assert_allclose(second[finite], np.array(row[3])[finite], rtol=1e-6, atol=1e-37)


ANGLES = [
    (1.0, 2.0), (-3.0, 0.5), (1e-30, 1e-30), (1e-30, -3e-30), (1e30, 1e30), (-1e30, 1e20), (1e-38, 1e38), (3e38, 1e38),
    (0.0, 2.0), (2.0, 0.0), (0.0, -1e-30), (1e25, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("y, x", ANGLES)
def test_arctan2(y: float, x: float) -> None:
    y32, x32 = np.float32(y), np.float32(x)
    a, b = float(y32), float(x32)
    length = math.hypot(a, b)
    expected = b / length / length, -a / length / length
    for f in (hloom.grad(jnp.arctan2, (0, 1)), hloom.jit(hloom.grad(jnp.arctan2, (0, 1)))):
        np.testing.assert_allclose(f(y32, x32), expected, rtol=1e-6, atol=1e-44)
    if 1e-10 < length < 1e10:
        second = hloom.hessian(jnp.arctan2, (0, 1))(y32, x32)
        across, mixed = 2 * a * b / length**4, (a * a - b * b) / length**4
        np.testing.assert_allclose(np.asarray(second), [[-across, mixed], [mixed, across]], rtol=1e-5, atol=1e-9)


def test_arctan2_at_infinity() -> None:
    for y, x in [(inf, 1.0), (1.0, -inf), (inf, inf), (-inf, 0.0)]:
        assert [float(g) for g in hloom.grad(jnp.arctan2, (0, 1))(y, x)] == [0, 0]
        assert not np.asarray(hloom.hessian(jnp.arctan2, (0, 1))(y, x)).any()


@pytest.mark.parametrize(
    ("z", "expected"),
    [
        (complex(inf, 1), 1), (complex(1, inf), -1j), (complex(-inf, inf), -HALF - HALF * 1j),
        (3 + 4j, 0.6 - 0.8j), (0j, 0),
        (1e-40 + 1e-40j, HALF - HALF * 1j), (3e38 + 3e38j, HALF - HALF * 1j), (complex(-inf, nan), complex(nan, nan)),
    ],
)  # fmt: skip
def test_abs_of_complex_numbers(z: complex, expected: complex) -> None:
    for f in (hloom.grad(jnp.abs), hloom.jit(hloom.grad(jnp.abs))):
        np.testing.assert_allclose(np.complex64(f(np.complex64(z))), expected, rtol=1e-6)


# ---- sums of exponentials with weights

# a, b, the result, its derivatives by a and by b
LOG_SUMS: list[tuple[list[float], list[float] | None, float, list[float], list[float] | None]] = [
    ([-200, 5], [1, 0], -200, [1, 0], [1, math.exp(205)]),
    ([-1e308, 1e308], [1, 0], -1e308, [1, 0], [1, inf]),
    ([5, nan], [2, 0], 5 + math.log(2), [1, 0], [0.5, nan]),
    ([inf, 1], [0, 1], 1, [0, 1], [inf, 1]),
    ([-inf, 1], [0, 2], 1 + math.log(2), [0, 1], [0, 0.5]),
    ([0, 0], [0, 1], 0, [0, 1], [1, 1]),
    ([1, 2], [0, 0], -inf, [0, 0], [inf, inf]),
    ([-inf, -inf], [1, 3], -inf, [0.25, 0.75], [0.25, 0.25]),
    ([-inf, -inf], None, -inf, [0.5, 0.5], None),
    ([inf, 1, inf], None, inf, [0.5, 0, 0.5], None),
    ([inf, 1], [1, 0], inf, [1, 0], [1, 0]),
    ([inf, inf], [1, -1], nan, [nan, nan], [nan, nan]),
    ([nan, 1], None, nan, [nan, nan], None),
    ([1, 2], None, 2 + math.log1p(math.exp(-1)), [1 / (1 + math.e), 1 / (1 + math.exp(-1))], None),
]


@pytest.mark.parametrize("wrap", [lambda f: f, hloom.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("row", LOG_SUMS, ids=str)
def test_logsumexp(row: Any, wrap: Any) -> None:
    a, b, value, by_a, by_b = row
    with hloom.enable_x64(True):
        args = [np.array(a, float)] + ([] if b is None else [np.array(b, float)])

        def f(a: Any, b: Any = None) -> Any:
            return nn.logsumexp(a, b=b)

        np.testing.assert_allclose(wrap(f)(*args), value, rtol=1e-12)
        np.testing.assert_allclose(wrap(hloom.grad(f))(*args), by_a, rtol=1e-12)
        if b is not None:
            np.testing.assert_allclose(wrap(hloom.grad(f, 1))(*args), by_b, rtol=1e-12)
            logarithm, sign = wrap(lambda a, b: nn.logsumexp(a, b=b, return_sign=True))(*args)
            np.testing.assert_allclose(logarithm, value, rtol=1e-12)
            assert np.isnan(value) or float(sign) == (0 if not any(b) or all(v == -inf for v in a) else 1)


def test_signs_and_second_derivatives_of_logsumexp() -> None:
    with hloom.enable_x64(True):
        a, b = jnp.array([0.3, -1.0, 2.0]), jnp.array([1.0, 0.0, -3.0])
        logarithm, sign = nn.logsumexp(a, b=b, return_sign=True)
        total = math.exp(0.3) - 3 * math.exp(2)
        np.testing.assert_allclose(logarithm, math.log(-total), rtol=1e-12)
        assert float(sign) == -1 and np.isnan(nn.logsumexp(a, b=b))
        f: Callable[[Any], Any] = lambda a: nn.logsumexp(a, b=b, return_sign=True)[0]  # noqa: E731
        p = np.asarray(b) * np.exp(np.asarray(a)) / total
        np.testing.assert_allclose(hloom.hessian(f)(a), np.diag(p) - np.outer(p, p), rtol=1e-10, atol=1e-12)
        mask = jnp.array([True, True, False])
        g = lambda a: nn.logsumexp(a, where=mask)  # noqa: E731
        np.testing.assert_allclose(hloom.grad(g)(jnp.array([0.0, 0.0, nan])), [0.5, 0.5, 0])
        assert not np.isnan(np.asarray(hloom.hessian(g)(jnp.array([0.0, 0.0, nan])))).any()
        z = jnp.array([0.3 + 1j, -0.2 - 2j])
        found = hloom.grad(lambda z: nn.logsumexp(z).real)(z)
        np.testing.assert_allclose(found, np.exp(z) / np.exp(z).sum(), rtol=1e-10)


def test_division_by_a_polynomial_that_starts_with_zeros() -> None:
    for u, v in (([1, 2, 3, 4], [0, 0, 1]), ([1, 2], [0]), ([0], [0]), ([0, 0, 1], [0, 1])):
        assert np.isnan(np.asarray(jnp.polydiv(jnp.array(u, float), jnp.array(v, float))[1])).all()
    _, rest = jnp.polydiv(jnp.array([0.1, 0.7, 0.3]), jnp.array([0.3, 0.1]))
    assert rest.tolist()[:2] == [0, 0]
