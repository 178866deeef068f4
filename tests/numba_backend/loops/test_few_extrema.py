"""The extremum of a few numbers in a loop is one of numbers, of more numbers one of keys; both are IEEE's."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.few_extrema import MOST, few_extrema
from hloom.numba_backend.loops.printer import lines_of
from hloom.numba_backend.loops.reader import read

import hloom
import hloom.numpy as jnp
from hloom import lax

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0], np.float32)


def kernel(function: Callable[[Any], Any], x: np.ndarray) -> str:
    (text,) = [t for t in hloom.jit(function).lower(x).compile().kernels().values() if "native_loop" in t]
    return str(text)


def extrema(reduce: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The extremum of each row and of the one before."""

    def f(x: Any) -> Any:
        def step(before: Any, row: Any) -> Any:
            found = reduce(row * jnp.where(before == 12345, 2, 1))
            return found, found

        return lax.scan(step, jnp.float32(0), x)[1]

    return f


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_special_numbers(name: str, width: int) -> None:
    rows = np.array(list(itertools.product(SPECIAL, repeat=width)), np.float32)
    function = extrema(getattr(jnp, name))
    found = np.asarray(hloom.jit(function)(rows))
    expected = getattr(np, name)(rows, 1)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~known)
    np.testing.assert_array_equal(found[known], expected[known])
    zeros = known & (expected == 0)
    positive = (rows == 0) & ~np.signbit(rows)
    negative = (rows == 0) & np.signbit(rows)
    signs = ~positive.any(1) if name == "max" else negative.any(1)
    np.testing.assert_array_equal(np.signbit(found[zeros]), signs[zeros])


@pytest.mark.parametrize(("width", "keys"), [(2, False), (MOST, False), (MOST + 1, True)])
def test_how_many(width: int, keys: bool) -> None:
    x = np.random.default_rng(0).standard_normal((50, width)).astype(np.float32)
    assert ("maximum_key" in kernel(extrema(jnp.max), x)) is keys
    np.testing.assert_array_equal(hloom.jit(extrema(jnp.max))(x), x.max(1))


TYPES = {"lo": "int64", "hi": "int64", "out": "float32*", "keys": "int32*", "x": "float32*", "c0": "float32"}
HEADER = "def kernel(lo, hi, out, keys, x, c0):\n"
TWO = """
    acc0 = minimum_key(c0)
    acc0 = minimum(acc0, minimum_key(x[0]))
    acc0 = minimum(acc0, minimum_key(abs(x[1])))
    out[0] = from_key(acc0) * c0
"""
NUMBERS = """
    acc0 = c0
    acc0 = minimum(acc0, x[0])
    acc0 = minimum(acc0, abs(x[1]))
    out[0] = acc0 * c0
"""


def lines(body: str) -> list[str]:
    return [line.strip() for line in body.strip().splitlines()]


def changed(body: str) -> list[str]:
    return [line.strip() for line in lines_of(few_extrema(read(HEADER + body, TYPES).body))]


def test_keys_become_numbers() -> None:
    assert changed(TWO) == lines(NUMBERS)
    inner = TWO.replace("\n    ", "\n        ")
    assert changed("    for t in range(lo, hi):" + inner) == ["for t in range(lo, hi):", *lines(NUMBERS)]


def test_one_extremum_of_the_others() -> None:
    """A number that is compared may be an extremum itself."""
    body = TWO + """
    acc1 = maximum_key(from_key(acc0))
    acc1 = maximum(acc1, maximum_key(from_key(acc0) + x[2]))
    out[1] = from_key(acc1)
"""
    assert changed(body)[-3:] == ["acc1 = acc0", "acc1 = maximum(acc1, acc0 + x[2])", "out[1] = acc1"]


@pytest.mark.parametrize(
    "body",
    [
        TWO.replace("    out", "    keys[0] = acc0\n    out"),
        TWO.replace("minimum(acc0, minimum_key(x[0])", "maximum(acc0, minimum_key(x[0])"),
        TWO.replace("minimum_key(x[0])", "maximum_key(x[0])"),
        TWO.replace("    acc0 = minimum(acc0, minimum_key(x[0]))\n", "    acc0 = keys[0]\n"),
        TWO + TWO,
        TWO.replace("    acc0 = minimum(acc0, minimum_key(x[0]))", "    acc0 = minimum(acc0, minimum_key(x[0]))\n" * 4),
        TWO.replace("    acc0 = minimum(", "    for i in range(3):\n        acc0 = minimum("),
        TWO.replace("    acc0 = minimum(", "    for i in range(hi):\n        acc0 = minimum("),
        TWO.replace("    acc0 = minimum(", "    while x[0] < c0:\n        acc0 = minimum("),
    ],
)
def test_keys_stay(body: str) -> None:
    before = [line.strip() for line in lines_of(read(HEADER + body, TYPES).body)]
    assert changed(body) == before


def test_a_short_loop_counts_as_often_as_it_runs() -> None:
    body = """
    acc0 = minimum_key(c0)
    for i in range(1, 4):
        acc0 = minimum(acc0, minimum_key(x[i]))
    out[0] = from_key(acc0)
"""
    assert "minimum_key" not in "".join(changed(body))
    assert "minimum_key" in "".join(changed(body.replace("range(1, 4)", "range(5)")))


def test_an_extremum_that_begins_in_a_loop_does_not_change_the_count_of_another() -> None:
    body = """
    acc0 = minimum_key(c0)
    for i in range(100):
        acc1 = maximum_key(c0)
        acc1 = maximum(acc1, maximum_key(x[i]))
        acc0 = minimum(acc0, minimum_key(from_key(acc1)))
    out[0] = from_key(acc0)
"""
    new = "".join(changed(body))
    assert "minimum_key" in new and "maximum_key" not in new
