"""Programs of loops and branches outside of jit: compiled once for what they do, and released with their functions."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.hlo.structural_key import structural_key
from hloom.tracer import execution

import hloom
import hloom.numpy as jnp
from hloom import lax

X = jnp.arange(1.0, 5.0)
ONE, TWO = jnp.ones(4), jnp.ones(4) * 2

FRESH: dict[str, Callable[[Any], Any]] = {
    "scan": lambda k: lax.scan(lambda c, x: (jnp.tanh(c + x), c * k), 0.0, X),
    "scan in reverse": lambda k: lax.scan(lambda c, x: (c + x * k[0], c), 0.0, X, reverse=True)[1],
    "while_loop": lambda k: lax.while_loop(lambda c: c.max() < 9, lambda c: c * 2 + k, X),
    "fori_loop": lambda k: lax.fori_loop(0, 9, lambda i, c: c * k + i, X),
    "map": lambda k: lax.map(lambda x: x * k, X),
    "map in batches": lambda k: lax.map(lambda x: x * k, X, batch_size=2),
    "cond": lambda k: lax.cond(True, lambda x: sum([x * j + k for j in range(12)]), lambda x: x, X),
    "gradient of a scan": lambda k: hloom.grad(lambda x: lax.scan(lambda c, x: (c * x + k.sum(), None), 1.0, x)[0])(X),
    "batch of a scan": lambda k: hloom.vmap(lambda x: lax.scan(lambda c, y: (c * y + x, None), x, X)[0])(k),
}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that are compiled."""
    names: list[str] = []
    compile_module = execution.compile_module

    def counted(module: Any, **options: Any) -> Any:
        names.append(module.name)
        return compile_module(module, **options)

    monkeypatch.setattr(execution, "compile_module", counted)
    return names


@pytest.mark.parametrize("name", FRESH)
def test_a_function_made_anew_compiles_nothing(name: str, compiled: list[str]) -> None:
    """An array that is captured is an operand, so that another one needs no other program. (Scalars are constants.)"""
    program = FRESH[name]
    hloom.clear_caches()
    first = program(ONE)
    assert compiled
    compiled.clear()
    again = program(ONE)
    other = program(TWO)
    assert compiled == []
    for a, b in zip(hloom.tree.leaves(first), hloom.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(hloom.tree.leaves(first)[-1], hloom.tree.leaves(other)[-1])


def test_other_programs_are_compiled(compiled: list[str]) -> None:
    """Constants, sizes, types, direction and settings matter."""
    hloom.clear_caches()
    for step in (lambda c, x: (c + x * 2, None), lambda c, x: (c + x * 3, None), lambda c, x: (c - x * 3, None)):
        lax.scan(step, 0.0, X)
    lax.scan(lambda c, x: (c + x * 2, None), 0.0, X[:3])
    lax.scan(lambda c, x: (c + x * 2, None), 0.0, X, reverse=True)
    lax.scan(lambda c, x: (c + x * 2, None), 0, X.astype(int))
    with hloom.default_matmul_precision("float32"):
        lax.scan(lambda c, x: (c + x * 2, None), 0.0, X)
    assert len(compiled) == 7


def test_short_branches_run_without_a_program(compiled: list[str]) -> None:
    hloom.clear_caches()
    assert float(lax.cond(True, lambda x: x + 1, lambda x: x, 1.0)) == 2.0
    assert float(lax.switch(1, [lambda x: x, lambda x: x * 3], 1.0)) == 3.0
    assert compiled == []
    large = jnp.ones(20_000)
    np.testing.assert_array_equal(lax.cond(True, lambda x: x * 2 + 1, lambda x: x, large), large * 3)
    assert len(compiled) == 1


def functions() -> Iterator[tuple[str, Callable[[], Any]]]:
    def of_branches() -> Any:
        def one(x: Any) -> Any:
            return x + 1

        def other(x: Any) -> Any:
            return one(x) * 2  # a branch that refers to the other one

        lax.cond(True, one, other, X)
        lax.cond(False, other, one, X)
        return one

    def of_while() -> Any:
        more = jnp.zeros(())

        def body(c: Any) -> Any:
            return c + 1 + more

        lax.while_loop(lambda c: body(c) < 5, body, 0.0)
        return body

    def of_scan() -> Any:
        def body(c: Any, x: Any) -> Any:
            return c + x, None

        hloom.grad(lambda x: lax.scan(body, 0.0, x)[0])(X)
        lax.scan(body, 0.0, X)
        return body

    yield from {"cond": of_branches, "while_loop": of_while, "scan": of_scan}.items()


@pytest.mark.parametrize(("name", "make"), list(functions()))
def test_functions_are_released(name: str, make: Callable[[], Any]) -> None:
    function = weakref.ref(make())
    gc.collect()
    assert function() is None


def test_functions_with_nothing_but_constants_around_them_are_kept_until_caches_are_cleared() -> None:
    def make(limit: int) -> Any:
        def body(c: Any) -> Any:
            return c + 1

        lax.while_loop(lambda c: body(c) < limit, body, 0)
        return weakref.ref(body)

    function = make(5)
    gc.collect()
    assert function() is not None
    hloom.clear_caches()
    gc.collect()
    assert function() is None


def test_a_kept_function_is_traced_once() -> None:
    calls = []

    def step(c: Any, x: Any) -> Any:
        calls.append(x)
        return c + x, None

    def branch(x: Any) -> Any:
        calls.append(x)
        return x

    for _ in range(3):
        lax.scan(step, 0.0, X)
        lax.cond(True, branch, branch, X)
        lax.fori_loop(0, 3, step_of_fori := lambda i, c: step(c, i)[0], 0)
        del step_of_fori
    assert len(calls) == 1 + 1 + 3  # a function in both branches is traced once


# ---- structural keys

TEXT = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[3]{0} parameter(0)
  z = f32[] constant(ZERO)
  ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=add
}
"""


def key_of(text: str) -> Any:
    return structural_key(parse(text).entry)


def test_keys() -> None:
    text = TEXT.replace("ZERO", "0")
    assert key_of(text) == key_of(text.replace("x", "y").replace("add", "sum", 1).replace("=add", "=sum"))
    for other in (
        TEXT.replace("ZERO", "1"),
        TEXT.replace("ZERO", "-0"),
        text.replace("f32[3]", "f32[4]"),
        text.replace("add(a, b)", "multiply(a, b)"),
        text.replace("add(a, b)", "add(b, a)"),
        text.replace("f32", "f64"),
    ):
        assert key_of(text) != key_of(other)


def test_custom_calls_have_no_key() -> None:
    call = (
        'HloModule m\nENTRY e { x = f32[3]{0} parameter(0)  ROOT r = f32[3]{0} custom-call(x), custom_call_target="f" }'
    )
    assert key_of(call) is None
