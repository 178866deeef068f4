"""Polynomials of special functions, as long as the type of the result asks for.

Special functions are computed in float64 (`elementwise_functions.py`). The tables are long enough for float64. A
result that is rounded to a narrower type needs some bits beyond that type, and a third to a half of the terms.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from ..tracer import dtypes
from .movement import full_like

_GUARD = 10
"""Bits beyond those of the result: a shorter polynomial adds 2**-10 ulp at most."""
_FULL = 53
_bits: ContextVar[int] = ContextVar("significant_bits_of_series", default=_FULL)


@contextmanager
def rounded_to(dtype: Any) -> Iterator[None]:
    """Within it, series are as long as results need that are rounded to this type."""
    token = _bits.set(min(int(dtypes.finfo(dtype).nmant) + 1 + _GUARD, _FULL))
    try:
        yield
    finally:
        _bits.reset(token)


def narrow() -> bool:
    """Whether results are rounded to a type narrower than float64, for which the last bits of a step do not count."""
    return _bits.get() < _FULL


def horner(coefficients: Sequence[float], t: Any) -> Any:
    """The polynomial with these coefficients, constant term first."""
    p: Any = full_like(t, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        p = p * t + c
    return p


def clenshaw(coefficients: Sequence[float], t: Any) -> Any:
    """The sum of Chebyshev polynomials T_0, T_1, ... of t with these coefficients."""
    double = t + t
    after: Any = full_like(t, 0.0)
    current: Any = full_like(t, coefficients[-1])
    for c in reversed(coefficients[1:-1]):
        current, after = double * current - after + c, current
    return t * current - after + coefficients[0]


def powers_between(coefficients: Sequence[float], t: Any, low: float, high: float) -> Any:
    """`horner` for low <= t <= high, where the polynomial has no root."""
    return horner(_shortened_powers(tuple(coefficients), _bits.get(), (low, high)) if narrow() else coefficients, t)


def chebyshev(coefficients: Sequence[float], t: Any) -> Any:
    """`clenshaw` for -1 <= t <= 1, where the sum has no root.

    A sum short enough becomes a polynomial in powers, with two operations for a term instead of three: the bits lost
    by that are far beyond those of the result."""
    if narrow():
        return horner(shortened(tuple(coefficients), _bits.get()), t)
    return clenshaw(coefficients, t)


@functools.cache
def _shortened_powers(
    coefficients: tuple[float, ...], bits: int, domain: tuple[float, float]
) -> tuple[float, ...]:
    """`shortened` for the coefficients of powers: the same polynomial as a Chebyshev series."""
    series = Polynomial(coefficients).convert(domain=domain, kind=Chebyshev)
    return shortened(tuple(series.coef), bits, domain)


@functools.cache
def shortened(
    coefficients: tuple[float, ...], bits: int, domain: tuple[float, float] = (-1.0, 1.0)
) -> tuple[float, ...]:
    """The fewest terms of a Chebyshev series over `domain` with an error below 2**-bits of its smallest value, as
    coefficients of powers."""
    whole = Chebyshev(coefficients, domain)
    smallest = np.abs(whole(np.linspace(*domain, 129))).min()
    # beyond[k] bounds the terms from k on
    beyond = np.cumsum(np.abs(coefficients)[::-1])[::-1]
    count = int(np.count_nonzero(beyond > smallest * 2.0**-bits))
    powers = whole.truncate(max(count, 1)).convert(kind=Polynomial)
    return tuple(float(c) for c in powers.coef)
