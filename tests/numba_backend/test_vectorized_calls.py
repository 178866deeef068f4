"""Calls of long functions that are put together into loops: same bits, and nothing changes places that must not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.expressions import Call, Expr, Load, Name, Number
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.statements import Assign, Block, Comment, For, If, LoopProgram, Store
from hloom.numba_backend.loops.vectorized_calls import LEAST, vectorized_calls

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.native_loops import compiled

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": jnp.sin, "tanh": jnp.tanh, "exp": jnp.exp, "log": jnp.log, "log1p": jnp.log1p, "arctan2": jnp.arctan2,
    "power": jnp.power, "logistic": hloom.nn.sigmoid,
}  # fmt: skip
EDGES = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 1e30, -3e9, 1.5, -2.25])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_bits_as_of_an_array(name: str, dtype: str) -> None:
    """Two steps of a loop over as many scalars as there are edge values, which is no multiple of a vector."""
    function = FUNCTIONS[name]
    with hloom.enable_x64():
        x = EDGES.astype(dtype)
        more = (np.asarray(1.25, dtype),) if name in ("arctan2", "power") else ()

        def scalars(*values: Any) -> tuple[Any, ...]:
            return lax.fori_loop(0, 2, lambda _, now: tuple(function(v, *more) for v in now), values)

        program = hloom.jit(scalars).lower(*x).compile()
        assert "local_array" in str(program.kernels())
        together = np.stack([np.asarray(r) for r in program(*x)])
        alone = np.asarray(hloom.jit(lambda v: function(function(v, *more), *more))(x))
        np.testing.assert_array_equal(together.view(f"u{x.itemsize}"), alone.view(f"u{x.itemsize}"))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("count", [LEAST - 1, LEAST, LEAST + 1, 20])
def test_a_loop_of_many_scalars(count: int, rounds: int) -> None:
    """Each round needs the one before; compiled, and by the evaluator."""

    def f(start: Any) -> Any:
        def step(k: Any, state: Any) -> Any:
            for _ in range(rounds):
                state = tuple(x + 0.25 * jnp.sin(y - x) for x, y in zip(state, (*state[1:], state[0]), strict=True))
            return state

        return jnp.stack(lax.fori_loop(0, 5, step, tuple(start)))

    start = np.linspace(-2, 2, count, dtype=np.float32)
    found = hloom.jit(f)(start)
    (expected,) = compiled(f, (start,), "evaluator").run()
    np.testing.assert_allclose(found, expected, rtol=3e-6, atol=3e-7)
    text = str(hloom.jit(f).lower(start).compile().kernels())
    assert text.count("local_array(") == (rounds if count >= LEAST else 0)


def test_functions_within_functions_and_results_that_leave_at_once() -> None:
    """Values are made before they are used, for any order in the program."""

    def f(*x: Any) -> Any:
        inner = [jnp.tanh(v) * 2 for v in x]
        outer = [jnp.exp(a - b) for a, b in itertools.pairwise([*inner, x[0]])]
        return (*outer, *inner, jnp.log(sum(outer)), jnp.sin(inner[0] + outer[-1]))

    x = np.linspace(-1, 1, 9, dtype=np.float32)
    inner = np.tanh(x) * 2
    outer = np.exp(inner - np.append(inner[1:], x[0]))
    expected = [*outer, *inner, np.log(outer.sum()), np.sin(inner[0] + outer[-1])]
    np.testing.assert_allclose(np.stack(hloom.jit(f)(*x)), expected, rtol=1e-5)


# ---- what must keep its place

X, Y = Name("x", "float32*"), Name("y", "float32*")


def _sin(e: Expr) -> Expr:
    return Call("sin", (e,))


def _value(k: int) -> Name:
    return Name(f"v{k}", "float32")


def _text(block: Block) -> str:
    numbers = itertools.count()
    changed = vectorized_calls(block, lambda stem: f"{stem}{next(numbers)}")
    return to_text(LoopProgram("f", ("x", "y"), changed))


CALLS: Block = [Assign((_value(k),), (_sin(Load(X, Number(k))),)) for k in range(LEAST)]


def test_what_is_moved() -> None:
    """Eight loads become eight stores into an array; comments come first."""
    text = _text([CALLS[0], Comment("sines"), *CALLS[1:], Store(Y, Number(0), _value(3))])
    lines = [line.strip() for line in text.splitlines()[1:]]
    assert lines[0] == "# sines"
    assert lines[1] == "calls0 = local_array(8, float32)"
    assert [line for line in lines if "sin(" in line] == ["calls0[call1] = sin(calls0[call1])"]
    assert lines[-1] == "y[0] = v3" and "v3 = calls0[3]" in lines


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(Store(X, Number(0), Number(0.0)), id="a store to what is read"),
        pytest.param(If([(Number(True), [])]), id="a branch"),
        pytest.param(For(Name("i"), None, Number(3), 1, []), id="a loop"),
        pytest.param(Assign((_value(20), _value(21)), (Number(1.0), Number(2.0))), id="two at once"),
    ],
)
def test_what_keeps_its_place(between: Any) -> None:
    """Four calls before and four after it are not enough for a loop on either side."""
    block = [*CALLS[:4], between, *CALLS[4:]]
    assert _text(block) == to_text(LoopProgram("f", ("x", "y"), block))


def test_a_name_with_several_values() -> None:
    """Each state is replaced by its sine, twice: two loops, and the last values are there at the end."""
    block = [Assign((_value(k),), (_sin(_value(k)),)) for _ in range(2) for k in range(LEAST)]
    lines = [line.strip() for line in _text(block).splitlines()]
    assert sum("sin(" in line for line in lines) == 2
    numbers = {line.split(" = ")[0]: line.split(" = ")[1] for line in lines if line.startswith(("v", "next"))}
    ends = [numbers[f"v{k}"] for k in range(LEAST)]
    assert lines[-LEAST:] == [f"v{k} = {end}" for k, end in enumerate(ends)]
    assert len({numbers[end] for end in ends}) == LEAST and len(set(ends)) == LEAST


def test_two_stores_to_one_memory_keep_their_order() -> None:
    stores: Block = [Store(Y, Number(0), _value(7)), Store(Y, Name("n"), _value(0))]
    lines = _text([*CALLS, *stores]).splitlines()
    assert lines[-2:] == ["    y[0] = v7", "    y[n] = v0"]


def test_inner_loops_are_left_to_the_vectoriser() -> None:
    loop = For(Name("i"), None, Number(100), 1, list(CALLS))
    assert "local_array" not in _text([loop])
