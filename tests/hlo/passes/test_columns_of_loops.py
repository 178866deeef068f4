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


@pytest.mark.parametrize("function", [one_loop, two_loops])
def test_one_transpose_before_all_loops(function: Callable[..., Any]) -> None:
    text = hloom.jit(function).lower(np.ones((40, 50), "float32")).compile().as_text()
    assert text.count(" transpose(") == 1
    assert "transpose" in text[text.index("ENTRY") :]
