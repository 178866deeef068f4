"""Integers of a program wrap around, wherever it runs: outside of jit, compiled, in the evaluator, in all widths, with
and without a sign. Nothing may take a sum for larger than its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.compiler import NumbaCompiler

import hloom
import hloom.numpy as jnp
from hloom import hlo, lax

TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
Program = Callable[[Any, Any], Any]


def _number(x: Any, value: int) -> Any:
    """A number of the type of x, modulo 2^n."""
    bits = 8 * x.dtype.itemsize
    value %= 1 << bits
    if x.dtype.kind == "i" and value >> (bits - 1):
        value -= 1 << bits
    return x.dtype.type(value)


def _end(x: Any) -> Any:
    return x.dtype.type(np.iinfo(x.dtype).max)


def _lowest(x: Any) -> Any:
    return x.dtype.type(np.iinfo(x.dtype).min)


ELEMENTWISE: dict[str, Program] = {
    "x + 1 > x": lambda x, y: x + 1 > x,
    "x - 1 < x": lambda x, y: x - 1 < x,
    "x + y < x": lambda x, y: x + y < x,
    "x + 1 <= y": lambda x, y: x + 1 <= y,
    "x + 5 < y + 5": lambda x, y: x + 5 < y + 5,
    "x - y < 0": lambda x, y: x - y < 0,
    "-x < -y": lambda x, y: -x < -y,
    "-x > 0": lambda x, y: -x > 0,
    "abs(x) >= 0": lambda x, y: abs(x) >= 0,
    "abs(x - y)": lambda x, y: abs(x - y),
    "x * x >= 0": lambda x, y: x * x >= 0,
    "x * 3 == y * 3": lambda x, y: x * 3 == y * 3,
    "x * 2 / 2": lambda x, y: lax.div(x * 2, _number(x, 2)),
    "x * 6 // 3": lambda x, y: x * 6 // 3,
    "(x << 1) >> 1": lambda x, y: (x << 1) >> 1,
    "x * y * x * y": lambda x, y: x * y * x * y,
    "a long sum": lambda x, y: x + y + x + y + x + y + x - y * 7,
    "x / -1": lambda x, y: lax.div(x, _number(x, -1)),
    "x % -1": lambda x, y: lax.rem(x, _number(x, -1)),
    "x / y": lambda x, y: lax.div(x, y),
    "x % y": lambda x, y: lax.rem(x, y),
    "x // y": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "x << y": lambda x, y: lax.shift_left(x, y),
    "x >> y, bits": lambda x, y: lax.shift_right_logical(x, y),
    "x >> y": lambda x, y: lax.shift_right_arithmetic(x, y),
    "x << -1": lambda x, y: lax.shift_left(x, _number(x, -1)),
    "x >> -1": lambda x, y: lax.shift_right_arithmetic(x, _number(x, -1)),
    "x ** y": lambda x, y: lax.pow(x, y) if x.dtype.kind == "u" else lax.integer_pow(x, 3) * y,
    "min(x, y) + 1": lambda x, y: jnp.minimum(x, y) + 1,
    "clamped": lambda x, y: jnp.clip(x + y, _number(x, 3), _end(x)),
    "positions": lambda x, y: jnp.arange(x.size, dtype=x.dtype).reshape(x.shape) * y + x > x,
    "no upper limit": lambda x, y: jnp.where(x <= _end(x), x + 1, y),
    "no lower limit": lambda x, y: jnp.where(x >= _lowest(x), x - 1, y),
    "as wide numbers": lambda x, y: (x + y).astype(np.int64) - (x * y).astype(np.uint64).astype(np.int64),
    "as narrow numbers": lambda x, y: (x + y).astype(np.int8) + (x * 3).astype(np.int8),
    "as floats": lambda x, y: (x + y).astype(np.float32),
}

REDUCTIONS: dict[str, Program] = {
    "sums of rows": lambda x, y: jnp.sum(x * y, axis=1, dtype=x.dtype),
    "sums of columns": lambda x, y: jnp.sum(x + y, axis=0, dtype=x.dtype),
    "products": lambda x, y: jnp.prod(x, axis=1, dtype=x.dtype),
    "running sums": lambda x, y: jnp.cumsum(x, axis=1, dtype=x.dtype) > x,
    "running products": lambda x, y: lax.cumprod(x, axis=0),
    "windows": lambda x, y: lax.reduce_window(x, x.dtype.type(0), lax.add, (3, 1), (1, 1), "SAME"),
    "dot": lambda x, y: lax.dot(x, y.T, preferred_element_type=x.dtype),
    "dot with a vector": lambda x, y: lax.dot(x, y[0], preferred_element_type=x.dtype),
    "convolution": lambda x, y: lax.conv(x[None, None], y[None, None, :3, :3], (1, 1), "SAME"),
    "scatter": lambda x, y: x.at[jnp.arange(x.shape[0]) % 2].add(y),
    "segments": lambda x, y: jnp.zeros(3, x.dtype).at[jnp.arange(x.size) % 3].add((x * y).ravel()),
}


def _count(x: Any, y: Any) -> Any:
    """A counter that passes the end of its type."""
    one = _number(x, 1)

    def step(state: Any) -> Any:
        n, i, greater = state
        return n + 1, i + one, greater + (i + one > i)

    start = (0, _end(x) - _number(x, 20), 0)
    return lax.while_loop(lambda state: (state[0] < 100) & (state[1] <= _end(x)), step, start)


def _until(x: Any, y: Any) -> Any:
    """A loop that a sum ends when it becomes smaller."""
    small = jnp.maximum(jnp.minimum(y[0, 0], _number(x, 7)), _number(x, 3))
    start = (_end(x) - _number(x, 50), 0)
    return lax.while_loop(lambda s: s[0] + small > s[0], lambda s: (s[0] + small, s[1] + 1), start)


def _near_the_end(x: Any, y: Any) -> Any:
    """A loop with constant bounds, the last of them the largest number."""
    return lax.fori_loop(_end(x) - _number(x, 9), _end(x), lambda i, a: a * 3 + i, _number(x, 1))


def _near_the_start(x: Any, y: Any) -> Any:
    return lax.fori_loop(_lowest(x), _lowest(x) + _number(x, 9), lambda i, a: a * 3 + i, _number(x, 1))


def _scan(x: Any, y: Any) -> Any:
    """A state that wraps, and indices made of wrapped numbers."""

    def step(carry: Any, row: Any) -> Any:
        total, at = carry
        total = total * 5 + row.sum(dtype=x.dtype)
        at = at + jnp.int32(2**30)
        picked = lax.dynamic_index_in_dim(y, at, keepdims=False)
        return (total, at), (total > row, picked + total)

    return lax.scan(step, (_number(x, 1), jnp.int32(5)), x)


LOOPS: dict[str, Program] = {
    "counting past the end": _count,
    "until a sum wraps": _until,
    "near the end": _near_the_end,
    "near the start": _near_the_start,
    "scan": _scan,
}
PROGRAMS = {**ELEMENTWISE, **REDUCTIONS, **LOOPS}


def operands(dtype: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """All pairs of the numbers at which sums wrap, as two matrices."""
    ends = np.iinfo(dtype)
    values = [0, 1, 2, 3, 7, ends.max, ends.max - 1, ends.max // 2, ends.max // 2 + 1, ends.max // 3, ends.bits - 1]
    values += [ends.bits, *([-1, -2, -7, ends.min, ends.min + 1, ends.min // 2] if ends.min else [100])]
    line = np.array(values, dtype)
    x, y = np.meshgrid(line, line, indexing="ij")
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


def _leaves(value: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(leaf) for leaf in hloom.tree.leaves(value)]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_ways_to_run_agree(name: str, dtype: str) -> None:
    with hloom.enable_x64(True):
        x, y = operands(dtype)
        program = PROGRAMS[name]
        module = hloom.make_hlo(program)(x, y)
        expected = hlo.evaluate(module, x, y)
        compiled = NumbaCompiler().compile(module).execute([x, y])
        eager = _leaves(program(jnp.asarray(x), jnp.asarray(y)))
        for way, found in (("compiled", compiled), ("eager", eager)):
            for k, (one, other) in enumerate(zip(found, expected, strict=True)):
                assert one.dtype == other.dtype, (way, k)
                np.testing.assert_array_equal(one, other, err_msg=f"{way}, result {k}")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_without_x64(dtype: str) -> None:
    """The programs in one, where 64-bit types are not to be had."""
    programs = [f for name, f in PROGRAMS.items() if name != "as wide numbers"]
    x, y = operands(dtype)
    module = hloom.make_hlo(lambda x, y: [f(x, y) for f in programs])(x, y)
    expected = hlo.evaluate(module, x, y)
    for one, other in zip(NumbaCompiler().compile(module).execute([x, y]), expected, strict=True):
        np.testing.assert_array_equal(one, other)


KNOWN: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "x + 1 > x": (lambda x: x + 1 > x, lambda x: x != np.iinfo(x.dtype).max),
    "x - 1 < x": (lambda x: x - 1 < x, lambda x: x != np.iinfo(x.dtype).min),
    "x * 2 / 2": (
        lambda x: lax.div(x * 2, _number(x, 2)),
        lambda x: np.trunc((x * x.dtype.type(2)) / 2).astype(x.dtype),
    ),
}


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", KNOWN)
def test_against_numpy(name: str, dtype: str) -> None:
    program, wanted = KNOWN[name]
    with hloom.enable_x64(True), np.errstate(over="ignore"):
        x = np.array([0, 1, -1, 5, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
        np.testing.assert_array_equal(hloom.jit(program)(x), wanted(x))


def test_an_index_that_wraps_on_its_way_is_in_range() -> None:
    """Code must not compute it in wider integers, where it would not wrap."""
    lowest = np.int32(-(2**31))

    def f(x: Any) -> Any:
        def outer(i: Any, total: Any) -> Any:
            row = i + lowest

            def inner(k: Any, total: Any) -> Any:
                column = k + lowest
                picked = lax.dynamic_index_in_dim(x, row + column, keepdims=False)
                return total * 3 + picked + (column > 0) + (row > 0)

            return lax.fori_loop(0, 8, inner, total)

        return lax.fori_loop(0, 8, outer, jnp.int32(0))

    total = 0
    for i in range(8):
        for k in range(8):
            total = (total * 3 + i + k) % 2**32
    assert int(hloom.jit(f)(np.arange(15, dtype=np.int32))) % 2**32 == total


@pytest.mark.parametrize(("lower", "upper"), [(-(2**62), 2**63 - 1), (0, 2**63 - 1), (-5, 2**31)])
def test_a_loop_that_nobody_runs_may_have_any_number_of_turns(lower: int, upper: int) -> None:
    def f(p: Any) -> Any:
        def run() -> Any:
            return lax.fori_loop(jnp.int64(lower), jnp.int64(upper), lambda i, a: a ^ i, jnp.int64(0))

        return lax.cond(p, run, lambda: jnp.int64(5))

    with hloom.enable_x64(True):
        assert hloom.jit(f)(False) == f(False) == 5


def test_a_scan_of_too_many_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="counted in int32"):
        lax.scan(lambda c, _: (c, None), 0, None, length=2**31)
