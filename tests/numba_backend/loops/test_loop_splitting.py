"""Splitting loops at tests on their counter: the iterations that run, and their order, stay the same."""

from __future__ import annotations

import itertools
import random

import pytest
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.split import split_loops
from hloom.numba_backend.loops.statements import For, If, LoopProgram, walk

TYPES = {"lo": "int64", "hi": "int64", "out": "int64*", "n": "int64", "m": "int64", "k": "int64"}
HEADER = "def kernel(lo, hi, out, n, m, k):\n"

BODIES = {
    "concatenate": """
    for i in range(n):
        if i < m:
            part = 1
        else:
            part = i - m
        out[i] = part
""",
    "three parts": """
    for i in range(64):
        if i < 1:
            part = 5
        elif i < 63:
            part = i
        else:
            part = 7
        out[i] = part
""",
    "pad": """
    for i in range(n):
        at = i - k
        if at >= 0 and at < m:
            part = at
        else:
            part = -1
        out[i] = part
""",
    "nested": """
    for i in range(n):
        for j in range(8):
            if i < 2:
                a = 1
            else:
                a = 2
            if 3 <= j and j < 6:
                b = 10
            else:
                b = 20
            out[i * 8 + j] = a + b
""",
    "five parts": """
    for i in range(lo, n):
        if i < m:
            part = 1
        elif i < m + k:
            part = 2
        elif i < m + k + k:
            part = 3
        elif i < m + k + k + m:
            part = 4
        else:
            part = 5
        out[i] = part
""",
    "pad of two dimensions": """
    for i in range(n):
        at = i - 1
        for j in range(m):
            to = j - k
            if at >= 0 and at < 3 and to >= 0 and to < 2:
                part = at * 2 + to
            else:
                part = -1
            out[i * 10 + j] = part
""",
    "not all must hold": """
    for i in range(n):
        if i < m or i > k:
            part = 1
        else:
            part = 2
        out[i] = part
""",
    "not a point": """
    for i in range(n):
        if i % 2 < m:
            part = 1
        else:
            part = 2
        out[i] = part
""",
    "a bound that changes": """
    last = 0
    for i in range(n):
        if i < last:
            part = 1
        else:
            part = 2
        last = last + part
        out[i] = last
""",
    "mirrored": """
    for i in range(n):
        if m > i:
            part = 1
        elif k <= i:
            part = 3
        else:
            part = 2
        out[i] = part
""",
}


def _run(program: LoopProgram, n: int, m: int, k: int) -> list[tuple[int, int]]:
    """The stores in their order."""
    stores: list[tuple[int, int]] = []

    class Out:
        def __setitem__(self, index: int, value: int) -> None:
            stores.append((index, value))

    scope = {"minimum": min, "maximum": max}
    exec(to_text(program), scope)
    scope["kernel"](0, 0, Out(), n, m, k)  # type: ignore[operator]
    return stores


def _split(text: str) -> tuple[LoopProgram, LoopProgram]:
    program = read(HEADER + text.strip("\n") + "\n", TYPES)
    return program, LoopProgram(program.name, program.parameters, split_loops(program.body))


@pytest.mark.parametrize("name", BODIES)
def test_same_stores(name: str) -> None:
    before, after = _split(BODIES[name])
    for n, m, k in itertools.product((0, 1, 2, 3, 7), (-2, 0, 1, 3, 9), (-1, 0, 2, 8)):
        assert _run(before, n, m, k) == _run(after, n, m, k), (n, m, k)


def test_tests_are_gone() -> None:
    for name in ("concatenate", "three parts", "nested", "pad", "five parts", "pad of two dimensions"):
        _, after = _split(BODIES[name])
        assert not any(isinstance(s, If) for s in walk(after.body)), to_text(after)
    _, after = _split(BODIES["three parts"])
    assert [(str(s.start or 0), str(s.stop)) for s in after.body if isinstance(s, For)] == [
        ("0", "1"), ("1", "63"), ("63", "64"),
    ]  # fmt: skip


def test_the_number_of_loops() -> None:
    """One for each operand of a concatenation; what an outer loop has decided is not asked in the inner ones."""
    for name, count in (("five parts", 5), ("pad of two dimensions", 3 + 5)):
        _, after = _split(BODIES[name])
        assert sum(isinstance(s, For) for s in walk(after.body)) == count, to_text(after)


def test_what_is_not_split_stays() -> None:
    for name in ("not a point", "a bound that changes", "not all must hold"):
        before, after = _split(BODIES[name])
        assert to_text(before) == to_text(after)


def test_random_loops() -> None:
    rng = random.Random(7)
    for _ in range(200):
        tests = []
        for _ in range(rng.randint(1, 2)):
            left = rng.choice(["i", "i - k", "i + 2", "at"])
            sign = rng.choice(["<", "<=", ">", ">="])
            right = rng.choice(["m", "3", "n - 1", "k + 1"])
            tests.append(f"{left} {sign} {right}" if rng.random() < 0.7 else f"{right} {sign} {left}")
        body = f"""
    for i in range({rng.choice(["n", "m, n", "5", "k, 9"])}):
        at = i - m
        if {" and ".join(tests)}:
            part = 1
        else:
            part = 2
        out[i] = part
"""
        before, after = _split(body)
        for n, m, k in itertools.product((0, 1, 5), (-1, 0, 2, 6), (0, 3)):
            assert _run(before, n, m, k) == _run(after, n, m, k), (body, n, m, k)
