"""Values and derivatives of special functions and distributions, and mpmath's, over `support.special_references`."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.scipy import special, stats
from support.special_references import SPECIAL, STATS, Row

QUICK = (
    "erfcx", "dawsn", "fresnel C", "log_ndtr", "i0", "i0e", "rel_entr", "boxcox", "comb", "cauchy.logcdf", "expon.cdf",
    "gamma.logpdf", "poisson.logpmf", "beta.logpdf", "geom.pmf",
)  # fmt: skip
ROWS = SPECIAL | STATS
TOLERANCES = {np.float64: 2e-9, np.float32: 3e-5}


COMPILED = ("bessel_jn 0", "gammaincc", "hyp2f1")
"""Their loops have so many steps that the evaluator takes longer than LLVM. Next to a zero of the Bessel function, the
fused multiply-adds of compiled code are more accurate."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in ROWS])
def test_values_and_derivatives(name: str, request: pytest.FixtureRequest) -> None:
    if name not in COMPILED:
        request.getfixturevalue("evaluator")
    row = ROWS[name]
    points = list(dict.fromkeys(row.points()))
    exact = [row.exact(p) for p in points]
    wrong: list[Any] = []
    with hloom.enable_x64(True), np.errstate(all="ignore"):
        for dtype in TOLERANCES:
            kept = [k for k, p in enumerate(points) if _has(dtype, p, exact[k])]
            found = _found(row, [points[k] for k in kept], dtype)
            for column, values in enumerate(found):
                assert values.dtype == dtype
                for k, value in zip(kept, values):
                    if not _is_near(row, points[k], exact[k], column, value):
                        wrong.append((dtype.__name__, column, points[k], float(value), float(exact[k][column])))
    assert not wrong, (len(wrong), wrong[:12])


def _has(dtype: type, point: tuple[float, ...], exact: list[Any]) -> bool:
    """Whether the arguments are numbers of this type, and the value and its derivatives are in its range."""
    limits, value = np.finfo(dtype), exact[0]
    in_range = (value == 0 or abs(value) > limits.tiny) and all(abs(v) < limits.max for v in exact)
    return in_range and all(float(dtype(x)) == x for x in point)


def _found(row: Row, points: list[tuple[float, ...]], dtype: type) -> list[np.ndarray]:
    columns = [np.array(c, dtype) for c in zip(*points)]
    fixed = [c.astype(int) if row.function is special.polygamma else c for c in columns[: row.fixed]]
    free = columns[row.fixed :]

    def total(*free: Any) -> Any:
        values = row.function(*fixed, *free)
        return values.sum(), values

    gradients, values = hloom.jit(hloom.grad(total, tuple(range(len(free))), has_aux=True))(*free)
    return [np.asarray(v) for v in (values, *gradients)]


def _is_near(row: Row, point: tuple[float, ...], exact: list[Any], column: int, found: Any) -> bool:
    dtype = type(found)
    expected = dtype(exact[column])
    if found == expected:
        return True
    limits = np.finfo(dtype)
    size = (1 + abs(float(exact[0]))) * row.noise
    if column:
        size = size / min(max(abs(point[row.fixed + column - 1]), 1e-5), 1)
    allowed = TOLERANCES[dtype] * abs(float(expected)) + float(limits.eps) * size + float(limits.tiny)
    return bool(abs(float(found) - float(exact[column])) <= allowed)


# ---- functions with arguments or results that are no real numbers


def test_bernoulli() -> None:
    with hloom.enable_x64(True):
        found = np.asarray(special.bernoulli(100))
    np.testing.assert_allclose(found, [float(mp.bernoulli(k)) if k != 1 else -0.5 for k in range(101)], rtol=1e-13)


def _wofz(z: Any) -> Any:
    return mp.exp(-z * z) * mp.erfc(-1j * z)


PLACES = [
    0j, 1e-30 + 1e-30j, 1 + 1j, -3 + 0.5j, 5 - 1j, 0.5 - 4j, 12 + 1e-5j, -12 - 0.5j, 300 + 20j, 1e4 + 1e4j, 30j,
    1e8 - 1e-9j, 6 + 0j, -1e6 + 0j,
]  # fmt: skip


def test_faddeevas_function() -> None:
    with hloom.enable_x64(True), mp.workdps(80):
        for z in PLACES:
            exact, step = mp.mpc(z), mp.mpf(10) ** -25
            value, slope = hloom.jvp(special.wofz, (jnp.asarray(z),), (jnp.asarray(1 + 0j),))
            expected = complex((_wofz(exact + step) - _wofz(exact - step)) / (2 * step))
            for found, wanted in ((value, complex(_wofz(exact))), (slope, expected)):
                assert abs(complex(found) - wanted) <= 1e-12 * abs(wanted), (z, complex(found), wanted)


DEGREES = [(0, 0), (1, 0), (1, 1), (1, -1), (2, 1), (5, -3), (30, 30), (30, 0), (40, -7)]


def test_spherical_harmonics() -> None:
    angles = [(theta, phi) for theta in (0.0, 1e-10, 0.5, math.pi / 2, 3.0) for phi in (0.0, 1e-10, 2.0)]
    with hloom.enable_x64(True):
        n, m, theta, phi = (np.array(c) for c in zip(*[(*d, *a) for d in DEGREES for a in angles]))

        def harmonics(theta: Any, phi: Any) -> Any:
            return special.sph_harm_y(n, m, theta, phi, n_max=40)

        ones, zeros = np.ones_like(theta), np.zeros_like(theta)
        value, by_theta = hloom.jvp(harmonics, (theta, phi), (ones, zeros))
        by_phi = hloom.jvp(harmonics, (theta, phi), (zeros, ones))[1]
    for k in range(len(n)):
        expected = _harmonic(int(n[k]), int(m[k]), theta[k], phi[k])
        for found, wanted in zip((value[k], by_theta[k], by_phi[k]), expected):
            assert abs(complex(found) - wanted) <= 1e-11 * (1 + abs(wanted)), (n[k], m[k], theta[k], phi[k])


def _harmonic(n: int, m: int, theta: float, phi: float) -> list[complex]:
    """The value and its derivatives; at theta = 0 that to the right."""
    with mp.workdps(60):
        t, p, step = mp.mpf(theta), mp.mpf(phi), mp.mpf(10) ** -20

        def at(t: Any, p: Any) -> Any:
            return mp.spherharm(n, m, t, p)

        back = step if theta else mp.mpf(0)
        by_theta = (at(t + step, p) - at(t - back, p)) / (step + back)
        return [complex(v) for v in (at(t, p), by_theta, (at(t, p + step) - at(t, p - step)) / (2 * step))]


def test_distributions_of_vectors_with_large_parameters() -> None:
    """Sums of logarithms of gamma functions: float32 would keep no digit of them."""
    alpha = [4e4, 3e4, 1e5]
    x = [4e4 / 1.7e5, 3e4 / 1.7e5, 1e5 / 1.7e5]
    counts, chances = [40_000, 30_000, 100_000], [0.25, 0.125, 0.625]
    with mp.workdps(40):
        x32 = [mp.mpf(float(np.float32(v))) for v in x]
        dirichlet = mp.loggamma(sum(alpha)) + sum((a - 1) * mp.log(v) - mp.loggamma(a) for a, v in zip(alpha, x32))
        multinomial = mp.loggamma(170_001) + sum(c * mp.log(p) - mp.loggamma(c + 1) for c, p in zip(counts, chances))
    found = stats.dirichlet.logpdf(np.array(x, np.float32), np.array(alpha, np.float32))
    np.testing.assert_allclose(float(found), float(dirichlet), rtol=1e-6)
    found = stats.multinomial.logpmf(np.array(counts), 170_000, np.array(chances, np.float32))
    np.testing.assert_allclose(float(found), float(multinomial), rtol=1e-6)
