"""Elements that an inner loop updates in each iteration are in variables, where no other access is to the same one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.kept_elements import with_kept_elements
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.statements import LoopProgram

import hloom
import hloom.numpy as jnp
from hloom import lax

SIZES = {"n": 9, "m": 100}
TYPES = ["int64", "int64", "int32*", "int32*", "int64", "int64"]
HEAD = "def k(lo, hi, x, y, n, m):\n"


def changed(text: str) -> str:
    names: dict[str, int] = {}

    def fresh(stem: str) -> str:
        names[stem] = names.get(stem, -1) + 1
        return f"{stem}{names[stem]}"

    program = read(text, TYPES, "k")
    return to_text(LoopProgram("k", program.parameters, with_kept_elements(program.body, SIZES, fresh)))


def indented(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines)


def pairs(start: str, stop: str, load: str, store: str = "y[i * n + j]") -> str:
    return indented(
        "for s in range(n):", "    i = n - 1 - s", "    for j in range(i + 1, n):",
        f"        for k in range({start}, {stop}):", f"            v = {store}", f"            w = {load}",
        f"            {store} = maximum(v, w)",
    )  # fmt: skip


KEPT = {
    "the row before the element": pairs("i + 1", "j", "y[i * n + k]"),
    "the column below it": pairs("i + 1", "j", "y[(k + 1) * n + j]"),
    "both": pairs("i + 1", "j", "add(y[i * n + k], y[(k + 1) * n + j])"),
    "behind it": pairs("j + 1", "n", "y[i * n + k]"),
    "another array": pairs("0", "n", "x[k]"),
}
STAYS = {
    "it may be the element": pairs("i + 1", "j + 1", "y[i * n + k]"),
    "it begins with the element": pairs("j", "n", "y[i * n + k]"),
    "an index that is loaded": pairs("i + 1", "j", "y[int64(x[k])]"),
    "the element changes": pairs("i + 1", "j", "x[k]", "y[i * n + k]"),
    "nothing loads it": pairs("i + 1", "j", "x[k]").replace("v = y[i * n + j]", "v = x[i]"),
    "two elements": pairs("i + 1", "j", "x[k]") + "                y[i * n] = w\n",
}


@pytest.mark.parametrize("name", KEPT)
def test_elements_that_are_kept(name: str) -> None:
    new = changed(KEPT[name])
    before, after = new.split("for k in range")
    assert "kept0 = y[i * n + j]" in before and "    kept0 = maximum(kept0, w)\n" in after
    assert "if " in before and after.count("y[i * n + j] = kept0") == 1
    same(KEPT[name], new, 0)


@pytest.mark.parametrize("name", STAYS)
def test_elements_that_stay_in_memory(name: str) -> None:
    assert changed(STAYS[name]) == to_text(read(STAYS[name], TYPES, "k"))


SCOPE: dict[str, Any] = {
    "int32": np.int32, "int64": int, "uint64": int, "add": lambda a, b: a + b, "subtract": lambda a, b: a - b,
    "minimum": min, "maximum": max,
}  # fmt: skip


def outcome(text: str, seed: int) -> list[int]:
    scope, rng = dict(SCOPE), np.random.default_rng(seed)
    exec(text, scope)
    x, y = rng.integers(0, 9, 100).astype(np.int32), rng.integers(-50, 50, 100).astype(np.int32)
    with np.errstate(over="ignore"):
        scope["k"](0, 1, x, y, *SIZES.values())
    return list(y)


def same(text: str, new: str, seed: int) -> None:
    assert outcome(text, seed) == outcome(new, seed), text + new


def drawn(rng: random.Random) -> str:
    """A loop between the counters of those around it, or in blocks, with accesses to elements of a matrix."""
    ends = ["0", "n", "i", "j", "i + 1", "j + 1", "j - 1", "int64(x[i])", "minimum(j, n - 2)"]
    outer = rng.choice(["range(n - 1)", "range(i + 1, n)", "range(i)", "range(1, n - i)"])
    start, stop = rng.choice(ends), rng.choice(ends)
    places = ["i * n + j", "j * n + i", "i * n", "j", "a * n + j", "i * n + a"]
    place = rng.choice(places)
    others = [*places, "i * n + k", "k * n + j", "(k + 1) * n + j", "i * n + k + 1", "k", "n * k", "b"]

    def element(space: str) -> list[str]:
        array, index = rng.choice(("y", "y", "x")), rng.choice(others)
        return [f"{space}v = add(v, {array}[{index}])", f"{space}b = {rng.choice(('k', 'j', 'a + 1', 'n - 1 - i'))}"]

    a = rng.choice(("i + 1", "j - i", "int64(x[j])", "n - 1 - j", "0"))
    lines = ["    v = int32(0)", "    b = 0", "    for i in range(n - 1):", f"        for j in {outer}:"]
    lines.append(f"            a = {a}")
    if rng.random() < 0.3:
        lines += [
            f"            p = {start}", f"            while p < {stop}:",
            f"                q = p + int64(minimum(uint64(subtract({stop}, p)), uint64(3)))",
            "                for k in range(p, q):",
        ]  # fmt: skip
    else:
        lines += ["            p = 0", "            for one in range(1):"]
        lines.append(f"                for k in range({start}, {stop}):")
    space = " " * 20
    for _ in range(rng.randint(0, 2)):
        lines += element(space)
    lines.append(f"{space}v = {rng.choice(('y', 'y', 'y', 'x'))}[{place}]")
    lines += element(space)
    stored = [place if rng.random() < 0.9 else rng.choice(others) for _ in range(2)]
    lines.append(f"{space}y[{stored[0]}] = maximum(add(v, int32(1)), int32(k))")
    if rng.random() < 0.5:
        lines += element(space)
        lines.append(f"{space}y[{stored[1]}] = subtract(v, int32(j))")
    if "while" in lines[6]:
        lines.append("                p = q")
    lines.append("            y[99] = v")
    return HEAD + "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(4))
def test_random_loops(seed: int) -> None:
    """Of each hundred programs some change, and none changes its results."""
    rng = random.Random(seed)
    count = 0
    for number in range(150):
        text = drawn(rng)
        new = changed(text)
        count += "kept0" in new
        same(text, new, number)
    assert count > 20


def of_pairs(n: int, dtype: Any) -> Any:
    def cell(i: Any, j: Any, t: Any) -> Any:
        return lax.fori_loop(i + 1, j, lambda k, t: t.at[i, j].set(jnp.maximum(t[i, j], t[i, k] + t[k, j])), t)

    def row(step: Any, t: Any) -> Any:
        i = n - 1 - step
        return lax.fori_loop(i + 1, n, lambda j, t: cell(i, j, t), t)

    return hloom.jit(lambda t: lax.fori_loop(0, n, row, t.astype(dtype)))


@pytest.mark.parametrize("n", [1, 2, 9, 70])
@pytest.mark.parametrize("dtype", ["int32", "float32", "int8"])
def test_a_table_of_all_pairs(n: int, dtype: str) -> None:
    """With 70 rows the sizes are arguments, which have one name."""
    t = np.random.default_rng(n).integers(-9, 9, (n, n)).astype(dtype)
    if dtype == "float32" and n > 2:
        t[1, 2], t[0, 1] = np.nan, -0.0
    f = of_pairs(n, dtype)
    want = t.copy()
    with np.errstate(over="ignore"):
        for i in range(n - 1, -1, -1):
            for j in range(i + 1, n):
                for k in range(i + 1, j):
                    want[i, j] = np.maximum(want[i, j], want[i, k] + want[k, j])
    np.testing.assert_array_equal(np.asarray(f(t)), want)
    if n > 2:
        (text,) = [t for t in map(str, f.lower(t).compile().kernels().values()) if "native_loop" in t]
        assert text.count("kept0 = maximum(kept0") == 1
        stride = "9" if n == 9 else "n1"
        assert text.count(f" * {stride} + ") == 4 and text.count(" * n") == (4 if n == 70 else 0)
