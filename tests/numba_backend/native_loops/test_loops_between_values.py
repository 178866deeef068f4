"""Loops whose counter goes between values, not constants: which become `for`, and how far the counter gets."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax

Test = Callable[[Any, Any], Any]
UP, TO, DOWN_TO = operator.lt, operator.le, operator.ge


def down(i: Any, limit: Any) -> Any:
    """With the limit on the left."""
    return limit < i


def counted(test: Test, step: int, limit: int | None, dtype: str) -> Callable[[Any, Any, Any], Any]:
    """The counter after the loop, the number of iterations, and an array with the counters of the iterations."""

    def f(start: Any, given: Any, seen: Any) -> Any:
        end = given if limit is None else np.asarray(limit, dtype)

        def body(state: Any) -> Any:
            i, n, seen = state
            return i + np.asarray(step, dtype), n + 1, seen.at[n].set(i)

        return lax.while_loop(lambda state: test(state[0], end), body, (start, 0, seen))

    return f


MOST = 300
"""No case has more iterations."""


def expected(test: Test, step: int, start: int, limit: int) -> tuple[int, int, list[int]]:
    seen = [0] * MOST
    i, n = start, 0
    while test(i, limit):
        seen[n] = i
        i, n = i + step, n + 1
    return i, n, seen


FOR = [  # test, step, limit in the text, dtype, starts, limits
    (UP, 1, None, "int32", (-3, 0, 5), (-4, 0, 5, 7)),
    (UP, 1, 127, "int8", (120, 126, 127, -100), ()),
    (UP, 1, None, "int8", (-128, 120), (-128, -120, 127)),
    (UP, 3, 120, "int8", (100, 119, 120, 121), ()),
    (UP, 1, None, "uint8", (250,), (0, 250, 255)),
    (UP, 1, None, "uint32", ((1 << 32) - 5,), ((1 << 32) - 1, 0)),
    (UP, 1, None, "int32", ((1 << 31) - 5,), ((1 << 31) - 1, 0)),
    (down, -1, None, "int32", (5, -(1 << 31) + 4), (5, 0, -(1 << 31))),
    (UP, 1, 127, "int32", (120, 127, 128), ()),
    (down, -4, -100, "int8", (-60, -97, -100, -128), ()),
    (TO, 1, 126, "int8", (120, 126, 127), ()),
    (DOWN_TO, -2, -126, "int8", (-120, -121, -126, -127, -128), ()),
    (UP, 1, None, "int64", ((1 << 63) - 20, (1 << 63) - 1), ((1 << 63) - 5, (1 << 63) - 1, -(1 << 63))),
    (down, -1, None, "int64", (-(1 << 63) + 20, -(1 << 63)), (-(1 << 63) + 5, -(1 << 63), (1 << 63) - 1)),
    (UP, 3, (1 << 63) - 7, "int64", ((1 << 63) - 100, (1 << 63) - 8), ()),
]  # fmt: skip
WHILE = [
    (TO, 1, None, "int32", (0, 3), (2, 5)),
    (UP, 2, None, "int32", (0, 3), (2, 5)),
    (UP, 3, 126, "int8", (100,), ()),
    (UP, 1, None, "uint64", (0, 3), (2, 5)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(FOR)))
def test_counters_between_values_are_ranges(case: int) -> None:
    check(FOR[case], is_range=True)


@pytest.mark.parametrize("case", range(len(WHILE)))
def test_counters_that_may_leave_their_type_are_not(case: int) -> None:
    """``i <= limit`` never ends if the limit is the largest integer; a step of two may pass it."""
    check(WHILE[case], is_range=False)


def check(case: tuple[Test, int, int | None, str, tuple[int, ...], tuple[int, ...]], is_range: bool) -> None:
    test, step, limit, dtype, starts, limits = case
    with hloom.enable_x64(dtype.endswith("64")):
        f = hloom.jit(counted(test, step, limit, dtype))
        empty = np.zeros(MOST, dtype)
        for start in starts:
            for end in limits or (limit,):
                assert end is not None
                if test(start, end) and abs(start - end) >= MOST:
                    continue
                i, n, seen = f(np.asarray(start, dtype), np.asarray(end, dtype), empty)
                want = expected(test, step, start, end)
                assert (int(i), int(n), np.asarray(seen).tolist()) == want
        kernels = f.lower(np.asarray(0, dtype), np.asarray(0, dtype), empty).compile().kernels()
    (text,) = [text for text in map(str, kernels.values()) if "native_loop" in text]
    assert ("for step0 in range(" in text) == is_range


def triangle(a: Any) -> Any:
    """Sums over the rows below each row, row by row."""
    return lax.fori_loop(
        0, 9, lambda j, a: lax.fori_loop(j + 1, 9, lambda i, a: a.at[j].add(a[i] * 0.5), a), a
    )  # fmt: skip


def test_a_triangle_looks_for_no_interrupt() -> None:
    """Counters of the loops around bound the iterations."""
    a = np.arange(9, dtype=np.float32)
    want = a.copy()
    for j in range(9):
        for i in range(j + 1, 9):
            want[j] += want[i] * np.float32(0.5)
    f = hloom.jit(triangle)
    np.testing.assert_array_equal(f(a), want)
    (text,) = [t for t in map(str, f.lower(a).compile().kernels().values()) if "native_loop" in t]
    assert "interrupted" not in text and "while " not in text


def test_a_loop_of_unknown_length_looks_for_interrupts_in_blocks() -> None:
    f = hloom.jit(lambda low, high: lax.fori_loop(low, high, lambda i, s: jnp.sin(s) + i, jnp.float32(0)))
    (text,) = [t for t in map(str, f.lower(0, 5).compile().kernels().values()) if "native_loop" in t]
    assert "interrupted(watch)" in text and "for step0 in range(begin0, end0)" in text
    assert float(f(0, 0)) == 0 and np.isfinite(float(f(-40_000, 3)))


def of_pairs(n: int) -> Callable[..., Any]:
    """Three loops, each between the counters of those around it: i upwards from the last row, i < j, i < k < j."""

    def cell(i: Any, j: Any, t: Any) -> Any:
        return lax.fori_loop(i + 1, j, lambda k, t: t.at[i, j].set(jnp.maximum(t[i, j], t[i, k] + t[k, j])), t)

    def row(step: Any, t: Any) -> Any:
        i = n - 1 - step
        return lax.fori_loop(i + 1, n, lambda j, t: cell(i, j, t), t)

    return lambda t: lax.fori_loop(0, n, row, t)


@pytest.mark.parametrize("n", [1, 2, 12])
def test_loops_between_counters_of_such_loops(n: int) -> None:
    """They are as short as the outermost one, so the innermost one need not look for interrupts."""
    t = np.random.default_rng(n).integers(-9, 9, (n, n)).astype(np.int32)
    jitted = hloom.jit(of_pairs(n))
    want = t.copy()
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            want[i, j] = max([want[i, j], *(want[i, k] + want[k, j] for k in range(i + 1, j))])
    np.testing.assert_array_equal(np.asarray(jitted(t)), want)
    if n > 2:
        text = "\n".join(map(str, jitted.lower(t).compile().kernels().values()))
        assert "while " not in text and text.count("for step") == 3


@pytest.mark.parametrize(
    "start", [lambda i: jnp.abs(i.astype(jnp.int32) - 5), lambda i: jnp.minimum(i.astype(jnp.int32), 5)]
)
def test_ends_that_are_converted_counters(start: Callable[[Any], Any]) -> None:
    """As where the counter of a loop has fewer bits than that of the loop inside."""
    f = hloom.jit(
        lambda a: lax.fori_loop(
            np.int16(0), np.int16(9), lambda i, a: lax.fori_loop(start(i), 9, lambda k, a: a.at[i].add(a[k]), a), a
        )
    )  # fmt: skip
    a = np.arange(9, dtype=np.int32)
    want = a.copy()
    for i in range(9):
        for k in range(int(start(np.int16(i))), 9):
            want[i] += want[k]
    np.testing.assert_array_equal(f(a), want)
    (text,) = [t for t in map(str, f.lower(a).compile().kernels().values()) if "native_loop" in t]
    assert "interrupted" not in text and "while " not in text


def test_an_end_that_follows_from_a_counter_in_many_steps() -> None:
    def f(a: Any) -> Any:
        def row(i: Any, a: Any) -> Any:
            end = i
            for k in range(400):
                end = jnp.minimum(end, k % 5) * 2 - i
            return lax.fori_loop(i, end, lambda k, a: a.at[k].set(0), a)

        return lax.fori_loop(0, 5, row, a)

    a = np.full(4, 9, np.int32)
    np.testing.assert_array_equal(hloom.jit(f)(a), a)


def test_a_long_loop_between_counters_looks_for_interrupts() -> None:
    long = jnp.zeros((3, 3), np.int32)

    def f(t: Any) -> Any:
        inner = lambda j, t: lax.fori_loop(0, j, lambda k, t: t.at[k % 3, 0].add(t[j % 3, 1] + 1), t)  # noqa: E731
        return lax.fori_loop(0, 5, lambda i, t: lax.fori_loop(0, 10_000_000 + i, inner, t), t)

    text = "\n".join(map(str, hloom.jit(f).lower(long).compile().kernels().values()))
    assert text.count("interrupted(watch)") >= 2 and "range(begin0, end0)" in text
