"""Loops at their limits: no step and one, nothing in the state, NaN, indices out of range, and what ends them early.

Each program of the table runs outside of jit, under jit, and on the evaluator, with inputs in memory of its own, and
must give the numbers that stand here. Where JAX is installed, it must give them too.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode
from hloom.hlo.ops.custom_call import CustomCallAttributes
from hloom.tracer.core import bind

import hloom
import hloom.numpy
from hloom.errors import CustomCallError, DeletedArrayError
from support.interrupted import START
from support.runtime_kernels import python

NAN, INF = float("nan"), float("inf")
BACKENDS = ("numba", "evaluator")
ZERO, ONE, TWO = (np.int32(n) for n in range(3))
V = np.arange(1, 6, dtype=np.float32)
A = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    before = hloom.config.hloom_backend
    hloom.config.update("hloom_backend", request.param)
    yield request.param
    hloom.config.update("hloom_backend", before)


# ---- results, as functions of (jnp, lax, arguments...)


def count(jnp: Any, lax: Any, low: Any, high: Any) -> Any:
    return lax.fori_loop(low, high, lambda i, s: (s[0] + 1, s[1] + i), (0, 0))


def while_above(jnp: Any, lax: Any, x: Any, limit: Any) -> Any:
    """Halve until it is below."""
    return lax.while_loop(lambda s: s[0] > limit, lambda s: (s[0] * 0.5, s[1] + 1), (x, 0))


def until_nan(jnp: Any, lax: Any, x: Any) -> Any:
    """inf - inf in the step after the overflow."""
    return lax.while_loop(lambda s: (s[0] > 0) & (s[2] < 9), lambda s: (s[0] * s[1] - s[1], s[1] * s[1], s[2] + 1),
                          (x, x, 0))  # fmt: skip


def equal_to_itself(jnp: Any, lax: Any, x: Any, n: Any) -> Any:
    def step(s: Any) -> Any:
        return jnp.where(s[1] >= n, jnp.nan, s[0] + 1).astype(jnp.float32), s[1] + 1

    return lax.while_loop(lambda s: s[0] == s[0], step, (x, 0))


def pairs_of(jnp: Any, lax: Any, x: Any, y: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, s: (s[1], s[0]), (x, y))


def rotated(jnp: Any, lax: Any, x: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, s: (s[1], s[2], s[0] + 10), (x, x, x))


def set_from(jnp: Any, lax: Any, x: Any, low: Any, high: Any) -> Any:
    """Indices from below 0, which count from the end, to beyond it, where they are dropped."""
    return lax.fori_loop(low, high, lambda i, x: x.at[i].set(i), x)


def add_to_rows(jnp: Any, lax: Any, a: Any, low: Any, high: Any) -> Any:
    return lax.fori_loop(low, high, lambda i, a: a.at[i].add(a[i - 1]), a)


def columns(jnp: Any, lax: Any, a: Any) -> Any:
    return lax.fori_loop(2, a.shape[1], lambda j, a: a.at[:, j].set(2 * a[:, j - 1] - a[:, j - 2]), a)


def slices(jnp: Any, lax: Any, x: Any, starts: Any) -> Any:
    """Clamped reads and writes: a write of two elements at a start, with elements read at the next start."""

    def step(x: Any, start: Any) -> Any:
        piece = lax.dynamic_slice(x, (start + 1,), (2,))
        return lax.dynamic_update_slice(x, piece * 10, (start,)), piece

    return lax.scan(step, x, starts)


def old_and_new(jnp: Any, lax: Any, x: Any) -> Any:
    """The array before the update is needed after it."""

    def step(i: Any, s: Any) -> Any:
        x, total = s
        new = x.at[i].set(-x[i])
        return new, total + x * new[::-1]

    return lax.fori_loop(0, 3, step, (x, jnp.zeros_like(x)))


def swapped_elements(jnp: Any, lax: Any, x: Any) -> Any:
    """Two updates, each with what the other one overwrites."""

    def step(i: Any, x: Any) -> Any:
        j = x.shape[0] - 1 - i
        return x.at[i].set(x[j]).at[j].set(x[i])

    return lax.fori_loop(0, x.shape[0] // 2, step, x)


def triangle(jnp: Any, lax: Any, a: Any) -> Any:
    """An inner loop of 0, 1, 2, ... steps."""

    def row(i: Any, a: Any) -> Any:
        return lax.fori_loop(0, i, lambda j, a: a.at[i, j].set(a[j, i] + 100), a)

    return lax.fori_loop(0, a.shape[0], row, a)


def branches(jnp: Any, lax: Any, indices: Any) -> Any:
    """An index out of range takes the nearest branch."""
    functions = [lambda x: x + 1, lambda x: x * 2, lambda x: -x]
    return lax.scan(lambda x, k: (lax.switch(k, functions, x), x), jnp.float32(3), indices)


def loop_in_branch(jnp: Any, lax: Any, x: Any, n: Any) -> Any:
    def inside(x: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, y: y + x, x * 0)

    return lax.fori_loop(0, 4, lambda i, x: lax.cond(x[0] < 3, inside, lambda x: x - 2, x), x)


def carried_pred(jnp: Any, lax: Any, x: Any) -> Any:
    def step(s: Any) -> Any:
        _, i, x = s
        return (x[i] < 4) & (i < 100), i + 1, x.at[i].set(0)

    return lax.while_loop(lambda s: s[0], step, (jnp.bool_(True), 0, x))


def small_counter(jnp: Any, lax: Any, start: Any, end: Any) -> Any:
    """A counter of few bits, which may pass its largest number."""
    return lax.while_loop(lambda s: s[0] != end, lambda s: (s[0] + s[0].dtype.type(1), s[1] + 1), (start, 0))


def scan_of_nothing(jnp: Any, lax: Any, xs: Any) -> Any:
    return lax.scan(lambda c, x: (c + jnp.sum(x), (x * 2, c)), jnp.float32(1), xs)


def empty_state(jnp: Any, lax: Any, x: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, s: (s[0] + 1, s[1][::-1], s[2] + jnp.sum(s[0])), (x, x, jnp.float32(2)))


def constants(jnp: Any, lax: Any, n: Any) -> Any:
    """A state of equal constants; one element never changes."""
    one = jnp.ones(2, jnp.int32)
    return lax.fori_loop(0, n, lambda i, s: (s[0] + s[2], s[1] * 2, s[2]), (one, one, one))


def quarter_steps(jnp: Any, lax: Any, end: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < end, lambda s: (s[0] + 0.25, s[1] + 1), (jnp.float32(0), 0))


def same_counter_twice(jnp: Any, lax: Any, n: Any) -> Any:
    return lax.while_loop(lambda s: (s[0] < n) & (s[1] > -3), lambda s: (s[0] + 1, s[1] - 1, s[2] + s[0] * s[1]),
                          (0, 0, 0))  # fmt: skip


F32 = np.float32
I8, U8, I32 = np.int8, np.uint8, np.int32
EDGES: list[tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = [
    (count, (0, 0), (0, 0)), (count, (0, 1), (1, 0)), (count, (3, 4), (1, 3)), (count, (5, 2), (0, 0)),
    (count, (-2, 2), (4, -2)), (count, (ZERO, ZERO), (0, 0)), (count, (ZERO, ONE), (1, 0)), (count, (TWO, ONE), (0, 0)),
    (count, (I32(2**31 - 3), I32(2**31 - 1)), (2, -5)), (count, (I32(-(2**31)), I32(-(2**31) + 2)), (2, 1)),
    (while_above, (F32(8), F32(1)), (1, 3)), (while_above, (F32(1), F32(1)), (1, 0)),
    (while_above, (F32(NAN), F32(1)), (NAN, 0)), (while_above, (F32(8), F32(NAN)), (8, 0)),
    (while_above, (F32(-INF), F32(-INF)), (-INF, 0)), (while_above, (F32(1), F32(1e-3)), (2.0**-10, 10)),
    (until_nan, (F32(2.0**70),), (NAN, INF, 2)), (until_nan, (F32(2.0**40),), (NAN, INF, 3)),
    (until_nan, (F32(NAN),), (NAN, NAN, 0)), (until_nan, (F32(1),), (0, 1, 1)),
    (equal_to_itself, (F32(NAN), ONE), (NAN, 0)), (equal_to_itself, (F32(1), ZERO), (NAN, 1)),
    (equal_to_itself, (F32(1), TWO), (NAN, 3)),
    *((pairs_of, (V, V + 5, I32(n)), (V + 5, V) if n % 2 else (V, V + 5)) for n in (0, 1, 2, 3)),
    (rotated, (F32(1), ZERO), (1, 1, 1)), (rotated, (F32(1), ONE), (1, 1, 11)),
    (rotated, (F32(1), I32(4)), (11, 11, 21)),
    (set_from, (V, -1, 7), ([0, 1, 2, 3, 4],)), (set_from, (V, I32(-8), I32(-3)), ([-5, -4, 3, 4, 5],)),
    (set_from, (V, I32(4), I32(99)), ([1, 2, 3, 4, 4],)), (set_from, (V[:1], I32(-1), I32(2)), ([0],)),
    (add_to_rows, (A[:, :2], 1, 3), ([[0, 1], [4, 6], [12, 15]],)),
    (add_to_rows, (A[:, :2], I32(0), I32(5)), ([[8, 10], [12, 15], [20, 24]],)),
    (add_to_rows, (A[:1, :2], I32(0), I32(2)), ([[0, 2]],)),
    (columns, (A[:, :1],), (A[:, :1],)), (columns, (A * A,), ([[0, 1, 2, 3], [16, 25, 34, 43], [64, 81, 98, 115]],)),
    (slices, (V, I32([0, -7, 3])), ([200, 300, 3, 40, 50], [[2, 3], [20, 30], [4, 5]])),
    (old_and_new, (V[:3],), ([-1, -2, -3], [3, 4, -9])),
    (swapped_elements, (V,), ([5, 4, 3, 2, 1],)), (swapped_elements, (V[:1],), ([1],)),
    (triangle, (A[:, :3],), ([[0, 1, 2], [101, 5, 6], [102, 106, 10]],)), (triangle, (A[:1, :1],), ([[0]],)),
    (branches, (I32([0, 1, 2, 9, -4]),), (9, [3, 4, 8, -8, 8])), (branches, (I32([]),), (3, [])),
    (loop_in_branch, (V[:2], I32(2)), ([4, 12],)), (loop_in_branch, (V[:2], ZERO), ([0, 0],)),
    (carried_pred, (V,), (False, 4, [0, 0, 0, 0, 5])), (carried_pred, (V[4:],), (False, 1, [0])),
    (small_counter, (I8(120), I8(-126)), (-126, 10)), (small_counter, (U8(250), U8(3)), (3, 9)),
    (small_counter, (U8(3), U8(3)), (3, 0)),
    (scan_of_nothing, (A[:0],), (1, np.zeros((0, 4)), [])), (scan_of_nothing, (A[:, :0],), (1, A[:, :0], [1, 1, 1])),
    (scan_of_nothing, (A[:1, :1],), (1, [[0]], [1])),
    (empty_state, (V[:0], I32(3)), ([], [], 2)), (empty_state, (A[:0], ONE), (A[:0], A[:0], 2)),
    (empty_state, (V[:1], I32(3)), ([4], [1], 8)), (empty_state, (V[:1], ZERO), ([1], [1], 2)),
    (constants, (ZERO,), ([1, 1], [1, 1], [1, 1])), (constants, (I32(3),), ([4, 4], [8, 8], [1, 1])),
    (quarter_steps, (F32(1),), (1, 4)), (quarter_steps, (F32(0.3),), (0.5, 2)), (quarter_steps, (F32(NAN),), (0, 0)),
    (same_counter_twice, (I32(9),), (3, -3, -5)), (same_counter_twice, (ONE,), (1, -1, 0)),
]  # fmt: skip


def checked(results: Any, expected: tuple[Any, ...]) -> None:
    leaves = [np.asarray(r) for r in hloom.tree.leaves(results)]
    assert len(leaves) == len(expected)
    for got, want in zip(leaves, expected, strict=True):
        np.testing.assert_array_equal(got, np.asarray(want, got.dtype))


def _row_id(row: Any) -> str | None:
    return row.__name__ if callable(row) else None


@pytest.mark.one_in(2)
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
@pytest.mark.parametrize(("function", "arguments", "expected"), EDGES, ids=_row_id)
def test_edges(
    function: Callable[..., Any], arguments: tuple[Any, ...], expected: tuple[Any, ...], backend: str
) -> None:
    def program(*arguments: Any) -> Any:
        return function(hloom.numpy, hloom.lax, *arguments)

    before = [np.array(a) for a in arguments]
    checked(hloom.jit(program)(*arguments), expected)
    checked(program(*map(hloom.numpy.asarray, arguments)), expected)
    for kept, argument in zip(before, arguments, strict=True):
        np.testing.assert_array_equal(kept, argument)


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs JAX")
def test_edges_in_jax() -> None:
    import jax
    import jax.numpy

    for function, arguments, expected in EDGES:
        checked(jax.tree.leaves(function(jax.numpy, jax.lax, *arguments)), expected)


# ---- what ends a loop early


@pytest.fixture
def raises_at() -> Iterator[Callable[[Any, Any], Any]]:
    """`raises_at(x, i)`: x, but an error where i is 3."""

    def target(x: Any, i: Any) -> Any:
        if i == 3:
            raise ZeroDivisionError("on purpose")
        return x

    def call(x: Any, i: Any) -> Any:
        attributes = CustomCallAttributes("raises_at", has_side_effect=True)
        return bind(Opcode.CUSTOM_CALL, [x, i], attributes, shape=x.aval.hlo)

    hloom.register_custom_call("raises_at", target)
    yield call
    hloom.unregister_custom_call("raises_at")


RAISING: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a loop": lambda call, x, n: hloom.lax.fori_loop(0, n, lambda i, x: call(x + 1, i), x),
    "a loop in a loop": lambda call, x, n: hloom.lax.fori_loop(
        0, 2, lambda k, x: hloom.lax.fori_loop(0, n, lambda i, x: call(x + 1, i), x), x
    ),
    "a branch": lambda call, x, n: hloom.lax.fori_loop(
        0, n, lambda i, x: hloom.lax.cond(i > 2, lambda x: call(x + 1, i), lambda x: x + 1, x), x
    ),
    "a condition": lambda call, x, n: hloom.lax.while_loop(
        lambda s: call(s[0], s[1])[0] < n, lambda s: (s[0] + 1, s[1] + 1), (x, 0)
    )[0],
}


@pytest.mark.parametrize("where", RAISING)
@pytest.mark.parametrize("donated", [False, True])
def test_an_exception_in_a_loop(where: str, donated: bool, raises_at: Any, backend: str) -> None:
    """The error names what raised; the next call is right."""
    f = hloom.jit(lambda x, n: RAISING[where](raises_at, x, n), donate_argnums=(0,) if donated else ())
    expected = 4 if where == "a loop in a loop" else 2
    for _ in range(3):
        np.testing.assert_array_equal(f(hloom.numpy.zeros(4), 2), [expected] * 4)
        x = hloom.numpy.zeros(4)
        with pytest.raises(CustomCallError, match="'raises_at' raised ZeroDivisionError: on purpose") as caught:
            f(x, 9)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert x.is_deleted() is donated
    np.testing.assert_array_equal(f(hloom.numpy.ones(4), 0), [1] * 4)


INTERRUPTED = """
import json
for name, (x, body) in json.loads(sys.argv[1]).items():
    x, f = eval(x), hloom.jit(eval(body))
    expected = np.asarray(f(x, 3))
    for delay in (0.1, 0.23):
        late = None
        started = time.monotonic()
        try:
            after(delay, interrupt)
            f(x, 2_000_000_000)
        except KeyboardInterrupt:
            late = time.monotonic() - started - delay
        assert late is not None and late < 20, (name, late)
        np.testing.assert_array_equal(f(x, 3), expected)
print("done")
"""
LONG = {
    "a scalar": ("jnp.float32(1)", "lambda x, n: lax.fori_loop(0, n, lambda i, x: x * 0.5 + 1, x)"),
    "a row": ("jnp.ones((4, 4))", "lambda x, n: lax.fori_loop(0, n, lambda i, x: x.at[i % 4].set(x[0] * 0.5), x)"),
    "nested": (
        "jnp.float32(1)",
        "lambda x, n: lax.fori_loop(0, n, lambda i, x: lax.fori_loop(0, 3, lambda j, x: x * 0.5 + 1, x), x)",
    ),
    "the inner one": (
        "jnp.float32(1)",
        "lambda x, n: lax.fori_loop(0, 3, lambda i, x: lax.fori_loop(0, n, lambda j, x: x * 0.5 + 1, x), x)",
    ),
    "in a branch": (
        "jnp.ones(3)",
        "lambda x, n: lax.cond(n > 2, lambda x: lax.fori_loop(0, n, lambda i, x: jnp.cos(x), x), jnp.sin, x)",
    ),
    "with branches": (
        "jnp.ones(3)",
        "lambda x, n: lax.fori_loop(0, n, lambda i, x: lax.switch(i % 3, [jnp.cos, jnp.sin, lambda x: -x], x), x)",
    ),
    "a product": ("jnp.eye(3)", "lambda x, n: lax.fori_loop(0, n, lambda i, x: x @ x, x)"),
    "pairs": ("jnp.ones(2)", "lambda x, n: lax.fori_loop(0, n, lambda i, s: (s[1], s[0]), (x, x + 1))[0]"),
}


def test_an_interrupt_ends_a_long_loop() -> None:
    assert python(START + INTERRUPTED, json.dumps(LONG)).split() == ["done"]


LIMITED = """
import resource
MIB = 1 << 20

def step(i, s):
    x, total = s
    return x * 0.5 + jnp.roll(x, 1), total + jnp.sum(x)

f = hloom.jit(lambda x, n: lax.fori_loop(0, n, step, (x, jnp.float32(0))))
small, large = jnp.ones(1000), jnp.ones(64 * MIB // 4)
expected = [np.asarray(r) for r in f(small, 5)]
f(large, 1)  # what runs it has its memory; then all that is unused is given back
from hloom.numba_backend.runtime import memory
memory.release_unused()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 40 * MIB, -1))
try:
    f(large, 5)
    print("there was enough")
except MemoryError as error:
    print("refused")
    assert "bytes" in str(error), error
for got, want in zip(f(small, 5), expected, strict=True):
    np.testing.assert_array_equal(got, want)
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
x, total = f(large, 2)
assert x.shape == large.shape and float(x[7]) == 2.25, x[7]
print("done")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="RLIMIT_AS and /proc are Linux's")
def test_a_memory_limit() -> None:
    assert python(START + LIMITED).split() == ["refused", "done"]


# ---- one program, several callers


def test_several_threads_run_one_loop() -> None:
    """Each with its own numbers, all at the same time."""

    def step(i: Any, s: Any) -> Any:
        a, x = s
        return a.at[:, i % 4].set(a[:, (i + 3) % 4] * 0.5 + x), x + 0.25

    f = hloom.jit(lambda a, x, n: hloom.lax.fori_loop(0, n, step, (a, x)))
    starts = [np.full((5, 4), k, np.float32) for k in range(8)]
    expected = [[np.asarray(r) for r in f(a, np.float32(k), 500 + k)] for k, a in enumerate(starts)]
    barrier = threading.Barrier(len(starts))

    def call(k: int) -> None:
        barrier.wait()
        for _ in range(20):
            for got, want in zip(f(starts[k], np.float32(k), 500 + k), expected[k], strict=True):
                np.testing.assert_array_equal(got, want)

    with ThreadPoolExecutor(len(starts)) as pool:
        for done in [pool.submit(call, k) for k in range(len(starts))]:
            done.result()


@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_donated_state(n: int, backend: str) -> None:
    f = hloom.jit(lambda a, n: hloom.lax.fori_loop(0, n, lambda i, a: a.at[i % 3].set(a[(i + 2) % 3] + 1), a),
                  donate_argnums=0)  # fmt: skip
    kept = A.copy()
    expected = A.copy()
    for i in range(n):
        expected[i % 3] = expected[(i + 2) % 3] + 1
    for _ in range(2):
        a = hloom.numpy.array(kept)
        np.testing.assert_array_equal(f(a, n), expected)
        with pytest.raises(DeletedArrayError, match="Array has been deleted"):
            f(a, n)
    np.testing.assert_array_equal(A, kept)


DIGESTS = """
import hashlib, random, warnings
sys.path.insert(0, sys.argv[1])
from hloom.numba_backend.compiler import NumbaCompiler
from support.random_loops import loop_arguments, loop_module

digest = hashlib.sha256()
for seed in range(8):
    module = loop_module(random.Random(seed))
    arguments = loop_arguments(module, seed)
    executable = NumbaCompiler().compile(module)
    first, second = ([np.asarray(r).tobytes() for r in executable.execute(arguments)] for _ in range(2))
    assert first == second, seed
    digest.update(b"".join(first))
f = hloom.jit(lambda x, n: lax.fori_loop(0, n, lambda i, s: (jnp.sin(s[0]) + s[1], jnp.sum(s[0]) * 1e-5), (x, 0.0)))
first, second = ([np.asarray(r).tobytes() for r in f(np.linspace(0, 1, 100_000, dtype="f4"), 5)] for _ in range(2))
assert first == second
digest.update(b"".join(first))
print(digest.hexdigest())
"""


def test_the_same_bits_each_time() -> None:
    """In two runs of a program, in two processes, on one thread and on two."""
    tests = str(Path(__file__).parents[2])
    found = {python(START + DIGESTS, tests, environment={"HLOOM_NUM_THREADS": n}) for n in ("1", "2")}
    assert len(found) == 1
