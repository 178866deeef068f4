"""Elements that are only moved keep their bits, those of signaling NaN too: arithmetic, and conversions to another type
of floats and back, would make them quiet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import evaluate, parse
from hloom.hlo.backend import get_compiler

import hloom
from hloom import numpy as jnp

TYPES = {
    "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64,
    "f8e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip

_FIRST = "s = T[1] slice(x), slice={[0:1]}  v = T[] reshape(s)"
_HALF = "b = T[2] slice(y), slice={[0:2]}"
_CHOICE = "p = pred[4] constant({1,0,0,1})"
_ROWS = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}"

MOVES = {
    "copy": "ROOT m = T[4] copy(x)",
    "bitcast-convert": (
        "b = U[4] bitcast-convert(x)  c = U[4] reverse(b), dimensions={0}  ROOT m = T[4] bitcast-convert(c)"
    ),
    "reverse": "ROOT m = T[4] reverse(x), dimensions={0}",
    "concatenate": "ROOT m = T[8] concatenate(x, y), dimensions={0}",
    "stack": "a = T[1,4] reshape(x)  b = T[1,4] reshape(y)  ROOT m = T[2,4] concatenate(a, b), dimensions={0}",
    "select": f"{_CHOICE}  ROOT m = T[4] select(p, x, y)",
    "pieces of a choice": (
        f"a = T[3] slice(x), slice={{[0:3]}}  b = T[1] slice(x), slice={{[3:4]}}  {_CHOICE}"
        "  c = T[4] concatenate(b, a), dimensions={0}  s = T[4] select(p, c, y)"
        "  ROOT m = T[12] concatenate(s, x, c), dimensions={0}"
    ),
    "gather": (
        "i = s32[3] constant({2,0,1})  ROOT m = T[3] gather(x, i), offset_dims={}, collapsed_slice_dims={0},"
        " start_index_map={0}, index_vector_dim=1, slice_sizes={1}"
    ),
    "transpose": "a = T[2,2] reshape(x)  ROOT m = T[2,2] transpose(a), dimensions={1,0}",
    "pad": f"{_FIRST}  ROOT m = T[9] pad(y, v), padding=1_1_1",
    "pad with zeros": "v = T[] constant(0)  ROOT m = T[9] pad(y, v), padding=1_1_1",
    "broadcast": f"{_FIRST}  ROOT m = T[3,5] broadcast(v), dimensions={{}}",
    "rows": "ROOT m = T[3,4] broadcast(x), dimensions={1}",
    "dynamic-slice": "i = s32[] constant(1)  ROOT m = T[2] dynamic-slice(x, i), dynamic_slice_sizes={2}",
    "dynamic-update-slice": f"i = s32[] constant(1)  {_HALF}  ROOT m = T[4] dynamic-update-slice(x, b, i)",
    "dynamic-update-slice inside": (
        f"i = s32[] constant(1)  {_HALF}  c = T[4] reverse(x), dimensions={{0}}"
        "  d = T[4] dynamic-update-slice(c, b, i)  ROOT m = T[4] reverse(d), dimensions={0}"
    ),
    "scatter": (
        f"i = s32[2] constant({{2,0}})  {_HALF}  ROOT m = T[4] scatter(x, i, b), {_ROWS}, index_vector_dim=1,"
        " to_apply=second"
    ),
    "map": "ROOT m = T[4] map(x, y), dimensions={0}, to_apply=second",
    "sort": (
        "k = s32[4] constant({3,1,2,0})  t = (s32[4], T[4]) sort(k, x), dimensions={0}, to_apply=less"
        "  ROOT m = T[4] get-tuple-element(t), index=1"
    ),
    "while": (
        f"n = s32[] constant(0)  {_FIRST}  t = (s32[], T[], T[4]) tuple(n, v, y)"
        "  w = (s32[], T[], T[4]) while(t), condition=first_three, body=step  c = T[] get-tuple-element(w), index=1"
        "  r = T[4] get-tuple-element(w), index=2  z = T[2] broadcast(c), dimensions={}"
        "  ROOT m = T[6] concatenate(z, r), dimensions={0}"
    ),
    "conditional": (
        "c = pred[] constant(1)"
        "  ROOT m = T[4] conditional(c, x, y), true_computation=reversed, false_computation=reversed"
    ),
}  # fmt: skip
"""Entry computations of x and y, T[4] each."""

_MODULE = """HloModule m
second { a = T[] parameter(0)  ROOT b = T[] parameter(1) }
less {
  a = s32[] parameter(0)  b = s32[] parameter(1)  c = T[] parameter(2)  d = T[] parameter(3)
  ROOT l = pred[] compare(a, b), direction=LT }
reversed { x = T[4] parameter(0)  ROOT r = T[4] reverse(x), dimensions={0} }
first_three {
  t = (s32[], T[], T[4]) parameter(0)  i = s32[] get-tuple-element(t), index=0  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
step {
  t = (s32[], T[], T[4]) parameter(0)  i = s32[] get-tuple-element(t), index=0
  v = T[] get-tuple-element(t), index=1  a = T[4] get-tuple-element(t), index=2
  o = s32[] constant(1)  j = s32[] add(i, o)  b = T[1] dynamic-slice(a, i), dynamic_slice_sizes={1}
  w = T[] reshape(b)  u = T[1] reshape(v)  c = T[4] dynamic-update-slice(a, u, i)
  ROOT r = (s32[], T[], T[4]) tuple(j, w, c) }
ENTRY e { x = T[4] parameter(0)  y = T[4] parameter(1)
"""


def _used_again(entry: str) -> str:
    """The entry computation, with a sum that computes with the elements that it moves."""
    before, after = entry.split("ROOT m = ")
    shape = after.split(" ")[0]
    return f"{before}m = {after}  plus = {shape} add(m, m)  ROOT both = ({shape}, {shape}) tuple(m, plus)"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("used", ["moved", "used again"])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("move", MOVES)
def test_moved_elements_keep_their_bits(move: str, name: str, used: str) -> None:
    dtype = np.dtype(TYPES[name])
    integer = np.dtype(f"u{dtype.itemsize}")
    largest, lowest = np.array([ml_dtypes.finfo(dtype).max, ml_dtypes.finfo(dtype).min], dtype).view(integer)
    x = np.array([largest + 2, lowest + 2, 1, largest + 2], integer)  # the next number is infinity, then comes NaN
    y = np.array([lowest + 2, 5, largest + 2, lowest + 2], integer)
    text = _MODULE + (MOVES[move] if used == "moved" else _used_again(MOVES[move])) + " }"
    bits = f"u{8 * dtype.itemsize}"
    text = text.replace("U[", f"{bits}[")
    expected = evaluate(parse(text.replace("T[", f"{bits}[")), x, y)[0]
    module = parse(text.replace("T[", f"{name}["))
    floats = [x.view(dtype), y.view(dtype)]
    for results in (evaluate(module, *floats), get_compiler("numba").compile(module).execute(floats)):
        np.testing.assert_array_equal(results[0].view(integer), expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, :2], lambda x: x[::-1, ::-1], lambda x: x[np.array([5, 0, 3])], lambda x: jnp.tile(x, (2, 3)),
        lambda x: x.reshape(5, 6, 16)[:, 1:, ::-1],
    ],
)  # fmt: skip
def test_preds_are_moved_as_bytes(function: Callable[[Any], Any]) -> None:
    """Each byte of a short row would be tested, where eight or more are copied at once."""
    x = np.random.default_rng(0).integers(0, 2, (30, 16)).astype(bool)
    compiled = hloom.jit(function).lower(x).compile()
    assert " != 0" not in str(compiled.kernels())
    with hloom.disable_jit():
        np.testing.assert_array_equal(compiled(x), function(hloom.numpy.asarray(x)))


def test_a_comparison_with_zero_is_no_move() -> None:
    x = np.array([[0, 1, 5, 255]], np.uint8)
    found = hloom.jit(lambda x: x[:, ::-1] != 0)(x)
    np.testing.assert_array_equal(np.asarray(found).view(np.uint8), [[1, 1, 1, 0]])
