"""Loops that read columns of a matrix: one transpose before all loops in which it stays, and the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate

import hloom
import hloom.numpy as jnp
from hloom import lax


def one_loop(a: Any) -> Any:
    return lax.fori_loop(0, a.shape[1], lambda k, v: a[:, k] - v, jnp.zeros(a.shape[0], a.dtype))


def two_loops(a: Any) -> Any:
    def row(i: Any, out: Any) -> Any:
        step = lambda k, line: line + a[:, k] * a[i, k]  # noqa: E731
        return out.at[i].set(lax.fori_loop(0, a.shape[1], step, jnp.zeros(a.shape[0], a.dtype)))

    return lax.fori_loop(0, a.shape[0], row, jnp.zeros((a.shape[0], a.shape[0]), a.dtype))


def beyond_the_end(a: Any) -> Any:
    step = lambda k, v: v + lax.dynamic_slice(a, (5, k + 7), (a.shape[0], 1))[:, 0]  # noqa: E731
    return lax.fori_loop(0, a.shape[1], step, jnp.zeros(a.shape[0], a.dtype))


@pytest.mark.parametrize("function", [one_loop, two_loops, beyond_the_end])
@pytest.mark.parametrize("shape", [(16, 16), (33, 17), (17, 300), (1, 20), (20, 1)])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_results(function: Callable[..., Any], shape: tuple[int, int], dtype: str) -> None:
    a = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    lowered = hloom.jit(function).lower(a)
    (expected,) = evaluate(lowered.module, a)
    np.testing.assert_array_equal(lowered.compile()(a), expected)


def test_columns_without_elements() -> None:
    assert hloom.jit(one_loop)(np.ones((0, 20), "float32")).shape == (0,)


def in_a_loop(a: Any) -> Any:
    return lax.fori_loop(0, 3, lambda _, v: v + one_loop(a), jnp.zeros(a.shape[0], a.dtype))


def twice(a: Any) -> Any:
    return lax.fori_loop(0, a.shape[1], lambda k, v: a[:, k] - a[:, v[0].astype(int)], jnp.zeros(a.shape[0], a.dtype))


def products(a: Any) -> Any:
    step = lambda k, v: v.at[k].set(jnp.prod(a[:, k]))  # noqa: E731
    return lax.fori_loop(0, a.shape[1], step, jnp.zeros(a.shape[1], a.dtype))


@pytest.mark.parametrize(
    ("function", "rows"),
    [(one_loop, 4000), (two_loops, 40), (two_loops, 4000), (in_a_loop, 40), (twice, 40), (products, 40)],
)
def test_one_transpose_before_all_loops(function: Callable[..., Any], rows: int) -> None:
    text = hloom.jit(function).lower(np.ones((rows, 50), "float32")).compile().as_text()
    assert text.count(" transpose(") == 1
    assert "transpose" in text[text.index("ENTRY") :]


@pytest.mark.parametrize("rows", [16, 40, 100])
def test_columns_in_the_cache_are_read_once(rows: int) -> None:
    text = hloom.jit(one_loop).lower(np.ones((rows, 50), "float32")).compile().as_text()
    assert " transpose(" not in text
