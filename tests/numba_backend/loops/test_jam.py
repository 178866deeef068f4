"""Random loops over rows: several rows at once, in place, and with elements in variables, give the same results.

The indices are sums of the counters with drawn factors, so that rows depend on each other in all ways.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.carried_loads import carried
from hloom.numba_backend.loops.in_place import in_place
from hloom.numba_backend.loops.jam import jammed
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.statements import Block, LoopProgram
from hloom.numba_backend.machine import ANY_TARGET, compiling_for

ROW, COUNT = 24, 800
SCOPE: dict[str, Any] = {
    "int32": np.int32, "int64": int, "add": lambda a, b: a + b, "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b, "minimum": min, "maximum": max, "select": lambda test, a, b: a if test else b,
    "bit_and": lambda a, b: a & b, "interrupted": lambda watch: False,
    "lanes": range, "local_array": lambda count, dtype: np.full(count, 77, dtype),
}  # fmt: skip


USUAL = ("t * n0 + j", "t * n0 + j + 1", "at * n0 + j", "at * n0 + j + 1", "(t + 2) * n0 + j + 1")
COLUMNS = ("j", "j", "j + 1", "j + 1", "j + 2", "18 - j", "j * 2", "3")


def drawn(rng: random.Random) -> tuple[str, int, int]:
    """The text of a program, and the numbers of rows and columns."""
    rows, columns = rng.randint(8, 13), rng.choice((16, 17, 19))

    tame = rng.random() < 0.7
    """As tables have it: elements left, above and in the corner, and a new one; others only now and then."""

    def index(inside: bool) -> str:
        if tame and inside and rng.random() < 0.95:
            return rng.choice(USUAL)
        row = rng.choice(("0", "t * n0", "(t + 1) * n0", "(t + 2) * n0", "at * n0"))
        column = rng.choice(COLUMNS if inside else "0123")
        return f"{row} + {column}"

    def value(inside: bool) -> str:
        arrays = "aab" if inside or not tame else "b"
        loads = [f"{rng.choice(arrays)}[{index(inside)}]" for _ in range(rng.randint(1, 3))]
        if inside:
            loads += rng.sample(("s", "u", "c"), rng.randint(0, 2))
        whole = loads[0]
        for part in loads[1:]:
            function = rng.choice(("add", "minimum", "maximum", "add"))
            whole = f"{function}({whole}, {part})"
        return f"add(multiply({whole}, int32(3)), int32({rng.randint(-9, 9)}))"

    lines = ["def k(lo, hi, a, b, n, m, n0):", "    for t in range(n):", "        at = int64(add(int32(t), int32(1)))"]
    lines += [f"        {name} = {value(False)}" for name in ("s", "u", "c")]
    if rng.random() < (0.1 if tame else 0.4):
        lines.append(f"        a[{index(False)}] = s")
    lines.append("        for j in range(m):")
    for _ in range(1 if tame else rng.randint(1, 3)):
        if rng.random() < 0.5:
            lines.append(f"            {rng.choice(('s', 'u'))} = {value(True)}")
        place = "a[at * n0 + j + 1]" if tame else f"{rng.choice('aaab')}[{index(True)}]"
        lines.append(f"            {place} = {rng.choice((value(True), 's', 'u'))}")
    return "\n".join(lines) + "\n", rows, columns


ARGUMENTS = ["int64", "int64", "int32*", "int32*", "int64", "int64", "int64"]


def outcome(text: str, *sizes: int) -> list[np.ndarray[Any, Any]]:
    scope = dict(SCOPE)
    exec(text, scope)
    arrays = [np.arange(COUNT, dtype=np.int32) * 7 % 101, np.arange(COUNT, dtype=np.int32) * 5 % 89]
    with np.errstate(over="ignore"):
        scope["k"](0, 1, *arrays, *sizes)
    return arrays


def changed(text: str, change: Callable[..., Block], *arguments: Any) -> str:
    program = read(text, ARGUMENTS, "k")
    return to_text(LoopProgram("k", program.parameters, change(program.body, *arguments)))


def unchanged(block: Block) -> Block:
    return block


def namer() -> Callable[[str], str]:
    numbers = itertools.count()
    return lambda stem: f"{stem}_{next(numbers)}"


@pytest.mark.parametrize("seed", range(6))
def test_rows_at_once(seed: int) -> None:
    """Of each hundred programs, some change, and none changes its results."""
    rng = random.Random(seed)
    at_once = in_variables = 0
    for _ in range(100):
        text, rows, columns = drawn(rng)
        new = changed(text, jammed, {"n": rows, "m": columns, "n0": ROW}, namer())
        if new != changed(text, unchanged):
            at_once += 1
            in_variables += "carried" in new
            for one, other in zip(outcome(text, rows, columns, ROW), outcome(new, rows, columns, ROW), strict=True):
                np.testing.assert_array_equal(one, other, text + new)
    assert at_once > 5 and in_variables > 0


@pytest.mark.parametrize("seed", range(3))
def test_elements_in_variables(seed: int) -> None:
    """The inner loops of the same programs, each by itself."""
    rng = random.Random(seed)
    changes = 0
    for _ in range(100):
        text, rows, columns = drawn(rng)
        new = changed(text, carried, {"n": rows, "m": columns, "n0": ROW}, namer())
        if new != changed(text, unchanged):
            changes += 1
            for one, other in zip(outcome(text, rows, columns, ROW), outcome(new, rows, columns, ROW), strict=True):
                np.testing.assert_array_equal(one, other, text + new)
    assert changes > 5


@pytest.mark.parametrize("last", [7, 127])
def test_a_narrow_index_that_wraps_is_not_the_next_one(last: int) -> None:
    """Downwards, with an index that one more may wrap around."""
    lines = """def k(lo, hi, a, b, n, m, n0):
    for j in range(m):
        at = int64(subtract(int8(n0), int8(j)))
        a[at + 200] = add(a[int64(subtract(int8(n0), int8(j))) + 200 + 1], b[j])
"""
    sizes = {"n": 1, "m": 3 if last == 7 else 140, "n0": last}
    new = changed(lines, carried, sizes, namer())
    assert ("carried" in new) == (last == 7)


def in_one_place(rng: random.Random) -> tuple[str, int, int]:
    """Rows that are stored over each other, in ways that a wavefront has and, now and then, in others."""
    tame = rng.random() < 0.7
    places = ("j + 1", "j + 1", "j") if tame else ("j + 1", "j + 1", "j", "j + 2", "t + j", "3", "j * 2")
    others = ("j", "j + 2", "t", "7", "40 - j") if tame else ("j", "t + j", "t * 2", "j * 2", "at")

    def value() -> str:
        parts = [f"a[{rng.choice(places)}]", f"b[{rng.choice(others)}]", rng.choice(("s", "u", "c")), "s"]
        if not tame:
            parts.append("int32(j)")
        rng.shuffle(parts)
        whole = parts[0]
        for part in parts[1 : rng.randint(2, len(parts))]:
            whole = f"{rng.choice(('add', 'minimum', 'maximum', 'subtract'))}({whole}, {part})"
        test = f"{whole} {rng.choice(('<', '!=', '>='))} {rng.choice(parts)}"
        return rng.choice((f"add({whole}, int32(1))", f"select({test}, {whole}, c)", f"add({whole}, int32({test}))"))

    head = ["def k(lo, hi, a, b, n, m, n0):", "    for t in range(n):", "        at = t + 1"]
    head += ["        u = a[0]", "        s = add(b[t], int32(t))", "        c = b[at]"]
    if rng.random() < 0.7:
        head.append(f"        a[{rng.choice(('0', '0', '60') if tame else ('0', '1', '5', 't'))}] = s")
    if not tame and rng.random() < 0.4:
        head.append(f"        b[{rng.choice(('2', '60', 't'))}] = u")
    head.append("        for j in range(m):")
    lines = [f"            {rng.choice(('s', 'u'))} = {value()}" for _ in range(rng.randint(0, 2))]
    if rng.random() < 0.2:
        lines.append(f"            b[{rng.choice(('j', 'j + 1', 'j + 3', '60 + j'))}] = {value()}")
    lines.append(f"            a[{'j + 1' if tame else rng.choice(places)}] = {rng.choice((value(), 's'))}")
    lines += [f"            u = {value()}" for _ in range(rng.randint(0, 1))]
    tail = ["    b[1] = s"] if rng.random() < 0.3 else []
    return "\n".join(head + lines + tail) + "\n", rng.randint(32, 50), rng.randint(32, 40)


@pytest.mark.parametrize("register", [32, 64])
@pytest.mark.parametrize("seed", range(3))
def test_rows_as_lanes(seed: int, register: int) -> None:
    """Of each hundred programs, some become wavefronts, and none changes its results."""
    rng = random.Random(seed)
    waves = 0
    with compiling_for(replace(ANY_TARGET, register_bytes=register)):
        for _ in range(100):
            text, rows, columns = in_one_place(rng)
            new = changed(text, jammed, {"n": rows, "m": columns, "n0": ROW}, namer())
            waves += "in lanes(" in new
            for one, other in zip(outcome(text, rows, columns, ROW), outcome(new, rows, columns, ROW), strict=True):
                np.testing.assert_array_equal(one, other, text + new)
    assert waves > 15


def test_few_lanes_and_short_rows_are_left_alone() -> None:
    lines = """def k(lo, hi, a, b, n, m, n0):
    for t in range(n):
        s = b[t]
        for j in range(m):
            s = maximum(s, add(a[j], b[j]))
            a[j] = s
"""
    for register, rows, columns, is_wave in ((64, 32, 32, True), (16, 32, 32, False), (64, 31, 32, False),
                                             (64, 32, 31, False), (32, 16, 16, True)):  # fmt: skip
        with compiling_for(replace(ANY_TARGET, register_bytes=register)):
            new = changed(lines, jammed, {"n": rows, "m": columns, "n0": ROW}, namer())
        assert ("in lanes(" in new) == is_wave


def with_copy(rng: random.Random) -> str:
    """A step that stores to `b` and copies it to `a`."""

    def load() -> str:
        return f"a[{rng.choice(('j + 1', 'j + 1', 'j + 2', rng.choice(('j', '0', '1', '17', '18'))))}]"

    lines = ["def k(lo, hi, a, b, n, m, n0):", "    for t in range(n):", f"        s = a[{rng.choice('012')}]"]
    lines.append("        b[0] = add(s, int32(1))")
    if rng.random() < 0.3:
        lines.append(f"        s = add(s, a[{rng.choice('01')}])")
    lines.append("        for j in range(m):")
    if rng.random() < 0.3:
        lines.append(f"            s = add(s, {load()})")
    lines.append(f"            b[j + {rng.choice('1111112')}] = add(maximum(s, {load()}), {load()})")
    if rng.random() < 0.5:
        lines.append(f"            s = {load()}")
    lines += ["        for i in range(n0):", "            a[i] = b[i]"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(3))
def test_in_place(seed: int) -> None:
    rng = random.Random(seed)
    without = 0
    for _ in range(100):
        text = with_copy(rng)
        columns = rng.choice((1, 16, 17))
        sizes = {"n": 9, "m": columns, "n0": columns + rng.choice((1, 1, 1, 1, 2))}
        new = changed(text, in_place, sizes, {"b"})
        if new != changed(text, unchanged):
            without += 1
            one, other = (outcome(each, *sizes.values())[0] for each in (text, new))
            np.testing.assert_array_equal(one, other, text + new)
            both = changed(new, jammed, sizes, namer())
            np.testing.assert_array_equal(one, outcome(both, *sizes.values())[0], new + both)
    assert without > 5


def test_elements_are_not_loaded_for_an_inner_loop_that_may_not_run() -> None:
    """Its ends depend on a loop around both: in the last iteration of that one there may be no element."""
    lines = """def k(lo, hi, a, b, n, m, n0):
    for k in range(m):
        for t in range(n):
            for j in range(k + 1, m):
                a[t * n0 + j] = add(a[t * n0 + j], a[t * n0 + j + -1])
"""
    sizes = {"n": 9, "m": 17, "n0": ROW}
    new = changed(lines, jammed, sizes, namer())
    assert "rest" in new and "carried" not in new
    fixed = changed(lines.replace("k + 1", "1"), jammed, sizes, namer())
    assert "rest" in fixed and "carried" in fixed
    for one, other in zip(outcome(lines, *sizes.values()), outcome(new, *sizes.values()), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rows", [-9, -1, 0, 1, 23, 60])
def test_a_number_of_rows_that_is_known_at_run_time(rows: int) -> None:
    """It has an upper bound, which other rules need; it may be negative."""
    lines = """def k(lo, hi, a, b, n, m, n0):
    for t in range(minimum(n0, n)):
        s = b[t + 30]
        for j in range(m):
            s = maximum(s, add(a[j], b[j]))
            a[j] = s
"""
    new = changed(lines, jammed, {"m": 17, "n0": ROW}, namer())
    assert "rest" in new
    for one, other in zip(outcome(lines, rows, 17, ROW), outcome(new, rows, 17, ROW), strict=True):
        np.testing.assert_array_equal(one, other, new)


@pytest.mark.parametrize("step", [1, -1])
def test_what_was_just_stored_is_not_what_comes_next_in_a_loop_downwards(step: int) -> None:
    ends = "1, m" if step > 0 else "m, 0, -1"
    lines = f"""def k(lo, hi, a, b, n, m, n0):
    for j in range({ends}):
        a[minimum(j, n0)] = add(a[minimum(j - 1, n0)], b[j])
"""
    sizes = {"n": 1, "m": 17, "n0": ROW}
    new = changed(lines, carried, sizes, namer())
    assert ("carried" in new) == (step > 0)
    for one, other in zip(outcome(lines, *sizes.values()), outcome(new, *sizes.values()), strict=True):
        np.testing.assert_array_equal(one, other, new)


def test_an_index_in_the_first_iteration_is_that_of_the_load() -> None:
    """Its name has another value later in the iteration."""
    lines = """def k(lo, hi, a, b, n, m, n0):
    for j in range(m):
        at = j + 3
        a[at + 1] = add(a[at], b[j])
        at = j + 40
        b[at] = add(b[at], int32(1))
"""
    sizes = {"n": 1, "m": 17, "n0": ROW}
    new = changed(lines, carried, sizes, namer())
    assert "carried" in new
    for one, other in zip(outcome(lines, *sizes.values()), outcome(new, *sizes.values()), strict=True):
        np.testing.assert_array_equal(one, other, new)


@pytest.mark.parametrize("end", ["minimum(n0, n)", "n0 - 1"])
def test_a_copy_of_a_part_stays(end: str) -> None:
    """How many elements it copies is known at run time, or there are more than the old row has."""
    lines = """def k(lo, hi, a, b, n, m, n0):
    for t in range(9):
        b[0] = add(a[0], int32(1))
        for j in range(m):
            b[j + 1] = add(a[j + 1], int32(3))
        for i in range(END):
            a[i] = b[i]
"""
    sizes = {"m": 17, "n0": 18}
    whole, lines = lines.replace("END", "n0"), lines.replace("END", end)
    assert changed(lines, in_place, sizes, {"b"}) == changed(lines, unchanged)
    assert changed(whole, in_place, sizes, {"b"}) != changed(whole, unchanged)


def with_an_end(rng: random.Random, in_blocks: bool) -> str:
    """Rows whose inner loop waits for a variable, with loads and stores after it; perhaps in blocks of iterations."""

    def index() -> str:
        return rng.choice(("t", "t * 2", "t + 1", "3", f"t + {rng.choice((30, 60))}", "at"))

    lines = ["def k(lo, hi, a, b, n, m, n0):", "    for t in range(n):", "        at = t + 2"]
    lines.append(f"        s = b[{index()}]")
    lines.append("        for begin in range(0, m, 8):" if in_blocks else "        for j in range(m):")
    if in_blocks:
        lines += ["            if interrupted(n0):", "                return"]
        lines.append("            for j in range(begin, minimum(begin + 8, m)):")
    pad = " " * (16 if in_blocks else 12)
    lines.append(f"{pad}s = maximum(multiply(s, int32(3)), add(s, {rng.choice('bbbba')}[j]))")
    if rng.random() < 0.2:
        lines.append(f"{pad}{rng.choice('ab')}[{rng.choice(('j', 't * n0 + j'))}] = s")
    for _ in range(rng.randint(1, 2)):
        value = rng.choice(("s", f"add(s, b[{index()}])", "add(s, b[int64(bit_and(s, int32(63)))])", f"a[{index()}]"))
        lines.append(f"        {rng.choice('aaaab')}[{index()}] = {value}")
    if rng.random() < 0.3:
        lines.append("    b[0] = s")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("in_blocks", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_what_comes_after_the_inner_loop(seed: int, in_blocks: bool) -> None:
    """As a search that ends there, and stores what it has found."""
    rng = random.Random(seed)
    at_once = 0
    for _ in range(100):
        text, rows, columns = with_an_end(rng, in_blocks), rng.choice((8, 9, 13)), rng.choice((8, 9, 17))
        new = changed(text, jammed, {"n": rows, "m": columns, "n0": ROW}, namer())
        if new != changed(text, unchanged):
            at_once += 1
            for one, other in zip(outcome(text, rows, columns, ROW), outcome(new, rows, columns, ROW), strict=True):
                np.testing.assert_array_equal(one, other, text + new)
    assert 10 < at_once < 90
