"""Errors in units in the last place against mpmath, and points at which to measure them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import mpmath as mp
import numpy as np

UNSIGNED = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64}


def ulp_errors(actual: np.ndarray, exact: Sequence[mp.mpf]) -> np.ndarray:
    """|actual - exact| in units of the last place that `actual`'s format has at `exact`; below the normal range, in the
    smallest denormal. An infinity counts as the next power of two after the largest number, so that rounding to it is
    right only where it is. NaN against a number is infinitely wrong.
    """
    info = np.finfo(actual.dtype)
    beyond = mp.ldexp(1, int(info.maxexp))
    errors = np.empty(actual.size)
    for k, (got, want) in enumerate(zip(actual.ravel(), exact)):
        if np.isnan(got):
            errors[k] = np.inf
            continue
        number = mp.mpf(float(got)) if np.isfinite(got) else mp.sign(float(got)) * beyond
        want = max(min(want, beyond), -beyond)
        exponent = max(mp.frexp(want)[1] - 1, int(info.minexp)) if want else int(info.minexp)
        errors[k] = abs(mp.ldexp(number - want, int(info.nmant) - exponent))
    return errors


def random_bits(dtype: type, count: int, seed: int) -> np.ndarray:
    """Finite numbers with uniform bit patterns: every exponent is as likely as any other."""
    unsigned = UNSIGNED[np.dtype(dtype)]
    bits = np.random.default_rng(seed).integers(0, np.iinfo(unsigned).max, count, unsigned, endpoint=True)
    numbers = bits.view(dtype)
    return numbers[np.isfinite(numbers)]


def with_neighbours(values: Iterable[float], dtype: type) -> np.ndarray:
    """Each value as rounded to the format, and the numbers next to it, with both signs."""
    with np.errstate(over="ignore", under="ignore"):
        centre = np.array(list(values)).astype(dtype)
        near = np.concatenate([centre, np.nextafter(centre, dtype(np.inf)), np.nextafter(centre, dtype(-np.inf))])
    near = near[np.isfinite(near)]
    return np.unique(np.concatenate([near, -near]))


def boundaries(dtype: type) -> list[float]:
    """Where formats change their behaviour: zero, denormals, the normal range's ends, powers of two, ..."""
    info = np.finfo(dtype)
    tiny, small, large = float(info.smallest_subnormal), float(info.smallest_normal), float(info.max)
    powers = [2.0**k for k in (-60, -27, -13, -2, -1, 0, 1, 2, 12, 24, 31, 40, 53, 63, 100)]
    return [0.0, tiny, 3 * tiny, small, small / 2, large, large / 2, 1.5, float(np.sqrt(0.5)), *powers]
