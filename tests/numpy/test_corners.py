"""Values and derivatives of elementwise functions where they are hard: corners, zeros, infinities, NaN.

The numbers in the table are from JAX 0.10.2, except where `DIFFERENT` says why not; with JAX installed, every
elementwise function of one or two arguments is compared with it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax, nn
from support.evaluator_fixture import on_the_evaluator  # noqa: F401  # a fixture

inf, nan = np.inf, np.nan
PAIRS = np.array([-inf, -2, -1, -0.5, -0.0, 0, 0.5, 1, 2.5, inf, nan], np.float32)
POINTS = np.array([-inf, -200, -3, -1.5, -1, -0.5, -0.0, 0, 1e-30, 0.5, 1, 1.5, 3, 6, 9, 200, inf, nan], np.float32)


def derivative(package: Any, fun: Callable[..., Any], order: int, argument: int = 0) -> Callable[..., Any]:
    """Of an elementwise function: in reverse mode, all elements at once."""
    for _ in range(order):
        fun = package.grad(lambda *xs, inner=fun: inner(*xs).sum(), argument)
    return fun


# ---- recorded


PI2 = np.pi**2
TABLE: list[tuple[Callable[[Any], Any], dict[float, tuple[float, float, float]]]] = [
    # function, {point: (value, derivative, second derivative)}
    (nn.relu, {-1: (0, 0, 0), -0.0: (0, 0, 0), 1: (1, 1, 0), inf: (inf, 1, 0), nan: (nan, 0, 0)}),
    (nn.relu6, {-1: (0, 0, 0), 0: (0, 0, 0), 3: (3, 1, 0), 6: (6, 0, 0), inf: (6, 0, 0), nan: (nan, 0, 0)}),
    (nn.hard_tanh, {-2: (-1, 0, 0), -1: (-1, 1, 0), 1: (1, 1, 0), inf: (1, 0, 0), nan: (nan, 1, 0)}),
    (nn.hard_sigmoid, {-3: (0, 0, 0), 0: (0.5, 1 / 6, 0), 3: (1, 0, 0), inf: (1, 0, 0), nan: (nan, 0, 0)}),
    (nn.hard_silu, {-inf: (nan, 0, 0), -3: (0, 0, 0), 0: (0, 0.5, 1 / 3), 3: (3, 1, 0), inf: (inf, 1, 0)}),
    (nn.softplus, {-inf: (0, 0, 0), 0: (np.log(2), 0.5, 0.25), inf: (inf, 1, 0), nan: (nan, nan, nan)}),
    (nn.log_sigmoid, {-inf: (-inf, 1, 0), 0: (-np.log(2), 0.5, -0.25), inf: (0, 0, 0), nan: (nan, nan, nan)}),
    (
        lax.erf_inv,
        {
            -1: (-inf, inf, -inf),
            0: (0, np.sqrt(np.pi) / 2, 0),
            0.5: (0.4769363, 1.112585, 1.180746),
            1: (inf, inf, inf),
            2: (nan, nan, nan),
        },
    ),
    (jnp.sinc, {0: (1, 0, -PI2 / 3), 1: (0, -1, 2), nan: (nan, nan, nan)}),
    (jnp.cbrt, {0: (0, inf, -inf), 8: (2, 1 / 12, -1 / 144), inf: (inf, 0, 0)}),
    (lambda x: jnp.logaddexp(x, 0.0), {0: (np.log(2), 0.5, 0.25), nan: (nan, nan, nan), -inf: (0, 0, 0)}),
    (lambda x: jnp.logaddexp(x, x), {1: (1 + np.log(2), 1, 0), inf: (inf, 1, 0), -inf: (-inf, 1, 0)}),
    (lambda x: jnp.logaddexp(x, jnp.inf), {1: (inf, 0, 0), inf: (inf, 0.5, 0)}),
    (lambda x: jnp.logaddexp2(x, 0.0), {0: (1, 0.5, np.log(2) / 4), nan: (nan, nan, nan)}),
    (lambda x: jnp.logaddexp2(x, x), {-1000: (-999, 1, 0), inf: (inf, 1, 0), -inf: (-inf, 1, 0)}),
    (lambda x: lax.pow(jnp.full_like(x, 2.5), x), {0: (1, np.log(2.5), np.log(2.5) ** 2)}),
    (lambda x: lax.pow(x, jnp.zeros_like(x)), {0: (1, 0, 0), 2: (1, 0, 0)}),
    (lambda x: lax.pow(x, jnp.ones_like(x)), {0: (0, 1, 0), 2: (2, 1, 0)}),
    (lambda x: x // 0.0, {-1: (-inf, 0, 0), 1: (inf, 0, 0), 0: (nan, 0, 0)}),
]


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize(("fun", "expected"), TABLE)
def test_recorded(fun: Callable[[Any], Any], expected: dict[float, tuple[float, float, float]]) -> None:
    points = jnp.asarray(np.array(list(expected), np.float32))
    for order in range(3):
        found = np.asarray(derivative(hloom, fun, order)(points))
        wanted = [row[order] for row in expected.values()]
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6, err_msg=f"order {order}")


@pytest.mark.usefixtures("on_the_evaluator")
def test_mixed_derivative_of_a_power_at_exponent_zero() -> None:
    """y x^(y-1) by y is 1/x at y = 0: a derivative that is 0 there by a select would lose it."""
    x, y = jnp.asarray([1.0, 2.5]), jnp.zeros(2)
    by_x = derivative(hloom, lax.pow, 1, 0)
    np.testing.assert_allclose(np.asarray(derivative(hloom, by_x, 1, 1)(x, y)), [1, 0.4], rtol=1e-6)


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("masked", [0.0, inf, nan, 300.0])
@pytest.mark.parametrize(
    ("fun", "expected"),
    [(nn.softmax, [0, -0.3932239, 0.3932239]), (nn.log_softmax, [0, 0.3863514, -0.3863514])],
)
def test_a_masked_element_has_no_part_in_a_softmax(fun: Callable[..., Any], expected: Any, masked: float) -> None:
    where, weights = np.array([False, True, True]), np.array([1, 2, 4], np.float32)

    def loss(x: Any) -> Any:
        return (jnp.where(where, fun(x, where=where), 0) * weights).sum()

    x = jnp.asarray([masked, 0.0, 1.0])
    np.testing.assert_allclose(np.asarray(hloom.grad(loss)(x)), expected, rtol=2e-5)
    second = np.asarray(hloom.hessian(loss)(x))
    assert np.isfinite(second).all() and not second[0].any() and not second[:, 0].any()
    nothing = np.zeros(3, bool)
    assert not np.asarray(hloom.grad(lambda x: (fun(x, where=nothing) * weights).sum())(x)).any()


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("fun", [nn.softmax, nn.log_softmax])
def test_a_masked_element_has_a_derivative_of_0_even_if_the_others_have_none(fun: Callable[..., Any]) -> None:
    where = np.array([True, True, False])
    gradient = hloom.grad(lambda x: jnp.where(where, fun(x, where=where), 0).sum())(jnp.asarray([nan, 0.0, 1.0]))
    assert np.isnan(np.asarray(gradient)).tolist() == [True, True, False]


@pytest.mark.usefixtures("on_the_evaluator")
def test_nan_has_no_part_in_nanvar() -> None:
    x = jnp.asarray([nan, 0.0, 1.0])
    assert np.asarray(hloom.grad(jnp.nanvar)(x)).tolist() == [0, -0.5, 0.5]
    assert np.asarray(hloom.grad(jnp.nanstd)(x)).tolist() == [0, -0.5, 0.5]


# ---- against JAX

DIFFERENT: dict[str, tuple[float, ...]] = {
    "numpy.sinc": (1e-30,),  # JAX divides by x**2, which is 0
    "numpy.arctanh": (-inf, inf),  # out of the domain; JAX has a second derivative there
    "numpy.atanh": (-inf, inf),
    "lax.atanh": (-inf, inf),
    "nn.mish": (6, 9),  # the second derivative is a small difference of large terms
}
"""Points at which the numbers are not JAX's, and why."""

NOT_ELEMENTWISE = {
    *("softmax", "log_softmax", "standardize", "flip", "flipud"),
    *("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"),
}


def functions(jax: Any) -> Iterator[Any]:
    """Those that make one float of one float, by name."""
    for name, ours, theirs in (("nn", nn, jax.nn), ("numpy", jnp, jax.numpy), ("lax", lax, jax.lax)):
        for n in ours.__all__:
            fun, jax_fun = getattr(ours, n), getattr(theirs, n, None)
            if not inspect.isfunction(fun) or jax_fun is None:
                continue
            try:
                result = jax_fun(np.linspace(0.1, 0.9, 3, dtype=np.float32))
                fun(jnp.ones(3))
            except Exception:  # another kind of function
                continue
            if getattr(result, "shape", None) == (3,) and n not in NOT_ELEMENTWISE:
                yield f"{name}.{n}", fun, jax_fun


def agree(found: Any, expected: Any, order: int) -> Any:
    """Which numbers are the same; of values (order 0) also the signs of zeros."""
    same = np.isclose(found, expected, rtol=2e-4, atol=1e-5, equal_nan=True)
    if order == 0 and expected.dtype == np.float32:
        same &= (np.signbit(found) == np.signbit(expected)) | (expected != 0) | np.isnan(expected)
    return same


DIFFERENT_PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    # an infinite argument has a weight of 0 or 1, two of the same 1/2; JAX has exp(x) or NaN there
    "numpy.logaddexp": lambda x, y: np.isinf(x) | np.isinf(y),
    "numpy.logaddexp2": lambda x, y: np.isinf(x) | np.isinf(y),
    # at x = 0 the derivative of x**0 and x**1 is 0 and 1, the second derivatives are 0; JAX has NaN for 0 * (1 / 0)
    **dict.fromkeys(("numpy.float_power", "numpy.pow", "numpy.power", "lax.pow"), lambda x, y: x == 0),
}
"""Pairs at which derivatives are not JAX's, and why."""
NOT_OF_PAIRS = {"polyval", "dot", "inner", "vdot", "matmul", "vecdot", "correlate", "convolve", "batch_matmul", "cross"}


def functions_of_two(jax: Any) -> Iterator[Any]:
    """Those that make one float of two floats, by name."""
    probe = np.linspace(0.1, 0.9, 3, dtype=np.float32)
    for name, ours, theirs in (("numpy", jnp, jax.numpy), ("lax", lax, jax.lax)):
        for n in ours.__all__:
            fun, jax_fun = getattr(ours, n), getattr(theirs, n, None)
            if jax_fun is None or not callable(fun) or isinstance(fun, type) or n in NOT_OF_PAIRS | NOT_ELEMENTWISE:
                continue
            try:
                result = jax_fun(probe, probe)
                fun(jnp.ones(3), jnp.ones(3))
            except Exception:  # another kind of function
                continue
            if getattr(result, "shape", None) == (3,) and result.dtype in (np.float32, np.bool_):
                yield f"{name}.{n}", fun, jax_fun, result.dtype == np.float32


@pytest.mark.slow
@pytest.mark.usefixtures("on_the_evaluator")
def test_every_function_of_two_arguments_is_that_of_jax() -> None:
    jax = pytest.importorskip("jax")
    x, y = (grid.ravel() for grid in np.meshgrid(PAIRS, PAIRS))
    wrong, count = [], 0
    for name, fun, jax_fun, floats in functions_of_two(jax):
        count += 1
        for arguments in ((), (0,), (1,), (0, 0), (0, 1), (1, 1)) if floats else ((),):
            theirs, mine = jax_fun, fun
            for a in arguments:
                theirs, mine = derivative(jax, theirs, 1, a), derivative(hloom, mine, 1, a)
            try:
                expected = np.asarray(theirs(jax.numpy.asarray(x), jax.numpy.asarray(y)))
            except Exception:  # JAX has no derivative
                break
            found = np.asarray(mine(jnp.asarray(x), jnp.asarray(y)))
            same = agree(found, expected, len(arguments))
            if arguments and name in DIFFERENT_PAIRS:
                same |= DIFFERENT_PAIRS[name](x, y)
            wrong += [(name, arguments, *row) for row in zip(x[~same], y[~same], found[~same], expected[~same])]
    assert count > 40
    assert wrong == []


@pytest.mark.slow
@pytest.mark.usefixtures("on_the_evaluator")
def test_every_function_of_one_argument_is_that_of_jax() -> None:
    jax = pytest.importorskip("jax")
    wrong, count = [], 0
    for name, fun, jax_fun in functions(jax):
        floats = jax_fun(POINTS).dtype == np.float32
        count += 1
        for order in range(3 if floats else 1):
            try:
                expected = np.asarray(derivative(jax, jax_fun, order)(jax.numpy.asarray(POINTS)))
            except Exception:  # JAX has no derivative
                break
            found = np.asarray(derivative(hloom, fun, order)(jnp.asarray(POINTS)))
            same = agree(found, expected, order)
            same |= np.isin(POINTS, np.array(DIFFERENT.get(name, ()), np.float32))
            wrong += [(name, order, p, f, e) for p, f, e in zip(POINTS[~same], found[~same], expected[~same])]
    assert count > 90
    assert wrong == []
