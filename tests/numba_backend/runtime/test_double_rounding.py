"""Functions of f16 that are computed in f64 are rounded to f32, then to f16, in vectors and one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.runtime.double_rounding import with_both_roundings

import hloom
import hloom.numpy as hnp

TEXT = """\
  %a = fptrunc double %x to float
  %b = fptrunc float %a to half
  %c = fptrunc float %d to half
  %e = fptrunc <4 x double> %f to <4 x float>
  %g = fptrunc <4 x float> %e to <4 x half>
"""


def test_a_fence_is_between_them() -> None:
    fence = "  %both.roundings.0 = call float @llvm.arithmetic.fence.f32(float %a)\n"
    expected = TEXT.replace("  %b = fptrunc float %a", fence + "  %b = fptrunc float %both.roundings.0")
    assert with_both_roundings(TEXT) == expected + "\ndeclare float @llvm.arithmetic.fence.f32(float)\n"
    other = TEXT.replace("float %a to half", "float %z to half")
    assert with_both_roundings(other) == other


@pytest.mark.parametrize("width", [1, 7, 71])
@pytest.mark.parametrize("function", [hnp.sin, hnp.cos, lambda x: x**1.7])
def test_rows_that_end_with_single_elements(function, width: int) -> None:  # type: ignore[no-untyped-def]
    """The process ended here: the code called a function that is nowhere."""

    def run(x, b):  # type: ignore[no-untyped-def]
        y = hnp.tanh(function(x + b)) / x[:, :1]
        return y, y.max(-1)

    rng = np.random.default_rng(width)
    x, b = rng.uniform(0.1, 3, (5, width)).astype(np.float16), rng.uniform(0.1, 3, width).astype(np.float16)
    module = hloom.make_hlo(run)(x, b)
    for found, expected in zip(NumbaCompiler().compile(module).execute((x, b)), evaluate(module, x, b), strict=True):
        np.testing.assert_allclose(np.float32(found), np.float32(expected), rtol=4e-3, atol=4e-3)
