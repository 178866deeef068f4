"""Loops that update a part of an array: each step writes that part, and nothing of the array's size.

A table of programs with the largest number of bytes that one instruction in their loops may write. Each also gives the
evaluator's results on guarded memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule
from hloom.hlo.text.parser import parse
from hloom.hlo.verifier import verify

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.comparing import assert_same_arrays
from support.guarded import GuardedProgram
from support.writes import ROWS, largest_write, writes_of

N = 24
ROW, ELEMENT, WHOLE = 4 * N, 4, 4 * N * N
"""Bytes of a row or a column of the arrays below, of an element, and of an array."""


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...] | np.ndarray[Any, Any], ...]
    bound: int
    """The most bytes that one instruction of a loop may write."""

    def arguments(self) -> list[np.ndarray[Any, Any]]:
        rng = np.random.default_rng(0)
        return [s if isinstance(s, np.ndarray) else rng.uniform(0.5, 1, s).astype(np.float32) for s in self.shapes]

    def module(self) -> HloModule:
        module: HloModule = hloom.jit(self.function).lower(*self.arguments()).module
        return module


PROGRAMS: dict[str, Program] = {}


def program(*shapes: Any, writes: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = Program(function, shapes, writes)
        return function

    return add


SQUARE = (N, N)
TALL, FLAT = (N * N, 1), (1, N * N)


@program((N, N), (N, N), writes=WHOLE - ROW)
def stencils(e, h):
    """Two fields in turn, each from the differences of the other: no step writes more elements than it replaces."""

    def step(_, fields):
        e, h = fields
        e = e.at[1:].set(e[1:] - 0.5 * (h[1:] - h[:-1]))
        h = h.at[:-1, 1:].add(-0.25 * (e[1:, 1:] - e[:-1, 1:]))
        return e, h

    return lax.fori_loop(0, 5, step, (e, h))


@program(TALL, writes=ELEMENT)
def rows_of_one_element(x: Any) -> Any:
    return lax.scan(lambda c, row: (c * 0.5 + row, c * 0.5 + row), x[0], x)[1]


@program(TALL, writes=ELEMENT)
def element_from_the_one_above(x: Any) -> Any:
    return lax.fori_loop(1, N * N, lambda i, x: x.at[i, 0].set(0.5 * x[i - 1, 0]), x)


@program(FLAT, writes=ELEMENT)
def columns_of_one_element(x: Any) -> Any:
    return lax.fori_loop(1, N * N, lambda i, x: x.at[:, i].set(0.5 * x[:, i - 1]), x)


@program((N, 1, N), writes=ROW)
def rows_with_a_dimension_of_one(x: Any) -> Any:
    return lax.fori_loop(1, N, lambda i, x: x.at[i].set(0.5 * x[i - 1]), x)


@program(SQUARE, writes=ROW)
def column_recurrence(a):
    return lax.fori_loop(2, N, lambda j, a: a.at[:, j].set(0.5 * a[:, j - 1] + 0.25 * a[:, j - 2]), a)


@program(SQUARE, writes=ROW)
def row_recurrence(a):
    return lax.fori_loop(2, N, lambda j, a: a.at[j].set(0.5 * a[j - 1] + 0.25 * a[j - 2]), a)


@program(SQUARE, writes=ROW)
def backwards(a):
    return lax.fori_loop(0, N - 1, lambda j, a: a.at[N - 2 - j].add(0.5 * a[N - 1 - j]), a)


@program((N,), writes=ELEMENT)
def elements(a):
    return lax.fori_loop(2, N, lambda j, a: a.at[j].set(a[j - 1] * 0.5 + a[j - 2]), a)


@program(SQUARE, writes=2 * ROW)
def blocks(a):
    def body(j, a):
        read = lax.dynamic_slice(a, (0, 2 * j - 2), (N, 2))
        return lax.dynamic_update_slice(a, read * 0.5 + 1, (0, 2 * j))

    return lax.fori_loop(1, N // 2, body, a)


@program(SQUARE, writes=ROW)
def outside_is_dropped(a):
    return lax.fori_loop(0, N + 9, lambda j, a: a.at[j].set(a[j - 1] * 0.5, mode="drop"), a)


@program(SQUARE, writes=ELEMENT)
def gauss_seidel(u):
    def element(i, j, u):
        return u.at[i, j].set(0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]))

    def sweep(_, u):
        return lax.fori_loop(1, N - 1, lambda i, u: lax.fori_loop(1, N - 1, lambda j, u: element(i, j, u), u), u)

    return lax.fori_loop(0, 3, sweep, u)


@program(np.arange(N, dtype=np.int32) % 4, np.arange(N, dtype=np.int32) % 3, writes=ELEMENT)
def edit_distance(a, b):
    table = jnp.zeros((N + 1, N + 1), np.int32).at[0].set(jnp.arange(N + 1)).at[:, 0].set(jnp.arange(N + 1))

    def cell(i, j, d):
        change = d[i - 1, j - 1] + (a[i - 1] != b[j - 1])
        return d.at[i, j].set(jnp.minimum(jnp.minimum(d[i - 1, j] + 1, d[i, j - 1] + 1), change))

    return lax.fori_loop(1, N + 1, lambda i, d: lax.fori_loop(1, N + 1, lambda j, d: cell(i, j, d), d), table)


@program(SQUARE, writes=ROW)
def cholesky_by_columns(a):
    r = jnp.arange(N)

    def column(j, x):
        d = jnp.sqrt(x[j, j] + N)
        c = jnp.where(r > j, x[:, j] / d, jnp.where(r == j, d, 0.0))
        x = x.at[:, j].set(c)
        return lax.fori_loop(j + 1, N, lambda k, x: x.at[:, k].add(jnp.where(r >= k, -c * c[k], 0.0)), x)

    return lax.fori_loop(0, N, column, a)


@program(SQUARE, writes=ELEMENT)
def cholesky_by_elements(a):
    r = jnp.arange(N)

    def element(i, j, x):
        s = a[i, j] + N * (i == j) - jnp.sum(jnp.where(r < j, x[i] * x[j], 0.0))
        return x.at[i, j].set(jnp.where(i == j, jnp.sqrt(s), s / x[j, j]))

    def row(i, x):
        return lax.fori_loop(0, i + 1, lambda j, x: element(i, j, x), x)

    return lax.fori_loop(0, N, row, jnp.zeros_like(a))


@program(SQUARE, writes=ROW)
def lu(a):
    r = jnp.arange(N)

    def eliminate(k, i, a):
        f = a[i, k] / (a[k, k] + N)
        return a.at[i].set(jnp.where(r > k, a[i] - f * a[k], a[i])).at[i, k].set(f)

    return lax.fori_loop(0, N - 1, lambda k, a: lax.fori_loop(k + 1, N, lambda i, a: eliminate(k, i, a), a), a)


@program(SQUARE, SQUARE, writes=ROW)
def triangular_solve(lower, b):
    r = jnp.arange(N)

    def row(i, x):
        return x.at[i].set((b[i] - jnp.where(r < i, lower[i], 0.0) @ x) / (lower[i, i] + N))

    return lax.fori_loop(0, N, row, jnp.zeros((N, N), np.float32))


@program(SQUARE, writes=ROW)
def rows_are_swapped(a):
    def body(i, a):
        x, y = a[i], a[i - 1]
        return a.at[i].set(y).at[i - 1].set(x)

    return lax.fori_loop(1, N, body, a)


@program(SQUARE, writes=ROW)
def one_update_after_the_other(a):
    def body(i, a):
        a = a.at[i].set(a[i - 1] * 0.5)
        a = a.at[:, i].set(a[:, i - 1] + 1)
        return a.at[i, i].add(a[i - 1, i - 1])

    return lax.fori_loop(1, N, body, a)


@program(SQUARE, SQUARE, writes=ROW)
def two_arrays_read_each_other(x, y):
    def body(i, s):
        x, y = s
        return x.at[i].set(y[i - 1] + 1), y.at[i].set(x[i - 1] * 0.5)

    return lax.fori_loop(1, N, body, (x, y))


@program(SQUARE, SQUARE, SQUARE, writes=ROW)
def three_arrays_in_a_ring(x, y, z):
    def body(i, s):
        x, y, z = s
        return x.at[i].add(y[i - 1]), y.at[:, i].add(z[:, i - 1]), z.at[i].set(x[i - 1] * y[i])

    return lax.fori_loop(1, N, body, (x, y, z))


@program(SQUARE, SQUARE, writes=ROW)
def the_new_one_is_read(x, y):
    def body(i, s):
        x, y = s
        new = x.at[i].set(y[i] + 1)
        return new, y.at[i].set(x[i] * 0.5 + new[i - 1])

    return lax.fori_loop(1, N, body, (x, y))


@program(SQUARE, writes=ROW)
def cond_with_one_update(a):
    def body(i, a):
        return lax.cond(a[i, i] > 0.7, lambda a: a.at[i].set(a[i - 1] * 0.5), lambda a: a, a)

    return lax.fori_loop(1, N, body, a)


@program(SQUARE, writes=ROW)
def cond_with_two_updates(a):
    def body(i, a):
        return lax.cond(a[i, i] > 0.7, lambda a: a.at[i].set(a[i - 1] * 0.5), lambda a: a.at[:, i].add(a[0]), a)

    return lax.fori_loop(1, N, body, a)


@program(SQUARE, writes=ROW)
def branch_reads_what_it_updates_by_another_name(a):
    def body(i, a):
        return lax.cond(a[i, i] > 0.7, lambda x: x.at[i].set(a[i - 1] * 0.5), lambda x: x, a)

    return lax.fori_loop(1, N, body, a)


@program(SQUARE, SQUARE, writes=ROW)
def branches_update_one_array_each(x, y):
    def body(i, s):
        x, y = s
        first, second = x[i, i], y[i, i]
        return lax.cond(
            first > second,
            lambda x, y: (x.at[i].set(y[i - 1] * 0.5), y),
            lambda x, y: (x, y.at[:, i].set(x[:, i] + y[:, i - 1])),
            x,
            y,
        )

    return lax.fori_loop(1, N, body, (x, y))


@program(SQUARE, writes=ROW)
def read_beside_cond(a):
    def body(i, a):
        new = lax.cond(a[i, i] > 0.7, lambda a: a.at[i].set(a[i - 1] * 0.5), lambda a: a, a)
        return new.at[0].set(a[i] * 0.1 + new[i])

    return lax.fori_loop(1, N, body, a)


@program(SQUARE, writes=ROW)
def read_beside_loop(a):
    def body(i, a):
        new = lax.fori_loop(1, i, lambda j, a: a.at[j].set(a[j - 1] * 0.5), a)
        return new.at[0].set(a[i] * 0.1 + new[i])

    return lax.fori_loop(1, N, body, a)


@program(SQUARE, writes=ROW)
def switch(a):
    def body(i, a):
        branches = [lambda a: a.at[i].set(a[i - 1] * 0.5), lambda a: a.at[:, i].add(1.0), lambda a: a]
        return lax.switch(i % 3, branches, a)

    return lax.fori_loop(1, N, body, a)


@program(SQUARE, writes=ROW)
def chosen_update(a):
    return lax.fori_loop(1, N, lambda i, a: jnp.where(a[i, i] > 0.7, a.at[i].set(a[i - 1] * 0.5), a), a)


@program(SQUARE, SQUARE, writes=ROW)
def masked_update(a, mask):
    return lax.fori_loop(1, N, lambda i, a: jnp.where(mask > 0.7, a.at[i].set(a[i - 1] * 0.5), a), a)


@program(SQUARE, writes=ROW)
def one_of_two_updates(a):
    def body(i, a):
        return jnp.where(a[i, i] > 0.7, a.at[i].set(a[i - 1] * 0.5), a.at[:, i].set(a[:, i - 1] + 1))

    return lax.fori_loop(1, N, body, a)


@program(SQUARE, (5,), writes=ROW)
def fori_in_scan(a, xs):
    def step(a, x):
        a = lax.fori_loop(1, N, lambda i, a: a.at[i].set(a[i - 1] * x), a)
        return a, a[0, 0]

    return lax.scan(step, a, xs)


@program((N,), (3 * N, N), writes=ROW)
def scan_stacks_its_results(s, xs):
    def step(s, x):
        s = 0.5 * s + x
        return s, s * 2

    return lax.scan(step, s, xs)


@program((N,), writes=ELEMENT)
def insertion_sort(a):
    def insert(i, a):
        key = a[i]
        j, a = lax.while_loop(
            lambda s: (s[0] >= 0) & (s[1][s[0]] > key),
            lambda s: (s[0] - 1, s[1].at[s[0] + 1].set(s[1][s[0]])),
            (i - 1, a),
        )
        return a.at[j + 1].set(key)

    return lax.fori_loop(1, N, insert, a)


@program((2 * N, 2 * N), writes=16 * N * N)
def floyd_warshall(d):
    """The whole array is new in each step: written once, without a copy."""
    return lax.fori_loop(0, 2 * N, lambda k, d: jnp.minimum(d, d[:, k, None] + d[k]), d)


@program((2 * N, 2 * N), writes=16 * N * N)
def gauss_jordan(a):
    def step(k, a):
        p = jnp.argmax(jnp.where(jnp.arange(2 * N) >= k, a[:, k], -1))
        x, y = a[k], a[p]
        a = a.at[k].set(y).at[p].set(x)
        a = a.at[k].set(a[k] / (a[k, k] + N))
        return a - a[:, k].at[k].set(0.0)[:, None] * a[k]

    return lax.fori_loop(0, 2 * N, step, a)


@program((N + 2, N + 2), writes=WHOLE)
def heat(u):
    """The update is nearly all of the array: a temporary of its size, and no more."""

    def body(_, u):
        c = u[1:-1, 1:-1]
        return u.at[1:-1, 1:-1].set(c + 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * c))

    return lax.fori_loop(0, 5, body, u)


@program(SQUARE, writes=ROW)
def columns_from_columns(a):
    """Each element reads and writes its own row only, with any columns."""
    return lax.fori_loop(2, N, lambda j, a: a.at[:, j].set(0.5 * a[:, j - 1] + 0.25 * a[:, j - 2]), a)


@program(SQUARE, np.array([3, -1, 40, 7, 7, 0], np.int32), writes=ROW)
def rows_from_any_rows(a, places):
    """Also if it is unknown whether it is the same row."""

    def step(a, place):
        new = 0.5 * lax.dynamic_index_in_dim(a, place, 0, False) + 1
        return lax.dynamic_update_index_in_dim(a, new, place + 1, 0), None

    return lax.scan(step, a, places)[0]


@program((3, N, N), writes=2 * ROW)
def parts_of_two_columns(a):
    """Two columns are read and written at different places, and overlap: a temporary is needed."""

    def step(j, a):
        new = 0.5 * lax.dynamic_slice(a, (1, 0, j), (1, N, 2))
        return lax.dynamic_update_slice(a, new, (1, 0, j + 1))

    return lax.fori_loop(0, N - 3, step, a)


BIG = (2 * N, 2 * N)


@program(BIG, writes=4 * (2 * N - 2) ** 2)
def heat_of_a_large_plate(u):
    """Two buffers change places: the inside of one is written from the other."""
    return lax.fori_loop(0, 7, lambda _, u: u.at[1:-1, 1:-1].set(_mean_of_neighbours(u)), u)


@program(BIG, writes=16 * N * N)
def heat_until_it_rests(u):
    """The buffers change places for an unknown number of steps, too; they are copied only when the loop ends."""

    def body(state):
        u, _, k = state
        new = u.at[1:-1, 1:-1].set(_mean_of_neighbours(u))
        return new, jnp.max(jnp.abs(new - u)), k + 1

    return lax.while_loop(lambda s: (s[1] > 1e-3) & (s[2] < 9), body, (u, 1.0, 0))


@program(BIG, BIG, writes=8 * N * (2 * N - 1))
def two_that_each_read_themselves(u, v):
    def body(_, state):
        u, v = state
        return u.at[1:].set(u[:-1] * 0.5 + v[1:]), v.at[:, :-1].set(v[:, 1:] * 0.5 - u[:, 1:])

    return lax.fori_loop(0, 5, body, (u, v))


def _mean_of_neighbours(u):
    return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def laplacian(u):
    return jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) - 2 * u


@program(BIG, BIG, writes=16 * N * N)
def waves(u, old):
    """The state changes places: two steps at a time need no copy. Nine steps are four times two, and one."""
    return lax.fori_loop(0, 9, lambda i, s: (2 * s[0] - s[1] + 0.1 * laplacian(s[0]), s[0]), (u, old))


@program(BIG, BIG, writes=16 * N * N)
def elements_of_two_arrays(q, p):
    return lax.fori_loop(0, 7, lambda i, s: (s[0] + 0.1 * s[1], s[1] - 0.1 * s[0]), (q, p))


@program(BIG, BIG, BIG, writes=16 * N * N)
def three_take_turns(x, y, z):
    return lax.fori_loop(0, 10, lambda i, s: (s[1], s[2], 0.5 * s[0] + 0.2 * laplacian(s[2])), (x, y, z))


@program(BIG, BIG, writes=16 * N * N)
def until_nothing_changes(u, old):
    def step(s):
        u, _, k = s
        return u + 0.2 * laplacian(u), u, k + 1

    return lax.while_loop(lambda s: (jnp.max(jnp.abs(s[0] - s[1])) > 1e-2) & (s[2] < 50), step, (u, old, 0))


SCATTER = """HloModule scatter
assign {{ a = f32[] parameter(0)  ROOT b = f32[] parameter(1) }}
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
body {{
  s = (s32[], f32[24,24], s32[24,3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  a = f32[24,24] get-tuple-element(s), index=1
  at = s32[24,3] get-tuple-element(s), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  j = s32[] add(i, one)
  some = s32[1,3] dynamic-slice(at, i, zero), dynamic_slice_sizes={{1,3}}
  ROOT next = (s32[], f32[24,24], s32[24,3]) tuple(j, b, at)
  {update}
}}
condition {{
  s = (s32[], f32[24,24], s32[24,3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(24)
  ROOT less = pred[] compare(i, n), direction=LT
}}
ENTRY main {{
  a = f32[24,24] parameter(0)
  at = s32[24,3] parameter(1)
  zero = s32[] constant(0)
  start = (s32[], f32[24,24], s32[24,3]) tuple(zero, a, at)
  loop = (s32[], f32[24,24], s32[24,3]) while(start), condition=condition, body=body
  ROOT r = f32[24,24] get-tuple-element(loop), index=1
}}
"""
SCATTERS = {
    "one row from another": (
        "at1 = s32[1] reshape(i)  row = f32[1,24] dynamic-slice(a, j, zero), dynamic_slice_sizes={1,24}  "
        "r = f32[24] reshape(row)  b = f32[24,24] scatter(a, at1, r), update_window_dims={0}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=assign",
        ROW,
    ),
    "an element that may be outside": (
        "at1 = s32[1,1] slice(some), slice={[0:1],[0:1]}  at2 = s32[1] reshape(at1)  "
        "x = f32[1,1] dynamic-slice(a, j, i), dynamic_slice_sizes={1,1}  y = f32[] reshape(x)  "
        "pair = s32[2] concatenate(at2, at2), dimensions={0}  "
        "b = f32[24,24] scatter(a, pair, y), update_window_dims={}, inserted_window_dims={0,1}, "
        "scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=add",
        ELEMENT,
    ),
    "three rows from others": (
        "at3 = s32[3] reshape(some)  rows = f32[3,24] dynamic-slice(a, j, zero), dynamic_slice_sizes={3,24}  "
        "b = f32[24,24] scatter(a, at3, rows), update_window_dims={1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
        3 * ROW,
    ),
}


def scattering(update: str) -> HloModule:
    """A loop with one scatter a step, which may be outside of the array; `update` computes b from a."""
    lines = SCATTER.format(update=update.replace("{", "{{").replace("}", "}}")).replace("{{", "{").replace("}}", "}")
    head, tail = lines.split("  ROOT next", 1)
    root, rest = tail.split("\n", 1)
    changed, rest = rest.split("\n", 1)
    module = parse(f"{head}{changed}\n  ROOT next{root}\n{rest}")
    verify(module)
    return module


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_step_writes_what_it_updates(name: str) -> None:
    assert largest_write(PROGRAMS[name].module()) == PROGRAMS[name].bound


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name: str) -> None:
    module, arguments = PROGRAMS[name].module(), PROGRAMS[name].arguments()
    expected = evaluate(module, *arguments)
    for options in (None, ROWS):
        guarded = GuardedProgram(module, options=options, at_end=len(name) % 2 == 0)
        assert_same_arrays(expected, guarded.run(arguments), 1e-4)


@pytest.mark.parametrize("name", SCATTERS)
def test_scatter(name: str) -> None:
    update, bound = SCATTERS[name]
    module = scattering(update)
    assert largest_write(module) == bound
    rng = np.random.default_rng(0)
    arguments = [rng.uniform(0, 1, SQUARE).astype(np.float32), rng.integers(-3, N + 3, (N, 3)).astype(np.int32)]
    expected = evaluate(module, *arguments)
    for options in (None, ROWS):
        assert_same_arrays(expected, GuardedProgram(module, options=options).run(arguments), 1e-4)


@pytest.mark.parametrize(
    ("name", "count"), [("columns_from_columns", 1), ("rows_from_any_rows", 1), ("parts_of_two_columns", 2)]
)
def test_temporaries_of_updates_from_other_rows(name: str, count: int) -> None:
    writes = [w.what for w in writes_of(PROGRAMS[name].module()) if w.loops and w.size > ELEMENT]
    assert len(writes) == count, writes


@pytest.mark.parametrize("name", ["heat_of_a_large_plate", "two_that_each_read_themselves"])
def test_updates_from_all_over_need_no_temporaries(name: str) -> None:
    writes = [w.what for w in writes_of(PROGRAMS[name].module()) if w.loops and w.size > ELEMENT]
    assert len(writes) == 2 * len(PROGRAMS[name].shapes), writes  # each array, in both of two steps


@pytest.mark.parametrize("name", ["waves", "elements_of_two_arrays", "three_take_turns"])
def test_state_that_changes_places_is_not_copied(name: str) -> None:
    writes = writes_of(PROGRAMS[name].module())
    assert not [w.what for w in writes if w.loops and w.what.startswith("copy") and w.size > ELEMENT]


def test_updates_of_what_they_read_need_no_temporaries() -> None:
    writes = [w for w in writes_of(PROGRAMS["stencils"].module()) if w.loops and w.size > ELEMENT]
    assert len(writes) == 2, writes


def test_the_second_step_is_conditional() -> None:
    """If the number of iterations is unknown, arrays that change places are copied only when the loop ends."""
    writes = writes_of(PROGRAMS["until_nothing_changes"].module())
    copies = [w.what for w in writes if w.loops and w.what.startswith("copy") and w.size > ELEMENT]
    assert copies and all("_ends" in what for what in copies)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("known", [False, True])
def test_steps_are_counted(steps: int, known: bool) -> None:
    def program(u, n):
        def step(s):
            return s[1], 0.5 * s[0] + laplacian(s[1]), s[2] + 1

        return lax.while_loop(lambda s: s[2] < (steps if known else n), step, (u, u + 1, 0))

    u = np.random.default_rng(0).uniform(0, 1, BIG).astype(np.float32)
    module = hloom.jit(program).lower(u, steps).module
    arguments = [u, np.int32(steps)][: len(module.entry.parameters)]
    expected = evaluate(module, *arguments)
    for options in (None, ROWS):
        assert_same_arrays(expected, GuardedProgram(module, options=options).run(arguments), 1e-4)


def test_a_copy_is_seen() -> None:
    """The old array is returned too, so each step must copy it."""

    def keeps_both(a):
        return lax.fori_loop(1, N, lambda i, s: (s[0].at[i].set(s[0][i - 1] * 0.5), s[0]), (a, a))

    assert largest_write(Program(keeps_both, (SQUARE,), 0).module()) == WHOLE
