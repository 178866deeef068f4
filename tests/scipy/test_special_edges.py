"""Special functions and distributions at 0, poles, the ends of their range, and equal or huge arguments.

The expected numbers are limits or mpmath's. Each row is tried in float64 and float32, outside of jit and inside; a
row with arguments that are no float32 numbers only in float64.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax, random
from hloom.experimental.ode import odeint
from hloom.scipy import special, stats

inf, nan, pi = math.inf, math.nan, math.pi

VALUES: dict[str, tuple[Any, list[tuple[tuple[float, ...], float]]]] = {
    "betainc": (
        special.betainc,
        [
            *[((a, a, 0.5), 0.5) for a in (1e3, 1e8, 1e12, 1e15, 1e17, 1e30, 1e200, 1e307)],
            ((1e17, 2e17, 0.25), 0), ((2e17, 1e17, 0.75), 1), ((1e300, 1.0, 0.5), 0), ((1.0, 1e300, 0.5), 1),
            ((1e-300, 1e12, 0.5), 1), ((0.5, 1e300, 1e-10), 1), ((0.0, 1.0, 0.5), 1), ((1.0, 0.0, 0.5), 0),
            ((inf, 1.0, 0.5), 0), ((1.0, inf, 0.5), 1), ((inf, inf, 0.5), nan), ((0.0, 0.0, 0.5), nan),
            ((1.0, 1.0, 1.5), nan),
        ],
    ),
    "beta": (
        special.beta,
        [
            ((-1, 1), -1), ((-2, 1), -0.5), ((-2, 2), 0.5), ((-3, 2), 1 / 6), ((2, -1e10), 1 / (1e10 * (1e10 - 1))),
            ((1, -1e10), -1e-10), ((-1, 2), inf), ((-2, 3), inf), ((-1, 0.5), inf), ((0, 1), inf), ((-0.0, 1), -inf),
            ((-0.5, -0.5), 0), ((-0.5, 0.5), 0), ((1.5, -1.5), 0), ((-1.5, 1), -2 / 3), ((inf, 1), 0),
            ((1e-10, 1e5), 9999999987.909853), ((1e15, 1e-15), 999999999999963.9), ((nan, 1), nan),
        ],
    ),
    "betaln": (
        special.betaln,
        [
            ((-1, 1), 0), ((-2, 1), -math.log(2)), ((1, -1e10), -math.log(1e10)), ((-1, -1), inf), ((0, 0), inf),
            ((-1, 1e-300), inf), ((-1.5, 1), math.log(2 / 3)), ((-0.5, inf), inf), ((0.5, inf), -inf),
            ((1e300, 1e300), -1.3862943611198906e300),
        ],
    ),
    "digamma": (special.digamma, [((0.0,), -inf), ((-0.0,), inf), ((-1,), nan), ((inf,), inf), ((1e-300,), -1e300)]),
    "gamma": (special.gamma, [((-1e-300,), -1e300), ((1e-300,), 1e300), ((0.0,), inf), ((-0.0,), -inf), ((-1,), nan)]),
    "gammainc": (special.gammainc, [((2, 1e300), 1), ((3, 1e300), 1), ((1e15, 1e15), 0.500000004205), ((0, 0), nan)]),
    "gammaincc": (special.gammaincc, [((2, 1e300), 0), ((inf, 1), 1), ((1e300, 1), 1)]),
    "zeta of x": (
        special.zeta,
        [
            ((-1e-300,), -0.5), ((-1e-8,), -0.49999999081061476), ((-171.5,), 4.739302330550632e172), ((-700,), 0),
            ((-200.5,), -2.320000663352943e215), ((-1e20,), 0), ((-0.25,), -0.3204512642285773), ((1,), inf),
            ((-0.5,), -0.20788622497735457), ((-inf,), nan),
        ],
    ),
    "zeta": (special.zeta, [((2, 1e300), 1e-300), ((1, 1), inf), ((1e15, 2), 0)]),
    "poch": (
        special.poch,
        [
            ((0, -1), -1), ((0, -2), 0.5), ((-1, -1), -0.5), ((-1, -2), 1 / 6), ((-1, 0.5), 0), ((-1, 171), 0),
            ((1e-300, -1), -1), ((0.5, -1.5), inf), ((5, -2), 1 / 12), ((-20, 15), -math.factorial(20) / 120),
        ],
    ),
    "comb": (special.comb, [((1e100, 3), 1e300 / 6), ((1e300, 1), 1e300), ((inf, 0), 1), ((inf, 2), inf), ((5, 6), 0)]),
    "rel_entr": (special.rel_entr, [((inf, 1), inf), ((0, 0), 0), ((0, -1), inf), ((1, 0), inf), ((inf, inf), nan)]),
    "kl_div": (special.kl_div, [((inf, 1), inf), ((inf, 0), inf), ((1e10, 1e-300), 7128013788281.541), ((0, 0), 0)]),
    "boxcox1p": (special.boxcox1p, [((1e-300, 1e-300), 1e-300), ((-1, 0.5), -2), ((3, 0), math.log(4))]),
    "xlogy": (special.xlogy, [((0, 0), 0), ((0, nan), nan), ((0, inf), 0), ((1, 0), -inf)]),
    "beta.sf": (
        stats.beta.sf,
        [((1e-300, 1, 2), 1), ((0.25, 1, 1), 0.75), ((1e-300, 1e-3, 1), 1 - 10**-0.3), ((0.0078125, 2, 1), 1 - 2**-14)],
    ),
    "truncnorm.cdf": (
        stats.truncnorm.cdf,
        [((-1e300, -inf, 2), 0), ((1e300, 3, inf), 1), ((0, -1, 1), 0.5), ((-40, -40, -39), 0), ((5, -1, 1), 1)],
    ),
    "truncnorm.logsf": (stats.truncnorm.logsf, [((1e300, 3, inf), -inf), ((-1e300, -inf, 2), 0)]),
    "beta.logpdf": (
        stats.beta.logpdf,
        [
            ((0, 1, 1), 0), ((0, 1, 2), math.log(2)), ((0, 2, 1), -inf), ((0, 0.5, 1), inf), ((1, 2, 1), math.log(2)),
        ],
    ),
}  # fmt: skip
ROWS = [(name, row) for name, (_, rows) in VALUES.items() for row in rows]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "row"), ROWS, ids=lambda v: str(v) if isinstance(v, str) else str(v[0]))
def test_values(name: str, row: tuple[tuple[float, ...], float]) -> None:
    function, (arguments, expected) = VALUES[name][0], row
    with hloom.enable_x64(True):
        for dtype, tolerance in ((np.float64, 2e-12), (np.float32, 3e-6)):
            with np.errstate(all="ignore"):
                xs = [np.asarray(x, dtype) for x in arguments]
                same = all(float(x) == y or y != y for x, y in zip(xs, arguments))
                wanted = dtype(expected)
            if not same or (np.isinf(wanted) and np.isfinite(expected)):
                continue
            for call in (function, hloom.jit(function)):
                found = np.asarray(call(*xs))
                assert found.dtype == dtype
                np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=0 if wanted else 1e-300)


def _betainc(a: float, b: float, x: float) -> float:
    """By quadrature over the density, up to 45 widths from its middle."""
    with mp.workdps(70):
        p, q, end = mp.mpf(a), mp.mpf(b), mp.mpf(x)
        middle = p / (p + q)
        width = mp.sqrt(p * q / (p + q) ** 2 / (p + q + 1))
        scale = mp.loggamma(p) + mp.loggamma(q) - mp.loggamma(p + q)
        low = max(mp.mpf(0), middle - 45 * width)
        points = [low, *[middle + k * width for k in range(-44, 46, 2) if low < middle + k * width < end], end]
        return float(mp.quad(lambda t: mp.exp((p - 1) * mp.log(t) + (q - 1) * mp.log1p(-t) - scale), points))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("a", "b"),
    [(1e9, 3e9), (2e10, 1.5e10), (1e15, 1e15), (1e17, 2e17), (1e10, 1e15), (5.0, 1e17), (50.0, 1e14), (3e10, 2.0)],
)
def test_betainc_of_huge_arguments(a: float, b: float) -> None:
    width = math.sqrt(a * b) / (a + b) ** 1.5
    with hloom.enable_x64(True):
        for distance in (0.3, -2.0):
            x = a / (a + b) + distance * width
            if 0 < x < 1:
                np.testing.assert_allclose(float(special.betainc(a, b, x)), _betainc(a, b, x), rtol=1e-12)


# function, arguments, its derivatives by some of them
DERIVATIVES: list[tuple[str, Any, tuple[float, ...], dict[int, float]]] = [
    ("beta", special.beta, (-2, 1), {0: -0.25}),  # 1 / a
    ("betaln", special.betaln, (-2, 1), {0: 0.5}),
    ("xlogy", special.xlogy, (0, 0), {1: 0}),
    ("xlogy", special.xlogy, (0, 2), {0: math.log(2), 1: 0}),
    ("xlog1py", special.xlog1py, (0, -1), {1: 0}),
    ("beta.logpdf", stats.beta.logpdf, (0, 1, 1), {0: 0, 1: -inf, 2: 1}),
    ("beta.logpdf", stats.beta.logpdf, (0, 1, 2), {0: -1, 2: 0.5}),
    ("beta.logpdf", stats.beta.logpdf, (1, 2, 1), {0: 1, 1: 0.5, 2: -inf}),
    ("lgamma", lax.lgamma, (0.0,), {0: -inf}),
    ("betainc", special.betainc, (1e12, 1e12, 0.5), {0: -2.820947917739721e-07, 1: 2.820947917739721e-07}),
]


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("row", DERIVATIVES, ids=lambda row: f"{row[0]}{row[2]}")
def test_derivatives(row: Any) -> None:
    _, function, arguments, expected = row
    with hloom.enable_x64(True):
        xs = [np.asarray(x, float) for x in arguments]
        for k, wanted in expected.items():
            for gradient in (hloom.grad(function, k), hloom.jit(hloom.grad(function, k))):
                np.testing.assert_allclose(np.asarray(gradient(*xs)), wanted, rtol=1e-9)


def test_mixed_derivative_of_xlogy_where_x_is_0() -> None:
    mixed = hloom.grad(hloom.grad(special.xlogy, 1), 0)
    assert float(mixed(0.0, 2.0)) == 0.5


# ---- the border of the simplex, tiny parameters, nothing, an end on the way


def test_dirichlet_at_the_border() -> None:
    def logpdf(x: list[float], alpha: list[float]) -> float:
        return float(stats.dirichlet.logpdf(jnp.array(x), jnp.array(alpha)))

    assert logpdf([0.0, 1.0], [1.0, 1.0]) == 0
    assert logpdf([0.0, 1.0], [2.0, 1.0]) == -inf
    assert logpdf([0.0, 1.0], [0.5, 1.0]) == inf
    np.testing.assert_allclose(logpdf([0.0, 0.5, 0.5], [1.0, 1.0, 1.0]), math.log(2), rtol=1e-6)
    assert logpdf([-0.5, 1.5], [1.0, 1.0]) == -inf


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("alpha", [1e-3, 1e-10, 1e-30])
def test_derivatives_of_draws_with_tiny_parameters(alpha: float) -> None:
    """log x of a gamma number is (log p + lgamma(a + 1)) / a, for the value p of the distribution function."""
    key, a = random.key(0), jnp.full(3, alpha)
    assert np.isfinite(np.asarray(hloom.jacfwd(lambda a: random.dirichlet(key, a))(a))).all()
    assert np.isfinite(np.asarray(hloom.jacrev(lambda a: random.dirichlet(key, a))(a))).all()
    if alpha > 1e-15:
        drawn, moved = hloom.jvp(lambda a: random.loggamma(key, a), (a,), (jnp.ones(3),))
        is_small = np.asarray(drawn) < -40
        expected = (-float(mp.euler) - np.asarray(drawn)) / alpha
        np.testing.assert_allclose(np.asarray(moved)[is_small], expected[is_small], rtol=1e-3)


def test_histograms_of_nothing() -> None:
    nothing = jnp.array([])
    for found, expected in zip(jnp.histogram(nothing, 3), np.histogram([], 3), strict=True):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-6)
    assert jnp.histogram2d(nothing, nothing, 2)[0].tolist() == [[0, 0], [0, 0]]


def test_an_integration_that_ends_on_the_way() -> None:
    times = jnp.linspace(0.0, 1.0, 5)
    for f in (lambda y, t: jnp.where(t > 0.6, nan, -y), lambda y, t: -3 * jnp.sqrt(y - 0.5)):
        found = np.asarray(odeint(f, jnp.array([1.0]), times))[:, 0]
        assert np.isfinite(found[:2]).all() and np.isnan(found[3:]).all()
    steps = np.asarray(odeint(lambda y, t: -y, jnp.array([1.0]), times, mxstep=1))
    assert np.isnan(steps[-1]).all()
