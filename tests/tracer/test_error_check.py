"""Errors that programs remember while they run (`hloom.experimental.error_check`), set by users and by operations."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom.experimental import error_check


def error() -> str | None:
    """The first line of the error."""
    try:
        error_check.raise_if_error()
    except error_check.JaxValueError as found:
        return str(found).splitlines()[0]
    return None


def positive(x: Any) -> Any:
    error_check.set_error_if(x <= 0, "not positive")
    return x + 1


TRANSFORMED: dict[str, Callable[[Any], Any]] = {
    "eager": positive,
    "jit": hloom.jit(positive),
    "vmap": hloom.vmap(positive),
    "jit of vmap": hloom.jit(hloom.vmap(positive)),
    "grad": hloom.grad(lambda x: positive(x).sum()),
    "jit of grad": hloom.jit(hloom.grad(lambda x: positive(x).sum())),
    "vmap of grad": hloom.vmap(hloom.grad(positive)),
    "scan": hloom.jit(lambda x: hloom.lax.scan(lambda c, x: (c + positive(x), x), 0.0, x)),
    "while": hloom.jit(lambda x: hloom.lax.while_loop(lambda x: (x < 5).any(), positive, x)),
    "cond": hloom.jit(lambda x: hloom.lax.cond(x[0] < 9, positive, lambda x: x, x)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_an_error_is_found_and_forgotten(name: str) -> None:
    f = TRANSFORMED[name]
    f(jnp.array([1.0, 2.0]))
    assert error() is None
    f(jnp.array([1.0, -2.0]))
    assert (error(), error()) == ("not positive", None)


def test_the_first_error_stays() -> None:
    hloom.jit(positive)(-1.0)
    error_check.set_error_if(jnp.array(True), "later")
    with error_check.error_checking_context():
        assert error() is None
        error_check.set_error_if(jnp.array(True), "inside")
    with pytest.raises(error_check.JaxValueError, match=r"^not positive\n  set at .*test_error_check.py"):
        error_check.raise_if_error()


def test_misuse() -> None:
    with pytest.raises(TypeError, match="set_error_if needs an array of booleans, not int32"):
        error_check.set_error_if(jnp.array(1), "no")
    with pytest.raises(ValueError, match="within a traced context"):
        hloom.jit(error_check.raise_if_error)()
    with pytest.raises(ValueError, match="must be one of 'ignore', 'raise'"):
        error_check.error_checking_behavior(nan="maybe")


OPERATIONS: list[tuple[str, Callable[..., Any], tuple[Any, ...], tuple[Any, ...], str]] = [
    ("nan", jnp.arccos, (2.0,), (0.5,), "NaN"),
    ("nan", jnp.add, (np.inf, -np.inf), (0.0, 0.0), "NaN"),
    ("nan", jnp.divmod, (1.0, 0.0), (1.0, 1.0), "NaN"),
    ("nan", jnp.float_power, (-1.0, 0.5), (1.0, 1.0), "NaN"),
    ("nan", jnp.log2, (-1.0,), (1.0,), "NaN"),
    ("nan", operator.mod, (1.0, 0.0), (1.0, 1.0), "NaN"),
    ("divide", operator.truediv, (1.0, 0.0), (1.0, 2.0), "Division by zero"),
    ("divide", jnp.floor_divide, (1, 0), (1, 2), "Division by zero"),
    ("divide", jnp.mod, (1, 0), (1, 2), "Division by zero"),
    ("oob", lambda i: jnp.arange(3)[i], (3,), (2,), "Out of bounds"),
    ("oob", lambda i: jnp.arange(3)[jnp.array([0, i])], (-4,), (-3,), "Out of bounds"),
]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(("kind", "f", "bad", "good", "message"), OPERATIONS)
def test_operations_set_errors(kind: str, f: Callable[..., Any], bad: Any, good: Any, message: str, jit: bool) -> None:
    run = hloom.jit(lambda *xs: f(*xs)) if jit else f
    with error_check.error_checking_behavior(**{kind: "raise"}):
        run(*map(jnp.asarray, good))
        assert error() is None
        run(*map(jnp.asarray, bad))
        assert (error() or "").startswith(message)
    run(*map(jnp.asarray, bad))
    assert error() is None


def test_the_setting_is_for_the_process_too() -> None:
    hloom.config.update("jax_error_checking_behavior_nan", "raise")
    try:
        hloom.grad(hloom.jit(jnp.sqrt))(-1.0)
        assert (error() or "").startswith("NaN")
    finally:
        hloom.config.update("jax_error_checking_behavior_nan", "ignore")
