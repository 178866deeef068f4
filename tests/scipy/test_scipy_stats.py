"""`hloom.scipy.stats` against SciPy: every function of every distribution at its support, its ends and outside."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import hloom
from hloom import numpy as jnp
from hloom import random
from hloom.scipy import stats
from support.evaluator_fixture import x64  # noqa: F401  # a fixture

INF, NAN = np.inf, np.nan
CONTINUOUS = "logpdf pdf cdf logcdf sf logsf"
# name: (functions, rows of shapes, whether there are location and scale)
DISTRIBUTIONS: dict[str, tuple[str, list[tuple[float, ...]], bool]] = {
    "norm": (CONTINUOUS + " ppf isf", [()], True),
    "cauchy": (CONTINUOUS + " ppf isf", [()], True),
    "expon": (CONTINUOUS + " ppf", [()], True),
    "gamma": (CONTINUOUS, [(1.0,), (0.3,), (7.5,), (0.0,), (-1.0,), (NAN,)], True),
    "chi2": (CONTINUOUS, [(2.0,), (0.5,), (30.0,), (-1.0,), (NAN,)], True),
    "beta": (CONTINUOUS, [(1.0, 1.0), (0.5, 3.0), (20.0, 5.0), (-1.0, 1.0), (1.0, NAN)], True),
    "gumbel_r": (CONTINUOUS + " ppf", [()], True),
    "gumbel_l": (CONTINUOUS + " ppf", [()], True),
    "laplace": ("logpdf pdf cdf", [()], True),
    "logistic": ("logpdf pdf cdf sf ppf isf", [()], True),
    "pareto": (CONTINUOUS + " ppf", [(1.0,), (3.5,), (-1.0,), (NAN,)], True),
    "t": ("logpdf pdf", [(1.0,), (4.5,), (1e6,), (INF,), (-1.0,), (NAN,)], True),
    "truncnorm": (CONTINUOUS, [(-1.0, 2.0), (3.0, 5.0), (-40.0, -30.0), (-INF, 1.0), (2.0, 1.0)], True),
    "uniform": ("logpdf pdf cdf ppf", [()], True),
    "gennorm": ("logpdf pdf cdf", [(1.0,), (2.0,), (0.5,), (-1.0,)], False),
    "vonmises": ("logpdf pdf", [(1.0,), (50.0,), (-1.0,), (NAN,)], False),
    "wrapcauchy": ("logpdf pdf", [(0.5,), (0.95,), (1.5,)], False),
    "bernoulli": ("logpmf pmf", [(0.3,), (0.0,), (1.0,), (1.5,), (NAN,)], True),
    "binom": ("logpmf pmf", [(6.0, 0.3), (2.0, 0.0), (3.0, 1.0), (0.0, 0.5), (3.0, -0.5), (-1.0, 0.5)], True),
    "betabinom": ("logpmf pmf", [(6.0, 0.5, 2.0), (2.0, 10.0, 3.0), (0.0, 1.0, 1.0), (2.0, -1.0, 1.0)], True),
    "geom": ("logpmf pmf", [(0.3,), (1.0,), (0.0,), (NAN,)], True),
    "nbinom": ("logpmf pmf", [(6.0, 0.3), (0.5, 0.9), (3.0, 1.0), (3.0, 0.0), (-1.0, 0.5)], True),
    "poisson": ("logpmf pmf cdf", [(2.5,), (0.0,), (40.0,), (-1.0,), (NAN,)], True),
}
CASES = [
    pytest.param(name, f, marks=[pytest.mark.slow] * (k > 0 and name != "expon"))
    for name, (functions, _, _) in DISTRIBUTIONS.items()
    for k, f in enumerate(functions.split())
]
POINTS = np.array([-INF, -1e3, -35, -4, -1.5, -1, -0.5, -1e-3, 0, 1e-9, 0.25, 0.5, 1, 1.5, 2, 3, 4.5, 5, 6, 7, 30, 90,
                   1e3, INF, NAN])  # fmt: skip
LEVELS = np.array([-0.1, 0, 1e-12, 1e-3, 0.2, 0.5, 0.75, 0.999, 1, 1.1, NAN])


def _table(name: str, function: str) -> list[np.ndarray]:
    """The arguments: points times shapes, and some with location and scale."""
    _, shapes, placed = DISTRIBUTIONS[name]
    discrete = hasattr(scipy.stats, name) and hasattr(getattr(scipy.stats, name), "pmf")
    points = LEVELS if function in ("ppf", "isf") else POINTS
    rows = []
    for row in shapes:
        places = [(0.0, 1.0), (0.5, 2.0), (0.0, -1.0), (0.0, 0.0)] if placed else [(0.0, 1.0)]
        if discrete:
            places = [(0.0,), (2.0,)]
        elif not placed:
            places = [()]
        rows += [(x, *row, *place) for place in places for x in points]
    return [np.array(column) for column in zip(*rows)]


def _exact(name: str, function: str, args: list[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(getattr(getattr(scipy.stats, name), function)(*args))


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "function"), CASES)
@pytest.mark.usefixtures("x64")
def test_values(name: str, function: str) -> None:
    args = _table(name, function)
    found = np.asarray(getattr(getattr(stats, name), function)(*args))
    exact = _exact(name, function, args)
    assert found.dtype == np.float64
    atol = 1e-15 if function.startswith("log") else 1e-300
    different = ~np.isclose(found, exact, rtol=1e-9, atol=atol, equal_nan=True)
    # SciPy has NaN for densities at infinity, where they are 0, and the logarithm of a density that underflows
    at_infinity = np.isinf(args[0]) & np.isnan(exact) & np.isin(found, [0, -INF])
    underflow = np.isneginf(exact) & (found < -700)
    different &= ~at_infinity & ~underflow
    assert not different.any(), [
        (*(float(a[i]) for a in args), float(found[i]), float(exact[i])) for i in np.flatnonzero(different)[:12]
    ]


@pytest.mark.parametrize("name", [
    pytest.param(n, marks=[pytest.mark.slow] * (n not in ("uniform", "wrapcauchy"))) for n in DISTRIBUTIONS
])  # fmt: skip
@pytest.mark.usefixtures("evaluator")
@pytest.mark.usefixtures("x64")
def test_gradients(name: str) -> None:
    """With respect to all arguments, by differences; finite (and 0) outside of the support."""
    functions, shapes, placed = DISTRIBUTIONS[name]
    discrete = "pmf" in functions
    usual = 2.0 if discrete else 1.75
    x = {"beta": 0.3, "uniform": 1.5, "pareto": 4.0, "bernoulli": 1.0, "truncnorm": 3.5}.get(name, usual)
    shape = (3.0, 5.0) if name == "truncnorm" else shapes[1] if name in ("gamma", "pareto") else shapes[0]
    place = ((0.25, 1.5) if name not in ("beta", "truncnorm") else (0.0, 1.1)) if placed and not discrete else ()
    numbers = (x, *shape, *place)
    for function in functions.split():
        if function in ("pdf", "sf", "logsf"):
            continue  # the same formulas
        if function in ("ppf", "isf"):
            numbers = (0.3, *shape, *place)
        f = getattr(getattr(stats, name), function)
        positions = tuple(range(int(discrete), len(numbers)))
        if not positions:
            continue
        found = hloom.grad(f, positions)(*numbers)
        for position, slope in zip(positions, found):
            step = 1e-6
            moved = [[v + s * step * (i == position) for i, v in enumerate(numbers)] for s in (-1, 1)]
            low, high = (float(f(*m)) for m in moved)
            np.testing.assert_allclose(slope, (high - low) / (2 * step), rtol=2e-6, atol=1e-8, err_msg=function)
        if not discrete and name not in ("norm", "cauchy", "t", "laplace", "logistic", "gennorm", "vonmises"):
            outside = hloom.grad(f, positions)(-500.0, *numbers[1:])
            assert np.isfinite(outside).all() or function in ("ppf", "logcdf", "logsf"), function


@pytest.mark.parametrize("name", ["bernoulli"])
def test_bernoulli(name: str) -> None:
    k = np.array([-1.0, 0, 0.5, 1, 2, NAN], np.float32)
    np.testing.assert_allclose(stats.bernoulli.cdf(k, 0.25), scipy.stats.bernoulli.cdf(k, 0.25), rtol=1e-6)
    q = np.array([-0.1, 0.3, 0.75, 0.8, 1, 1.5, NAN], np.float32)
    np.testing.assert_allclose(stats.bernoulli.ppf(q, 0.25), scipy.stats.bernoulli.ppf(q, 0.25), rtol=1e-6)


@pytest.mark.usefixtures("x64")
def test_entropy_of_poisson() -> None:
    mu = np.array([0.0, 0.5, 9.0, 50, 99.9, 100.1, 3000.0])
    np.testing.assert_allclose(stats.poisson.entropy(mu), scipy.stats.poisson.entropy(mu), rtol=1e-7, atol=1e-15)
    assert np.isnan(stats.poisson.entropy(-1.0))


@pytest.mark.usefixtures("x64")
def test_distributions_of_vectors() -> None:
    rng = np.random.default_rng(0)
    alpha = np.array([0.5, 2.0, 3.0])
    x = rng.dirichlet(alpha, 4).T
    exact = scipy.stats.dirichlet.logpdf(x, alpha)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), exact, rtol=1e-12)
    np.testing.assert_allclose(stats.dirichlet.logpdf(x[:2], alpha), exact, rtol=1e-9)
    assert stats.dirichlet.pdf(np.array([0.5, 0.6, 0.1]), alpha) == 0
    counts, p = np.array([[2, 3, 5], [10, 0, 0], [1, 1, 1]]), np.array([0.2, 0.3, 0.5])
    expected = scipy.stats.multinomial.logpmf(counts, 10, p)
    np.testing.assert_allclose(stats.multinomial.logpmf(counts, 10, p), expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_multivariate_normal() -> None:
    rng = np.random.default_rng(0)
    mean, root = rng.normal(size=3), rng.normal(size=(3, 3))
    cov = root @ root.T + np.eye(3)
    points = rng.normal(size=(2, 5, 3))
    for point in (points, points[0, 0]):
        expected = scipy.stats.multivariate_normal.logpdf(point, mean, cov)
        np.testing.assert_allclose(stats.multivariate_normal.logpdf(point, mean, cov), expected, rtol=1e-12)
    covs = np.stack([cov, 2 * cov])[:, None]
    expected = [scipy.stats.multivariate_normal.logpdf(q, mean, c[0]) for q, c in zip(points, covs)]
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(points, mean, covs), expected, rtol=1e-12)
    expected = scipy.stats.multivariate_normal.pdf(points, mean, 2.0)
    np.testing.assert_allclose(stats.multivariate_normal.pdf(points, mean, 2.0), expected, rtol=1e-12)
    expected = scipy.stats.norm.logpdf(points, 1.0, 2.0)
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(points, 1.0, 4.0), expected, rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_mode(axis: int | None) -> None:
    x = np.array([[3, 1, 2, 1], [3, 0, 2, 5], [4, 1, 2, 5]])
    for given in (x, np.where(x == 2, np.nan, x), np.where(x == 5, np.nan, x)):
        for keepdims in (False, True):
            found, exact = (m.mode(given, axis, keepdims=keepdims) for m in (stats, scipy.stats))
            np.testing.assert_array_equal(found.mode, exact.mode)
            np.testing.assert_array_equal(found.count, exact.count)
    empty = stats.mode(jnp.zeros((0, 2)))
    assert np.isnan(empty.mode).all()
    assert empty.count.tolist() == [0, 0]


@pytest.mark.parametrize("method", [
    pytest.param(m, marks=[pytest.mark.slow] * (m != "average")) for m in ("average", "min", "max", "dense", "ordinal")
])  # fmt: skip
def test_rankdata(method: str) -> None:
    x = np.array([[3.0, 1, 2, 1, 3], [0, 0, 0, 7, -1], [1, np.nan, 2, 2, 2]], np.float32)
    for axis in (1, 0):
        expected = scipy.stats.rankdata(x, method, axis=axis)
        np.testing.assert_array_equal(stats.rankdata(x, method, axis=axis), expected)
    np.testing.assert_array_equal(stats.rankdata(x[:2], method), scipy.stats.rankdata(x[:2], method))


@pytest.mark.usefixtures("x64")
def test_sem() -> None:
    x = np.random.default_rng(0).normal(size=(4, 5))
    for axis in (0, 1, None):
        np.testing.assert_allclose(stats.sem(x, axis), scipy.stats.sem(x, axis), rtol=1e-12)
    assert stats.sem(x, 0, 0, keepdims=True).shape == (1, 5)
    x[1, 2] = NAN
    np.testing.assert_allclose(
        stats.sem(x, 0, nan_policy="omit"), np.asarray(scipy.stats.sem(x, 0, nan_policy="omit")), rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_gaussian_kde() -> None:
    rng = np.random.default_rng(0)
    data, weights, points = rng.normal(size=(2, 30)), rng.uniform(size=30), rng.normal(size=(2, 7))
    for method in (None, "silverman", 0.4, lambda k: 0.3):
        made = stats.gaussian_kde(data, method, weights)
        exact = scipy.stats.gaussian_kde(data, method, weights)
        np.testing.assert_allclose(made.covariance, exact.covariance, rtol=1e-12)
        np.testing.assert_allclose(made(points), exact(points), rtol=1e-10)
    np.testing.assert_allclose(made.logpdf(points), exact.logpdf(points), rtol=1e-10)
    mean, cov = np.array([0.5, 0.25]), np.array([[1.0, 0.5], [0.5, 2.0]])
    np.testing.assert_allclose(made.integrate_gaussian(mean, cov), exact.integrate_gaussian(mean, cov), rtol=1e-10)
    other, exact_other = stats.gaussian_kde(data[:, :9]), scipy.stats.gaussian_kde(data[:, :9])
    np.testing.assert_allclose(made.integrate_kde(other), exact.integrate_kde(exact_other), rtol=1e-10)
    line, exact_line = stats.gaussian_kde(data[0]), scipy.stats.gaussian_kde(data[0])
    expected = exact_line.integrate_box_1d(-1, 0.5)
    np.testing.assert_allclose(hloom.jit(lambda k: k.integrate_box_1d(-1, 0.5))(line), expected, rtol=1e-8)
    drawn = line.resample(random.key(0), (4000,))
    assert drawn.shape == (1, 4000)
    assert abs(drawn.mean() - data[0].mean()) < 0.1
    with pytest.raises(ValueError, match="dimension"):
        made(np.zeros((3, 2)))
    with pytest.raises(NotImplementedError):
        made.set_bandwidth()
    with pytest.raises(AttributeError, match="cannot be changed"):
        made.weights = 1


def test_distributions_are_modules() -> None:
    for name in DISTRIBUTIONS:
        module = importlib.import_module(f"hloom.scipy.stats.{name}")
        assert module is getattr(stats, name)
        assert inspect.ismodule(module)
        assert set(DISTRIBUTIONS[name][0].split()) <= set(module.__all__)
    assert stats.norm.logpdf.__module__ == "hloom.scipy.stats.norm"


def test_dtypes_and_arguments_in_error() -> None:
    assert stats.norm.logpdf(np.float16(0.5)).dtype == np.float16
    assert stats.norm.logpdf(1).dtype == np.float32
    assert stats.norm.logpdf(jnp.zeros(3), np.zeros((2, 1), np.float32)).shape == (2, 3)
    calls: list[tuple[Callable[[], Any], type, str]] = [
        (lambda: stats.norm.logpdf([1.0]), TypeError, "norm.logpdf requires ndarray"),
        (lambda: stats.gamma.cdf(1j, 2.0), ValueError, "gamma.cdf does not support complex"),
        (lambda: stats.multinomial.logpmf(np.array([1.5]), 1, np.array([1.0])), ValueError, "integer type"),
        (lambda: stats.dirichlet.logpdf(np.ones(3), np.ones((3, 1))), ValueError, "one-dimensional"),
        (lambda: stats.multivariate_normal.logpdf(np.ones(3), np.ones(3), np.ones(3)), ValueError, "incompatible"),
        (lambda: stats.mode(np.ones(3), nan_policy="omit"), NotImplementedError, "nan_policy"),
        (lambda: stats.rankdata(np.ones(3), "best"), ValueError, "unknown method"),
        (lambda: stats.gaussian_kde(np.ones(1)), ValueError, "multiple elements"),
    ]
    for call, kind, message in calls:
        with pytest.raises(kind, match=message):
            call()


def test_bernoulli_ppf_of_numbers_is_weakly_typed() -> None:
    assert stats.bernoulli.ppf(0.3, 0.5).weak_type
    result = stats.bernoulli.ppf(jnp.asarray([0.3, 0.9, 2.0, np.nan]), 0.5)
    assert not result.weak_type
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [0, 1, np.nan, np.nan])
