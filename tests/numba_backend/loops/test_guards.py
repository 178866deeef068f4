"""Loops that test an index and an element test the index before they load the element, and end where they ended."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.expressions import Binary, Name, Number
from hloom.numba_backend.loops.guards import guards_first
from hloom.numba_backend.loops.printer import lines_of
from hloom.numba_backend.loops.reader import read

import hloom
import hloom.numpy as jnp
from hloom import lax

TYPES = {"lo": "int64", "hi": "int64", "x": "float32*", "y": "float32*", "k": "int64", "c0": "float32"}
HEADER = "def kernel(lo, hi, x, y, k, c0):\n"
LEAVE = ["if not (s2 != 0):", "break"]


def changed(body: str) -> list[str]:
    test = Binary("!=", Name("s2", "uint8"), Number(0))
    block = guards_first(read(HEADER + body, TYPES).body, test)
    return [line.strip() for line in lines_of(block)]


def lines(body: str) -> list[str]:
    return [line.strip() for line in body.strip().splitlines()]


ONE = """
    v0 = k
    v1 = x[v0]
    s2 = uint8((v0 > 0) & (v1 > c0))
"""


def test_an_index_and_an_element() -> None:
    assert changed(ONE) == [*lines("""
        v0 = k
        if not (v0 > 0):
            break
        v1 = x[v0]
        s2 = uint8(v1 > c0)
    """), *LEAVE]


def test_several_conditions_each_at_its_place() -> None:
    body = """
    v0 = k
    v1 = x[v0]
    v2 = v0 + 1
    v3 = y[v2]
    s2 = uint8((v0 > 0) & (v1 > v3) & (v2 < hi) & (v1 < c0))
"""
    assert changed(body) == [*lines("""
        v0 = k
        if not (v0 > 0):
            break
        v1 = x[v0]
        if not (v1 < c0):
            break
        v2 = v0 + 1
        if not (v2 < hi):
            break
        v3 = y[v2]
        s2 = uint8(v1 > v3)
    """), *LEAVE]


@pytest.mark.parametrize(
    "body",
    [
        ONE.replace("&", "|"),
        ONE.replace("v1 = x[v0]", "v1 = c0"),  # no load
        ONE.replace("(v0 > 0)", "(x[1] > 0)"),  # a load too
        ONE.replace("(v0 > 0) & ", ""),
        ONE.replace("(v0 > 0)", "(v1 > 0)"),
        ONE + "    s2 = uint8(s2 == 0)\n",
        ONE.replace("s2", "s3") + "    s2 = s3\n",
    ],
)
def test_other_tests_stay(body: str) -> None:
    before = [line.strip() for line in lines_of(read(HEADER + body, TYPES).body)]
    assert changed(body) == [*before, *LEAVE]


def search(x: Any, first: Any) -> Any:
    """How far down from `first` the elements are larger than their successors; an index may lie outside."""

    def goes_on(state: Any) -> Any:
        k, _ = state
        return (k > 0) & (x[k - 1] > x[k]) & (k < x.size + 3)

    return lax.while_loop(goes_on, lambda s: (s[0] - 1, s[1] + x[s[0]]), (first, jnp.float32(0)))


def test_a_search_that_begins_anywhere() -> None:
    x = np.array([5, 4, 3, 2, 2, 7, 6, np.nan, 3, 2, 1], np.float32)
    firsts = np.arange(-4, x.size + 6)
    compiled = hloom.jit(lambda x, firsts: lax.map(lambda k: search(x, k), firsts))
    (text,) = [t for t in compiled.lower(x, firsts).compile().kernels().values() if "native_loop" in t]
    assert text.count("break") == 3, text
    places, sums = compiled(x, firsts)
    size = x.size

    def at(k: int) -> np.float32:  # as JAX has it: from the end once, then the nearest
        return x[min(max(k + size if k < 0 else k, 0), size - 1)]

    for k, place, found in zip(firsts, np.asarray(places), np.asarray(sums), strict=True):
        total = np.float32(0)
        while k > 0 and at(k - 1) > at(k) and k < size + 3:
            total += at(k)
            k -= 1
        assert (place, found) == (k, total)
