"""Long functions of the results of rows, for a block of rows: which loops are split, the same bits, and nothing beyond
the ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo import parse
from hloom.numba_backend import emitted_kernel
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.loops.expressions import Load, Name, Number, call
from hloom.numba_backend.loops.row_tails import with_row_tails
from hloom.numba_backend.loops.statements import Assign, Block, For, LocalArray, LoopProgram, Store

import hloom
import hloom.numpy as jnp
from support.guarded import GuardedProgram

ROWS: dict[str, tuple[Callable[..., Any], bool]] = {
    # function, whether its loop is split
    "logsumexp": (lambda x, y: hloom.nn.logsumexp(x, 1), True),
    "two results": (lambda x, y: (jnp.tanh(x.sum(1)) * y, jnp.exp(x.max(1)) + y), True),
    "other arrays": (lambda x, y: jnp.sin((x * x).sum(1) * y) + jnp.cos(y), True),
    "short functions": (lambda x, y: jnp.sqrt((x * x).sum(1)) + y, False),
    "elements": (lambda x, y: x - jnp.log(jnp.exp(x).sum(1, keepdims=True)), False),
}


@pytest.fixture(autouse=True)
def short_kernels_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitted_kernel, "IN_STAGES", 0.0)


def _bits(values: Any) -> np.ndarray:
    """All NaN are one: which one an operation gives depends on the order of its operands in an instruction."""
    values = np.asarray(values)
    return np.where(np.isnan(values), values.dtype.type(np.nan), values).view(np.uint8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ROWS)
def test_results_are_the_same_bits(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, is_split = ROWS[name]
    for shape in ((2, 3), (255, 5), (256, 20), (257, 6), (1000, 2)):
        rng = np.random.default_rng(3)
        given = [rng.standard_normal(shape).astype(dtype), rng.standard_normal(shape[0]).astype(dtype)]
        some = given[0][:: max(shape[0] // 5, 1), 0]
        some[:] = np.resize([np.nan, np.inf, -np.inf, 1e-40, 80.0], some.size)
        with hloom.enable_x64(dtype == "float64"):
            module = parse(hloom.jit(function).lower(*given).as_text())
        text = "".join(NumbaCompiler().compile(module).kernels().values())
        assert ("[i - start0]" in text) == is_split
        results = [GuardedProgram(module, at_end=at_end, pattern=0xFF).run(given) for at_end in (True, False)]
        with monkeypatch.context() as patch:
            patch.setattr(emitted_kernel, "IN_STAGES", float("inf"))
            expected = NumbaCompiler().compile(module).execute(given)
        for found in results:
            for actual, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal(_bits(actual), _bits(wanted))


def _program(tail: Block, x: str = "x") -> LoopProgram:
    """A sum of a row of four, and what comes after it."""
    pointer, total = Name(x, "float32*"), Name("total", "float32")
    i, j = Name("i"), Name("j")
    added = Assign((total,), (total + Load(pointer, i * 4 + j),))
    first = Assign((total,), (call("float32", Number(0)),))
    rows = For(i, Name("lo"), Name("hi"), 1, [first, For(j, None, Number(4), 1, [added]), *tail])
    return LoopProgram("sums", ("lo", "hi", "x", "out"), [rows])


def test_rows_that_wait_for_each_other_stay() -> None:
    total, i = Name("total", "float32"), Name("i")
    written = Store(Name("out", "float32*"), i, call("log", total))
    assert isinstance(with_row_tails(_program([written])).body[0], LocalArray)
    over = _program([Store(Name("x", "float32*"), i, call("log", total))])  # later rows may be read from it
    again = _program([Assign((total,), (call("log", total),)), Store(Name("out", "float32*"), i, total)])
    for program in (over, again):
        assert with_row_tails(program) is program
