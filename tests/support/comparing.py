"""Compares the results of two modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule

Array = np.ndarray[Any, Any]


def assert_same_results(before: HloModule, after: HloModule, arguments: Sequence[Array], rtol: float = 1e-5) -> None:
    """Both modules give the same dtypes, dimensions and, within `rtol`, values; NaN in the same places, and zeros of
    the same sign."""
    assert_same_arrays(evaluate(before, *arguments), evaluate(after, *arguments), rtol)


def assert_same_arrays(expected: Sequence[Array], actual: Sequence[Array], rtol: float = 1e-5) -> None:
    assert len(expected) == len(actual)
    for a, b in zip(expected, actual, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
            continue
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(wide), b.astype(wide)
        np.testing.assert_allclose(y, x, rtol=rtol, atol=1e-6)
        for part in ("real", "imag"):
            u, v = getattr(x, part), getattr(y, part)
            zero = (u == 0) & (v == 0)
            assert (np.signbit(u) == np.signbit(v))[zero].all(), "zeros of different sign"
