"""Random loops: with values computed ahead, for blocks of iterations, they give the same results."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.fission import split_ahead
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.statements import Block, LoopProgram

import hloom
import hloom.numpy as jnp
from hloom import lax

COUNT = 200
SCOPE: dict[str, Any] = {
    "int32": np.int32, "int64": int, "add": lambda a, b: a + b, "multiply": lambda a, b: a * b, "minimum": min,
    "maximum": max, "bit_xor": lambda a, b: a ^ b, "select": lambda test, a, b: a if test else b,
    "local_array": lambda count, dtype: np.full(count, 77, dtype),
}  # fmt: skip
ARGUMENTS = ["int64", "int64", "int32*", "int32*", "int32*", "int64", "int64"]
NAMES = ("s", "u", "v", "w")


def drawn(rng: random.Random, small: bool = False) -> str:
    """A loop with variables that are carried, that depend on the counter alone, or both, one after the other. `small`:
    with small loops inside, over local arrays."""
    elements = ("e[i]", "e[1 - i]", "f[i * 2]", "f[i + 1]", "int32(i)")

    def value(depth: int = 0, more: tuple[str, ...] = ()) -> str:
        if depth > rng.randint(1, 3):
            return rng.choice((
                *NAMES, *more, *(("e[0]", "e[1]", "f[3]") if small else ()), "int32(t)", "int32(7)",
                f"a[{rng.choice(('t', 't + 1', 'at', '3', 'n - t'))}]", "b[t]", "c[t]",
                "b[int64(minimum(maximum(s, int32(0)), int32(9)))]",
            ))  # fmt: skip
        parts = value(depth + 1, more), value(depth + 1, more)
        if rng.random() < 0.2:
            return f"select({parts[0]} < {parts[1]}, {value(depth + 1, more)}, {value(depth + 1, more)})"
        return f"{rng.choice(('add', 'multiply', 'bit_xor', 'minimum', 'maximum'))}({parts[0]}, {parts[1]})"

    def statement(indent: int) -> list[str]:
        space = " " * indent
        kind = rng.random()
        if small and rng.random() < 0.6:
            lines = [f"{space}for i in range(2):"]
            for _ in range(rng.randint(1, 3)):
                target = rng.choice(("e[i]", "e[i]", "e[1 - i]", "f[i]", "f[i * 2]", "f[3 - i]", "h", "s", "c[t + i]"))
                lines.append(f"{space}    {target} = {value(0, elements)}")
            return lines
        if kind < 0.7 or indent > 12:
            return [f"{space}{rng.choice(NAMES)} = {value()}"]
        if kind < 0.85:
            return [f"{space}{rng.choice(('c[t]', 'c[t]', 'c[3]', 'b[t + 1]'))} = {value()}"]
        if kind < 0.9:
            return [f"{space}at = t + {rng.randint(0, 3)}"]
        head = rng.choice((f"if {value()} > int32(3):", "for i in range(3):"))
        return [f"{space}{head}", *(line for _ in range(2) for line in statement(indent + 4))]

    lines = ["def k(lo, hi, a, b, c, n, m):", "    at = 0"]
    lines += [f"    {name} = int32({rng.randint(-9, 9)})" for name in (*NAMES, *(("h",) if small else ()))]
    if small:
        lines += ["    e = local_array(2, int32)", "    f = local_array(4, int32)"]
        lines += [f"    e[{k}] = a[{k}]" for k in range(2) if rng.random() < 0.7]
    nested = rng.random() < 0.3
    lines.append("    for q in range(2):" if nested else "    q = 0")
    indent = 8 if nested else 4
    start = rng.choice(("", "", "m, ", "q, "))
    lines.append(f"{' ' * indent}for t in range({start}{rng.choice(('n', 'n', 'minimum(m + 40, n)'))}):")
    for _ in range(rng.randint(2, 7)):
        lines += statement(indent + 4)
    lines += [f"    c[{180 + k}] = {name}" for k, name in enumerate(NAMES) if rng.random() < 0.5]
    if small:
        ends = [f"    c[{190 + k}] = {name}" for k, name in enumerate(("e[0]", "e[1]", "f[0]", "f[3]", "h"))]
        lines += [line for line in ends if rng.random() < 0.4]
    return "\n".join(lines) + "\n"


def outcome(text: str, *sizes: int) -> list[np.ndarray[Any, Any]]:
    scope = dict(SCOPE)
    exec(text, scope)
    arrays = [np.arange(COUNT, dtype=np.int32) * factor % 101 - 9 for factor in (7, 5, 3)]
    with np.errstate(over="ignore"):
        scope["k"](0, 1, *arrays, *sizes)
    return arrays


def changed(text: str, sizes: dict[str, int]) -> str:
    numbers = itertools.count()
    program = read(text, ARGUMENTS, "k")
    body: Block = split_ahead(program.body, sizes, lambda stem: f"{stem}_{next(numbers)}")
    return to_text(LoopProgram("k", program.parameters, body))


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_values_ahead(seed: int, small: bool) -> None:
    """Of each hundred programs, some change, and none changes its results."""
    rng = random.Random(seed)
    splits = 0
    for _ in range(100):
        text, n = drawn(rng, small), rng.choice((33, 64, 65, 130))
        new = changed(text, {"n": n, "m": 1})
        splits += "ahead" in new and (not small or "e__" in new or "f__" in new)
        for one, other in zip(outcome(text, n, 1), outcome(new, n, 1), strict=True):
            np.testing.assert_array_equal(one, other, text + new)
    assert splits > (4 if small else 8)


HEAD = "def k(lo, hi, a, b, c, n, m):\n    s = int32(1)\n    for t in range(n):\n"
HASH = "bit_xor(multiply(int32(t), int32(77)), multiply(add(int32(t), int32(5)), bit_xor(int32(m), int32(9))))"
CUBE = "minimum(a[t], minimum(int32(3), minimum(a[t], minimum(a[t], a[t]))))"
KEPT = {
    "a sum, of which LLVM makes vectors": f"        s = add(s, {HASH})\n",
    "little to compute": "        s = maximum(multiply(s, s), add(a[t], b[t]))\n",
    "an array that is stored": f"        c[t + 1] = s\n        s = add(multiply(s, s), {CUBE.replace('a[', 'c[')})\n",
    "out of order": f"        s = add(multiply(s, s), {CUBE.replace('[t]', '[n - t]')})\n",
    "an end": f"        s = add(multiply(s, s), {HASH})\n        if s > int32(9):\n            break\n",
}


@pytest.mark.parametrize("name", KEPT)
def test_loops_that_stay_one(name: str) -> None:
    assert "ahead" not in changed(HEAD + KEPT[name] + "    c[0] = s\n", {"n": 70, "m": 1})


def test_a_loop_that_is_split() -> None:
    text = HEAD + f"        s = add(multiply(s, int32(3)), {HASH})\n    c[0] = s\n"
    new = changed(text, {"n": 70, "m": 1})
    assert "ahead" in changed(HEAD + f"        s = add(multiply(s, s), {CUBE})\n    c[0] = s\n", {"n": 70, "m": 1})
    assert "range(64)" in new and "local_array(64, int32)" in new
    assert "ahead" not in changed(text, {"n": 31, "m": 1})
    in_chunks = text.replace("range(n)", "range(m, minimum(m + 32, n))")
    assert "local_array(32, int32)" in changed(in_chunks, {"n": 70, "m": 1})


FLOATS = ["int64", "int64", "float32*", "float32*", "int64", "int64"]
SUMS = {
    "a product with a name": ("        p = y[1] * {hash}\n        s = s * s + p\n", "p = y[1] * "),
    "a part of a sum": ("        s = s * s + y[1] * {hash}\n", "s * s + y[1] * ahead"),
    "a difference": ("        p = -({hash} * x[t])\n        s = s * s - p\n", " * x[t])"),
    "two factors": ("        s = {hash} * ({hash} + y[1]) + s * s\n", "] * ahead_3"),
    "in a branch": ("        p = y[1] * {hash}\n        if s > y[2]:\n            s = s + p\n", "p = y[1] * "),
}


@pytest.mark.parametrize("name", SUMS)
def test_products_that_are_added_stay(name: str) -> None:
    """A sum with a product is a multiply-add, which rounds once; the factors are computed ahead."""
    statements, kept = SUMS[name]
    value = "sqrt(x[t] * x[t] + sqrt(x[t] + abs(x[t] - y[0]))) * sin(x[t])"
    text = "def k(lo, hi, x, y, n, m):\n    s = y[0]\n    for t in range(n):\n"
    text += statements.format(hash=f"cos({value})") + "    y[0] = s\n"
    numbers = itertools.count()
    program = read(text, FLOATS, "k")
    body: Block = split_ahead(program.body, {"n": 70, "m": 1}, lambda stem: f"{stem}_{next(numbers)}")
    new = to_text(LoopProgram("k", program.parameters, body))
    rest = new[new.rindex("for t") :]
    assert "ahead" in new and "cos(" not in rest, new
    assert kept in rest, new


def test_a_loop_that_stays_one_takes_no_names() -> None:
    """Whether it is tried depends on its length; the text does not."""
    text = HEAD + "        r = add(a[t], b[t])\n"
    text += "        s = maximum(multiply(s, multiply(s, s)), multiply(r, multiply(r, add(s, multiply(r, s)))))\n"
    text += f"    for t in range(100):\n        s = add(multiply(s, int32(3)), {HASH})\n    c[0] = s\n"
    short, long = (changed(text, {"n": n, "m": 1}) for n in (31, 70))
    assert "ahead" in short
    assert short == long


def test_small_loops_are_written_out() -> None:
    """Elements of local arrays that wait for nothing are computed ahead, as variables are."""
    head = HEAD.replace("    for t", "    v = local_array(2, int32)\n    for t")
    hashed = HASH.replace("int32(5)", "int32(i)")
    text = f"{head}        for i in range(2):\n            v[i] = {hashed}\n"
    text += "        s = add(multiply(s, v[0]), v[1])\n    c[0] = s\n"
    new = changed(text, {"n": 70, "m": 1})
    assert "ahead" in new and "range(2)" not in new and "local_array(2" not in new
    for one, other in zip(outcome(text, 70, 1), outcome(new, 70, 1), strict=True):
        np.testing.assert_array_equal(one, other)
    at_a_place = text.replace("v[0]", "v[int64(bit_and(s, int32(1)))]")
    assert "local_array(2" in changed(at_a_place.replace("bit_and", "minimum"), {"n": 70, "m": 1})
    assert "range(8)" in changed(text.replace("range(2)", "range(8)").replace("array(2", "array(8"), {"n": 70, "m": 1})


def test_the_keys_of_a_sampler_are_computed_ahead() -> None:
    """A key is split, and each half makes random numbers: two words at a time, in vectors of iterations."""

    def f(key: Any, start: Any) -> Any:
        def step(x: Any, i: Any) -> Any:
            one, two = hloom.random.split(hloom.random.fold_in(key, i))
            new = x + 0.5 * hloom.random.normal(one, (2,))
            x = jnp.where(hloom.random.uniform(two) < jnp.exp(jnp.sum(x * x - new * new)), new, x)
            return x, x

        return lax.scan(step, start, jnp.arange(200))[1]

    key, start = hloom.random.key(3), jnp.ones(2)
    jitted = hloom.jit(f)
    (text,) = [t for t in map(str, jitted.lower(key, start).compile().kernels().values()) if "native_loop" in t]
    assert text.count(" = local_array(32, float32)") == 3 and "range(2)" not in text.partition("for begin")[2]
    want = []
    x = start
    for i in range(200):
        one, two = hloom.random.split(hloom.random.fold_in(key, i))
        new = x + 0.5 * hloom.random.normal(one, (2,))
        x = new if hloom.random.uniform(two) < jnp.exp(jnp.sum(x * x - new * new)) else x
        want.append(np.asarray(x))
    np.testing.assert_allclose(np.asarray(jitted(key, start)), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [31, 64, 100, 5_001])
def test_a_program(count: int) -> None:
    """Functions of the counter and of the input, beside a state: the end of the input is not passed."""

    def f(x: Any) -> Any:
        def step(state: Any, at: Any) -> Any:
            t, value = at
            state = jnp.where(state > 0, -0.5, 0.5) * state + jnp.floor(8 * jnp.sin(0.25 * t)) + jnp.abs(value - 3) * 2
            return state, state

        return lax.scan(step, jnp.float32(1), (jnp.arange(count), x))

    x = np.random.default_rng(3).integers(-9, 9, count).astype(np.float32)
    jitted = hloom.jit(f)
    state, want = np.float32(1), []
    for t in range(count):
        turn = np.floor(8 * np.sin(np.float32(0.25) * np.float32(t)))
        state = np.float32(-0.5 if state > 0 else 0.5) * state + turn + np.abs(x[t] - 3) * 2
        want.append(state)
    np.testing.assert_allclose(np.asarray(jitted(x)[1]), want, rtol=1e-5, atol=1e-4)
    (text,) = [t for t in map(str, jitted.lower(x).compile().kernels().values()) if "native_loop" in t]
    assert ("ahead0" in text) == (count > 31)
