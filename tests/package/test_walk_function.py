"""The guide "Adding a library function with its own derivative" of docs/architecture/adding.md, with a toy function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.extend import Primitive

X = np.array([-300.0, -1.0, 0.0, 2.0, 300.0], np.float32)


def log_cosh(x: Any, scale: float = 1.0) -> Any:
    """log(cosh(scale * x)) without overflow."""
    (value,) = jnp.broadcast_arrays(jnp.asarray(x, jnp.float32))
    return _log_cosh.bind(value, scale=scale)


_log_cosh = Primitive("log_cosh")
runs: list[str] = []


@_log_cosh.def_meaning
def _log_cosh_meaning(x: Any, *, scale: float) -> Any:
    runs.append("meaning")
    y = abs(scale * x)
    return y + jnp.log1p(jnp.exp(-2 * y)) - np.log(2)


@_log_cosh.def_jvp
def _log_cosh_jvp(primals: Any, tangents: Any, *, scale: float) -> tuple[Any, Any]:
    runs.append("jvp")
    (x,), (t,) = primals, tangents
    return log_cosh(x, scale), t * scale * jnp.tanh(scale * x)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)


VALUE = np.logaddexp(X.astype(float), -X.astype(float)) - np.log(2)
FIRST = np.tanh(X)
SECOND = 1 - np.tanh(X) ** 2


@pytest.mark.parametrize("wrap", [lambda f: f, hloom.jit, lambda f: hloom.jit(hloom.jit(f))])
def test_value_and_derivatives_outside_and_inside_of_jit(wrap: Any) -> None:
    close(wrap(log_cosh)(X), VALUE)
    close(wrap(hloom.grad(lambda x: log_cosh(x).sum()))(X), FIRST)
    close(wrap(hloom.grad(lambda x: hloom.grad(lambda y: log_cosh(y).sum())(x).sum()))(X), SECOND)
    close(wrap(lambda x, t: hloom.jvp(log_cosh, (x,), (t,))[1])(X, X), X * FIRST)


def test_the_derivative_is_the_one_beside_it() -> None:
    """Not the derivative of the expansion, which is NaN far out; a jitted function keeps it."""
    runs.clear()
    close(hloom.grad(hloom.jit(log_cosh))(3.0), np.tanh(3.0))
    assert "jvp" in runs


def test_nested_in_other_transformations() -> None:
    def through_a_loop(x: Any) -> Any:
        return lax.scan(lambda c, _: (log_cosh(c, scale=0.5) + x, None), x, None, length=3)[0].sum()

    def unrolled(x: Any) -> Any:
        c = x
        for _ in range(3):
            c = log_cosh(c, scale=0.5) + x
        return c.sum()

    x = jnp.asarray([0.3, 1.0])
    close(hloom.grad(through_a_loop)(x), np.asarray(hloom.grad(unrolled)(x)))
    close(hloom.grad(hloom.checkpoint(unrolled))(x), np.asarray(hloom.grad(unrolled)(x)))


def test_in_hlo_it_is_a_call_by_its_name_whose_meaning_is_traced_once() -> None:
    runs.clear()
    text = hloom.jit(lambda x: log_cosh(x, 3.0) * log_cosh(2 * x, 3.0)).lower(X).as_text()
    assert runs == ["meaning"]
    assert text.count("call(") == 2
    assert text.count('composite.name="log_cosh"') == 2
    assert "custom_jvp" not in text and "tanh" not in text
    optimized = hloom.jit(log_cosh).lower(X).compile().as_text()
    assert " call(" not in optimized and "fusion(" in optimized
