"""The frequencies that transforms have, in the order of their results."""

from __future__ import annotations

import operator
from typing import Any

from ... import lax
from ...tracer import dtypes
from ...tracer.arrays.operators import ArrayLike
from ...tracer.core import Value
from ...tracer.sharding.placement import in_asked_place
from ..array_creation import arange
from ..promotion import to_dtype


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: Any = None, device: Any = None) -> Value:
    """The frequencies of `fft` of n samples, d apart, in cycles a unit: 0, 1, ..., -2, -1 divided by n d.

    n: int; d: scalar; dtype: the result's, the default float's by default; device: where it is.

    >>> jnp.fft.fftfreq(4, d=0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
    count = _count(n, "fftfreq")
    places = arange(count)
    half = count // 2
    signed = (places + half) % max(count, 1) - half
    return in_asked_place(_frequencies(signed, count, d, dtype, "fftfreq"), device, None, "fftfreq")


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: Any = None, device: Any = None) -> Value:
    """The frequencies of `rfft` of n samples: 0, 1, ..., n // 2 divided by n d. Arguments as for `fftfreq`.

    >>> jnp.fft.rfftfreq(4, d=0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    count = _count(n, "rfftfreq")
    found = _frequencies(arange(count // 2 + 1), count, d, dtype, "rfftfreq")
    return in_asked_place(found, device, None, "rfftfreq")


def _count(n: Any, name: str) -> int:
    if isinstance(n, list | tuple):
        raise ValueError(f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {list(n)}.")
    return operator.index(n)


def _frequencies(numbers: Value, count: int, d: Any, dtype: Any, name: str) -> Value:
    if isinstance(d, list | tuple):
        raise ValueError(f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {list(d)}.")
    result = dtypes.default_float() if dtype is None else dtypes.requested_dtype(dtype, name)
    inexact = dtypes.to_inexact(result)
    found: Value = to_dtype(numbers, inexact, False) / to_dtype(d * count, inexact, False)
    return lax.convert_element_type(found, result)
