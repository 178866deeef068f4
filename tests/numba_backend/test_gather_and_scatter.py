"""Gather and scatter on the Numba backend: fusion, values computed once, updates in place, bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.executable import NumbaExecutable
from hloom.numba_backend.lowering_rules import indexing as rows

from hloom import hlo
from tests.support.guarded import GuardedProgram, small_pieces
from tests.support.nest_modules import assert_close

NDArray = np.ndarray

ROWS = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1"
ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }"
UPDATE_ROWS = (
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
    "to_apply=add"
)


def checked(text: str, arguments: Sequence[NDArray], donated: Sequence[int] = ()) -> NumbaExecutable:
    """The executable of a program, after comparing it with the evaluator."""
    module = hlo.parse(text)
    executable = NumbaCompiler().compile(module, donated=donated)
    assert_close(executable.execute(arguments), hlo.evaluate(module, *arguments))
    return executable


def kernel(executable: NumbaExecutable) -> str:
    """The text of the only kernel, without its comment."""
    (text,) = executable.kernels().values()
    return text[text.index("def ") :]


def program(executable: NumbaExecutable) -> list[str]:
    """The rows of the program, without their numbers."""
    return [line[4:].strip() for line in executable._program.to_text().splitlines()]


def floats(*dims: int) -> NDArray:
    return np.random.default_rng(0).standard_normal(dims).astype(np.float32)


def indices(limit: int, *dims: int) -> NDArray:
    """From below zero to beyond the limit."""
    return np.random.default_rng(1).integers(-2, limit + 2, dims).astype(np.int32)


def test_an_index_is_read_once_for_a_row() -> None:
    executable = checked(
        f"""HloModule m ENTRY e {{ x = f32[50,40] parameter(0)  i = s32[60,1] parameter(1)
          ROOT r = f32[60,40] gather(x, i), {ROWS}, slice_sizes={{1,40}} }}""",
        [floats(50, 40), indices(50, 60, 1)],
    )
    text = kernel(executable)
    start = next(line for line in text.splitlines() if "x1[" in line)
    inner = next(line for line in text.splitlines() if "for j" in line)
    assert text.index(start) < text.index(inner)


def test_ranks_make_no_difference() -> None:
    flat = checked(
        f"""HloModule m ENTRY e {{ x = f32[50,42] parameter(0)  i = s32[60,1] parameter(1)
          ROOT r = f32[60,42] gather(x, i), {ROWS}, slice_sizes={{1,42}} }}""",
        [floats(50, 42), indices(50, 60, 1)],
    )
    deep = checked(
        """HloModule m ENTRY e { x = f32[50,1,6,7] parameter(0)  i = s32[3,1,20,1] parameter(1)
          ROOT r = f32[3,1,20,1,6,7] gather(x, i), offset_dims={3,4,5}, collapsed_slice_dims={0}, start_index_map={0},
            index_vector_dim=3, slice_sizes={1,1,6,7} }""",
        [floats(50, 1, 6, 7), indices(50, 3, 1, 20, 1)],
    )
    assert kernel(flat) == kernel(deep)


def test_what_makes_indices_and_what_uses_rows_is_one_kernel() -> None:
    executable = checked(
        f"""HloModule m {ADD}
        ENTRY e {{ x = f32[50,40] parameter(0)  i = s32[60] parameter(1)  n = s32[] constant(50)
          m = s32[60] broadcast(n), dimensions={{}}  z = s32[] constant(0)  o = s32[60] broadcast(z), dimensions={{}}
          b = pred[60] compare(i, o), direction=LT  j = s32[60] add(i, m)  k = s32[60] select(b, j, i)
          v = s32[60,1] reshape(k)  y = f32[50,40] tanh(x)
          g = f32[60,40] gather(y, v), {ROWS}, slice_sizes={{1,40}}
          s = f32[] constant(0)  ROOT r = f32[60] reduce(g, s), dimensions={{1}}, to_apply=add }}""",
        [floats(50, 40), indices(50, 60)],
    )
    text = executable.kernels()
    assert sum("reduce_add" in t for t in text.values()) == 1
    assert len(text) <= 2, "the table may be computed before, the rest is one"


def test_an_array_of_its_own_indices() -> None:
    checked(
        """HloModule m ENTRY e { x = s32[4,3] parameter(0)
          ROOT g = s32[4,4,3] gather(x, x), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1},
            index_vector_dim=2, slice_sizes={4,1} }""",
        [indices(3, 4, 3)],
    )


LOOP = f"""HloModule m {ADD}
body {{ s = (s32[], f32[40,30], s32[5,1], f32[5,30]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = f32[40,30] get-tuple-element(s), index=1  at = s32[5,1] get-tuple-element(s), index=2
  u = f32[5,30] get-tuple-element(s), index=3  one = s32[] constant(1)  j = s32[] add(i, one)
  y = f32[40,30] scatter(x, at, u), {UPDATE_ROWS}
  ROOT t = (s32[], f32[40,30], s32[5,1], f32[5,30]) tuple(j, y, at, u) }}
condition {{ s = (s32[], f32[40,30], s32[5,1], f32[5,30]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)  ROOT r = pred[] compare(i, n), direction=LT }}
ENTRY e {{ x = f32[40,30] parameter(0)  at = s32[5,1] parameter(1)  u = f32[5,30] parameter(2)  z = s32[] constant(0)
  s = (s32[], f32[40,30], s32[5,1], f32[5,30]) tuple(z, x, at, u)
  w = (s32[], f32[40,30], s32[5,1], f32[5,30]) while(s), condition=condition, body=body
  ROOT r = f32[40,30] get-tuple-element(w), index=1 }}"""


def test_a_scatter_in_a_loop_works_in_place() -> None:
    executable = checked(LOOP, [floats(40, 30), indices(40, 5, 1), floats(5, 30)])
    rows = program(executable)
    copies = [n for n, row in enumerate(rows) if row.startswith("copy") and "4800 bytes" in row]
    loop = next(n for n, row in enumerate(rows) if "native_loop" in row)
    assert len(copies) == 1 and copies[0] < loop, rows
    (text,) = [text for text in executable.kernels().values() if "native_loop" in text]
    assert "1200" not in text, "a copy of the array in the loop"


def test_a_donated_array_is_updated_where_it_lies() -> None:
    text = f"""HloModule m {ADD}
    ENTRY e {{ x = f32[40,30] parameter(0)  at = s32[5,1] parameter(1)  u = f32[5,30] parameter(2)
      ROOT y = f32[40,30] scatter(x, at, u), {UPDATE_ROWS} }}"""
    arguments = [floats(40, 30), indices(40, 5, 1), floats(5, 30)]
    assert not any(row.startswith("copy") for row in program(checked(text, arguments, donated=(0,))))
    assert any(row.startswith("copy") for row in program(checked(text, arguments)))


def test_updates_that_are_the_array() -> None:
    text = f"""HloModule m {ADD}
    ENTRY e {{ x = f32[5,30] parameter(0)  at = s32[5,1] parameter(1)  y = f32[5,30] negate(x)
      ROOT r = f32[5,30] scatter(y, at, y), {UPDATE_ROWS} }}"""
    checked(text, [floats(5, 30), np.array([[1], [0], [1], [4], [1]], np.int32)])


@pytest.mark.parametrize(
    ("unique", "columns", "extent"), [(False, 200, 4), (True, 200, 250), (False, 600, 600)],
    ids=["owners", "unique", "columns"],
)  # fmt: skip
def test_threads_share_the_work(
    unique: bool, columns: int, extent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "get_num_threads", lambda: 2)
    rng = np.random.default_rng(0)
    at = rng.permutation(301)[:250] if unique else rng.integers(0, 302, 250)
    with small_pieces():
        executable = checked(
            f"""HloModule m {ADD}
            ENTRY e {{ x = f32[300,{columns}] parameter(0)  at = s32[250,1] parameter(1)
              u = f32[250,{columns}] parameter(2)
              ROOT y = f32[300,{columns}] scatter(x, at, u), {UPDATE_ROWS}, unique_indices={str(unique).lower()} }}""",
            [floats(300, columns), at[:, None].astype(np.int32) - 1, floats(250, columns)],
        )
    (row,) = [row for row in program(executable) if row.startswith("kernel") and "scatter" in row]
    assert f"for {extent}" in row and "by" in row


EXTREMES = np.array([0, -1, 1, 4, 5, 6, 7, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**32, 2**32 + 3], np.int64)


@pytest.mark.parametrize("element", ["s32", "u32", "s64", "u64", "s8", "u8"])
@pytest.mark.parametrize("at_end", [True, False], ids=["end", "begin"])
def test_wild_indices_stay_inside(element: str, at_end: bool) -> None:
    """The memory around each buffer is inaccessible."""
    dtype = hlo.ElementType(element).dtype
    at = np.stack([EXTREMES, EXTREMES[::-1]], axis=1).astype(dtype)
    count = len(at)
    gather = f"""HloModule m ENTRY e {{ x = f32[7,5] parameter(0)  i = {element}[{count},2] parameter(1)
      ROOT r = f32[{count},3] gather(x, i), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0,1}},
        index_vector_dim=1, slice_sizes={{1,3}} }}"""
    scatter = f"""HloModule m {ADD}
    ENTRY e {{ x = f32[7,5] parameter(0)  i = {element}[{count},2] parameter(1)  u = f32[{count},3] parameter(2)
      ROOT r = f32[7,5] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},
        scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=1, to_apply=add }}"""
    for text, arguments in ((gather, [floats(7, 5), at]), (scatter, [floats(7, 5), at, floats(count, 3)])):
        module = hlo.parse(text)
        results = GuardedProgram(module, at_end=at_end).run(arguments)
        assert_close(results, hlo.evaluate(module, *arguments))


@pytest.mark.parametrize("count", [16, 17, 255, 256, 257, 700])
@pytest.mark.parametrize("combiner", ["add(a, b)", "maximum(a, b)", "copy(b)"])
def test_places_of_single_elements_are_prepared_in_blocks(count: int, combiner: str) -> None:
    """In their order; those outside of the array, along one dimension or the other, are left out."""
    text = f"""HloModule m
    f {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] {combiner} }}
    ENTRY e {{ x = f32[6,7] parameter(0)  i = s64[{count},2] parameter(1)  u = f32[{count}] parameter(2)
      ROOT r = f32[6,7] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0,1}},
        scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=1, to_apply=f }}"""
    rng = np.random.default_rng(count)
    at = rng.integers(-2, 9, (count, 2))
    at[3], at[5] = (2**62, 1), (1, -(2**63))
    updates = floats(count)
    updates[7] = np.nan
    executable = checked(text, [floats(6, 7), at, updates])
    assert ("places" in "".join(executable.kernels().values())) is (count > 16)
    found = GuardedProgram(hlo.parse(text), at_end=True, pattern=0xFF).run([floats(6, 7), at, updates])[0]
    np.testing.assert_array_equal(found, hlo.evaluate(hlo.parse(text), floats(6, 7), at, updates)[0])
