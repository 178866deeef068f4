"""Sums that begin or end with the element which the iteration before has stored: it comes last, from a variable."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.numba_backend.loops.newest_last import newest_last
from hloom.numba_backend.loops.printer import lines_of
from hloom.numba_backend.loops.reader import read

import hloom
import hloom.numpy as jnp
from hloom import lax

LOOP = """\
def k(lo, hi, x, y, b, n):
    for t in range(n):
        k = {place}
        acc = float32(0)
        {sum}
            {body}
        y[{stored}] = b[k] - acc
"""
PLACE, STORED = "n - 1 - t", "k"
LONGER = "v = y[i]\n            acc = reduce_add(acc, x[i] * v)"
TERM = "acc = reduce_add(acc, x[k * n + i] * y[i])"
FROM_NEXT = "for i in range(k + 1, n):"
FROM_BOUND = "for i in range(maximum(0, k + 1), n):"


def changed(sum_: str, body: str = TERM, place: str = PLACE, stored: str = STORED) -> str:
    text = LOOP.format(place=place, sum=sum_, body=body, stored=stored)
    program = read(text, ("int64", "int64", "float32*", "float32*", "float32*", "int64"))
    numbers = count()
    return "\n".join(lines_of(newest_last(program.body, {"n": 50}, lambda stem: f"{stem}{next(numbers)}")))


@pytest.mark.parametrize(
    ("arguments", "loop", "term"),
    [
        ((FROM_NEXT,), "for i in range(n - 1, rest2, -1):", "x[k * n + rest2] * newest0"),
        ((FROM_BOUND,), "for i in range(n - 1, rest2, -1):", "x[k * n + rest2] * newest0"),
        ((FROM_NEXT, LONGER), "for i in range(n - 1, rest2, -1):", "v = newest0"),
        (("for i in range(k, n):", TERM, "n - t", "k - 1"), "for i in range(n - 1, rest2, -1):", "* newest0"),
        (("for i in range(k):", TERM, "t"), "for i in range(rest2):", "x[k * n + rest2] * newest0"),
        (("for i in range(minimum(n, k)):", TERM, "t"), "for i in range(rest2):", "* newest0"),
        (("for i in range(2, k):", TERM, "t"), "for i in range(2, rest2):", "x[k * n + rest2] * newest0"),
    ],
)
def test_the_newest_element_comes_last(arguments: tuple[str, ...], loop: str, term: str) -> None:
    text = changed(*arguments)
    assert loop in text and term in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("for i in range(k + 2, n):",),  # not with the newest
        ("for i in range(k):",),
        ("for i in range(0, n):", TERM, "t"),
        ("for i in range(lo, hi):", TERM, "t"),
        (FROM_NEXT, "acc = reduce_add(acc, x[k * n + i] * b[i])"),  # of an array that stays
        (FROM_NEXT, "acc = acc + y[i]"),  # a sum in this order
        (FROM_NEXT, "acc = reduce_add(acc, y[i])\n            b[i] = acc"),  # sums so far
        (FROM_NEXT, "v = acc * y[i]\n            acc = reduce_add(acc, v)"),
        (FROM_NEXT, "acc = reduce_add(acc, y[2 * i])"),  # no neighbours
        (FROM_NEXT, "acc = reduce_add(acc, y[i])\n            k = i"),  # and the last index is read
        (FROM_NEXT + "\n            y[i] = b[i]\n        for i in range(k + 1, n):",),  # another store
    ],
)
def test_other_sums_stay(arguments: tuple[str, ...]) -> None:
    assert "newest" not in changed(*arguments)


def solve(dtype: Any, masks_products: bool) -> Callable[..., Any]:
    def run(up: Any, b: Any) -> Any:
        n = b.size
        index = jnp.arange(n)

        def row(k: Any, x: Any) -> Any:
            i = n - 1 - k
            if masks_products:
                known = jnp.sum(jnp.where(index > i, up[i] * x, dtype(0)))
            else:
                known = jnp.dot(jnp.where(index > i, up[i], dtype(0)), x)
            return x.at[i].set((x[i] - known) / up[i, i])

        return lax.fori_loop(0, n, row, b)

    return run


@pytest.mark.parametrize("masks_products", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [70, 97, 128])
def test_backward_substitution(n: int, dtype: Any, masks_products: bool) -> None:
    rng = np.random.default_rng(n)
    up = np.triu(rng.standard_normal((n, n)) / n).astype(dtype) + 2 * np.eye(n, dtype=dtype)
    with hloom.enable_x64(True):
        own = up, rng.standard_normal(n).astype(dtype)
        lowered = hloom.jit(solve(dtype, masks_products)).lower(*own)
        compiled = lowered.compile()
        assert any("newest0" in text for text in map(str, compiled.kernels().values()))
        for position in (None, 0, n // 2, n - 1):
            if position is not None:
                own[1][position] = np.inf
            (expected,) = evaluate(lowered.module, *own)
            np.testing.assert_allclose(compiled(*own), expected, rtol=1e-4, atol=1e-5)
