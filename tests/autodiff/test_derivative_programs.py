"""Programs with custom derivatives, checkpoint, solves and grad's options give JAX's numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.derivative_programs import PATH, PROGRAMS, plain

RECORDED = json.loads(PATH.read_text())


def check(found: Any, expected: Any, where: str) -> None:
    """AssertionError unless two results agree in structure, and in numbers up to rounding in f32."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            check(found[key], value, f"{where}[{key!r}]")
    elif isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), where
        for k, (f, e) in enumerate(zip(found, expected, strict=True)):
            check(f, e, f"{where}[{k}]")
    elif isinstance(expected, float | int):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5, err_msg=where)
    else:
        assert found == expected, where


def test_all_are_recorded() -> None:
    assert RECORDED.keys() == PROGRAMS.keys()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_jax(name: str) -> None:
    with np.errstate(all="ignore"):
        check(plain(PROGRAMS[name](hloom), hloom), RECORDED[name], name)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_record_is_what_jax_gives(name: str) -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("jax.ad_checkpoint")
    pytest.importorskip("jax.custom_derivatives")
    if jax.__version__ != "0.10.2":
        pytest.skip("the record is of JAX 0.10.2")
    check(json.loads(json.dumps(plain(PROGRAMS[name](jax), jax))), RECORDED[name], name)


@pytest.mark.parametrize(
    ("found", "expected"),
    [([1.0, 2.0], [1.0, 2.01]), ([1.0], [1.0, 2.0]), ({"a": 1.0}, {"b": 1.0}), (0.0, "float0[]"), (None, 1.0)],
)
def test_the_check_can_fail(found: Any, expected: Any) -> None:
    with pytest.raises((AssertionError, TypeError)):
        check(found, expected, "here")


WEAK: dict[str, Callable[[Any], Any]] = {
    "an operation": lambda x: x * x,
    "jit": lambda x: hloom.jit(lambda y: y * y)(x),
    "scan": lambda x: lax.scan(lambda c, _: (c * 2, None), x, None, length=3)[0],
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x),
    "cond": lambda x: lax.cond(True, lambda y: y * 2, lambda y: y, x),
    "switch": lambda x: lax.switch(1, [lambda y: y, lambda y: y * 2], x),
    "checkpoint": lambda x: hloom.checkpoint(lambda y: y * y)(x),
    "while_loop": lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * 2, x),
    "where": lambda x: jnp.where(x > 0, x, 0.0),
    "a strong result": lambda x: jnp.sum(x),
}


@pytest.mark.parametrize("name", WEAK)
def test_derivatives_are_as_weak_as_results(name: str) -> None:
    """A Python number in, a weak type out; the same for tangents, cotangents, and what jaxprs say."""
    f, is_weak = WEAK[name], name != "a strong result"
    found = [hloom.typeof(f(1.0)), hloom.jit(f)(1.0), *hloom.jvp(f, (1.0,), (1.0,))]
    found += hloom.make_jaxpr(lambda x: hloom.jvp(f, (x,), (2 * x,)))(1.0).out_avals
    found += hloom.make_jaxpr(f)(1.0).out_avals
    found += hloom.jvp(lambda x: (x, f(x)), (1.0,), (1.0,), has_aux=True)[2:]
    if name != "while_loop":
        value, push = hloom.linearize(f, 1.0)
        found += [value, push(1.0), hloom.jit(push)(1.0), hloom.vjp(f, 1.0)[0]]
        value, aux = hloom.value_and_grad(lambda x: (f(x), f(x)), has_aux=True)(1.0)[0]
        found += [value, aux]
        assert hloom.grad(f)(1.0).weak_type and hloom.jit(hloom.grad(f))(1.0).weak_type
    assert [x.weak_type for x in found] == [is_weak] * len(found)


@pytest.mark.parametrize(("f", "is_weak"), [(jnp.abs, False), (jnp.real, False), (jnp.sin, True), (jnp.conj, True)])
def test_complex_cotangents_that_come_from_real_ones_are_strong(f: Any, is_weak: bool) -> None:
    """As in JAX 0.10.2."""
    value, pull = hloom.vjp(f, 2.0 + 1.0j)
    assert value.weak_type
    assert pull(value)[0].weak_type is is_weak
