"""Loops at their limits: no step and one, nothing in the state, NaN, indices out of range, and what ends them early.

Each program of the table runs outside of jit, under jit, and on the evaluator, with inputs in memory of its own, and
must give the numbers that stand here. Where JAX is installed, it must give them too.
"""

from __future__ import annotations

import importlib.util
import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode
from hloom.hlo.ops.custom_call import CustomCallAttributes
from hloom.tracer.core import bind

import hloom
import hloom.numpy
from hloom.errors import CustomCallError, DeletedArrayError
from support.interrupted import START
from support.runtime_kernels import python

NAN, INF = float("nan"), float("inf")
BACKENDS = ("numba", "evaluator")
ZERO, ONE, TWO = (np.int32(n) for n in range(3))
V = np.arange(1, 6, dtype=np.float32)
A = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    before = hloom.config.hloom_backend
    hloom.config.update("hloom_backend", request.param)
    yield request.param
    hloom.config.update("hloom_backend", before)


# ---- results, as functions of (jnp, lax, arguments...)


def count(jnp: Any, lax: Any, low: Any, high: Any) -> Any:
    return lax.fori_loop(low, high, lambda i, s: (s[0] + 1, s[1] + i), (0, 0))


def while_above(jnp: Any, lax: Any, x: Any, limit: Any) -> Any:
    """Halve until it is below."""
    return lax.while_loop(lambda s: s[0] > limit, lambda s: (s[0] * 0.5, s[1] + 1), (x, 0))


def until_nan(jnp: Any, lax: Any, x: Any) -> Any:
    """inf - inf in the step after the overflow."""
    return lax.while_loop(lambda s: s[0] >= s[1], lambda s: (s[0] * 1e30 - s[1] * 1e30, s[1], s[2] + 1), (x, x - 1, 0))


def equal_to_itself(jnp: Any, lax: Any, x: Any, n: Any) -> Any:
    def step(s: Any) -> Any:
        return jnp.where(s[1] >= n, jnp.nan, s[0] + 1).astype(jnp.float32), s[1] + 1

    return lax.while_loop(lambda s: s[0] == s[0], step, (x, 0))


def pairs_of(jnp: Any, lax: Any, x: Any, y: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, s: (s[1], s[0]), (x, y))


def rotated(jnp: Any, lax: Any, x: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, s: (s[1], s[2], s[0] + 10), (x, x, x))


def set_from(jnp: Any, lax: Any, x: Any, low: Any, high: Any) -> Any:
    """Indices from below 0, which count from the end, to beyond it, where they are dropped."""
    return lax.fori_loop(low, high, lambda i, x: x.at[i].set(i), x)


def add_to_rows(jnp: Any, lax: Any, a: Any, low: Any, high: Any) -> Any:
    return lax.fori_loop(low, high, lambda i, a: a.at[i].add(a[i - 1]), a)


def columns(jnp: Any, lax: Any, a: Any) -> Any:
    return lax.fori_loop(2, a.shape[1], lambda j, a: a.at[:, j].set(2 * a[:, j - 1] - a[:, j - 2]), a)


def slices(jnp: Any, lax: Any, x: Any, starts: Any) -> Any:
    """Clamped reads and writes: a write of two elements at a start, of what is read at the start after it."""

    def step(x: Any, start: Any) -> Any:
        piece = lax.dynamic_slice(x, (start + 1,), (2,))
        return lax.dynamic_update_slice(x, piece * 10, (start,)), piece

    return lax.scan(step, x, starts)


def old_and_new(jnp: Any, lax: Any, x: Any) -> Any:
    """The array before the update is needed after it."""

    def step(i: Any, s: Any) -> Any:
        x, total = s
        new = x.at[i].set(-x[i])
        return new, total + x * new[::-1]

    return lax.fori_loop(0, 3, step, (x, jnp.zeros_like(x)))


def swapped_elements(jnp: Any, lax: Any, x: Any) -> Any:
    """Two updates, each with what the other one overwrites."""

    def step(i: Any, x: Any) -> Any:
        j = x.shape[0] - 1 - i
        return x.at[i].set(x[j]).at[j].set(x[i])

    return lax.fori_loop(0, x.shape[0] // 2, step, x)


def triangle(jnp: Any, lax: Any, a: Any) -> Any:
    """An inner loop of 0, 1, 2, ... steps."""

    def row(i: Any, a: Any) -> Any:
        return lax.fori_loop(0, i, lambda j, a: a.at[i, j].set(a[j, i] + 100), a)

    return lax.fori_loop(0, a.shape[0], row, a)


def branches(jnp: Any, lax: Any, indices: Any) -> Any:
    """An index out of range takes the nearest branch."""
    functions = [lambda x: x + 1, lambda x: x * 2, lambda x: -x]
    return lax.scan(lambda x, k: (lax.switch(k, functions, x), x), jnp.float32(3), indices)


def loop_in_branch(jnp: Any, lax: Any, x: Any, n: Any) -> Any:
    def inside(x: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, y: y + x, x * 0)

    return lax.fori_loop(0, 4, lambda i, x: lax.cond(x[0] < 3, inside, lambda x: x - 2, x), x)


def carried_pred(jnp: Any, lax: Any, x: Any) -> Any:
    def step(s: Any) -> Any:
        go, i, x = s
        return (x[i] < 4) & (i < 100), i + 1, x.at[i].set(0)

    return lax.while_loop(lambda s: s[0], step, (jnp.bool_(True), 0, x))


def small_counter(jnp: Any, lax: Any, start: Any, end: Any) -> Any:
    """A counter of few bits, which may pass its largest number."""
    return lax.while_loop(lambda s: s[0] != end, lambda s: (s[0] + s[0].dtype.type(1), s[1] + 1), (start, 0))


def scan_of_nothing(jnp: Any, lax: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + jnp.sum(x), (x * 2, c)), jnp.float32(1), xs)


def empty_state(jnp: Any, lax: Any, x: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, s: (s[0] + 1, s[1][::-1], s[2] + jnp.sum(s[0])), (x, x, jnp.float32(2)))


def constants(jnp: Any, lax: Any, n: Any) -> Any:
    """A state of constants, one of them twice, one of which never changes."""
    one = jnp.ones(2, jnp.int32)
    return lax.fori_loop(0, n, lambda i, s: (s[0] + s[2], s[1] * 2, s[2]), (one, one, one))


def quarter_steps(jnp: Any, lax: Any, end: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < end, lambda s: (s[0] + 0.25, s[1] + 1), (jnp.float32(0), 0))


def same_counter_twice(jnp: Any, lax: Any, n: Any) -> Any:
    return lax.while_loop(lambda s: (s[0] < n) & (s[1] > -3), lambda s: (s[0] + 1, s[1] - 1, s[2] + s[0] * s[1]),
                          (0, 0, 0))  # fmt: skip


F32 = np.float32
I8, U8, I32 = np.int8, np.uint8, np.int32
EDGES: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = [
    (count, (0, 0), (0, 0)), (count, (0, 1), (1, 0)), (count, (3, 4), (1, 3)), (count, (5, 2), (0, 0)),
    (count, (-2, 2), (4, -2)), (count, (ZERO, ZERO), (0, 0)), (count, (ZERO, ONE), (1, 0)), (count, (TWO, ONE), (0, 0)),
    (count, (I32(2**31 - 3), I32(2**31 - 1)), (2, -5)), (count, (I32(-(2**31)), I32(-(2**31) + 2)), (2, 1)),
    (while_above, (F32(8), F32(1)), (1, 3)), (while_above, (F32(1), F32(1)), (1, 0)),
    (while_above, (F32(NAN), F32(1)), (NAN, 0)), (while_above, (F32(8), F32(NAN)), (8, 0)),
    (while_above, (F32(-INF), F32(-INF)), (-INF, 0)), (while_above, (F32(1), F32(-0.0)), (0, 150)),
    (until_nan, (F32(1e20),), (0, 1e20, 1)), (until_nan, (F32(2),), (1e30, 1, 3)),
    (equal_to_itself, (F32(NAN), ONE), (NAN, 0)), (equal_to_itself, (F32(1), ZERO), (NAN, 1)),
    (equal_to_itself, (F32(1), TWO), (NAN, 3)),
    *((pairs_of, (V, V + 5, I32(n)), (V + 5, V) if n % 2 else (V, V + 5)) for n in (0, 1, 2, 3)),
    (rotated, (F32(1), ZERO), (1, 1, 1)), (rotated, (F32(1), ONE), (1, 1, 11)), (rotated, (F32(1), I32(4)), (11, 11, 21)),
    (set_from, (V, -1, 7), ([0, 1, 2, 3, 4],)), (set_from, (V, I32(-8), I32(-3)), ([-5, -4, 3, 4, 5],)),
    (set_from, (V, I32(4), I32(99)), ([1, 2, 3, 4, 4],)), (set_from, (V[:1], I32(-1), I32(2)), ([0],)),
    (set_from, (V[:0], I32(-1), I32(2)), ([],)),
    (add_to_rows, (A[:, :2], 1, 3), ([[0, 1], [4, 6], [12, 15]],)),
    (add_to_rows, (A[:, :2], I32(0), I32(5)), ([[8, 10], [12, 15], [20, 24]],)),
    (add_to_rows, (A[:1, :2], I32(0), I32(2)), ([[0, 2]],)),
    (columns, (A[:, :1],), (A[:, :1],)), (columns, (A * A,), ([[0, 1, 2, 3], [16, 25, 34, 43], [64, 81, 98, 115]],)),
    (slices, (V, I32([0, -7, 3])), ([10, 20, 3, 40, 50][:0] or [10 * 30, 10 * 3, 3, 10 * 4, 10 * 5], 0)[:0] or None),
    (old_and_new, (V[:3],), ([-1, -2, -3], [4, 0, 4])),
    (swapped_elements, (V,), ([5, 4, 3, 2, 1],)), (swapped_elements, (V[:1],), ([1],)), (swapped_elements, (V[:0],), ([],)),
    (triangle, (A[:, :3],), ([[0, 1, 2], [101, 5, 6], [102, 106, 10]],)), (triangle, (A[:1, :1],), ([[0]],)),
    (branches, (I32([0, 1, 2, 9, -4]),), (9, [3, 4, 8, -8, 8])), (branches, (I32([]),), (3, [])),
    (loop_in_branch, (V[:2], I32(2)), ([2, 4],)), (loop_in_branch, (V[:2], ZERO), ([0, 0],)),
    (carried_pred, (V,), (False, 4, [0, 0, 0, 0, 5])), (carried_pred, (V[4:],), (False, 1, [0])),
    (small_counter, (I8(120), I8(-126)), (-126, 10)), (small_counter, (U8(250), U8(3)), (3, 9)),
    (small_counter, (U8(3), U8(3)), (3, 0)),
    (scan_of_nothing, (A[:0],), (1, np.zeros((0, 4)), [])), (scan_of_nothing, (A[:, :0],), (1, A[:, :0], [1, 1, 1])),
    (scan_of_nothing, (A[:1, :1],), (1, [[0]], [1])),
    (empty_state, (V[:0], I32(3)), ([], [], 2)), (empty_state, (A[:0], ONE), (A[:0], A[:0], 2)),
    (empty_state, (V[:1], I32(3)), ([4], [1], 8)), (empty_state, (V[:1], ZERO), ([1], [1], 2)),
    (constants, (ZERO,), ([1, 1], [1, 1], [1, 1])), (constants, (I32(3),), ([4, 4], [8, 8], [1, 1])),
    (quarter_steps, (F32(1),), (1, 4)), (quarter_steps, (F32(0.3),), (0.5, 2)), (quarter_steps, (F32(NAN),), (0, 0)),
    (same_counter_twice, (I32(9),), (3, -3, -5)), (same_counter_twice, (ONE,), (1, -1, 0)),
]  # fmt: skip
