"""Elementary functions that a kernel calls often: functions of its module (`runtime/math/outlined.py`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hloom.numba_backend.runtime import dialect
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.llvm_backend import optimise
from hloom.numba_backend.runtime.math.slow_path import widths_of

import hloom
import hloom.numpy as jnp
from hloom import hlo

SPECIAL = (0.0, -0.0, 1e-40, -1e-40, np.inf, -np.inf, np.nan, 1e30, -1e5, 88.0, 0.5, -0.5)


def largest(function: Callable[[Any], Any], count: int) -> Callable[[Any], Any]:
    """The largest of function(x - k) for each k."""

    def program(x: Any) -> Any:
        found = function(x)
        for k in range(1, count):
            found = jnp.maximum(found, function(x - k))
        return found

    return program


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["exp", "tanh", "sin", "log", "arctan", "cbrt"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_called_often_is_called_once(name: str, dtype: Any) -> None:
    """The vector and scalar versions have the bits that a kernel with one call has."""
    function = getattr(jnp, name)
    with hloom.enable_x64(dtype is np.float64):
        many, one = hloom.jit(largest(function, 30)), hloom.jit(function)
        for size in (0, 1, 7, 12, 67):
            x = np.resize(np.array(SPECIAL, dtype), size)
            expected = np.asarray(one(x))
            for k in range(1, 30):
                expected = np.maximum(expected, np.asarray(one(x - dtype(k))))
            np.testing.assert_array_equal(np.asarray(many(x)), expected)


def test_loops_that_call_are_vectorised() -> None:
    """The calls of the optimised loop are of a vector version, which is no loop any more."""
    calls = " + ".join(f"exp(x[i + {k}])" for k in range(30))
    text = f"def k(lo, hi, x, out):\n    for i in range(lo, hi):\n        out[i] = {calls}\n"
    parameters = (Parameter("pointer", "f32"), Parameter("pointer", "f32"))
    lowered = to_llvm(KernelSource("k", text, parameters), dialect.SCOPE, "one pass")
    with llvm.create_context() as context, llvm.parse_assembly(lowered, context) as module:
        optimise(module, True)
        optimised, widths = str(module), widths_of(module)
    assert any(optimised.count(f"<{width} x float> @exp_0.v{width}(") >= 30 for width in widths)
    for width in widths:
        body = optimised[optimised.index(f"@exp_0.v{width}(<{width} x float> %") :]
        body = body[: body.index("\n}")]
        assert " br " not in body and "alloca" not in body


@pytest.mark.parametrize("taps", [7, 9])
def test_long_sums_are_cut_where_few_values_cross(taps: int) -> None:
    """Two sums over neighbours; one is read only after the other: no kernel keeps all weights."""
    size = 13

    def program(x: Any) -> Any:
        above = below = jnp.zeros((size, size), x.dtype)
        for i in range(taps):
            for j in range(taps):
                here = x[i : i + size, j : j + size]
                weight = jnp.exp(-((here - x[taps : taps + size, taps : taps + size]) ** 2) - i - j)
                above, below = above + weight * here, below + weight
        return above / below

    x = np.random.default_rng(0).random((size + 2 * taps, size + 2 * taps), np.float32)
    lowered = hloom.jit(program).lower(x)
    text = lowered.compile().as_text()
    results = [line.split(" fusion(")[0].count("f32[") for line in text.splitlines() if " fusion(" in line]
    assert results and max(results) <= 5  # two sums, and a weight that is not complete yet
    (expected,) = hlo.evaluate(lowered.module, x)
    np.testing.assert_allclose(np.asarray(hloom.jit(program)(x)), np.asarray(expected), rtol=1e-5)
