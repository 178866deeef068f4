"""NumPy's universal functions of one argument.

Source for names and meaning: NumPy, and jax.numpy where they differ. Names here shadow Python's, as they do there.
"""

from __future__ import annotations

import math
import operator
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
from ..tracer.ops import convert
from ..tracer.source import user_line
from .promotion import check_arraylike, no_out, promote_inexact, strong_array

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "around",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_invert",
    "bitwise_not",
    "cbrt",
    "ceil",
    "conj",
    "conjugate",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "fix",
    "floor",
    "imag",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_not",
    "positive",
    "rad2deg",
    "radians",
    "real",
    "reciprocal",
    "rint",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
]


def _inexact(function: Callable[[Any], Value]) -> Callable[[F], F]:
    """A function of one argument; integers become floats."""

    def decorate(declaration: F) -> F:
        name = declaration.__name__

        def op(x: ArrayLike, /) -> Value:
            if isinstance(x, ArrayBase) and x.aval.dtype.kind == "f":
                return function(x)
            return function(*promote_inexact(name, x))

        return declared(declaration, op)

    return decorate


def _keeping(function: Callable[[Any], Value]) -> Callable[[F], F]:
    """A rounding function: integers and booleans stay unchanged."""

    def decorate(declaration: F) -> F:
        name = declaration.__name__

        def op(x: ArrayLike, /) -> Value:
            check_arraylike(name, x)
            value = numbers_only(name, as_value(x))
            return function(value) if dtypes.is_inexact(value.aval.dtype) else value

        return declared(declaration, op)

    return decorate


def _scaled_log(base: float) -> Callable[[Value], Value]:
    def function(x: Value) -> Value:
        quotient = lax.log(x) / math.log(base)
        return lax.convert_element_type(quotient, quotient.aval.dtype)

    return function


# ---- one argument


@_inexact(lax.exp)
def exp(x: ArrayLike, /) -> Value:
    """e**x."""


@_inexact(lax.exp2)
def exp2(x: ArrayLike, /) -> Value:
    """2**x."""


@_inexact(lax.expm1)
def expm1(x: ArrayLike, /) -> Value:
    """e**x - 1, accurate near 0."""


@_inexact(lax.log)
def log(x: ArrayLike, /) -> Value:
    """The natural logarithm."""


@_inexact(lax.log1p)
def log1p(x: ArrayLike, /) -> Value:
    """log(1 + x), accurate near 0."""


@_inexact(lax.sqrt)
def sqrt(x: ArrayLike, /) -> Value:
    """The square root."""


@_inexact(lax.cbrt)
def cbrt(x: ArrayLike, /) -> Value:
    """The real cube root."""


@_inexact(lax.sin)
def sin(x: ArrayLike, /) -> Value:
    """The sine of radians."""


@_inexact(lax.cos)
def cos(x: ArrayLike, /) -> Value:
    """The cosine of radians."""


@_inexact(lax.tan)
def tan(x: ArrayLike, /) -> Value:
    """The tangent of radians."""


@_inexact(lax.asin)
def arcsin(x: ArrayLike, /) -> Value:
    """The inverse sine, in radians."""


asin = arcsin


@_inexact(lax.acos)
def arccos(x: ArrayLike, /) -> Value:
    """The inverse cosine, in radians."""


acos = arccos


@_inexact(lax.atan)
def arctan(x: ArrayLike, /) -> Value:
    """The inverse tangent, in radians."""


atan = arctan


@_inexact(lax.sinh)
def sinh(x: ArrayLike, /) -> Value:
    """The hyperbolic sine."""


@_inexact(lax.cosh)
def cosh(x: ArrayLike, /) -> Value:
    """The hyperbolic cosine."""


@_inexact(lax.tanh)
def tanh(x: ArrayLike, /) -> Value:
    """The hyperbolic tangent."""


@_inexact(lax.asinh)
def arcsinh(x: ArrayLike, /) -> Value:
    """The inverse hyperbolic sine."""


asinh = arcsinh


@_inexact(lax.acosh)
def arccosh(x: ArrayLike, /) -> Value:
    """The inverse hyperbolic cosine."""


acosh = arccosh


@_inexact(lax.atanh)
def arctanh(x: ArrayLike, /) -> Value:
    """The inverse hyperbolic tangent."""


atanh = arctanh


@_keeping(lax.floor)
def floor(x: ArrayLike, /) -> Value:
    """The largest integral value not above x."""


@_keeping(lax.ceil)
def ceil(x: ArrayLike, /) -> Value:
    """The smallest integral value not below x."""


@_inexact(lax.reciprocal)
def reciprocal(x: ArrayLike, /) -> Value:
    """1 / x."""



@_inexact(_scaled_log(2))
def log2(x: ArrayLike, /) -> Value:
    """The logarithm to base 2."""


@_inexact(_scaled_log(10))
def log10(x: ArrayLike, /) -> Value:
    """The logarithm to base 10."""


def trunc(x: ArrayLike) -> Value:
    """The integral value next towards 0."""
    check_arraylike("trunc", x)
    value = numbers_only("trunc", as_value(x))
    if not dtypes.is_inexact(value.aval.dtype):
        return value
    return lax.select(value < 0, lax.ceil(value), lax.floor(value))


fix = trunc


def abs(x: ArrayLike, /) -> Value:
    """|x|; the modulus of complex numbers."""
    check_arraylike("abs", x)
    value = as_value(x)
    return value if value.aval.dtype.kind == "b" or dtypes.is_unsigned(value.aval.dtype) else lax.abs(value)


absolute = abs


def fabs(x: ArrayLike, /) -> Value:
    """|x| as a float; not for complex numbers."""
    (value,) = promote_inexact("fabs", x)
    return lax.abs(real_only("fabs", value))


def negative(x: ArrayLike, /) -> Value:
    """-x."""
    check_arraylike("negative", x)
    return lax.neg(as_value(x))


def positive(x: ArrayLike, /) -> Value:
    """x."""
    check_arraylike("positive", x)
    return as_value(x)


def sign(x: ArrayLike, /) -> Value:
    """-1, 0 or 1; x/|x| for complex numbers."""
    check_arraylike("sign", x)
    value = as_value(x)
    if dtypes.is_unsigned(value.aval.dtype):
        zero = lax.full_like(value, 0)
        return lax.select(value == zero, zero, lax.full_like(value, 1))
    return lax.sign(value)


def square(x: ArrayLike, /) -> Value:
    """x * x."""
    check_arraylike("square", x)
    return lax.square(numbers(as_value(x))[0])


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Value:
    """The nearest value with `decimals` digits after the point; halves go to the even neighbour."""
    no_out("round", out)
    check_arraylike("round", a)
    x, digits = numbers_only("round", as_value(a)), operator.index(decimals)
    even = lax.RoundingMethod.TO_NEAREST_EVEN
    if x.aval.dtype.kind == "b":
        raise OperandError(f"round: booleans cannot be rounded\n  at {user_line()}", "round")
    if not dtypes.is_inexact(x.aval.dtype):
        if digits < 0:
            raise OperandError(f"round: integers with decimals={digits} are not supported\n  at {user_line()}", "round")
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


def isfinite(x: ArrayLike, /) -> Value:
    """True where x is neither infinite nor NaN."""
    check_arraylike("isfinite", x)
    value = as_value(x)
    if dtypes.is_complex(value.aval.dtype):
        return lax.is_finite(lax.real(value)) & lax.is_finite(lax.imag(value))
    if not dtypes.is_inexact(value.aval.dtype):
        return lax.full_like(value, True, dtype=np.bool_)
    return lax.is_finite(value)


def isnan(x: ArrayLike, /) -> Value:
    """True where x is NaN."""
    check_arraylike("isnan", x)
    value = as_value(x)
    return value != value


def isinf(x: ArrayLike, /) -> Value:
    """True where x is infinite."""
    check_arraylike("isinf", x)
    value = as_value(x)
    if dtypes.is_complex(value.aval.dtype):
        return isinf(lax.real(value)) | isinf(lax.imag(value))
    if not dtypes.is_inexact(value.aval.dtype):
        return lax.full_like(value, False, dtype=np.bool_)
    return lax.abs(value) == math.inf


def isposinf(x: ArrayLike, /, out: None = None) -> Value:
    """True where x is infinity."""
    no_out("isposinf", out)
    return _is_infinity("isposinf", x, math.inf)


def isneginf(x: ArrayLike, /, out: None = None) -> Value:
    """True where x is minus infinity."""
    no_out("isneginf", out)
    return _is_infinity("isneginf", x, -math.inf)


def _is_infinity(name: str, x: ArrayLike, infinity: float) -> Value:
    check_arraylike(name, x)
    value = real_only(name, numbers_only(name, as_value(x)))
    if not dtypes.is_floating(value.aval.dtype):
        return lax.full_like(value, False, dtype=np.bool_)
    return value == infinity


def numbers_only(name: str, value: Value) -> Value:
    """The value; OperandError for keys."""
    if value.aval.is_extended:
        what = value.aval.str_short()
        raise OperandError(f"{name} does not accept {what}, which holds no numbers\n  at {user_line()}", name)
    return value


def real_only(name: str, value: Value) -> Value:
    """The value; OperandError if it is complex."""
    if dtypes.is_complex(value.aval.dtype):
        raise OperandError(f"{name} does not support complex numbers\n  at {user_line()}", name)
    return value


def signbit(x: ArrayLike, /) -> Value:
    """True where the sign bit is set: negative numbers and -0.0."""
    check_arraylike("signbit", x)
    value = real_only("signbit", numbers_only("signbit", as_value(x)))
    if not dtypes.is_floating(value.aval.dtype):
        return value < 0 if dtypes.is_integer(value.aval.dtype) else isinf(value)
    bits = lax.bitcast_convert_type(value, f"int{8 * value.aval.dtype.itemsize}")
    return bits < 0


def real(val: ArrayLike, /) -> Value:
    """The real part; itself if it is not complex."""
    check_arraylike("real", val)
    value = as_value(val)
    return lax.real(value) if dtypes.is_complex(value.aval.dtype) else value


def imag(val: ArrayLike, /) -> Value:
    """The imaginary part; 0 if it is not complex."""
    check_arraylike("imag", val)
    value = as_value(val)
    return lax.imag(value) if dtypes.is_complex(value.aval.dtype) else lax.full_like(value, 0)


def conj(x: ArrayLike, /) -> Value:
    """The complex conjugate."""
    check_arraylike("conj", x)
    value = as_value(x)
    return lax.conj(value) if dtypes.is_complex(value.aval.dtype) else value


conjugate = conj


def angle(z: ArrayLike, deg: bool = False) -> Value:
    """The argument of complex numbers; of integers and of single floats in the default float type."""
    check_arraylike("angle", z)
    value = as_value(z)
    dtype = value.aval.dtype
    if not dtypes.is_inexact(dtype) or (dtypes.is_floating(dtype) and not value.aval.shape):
        value = convert(value, dtypes.default_float(), False)
    result = lax.atan2(imag(value), real(value))
    return rad2deg(result) if deg else result


def deg2rad(x: ArrayLike, /) -> Value:
    """Degrees to radians."""
    (value,) = promote_inexact("deg2rad", x)
    return strong_array(value * (math.pi / 180))


def rad2deg(x: ArrayLike, /) -> Value:
    """Radians to degrees."""
    (value,) = promote_inexact("rad2deg", x)
    return strong_array(value * (180 / math.pi))


radians, degrees = deg2rad, rad2deg


def logical_not(x: ArrayLike, /) -> Value:
    """True where x is 0 or False."""
    check_arraylike("logical_not", x)
    return ~to_bool(as_value(x))


def bitwise_not(x: ArrayLike, /) -> Value:
    """All bits inverted; logical not of booleans."""
    check_arraylike("bitwise_not", x)
    return lax.bitwise_not(as_value(x))


invert = bitwise_invert = bitwise_not


def numbers(*values: Value) -> tuple[Value, ...]:
    """Booleans as integers, as for arithmetic that has no meaning for truth values; others as they are."""
    if values[0].aval.dtype.kind != "b":
        return values
    return tuple([convert(v, dtypes.int32, False) for v in values])


def rint(x: ArrayLike, /) -> Value:
    """The nearest integral value, as a float; halves go to the even neighbour."""
    check_arraylike("rint", x)
    value = as_value(x)
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
    """sin(pi * x) / (pi * x), 1 at 0."""
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
