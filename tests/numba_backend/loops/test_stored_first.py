"""Elements that a loop stores to before it reads them: a copy before the loop leaves them out."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.stored_first import stored_first
from hloom.numba_backend.runtime.program import ProgramBuilder

import hloom
import hloom.numpy as jnp
from hloom import lax

SIZES = {"n": 6, "m": 5, "n0": 7}
HEAD = "def k(lo, hi, a, b, n, m, n0):\n"
ARGUMENTS = ["int64", "int64", "int32*", "int32*", "int64", "int64", "int64"]
COUNT = 200


def found(lines: str) -> tuple[int, int]:
    return stored_first(read(HEAD + lines, ARGUMENTS, "k").body, "a", SIZES)


ROWS = """    for t in range(n):
        at = t + 2
        {before}
        for j in range(m):
            s = {load}
            a[at * m + j] = s
        {after}
"""


@pytest.mark.parametrize(
    ("load", "before", "after", "expected"),
    [
        ("a[(t + 1) * m + j]", "", "", (10, 30)),
        ("add(a[t * m + j], a[at * m - 1])", "", "", (10, 30)),
        ("a[at * m + j - 1]", "", "", (10, 30)),  # the element before it
        ("a[at * m + j - 3]", "", "u = a[at * m + 4]", (10, 30)),  # the last element of the row, after the row
        ("a[3]", "u = a[t]", "u = a[40 + t]", (10, 30)),  # outside
        ("b[j]", "b[at * m + 9] = b[t]", "a[at * m + 9] = u", (10, 30)),  # another store makes nothing worse
        ("a[at * m + j]", "", "", (0, 0)),  # the old element
        ("a[at * m + j + 1]", "", "", (0, 0)),
        ("a[at * m + 4]", "", "", (0, 0)),  # the last of the row, too early
        ("b[0]", "u = a[at * m]", "", (0, 0)),
        ("b[0]", "", "u = a[at * m + 5]", (0, 0)),  # the first of the next row
        ("a[39 - t]", "", "", (0, 0)),  # from the end
        ("a[int64(b[t])]", "", "", (0, 0)),  # anywhere
        ("b[t]", "if t > 2:\n            at = t + 1", "", (0, 0)),
    ],
)
def test_rows(load: str, before: str, after: str, expected: tuple[int, int]) -> None:
    lines = ROWS.format(load=load, before=before or "u = b[0]", after=after or "u = b[0]")
    assert found("    u = int32(0)\n" + lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("    for t in range(2, n):\n        a[t] = add(a[t - 1], a[t - 2])\n", (2, 4)),
        ("    for t in range(n):\n        for i in range(2):\n            for j in range(1, m):\n"
         "                a[t * 8 + i * 4 + j] = a[t * 8 + i * 4]\n", (1, 48)),
        ("    for t in range(n):\n        a[t * 2] = b[t]\n", (0, 0)),  # every other element
        ("    for t in range(0, n, 2):\n        a[t] = b[t]\n", (0, 0)),
        ("    for t in range(n):\n        a[n - 1 - t] = b[t]\n", (0, 0)),
        ("    for t in range(lo, hi):\n        a[t] = b[t]\n", (0, 0)),  # a part of the iterations
        ("    for t in range(n):\n        for j in range(t):\n            a[t * m + j] = b[t]\n", (0, 0)),
        ("    for t in range(n):\n        for j in range(m):\n            a[t * n0 + j] = b[t]\n", (0, 0)),  # gaps
        ("    u = a[n]\n    for t in range(n):\n        a[t] = u\n", (0, 6)),
        ("    u = a[3]\n    for t in range(n):\n        a[t] = u\n", (0, 0)),  # before the loop
        ("    for t in range(n):\n        b[t] = a[t + n]\n    for t in range(n):\n        a[t] = a[t + n]\n", (0, 6)),
        ("    for t in range(n):\n        b[t] = a[n - t]\n    for t in range(n):\n        a[t] = b[t]\n", (0, 0)),
        ("    for t in range(n):\n        a[t] = b[t]\n    for t in range(n):\n        b[t] = a[n - t]\n", (0, 6)),
        ("    for t in range(n):\n        if b[t] > int32(0):\n            a[t] = b[t]\n", (0, 0)),
        ("    while b[0] > int32(0):\n        a[0] = b[1]\n", (0, 0)),
    ],
)  # fmt: skip
def test_other_loops(lines: str, expected: tuple[int, int]) -> None:
    assert found(lines) == expected


def drawn(rng: random.Random) -> str:
    """A loop over rows with a few loads and stores, mostly of elements before the one that is stored to."""
    row = rng.choice(("m", "m", "n0"))
    start, shift = rng.choice((0, 1, 2)), rng.choice((1, 2))
    at = f"(t + {shift}) * {row}"

    def load(column: str) -> str:
        place = rng.choice((at, f"t * {row}", f"(t + {shift - 1}) * {row}", "0", f"(t + 3) * {row}"))
        move = rng.choice((-3, -2, -1, -1, 0, 1, 4))
        sign = rng.choice("+++-")
        return f"{rng.choice('aaab')}[{place} {sign} {column} + {9 + move}]"

    column = rng.choice(("j", "j", "0"))
    lines = [f"    for t in range({start}, n):", f"        u = {load('0')}"]
    if rng.random() < 0.2:
        lines.append(f"        {rng.choice('ab')}[{at} + {rng.randint(6, 11)}] = u")
    lines.append(f"        for j in range({rng.choice(('', '1, '))}{rng.choice(('m', 'm', 'n0'))}):")
    lines.append(f"            s = add({load(column)}, {rng.choice(('u', load('j')))})")
    lines.append(f"            a[{at} + j + 9] = s")
    lines.append(f"        b[t] = {rng.choice(('u', load('0'), load('2')))}")
    return HEAD + "\n".join(lines) + "\n"


def outcome(text: str, initial: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    scope: dict[str, Any] = {"int32": np.int32, "add": lambda a, b: a + b}
    exec(text, scope)
    arrays = [initial.copy(), np.arange(COUNT, dtype=np.int32) * 5 % 89]
    with np.errstate(over="ignore"):
        scope["k"](0, 1, *arrays, *SIZES.values())
    return arrays


@pytest.mark.parametrize("seed", range(4))
def test_random_loops(seed: int) -> None:
    """Other initial values of these elements change no result."""
    rng = random.Random(seed)
    usual, some = np.arange(COUNT, dtype=np.int32) * 7 % 101, 0
    for _ in range(150):
        text = drawn(rng)
        first, count = stored_first(read(text, ARGUMENTS, "k").body, "a", SIZES)
        other = usual.copy()
        other[first : first + count] = 12345
        for one, two in zip(outcome(text, usual), outcome(text, other), strict=True):
            np.testing.assert_array_equal(one, two, text)
        some += count > 0
    assert some > 10


def test_copies_leave_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program copies the first rows and the last ones, and the argument stays as it is."""
    copied: list[int] = []
    copy = ProgramBuilder.copy

    def noted(self: Any, target: Any, source: Any, nbytes: int) -> None:
        copied.append(nbytes)
        copy(self, target, source, nbytes)

    monkeypatch.setattr(ProgramBuilder, "copy", noted)
    x = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)

    def table(least: int, most: int) -> Any:
        def step(i: Any, a: Any) -> Any:
            return a.at[i].set(0.5 * a[i - 1] + 0.25 * a[i - 2])

        return hloom.jit(lambda a: lax.fori_loop(least, most, step, a))

    cases = {(2, 40): [400], (2, 30): [400, 2000], (7, 33): [1400, 1400], (39, 40): [8000]}
    for (least, most), sizes in cases.items():
        copied.clear()
        expected = x.copy()
        for i in range(least, most):
            expected[i] = np.float32(0.5) * expected[i - 1] + np.float32(0.25) * expected[i - 2]
        f, given = table(least, most), jnp.asarray(x)
        for _ in range(2):  # in the memory of the result before
            np.testing.assert_allclose(f(given), expected, rtol=1e-6)
        np.testing.assert_array_equal(given, x)
        assert copied == sizes
