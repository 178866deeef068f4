"""Rows of loops with functions or neighbours end with a vector under a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.statements import For, walk
from hloom.numba_backend.runtime import llvm_backend
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.row_ends import RowEnd, row_end

import hloom
import hloom.numpy as hnp

TYPES = {"lo": "int64", "hi": "int64", "x": "float32*", "y": "float32*", "h": "uint8*", "d": "float64*", "n": "int64"}
ENDS = {
    "x[i * n + j] = exp(y[i * n + j])": RowEnd(16, 1),
    "x[i * n + j] = exp(float32(d[i * n + j]))": RowEnd(8, 1),
    "h[i * n + j] = uint8(h[i * n + j + 1] + h[i * n + j])": None,
    "x[i * n + j] = y[i * n + j] + y[i * n + (j + 1)]": RowEnd(16, 4),
    "acc = reduce_add(acc, exp(y[i * n + j]))": RowEnd(16, 1),
    "acc = reduce_add(acc, y[i * n + j] + y[i * n + (j + 1)])": None,
    "acc = acc + exp(y[i * n + j])": None,
    "acc = reduce_add(acc, exp(float32(j)))": None,
    "acc = reduce_add(exp(acc), y[i * n + j])": None,
    "x[i * n + j] = y[i * n + j] * y[i * n + j]": None,
    "x[i * n + j] = exp(x[i * n + j])": None,
    "x[j * n + i] = exp(y[i * n + j])": None,
}


@pytest.mark.parametrize("statement", ENDS)
def test_rows_that_pay(statement: str) -> None:
    text = f"def k({', '.join(TYPES)}):\n    for i in range(lo, hi):\n        acc = float32(0)\n"
    text += f"        for j in range(n):\n            {statement}\n"
    (outer, inner) = [s for s in walk(read(text, TYPES).body) if isinstance(s, For)]
    assert row_end(outer, 64) is None
    assert row_end(inner, 64) == ENDS[statement]
    for bound, other in (("range(n)", "range(16)"), ("range(n)", "range(lo, hi)"), ("range(n)", "range(0, n, 2)")):
        (_, inner) = [s for s in walk(read(text.replace(bound, other), TYPES).body) if isinstance(s, For)]
        assert row_end(inner, 64) is None


TEXT = """\
def rows(lo, hi, x, out, n):
    for i in range(lo, hi):
        for j in range(n):
            out[i * n + j] = exp(x[i * n + j])
"""
PARAMETERS = (Parameter("pointer", "f32"), Parameter("pointer", "f32"), Parameter("scalar", "s64"))


def test_the_end_is_one_vector() -> None:
    """No loop over single elements is left."""
    ir = to_llvm(KernelSource("rows", TEXT, PARAMETERS), SCOPE)
    if "vectorize.width" not in ir:
        pytest.skip("the processor has no masks")
    with llvm.create_context() as context, llvm.parse_assembly(ir, context) as module:
        llvm_backend.optimise(module, llvm_backend.widens_straight_lines(ir))
        text = str(module)
    assert "llvm.masked.store" in text
    assert "store float " not in text


def points(u: Any) -> Any:
    return u[1:-1, 1:-1] * -4 + u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "function": lambda x: hnp.tanh(x + x[0]),
    "neighbours": points,
    "softmax": hloom.nn.softmax,
    "two results": lambda x: (hnp.exp(x - x[0]), hnp.sin(x + x[0])),
    "truth": lambda x: hnp.exp(x + x[0]) > 1,
}
WIDTHS = [*range(17, 36), 47, 64, 65, 100, 127]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_of_every_width(name: str, dtype: Any) -> None:
    """Rows with all rests of whole vectors; the rows after one show whether it is stored beyond its end."""
    rng = np.random.default_rng(len(name))
    with hloom.enable_x64(True):
        for width in WIDTHS:
            x = rng.uniform(-2, 2, (11, width)).astype(dtype)
            x[3, -1], x[4, 0] = np.inf, np.nan
            module = hloom.make_hlo(PROGRAMS[name])(x)
            found, expected = NumbaCompiler().compile(module).execute((x,)), evaluate(module, x)
            for a, b in zip(found, expected, strict=True):
                rounding = 8 * float(np.finfo(dtype).eps)
                wide = (np.asarray(v).astype(np.float64) for v in (a, b))
                np.testing.assert_allclose(*wide, rtol=rounding, atol=rounding, err_msg=str(width))
