"""Points of the plane, at any distance: their direction from the origin, and their inversion in the unit circle.

Derivatives of the length and of the angle of a point are written in them. Neither squares a coordinate, so nothing
overflows or underflows on the way; for each point the division is by the larger coordinate. Both are right for
derivatives, of any order, by the rules of the operations they are made of.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...hlo.opcode import Opcode
from ..core import Value
from ..ops import add, compare, div, full_like, mul, scale, select, square, sub, unary, zeros

_O = Opcode


class _Ordered(NamedTuple):
    """The larger coordinate by magnitude, and the other one."""

    is_x: Value
    large: Value
    small: Value


def _ordered(x: Value, y: Value) -> _Ordered:
    is_x = compare(unary(_O.ABS, x), "GE", unary(_O.ABS, y))
    return _Ordered(is_x, select(is_x, x, y), select(is_x, y, x))


def _is_infinite(x: Value) -> Value:
    return compare(unary(_O.ABS, x), "EQ", full_like(x, math.inf))


def direction(x: Value, y: Value) -> tuple[Value, Value]:
    """(x, y) / sqrt(x**2 + y**2); (0, 0) at the origin. Infinite coordinates count as equal, and others beside them as
    zero."""
    is_x, large, small = _ordered(x, y)
    sign, one = unary(_O.SIGN, large), full_like(x, 1)
    is_infinite, is_zero = _is_infinite(large), compare(large, "EQ", zeros(x.aval))
    beside = select(_is_infinite(small), unary(_O.SIGN, small), sub(small, small))  # 0, or NaN
    ratio = div(
        select(is_infinite, beside, small),
        select(is_zero, one, select(is_infinite, sign, large)),
    )
    first = div(sign, unary(_O.SQRT, add(one, square(ratio))))
    second = mul(ratio, first)
    return select(is_x, first, second), select(is_x, second, first)


def inversion(x: Value, y: Value) -> tuple[Value, Value]:
    """(x, y) / (x**2 + y**2); zero at infinity, NaN at the origin.

    With the ratio r of the smaller coordinate to the larger one, it is 1 / (large + small r) for the larger one, and r
    times that. Halves keep the sum of two large numbers from overflowing.
    """
    is_x, large, small = _ordered(x, y)
    small = select(_is_infinite(small), full_like(x, 1), small)  # beside another infinity any number is small
    ratio = div(small, large)
    first = div(full_like(x, 0.5), add(scale(large, 0.5), mul(scale(small, 0.5), ratio)))
    second = mul(ratio, first)
    return select(is_x, first, second), select(is_x, second, first)
