"""NumPy's universal functions of two arguments: dtypes promote by JAX's rules, shapes broadcast.

Source for names and meaning: NumPy, and jax.numpy where they differ. Names here shadow Python's, as they do there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from ..declaring import F, declared
from ..extend.core import Primitive
from ..tracer import dtypes
from ..tracer.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.operators import ArrayBase, ArrayLike
from ..tracer.source import user_line
from .elementwise import abs, exp, isfinite, isinf, isnan, log1p, numbers, real_only, signbit, to_bool
from .promotion import (
    broadcast_values,
    check_arraylike,
    promote,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_inexact,
    scalars_apart,
    strong_array,
    to_dtype,
)

__all__ = [
    "arctan2",
    "atan2",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "copysign",
    "divide",
    "divmod",
    "equal",
    "float_power",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "left_shift",
    "less",
    "less_equal",
    "mod",
    "not_equal",
    "pow",
    "power",
    "remainder",
    "right_shift",
    "true_divide",
]


def _binary(function: Callable[[Any, Any], Value]) -> Callable[[F], F]:
    def decorate(declaration: F) -> F:
        name = declaration.__name__

        def op(x: ArrayLike, y: ArrayLike, /) -> Value:
            if isinstance(x, ArrayBase) and isinstance(y, ArrayBase) and x.aval is y.aval:
                return function(x, y)  # nothing to promote: the most common case
            check_arraylike(name, x, y)
            a, b = scalars_apart(promote_dtypes(x, y), name)
            return function(a, b)

        return declared(declaration, op)

    return decorate


def _binary_inexact(function: Callable[[Any, Any], Value]) -> Callable[[F], F]:
    def decorate(declaration: F) -> F:
        name = declaration.__name__

        def op(x: ArrayLike, y: ArrayLike, /) -> Value:
            if isinstance(x, ArrayBase) and isinstance(y, ArrayBase) and x.aval is y.aval and x.aval.dtype.kind == "f":
                return function(x, y)
            check_arraylike(name, x, y)
            a, b = scalars_apart(promote_dtypes_inexact(x, y), name)
            return function(a, b)

        return declared(declaration, op)

    return decorate


def _compare(
    function: Callable[[Any, Any], Value], combine: Callable[[Value, Value, Value], Value] | None
) -> Callable[[F], F]:
    """A comparison; complex numbers are ordered by real part, then imaginary part."""

    def decorate(declaration: F) -> F:
        name = declaration.__name__

        def op(x: ArrayLike, y: ArrayLike, /) -> Value:
            if isinstance(x, ArrayBase) and isinstance(y, ArrayBase) and x.aval is y.aval and x.aval.dtype.kind != "c":
                return function(x, y)
            check_arraylike(name, x, y)
            a, b = scalars_apart(promote_dtypes(x, y), name)
            if combine is None or not dtypes.is_complex(a.aval.dtype):
                return function(a, b)
            first, second = (lax.real(a), lax.real(b)), (lax.imag(a), lax.imag(b))
            return combine(lax.eq(*first), function(*first), function(*second))

        return declared(declaration, op)

    return decorate


def _lexicographic(equal: Value, first: Value, second: Value) -> Value:
    return lax.select(equal, second, first)


# ---- two arguments


@_binary(lax.add)
def add(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x + y."""


@_binary(lax.sub)
def subtract(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x - y."""


@_binary(lax.mul)
def multiply(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x * y."""


@_binary_inexact(lax.div)
def divide(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x / y, a float."""


true_divide = divide


@_binary(lax.max)
def maximum(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The larger one; NaN if one is NaN."""


@_binary(lax.min)
def minimum(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The smaller one; NaN if one is NaN."""


@_binary_inexact(lax.atan2)
def arctan2(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The angle of the point (y, x)."""


atan2 = arctan2


@_binary(lax.bitwise_and)
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Value:
    """Bits set in both."""


@_binary(lax.bitwise_or)
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Value:
    """Bits set in one or both."""


@_binary(lax.bitwise_xor)
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Value:
    """Bits set in exactly one."""


@_compare(lax.eq, None)
def equal(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x == y."""


@_compare(lax.ne, None)
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x != y."""


@_compare(lax.lt, _lexicographic)
def less(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x < y."""


@_compare(lax.le, _lexicographic)
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x <= y."""


@_compare(lax.gt, _lexicographic)
def greater(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x > y."""


@_compare(lax.ge, _lexicographic)
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x >= y."""



def left_shift(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x * 2**y."""
    a, b = numbers(*promote("left_shift", x, y))
    return lax.shift_left(a, b)


bitwise_left_shift = left_shift


def right_shift(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x / 2**y rounded down: arithmetic for signed integers, logical for unsigned ones."""
    a, b = numbers(*promote("right_shift", x, y))
    return (lax.shift_right_logical if dtypes.is_unsigned(a.aval.dtype) else lax.shift_right_arithmetic)(a, b)


bitwise_right_shift = right_shift


@compound()
def floor_divide(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x / y rounded down."""
    a, b = promote("floor_divide", x, y)
    dtype = a.aval.dtype
    if dtype.kind == "b":
        return floor_divide(*numbers(a, b))
    if dtypes.is_unsigned(dtype):
        return lax.div(a, b)
    if dtypes.is_integer(dtype):
        quotient = lax.div(a, b)
        inexact = lax.rem(a, b) != 0
        differ = lax.sign(a) != lax.sign(b)
        return lax.select(differ & inexact, quotient - 1, quotient)
    if dtype.kind == "c":
        raise OperandError(f"floor_divide does not support complex numbers\n  at {user_line()}", "floor_divide")
    return _float_divmod(a, b)[0]


def _float_divmod(a: Value, b: Value) -> tuple[Value, Value]:
    """The quotient rounded down, and the exact remainder. For division by 0: a / 0, and NaN."""
    remainder = lax.rem(a, b)
    quotient = lax.select(b == 0, a, a - remainder) / b
    adjust = (remainder != 0) & (lax.sign(b) != lax.sign(remainder))
    remainder = lax.select(adjust, remainder + b, remainder)
    quotient = lax.select(adjust, quotient - 1, quotient)
    return lax.round(quotient), remainder


@compound()
def mod(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The remainder that has the sign of y; of integers by 0, 0."""
    a, b = numbers(*promote("mod", x, y))
    b = _without_zeros(b)
    remainder = lax.rem(a, b)
    if dtypes.is_unsigned(a.aval.dtype):
        return remainder
    zero = lax.full_like(a, 0)
    differ = (remainder < zero) != (b < zero)
    return lax.select((remainder != zero) & differ, remainder + b, remainder)


remainder = mod


@compound()
def fmod(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The remainder that has the sign of x; of integers by 0, 0."""
    a, b = numbers(*promote("fmod", x, y))
    return lax.rem(a, _without_zeros(b))


def _without_zeros(divisor: Value) -> Value:
    """Integers with 1 in the place of 0, by which nothing remains; others as they are."""
    if not dtypes.is_integer(divisor.aval.dtype):
        return divisor
    return lax.select(divisor == 0, lax.full_like(divisor, 1), divisor)


@compound()
def divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Value, Value]:
    """(floor_divide(x, y), mod(x, y))."""
    return floor_divide(x, y), mod(x, y)


def power(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x**y. A Python integer exponent multiplies repeatedly."""
    check_arraylike("power", x, y)
    if isinstance(y, int) and not isinstance(y, bool | np.generic):
        base = as_value(x)
        dtype, weak = dtypes.promote([dtypes.type_of(base), dtypes.type_of(y)])
        if y >= 0 or dtypes.is_inexact(dtype):
            if base.aval.dtype.kind == "b":
                return lax.integer_pow(numbers(base)[0], y)
            return lax.integer_pow(to_dtype(base, dtype, weak), y)
    a, b = numbers(*promote("power", x, y))
    result = lax.pow(a, b)
    return result if dtypes.is_inexact(result.aval.dtype) else to_dtype(result, result.aval.dtype, False)


pow = power


def float_power(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x**y as a float."""
    a, b = promote_inexact("float_power", x, y)
    return lax.pow(a, b)


@compound()
def logaddexp(x: ArrayLike, y: ArrayLike, /) -> Value:
    """log(exp(x) + exp(y)) without overflow. Two equal infinities have derivatives of 1/2.

    Of complex numbers it is the logarithm whose imaginary part is between -pi and pi.
    """
    result: Value = _logaddexp.bind(*promote_inexact("logaddexp", x, y))
    return strong_array(result) if dtypes.is_complex(result.aval.dtype) else result


_logaddexp = Primitive("logaddexp")


@_logaddexp.def_meaning
def _logaddexp_meaning(a: Any, b: Any) -> Any:
    large, difference = maximum(a, b), a - b
    if not dtypes.is_complex(a.aval.dtype):
        smooth = large + log1p(exp(-abs(difference)))
        return lax.select(isnan(difference), a + b, smooth)  # NaN, or both the same infinity
    smooth = large + log1p(exp(minimum(a, b) - large))
    total = lax.select(isnan(difference), lax.select(a == b, a, a + b), smooth)
    angle = lax.imag(total)
    turns = lax.round(angle / (2 * math.pi), lax.RoundingMethod.TO_NEAREST_EVEN)
    turns = lax.select(isfinite(turns), turns, lax.full_like(turns, 0))
    return lax.complex(lax.real(total), angle - turns * (2 * math.pi))


@_logaddexp.def_jvp
def _logaddexp_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """The weights of the softmax of both."""
    (a, b), (s, t) = primals, tangents
    alike = isinf(a) & (a == b)
    difference = lax.select(alike, lax.full_like(a, 0), a - b)
    return logaddexp(a, b), s * lax.logistic(difference) + t * lax.logistic(-difference)


@compound()
def hypot(x: ArrayLike, y: ArrayLike, /) -> Value:
    """sqrt(x**2 + y**2) without overflow."""
    a, b = promote_inexact("hypot", x, y)
    a, b = abs(real_only("hypot", a)), abs(b)
    large, small = maximum(a, b), minimum(a, b)
    ratio = small / lax.select(large == 0, lax.full_like(large, 1), large)
    length = large * lax.sqrt(1 + lax.square(ratio))
    return strong_array(lax.select(isinf(a) | isinf(b), lax.full_like(length, math.inf), length))


@compound()
def fmax(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The larger one; the other where one is NaN."""
    a, b = promote("fmax", x1, x2)
    return lax.select((a > b) | isnan(b), a, b)


@compound()
def fmin(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The smaller one; the other where one is NaN."""
    a, b = promote("fmin", x1, x2)
    return lax.select((a < b) | isnan(b), a, b)


@compound()
def copysign(x: ArrayLike, y: ArrayLike, /) -> Value:
    """|x| with the sign of y."""
    a, b = promote_inexact("copysign", x, y)
    magnitude = abs(real_only("copysign", a))
    return lax.select(signbit(b), -magnitude, magnitude)


@compound()
def heaviside(x: ArrayLike, y: ArrayLike, /) -> Value:
    """0 for negative x, y at 0, 1 for positive x."""
    a, b = promote_inexact("heaviside", x, y)
    real_only("heaviside", a)
    zero = lax.full_like(a, 0)
    step = lax.select(a < zero, zero, lax.full_like(a, 1))
    return strong_array(lax.select(isnan(a), a, lax.select(a == zero, b, step)))


def _logical(function: Callable[[Any, Any], Value]) -> Callable[[F], F]:
    def decorate(declaration: F) -> F:
        name = declaration.__name__

        def op(x: ArrayLike, y: ArrayLike, /) -> Value:
            check_arraylike(name, x, y)
            a, b = broadcast_values([to_bool(as_value(x)), to_bool(as_value(y))])
            return function(a, b)

        return compound(small=True)(declared(declaration, op))

    return decorate


@_logical(lax.bitwise_and)
def logical_and(x: ArrayLike, y: ArrayLike, /) -> Value:
    """True where both are true: a number is true if it is not 0."""


@_logical(lax.bitwise_or)
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Value:
    """True where one or both are true: a number is true if it is not 0."""


@_logical(lax.bitwise_xor)
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Value:
    """True where exactly one is true: a number is true if it is not 0."""


@compound()
def logaddexp2(x: ArrayLike, y: ArrayLike, /) -> Value:
    """log2(2**x + 2**y) without overflow."""
    a, b = promote_inexact("logaddexp2", x, y)
    ln2 = lax.full_like(a, math.log(2))
    return strong_array(logaddexp(a * ln2, b * ln2) / ln2)
