"""Matrices of which loops write columns are stored by columns, where that costs fewer copies than it saves."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate

import hloom
import hloom.numpy as jnp
from hloom import lax

N = 24


def sweeps(u: Any) -> Any:
    """A tridiagonal solver, column by column: p and q are read and written by columns only, u by both."""

    def forward(j: Any, state: Any) -> Any:
        p, q, u = state
        p = p.at[1:-1, j].set(2 / (3 - p[1:-1, j - 1]))
        return p, q.at[1:-1, j].set((u[j, 1:-1] - q[1:-1, j - 1]) * p[1:-1, j - 1]), u

    def backward(j: Any, state: Any) -> Any:
        p, q, u = state
        return p, q, u.at[N - 2 - j, 1:-1].set(p[1:-1, N - 2 - j] * u[N - 1 - j, 1:-1] + q[1:-1, N - 2 - j])

    def step(_: Any, state: Any) -> Any:
        return lax.fori_loop(0, N - 2, backward, lax.fori_loop(1, N - 1, forward, state))

    p = jnp.zeros((N, N), u.dtype)
    return lax.fori_loop(0, 3, step, (p, p, u))[2]


def gram_schmidt(a: Any) -> Any:
    def column(k: Any, state: Any) -> Any:
        q, a = state
        q = q.at[:, k].set(a[:, k] / jnp.sqrt(a[:, k] @ a[:, k]))
        rest = lambda j, a: a.at[:, j].add(-q[:, k] * (q[:, k] @ a[:, j]))  # noqa: E731
        return q, lax.fori_loop(k + 1, N, rest, a)

    return lax.fori_loop(0, N, column, (jnp.zeros_like(a), a))[0]


def columns_twice(a: Any) -> Any:
    return lax.fori_loop(1, N, lambda j, a: a.at[:, j].add(a[:, j - 1]), a)


def columns_once(a: Any) -> Any:
    return lax.fori_loop(1, N, lambda j, a: a.at[:, j].set(jnp.sin(a[:, j - 1])), a)


def by_rows(a: Any) -> Any:
    inner = lambda j, a: a.at[j].set(a[j] + a[:, j])  # noqa: E731
    return lax.fori_loop(0, 3, lambda _, a: lax.fori_loop(0, N, inner, a), a)


def updates(function: Callable[..., Any]) -> set[str]:
    """The shapes of what loops write, in the compiled program."""
    text = hloom.jit(function).lower(jnp.ones((N, N))).compile().as_text()
    names = dict(re.findall(r"(\S+) = \w+(\[[\d,]*\])", text))
    return {names[name] for name in re.findall(r"dynamic-update-slice\(\S+, ([^\s,]+),", text)}


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (sweeps, {f"[1,{N - 2}]"}),
        (gram_schmidt, {f"[1,{N}]", f"[{N},1]"}),  # a by columns; q is written once, and returned
        (columns_twice, {f"[{N},1]"}),  # each element is read twice and written once, and would be copied twice
        (columns_once, {f"[{N},1]"}),
        (by_rows, {f"[1,{N}]"}),
    ],
)
def test_which_slices_loops_write(function: Callable[..., Any], shapes: set[str]) -> None:
    assert updates(function) == shapes


@pytest.mark.parametrize("function", [sweeps, gram_schmidt, columns_twice, columns_once, by_rows])
def test_results(function: Callable[..., Any]) -> None:
    a = np.random.default_rng(0).uniform(1, 2, (N, N)).astype(np.float32)
    lowered = hloom.jit(function).lower(a)
    (expected,) = evaluate(lowered.module, a)
    np.testing.assert_allclose(lowered.compile()(a), expected, rtol=1e-5, atol=1e-5)


def random_loops(seed: int) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """Loops in a loop that read and write rows, columns and parts of them in matrices and in an array of rank 3."""
    rng = random.Random(seed)
    shapes = [(rng.choice([5, 17, 20]), rng.choice([16, 18, 19])) for _ in range(2)] + [(3, 16, 17)]
    arrays = [np.random.default_rng(seed + k).integers(-3, 4, s).astype(np.int32) for k, s in enumerate(shapes)]
    plans = [
        [(rng.randrange(3), rng.randrange(3), rng.randrange(3), rng.randrange(3)) for _ in range(rng.randint(1, 3))]
        for _ in range(rng.randint(1, 3))
    ]

    def line(x: Any, axis: int, k: Any) -> Any:
        return jnp.take(x, k, axis=axis, mode="clip")

    def function(*arrays: Any) -> Any:
        def inner(plan: Any) -> Callable[..., Any]:
            def body(k: Any, state: Any) -> Any:
                state = list(state)
                for target, source, to_axis, from_axis in plan:
                    x, y = state[target], state[source]
                    axis = to_axis % x.ndim
                    start = [0] * x.ndim
                    start[axis] = k
                    found = line(y, from_axis % y.ndim, k)
                    size = [1 if d == axis else n for d, n in enumerate(x.shape)]
                    old = lax.dynamic_slice(x, start, size)
                    new = old * 3 + found.sum(0).ravel()[0] + found[0].sum()
                    state[target] = lax.dynamic_update_slice(x, new, start)
                return tuple(state)

            return body

        def step(_: Any, state: Any) -> Any:
            for plan in plans:
                state = lax.fori_loop(0, 16, inner(plan), state)
            return state

        return lax.fori_loop(0, 2, step, arrays)

    return function, arrays


@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed: int) -> None:
    function, arrays = random_loops(seed)
    lowered = hloom.jit(function).lower(*arrays)
    expected = evaluate(lowered.module, *arrays)
    for found, wanted in zip(lowered.compile()(*arrays), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
