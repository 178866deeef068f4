"""The special functions of `hloom.lax` against mpmath in ulps, at their edges, and their derivatives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import hloom
from hloom import lax
from hloom.scipy import special
from support.evaluator_fixture import x64  # noqa: F401  # a fixture
from support.ulp import ulp_errors

INF, NAN = np.inf, np.nan
Points = Callable[[np.random.Generator, int], Sequence[np.ndarray]]


@dataclass(frozen=True)
class Case:
    """`bound`: the largest error in ulps of float64; the error in float32 is always below 0.51. `at_least`: errors are
    relative to this where results are smaller."""

    function: Callable[..., Any]
    reference: Callable[..., Any]
    points: Points
    bound: float
    at_least: float = 0.0


def _powers(low: float, high: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: 10 ** rng.uniform(low, high, n)


def _each(*draws: Any) -> Points:
    return lambda rng, n: [draw(rng, n) for draw in draws]


def _between(low: float, high: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: rng.uniform(low, high, n)


def _near(*centres: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.choice(centres, n) + rng.choice([-1, 1], n) * 10 ** rng.uniform(-10, -0.5, n)

    return draw


def _large_gamma(rng: np.random.Generator, n: int) -> Sequence[np.ndarray]:
    a = 10 ** rng.uniform(1.3, 4, n)
    return a, a * (1 + rng.normal(0, 1.5, n) / np.sqrt(a))


def _large_beta(rng: np.random.Generator, n: int) -> Sequence[np.ndarray]:
    a, b = 10 ** rng.uniform(1, 2.5, (2, n))
    p = a / (a + b)
    return a, b, np.clip(p + rng.normal(0, 1.5, n) * np.sqrt(p * (1 - p) / (a + b)), 1e-6, 1 - 1e-6)


def lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def upper(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def lower_by_a(a: Any, x: Any) -> Any:
    return mp.diff(lambda t: lower(t, x), a, h=a * mp.mpf(10) ** -20)


def variate_by_a(a: Any, x: Any) -> Any:
    return -lower_by_a(a, x) / (x ** (a - 1) * mp.exp(-x) / mp.gamma(a))


def beta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def _small_complement(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    """b <= 1 and x near 1, where the function is 1 minus a number near 1."""
    a, b, y = (10 ** rng.uniform(low, high, n) for low, high in ((-2, 2.5), (-6, 0), (-12, -1)))
    return a, b, 1 - y


def scaled_bessel(order: int, x: Any) -> Any:
    return mp.exp(-abs(x)) * mp.besseli(order, x)


def _trigamma(x: Any) -> Any:
    return hloom.grad(lambda v: lax.digamma(v).sum())(x)


def _dawson(x: Any) -> Any:
    if abs(x) > 30:
        return mp.fsum(mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(60)) / (2 * x)
    with mp.workdps(60 + int(x * x)):
        return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)


def _dawson_slope(x: Any) -> Any:
    return hloom.grad(lambda v: special.dawsn(v).sum())(x)


def _exact_dawson_slope(x: Any) -> Any:
    return 1 - 2 * x * _dawson(x)


_LOW_GAMMA = _each(_powers(-6, 0.3), _powers(-6, 1.3))
_MIDDLE_GAMMA = _each(_between(0.5, 20), _between(0.5, 30))
_ROOT = 1.4616321449683622
CASES = {
    "lgamma": Case(lax.lgamma, mp.loggamma, _each(_between(0, 12)), 6),
    "lgamma, range": Case(lax.lgamma, mp.loggamma, _each(_powers(-30, 30)), 3),
    "lgamma, roots": Case(lax.lgamma, mp.loggamma, _each(_near(1, 2)), 6),
    "lgamma, negative": Case(lax.lgamma, lambda x: mp.re(mp.loggamma(x)), _each(_between(-20, 0)), 10, 1.0),
    "digamma": Case(lax.digamma, mp.digamma, _each(_between(0, 12)), 4),
    "digamma, range": Case(lax.digamma, mp.digamma, _each(_powers(-30, 30)), 4),
    "digamma, root": Case(lax.digamma, mp.digamma, _each(_near(_ROOT)), 4),
    "digamma, negative": Case(lax.digamma, mp.digamma, _each(_between(-20, 0)), 30, 1.0),
    "trigamma": Case(_trigamma, lambda x: mp.polygamma(1, x), _each(_between(0, 12)), 4),
    "trigamma, range": Case(_trigamma, lambda x: mp.polygamma(1, x), _each(_powers(-15, 15)), 4),
    "trigamma, negative": Case(_trigamma, lambda x: mp.polygamma(1, x), _each(_between(-20, 0)), 8),
    "erfc": Case(lax.erfc, mp.erfc, _each(_between(-7, 26)), 5),
    "dawsn": Case(special.dawsn, _dawson, _each(_between(-12, 12)), 4),
    "dawsn, range": Case(special.dawsn, _dawson, _each(_powers(-30, 30)), 4),
    "dawsn, slope": Case(_dawson_slope, _exact_dawson_slope, _each(_between(-6, 6)), 400, 0.01),
    "exp1": Case(special.exp1, mp.e1, _each(_between(0, 4)), 5),
    "exp1, range": Case(special.exp1, mp.e1, _each(_powers(-30, 1.9)), 5),
    "expi": Case(special.expi, mp.ei, _each(_between(0.5, 40)), 6),
    "expi, near its root": Case(special.expi, mp.ei, _each(_near(0.37250741078136663)), 3, 1.0),
    "expi, negative": Case(special.expi, mp.ei, _each(_between(-80, 0)), 6),
    "betaln, both negative": Case(
        special.betaln,
        lambda a, b: mp.log(abs(mp.gamma(a) * mp.gamma(b) * mp.rgamma(a + b))),
        _each(_between(-20, 0), _between(-20, 0)),
        600,
        1.0,
    ),
    "expn": Case(
        lambda n, x: special.expn(n, x),
        lambda n, x: mp.expint(int(n), x),
        _each(lambda rng, n: rng.integers(1, 12, n).astype(float), _powers(-3, 1.9)),
        8,
    ),
    "expn, where its fraction is longest": Case(
        lambda x: special.expn(1, x), mp.e1, _each(lambda rng, n: 1 + 10 ** rng.uniform(-6, -1, n)), 8
    ),
    "zeta": Case(lax.zeta, mp.zeta, _each(_between(1, 20), _powers(-2, 2)), 20),
    "polygamma": Case(
        lax.polygamma,
        lambda m, x: mp.polygamma(int(m), x),
        _each(lambda rng, n: rng.integers(0, 8, n).astype(float), _powers(-2, 2)),
        30,
    ),
    "igamma, low": Case(lax.igamma, lower, _LOW_GAMMA, 20),
    "igammac, low": Case(lax.igammac, upper, _LOW_GAMMA, 40),
    "igamma": Case(lax.igamma, lower, _MIDDLE_GAMMA, 200),
    "igammac": Case(lax.igammac, upper, _MIDDLE_GAMMA, 200),
    "igamma, high": Case(lax.igamma, lower, _large_gamma, 60),
    "igammac, high": Case(lax.igammac, upper, _large_gamma, 60),
    "igamma_grad_a": Case(lax.igamma_grad_a, lower_by_a, _MIDDLE_GAMMA, 200),
    "igamma_grad_a, low": Case(lax.igamma_grad_a, lower_by_a, _LOW_GAMMA, 100),
    "random_gamma_grad": Case(lax.random_gamma_grad, variate_by_a, _MIDDLE_GAMMA, 100),
    "random_gamma_grad, low": Case(lax.random_gamma_grad, variate_by_a, _LOW_GAMMA, 100),
    "random_gamma_grad, high": Case(lax.random_gamma_grad, variate_by_a, _large_gamma, 100),
    "betainc": Case(lax.betainc, beta, _each(_between(0.5, 30), _between(0.5, 30), _between(0, 1)), 200),
    "betainc, low": Case(lax.betainc, beta, _each(_powers(-4, 1), _powers(-4, 1), _between(0, 0.95)), 2000),
    # 1 minus a number with an error of some ulps: where that leaves 0.0025, these are 400 times as many
    "betainc, small": Case(lax.betainc, beta, _small_complement, 2000),
    "betainc, high": Case(lax.betainc, beta, _large_beta, 200),
    "bessel_i0e": Case(lax.bessel_i0e, functools.partial(scaled_bessel, 0), _each(_between(-20, 20)), 10),
    "bessel_i1e": Case(lax.bessel_i1e, functools.partial(scaled_bessel, 1), _each(_between(-20, 20)), 10),
    "bessel_i1e, range": Case(lax.bessel_i1e, functools.partial(scaled_bessel, 1), _each(_powers(-20, 6)), 10),
}


def _largest_error(case: Case, dtype: type, count: int) -> tuple[float, Any]:
    arrays = [np.asarray(p, dtype) for p in case.points(np.random.default_rng(7), count)]
    found = np.asarray(case.function(*arrays))
    assert found.dtype == dtype
    with mp.workdps(60):
        points = list(zip(*arrays))
        exact = [mp.mpf(case.reference(*[mp.mpf(float(v)) for v in point])) for point in points]
    if case.at_least:
        unit = float(np.finfo(dtype).eps)
        errors = np.array([
            float(abs(mp.mpf(float(f)) - e) / max(abs(e), case.at_least)) / unit for f, e in zip(found, exact)
        ])  # fmt: skip
    else:
        errors = ulp_errors(found, exact)
    worst = int(np.argmax(errors))
    return float(errors[worst]), (points[worst], found[worst], mp.nstr(exact[worst], 17))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("x64")
def test_accuracy(name: str) -> None:
    error, where = _largest_error(CASES[name], np.float64, 24)
    assert error <= CASES[name].bound, where


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", CASES)
def test_accuracy_of_float32(name: str) -> None:
    error, where = _largest_error(CASES[name], np.float32, 12)
    assert error <= 0.51 or (CASES[name].at_least and error < 1), where


def _faddeeva(z: complex) -> Any:
    exact = mp.mpc(z)
    with mp.workdps(60 + int(abs(exact) ** 2)):
        return mp.exp(-exact * exact) * mp.erfc(mp.mpc(0, -1) * exact)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["complex128", "complex64"])
def test_wofz_over_the_plane(name: str) -> None:
    rng = np.random.default_rng(11)
    near_axis = rng.uniform(-8, 8, 40) + 1j * 10.0 ** rng.uniform(-20, 0, 40)
    z = np.concatenate([rng.normal(0, 3, 80) + 1j * rng.uniform(-4, 9, 80), near_axis, near_axis.conj()]).astype(name)
    found = np.asarray(special.wofz(z))
    for point, w in zip(z, found):
        exact = _faddeeva(complex(point))
        size = float(abs(exact))
        # below the axis rounding the angle 2 x y of exp(-z**2) comes in
        eps = np.finfo(name).eps * (20 if name == "complex128" and point.imag >= 0 else 60)
        if name == "complex128":
            assert float(abs(mp.mpc(complex(w)) - exact)) <= eps * size, point
            continue
        for part, right in ((w.real, exact.real), (w.imag, exact.imag)):
            off = abs(float(mp.mpf(float(part)) - right))
            assert off <= 0.51 * np.spacing(np.float32(abs(right))) + 2.0**-42 * size, point


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("x64")
def test_accuracy_at_many_points(name: str) -> None:
    error, where = _largest_error(CASES[name], np.float64, 250)
    assert error <= 2 * CASES[name].bound, where


EDGES: dict[str, tuple[Callable[..., Any], list[tuple[float, ...]]]] = {
    "lgamma": (lax.lgamma, [(0, INF), (-0.0, INF), (INF, INF), (-INF, INF), (1, 0), (2, 0), (1e-40, 92.1034)]),
    "digamma": (lax.digamma, [(0, -INF), (-1, NAN), (INF, INF), (-INF, NAN), (-1.5, 0.70315664)]),
    "erfc": (lax.erfc, [(0, 1), (-0.0, 1), (INF, 0), (-INF, 2), (30, 0), (-30, 2)]),
    "bessel_i0e": (lax.bessel_i0e, [(0, 1), (INF, 0), (-INF, 0)]),
    "bessel_i1e": (lax.bessel_i1e, [(0, 0), (INF, 0), (-INF, 0)]),
    "igamma": (
        lax.igamma,
        [(0, 0, NAN), (0, 1, 1), (1, 0, 0), (1, INF, 1), (INF, 1, 0), (1, -1, NAN), (INF, INF, NAN), (-1, 1, NAN),
         (NAN, 1, NAN), (1, NAN, NAN), (0, INF, 1), (1e-30, 1e-30, 1), (1e30, 1e30, 0.5)],
    ),
    "igammac": (
        lax.igammac,
        [(0, 0, NAN), (0, 1, 0), (1, 0, 1), (1, INF, 0), (INF, 1, 1), (1, -1, NAN), (INF, INF, NAN), (-1, 1, NAN),
         (0, INF, 0), (1e-30, 1, 2.193839e-31), (1e30, 1e30, 0.5)],
    ),
    "random_gamma_grad": (lax.random_gamma_grad, [(1, 0, 0), (1, -1, NAN), (-1, 1, NAN), (0, 1, NAN)]),
    "zeta": (
        lax.zeta,
        [(1, 1, INF), (0.5, 1, NAN), (2, 0, INF), (2, -1, INF), (2, -1.5, 9.379246644989124), (2.5, -1.5, NAN),
         (2, INF, 0), (INF, 2, 0), (NAN, 1, NAN), (2, NAN, NAN), (3, -0.5, 0.4143983221171599)],
    ),
    "polygamma": (
        lax.polygamma,
        [(0, 1, -0.5772156649), (1, 0, INF), (1, -1, INF), (1, -1.5, 9.379246644989124), (1.5, 2, NAN), (-1, 2, NAN),
         (1, INF, 0), (2, -0.5, -0.828796644234319)],
    ),
    "betainc": (
        lax.betainc,
        [(0, 1, 0.5, 1), (1, 0, 0.5, 0), (0, 0, 0.5, NAN), (1, 1, -1, NAN), (1, 1, 2, NAN), (1, 1, NAN, NAN),
         (-1, 1, 0.5, NAN), (INF, 1, 0.5, 0), (1, INF, 0.5, 1), (2, 3, 0, 0), (2, 3, 1, 1), (0, 1, 0, 0), (1, 0, 1, 1)],
    ),
}  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("name", EDGES)
@pytest.mark.usefixtures("x64")
def test_edges(name: str, dtype: str) -> None:
    function, rows = EDGES[name]
    small = dtype == "bfloat16"
    rows = [r for r in rows if not (small and any(0 < abs(v) < 1e-20 or 1e20 < abs(v) < INF for v in r))]
    *operands, expected = (hloom.numpy.asarray(np.array(c), dtype) for c in zip(*rows))
    found = function(*operands)
    assert found.dtype.name == dtype
    tolerance = {"float64": 1e-6, "bfloat16": 1e-2}[dtype]
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=tolerance)


DERIVATIVES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[float, ...], tuple[int, ...]]] = {
    "lgamma": (lax.lgamma, mp.loggamma, (2.3,), (0,)),
    "digamma": (lax.digamma, mp.digamma, (2.3,), (0,)),
    "erfc": (lax.erfc, mp.erfc, (0.7,), (0,)),
    "zeta": (lax.zeta, mp.zeta, (2.5, 1.5), (0, 1)),
    "polygamma": (lax.polygamma, lambda m, x: mp.polygamma(2, x), (2.0, 1.5), (1,)),
    "igamma": (lax.igamma, lower, (2.3, 3.1), (0, 1)),
    "igammac": (lax.igammac, upper, (2.3, 3.1), (0, 1)),
    "igammac, expansion": (lax.igammac, upper, (30.5, 29.25), (0, 1)),
    "igamma, fraction": (lax.igamma, lower, (0.5, 1.75), (0, 1)),
    "betainc": (lax.betainc, beta, (2.3, 1.7, 0.4), (0, 1, 2)),
    "bessel_i0e": (lax.bessel_i0e, functools.partial(scaled_bessel, 0), (1.5,), (0,)),
    "bessel_i1e": (lax.bessel_i1e, functools.partial(scaled_bessel, 1), (-1.5,), (0,)),
}


_LONG = ("betainc", "igamma", "igammac", "igamma, fraction")


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in _LONG)) for n in DERIVATIVES])
@pytest.mark.usefixtures("x64")
def test_derivatives_to_second_order(name: str) -> None:
    function, reference, point, positions = DERIVATIVES[name]
    exact_point = tuple(mp.mpf(p) for p in point)
    first = hloom.jit(hloom.grad(function, positions))(*point)
    second = hloom.jit(hloom.jacfwd(hloom.grad(function, positions), positions))(*point)
    orders = np.eye(len(point), dtype=int)
    with mp.workdps(40):
        for i, p in enumerate(positions):
            exact = mp.diff(reference, exact_point, tuple(orders[p]))
            np.testing.assert_allclose(float(first[i]), float(exact), rtol=1e-12)
            for j, q in enumerate(positions):
                exact = mp.diff(reference, exact_point, tuple(orders[p] + orders[q]))
                np.testing.assert_allclose(float(second[i][j]), float(exact), rtol=1e-11)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.usefixtures("x64")
def test_derivatives_of_the_derivative_of_a_variate() -> None:
    by_a, by_x = hloom.grad(lax.random_gamma_grad, (0, 1))(2.3, 3.1)
    np.testing.assert_allclose([by_a, by_x], [-0.295716963898556432, 0.190654886842594206], rtol=1e-12)


def test_under_vmap_and_in_reverse_through_a_loop() -> None:
    x = np.linspace(0.5, 4, 6, dtype=np.float32).reshape(2, 3)
    rows = hloom.vmap(lax.igamma, (0, None))(x, x[0])
    np.testing.assert_array_equal(rows, lax.igamma(x, np.stack([x[0]] * 2)))
    gradient = hloom.grad(lambda v: lax.igamma(v, v).sum())(x)
    step = 1e-2
    slope = (lax.igamma(x + step, x + step) - lax.igamma(x - step, x - step)) / (2 * step)
    np.testing.assert_allclose(gradient, slope, rtol=1e-2)


def test_they_are_named_in_hlo_and_in_jaxprs() -> None:
    def f(x: Any) -> Any:
        return lax.lgamma(x) + lax.betainc(x, x, 0.5)

    text = hloom.jit(f).lower(1.0).as_text()
    for name in ("lgamma", "regularized_incomplete_beta"):
        assert f'composite.name="{name}"' in text
    jaxpr = hloom.make_jaxpr(f)(1.0)
    assert [e.primitive for e in jaxpr.eqns[:1]] == [lax.lgamma_p]
    assert lax.regularized_incomplete_beta_p in [e.primitive for e in jaxpr.eqns]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: lax.lgamma(3), "lgamma does not accept dtype int32"),
    (lambda: lax.betainc(1.0, 2.0, 1), "betainc does not accept dtype int32 at position 2"),
    (lambda: lax.igamma(np.ones(3, np.float32), np.ones((3, 1), np.float32)), "same number of dimensions"),
    (lambda: lax.zeta(np.float32(2), np.float16(2)), "same dtypes"),
])  # fmt: skip
def test_operands_in_error(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_polygamma_has_no_derivative_with_respect_to_its_order() -> None:
    with pytest.raises(NotImplementedError, match="with respect to m"):
        hloom.grad(lax.polygamma)(2.0, 3.0)


def test_mulhi() -> None:
    x = np.array([2**30, -(2**31), 12345, -7], np.int32)
    y = np.array([2**30, 2**31 - 1, 54321, 3], np.int32)
    np.testing.assert_array_equal(lax.mulhi(x, y), (x.astype(np.int64) * y) >> 32)
    np.testing.assert_array_equal(lax.mulhi(np.uint8(200), np.uint8(201)), 200 * 201 >> 8)
