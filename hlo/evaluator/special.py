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


def _wider(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.complex128 if dtype == np.complex64 else np.clongdouble)


def complex_quotient(x: NDArray, y: NDArray) -> Any:
    """x / y as in C99 (G.5.1): where both parts are NaN, an infinity over a finite number is infinite, a finite number
    over an infinity is 0, and x over 0 is infinite where a part of x is not 0. In a wider type, because NumPy's
    quotient underflows on the way."""
    wide = _wider(y.dtype)
    result = np.asarray(np.true_divide(x.astype(wide), y.astype(wide))).astype(y.dtype)
    lost = np.isnan(result.real) & np.isnan(result.imag)
    by_zero = y == 0
    if not (lost | by_zero).any():
        return result
    a, b, c, d = (np.asarray(part) for part in (x.real, x.imag, y.real, y.imag))
    box_a, box_b, box_c, box_d = (np.copysign(np.where(np.isinf(p), p.dtype.type(1), 0), p) for p in (a, b, c, d))
    infinite_x, infinite_y = np.isinf(a) | np.isinf(b), np.isinf(c) | np.isinf(d)
    finite_x, finite_y = np.isfinite(a) & np.isfinite(b), np.isfinite(c) & np.isfinite(d)
    infinity, signed = c.dtype.type(np.inf), np.copysign(c.dtype.type(np.inf), c)
    recovered = [
        (by_zero, signed * a, signed * b),
        (lost & infinite_x & finite_y, (box_a * c + box_b * d) * infinity, (box_b * c - box_a * d) * infinity),
        (lost & finite_x & infinite_y, (a * box_c + b * box_d) * 0, (b * box_c - a * box_d) * 0),
    ]
    conditions = [r[0] for r in recovered]
    real = np.select(conditions, [r[1] for r in recovered], result.real)
    return joined(real, np.select(conditions, [r[2] for r in recovered], result.imag)).astype(result.dtype)


def complex_sign(x: NDArray) -> Any:
    """x / |x|, each part separately; zeros remain. In a wider type, because a subnormal |x| has few digits."""
    wide = x.astype(_wider(x.dtype))
    magnitude = complex_magnitude(wide)
    divisor = np.where(magnitude == 0, magnitude.dtype.type(1), magnitude)
    return joined(wide.real / divisor, wide.imag / divisor).astype(x.dtype)


def complex_logistic(x: NDArray) -> Any:
    """1 / (1 + exp(-x)), or exp(x) / (1 + exp(x)) on the left, so that the exponential is at most 1."""
    is_left = x.real < 0
    small = np.exp(np.where(is_left, x, -x))
    one = x.dtype.type(1)
    return complex_quotient(np.where(is_left, small, one), one + small)


def joined(real: NDArray, imaginary: NDArray) -> NDArray:
    """Complex numbers of these parts."""
    result = np.empty(np.shape(real), np.result_type(real, np.complex64))
    result.real, result.imag = real, imaginary
    return result


def complex_power(x: NDArray, y: NDArray) -> Any:
    """x ** y with the principal logarithm. x ** 0 and 1 ** y are 1; powers of 0 with a positive real part are 0; real
    powers of positive infinity are infinity or 0. All else with a zero base or a part that is not finite is NaN."""
    result = np.where((x != 0) & np.isfinite(x) & np.isfinite(y), np.power(x, y), complex(np.nan, np.nan))
    is_real, infinite = y.imag == 0, (x.real == np.inf) & (x.imag == 0)
    of_zero = (x == 0) & (y.real > 0) & (is_real | np.isfinite(y))
    result = np.where(of_zero | (is_real & infinite & (y.real < 0)), 0j, result)
    result = np.where(is_real & infinite & (y.real > 0), complex(np.inf, 0), result)
    return np.where((y == 0) | (x == 1), 1 + 0j, result).astype(x.dtype)
