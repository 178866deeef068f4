"""Kernels that follow a product row by row: which do, that results are right, and what timelines say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.hlo.evaluator import evaluate
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.output_fusion import find
from hloom.numba_backend.runtime import threads
from hloom.numba_backend.runtime.blas import BatchDimension, Gemm
from hloom.numba_backend.runtime.chain import Stage
from hloom.numba_backend.runtime.errors import ProgramError
from hloom.numba_backend.runtime.executor import Op
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.program import ProgramBuilder, pointer, size

import hloom
import hloom.numpy as jnp


@pytest.fixture(autouse=True)
def all_products(narrow_registers: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small ones too, on a machine where BLAS has most products."""
    monkeypatch.setattr(find, "least_bytes", lambda: 0)
    yield
    threads.set_num_threads(None)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def softmax(x: Any) -> Any:
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


M, K, N = 700, 300, 48
X, W, B, C, R = numbers(M, K), numbers(K, N) / 8, numbers(N), numbers(M, N), numbers(M)
Q, S = numbers(3, 2, 300, 270), numbers(3, 2, 64, 270)

FOLLOWS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "bias": (lambda x, w, b: x @ w + b, (X, W, B)),
    "bias and relu": (lambda x, w, b: jnp.maximum(x @ w + b, 0), (X, W, B)),
    "gelu": (lambda x, w, b: hloom.nn.gelu(x @ w + b), (X, W, B)),
    "residual": (lambda x, w, c: c + x @ w, (X, W, C)),
    "scaling": (lambda x, w: 0.125 * (x @ w), (X, W)),
    "a factor for each row": (lambda x, w, r: (x @ w) * r[:, None], (X, W, R)),
    "sum of products": (lambda x, w, y, v: x @ w + y @ v, (X, W, X[::-1].copy(), numbers(K, N)[::-1].copy())),
    "softmax": (lambda x, w: softmax(x @ w), (X, W)),
    "norm of rows": (lambda x, w, b: jnp.sqrt(((x @ w + b) ** 2).sum(-1)), (X, W, B)),
    "attention scores": (lambda q, s: softmax(jnp.einsum("bhqd,bhkd->bhqk", q, s) / 16.0), (Q, S)),
    "in another type": (lambda x, w: (x @ w).astype(jnp.int32), (X, W)),
    "the product is needed too": (lambda x, w: (x @ w, jnp.tanh(x @ w)), (X, W)),
}
DO_NOT: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "sum of columns": (lambda x, w: jnp.tanh(x @ w).sum(0), (X, W)),
    "other rows": (lambda x, w: (x @ w)[::-1] * 2, (X, W)),
    "shifted rows": (lambda x, w: (lambda y: y[1:] + y[:-1])(x @ w), (X, W)),
    "sum of all": (lambda x, w: (x @ w).sum(), (X, W)),
    "a vector": (lambda x, v: jnp.tanh(x @ v), (numbers(4000, 300), numbers(300))),
}
CASES = {**FOLLOWS, **DO_NOT}


def products(function: Callable[..., Any], args: tuple[np.ndarray, ...]) -> list[str]:
    """The rows of products, as text."""
    program = hloom.jit(function).lower(*args).compile().executable._program  # type: ignore[attr-defined]
    return [str(row) for row in program.rows if row.op is Op.GEMM]


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_evaluator(name: str) -> None:
    """On one thread, and on two, where pieces of rows are computed at the same time."""
    function, args = CASES[name]
    module = parse(hloom.jit(function).lower(*args).as_text())
    expected = evaluate(module, *args)
    executable = NumbaCompiler().compile(module)
    rows = [str(row) for row in executable._program.rows if row.op is Op.GEMM]
    assert any(" then " in row for row in rows) == (name in FOLLOWS), rows
    for count in (1, 2):
        threads.set_num_threads(count)
        for wanted, actual in zip(expected, executable.execute(list(args)), strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=2e-4, atol=2e-4)


def test_an_operand_is_not_overwritten_before_all_rows_have_read_it() -> None:
    """The operand of the first product is unused after it, and has the size of the later results."""
    text = """HloModule m
    ENTRY e {
      x = f32[640,640] parameter(0)
      w = f32[640,640] parameter(1)
      y = f32[640,640] sine(x)
      p = f32[640,640] dot(w, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      s = f32[640,640] add(p, w)
      q = f32[640,640] dot(s, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      t = f32[640,640] multiply(q, s)
      r = f32[640,640] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT u = f32[640,640] subtract(r, t)
    }"""
    module = parse(text)
    x, w = numbers(640, 640), numbers(640, 641)[:, 1:] / 30
    (expected,) = evaluate(module, x, np.ascontiguousarray(w))
    executable = NumbaCompiler().compile(module)
    for count in (1, 2):
        threads.set_num_threads(count)
        (actual,) = executable.execute([x, np.ascontiguousarray(w)])
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4)


PLUS_ROW = """def plus_row(lo, hi, c, n):
    for i in range(lo, hi):
        for j in range(n):
            c[i * n + j] = c[i * n + j] + float32(i)
"""
PLUS_PLACE = """def plus_place(lo, hi, c):
    for i in range(lo, hi):
        c[i] = c[i] * float32(2) + float32(i)
"""


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("batch", "m", "k", "n"),
    [((), 1000, 30, 700), ((), 513, 200, 31), ((), 2048, 300, 2048), ((), 40, 300, 300), ((), 2, 3, 5),
     ((5,), 64, 33, 65), ((2, 3), 700, 20, 9), ((1,), 9, 1, 2)],
    ids=str,
)  # fmt: skip
def test_each_row_is_followed_once(batch: tuple[int, ...], m: int, k: int, n: int, count: int) -> None:
    """However a product is cut, also where it is too small to be cut along its rows: kernels with a turn for each row,
    for each element and for each few rows see every row once, after the product and in order."""
    a, b = numbers(*batch, m, k), numbers(*batch, k, n)
    c = np.full((*batch, m, n), np.nan, np.float32)
    items = int(np.prod(batch))
    rows = items * m
    steps = [(int(np.prod(batch[d + 1 :])) * m * k, int(np.prod(batch[d + 1 :])) * k * n) for d in range(len(batch))]
    strides = [int(np.prod(batch[d + 1 :])) * m * n for d in range(len(batch))]
    dimensions = tuple(BatchDimension(s, *ab, cs) for s, ab, cs in zip(batch, steps, strides))
    by_row = KernelSource("plus_row", PLUS_ROW, (Parameter("pointer", "f32"), Parameter("size", "s64")))
    by_place = KernelSource("plus_place", PLUS_PLACE, (Parameter("pointer", "f32"),))
    few = items if items > 1 else 1
    by_few = KernelSource(
        "plus_few",
        "def plus_few(lo, hi, c, n):\n    for i in range(lo, hi):\n        for j in range(n):\n"
        "            c[i * n + j] = c[i * n + j] - float32(i)\n",
        (Parameter("pointer", "f32"), Parameter("size", "s64")),
    )
    builder = ProgramBuilder()
    builder.gemm(
        Gemm("f32", m, n, k, "N", "N", k, n, n, batch=dimensions), pointer(0), pointer(1), pointer(2),
        [Stage(by_row, (pointer(2), size(n)), rows, 100, 1.0), Stage(by_place, (pointer(2),), rows * n, 0, 1.0),
         Stage(by_few, (pointer(2), size(rows // few * n)), few, 1, 1.0)],
    )  # fmt: skip
    threads.set_num_threads(count)
    builder.build().run([v.ctypes.data for v in (a, b, c)])
    expected = (a.astype(np.float64) @ b).reshape(rows, n) + np.arange(rows)[:, None]
    expected = expected * 2 + np.arange(rows * n).reshape(rows, n)
    expected -= np.repeat(np.arange(few), rows // few)[:, None]
    np.testing.assert_allclose(c.reshape(rows, n), expected, rtol=1e-4, atol=1e-3)


def test_a_product_with_a_vector_has_no_rows() -> None:
    kernel = KernelSource("plus_place", PLUS_PLACE, (Parameter("pointer", "f32"),))
    builder = ProgramBuilder()
    with pytest.raises(ProgramError, match="cannot follow"):
        builder.gemm(
            Gemm("f32", 9, 1, 4, "N", "N", 4, 1, 1), pointer(0), pointer(1), pointer(2),
            [Stage(kernel, (pointer(2),), 9, 0, 1.0)],
        )  # fmt: skip


def test_kernels_and_timelines_show_what_follows(tmp_path: Any) -> None:
    function, args = FOLLOWS["bias and relu"]
    compiled = hloom.jit(function)
    lowered = compiled.lower(*args).compile()
    assert any("fused_add_maximum" in text for text in lowered.kernels().values())
    assert any("then fused_add_maximum" in row for row in products(function, args))
    with hloom.profiler.trace(str(tmp_path)) as recorded:
        compiled(*args).block_until_ready()
    del recorded
    text = "".join(path.read_text() for path in tmp_path.rglob("*.json"))
    assert "@ [300x48] + fused_add_maximum" in text
