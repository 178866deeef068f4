"""slices-of-loops: loops read slices of whole arrays where these are, and write where their results are joined.

A table of programs, each against NumPy, with what the program must not copy: the number of arrays of at least half of
the operand's size that instructions outside of loops may make.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.hlo.opcode import Opcode
from hloom.hlo.text.parser import parse

import hloom
import hloom.numpy as jnp
from hloom import lax

N, M = 300, 5
X = np.random.default_rng(0).uniform(-1, 1, (N, M)).astype(np.float32)


def decay(carry: Any, row: Any) -> Any:
    new = carry * np.float32(0.5) + row
    return new, new


def decayed(rows: Any) -> list[Any]:
    found = [rows[0]]
    for row in rows[1:]:
        found.append(decay(found[-1], row)[0])
    return found


def after_first(x: Any) -> Any:
    return jnp.concatenate([x[:1], lax.scan(decay, x[0], x[1:])[1]])


def before_last(x: Any) -> Any:
    ys = lax.scan(decay, x[-1], x[:-1], reverse=True)[1]
    return jnp.concatenate([ys, x[-1:]])


def between(x: Any) -> Any:
    ys = lax.scan(decay, x[0], x[1:-1])[1]
    return jnp.concatenate([x[:1], ys, x[-1:] * 2])


def last_state_joined(x: Any) -> Any:
    last, ys = lax.scan(decay, x[0], x[1:])
    return jnp.concatenate([ys, last[None]])


def used_twice(x: Any) -> Any:
    ys = lax.scan(decay, x[0], x[1:])[1]
    return jnp.concatenate([x[:1], ys]), ys.sum()


def clamped(x: Any, places: Any) -> Any:
    """Indices are counted from the slice's ends; those beyond are of its first and last row, not of the array's."""
    part = x[2:-3]
    return lax.map(lambda p: lax.dynamic_index_in_dim(part, p, keepdims=False), places)


def nested(x: Any) -> Any:
    def outer(k: Any, total: Any) -> Any:
        return total + jnp.concatenate([x[:1], lax.scan(decay, x[0] + k, x[1:])[1]])

    return lax.fori_loop(0, 3, outer, jnp.zeros_like(x))


def of_loop_in_loop(x: Any) -> Any:
    """The slice is made in each iteration of the outer loop."""

    def outer(_: Any, x: Any) -> Any:
        return jnp.concatenate([x[:1], lax.scan(decay, x[0], x[1:])[1]])

    return lax.fori_loop(0, 3, outer, x)


def nested_by_hand() -> Any:
    total = np.zeros_like(X)
    for k in range(3):
        carry, rows = X[0] + np.float32(k), [X[0]]
        for row in X[1:]:
            carry = decay(carry, row)[0]
            rows.append(carry)
        total += np.array(rows)
    return total


PLACES = np.array([-9, 0, 1, N - 7, N - 6, N - 5, N + 9, -(2**31), 2**31 - 1], np.int32)
ROWS = decayed(X)
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any, int]] = {
    "after the first row": (after_first, (X,), [ROWS], 1),
    "before the last row": (before_last, (X,), [decayed(X[::-1])[::-1]], 1),
    "between two rows": (between, (X,), [[*ROWS[:-1], X[-1] * 2]], 1),
    "joined with the last state": (last_state_joined, (X,), [[*ROWS[1:], ROWS[-1]]], 2),
    "used twice": (used_twice, (X,), [ROWS, np.sum(ROWS[1:], dtype=np.float32)], 2),
    "clamped": (clamped, (X, PLACES), [X[2:-3][np.clip(np.where(PLACES < 0, PLACES + N - 5, PLACES), 0, N - 6)]], 0),
    "batched": (hloom.vmap(after_first, 1, 1), (X,), [ROWS], 2),
    "nested": (nested, (X,), [nested_by_hand()], 2),
    "in each turn": (of_loop_in_loop, (X,), [decayed(np.array(decayed(np.array(ROWS))))], 1),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_copies(name: str) -> None:
    function, arguments, wanted, copies = PROGRAMS[name]
    lowered = hloom.jit(function).lower(*arguments)
    compiled = lowered.compile()
    optimised = parse(compiled.as_text())
    made = [
        i
        for i in optimised.entry.instructions
        if i.opcode is Opcode.FUSION and i.shape.is_array and 2 * i.shape.byte_size > X.nbytes
        and not i.attributes.calls.name.startswith("native")
        and i.attributes.calls.root.opcode is not Opcode.DYNAMIC_UPDATE_SLICE  # which writes its slice alone
    ]  # fmt: skip
    assert len(made) <= copies, [i.name for i in made]
    found = compiled(*arguments)
    found = found if isinstance(found, tuple) else (found,)
    defined = evaluate(lowered.module, *arguments)
    for y, other, by_hand in zip(found, defined, wanted, strict=True):
        np.testing.assert_allclose(y, np.asarray(by_hand), rtol=2e-4, atol=1e-4)
        np.testing.assert_allclose(y, other, rtol=2e-4, atol=1e-4)


def test_gradients() -> None:
    """The loops of derivatives have slices, too."""
    weights = np.random.default_rng(1).uniform(-1, 1, X.shape).astype(np.float32)
    found = hloom.jit(hloom.grad(lambda x: (after_first(x) * weights).sum()))(X)
    wanted, carry = np.empty_like(X), np.zeros(M, np.float32)
    for i in reversed(range(N)):
        carry = carry * np.float32(0.5) + weights[i]
        wanted[i] = carry
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
