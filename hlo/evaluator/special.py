"""Functions that NumPy lacks, or defines otherwise than XLA: written out here for the elementwise rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from .table import NDArray


def erf(x: NDArray) -> Any:
    """The error function. SciPy is imported at the first use; the evaluator needs it only for this."""
    from scipy.special import erf as scipy_erf

    return scipy_erf(x)


def atan2(y: NDArray, x: NDArray) -> Any:
    """The angle of (x, y). For complex numbers its continuation, -i log((x + i y) / sqrt(x x + y y))."""
    if y.dtype.kind != "c":
        return np.arctan2(y, x)
    i = y.dtype.type(1j)
    return -i * np.log((x + i * y) / np.sqrt(x * x + y * y))


def complex_power(x: NDArray, y: NDArray) -> Any:
    """x ** y with the principal logarithm; 0 ** y is 1 for y = 0."""
    return np.power(x, y)
