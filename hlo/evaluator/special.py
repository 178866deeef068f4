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


def complex_magnitude(x: NDArray) -> Any:
    """sqrt(a a + b b), NaN if a part is NaN, also where the other is infinite."""
    return np.where(np.isnan(x), x.real.dtype.type(np.nan), np.abs(x))


def complex_power(x: NDArray, y: NDArray) -> Any:
    """x ** y with the principal logarithm. x ** 0 and 1 ** y are 1; positive real powers of 0 are 0; real powers of
    positive infinity are infinity or 0. All else with a zero base or a part that is not finite is NaN."""
    result = np.where((x != 0) & np.isfinite(x) & np.isfinite(y), np.power(x, y), complex(np.nan, np.nan))
    is_real, infinite = y.imag == 0, (x.real == np.inf) & (x.imag == 0)
    result = np.where(is_real & (((x == 0) & (y.real > 0)) | (infinite & (y.real < 0))), 0j, result)
    result = np.where(is_real & infinite & (y.real > 0), complex(np.inf, 0), result)
    return np.where((y == 0) | (x == 1), 1 + 0j, result).astype(x.dtype)
