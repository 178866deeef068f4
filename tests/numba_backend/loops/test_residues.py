"""Loops that test the remainder of their counter go period by period, and compute the same."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.loops.printer import to_text
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.residues import by_residues
from hloom.numba_backend.loops.statements import LoopProgram

import hloom
import hloom.numpy as jnp
from hloom import lax

TYPES = {"lo": "int64", "hi": "int64", "out": "int64*", "n": "int64", "k": "int64"}
LOOP = """def kernel(lo, hi, out, n, k):
    for i in range(lo, hi):
        at = i - 1
        if {test}:
            part = at // {period}
        else:
            part = -1
        out[i] = part + {rest}
"""


@pytest.mark.parametrize("period", ["2", "3", "7", "k"])
@pytest.mark.parametrize("test", ["at % {p} == 0", "at % {p} == 0 and at // {p} < n", "i % {p} == 0"])
@pytest.mark.parametrize("rest", ["0", "(i + 1) % {p}", "at % {p}", "(i + 2) // {p}", "i % {p} * 10"])
def test_same_stores(test: str, rest: str, period: str) -> None:
    """In the same order. Divisions of the counter plus another offset are no less right than that of the test."""
    text = LOOP.format(test=test.format(p=period), rest=rest.format(p=period), period=period)
    before = read(text, TYPES)
    names = itertools.count()
    body = by_residues(before.body, lambda name: f"{name}_{next(names)}")
    assert body is not before.body
    after = LoopProgram(before.name, before.parameters, body)
    for lo, hi, n, k in itertools.product((-3, 0, 1, 5), (-1, 0, 4, 23, 30), (0, 2, 9), (1, 2, 5)):
        assert stores(before, lo, hi, n, k) == stores(after, lo, hi, n, k), (lo, hi, n, k)


def stores(program: LoopProgram, *arguments: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []

    class Out:
        def __setitem__(self, index: int, value: int) -> None:
            found.append((index, value))

    scope = {"minimum": min, "maximum": max}
    exec(to_text(program), scope)
    scope["kernel"](*arguments[:2], Out(), *arguments[2:])  # type: ignore[operator]
    return found


def padded(x: np.ndarray, low: int, high: int, interior: int) -> np.ndarray:
    """Along the last dimension, with sevens."""
    last = x.shape[-1]
    size = low + high + (last + (last - 1) * interior if last else 0)
    whole = np.full((*x.shape[:-1], max(size, 0)), 7, x.dtype)
    for k in range(last):
        at = low + k * (interior + 1)
        if 0 <= at < size:
            whole[..., at] = x[..., k]
    return whole


def program(rows: int, size: int, low: int, high: int, interior: int) -> str:
    full = low + high + size + max(size - 1, 0) * interior
    return f"""HloModule m
ENTRY e {{
  x = f32[{rows},{size}] parameter(0)
  c = f32[] constant(7)
  ROOT r = f32[{rows},{max(full, 0)}] pad(x, c), padding=0_0x{low}_{high}_{interior}
}}"""


@pytest.mark.parametrize("interior", [1, 2, 3, 4, 6, 700])
@pytest.mark.parametrize("rows", [1, 3])
def test_no_remainder_is_left_in_a_period(interior: int, rows: int) -> None:
    text = program(rows, 300, 1, 2 * interior, interior)
    executable = NumbaCompiler().compile(parse(text))
    (kernel,) = executable.kernels().values()
    found = [part for part in kernel.split("for ") if part.startswith("period")]
    assert found
    assert not any("%" in part for part in found)
    x = np.random.default_rng(0).standard_normal((rows, 300)).astype(np.float32)
    np.testing.assert_array_equal(executable.execute([x])[0], padded(x, 1, 2 * interior, interior))


@pytest.mark.parametrize("seed", range(12))
def test_random_pads(seed: int) -> None:
    """Ends inside of a period, elements that are cut off, and arrays of few elements."""
    rng = random.Random(seed)
    for _ in range(6):
        interior = rng.choice([1, 1, 2, 3, 5, 17])
        size, rows = rng.choice([0, 1, 2, 3, 5, 33, 200]), rng.choice([1, 1, 2])
        low, high = rng.randrange(-4, 12), rng.randrange(-4, 12)
        if low + high + size + max(size - 1, 0) * interior < 0:
            continue
        text = program(rows, size, low, high, interior)
        x = np.arange(rows * size, dtype=np.float32).reshape(rows, size)
        found = np.asarray(hloom.run_hlo(text, x)[0])
        np.testing.assert_array_equal(found, padded(x, low, high, interior), err_msg=text)


PROGRAMS = {
    "pairs": lambda x: x[::2] * x[1::2],
    "thirds": lambda x: x[::3] * x[1::3] + x[2::3] ** 2,
    "diagonal": lambda x: jnp.diagonal(x[:3600].reshape(60, 60)) ** 2,
    "far": lambda x: x[5::129] ** 2,
    "in a loop": lambda x: lax.fori_loop(0, 3, lambda i, x: x + jnp.pad(x[::2] * x[1::2], (0, x.size // 2)), x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_strided_slices(name: str) -> None:
    x = np.random.default_rng(1).standard_normal(3606).astype(np.float32)
    gradient = hloom.grad(lambda x: jnp.sum(PROGRAMS[name](x)))
    with hloom.disable_jit():
        expected = gradient(x)
    np.testing.assert_allclose(hloom.jit(gradient)(x), expected, rtol=1e-5, atol=1e-5)


def test_threads_begin_within_a_period() -> None:
    x = np.random.default_rng(1).standard_normal(200_001).astype(np.float32)
    found = hloom.jit(lambda x: lax.pad(x, np.float32(7), [(2, 3, 2)]))(x)
    np.testing.assert_array_equal(found, padded(x, 2, 3, 2))
