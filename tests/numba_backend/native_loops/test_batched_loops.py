"""Loops over a batch of problems run part by part: each program gives bit for bit what one loop over all gives, on
guarded memory, with any blocks and on any number of threads. Operations that couple the members are found."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from hloom.hlo.analyses.batch import Batch, NotABatch, batch_of
from hloom.hlo.ir import HloInstruction, HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.fuse.outline_loops import OutlineLoops
from hloom.hlo.passes.manager import Pipeline
from hloom.numba_backend import pipeline as pipelines
from hloom.numba_backend.native_loops import batch as parts
from hloom.numba_backend.native_loops import cost
from hloom.numba_backend.runtime.threads import get_num_threads, set_num_threads

import hloom
import hloom.numpy as jnp
from hloom import hlo, lax
from support.guarded import GuardedProgram, small_pieces
from support.native_loops import _leaves, compile_module
from support.signals import interrupt

PROGRAMS: dict[str, tuple[Callable[..., Any] | str, tuple[Any, ...]]] = {}
"""Functions, or texts of modules."""
COUPLED: dict[str, tuple[Callable[..., Any] | str, tuple[Any, ...], str]] = {}

B = 37


def program(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, arguments
        return function

    return add


def coupled(reason: str, *arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        COUPLED[function.__name__] = function, arguments, reason
        return function

    return add


def _ramp(*shape: int) -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 23 / 16).astype(np.float32)


@program(_ramp(B, 5), _ramp(5, 5) / 4)
def runge_kutta(x, a):
    def f(t, x):
        return jnp.tanh(x @ a.T) - x + 0.5 * jnp.sin(t)

    def step(i, c):
        t, x = c
        h = jnp.float32(0.01)
        k1 = f(t, x)
        k2 = f(t + h / 2, x + h / 2 * k1)
        return t + h, x + h * k2

    return lax.fori_loop(0, 6, step, (jnp.float32(0), x))


@program(_ramp(100), _ramp(100), _ramp(100) + 9)
def pendulums(angle, speed, gravity):
    def step(i, c):
        angle, speed = c
        speed = speed - 0.01 * gravity * jnp.sin(angle)
        return angle + 0.01 * speed, speed

    return lax.fori_loop(0, 20, step, (angle, speed))


@program(_ramp(B, 6), _ramp(7, B, 6))
def inputs_and_outputs(x, inputs):
    """Stacked inputs and results have the batch as their second dimension."""
    return lax.scan(lambda x, u: (0.5 * x + u, (x.sum(-1), x * 2)), x, inputs)


@program(_ramp(B, B), _ramp(B, B, B))
def all_sizes_equal(x, inputs):
    return lax.scan(lambda x, u: (0.5 * x + u, x * 2), x, inputs)


@program(_ramp(B, 16))
def heat(u):
    def step(i, u):
        return u.at[:, 1:-1].add(0.2 * (u[:, 2:] - 2 * u[:, 1:-1] + u[:, :-2]))

    return lax.fori_loop(0, 9, step, u)


@program(_ramp(B, 4, 3))
def normalised(x):
    def step(i, x):
        y = jnp.exp(x - x.max(-1, keepdims=True))
        y = y / y.sum(-1, keepdims=True)
        return x + y - y.mean((1, 2))[:, None, None]

    return lax.fori_loop(0, 5, step, x)


@program(_ramp(B, 9))
def in_place_columns(x):
    return lax.fori_loop(2, 9, lambda j, y: y.at[:, j].set(0.5 * y[:, j - 1] + 0.25 * y[:, j - 2]), x)


@program(_ramp(B, 3, 3), _ramp(B, 3, 3))
def batched_products(x, y):
    return lax.fori_loop(0, 4, lambda i, c: (c[0] @ c[1] / 4, c[1] @ c[0].swapaxes(1, 2) / 4), (x, y))


@program(_ramp(80), _ramp(80), _ramp(80))
def rotated(a, b, c):
    return lax.fori_loop(0, 5, lambda i, s: (s[1], s[2], s[0] * 2), (a, b, c))


@program(_ramp(80))
def same_start(x):
    """One operand is the start of two arrays, and is read as it was by a third."""
    def step(i, c):
        a, b = c
        return a * 0.5 + x, b + a

    return lax.fori_loop(0, 4, step, (x, x))


@program(np.uint32(7), np.zeros(70, np.float32))
def random_walks(seed, x):
    def step(c, _):
        key, x = c
        key, own = hloom.random.split(key)
        return (key, x + hloom.random.normal(own, x.shape)), None

    key = hloom.random.wrap_key_data(jnp.stack([seed, seed]))
    return lax.scan(step, (key, x), None, length=4)[0][1]


@program(_ramp(20, 20), _ramp(20, 20).T.copy())
def mandelbrot(cr, ci):
    def step(i, s):
        zr, zi, n = s
        inside = zr * zr + zi * zi < 4
        return (jnp.where(inside, zr * zr - zi * zi + cr, zr), jnp.where(inside, 2 * zr * zi + ci, zi), n + inside)

    z = jnp.zeros((20, 20), np.float32)
    return lax.fori_loop(0, 12, step, (z, z, jnp.zeros((20, 20), np.int32)))


@program(_ramp(B, 6, 2), _ramp(B, 6, 2))
def nested_and_branches(x, y):
    """The updates are of pairs: a state of which single columns are written is stored by columns."""
    def inner(j, c):
        x, acc = c
        x = lax.cond(j % 2 == 0, lambda x: x * 0.5 + acc, lambda x: x.at[:, j].set(1.0), x)
        return x, acc + y

    def step(i, x):
        x, acc = lax.fori_loop(0, i + 1, inner, (x, jnp.zeros_like(x)))
        return x + 0.125 * acc

    return lax.fori_loop(0, 4, step, x)


@program(_ramp(70), np.float32(3))
def shared_while(x, limit):
    """The number of steps is known to all, and a result too."""
    def step(c):
        x, t = c
        return x * 0.5 + t, t * 1.25

    return lax.while_loop(lambda c: c[1] < limit, step, (x, jnp.float32(1)))


@program(_ramp(70), np.float32(1), _ramp(3))
def shared_results(x, t, weights):
    """Results that all members share start as operands: no part may find them changed."""

    def step(i, c):
        x, t, weights = c
        return x * 0.5 + t + weights.sum(), t * 1.25, weights[::-1] * t

    return lax.fori_loop(0, 5, step, (x, t, weights))


LOOP = """
HloModule gathers

body {{
  s = (s32[], f32[{x}], {other}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[{x}] get-tuple-element(s), index=1
  other = {other} get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  three = f32[] constant(3)
  threes = f32[{x}] broadcast(three), dimensions={{}}
  scaled = f32[{x}] multiply(x, threes)
  own = s32[{x}] convert(scaled)
  read = f32[{x}] gather({operands}), {gather}
  new = f32[{x}] add(scaled, read)
  ROOT t = (s32[], f32[{x}], {other}) tuple(next, new, other)
}}

condition {{
  s2 = (s32[], f32[{x}], {other}) parameter(0)
  i2 = s32[] get-tuple-element(s2), index=0
  limit = s32[] constant(4)
  ROOT less = pred[] compare(i2, limit), direction=LT
}}

ENTRY main {{
  x0 = f32[{x}] parameter(0)
  other0 = {other} parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[{x}], {other}) tuple(zero, x0, other0)
  w = (s32[], f32[{x}], {other}) while(init), condition=condition, body=body
  ROOT r = f32[{x}] get-tuple-element(w), index=1
}}
"""


def _gather(x: str, other: str, operands: str, gather: str) -> str:
    return LOOP.format(x=x, other=other, operands=operands, gather=gather)


TAKE = "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"
_BATCHING = "operand_batching_dims={0}, start_indices_batching_dims={0}"
OWN_ROW = _gather(
    "37,7", "s32[37,7,1]", "x, other",
    f"offset_dims={{}}, collapsed_slice_dims={{1}}, start_index_map={{1}}, {_BATCHING}, index_vector_dim=2, "
    "slice_sizes={1,1}",
)  # fmt: skip
TABLE = _gather("70", "f32[11]", "other, own", TAKE)
SHARED_COLUMNS = _gather(
    "37,7", "s32[7]", "x, other",
    "offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={37,1}",
)  # fmt: skip
PERMUTED = _gather(
    "37,7", "s32[37]", "x, other",
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,7}",
)  # fmt: skip
OF_OTHERS = _gather("70", "f32[11]", "x, own", TAKE)

PROGRAMS["gathers_of_own_row"] = OWN_ROW, (_ramp(B, 7), np.arange(B * 7, dtype=np.int32).reshape(B, 7, 1) % 9)
PROGRAMS["table"] = TABLE, (_ramp(70), _ramp(11))
PROGRAMS["shared_columns"] = SHARED_COLUMNS, (_ramp(B, 7), np.arange(7, dtype=np.int32)[::-1].copy())
COUPLED["permuted"] = PERMUTED, (_ramp(B, 7), np.arange(B, dtype=np.int32)[::-1].copy()), "gather along"
COUPLED["gathers_of_others"] = OF_OTHERS, (_ramp(70), _ramp(11)), "gather"


@program(_ramp(B, 5) > 0.5, np.arange(B * 3, dtype=np.int8).reshape(B, 3), _ramp(B, 4).astype(np.float16))
def types(p, a, h):
    def step(i, c):
        p, a, h = c
        return ~p, a * 3, h * 1.5 + i

    return lax.fori_loop(0, 5, step, (p, a, h))


@coupled("reduce along the batch", _ramp(70))
def until_all_are_done(x):
    return lax.while_loop(lambda x: (x < 9).any(), lambda x: x * 1.5 + 0.1, x)


@coupled("reduce along the batch", _ramp(B, 8))
def mean_over_members(x):
    return lax.fori_loop(0, 4, lambda i, x: x - x.mean(0), x)


@coupled("along the batch", _ramp(B, 8))
def neighbours(x):
    return lax.fori_loop(0, 4, lambda i, x: x.at[1:].add(x[:-1]), x)


@coupled("along the batch", _ramp(B, 8))
def rolled(x):
    return lax.fori_loop(0, 4, lambda i, x: jnp.roll(x, 1, 0) * 0.5, x)


@coupled("reverse along the batch", _ramp(B, 8))
def reversed_(x):
    return lax.fori_loop(0, 4, lambda i, x: x[::-1] * 0.5, x)


@coupled("different dimensions|not the outermost", _ramp(B, B))
def transposed(x):
    return lax.fori_loop(0, 4, lambda i, x: x.T * 0.5 + x, x)


@coupled("sums over the batch|no rule", _ramp(B, B))
def squared(x):
    return lax.fori_loop(0, 4, lambda i, x: x @ x / 64, x)


@coupled("along the batch", _ramp(70))
def one_member_for_all(x):
    return lax.fori_loop(0, 4, lambda i, x: x * 0.5 + x[3], x)


@coupled("along the batch", _ramp(70))
def counted_member(x):
    return lax.fori_loop(0, 4, lambda i, x: x.at[i].set(2.0), x)


@coupled("branch|along the batch", _ramp(70))
def branch_of_a_member(x):
    return lax.fori_loop(0, 4, lambda i, x: lax.cond(x.sum() > 1, lambda x: x * 0.5, lambda x: x + 1, x), x)


@coupled("merges or splits|along the batch|no rule", _ramp(36, 4))
def regrouped(x):
    return lax.fori_loop(0, 4, lambda i, x: (x.reshape(18, 8)[:, ::-1]).reshape(36, 4), x)


@coupled("no rule|along the batch", _ramp(70))
def sorted_members(x):
    return lax.fori_loop(0, 4, lambda i, x: jnp.cumsum(x) * 0.01, x)


@coupled("all members share|no dimension|has no batch", _ramp(70), _ramp(90))
def two_batches(x, y):
    return lax.fori_loop(0, 4, lambda i, c: (c[0] * 0.5, c[1] + 1), (x, y))


@coupled("all members share", _ramp(70, 2), _ramp(90))
def large_shared_value(x, y):
    """Each part would compute all of the product."""
    return lax.fori_loop(0, 4, lambda i, x: x * 0.5 + jnp.outer(jnp.sin(y + i), y).sum() * (y @ jnp.cos(y * i)), x)


CONTRACTED = frozenset(("runge_kutta",))
"""Programs in which LLVM may choose which of two products becomes a part of a multiply-add."""


def _assert_same(name: str, results: Sequence[Any], expected: Sequence[Any]) -> None:
    for got, want in zip(results, expected, strict=True):
        if name in CONTRACTED:
            np.testing.assert_allclose(got, want, rtol=1e-6)
        else:
            np.testing.assert_array_equal(got, want)


def _module(function: Callable[..., Any] | str, arguments: tuple[Any, ...]) -> HloModule:
    return hlo.parse(function) if isinstance(function, str) else hloom.jit(function).lower(*arguments).module


@contextmanager
def _in_parts(members: int | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All loops with a batch run part by part, in blocks of so many members; None: none does."""
    with monkeypatch.context() as patch:
        if members is None:
            patch.setattr(cost, "batch_for", lambda loop: None)
        else:
            patch.setattr(cost, "PARTED", 0.0)
            patch.setattr(cost, "MOST_SHARED", 1e9)
            patch.setattr(parts, "TURN_OF_PART", 0.0)
            patch.setattr(parts, "block_bytes", lambda: 0)
            patch.setattr(parts, "BLOCK_ELEMENTS", 0)
            patch.setattr(parts, "FEWEST_MEMBERS", members)
        yield


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = get_num_threads()
    set_num_threads(count)
    try:
        yield
    finally:
        set_num_threads(before)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_give_what_the_whole_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments = PROGRAMS[name]
    module = _module(function, arguments)
    arrays = [np.asarray(a) for a in arguments]
    with _in_parts(None, monkeypatch):
        whole = compile_module(module, "native")
    assert not any("for first in" in text for text in whole.kernels().values())
    expected = whole.execute(arrays)
    for members in (1, 16):
        with _in_parts(members, monkeypatch), small_pieces():
            parted = compile_module(module, "native")
        assert any("for first in range(lo, hi" in text for text in parted.kernels().values())
        for threads in (1, 2):
            with _threads(threads):
                _assert_same(name, parted.execute(arrays), expected)
    for got, want in zip(expected, _leaves(hlo.evaluate(module, *arrays)), strict=True):
        tolerance = 2e-3 if want.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_guarded_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments = PROGRAMS[name]
    module = _module(function, arguments)
    arrays = [np.asarray(a) for a in arguments]
    with _in_parts(None, monkeypatch):
        expected = compile_module(module, "native").execute(arrays)
    with _in_parts(8, monkeypatch), small_pieces():
        monkeypatch.setattr(pipelines, "is_native", cost.can_be_native)
        guarded = GuardedProgram(module, at_end=len(name) % 2 == 0)
        _assert_same(name, guarded.run(arrays), expected)


def _batch(function: Callable[..., Any] | str, arguments: tuple[Any, ...]) -> Batch:
    """The batch of the first outermost loop of a program. NotABatch says why it has none."""
    loops: list[HloInstruction] = []
    passes = pipelines.pipeline("cpu")
    keep = OutlineLoops(lambda loop: bool(loops.append(loop)))
    steps = tuple(keep if isinstance(p, OutlineLoops) else p for p in passes.steps)
    Pipeline(passes.name, steps).run(_module(function, arguments))
    return batch_of(loops[0], 64)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", COUPLED)
def test_what_couples_members_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments, reason = COUPLED[name]
    with pytest.raises(NotABatch, match=reason):
        _batch(function, arguments)
    module = _module(function, arguments)
    with _in_parts(1, monkeypatch):
        assert not any("for first in" in t for t in compile_module(module, "native").kernels().values())


def test_a_loop_without_a_batch_leaves_nothing_to_the_collector() -> None:
    """An error that its own frame kept would keep the program."""
    function, arguments, _ = next(iter(COUPLED.values()))
    gc.collect()
    gc.disable()
    try:
        with suppress(NotABatch):
            _batch(function, arguments)
        assert not any(isinstance(each, NotABatch) for each in gc.get_objects())
    finally:
        gc.enable()


def test_places_of_the_batch() -> None:
    found = _batch(*PROGRAMS["inputs_and_outputs"])
    assert found.size == B
    assert sorted(found.state, key=str) == [0, 1, 1, None, None]
    assert all(
        shape.dimensions[axis] == B
        for i, axes in found.axes.items()
        for shape, axis in zip(i.shape.leaves(), axes, strict=True)
        if axis is not None
    )
    assert not any(i.opcode is Opcode.FUSION and i.shape.is_scalar and found.axes[i] != (None,) for i in found.axes)


def _texts(function: Callable[..., Any], *arguments: Any) -> str:
    return "\n".join(hloom.jit(function).lower(*arguments).compile().kernels().values())


def test_which_loops_run_in_parts() -> None:
    """Many members and steps: in parts. Few: one loop. Large products: rows, because BLAS is better."""
    def pendulum(steps: int) -> Callable[..., Any]:
        return lambda x: lax.fori_loop(0, steps, lambda i, x: x + 0.01 * jnp.sin(x), x)

    assert "for first in" in _texts(pendulum(1000), _ramp(1000))
    assert "for first in" in _texts(pendulum(3), _ramp(300, 1000))
    few = _texts(pendulum(1000), _ramp(20))
    assert "native_loop" in few and "for first in" not in few
    assert "for first in" not in _texts(pendulum(2), _ramp(200))
    wide = _texts(lambda x, a: lax.fori_loop(0, 99, lambda i, x: jnp.tanh(x @ a), x), _ramp(200, 64), _ramp(64, 64))
    assert "native_loop" not in wide


def test_sizes_of_the_batch_have_one_text() -> None:
    def step(i, x):
        return x + 0.01 * jnp.sin(x)

    texts = {
        _texts(lambda x, n=steps: lax.fori_loop(0, n, step, x), _ramp(size)).split("\n", 1)[1]
        for size, steps in ((1000, 1000), (5000, 777), (70_000, 99))
    }
    assert len(texts) == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupt(threads: int) -> None:
    """Ctrl-C ends all parts, and the next call is right."""
    def run(steps: int) -> Any:
        return hloom.jit(lambda x: lax.fori_loop(0, steps, lambda i, x: x * 0.999 + 1 / (x + 1), x))

    long, brief, x = run(2_000_000_000), run(100), _ramp(1000)
    (text,) = long.lower(x).compile().kernels().values()
    assert "for first in" in text and "interrupted(watch)" in text
    with _threads(threads):
        expected = np.asarray(brief(x))
        timer = threading.Timer(0.3, interrupt)
        started = time.monotonic()
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            long(x)
        assert time.monotonic() - started < 20
        timer.join()
        np.testing.assert_array_equal(np.asarray(brief(x)), expected)


BARRIER = """
HloModule barrier_around_a_part_of_the_state

body {
  s = (f32[130,3], s32[], s32[]) parameter(0)
  x = f32[130,3] get-tuple-element(s), index=0
  k = s32[] get-tuple-element(s), index=1
  i = s32[] get-tuple-element(s), index=2
  both = (f32[130,3], s32[]) tuple(x, k)
  kept = (f32[130,3], s32[]) opt-barrier(both)
  y = f32[130,3] get-tuple-element(kept), index=0
  n = s32[] get-tuple-element(kept), index=1
  z = f32[130,3] add(y, y)
  one = s32[] constant(1)
  more = s32[] add(n, one)
  next = s32[] add(i, one)
  ROOT t = (f32[130,3], s32[], s32[]) tuple(z, more, next)
}

condition {
  s2 = (f32[130,3], s32[], s32[]) parameter(0)
  i2 = s32[] get-tuple-element(s2), index=2
  limit = s32[] constant(3)
  ROOT less = pred[] compare(i2, limit), direction=LT
}

ENTRY main {
  x = f32[130,3] parameter(0)
  zero = s32[] constant(0)
  init = (f32[130,3], s32[], s32[]) tuple(x, zero, zero)
  ROOT loop = (f32[130,3], s32[], s32[]) while(init), condition=condition, body=body
}
"""


def test_a_barrier_around_values_with_a_batch_and_shared_ones() -> None:
    module = hlo.parse(BARRIER)
    for got, expected in zip(
        compile_module(module, "native").execute([_ramp(130, 3)]), hlo.evaluate(module, _ramp(130, 3)), strict=True
    ):
        np.testing.assert_array_equal(got, expected)
