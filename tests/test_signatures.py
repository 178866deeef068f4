"""A transformed function keeps its name, signature and documentation; type checkers' view: `test_static_tools.py`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import hloom
import hloom.numpy as jnp


def loss(w: hloom.Array, x: hloom.Array, *, scale: float = 1.0) -> hloom.Array:
    """How far it is off."""
    return ((w * x) ** 2).sum() * scale


TRANSFORMATIONS: dict[str, Callable[[Any], Any]] = {
    "jit": hloom.jit,
    "jit with options": hloom.jit(static_argnames="scale"),
    "grad": hloom.grad,
    "grad with aux": lambda f: hloom.grad(f, has_aux=True),
    "value_and_grad": hloom.value_and_grad,
    "jacfwd": hloom.jacfwd,
    "jacrev": hloom.jacrev,
    "hessian": hloom.hessian,
    "checkpoint": hloom.checkpoint,
    "custom_jvp": hloom.custom_jvp,
    "custom_vjp": hloom.custom_vjp,
    "jit of grad": lambda f: hloom.jit(hloom.grad(f)),
    "make_hlo": hloom.make_hlo,
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_transformed_function_looks_like_the_function(name: str) -> None:
    found = TRANSFORMATIONS[name](loss)
    assert inspect.signature(found) == inspect.signature(loss)
    assert (found.__name__, found.__doc__, found.__module__) == ("loss", loss.__doc__, __name__)
    assert inspect.unwrap(found) is loss
    assert found.__annotations__ == loss.__annotations__


@pytest.mark.parametrize("name", [n for n in TRANSFORMATIONS if "custom" not in n])
def test_functions_without_a_name_are_transformed(name: str) -> None:
    with_scale = functools.partial(loss, scale=2.0)
    found = TRANSFORMATIONS[name](with_scale if "aux" not in name else lambda w, x: (loss(w, x), 1.0))
    assert found(jnp.ones(3), jnp.ones(3)) is not None


@pytest.mark.parametrize("custom", [hloom.custom_jvp, hloom.custom_vjp])
def test_methods(custom: Any) -> None:
    class Model:
        weight = 3.0

        @functools.partial(hloom.jit, static_argnums=0)
        def apply(self, x: hloom.Array) -> hloom.Array:
            """Apply."""
            return x * self.weight

        @functools.partial(custom, nondiff_argnums=0)
        def own(self, x: hloom.Array) -> hloom.Array:
            """Its own rule."""
            return x * self.weight

    if custom is hloom.custom_jvp:
        Model.own.defjvp(lambda self, primals, tangents: (self.own(*primals), tangents[0] * 7.0))
    else:
        Model.own.defvjp(lambda self, x: (self.own(x), None), lambda self, _, ct: (ct * 7.0,))
    assert Model.apply.__doc__ == "Apply." and Model.own.__doc__ == "Its own rule."
    assert float(Model().apply(2.0)) == 6.0
    assert float(hloom.grad(lambda x: Model().own(x))(2.0)) == 7.0
