"""The parts of floats: exponent, mantissa, whole part, neighbours.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import lax
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .binary_ufuncs import copysign
from .promotion import (
    broadcast_values,
    check_arraylike,
    elementwise,
    ensure_arraylike,
    no_out,
    promote_inexact,
    strong_array,
    to_dtype,
)
from .unary_ufuncs import abs, isinf, isnan, numbers_only, real_only

# ---- floats


def _real_floats(name: str, x: ArrayLike) -> Value:
    (value,) = promote_inexact(name, numbers_only(name, ensure_arraylike(name, x)))
    return real_only(name, value)


def _wide(x: Value) -> Value:
    """Floats of two bytes or less as float32, which holds them and all that is computed of them here."""
    return to_dtype(x, dtypes.float32, False) if x.aval.dtype.itemsize < 4 else strong_array(x)


def _layout(x: Value) -> tuple[np.dtype[Any], int, int]:
    """The integers of the same width, the bits of the mantissa, and the largest exponent of two."""
    info = np.finfo(x.aval.dtype)
    return np.dtype(f"int{info.bits}"), info.nmant, int(info.maxexp) - 1


def _power_of_two(exponent: Value, like: Value) -> Value:
    """2**exponent, for the exponents of normal numbers."""
    integers, mantissa, bias = _layout(like)
    bits = lax.shift_left(to_dtype(exponent, integers, False) + bias, lax.full_like(exponent, mantissa, integers))
    return lax.bitcast_convert_type(bits, like.aval.dtype)


@compound()
def frexp(x: ArrayLike, /) -> tuple[Value, Value]:
    """Mantissas m with 0.5 <= |m| < 1, and exponents e (int32): x = m * 2**e. Zeros, infinities and NaN have e = 0.

    The derivative of m is 2**-e.

    >>> jnp.frexp(jnp.array([1.0, -6.0, 0.0]))
    (Array([ 0.5 , -0.75,  0.  ], dtype=float32), Array([1, 3, 0], dtype=int32))
    """
    value = _real_floats("frexp", x)
    wide = _wide(value)
    integers, mantissa, bias = _layout(wide)
    tiny = abs(wide) < float(np.finfo(wide.aval.dtype).tiny)
    normal = lax.select(tiny, wide * 2.0**mantissa, wide)
    bits = lax.bitcast_convert_type(normal, integers)
    own = lax.shift_right_arithmetic(bits, lax.full_like(bits, mantissa)) & (2 * bias + 1)
    exponent = own - (bias - 1) - lax.select(tiny, lax.full_like(own, mantissa), lax.full_like(own, 0))
    plain = isinf(wide) | isnan(wide) | (wide == 0)
    exponent = to_dtype(lax.select(plain, lax.full_like(exponent, 0), exponent), dtypes.int32, False)
    result = lax.select(plain, wide, _scaled(wide, -exponent))
    return to_dtype(result, value.aval.dtype, False), exponent


@compound()
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Value:
    """x1 * 2**x2, rounded once, also where 2**x2 itself has no float; x2 are integers. The inverse of `frexp`.

    >>> jnp.ldexp(1.5, -3)
    Array(0.1875, dtype=float32)
    """
    check_arraylike("ldexp", x1, x2)
    exponent = as_value(x2)
    (value,) = promote_inexact("ldexp", x1)
    if not (dtypes.is_integer(exponent.aval.dtype) or exponent.aval.dtype.kind == "b"):
        raise OperandError(f"ldexp: the exponents are integers, not {exponent.aval.str_short()}", "ldexp")
    value, exponent = broadcast_values([real_only("ldexp", value), exponent])
    limit = 4000  # beyond the exponents of all floats, and in all integer types that are wider than a byte
    if exponent.aval.dtype.itemsize > 1:
        exponent = lax.clamp(
            lax.full_like(exponent, 0 if dtypes.is_unsigned(exponent.aval.dtype) else -limit, shape=()),
            exponent,
            lax.full_like(exponent, limit, shape=()),
        )
    result = _scaled(_wide(value), to_dtype(exponent, dtypes.int32, False))
    return strong_array(to_dtype(result, value.aval.dtype, False))


def _scaled(x: Value, exponent: Value) -> Value:
    """x * 2**exponent, rounded once. Two steps bring the exponent into the range of normal numbers: those upwards are
    exact or overflow, those downwards leave room for the mantissa, so that a subnormal result is rounded at the end."""
    _, mantissa, bias = _layout(x)
    down = bias - 1 - (mantissa + 1)
    for _ in range(2):
        step = lax.select(exponent > bias, lax.full_like(exponent, bias), lax.full_like(exponent, 0))
        step = lax.select(exponent < 1 - bias, lax.full_like(exponent, -down), step)
        x, exponent = x * _power_of_two(step, x), exponent - step
    bounds = [lax.full_like(exponent, b, shape=()) for b in (1 - bias, bias)]
    return x * _power_of_two(lax.clamp(bounds[0], exponent, bounds[1]), x)


@compound()
def modf(x: ArrayLike, /, out: None = None) -> tuple[Value, Value]:
    """(fraction, whole part), each with the sign of x. The fraction of an infinity is 0.

    >>> jnp.modf(jnp.array([2.5, -0.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 2., -0.], dtype=float32))
    """
    no_out("modf", out)
    value = strong_array(_real_floats("modf", x))
    whole = lax.select(value < 0, lax.ceil(value), lax.floor(value))
    fraction = lax.select(isinf(value), lax.full_like(value, 0), value - whole)
    return copysign(fraction, value), whole


@elementwise
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The float next to x in the direction of y; NaN if one is NaN. Integers become floats. Shapes broadcast.

    >>> float(jnp.nextafter(1.0, 2.0)) - 1
    1.1920928955078125e-07
    """
    a, b = promote_inexact("nextafter", x, y)
    return lax.nextafter(real_only("nextafter", a), b)


@compound()
def spacing(x: ArrayLike, /) -> Value:
    """The distance from x to the next float away from 0, which is negative for negative x; NaN for infinities.

    Of float16 it is the distance to the next larger float, as in NumPy.

    >>> jnp.spacing(jnp.float32(1.0))
    Array(1.1920929e-07, dtype=float32)
    """
    value = _real_floats("spacing", x)
    infinity = lax.full_like(value, math.inf)
    upwards = value >= 0 if value.aval.dtype != np.float16 else lax.full_like(value, True, np.bool_)
    away = lax.select(upwards, infinity, -infinity)
    distance = lax.nextafter(strong_array(value), strong_array(away)) - value
    return to_dtype(lax.select(isinf(value), lax.full_like(distance, math.nan), distance), value.aval.dtype, False)


# ---- integers
