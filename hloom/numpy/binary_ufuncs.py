"""NumPy's universal functions of two arguments: dtypes promote by JAX's rules, shapes broadcast.

Names and semantics follow NumPy, and jax.numpy where they differ. Names here shadow Python's, as they do there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from ..extend.primitive import Primitive
from ..namespaces.declaring import F, declared
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.arrays.operators import ArrayBase, ArrayLike
from ..tracer.arrays.plane import direction
from ..tracer.checks.error_state import look_at_divisor
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .promotion import (
    broadcast_values,
    check_arraylike,
    elementwise,
    promote,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_inexact,
    scalar_beside,
    scalars_apart,
    strong_array,
    taking_selections,
    to_dtype,
)
from .unary_ufuncs import abs, exp, exp2, isfinite, isinf, isnan, log1p, numbers, real_only, signbit, to_bool


def _of_one_type(
    function: Callable[[Any, Any], Value], promoted: Callable[[Any, Any], Value], kinds: str
) -> Callable[[Any, Any], Value]:
    """The most common cases before all others: two arrays of one type, or an array and a number of Python that takes
    its type. `kinds`: those of the dtypes for which `function` is the whole."""

    def op(x: ArrayLike, y: ArrayLike, /) -> Value:
        if isinstance(x, ArrayBase):
            aval = x.aval
            if aval.dtype.kind in kinds:
                if isinstance(y, ArrayBase):
                    if y.aval is aval:
                        return function(x, y)
                elif (scalar := scalar_beside(aval, y)) is not None:
                    return function(x, scalar)
        elif isinstance(y, ArrayBase):
            aval = y.aval
            if aval.dtype.kind in kinds and (scalar := scalar_beside(aval, x)) is not None:
                return function(scalar, y)
        return promoted(x, y)

    return op


def _binary(function: Callable[[Any, Any], Value]) -> Callable[[F], F]:
    def decorate(declaration: F) -> F:
        name = declaration.__name__

        @taking_selections
        def promoted(x: ArrayLike, y: ArrayLike, /) -> Value:
            check_arraylike(name, x, y)
            return function(*scalars_apart(promote_dtypes(x, y), name))

        return declared(declaration, _of_one_type(function, promoted, "biufcV"))

    return decorate


def _binary_inexact(function: Callable[[Any, Any], Value]) -> Callable[[F], F]:
    def decorate(declaration: F) -> F:
        name = declaration.__name__

        @taking_selections
        def promoted(x: ArrayLike, y: ArrayLike, /) -> Value:
            check_arraylike(name, x, y)
            return function(*scalars_apart(promote_dtypes_inexact(x, y), name))

        return declared(declaration, _of_one_type(function, promoted, "f"))

    return decorate


def _compare(
    function: Callable[[Any, Any], Value], combine: Callable[[Value, Value, Value], Value] | None
) -> Callable[[F], F]:
    """A comparison; complex numbers are ordered by real part, then imaginary part."""

    def decorate(declaration: F) -> F:
        name = declaration.__name__

        @taking_selections
        def promoted(x: ArrayLike, y: ArrayLike, /) -> Value:
            check_arraylike(name, x, y)
            a, b = scalars_apart(promote_dtypes(x, y), name)
            if combine is None or not dtypes.is_complex(a.aval.dtype):
                return function(a, b)
            first, second = (lax.real(a), lax.real(b)), (lax.imag(a), lax.imag(b))
            return combine(lax.eq(*first), function(*first), function(*second))

        return declared(declaration, _of_one_type(function, promoted, "biufV"))

    return decorate


def _lexicographic(equal: Value, first: Value, second: Value) -> Value:
    return lax.select(equal, second, first)


# ---- two arguments


@_binary(lax.add)
def add(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x + y for each element; of booleans the logical or. Shapes broadcast; dtypes promote as in JAX.

    The dtype depends on dtypes alone: int32 and float32 give float32, where NumPy has float64; Python numbers adapt.

    >>> jnp.add(jnp.array([[1], [2]]), jnp.array([10, 0.5]))
    Array([[11. ,  1.5],
           [12. ,  2.5]], dtype=float32)
    """


@_binary(lax.sub)
def subtract(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x - y for each element. Shapes broadcast, dtypes promote; not for two arrays of booleans.

    >>> jnp.subtract(jnp.array([1, 2, 3]), 1)
    Array([0, 1, 2], dtype=int32)
    """


@_binary(lax.mul)
def multiply(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x * y for each element; of booleans the logical and. Shapes broadcast, dtypes promote. Integers wrap around.

    >>> jnp.multiply(jnp.array([[1], [2]]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """


@_binary_inexact(lax.div)
def divide(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x / y for each element, a float also for integers. Shapes broadcast, dtypes promote. `true_divide` is the same.

    Division by 0 has infinity or NaN, without a warning.

    >>> jnp.divide(jnp.array([1, -1, 0]), jnp.array([2, 0, 0]))
    Array([ 0.5, -inf,  nan], dtype=float32)
    """


true_divide = divide


@_binary(lax.max)
def maximum(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The larger of x and y for each element; NaN if one is NaN (`fmax` prefers the number). Shapes broadcast, dtypes
    promote.

    Complex numbers are ordered by their real part, then by the imaginary part.

    >>> jnp.maximum(jnp.array([-1.0, 2.0, jnp.nan]), 0)
    Array([ 0.,  2., nan], dtype=float32)
    """


@_binary(lax.min)
def minimum(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The smaller of x and y for each element; NaN if one is NaN (`fmin` prefers the number). Shapes broadcast, dtypes
    promote.

    Complex numbers are ordered by their real part, then by the imaginary part.

    >>> jnp.minimum(jnp.array([-1.0, 2.0, jnp.nan]), 0)
    Array([-1.,  0., nan], dtype=float32)
    """


@_binary_inexact(lax.atan2)
def arctan2(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The angle of the point with the coordinates (y, x), from -pi to pi: the first argument is the ordinate.

    Of arrays that broadcast; integers become floats. `atan2` is the same.

    >>> jnp.rad2deg(jnp.arctan2(jnp.array([0, 1, -1]), jnp.array([1, 0, -1]))).round(2)
    Array([   0.,   90., -135.], dtype=float32)
    """


atan2 = arctan2


@_binary(lax.bitwise_and)
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The bits that are set in both, x & y: of integers or booleans. Shapes broadcast, dtypes promote.

    >>> jnp.bitwise_and(jnp.array([5, 6]), 3)
    Array([1, 2], dtype=int32)
    """


@_binary(lax.bitwise_or)
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The bits that are set in one or both, x | y: of integers or booleans. Shapes broadcast, dtypes promote.

    >>> jnp.bitwise_or(jnp.array([5, 6]), 3)
    Array([7, 7], dtype=int32)
    """


@_binary(lax.bitwise_xor)
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The bits that are set in exactly one, x ^ y: of integers or booleans. Shapes broadcast, dtypes promote.

    >>> jnp.bitwise_xor(jnp.array([5, 6]), 3)
    Array([6, 5], dtype=int32)
    """


@_compare(lax.eq, None)
def equal(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x == y for each element, booleans; NaN equals nothing. Shapes broadcast.

    >>> jnp.equal(jnp.array([1.0, 2.0, jnp.nan]), jnp.array([1, 0, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """


@_compare(lax.ne, None)
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x != y for each element, booleans; NaN differs from everything. Shapes broadcast.

    >>> jnp.not_equal(jnp.array([1.0, 2.0, jnp.nan]), jnp.array([1, 0, jnp.nan]))
    Array([False,  True,  True], dtype=bool)
    """


@_compare(lax.lt, _lexicographic)
def less(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x < y for each element, booleans; False where one is NaN. Complex numbers: by the real part first. Shapes
    broadcast.

    >>> jnp.less(jnp.array([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)
    """


@_compare(lax.le, _lexicographic)
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x <= y for each element, booleans; False where one is NaN. Complex numbers: by the real part first. Shapes
    broadcast.

    >>> jnp.less_equal(jnp.array([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)
    """


@_compare(lax.gt, _lexicographic)
def greater(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x > y for each element, booleans; False where one is NaN. Complex numbers: by the real part first. Shapes
    broadcast.

    >>> jnp.greater(jnp.array([1, 2, 3]), 2)
    Array([False, False,  True], dtype=bool)
    """


@_compare(lax.ge, _lexicographic)
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x >= y for each element, booleans; False where one is NaN. Complex numbers: by the real part first. Shapes
    broadcast.

    >>> jnp.greater_equal(jnp.array([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)
    """



@compound(frequent=True)
@elementwise
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x * 2**y for each element, of integers: bits that leave the type are lost. `bitwise_left_shift` is the same.

    0 if y is negative, or not less than the number of bits.

    >>> jnp.left_shift(1, jnp.array([0, 3, 31, 32]))
    Array([          1,           8, -2147483648,           0], dtype=int32)
    """
    a, b = numbers(*promote("left_shift", x, y))
    return lax.shift_left(a, b)


bitwise_left_shift = left_shift


@compound(frequent=True)
@elementwise
def right_shift(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x / 2**y rounded down, of integers: arithmetic for signed integers, logical for unsigned ones.

    `bitwise_right_shift` is the same.

    >>> jnp.right_shift(jnp.array([8, -8]), 2)
    Array([ 2, -2], dtype=int32)
    >>> jnp.right_shift(jnp.array([255], jnp.uint8), 4)
    Array([15], dtype=uint8)
    """
    a, b = numbers(*promote("right_shift", x, y))
    return (lax.shift_right_logical if dtypes.is_unsigned(a.aval.dtype) else lax.shift_right_arithmetic)(a, b)


bitwise_right_shift = right_shift


@compound()
def floor_divide(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x / y rounded down, for each element, in the promoted dtype; not for complex numbers. Shapes broadcast.

    The quotient of integers by 0 means nothing (in NumPy it is 0); of floats it is infinite or NaN.

    >>> jnp.floor_divide(jnp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    >>> jnp.floor_divide(-7.5, 2)
    Array(-4., dtype=float32, weak_type=True)
    """
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
        raise OperandError("floor_divide does not support complex numbers", "floor_divide")
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
    """The remainder of x / y that has the sign of y, as Python's %; of integers by 0 it is 0. `remainder` is the same.

    Shapes broadcast, dtypes promote. `fmod` has the sign of x.

    >>> jnp.mod(jnp.array([7, -7]), 3), jnp.mod(5.5, -2)
    (Array([1, 2], dtype=int32), Array(-0.5, dtype=float32, weak_type=True))
    """
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
    """The remainder of x / y that has the sign of x, as C's; of integers by 0 it is 0. Shapes broadcast, dtypes
    promote.

    >>> jnp.fmod(jnp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)
    """
    a, b = numbers(*promote("fmod", x, y))
    return lax.rem(a, _without_zeros(b))


def _without_zeros(divisor: Value) -> Value:
    """Integers with 1 in the place of 0, so that the remainder is 0; others as they are."""
    look_at_divisor(divisor)
    if not dtypes.is_integer(divisor.aval.dtype):
        return divisor
    return lax.select(divisor == 0, lax.full_like(divisor, 1), divisor)


@compound()
def divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Value, Value]:
    """(floor_divide(x, y), mod(x, y)), for each element.

    >>> minutes, seconds = jnp.divmod(jnp.array([125, 59]), 60)
    >>> minutes, seconds
    (Array([2, 0], dtype=int32), Array([ 5, 59], dtype=int32))
    """
    return floor_divide(x, y), mod(x, y)


@elementwise
def power(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x**y for each element. Shapes broadcast, dtypes promote. Integers wrap around.

    A Python integer y multiplies repeatedly, which is exact for integers, and has derivatives at 0. TypeError for a
    negative one if x has integers, as in NumPy: `float_power` takes them. `pow` is the same.

    >>> jnp.power(jnp.array([1, 2, 3]), 2)
    Array([1, 4, 9], dtype=int32)
    >>> jnp.power(2.0, jnp.array([-1, 0.5])).round(4)
    Array([0.5   , 1.4142], dtype=float32)
    """
    check_arraylike("power", x, y)
    if isinstance(y, int) and not isinstance(y, bool | np.generic):
        base = as_value(x)
        dtype, weak = dtypes.promote([dtypes.type_of(base), dtypes.type_of(y)])
        if y >= 0 or dtypes.is_inexact(dtype):
            if base.aval.dtype.kind == "b":
                return lax.integer_pow(numbers(base)[0], y)
            return lax.integer_pow(to_dtype(base, dtype, weak), y)
        raise OperandError(
            f"Integers cannot be raised to negative powers, got power({base.aval.str_short()}, {y})\n  Make the base "
            "a float, as in x.astype(float), or use float_power.",
            "power",
        )
    a, b = numbers(*promote("power", x, y))
    if type(y) is float and -8 <= y <= 8 and (2 * y).is_integer() and dtypes.is_floating(a.aval.dtype):
        return _known_power(a, y)
    result = lax.pow(a, b)
    return result if dtypes.is_inexact(result.aval.dtype) else to_dtype(result, result.aval.dtype, False)


@compound(static=("exponent",), small=True)
def _known_power(base: Value, exponent: float) -> Value:
    """A power with a Python number as its exponent, a small multiple of one half: products and roots in programs."""
    return lax.pow(base, lax.full_like(base, exponent))


pow = power


@elementwise
def float_power(x: ArrayLike, y: ArrayLike, /) -> Value:
    """x**y as a float, also of integers: of the default float type, where NumPy has float64 at least.

    >>> jnp.float_power(jnp.array([2, 4]), -1)
    Array([0.5 , 0.25], dtype=float32)
    """
    a, b = promote_inexact("float_power", x, y)
    return lax.pow(a, b)


@compound()
def logaddexp(x: ArrayLike, y: ArrayLike, /) -> Value:
    """log(exp(x) + exp(y)) without overflow: the sum of probabilities that are given by their logarithms.

    Integers become floats. Two equal infinities have derivatives of 1/2. For complex numbers it is the logarithm with
    an imaginary part between -pi and pi.

    >>> jnp.logaddexp(jnp.array([-1000.0, 0.0]), jnp.array([-1000.0, -jnp.inf])).round(3)
    Array([-999.307,    0.   ], dtype=float32)
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
    """sqrt(x**2 + y**2) for each element without overflow; not for complex numbers. Integers become floats.

    >>> jnp.hypot(3, jnp.array([4, jnp.inf]))
    Array([ 5., inf], dtype=float32)
    """
    a, b = promote_inexact("hypot", x, y)
    if dtypes.is_complex(a.aval.dtype):
        raise OperandError(
            f"jnp.hypot is not well defined for complex-valued inputs, such as {a.aval.str_short()}\n  Take abs(x) "
            "first.",
            "hypot",
        )
    found: Value = _hypot.bind(a, b)
    return strong_array(found)


_hypot = Primitive("hypot")


@_hypot.def_meaning
def _hypot_meaning(a: Any, b: Any) -> Value:
    a, b = abs(a), abs(b)
    large, small = maximum(a, b), minimum(a, b)
    ratio = small / lax.select(large == 0, lax.full_like(large, 1), large)
    length = large * lax.sqrt(1 + lax.square(ratio))
    return lax.select(isinf(a) | isinf(b), lax.full_like(length, math.inf), length)


@_hypot.def_jvp
def _hypot_jvp(primals: Any, tangents: Any) -> tuple[Value, Value]:
    """At the origin 1/2 and 1/2, as in JAX; there is no derivative there."""
    a, b = primals
    is_origin = (a == 0) & (b == 0)
    by_a, by_b = (lax.select(is_origin, lax.full_like(d, 0.5), d) for d in direction(a, b))
    return _hypot.bind(a, b), tangents[0] * by_a + tangents[1] * by_b


@compound()
def fmax(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The larger of x1 and x2 for each element; the other one where one is NaN. Shapes broadcast, dtypes promote.

    >>> jnp.fmax(jnp.array([1.0, jnp.nan]), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)
    """
    a, b = promote("fmax", x1, x2)
    return lax.select((a > b) | isnan(b), a, b)


@compound()
def fmin(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The smaller of x1 and x2 for each element; the other one where one is NaN. Shapes broadcast, dtypes promote.

    >>> jnp.fmin(jnp.array([1.0, jnp.nan]), jnp.array([3.0, 4.0]))
    Array([1., 4.], dtype=float32)
    """
    a, b = promote("fmin", x1, x2)
    return lax.select((a < b) | isnan(b), a, b)


@compound()
def copysign(x: ArrayLike, y: ArrayLike, /) -> Value:
    """|x| with the sign of y, for each element; the sign of -0.0 is negative. Integers become floats.

    >>> jnp.copysign(jnp.array([1.0, -2.0]), -0.0)
    Array([-1., -2.], dtype=float32)
    """
    a, b = promote_inexact("copysign", x, y)
    magnitude = abs(real_only("copysign", a))
    return lax.select(signbit(b), -magnitude, magnitude)


@compound()
def heaviside(x: ArrayLike, y: ArrayLike, /) -> Value:
    """0 for negative x, y where x is 0, 1 for positive x; NaN for NaN. A float. Shapes broadcast.

    >>> jnp.heaviside(jnp.array([-2, 0, 3]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
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
    """True where both are true: a number is true if it is not 0. Booleans; shapes broadcast.

    >>> x = jnp.array([1, 5, 9])
    >>> jnp.logical_and(x > 2, x < 8)
    Array([False,  True, False], dtype=bool)
    """


@_logical(lax.bitwise_or)
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Value:
    """True where one or both are true: a number is true if it is not 0. Booleans; shapes broadcast.

    >>> x = jnp.array([1, 5, 9])
    >>> jnp.logical_or(x < 2, x > 8)
    Array([ True, False,  True], dtype=bool)
    """


@_logical(lax.bitwise_xor)
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Value:
    """True where exactly one is true: a number is true if it is not 0. Booleans; shapes broadcast.

    >>> jnp.logical_xor(jnp.array([True, True, False]), jnp.array([1, 0, 0]))
    Array([False,  True, False], dtype=bool)
    """


@compound()
def logaddexp2(x: ArrayLike, y: ArrayLike, /) -> Value:
    """log2(2**x + 2**y) for each element without overflow. Integers become floats. Two equal infinities have
    derivatives of 1/2.

    >>> jnp.logaddexp2(jnp.array([3.0, -1000.0]), jnp.array([3.0, -1000.0]))
    Array([   4., -999.], dtype=float32)
    """
    a, b = promote_inexact("logaddexp2", x, y)
    if dtypes.is_complex(a.aval.dtype):
        ln2 = lax.full_like(a, math.log(2))
        return strong_array(logaddexp(a * ln2, b * ln2) / ln2)
    return strong_array(_logaddexp2.bind(a, b))


_logaddexp2 = Primitive("logaddexp2")


@_logaddexp2.def_meaning
def _logaddexp2_meaning(a: Any, b: Any) -> Any:
    """The larger one plus the other's contribution: nothing is scaled that may be large."""
    difference = a - b
    smooth = maximum(a, b) + log1p(exp2(-abs(difference))) * (1 / math.log(2))
    return lax.select(isnan(difference), a + b, smooth)  # NaN, or both the same infinity


@_logaddexp2.def_jvp
def _logaddexp2_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """The weights of the softmax of both, to base 2."""
    (a, b), (s, t) = primals, tangents
    alike = isinf(a) & (a == b)
    difference = lax.select(alike, lax.full_like(a, 0), a - b) * math.log(2)
    return logaddexp2(a, b), s * lax.logistic(difference) + t * lax.logistic(-difference)
