"""A reduction means the same as its op: reduce, reduce-window and scatter give what applying the element-wise op to one
element after the other gives, in the evaluator, in compiled code and, where it is installed, in XLA."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import Opcode, Shape, element_type_of, evaluate, parse
from hloom.hlo.backend import get_compiler
from hloom.hlo.evaluator import evaluate_op
from hloom.hlo.ir import NO_ATTRIBUTES

from hloom.backend_check.op_values import NDArray

NAN, INF = float("nan"), float("inf")
TYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "c64": np.complex64}
REAL = (-0.0, 0.0, NAN, 1.0, -INF)
COMPLEX = (complex(-0.0, -0.0), complex(0, -0.0), 0j, complex(NAN, 1), complex(1, NAN), 1 + 2j, 1 + 3j, 2 + 0j)
OPS = ("add", "multiply", "maximum", "minimum")
PIECES = {
    "reduce": "f[N] reduce(x, i), dimensions={0}, to_apply=c",
    "reduce-minor": "f[N] reduce(t, i), dimensions={1}, to_apply=c",
    "reduce-window": "f[1,N] reduce-window(x, i), window={size=3x1}, to_apply=c",
    "scatter": "f[N] scatter(b, s, x), update_window_dims={1}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c",
}  # fmt: skip
"""Elements of x in each column join an initial value, the upper ones first."""

Run = Callable[[str, Sequence[NDArray]], NDArray]


def program(form: str, op: str, element_type: str, columns: int) -> str:
    """Form `form` of the reduction by `op`, on f[3,N] and a scalar."""
    text = f"""HloModule m

c {{
  a = f[] parameter(0)
  b = f[] parameter(1)
  ROOT r = f[] {op}(a, b)
}}

ENTRY e {{
  x = f[3,N] parameter(0)
  i = f[] parameter(1)
  b = f[N] broadcast(i), dimensions={{}}
  t = f[N,3] transpose(x), dimensions={{1,0}}
  s = s32[3,1] constant({{{{0}},{{0}},{{0}}}})
  ROOT result = {PIECES[form]}
}}
"""
    return re.sub(r"\bf\[", f"{element_type}[", re.sub(r"\bN\b", str(columns), text))


def by_evaluator(text: str, arguments: Sequence[NDArray]) -> NDArray:
    return evaluate(parse(text), *arguments)[0]


def by_numba(text: str, arguments: Sequence[NDArray]) -> NDArray:
    return get_compiler("numba").compile(parse(text)).execute(arguments)[0]


def by_xla(text: str, arguments: Sequence[NDArray]) -> NDArray:
    oracle = pytest.importorskip("support.xla_oracle")
    result: NDArray = oracle.run_hlo_text(text, *arguments)[0]
    return result


WAYS: dict[str, Run] = {"evaluator": by_evaluator, "numba": by_numba, "xla": by_xla}


def one_after_the_other(op: str, init: NDArray, rows: NDArray) -> NDArray:
    """The initial value, and then each row, combined by the element-wise op."""
    result = np.broadcast_to(init, rows.shape[1:])
    shape = Shape.array(element_type_of(init.dtype), result.shape)
    for row in rows:
        result = evaluate_op(Opcode(op), (result, row), NO_ATTRIBUTES, shape)
    return result


def assert_identical(actual: NDArray, expected: NDArray) -> None:
    """Zeros have the same sign; all NaN are equal."""
    for part in ("real", "imag") if expected.dtype.kind == "c" else ("real",):
        a, b = (getattr(x.astype(np.complex128), part) for x in (actual.reshape(expected.shape), expected))
        np.testing.assert_array_equal(a, b)
        number = ~np.isnan(b)
        np.testing.assert_array_equal(np.signbit(a[number]), np.signbit(b[number]))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", PIECES)
@pytest.mark.parametrize("element_type", TYPES)
@pytest.mark.parametrize("op", OPS)
def test_a_reduction_means_what_its_op_means(op: str, element_type: str, form: str, way: str) -> None:
    if way == "xla" and find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    dtype = TYPES[element_type]
    values = np.array(COMPLEX if element_type == "c64" else REAL, dtype)
    rows = np.array(list(product(values, repeat=3)), dtype).T.copy()
    text = program(form, op, element_type, rows.shape[1])
    for init in values:
        expected = one_after_the_other(op, np.asarray(init), rows)
        assert_identical(WAYS[way](text, (rows, np.asarray(init))), expected)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", ["evaluator", "numba"])
@pytest.mark.parametrize("size", [1, 7, 8, 9, 129, 1000])
@pytest.mark.parametrize("element_type", ["f32", "f64"])
def test_signs_of_zeros_in_long_reductions(element_type: str, size: int, way: str) -> None:
    """NumPy's and LLVM's vectorised loops have lanes, unrolled parts and rests; each must keep the sign."""
    dtype = TYPES[element_type]
    negative, zero = np.asarray(-0.0, dtype), np.asarray(0.0, dtype)
    for op, common, rare in (("add", negative, zero), ("maximum", negative, zero), ("minimum", zero, negative)):
        text = program("reduce", op, element_type, 1).replace("[3,1] parameter", f"[{size},1] parameter")
        text = "\n".join(line for line in text.splitlines() if not re.match(r"  (b = .*broadcast|t =|s =)", line))
        rows = np.full((size, 1), common, dtype)
        assert_identical(WAYS[way](text, (rows, common)), np.asarray([common]))
        for place in {0, size // 2, size - 1}:
            rows[:] = common
            rows[place] = rare
            assert_identical(WAYS[way](text, (rows, common)), np.asarray([rare]))
        rows[:] = common
        assert_identical(WAYS[way](text, (rows, rare)), np.asarray([rare]))
