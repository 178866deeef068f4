"""NumPy's universal functions of one argument.

Names and semantics follow NumPy, and jax.numpy where they differ. Names here shadow Python's, as they do there.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import lax
from ..extend.primitive import Primitive
from ..namespaces.declaring import F, declared
from ..tracer import dtypes
from ..tracer.arrays.operators import ArrayBase, ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.ops import convert
from .promotion import elementwise, ensure_arraylike, no_out, promote_inexact, strong, strong_array, taking_selections


def _inexact(function: Callable[[Any], Value]) -> Callable[[F], F]:
    """A function of one argument; integers become floats."""

    def decorate(declaration: F) -> F:
        name = declaration.__name__

        def op(x: ArrayLike, /) -> Value:
            if isinstance(x, ArrayBase) and x.aval.dtype.kind == "f":
                return function(x)
            return promoted(x)

        @taking_selections
        def promoted(x: ArrayLike, /) -> Value:
            return function(*promote_inexact(name, x))

        return declared(declaration, op)

    return decorate


def _keeping(function: Callable[[Any], Value]) -> Callable[[F], F]:
    """A rounding function: integers and booleans stay unchanged."""

    def decorate(declaration: F) -> F:
        name = declaration.__name__

        @taking_selections
        def op(x: ArrayLike, /) -> Value:
            value = numbers_only(name, ensure_arraylike(name, x))
            return function(value) if dtypes.is_inexact(value.aval.dtype) else value

        return declared(declaration, op)

    return decorate


def _scaled_log(base: float) -> Callable[[Value], Value]:
    def function(x: Value) -> Value:
        natural = lax.log(x)
        if dtypes.is_complex(natural.aval.dtype):  # a complex quotient of -inf, as of 0, has NaN
            quotient = lax.complex(lax.real(natural) / math.log(base), lax.imag(natural) / math.log(base))
        else:
            quotient = natural / math.log(base)
        return lax.convert_element_type(quotient, quotient.aval.dtype)

    return function


# ---- one argument


@_inexact(lax.exp)
def exp(x: ArrayLike, /) -> Value:
    """e**x for each element. Integers become floats, float32 unless x64 is on.

    >>> jnp.exp(jnp.array([0.0, 1.0])).round(3)
    Array([1.   , 2.718], dtype=float32)
    """


@_inexact(lax.exp2)
def exp2(x: ArrayLike, /) -> Value:
    """2**x for each element; integers become floats. Exact for integral x.

    >>> jnp.exp2(jnp.array([-1, 0, 3]))
    Array([0.5, 1. , 8. ], dtype=float32)
    """


@_inexact(lax.expm1)
def expm1(x: ArrayLike, /) -> Value:
    """e**x - 1 for each element, accurate near 0, where exp(x) - 1 has lost its digits.

    >>> x = jnp.float32(1e-8)
    >>> print(jnp.expm1(x), jnp.exp(x) - 1)
    1e-08 0.0
    """


@_inexact(lax.log)
def log(x: ArrayLike, /) -> Value:
    """The natural logarithm of each element; integers become floats.

    0 has -inf, and negative real numbers NaN, without a warning.

    >>> jnp.log(jnp.array([1.0, 0.0, -1.0]))
    Array([  0., -inf,  nan], dtype=float32)
    """


@_inexact(lax.log1p)
def log1p(x: ArrayLike, /) -> Value:
    """log(1 + x) for each element, accurate near 0, where 1 + x has lost the digits of x.

    >>> x = jnp.float32(1e-8)
    >>> print(jnp.log1p(x), jnp.log(1 + x))
    1e-08 0.0
    """


@_inexact(lax.sqrt)
def sqrt(x: ArrayLike, /) -> Value:
    """The square root of each element; integers become floats. NaN for negative real numbers: make them complex first.

    >>> jnp.sqrt(jnp.array([4, 2.25, -1]))
    Array([2. , 1.5, nan], dtype=float32)
    >>> jnp.sqrt(jnp.array(-4 + 0j))
    Array(0.+2.j, dtype=complex64, weak_type=True)
    """


@_inexact(lax.cbrt)
def cbrt(x: ArrayLike, /) -> Value:
    """The real cube root of each element, of negative numbers too; integers become floats. Not for complex numbers.

    >>> jnp.cbrt(jnp.array([8, -27])).round(5)
    Array([ 2., -3.], dtype=float32)
    """


@_inexact(lax.sin)
def sin(x: ArrayLike, /) -> Value:
    """The sine of each element, in radians; integers become floats.

    >>> jnp.sin(jnp.pi * jnp.array([0, 1/6, 1/2])).round(3)
    Array([0. , 0.5, 1. ], dtype=float32)
    """


@_inexact(lax.cos)
def cos(x: ArrayLike, /) -> Value:
    """The cosine of each element, in radians; integers become floats.

    >>> jnp.cos(jnp.pi * jnp.array([0, 1/3, 1])).round(3)
    Array([ 1. ,  0.5, -1. ], dtype=float32)
    """


@_inexact(lax.tan)
def tan(x: ArrayLike, /) -> Value:
    """The tangent of each element, in radians; integers become floats.

    >>> jnp.tan(jnp.pi * jnp.array([0, 1/4, 1/3])).round(3)
    Array([0.   , 1.   , 1.732], dtype=float32)
    """


@_inexact(lax.asin)
def arcsin(x: ArrayLike, /) -> Value:
    """The angle in [-pi/2, pi/2] with the sine x, for each element; NaN for real x outside of [-1, 1]. `asin` is the
    same.

    >>> jnp.rad2deg(jnp.arcsin(jnp.array([-1, 0, 0.5, 2]))).round(3)
    Array([-90.,   0.,  30.,  nan], dtype=float32)
    """


asin = arcsin


@_inexact(lax.acos)
def arccos(x: ArrayLike, /) -> Value:
    """The angle in [0, pi] with the cosine x, for each element; NaN for real x outside of [-1, 1]. `acos` is the same.

    >>> jnp.rad2deg(jnp.arccos(jnp.array([-1, 0, 0.5, 2]))).round(3)
    Array([180.,  90.,  60.,  nan], dtype=float32)
    """


acos = arccos


@_inexact(lax.atan)
def arctan(x: ArrayLike, /) -> Value:
    """The angle in [-pi/2, pi/2] with the tangent x, for each element. `atan` is the same; `arctan2` knows the
    quadrant.

    >>> jnp.rad2deg(jnp.arctan(jnp.array([-jnp.inf, 0, 1]))).round(3)
    Array([-90.,   0.,  45.], dtype=float32)
    """


atan = arctan


@_inexact(lax.sinh)
def sinh(x: ArrayLike, /) -> Value:
    """The hyperbolic sine of each element, (e**x - e**-x) / 2; accurate near 0.

    >>> jnp.sinh(jnp.array([-1, 0, 1])).round(3)
    Array([-1.175,  0.   ,  1.175], dtype=float32)
    """


@_inexact(lax.cosh)
def cosh(x: ArrayLike, /) -> Value:
    """The hyperbolic cosine of each element, (e**x + e**-x) / 2.

    >>> jnp.cosh(jnp.array([-1, 0, 1])).round(3)
    Array([1.543, 1.   , 1.543], dtype=float32)
    """


@_inexact(lax.tanh)
def tanh(x: ArrayLike, /) -> Value:
    """The hyperbolic tangent of each element, from -1 to 1.

    >>> jnp.tanh(jnp.array([-100, 0, 0.5])).round(3)
    Array([-1.   ,  0.   ,  0.462], dtype=float32)
    """


@_inexact(lax.asinh)
def arcsinh(x: ArrayLike, /) -> Value:
    """The number with the hyperbolic sine x, for each element. `asinh` is the same.

    >>> jnp.arcsinh(jnp.sinh(jnp.array([-2, 0, 2]))).round(3)
    Array([-2.,  0.,  2.], dtype=float32)
    """


asinh = arcsinh


@_inexact(lax.acosh)
def arccosh(x: ArrayLike, /) -> Value:
    """The number, not negative, with the hyperbolic cosine x, for each element; NaN for real x below 1. `acosh` is the
    same.

    >>> jnp.arccosh(jnp.array([1, 0])), jnp.arccosh(jnp.cosh(3)).round(3)
    (Array([ 0., nan], dtype=float32), Array(3., dtype=float32, weak_type=True))
    """


acosh = arccosh


@_inexact(lax.atanh)
def arctanh(x: ArrayLike, /) -> Value:
    """The number with the hyperbolic tangent x, for each element; infinite at -1 and 1, NaN for real x outside. `atanh`
    is the same.

    >>> jnp.arctanh(jnp.array([0, 0.5, 1, 2])).round(3)
    Array([0.   , 0.549,   inf,   nan], dtype=float32)
    """


atanh = arctanh


@_keeping(lax.floor)
def floor(x: ArrayLike, /) -> Value:
    """The largest integral value not above x, for each element: a float. Integers are given back, as in NumPy 2.

    >>> jnp.floor(jnp.array([1.5, -1.5]))
    Array([ 1., -2.], dtype=float32)
    """


@_keeping(lax.ceil)
def ceil(x: ArrayLike, /) -> Value:
    """The smallest integral value not below x, for each element: a float. Integers are given back, as in NumPy 2.

    >>> jnp.ceil(jnp.array([1.5, -1.5]))
    Array([ 2., -1.], dtype=float32)
    """


@_inexact(lax.reciprocal)
def reciprocal(x: ArrayLike, /) -> Value:
    """1 / x for each element. Integers become floats, where NumPy divides them as integers.

    >>> jnp.reciprocal(jnp.array([2, 4, 0]))
    Array([0.5 , 0.25,  inf], dtype=float32)
    """



@_inexact(_scaled_log(2))
def log2(x: ArrayLike, /) -> Value:
    """The logarithm to base 2 of each element; integers become floats.

    >>> jnp.log2(jnp.array([1, 8, 0.25]))
    Array([ 0.,  3., -2.], dtype=float32)
    """


@_inexact(_scaled_log(10))
def log10(x: ArrayLike, /) -> Value:
    """The logarithm to base 10 of each element; integers become floats.

    >>> jnp.log10(jnp.array([1, 1000])).round(5)
    Array([0., 3.], dtype=float32)
    """


@compound(frequent=True)
@elementwise
def trunc(x: ArrayLike) -> Value:
    """The integral value next towards 0, for each element: a float. Integers are given back. `fix` is the same.

    >>> jnp.trunc(jnp.array([1.7, -1.7]))
    Array([ 1., -1.], dtype=float32)
    """
    value = numbers_only("trunc", ensure_arraylike("trunc", x))
    if not dtypes.is_inexact(value.aval.dtype):
        return value
    return lax.select(value < 0, lax.ceil(value), lax.floor(value))


fix = trunc


@elementwise
def abs(x: ArrayLike, /) -> Value:
    """|x| for each element, in the dtype of x; of complex numbers the modulus, a float. `absolute` is the same.

    >>> jnp.abs(jnp.array([-2, 0, 3]))
    Array([2, 0, 3], dtype=int32)
    >>> jnp.abs(jnp.array([3 - 4j]))
    Array([5.], dtype=float32)
    """
    value = ensure_arraylike("abs", x)
    dtype = value.aval.dtype
    return value if dtype.kind != "f" and (dtype.kind == "b" or dtypes.is_unsigned(dtype)) else lax.abs(value)


absolute = abs


@elementwise
def fabs(x: ArrayLike, /) -> Value:
    """|x| as a float, for each element; not for complex numbers.

    >>> jnp.fabs(jnp.array([-2, 3]))
    Array([2., 3.], dtype=float32)
    """
    (value,) = promote_inexact("fabs", x)
    return lax.abs(real_only("fabs", value))


@elementwise
def negative(x: ArrayLike, /) -> Value:
    """-x for each element. Of unsigned integers modulo 2**bits; not for booleans.

    >>> jnp.negative(jnp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """
    value = ensure_arraylike("negative", x)
    return lax.neg(value)


@elementwise
def positive(x: ArrayLike, /) -> Value:
    """x itself: the function of the operator +x.

    >>> jnp.positive(jnp.array([1, -2]))
    Array([ 1, -2], dtype=int32)
    """
    return ensure_arraylike("positive", x)


@compound(frequent=True)
@elementwise
def sign(x: ArrayLike, /) -> Value:
    """-1, 0 or 1 for each element, in the dtype of x; NaN for NaN. Of complex numbers x / |x|, as in NumPy 2.

    >>> jnp.sign(jnp.array([-2.5, 0, 7]))
    Array([-1.,  0.,  1.], dtype=float32)
    >>> jnp.sign(jnp.array(4j))
    Array(0.+1.j, dtype=complex64, weak_type=True)
    """
    value = ensure_arraylike("sign", x)
    if dtypes.is_unsigned(value.aval.dtype):
        zero = lax.full_like(value, 0)
        return lax.select(value == zero, zero, lax.full_like(value, 1))
    return lax.sign(value)


@elementwise
def square(x: ArrayLike, /) -> Value:
    """x * x for each element, in the dtype of x.

    >>> jnp.square(jnp.array([-3, 2]))
    Array([9, 4], dtype=int32)
    """
    value = ensure_arraylike("square", x)
    return lax.square(numbers(value)[0])


@elementwise
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Value:
    """The nearest value with `decimals` digits after the point, for each element; halves go to the even neighbour.

    Negative `decimals` round floats to tens, hundreds, ... The dtype stays. Arrays are immutable, so that `out` must be
    None.

    >>> jnp.round(jnp.array([0.5, 1.5, 2.345]), 0)
    Array([0., 2., 2.], dtype=float32)
    >>> jnp.round(jnp.array([1.2345, 2.5]), 2)
    Array([1.23, 2.5 ], dtype=float32)
    """
    no_out("round", out)
    x, digits = numbers_only("round", ensure_arraylike("round", a)), operator.index(decimals)
    even = lax.RoundingMethod.TO_NEAREST_EVEN
    if x.aval.dtype.kind == "b":
        raise OperandError("round: booleans cannot be rounded", "round")
    if not dtypes.is_inexact(x.aval.dtype):
        if digits < 0:
            raise OperandError(f"round: integers with decimals={digits} are not supported", "round")
        return x
    if dtypes.is_complex(x.aval.dtype):
        return lax.complex(round(lax.real(x), digits), round(lax.imag(x), digits))
    if digits == 0:
        return lax.round(x, even)
    narrow = x.aval.dtype.itemsize < 4
    wide = lax.convert_element_type(x, dtypes.float32) if narrow else x
    factor = lax.full_like(wide, 10.0**digits)
    scaled = lax.round(wide * factor, even) / factor
    return convert(scaled, x.aval.dtype, x.aval.weak_type and not x.aval.shape)


around = round


@elementwise
def isfinite(x: ArrayLike, /) -> Value:
    """True where x is neither infinite nor NaN. Booleans of the shape of x.

    >>> jnp.isfinite(jnp.array([1, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    value = ensure_arraylike("isfinite", x)
    if dtypes.is_complex(value.aval.dtype):
        return lax.is_finite(lax.real(value)) & lax.is_finite(lax.imag(value))
    if not dtypes.is_inexact(value.aval.dtype):
        return lax.full_like(value, True, dtype=np.bool_)
    return lax.is_finite(value)


@elementwise
def isnan(x: ArrayLike, /) -> Value:
    """True where x is NaN; of complex numbers where one part is. Booleans of the shape of x.

    >>> x = jnp.array([1, jnp.nan, 3])
    >>> jnp.where(jnp.isnan(x), 0, x)
    Array([1., 0., 3.], dtype=float32)
    """
    value = ensure_arraylike("isnan", x)
    return value != value


@compound(frequent=True)
@elementwise
def isinf(x: ArrayLike, /) -> Value:
    """True where x is infinite, with either sign. Booleans of the shape of x.

    >>> jnp.isinf(jnp.array([-jnp.inf, 0, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    value = ensure_arraylike("isinf", x)
    if dtypes.is_complex(value.aval.dtype):
        return isinf(lax.real(value)) | isinf(lax.imag(value))
    if not dtypes.is_inexact(value.aval.dtype):
        return lax.full_like(value, False, dtype=np.bool_)
    return strong(lax.abs(value) == math.inf)


def isposinf(x: ArrayLike, /, out: None = None) -> Value:
    """True where x is infinity. Booleans of the shape of x.

    >>> jnp.isposinf(jnp.array([-jnp.inf, 0, jnp.inf]))
    Array([False, False,  True], dtype=bool)
    """
    no_out("isposinf", out)
    return _is_infinity("isposinf", x, math.inf)


def isneginf(x: ArrayLike, /, out: None = None) -> Value:
    """True where x is minus infinity. Booleans of the shape of x.

    >>> jnp.isneginf(jnp.array([-jnp.inf, 0, jnp.inf]))
    Array([ True, False, False], dtype=bool)
    """
    no_out("isneginf", out)
    return _is_infinity("isneginf", x, -math.inf)


def _is_infinity(name: str, x: ArrayLike, infinity: float) -> Value:
    value = real_only(name, numbers_only(name, ensure_arraylike(name, x)))
    if not dtypes.is_floating(value.aval.dtype):
        return lax.full_like(value, False, dtype=np.bool_)
    return strong(value == infinity)


def numbers_only(name: str, value: Value) -> Value:
    """The value; OperandError for keys."""
    if value.aval.is_extended:
        what = value.aval.str_short()
        raise OperandError(f"{name} does not accept {what}, which holds no numbers", name)
    return value


def real_only(name: str, value: Value) -> Value:
    """The value; OperandError if it is complex."""
    if dtypes.is_complex(value.aval.dtype):
        raise OperandError(f"{name} does not support complex numbers", name)
    return value


@compound(frequent=True)
@elementwise
def signbit(x: ArrayLike, /) -> Value:
    """True where the sign bit is set: negative numbers, and -0.0, which no comparison finds.

    >>> jnp.signbit(jnp.array([-1.0, -0.0, 0.0]))
    Array([ True,  True, False], dtype=bool)
    """
    value = real_only("signbit", numbers_only("signbit", ensure_arraylike("signbit", x)))
    if not dtypes.is_floating(value.aval.dtype):
        return value < 0 if dtypes.is_integer(value.aval.dtype) else isinf(value)
    bits = lax.bitcast_convert_type(value, f"int{8 * value.aval.dtype.itemsize}")
    return bits < 0


def real(val: ArrayLike, /) -> Value:
    """The real part of each element, a float; an array that is not complex is given back.

    The result is no view: to change the real part, compute `new + 1j * x.imag`.

    >>> jnp.real(jnp.array([1 + 2j, 3]))
    Array([1., 3.], dtype=float32)
    """
    value = ensure_arraylike("real", val)
    return lax.real(value) if dtypes.is_complex(value.aval.dtype) else value


def imag(val: ArrayLike, /) -> Value:
    """The imaginary part of each element, a float; zeros of its dtype for an array that is not complex.

    >>> jnp.imag(jnp.array([1 + 2j, 3]))
    Array([2., 0.], dtype=float32)
    """
    value = ensure_arraylike("imag", val)
    return lax.imag(value) if dtypes.is_complex(value.aval.dtype) else lax.full_like(value, 0)


@elementwise
def conj(x: ArrayLike, /) -> Value:
    """The complex conjugate of each element; real numbers are given back. `conjugate` is the same.

    >>> jnp.conj(jnp.array([1 + 2j, 3 - 1j]))
    Array([1.-2.j, 3.+1.j], dtype=complex64)
    """
    value = ensure_arraylike("conj", x)
    return lax.conj(value) if dtypes.is_complex(value.aval.dtype) else value


conjugate = conj


@compound(static=("deg",), frequent=True)
def angle(z: ArrayLike, deg: bool = False) -> Value:
    """The argument of complex numbers in [-pi, pi], or in degrees. A float; for negative real numbers it is pi.

    >>> jnp.angle(jnp.array([1, 1j, -1]), deg=True)
    Array([  0.,  90., 180.], dtype=float32)
    """
    value = ensure_arraylike("angle", z)
    dtype = value.aval.dtype
    if not dtypes.is_inexact(dtype) or (dtypes.is_floating(dtype) and not value.aval.shape):
        value = convert(value, dtypes.default_float(), False)
    result = lax.atan2(imag(value), real(value))
    return rad2deg(result) if deg else result


@compound(frequent=True)
@elementwise
def deg2rad(x: ArrayLike, /) -> Value:
    """x * pi / 180 for each element: degrees to radians. `radians` is the same.

    >>> jnp.deg2rad(jnp.array([0, 90, 180])).round(4)
    Array([0.    , 1.5708, 3.1416], dtype=float32)
    """
    (value,) = promote_inexact("deg2rad", x)
    return strong_array(value * (math.pi / 180))


@compound(frequent=True)
@elementwise
def rad2deg(x: ArrayLike, /) -> Value:
    """x * 180 / pi for each element: radians to degrees. `degrees` is the same.

    >>> jnp.rad2deg(jnp.array([0, jnp.pi / 2])).round(3)
    Array([ 0., 90.], dtype=float32)
    """
    (value,) = promote_inexact("rad2deg", x)
    return strong_array(value * (180 / math.pi))


radians, degrees = deg2rad, rad2deg


@elementwise
def logical_not(x: ArrayLike, /) -> Value:
    """True where x is 0 or False. Booleans of the shape of x.

    >>> jnp.logical_not(jnp.array([0, 1, 2]))
    Array([ True, False, False], dtype=bool)
    """
    return ~to_bool(ensure_arraylike("logical_not", x))


@elementwise
def bitwise_not(x: ArrayLike, /) -> Value:
    """All bits of each integer inverted, so that x becomes -x - 1; of booleans the logical not. The function of the
    operator ~x.

    `invert` and `bitwise_invert` are the same.

    >>> jnp.bitwise_not(jnp.array([0, 5])), jnp.bitwise_not(jnp.array([0, 5], jnp.uint8))
    (Array([-1, -6], dtype=int32), Array([255, 250], dtype=uint8))
    """
    return lax.bitwise_not(ensure_arraylike("bitwise_not", x))


invert = bitwise_invert = bitwise_not


def numbers(*values: Value) -> tuple[Value, ...]:
    """Booleans as integers, as for arithmetic that has no meaning for truth values; others as they are."""
    if values[0].aval.dtype.kind != "b":
        return values
    return tuple([convert(v, dtypes.int32, False) for v in values])


@elementwise
def rint(x: ArrayLike, /) -> Value:
    """The nearest integral value, as a float; halves go to the even neighbour. Integers become floats too.

    >>> jnp.rint(jnp.array([0.5, 1.5, -2.7]))
    Array([ 0.,  2., -3.], dtype=float32)
    """
    value = ensure_arraylike("rint", x)
    return round(value if dtypes.is_inexact(value.aval.dtype) else convert(value, dtypes.default_float(), False))


def to_bool(x: Value) -> Value:
    """x != 0; OperandError for keys."""
    if x.aval.dtype.kind == "b":
        return x
    if x.aval.is_extended:
        return convert(x, dtypes.bool_, False)  # raises: there is no such conversion
    return x != 0


@compound()
def sinc(x: ArrayLike, /) -> Value:
    """sin(pi x) / (pi x) for each element, and 1 at 0, where derivatives of all orders are right too.

    >>> jnp.sinc(jnp.array([0, 0.5, 1.5])).round(3)
    Array([ 1.   ,  0.637, -0.212], dtype=float32)
    >>> hloom.grad(hloom.grad(jnp.sinc))(0.0).round(3)
    Array(-3.29, dtype=float32, weak_type=True)
    """
    (value,) = promote_inexact("sinc", x)
    scaled = value * math.pi
    at_zero = value == 0
    safe = lax.select(at_zero, lax.full_like(scaled, 1), scaled)  # so that 0 / 0 makes no NaN in derivatives
    return strong_array(lax.select(at_zero, _sinc_at_zero.bind(scaled, order=0), lax.sin(safe) / safe))


_sinc_at_zero = Primitive("sinc_at_zero")


@_sinc_at_zero.def_meaning
def _sinc_at_zero_meaning(x: Any, *, order: int) -> Any:
    """The derivative of sin(x) / x at 0, of that order."""
    return lax.full_like(x, 0 if order % 2 else (-1) ** (order // 2) / (order + 1))


@_sinc_at_zero.def_jvp
def _sinc_at_zero_jvp(primals: Any, tangents: Any, *, order: int) -> tuple[Any, Any]:
    (x,), (t,) = primals, tangents
    return _sinc_at_zero.bind(x, order=order), t * _sinc_at_zero.bind(x, order=order + 1)
