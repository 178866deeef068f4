"""Native loops: a loop with a cheap body is one kernel. Each program runs as one kernel, as rows of the program's
table, and on the evaluator."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import hlo, lax
from support.native_loops import compile_module, compiled
from support.signals import interrupt

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}


def program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, arguments
        return function

    return add


def _ramp(*shape: int) -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape)).reshape(shape) % 7 / 8).astype(np.float32)


@program(np.float32(1.5))
def affine(s):
    return lax.fori_loop(0, 100, lambda i, s: s * 0.5 + 0.25, s)


@program(np.int32(97))
def collatz(n):
    def step(c):
        n, k = c
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), k + 1

    return lax.while_loop(lambda c: c[0] != 1, step, (n, 0))


@program(np.float32(3))
def never(x):
    return lax.while_loop(lambda x: x > 10, lambda x: x * 2, x)


@program(np.float32(np.nan))
def nan_condition(x):
    return lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] + 1), (x, 0))


@program(_ramp(6))
def swapped(x):
    return lax.fori_loop(0, 7, lambda i, c: (c[1], c[0] + 1), (x, x * 2))


@program(np.float32(1), np.float32(2), np.float32(3))
def rotated(a, b, c):
    return lax.fori_loop(0, 5, lambda i, s: (s[1], s[2], s[0] * 2), (a, b, c))


@program(_ramp(100), _ramp(100))
def swapped_large(x, y):
    return lax.fori_loop(0, 5, lambda i, c: (c[1], c[0]), (x, y))


@program(_ramp(8), _ramp(8, 8))
def product(x, a):
    return lax.scan(lambda x, _: (jnp.tanh(a @ x), x), x, None, length=9)


@program(_ramp(5, 4), _ramp(4, 3), _ramp(3, 5))
def three_products(x, a, b):
    return lax.fori_loop(0, 4, lambda i, x: jnp.tanh((x @ a) @ b @ x), x)


@program(_ramp(6, 9))
def columns(x):
    return lax.fori_loop(2, 9, lambda j, y: y.at[:, j].set(0.5 * y[:, j - 1] + 0.25 * y[:, j - 2] + x[:, j]), x * 0)


@program(_ramp(9, 6))
def rows(x):
    return lax.fori_loop(2, 9, lambda j, y: y.at[j].set(0.5 * y[j - 1] + 0.25 * y[j - 2] + x[j]), x * 0)


@program(_ramp(7, 7))
def elements(u):
    def row(i, u):
        def cell(j, u):
            return u.at[i, j].set(0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]))

        return lax.fori_loop(1, 6, cell, u)

    return lax.fori_loop(0, 3, lambda k, u: lax.fori_loop(1, 6, row, u), u)


@program(_ramp(20))
def out_of_range(x):
    def step(i, x):
        return lax.dynamic_update_slice(x, lax.dynamic_slice(x, (i * 5 - 10,), (3,)) + 1, (i * 7 - 15,))

    return lax.fori_loop(0, 6, step, x)


@program(_ramp(10), np.int32(3))
def triangular(x, n):
    def outer(i, x):
        return lax.fori_loop(0, i, lambda j, x: x.at[i].add(x[j] * 0.5), x)

    return lax.fori_loop(0, n, outer, x)


@program(_ramp(6), np.int32(2))
def branches(x, k):
    def step(i, x):
        x = lax.cond(i % 2 == 0, lambda x: x + 1, lambda x: x * 0.5, x)
        return lax.switch((i + k) % 4, [lambda x: x, lambda x: x.at[i % 6].set(9), lambda x: x[::-1]], x)

    return lax.fori_loop(0, 9, step, x)


@program(_ramp(70))
def sums(x):
    def step(c, i):
        x, total = c
        return (x * 0.5 + x.mean(), total + x.max()), (x.sum(), x.argmax())

    return lax.scan(step, (x, jnp.float32(0)), jnp.arange(6))


@program(_ramp(0, 3), _ramp(1))
def empty(x, y):
    return lax.fori_loop(0, 4, lambda i, c: (c[0] * 2, c[1] + c[0].sum() + 1), (x, y))


@program(_ramp(3))
def no_trips(x):
    return lax.scan(lambda x, y: (x + y, x), x, jnp.zeros((0, 3)))


@program(np.array([True, False, True]), np.int8(3), np.uint32(7), _ramp(4).astype(np.float16), np.complex64(1 + 2j))
def types(p, a, b, h, z):
    def step(i, c):
        p, a, b, h, z = c
        return ~p, a * 3, (b << 3) ^ b, h * 1.5 + i, z * z.conj() / 2

    return lax.fori_loop(0, 5, step, (p, a, b, h, z))


@program(_ramp(5))
def gradient(x):
    def loss(x):
        y, ys = lax.scan(lambda c, t: (jnp.tanh(c * 1.1 + t), c.sum()), x, jnp.arange(8) / 7)
        return y.sum() + (ys**2).sum()

    return hloom.grad(loss)(x)


@program(np.uint32(7))
def random_walk(seed):
    def step(c, _):
        key, x = c
        key, own = hloom.random.split(key)
        return (key, x + hloom.random.normal(own, (3,))), x

    return lax.scan(step, (hloom.random.wrap_key_data(jnp.stack([seed, seed])), jnp.zeros(3)), None, length=5)[1]


@program(_ramp(4, 4))
def mapped(x):
    return lax.map(lambda row: lax.while_loop(lambda r: r.sum() < 20, lambda r: r * 1.5 + 0.1, row), x)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_three_ways(name: str) -> None:
    function, arguments = PROGRAMS[name]
    native, rows_, reference = (compiled(function, arguments, way) for way in ("native", "rows", "evaluator"))
    assert any("native_loop" in text for text in native.kernels.values()) or name == "no_trips"
    assert not any("native_loop" in text for text in rows_.kernels.values())
    results = native(), rows_(), reference()
    for one, two, three in zip(*results, strict=True):
        if "product" in name:  # sums in another order than BLAS's
            np.testing.assert_allclose(one, two, rtol=1e-6)
        else:
            np.testing.assert_array_equal(one, two)
        if np.issubdtype(three.dtype, np.inexact):
            np.testing.assert_allclose(one, three, rtol=2e-3 if three.dtype == np.float16 else 2e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(one, three)


CONSTANT = """
HloModule array_constant

body {
  s = (s32[], f32[4], f32[100]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  y = f32[100] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  table = f32[4] constant({1, 2, 0.5, 0.25})
  z = f32[4] multiply(x, table)
  zeros = f32[1] constant({7})
  w = f32[100] dynamic-update-slice(y, zeros, i)
  ROOT t = (s32[], f32[4], f32[100]) tuple(next, z, w)
}

condition {
  s2 = (s32[], f32[4], f32[100]) parameter(0)
  i2 = s32[] get-tuple-element(s2), index=0
  limit = s32[] constant(5)
  ROOT less = pred[] compare(i2, limit), direction=LT
}

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[100] parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[4], f32[100]) tuple(zero, x, y)
  ROOT loop = (s32[], f32[4], f32[100]) while(init), condition=condition, body=body
}
"""


def test_array_constants() -> None:
    module = hlo.parse(CONSTANT)
    arguments = [_ramp(4), _ramp(100)]
    executable = compile_module(module, "native")
    assert any("table0" in text for text in executable.kernels().values())
    for got, expected in zip(executable.execute(arguments), hlo.evaluate(module, *arguments), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_new_sizes_have_the_same_text() -> None:
    """Sizes and trip counts are arguments of the kernel."""
    texts = set()
    for size, steps in ((300, 270), (90, 80), (1000, 930)):

        def step(i, c):
            x, s = c
            return x.at[i].set(s), s * 0.5 + x[i]

        native = compiled(lambda x, n=steps, f=step: lax.fori_loop(0, n, f, (x, 1.0)), (_ramp(size),), "native")
        texts.add(next(text.split("\n", 1)[1] for text in native.kernels.values() if "native_loop" in text))
    assert len(texts) == 1


def _long_loop(steps: int, constant: float) -> Callable[[Any], Any]:
    """A loop of more than 80 instructions."""

    def step(x, _):
        for k in range(20):
            x = x + 0.01 * (k + 2) * jnp.tanh(jnp.roll(x[::-1], 1) - constant * x)
        return x, x[0]

    return lambda x: lax.scan(step, x, None, length=steps)


def test_small_sizes_of_long_loops_have_the_same_text() -> None:
    """A long loop takes long to compile: only very small sizes, and no numbers of steps, are in its text."""
    texts = set()
    for size, steps, constant in ((30, 20, 0.9), (24, 100_000, 0.7), (64, 50, 0.6), (900, 30, 0.8)):
        module = hloom.jit(_long_loop(steps, constant)).lower(_ramp(2, size)).module
        kernels = compile_module(module, "native").kernels()
        texts.add(next(text.split("\n", 1)[1] for text in kernels.values() if "native_loop" in text))
    assert len(texts) == 1


def test_long_loops_of_small_arrays_have_right_results() -> None:
    for size in (1, 2, 16, 17, 33):
        function = _long_loop(3, 0.9)
        native, evaluated = (compiled(function, (_ramp(2, size),), way)() for way in ("native", "evaluator"))
        for got, expected in zip(native, evaluated, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_state_is_in_registers() -> None:
    native = compiled(*PROGRAMS["affine"], "native")
    (text,) = native.kernels.values()
    assert "for step0 in range(n0):" in text
    assert re.search(r"^ {8}s0 = s0 \* c\d \+ c\d$", text, re.MULTILINE)


def _endless() -> Any:
    return hloom.jit(lambda x: lax.while_loop(lambda c: c[0] >= 0, lambda c: (c[0] * 0.5 + 1, c[1] + 1), (x, 0)))


def _nested() -> Any:
    def inner(i, x):
        return lax.cond(x > 0, lambda x: lax.fori_loop(0, 10**9, lambda j, x: x * 0.5 + 1, x), lambda x: x, x)

    return hloom.jit(lambda x: lax.fori_loop(0, 10**9, inner, x))


def _counted() -> Any:
    return hloom.jit(lambda x: lax.fori_loop(0, 2_000_000_000, lambda i, x: x * 0.999 + 1 / (x + 1), x))


@pytest.mark.parametrize("make", [_endless, _nested, _counted])
def test_interrupt(make: Callable[[], Any]) -> None:
    """Ctrl-C ends a native loop, and the next call is right."""
    x = jnp.float32(1)
    run = make().lower(x).compile()  # now: Python ignores an interrupt in a weak reference's callback
    assert any("interrupted(watch)" in text for text in run.kernels().values())
    timer = threading.Timer(0.3, interrupt)
    started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(x)
    assert time.monotonic() - started < 20
    timer.join()
    assert affine(jnp.float32(1.5)) == hloom.jit(affine)(jnp.float32(1.5))


def test_other_threads_run_beside_a_loop_of_unknown_length() -> None:
    """However little one iteration takes. Nothing but the loop itself makes its thread give up the GIL here."""
    run = hloom.jit(lambda n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5 + 1), (0, 0.0)))
    run(1)
    events = []
    thread = threading.Thread(target=lambda: events.append(run(600_000_000)))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread.start()
        events.append("here")
    finally:
        sys.setswitchinterval(before)
    thread.join()
    assert events == ["here", (600_000_000, 2.0)]


def test_the_best_element_in_a_loop() -> None:
    """A result of topk with one element: its kernel reads the result so far."""

    def least(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, c: c.at[lax.top_k(-c, 1)[1][0]].add(1.0), x)

    np.testing.assert_array_equal(hloom.jit(least)(jnp.array([3.0, 1.0, 2.0])), [4, 4, 3])

    def summed(x: Any) -> Any:
        return lax.fori_loop(0, 5, lambda i, c: (c[0] + lax.top_k(-c[1], 1)[0][0], c[1] * 1.5), (0.0, x))[0]

    assert hloom.jit(summed)(jnp.array([3.0, 1.0, 2.0])) == -13.1875


@pytest.mark.parametrize("size", [1 << 10, 1 << 19])
def test_a_scatter_costs_its_updates_whatever_the_size_of_the_array(size: int) -> None:
    """An array in the state is updated in place, so the loop is one kernel for arrays of any size."""

    def f(a: Any, values: Any) -> Any:
        return lax.fori_loop(1, size - 1, lambda t, a: a.at[jnp.array([t, t + 1])].add(values[t]), a)

    a, values = np.zeros(size, np.float32), np.arange(size, dtype=np.float32) % 7
    compiled = hloom.jit(f).lower(a, values).compile()
    assert {name.split()[0] for name in compiled.kernels()} == {"loop_fusion"}
    expected = a.copy()
    expected[1:-1] += values[1:-1]
    expected[2:] += values[1:-1]
    np.testing.assert_array_equal(compiled(a, values), expected)
