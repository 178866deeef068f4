"""Maxima and minima with a constant: one comparison where the constant is neither NaN nor zero, and always the same
results as the evaluator's, with the signs of zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
BOUNDS = (1.0, -1.0, 0.5, float("inf"), float("-inf"), 2.0**-14)
OTHERS = (0.0, -0.0, float("nan"))
"""Of these, the sign or the bits of the result may be the other number's."""
VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -7.0, float("inf"), float("-inf"), float("nan"), 2.0**-14, -(2.0**-14))

FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": lambda x, c: jnp.maximum(x, c),
    "maximum of a constant": lambda x, c: jnp.maximum(c, x),
    "minimum": lambda x, c: jnp.minimum(x, c),
    "of a sum": lambda x, c: jnp.minimum(c, jnp.maximum(x + x, c)),
    "clamp from": lambda x, c: lax.clamp(c, x, x * 2),
    "clamp to": lambda x, c: lax.clamp(x * 2, x, c),
    "sum": lambda x, c: jnp.max(jnp.maximum(x[:2], c)),
}


def with_bound(form: Callable[[Any, Any], Any], bound: Any) -> Any:
    return hloom.jit(lambda x: form(x, bound))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_bounds(form: str, dtype: str) -> None:
    kind = DTYPES[dtype]
    with hloom.enable_x64(dtype == "f64"):
        x = np.resize(np.array(VALUES, kind), 37)
        for bound in (*BOUNDS, *OTHERS):
            program = with_bound(FORMS[form], kind(bound))
            with np.errstate(all="ignore"):
                (want,) = hloom.run_hlo(program.lower(x).as_text(), x, backend="evaluator")
            got = np.asarray(program(x))
            assert got.dtype == want.dtype
            bits = f"u{got.dtype.itemsize}"
            nan = np.isnan(want.astype(np.float64))
            np.testing.assert_array_equal(nan, np.isnan(got.astype(np.float64)))
            np.testing.assert_array_equal(np.where(nan, 0, got.view(bits)), np.where(nan, 0, want.view(bits)))


@pytest.mark.parametrize("bound", (*BOUNDS, *OTHERS))
def test_which_bounds_are_compared(bound: float) -> None:
    x = np.zeros(9, np.float32)
    compiled = hloom.jit(lambda x: jnp.maximum(x, np.float32(bound)) * 3).lower(x).compile()
    (text,) = map(str, compiled.kernels().values())
    assert ("maximum(" in text) == (bound == 0 or bound != bound)
