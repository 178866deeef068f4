"""Loops that begin or end at values: where these are in range, indices need no tests, and results stay the same."""

from __future__ import annotations

import itertools
import operator
import random
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.affine import Range
from hloom.numba_backend.loops.facts import decided
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.statements import LoopProgram
from hloom.numba_backend.loops.tested_ends import with_tested_ends

import hloom
import hloom.numpy as jnp
from hloom import lax

RELATIONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
BOUNDS = [None, -2, -1, 0, 1, 2]


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_relation_is_decided_by_a_difference(relation: str) -> None:
    """Beside all differences that there are; those without a bound stand for large numbers."""
    holds = RELATIONS[relation]
    for least, most in itertools.product(BOUNDS, BOUNDS):
        possible = range(-9 if least is None else least, 10 if most is None else most + 1)
        answers = {holds(difference, 0) for difference in possible}
        assert decided(relation, Range(least, most)) is (answers.pop() if len(answers) == 1 else None)


def test_ranges_together() -> None:
    for a, b, c, d in itertools.product(BOUNDS, repeat=4):
        both = Range(a, b).both(Range(c, d))
        assert all(both.has(n) == (Range(a, b).has(n) and Range(c, d).has(n)) for n in range(-4, 5))


SIZES = {"n": 30, "m": 29}
SCOPE: dict[str, Any] = {
    "int32": np.int32, "int64": int, "uint8": np.uint8, "uint64": int, "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b, "minimum": min, "maximum": max, "select": lambda test, a, b: a if test else b,
}  # fmt: skip
ARGUMENTS = ["int64", "int64", "int32*", "int32*", "int64", "int64"]


def drawn(rng: random.Random, between: bool) -> str:
    """A program with loops between elements of `x`, whose indices into `y` are counters, clamped. `between`: all loops
    have both ends there."""

    def index(depth: int = 0) -> str:
        kind = rng.random()
        if depth > 1 or kind < 0.35:
            return rng.choice(("v", "v", "w", "add(v, int32(1))", "subtract(v, s)", "subtract(w, s)", "s"))
        if kind < 0.6:
            inner = index(depth + 1)
            return f"select({inner} < int32(0), add({inner}, int32(n)), {inner})"
        a, b = index(depth + 1), rng.choice(("int32(0)", "int32(n - 1)", "int32(m - 2)", index(depth + 1)))
        return f"{rng.choice(('minimum', 'maximum', 'subtract'))}({a}, {b})"

    def clamped() -> str:
        inner = rng.choice((index(), f"select({index()} < int32(0), add({index()}, int32(n)), {index()})"))
        return f"int64(minimum(maximum({inner}, int32(0)), int32({rng.choice(('n', 'n', 'm'))} - 1)))"

    def statements(indent: int) -> list[str]:
        space, lines = " " * indent, []
        for k in range(rng.randint(1, 4)):
            kind = rng.random()
            if kind < 0.25:
                lines.append(f"{space}w = {index()}")
            elif kind < 0.35:
                lines.append(f"{space}p = uint8({index()} {rng.choice(('<', '>=', '==', '!=', '<='))} int32(0))")
            elif kind < 0.5:
                lines.append(f"{space}y[{clamped()}] = select(p != 0, add(w, int32(t)), int32({k}))")
            elif kind < 0.65 and indent < 16:
                lines.append(f"{space}if {index()} {rng.choice(('<', '>='))} {index()}:")
                lines += statements(indent + 4)
            else:
                lines.append(f"{space}y[{clamped()}] = add(y[{clamped()}], {index()})")
        return lines

    lines = ["def k(lo, hi, x, y, n, m):", "    w = int32(0)", "    p = uint8(1)"]
    for k in range(rng.randint(1, 3)):
        has = lines.count("    c = 0")
        lines += [f"    s = x[{2 * k}]", f"    e = x[{2 * k + 1}]", "    v = s"]
        start = rng.choice(("int64(s)", "int64(v)", "0", "2", "int64(s) + 1", "int64(add(s, int32(1)))"))
        stop = rng.choice(("int64(e)", "int64(e)", "n", "int64(e) + 1", "minimum(int64(e), n)"))
        if between:
            start, stop = "int64(s)", "int64(e)"
        if rng.random() < 0.4:
            lines += [
                f"    b = {start}", f"    while b < {stop}:",
                f"        c = b + int64(minimum(uint64(subtract({stop}, b)), uint64(8)))",
                "        for t in range(b, c):",
            ]  # fmt: skip
        else:
            lines += ["    c = 0", "    for b in range(1):", f"        for t in range({start}, {stop}):"]
        lines += ["            v = int32(t)", *statements(12)]
        if rng.random() < 0.4:
            lines.append("            v = add(v, int32(1))")
        if lines.count("    c = 0") == has:
            lines.append("        b = c")
    return "\n".join(lines) + "\n"


def changed(text: str) -> str:
    program = read(text, ARGUMENTS, "k")
    return to_text(LoopProgram("k", program.parameters, with_tested_ends(program.body, SIZES)))


def outcome(text: str, ends: list[int]) -> list[int]:
    scope = dict(SCOPE)
    exec(text, scope)
    x, y = np.array(ends, np.int32), np.arange(SIZES["n"], dtype=np.int32)
    with np.errstate(over="ignore"):
        scope["k"](0, 1, x, y, *SIZES.values())
    return list(y)


@pytest.mark.parametrize("seed", range(4))
def test_random_loops(seed: int) -> None:
    """Of each hundred programs many change, and none changes its results, whatever the ends are."""
    rng = random.Random(seed)
    count = 0
    for _ in range(100):
        far = rng.random() < 0.3
        text, firsts = drawn(rng, far), (0, 2**31 - 39, -(2**31)) if far else (0,)
        new = changed(text)
        count += new != text
        for _ in range(6):
            low, first = rng.choice((-40, -3, 0, 1, 29)), rng.choice(firsts)
            ends = [rng.choice((low, rng.randint(-5, 33))) for _ in range(6)]
            if first:  # at the limits of the type
                ends = [rng.randint(first, first + 38) for _ in range(6)]
            assert outcome(text, ends) == outcome(new, ends), text + new + str(ends)
    assert count > 20


INDEX = "int64(minimum(maximum(select(v < int32(0), add(v, int32(n)), v), int32(0)), int32(n - 1)))"


def loop(start: str, stop: str, index: str = INDEX) -> str:
    return (
        "def k(lo, hi, x, y, n, m):\n    s = x[0]\n    e = x[1]\n"
        f"    for t in range({start}, {stop}):\n        v = int32(t)\n        y[{index}] = v\n"
    )


def test_a_start_and_an_end() -> None:
    new = changed(loop("int64(s)", "n"))
    assert "if int64(s) >= 0:\n" in new and "y[t] = v" in new and INDEX in new
    new = changed(loop("int64(s)", "int64(e)"))
    assert "if int64(s) >= 0 and int64(e) <= int64(int32(n - 1)) + 1:\n" in new and "y[t] = v" in new
    new = changed(loop("0", "int64(e)"))
    assert "    if int64(e) <= int64(int32(n - 1)) + 1:\n" in new and "y[t] = v" in new
    distance = INDEX.replace("v", "subtract(v, s)")
    assert "y[t - int64(s)] = v" in changed(loop("int64(s)", "n", distance))


KEPT = {
    "ends that are known": loop("2", "n"),
    "a variable that the loop changes": loop("int64(s)", "n", "int64(maximum(s, int32(0)))") + "        s = v\n",
    "an index that no end bounds": loop("int64(s)", "int64(e)", "int64(y[0])"),
    "little to gain": loop("int64(s)", "n", "int64(maximum(v, int32(0)))"),
}


@pytest.mark.parametrize("name", KEPT)
def test_loops_that_stay(name: str) -> None:
    assert changed(KEPT[name]) == KEPT[name]


def rows(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    """A sparse matrix times a vector, element by element."""

    def row(i: Any, out: Any) -> Any:
        def add(j: Any, total: Any) -> Any:
            return total + values[j] * x[columns[j]]

        return out.at[i].set(lax.fori_loop(starts[i], starts[i + 1], add, np.float32(0)))

    return lax.fori_loop(0, starts.size - 1, row, jnp.zeros(starts.size - 1, np.float32))


def by_hand(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    at = lambda array, j: array[np.clip(j + len(array) if j < 0 else j, 0, len(array) - 1)]  # noqa: E731
    out = np.zeros(len(starts) - 1, np.float32)
    for i in range(len(out)):
        for j in range(starts[i], starts[i + 1]):
            out[i] += at(values, j) * at(x, at(columns, j))
    return out


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_rows_of_a_sparse_matrix(kind: str) -> None:
    """Starts that are negative and ends beyond the array give what clamped indices give."""
    rng = np.random.default_rng(2)
    with hloom.enable_x64(True):
        columns, x = rng.integers(0, 7, 40).astype(np.int32), rng.integers(-9, 9, 7).astype(np.float32)
        values = rng.integers(-9, 9, 40).astype(np.float32)
        jitted = hloom.jit(rows)
        for starts in ([0, 3, 3, 17, 40], [0, 40, 41, 60, 61], [-3, 2, 1, 50, 55], [-90, -20, 0, 0, 0]):
            ends = np.array(starts, kind)
            got = np.asarray(jitted(ends, columns, values, x))
            np.testing.assert_array_equal(got, by_hand(ends, columns, values, x))
        (text,) = [
            t for t in map(str, jitted.lower(ends, columns, values, x).compile().kernels().values())
            if "native_loop" in t
        ]  # fmt: skip
        assert " >= 0 and " in text
