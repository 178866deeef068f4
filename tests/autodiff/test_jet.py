"""`hloom.experimental.jet`: derivatives of higher order against formulas, JAX, and nested derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.experimental.jet import jet, jet2

X, Y = np.array([0.3, 0.8, 1.7]), np.array([[0.2, 0.4, -0.6]])

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sin": jnp.sin,
    "quotient": lambda x: jnp.exp(x) / (1 + x**2),
    "log": lambda x: jnp.log(x) * jnp.sqrt(x),
    "matrix": lambda x: jnp.tanh(Y @ x),
    "structure": lambda x: {"a": x * x, "b": (x[:2].sum(), x.prod())},
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, y: y * x + jnp.cos(y), x),
    "branch": lambda x: lax.cond(x[0] > 0, jnp.sinh, jnp.cosh, x),
    "solve": lambda x: jnp.linalg.solve(jnp.outer(x, x) + 3 * jnp.eye(3), x),
    "constant": lambda x: jnp.ones(2),
}


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_along_a_line_are_nested_ones(name: str) -> None:
    function = FUNCTIONS[name]
    with hloom.enable_x64(True):
        value, series = hloom.jit(lambda x: jet(function, (x,), ([jnp.ones(3), jnp.zeros(3), jnp.zeros(3)],)))(X)
        derived = lambda t: function(X + t)  # noqa: E731
        for order in range(1, 4):
            derived = hloom.jacfwd(derived)
            expected = hloom.tree.leaves(derived(0.0))
            found = [terms[order - 1] for terms in hloom.tree.leaves(series, is_leaf=lambda x: isinstance(x, list))]
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-9)
        for a, b in zip(hloom.tree.leaves(value), hloom.tree.leaves(function(X)), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b))


def test_curves_and_scales() -> None:
    """sin(z^3) by the formula of Faa di Bruno, as derivatives and as Taylor coefficients; two arguments."""
    h0, h1, h2 = 0.125, 0.75, 3.0
    second = -np.sin(h0) * h1**2 + np.cos(h0) * h2
    with hloom.enable_x64(True):
        value, (first, other) = jet(jnp.sin, (h0,), ((h1, h2),))
        np.testing.assert_allclose([float(value), float(first), float(other)], [np.sin(h0), np.cos(h0) * h1, second])
        for scaled in (
            jet(jnp.sin, (h0,), ((h1, h2 / 2),), factorial_scaled=False),
            jet2(jnp.sin, (h0,), ((h1, h2 / 2),)),
        ):
            np.testing.assert_allclose([float(c) for c in scaled[1]], [np.cos(h0) * h1, second / 2])
        _, terms = jet(jnp.multiply, (2.0, 5.0), ([3.0, 1.0], [7.0, 4.0]))
        assert [float(t) for t in terms] == [29.0, 55.0]
        assert jet(jnp.sin, (h0,), ([],))[1] == []


@pytest.mark.parametrize("name", ["sin", "quotient", "log", "matrix"])
def test_as_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    from jax.experimental.jet import jet as theirs

    series = ([X * 0.5, X - 1, X**2],)
    functions = {
        "sin": lambda np_like, x: np_like.sin(x),
        "quotient": lambda np_like, x: np_like.exp(x) / (1 + x * x),
        "log": lambda np_like, x: np_like.log(x) * np_like.sqrt(x),
        "matrix": lambda np_like, x: np_like.tanh(np_like.dot(Y, x)),
    }
    with hloom.enable_x64(True), jax.enable_x64(True):
        found = jet(lambda x: functions[name](jnp, x), (X,), series)
        expected = theirs(lambda x: functions[name](jax.numpy, x), (X,), series)
        for a, b in zip(hloom.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-9)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "lengths": (lambda: jet(jnp.add, (1.0, 2.0), ([1.0], [])), "inconsistent lengths"),
    "primal": (lambda: jet(jnp.sin, ([1.0],), ([1.0],)), "primal value at position 0 is not an array"),
    "term": (lambda: jet(jnp.sin, (1.0,), ([[1.0]],)), "term 0 for argument 0 is not an array"),
    "number": (lambda: jet(jnp.sin, (1.0,), ()), "a series for each"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()
