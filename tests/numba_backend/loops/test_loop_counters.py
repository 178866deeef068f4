"""Counters of loops in 64 bits: where a narrow variable is widened, its known bounds are written instead."""

from __future__ import annotations

import pytest
from hloom.numba_backend.loops.expressions import Name
from hloom.numba_backend.loops.forward import forwarded
from hloom.numba_backend.loops.printer import lines_of
from hloom.numba_backend.loops.reader import read

TYPES = {"lo": "int64", "hi": "int64", "s": "int32", "t": "int32", "step": "int64", "x": "int64*", "n": "int64"}

CASES = {
    "widened at once": ("a = int64(s)", "a = step"),
    "copied": ("v = s\na = int64(v)", "v = s\na = step"),
    "the next one": ("v = add(s, int32(1))\na = int64(v)", "v = add(s, int32(1))\na = step + 1"),
    "another sum may overflow": ("v = add(s, int32(2))\na = int64(v)", "v = add(s, int32(2))\na = int64(v)"),
    "the next one of the next one": (
        "s = add(s, int32(1))\nv = add(s, int32(1))\na = int64(s)\nb = int64(v)",
        "s = add(s, int32(1))\nv = add(s, int32(1))\na = step + 1\nb = int64(v)",
    ),
    "assigned again": ("s = t\na = int64(s)", "s = t\na = int64(s)"),
    "assigned in a branch": (
        "if n < 1:\n    s = t\n    a = int64(s)\nb = int64(s)",
        "if n < 1:\n    s = t\n    a = int64(s)\nb = int64(s)",
    ),
    "before a branch": ("if n < int64(s):\n    b = int64(s)", "if n < step:\n    b = step"),
    "changed by a later turn": (
        "for j in range(n):\n    a = int64(s)\n    s = t",
        "for j in range(n):\n    a = int64(s)\n    s = t",
    ),
    "in a loop": ("for j in range(n):\n    x[int64(s) + j] = j", "for j in range(n):\n    x[step + j] = j"),
    "the test of a loop": (
        "while int64(s) < n:\n    s = add(s, int32(1))",
        "while int64(s) < n:\n    s = add(s, int32(1))",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_forwarding(name: str) -> None:
    before, after = CASES[name]
    text = "def k(lo, hi, s, t, step, x, n):\n" + "".join(f"    {line}\n" for line in before.splitlines())
    program = read(text, TYPES)
    found = forwarded(program.body, Name("s", "int32"), Name("step"), 1)
    assert list(lines_of(found)) == after.splitlines()
