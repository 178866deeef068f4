"""Arithmetic on sizes of blocks."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from ... import lax
from ...tracer.arrays.array import as_value

T = TypeVar("T")


def cdiv(a: Any, b: Any) -> Any:
    """a / b, rounded up: of integers of Python, or of traced ones.

    >>> from hloom.experimental import pallas
    >>> pallas.cdiv(7, 2)
    4
    """
    if isinstance(a, int | np.integer) and isinstance(b, int | np.integer):
        return (a + b - 1) // b
    x, y = as_value(a), as_value(b)
    dtype = y.aval.dtype if x.aval.weak_type else x.aval.dtype
    x, y = (lax.convert_element_type(v, dtype) for v in (x, y))
    return lax.div(x + (y - 1), y)


def align_to(x: Any, a: Any) -> Any:
    """The smallest multiple of a that is not below x.

    >>> from hloom.experimental import pallas
    >>> pallas.align_to(7, 4)
    8
    """
    return cdiv(x, a) * a


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is not below x. ValueError for a negative x.

    >>> from hloom.experimental import pallas
    >>> pallas.next_power_of_2(5)
    8
    """
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 if x == 0 else 1 << (x - 1).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """For each dimension of a row-major array how many elements apart its neighbours are.

    >>> from hloom.experimental import pallas
    >>> pallas.strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    return tuple([math.prod(shape[d + 1 :]) for d in range(len(shape))])
