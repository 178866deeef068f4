"""The parts of floats: exponent, mantissa, whole part, neighbours. And divisors and bits of integers.

Names and semantics follow NumPy, and jax.numpy where they differ.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import lax
from ..lax.movement import canonical_axis
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.errors import OperandError
from ..tracer.source import user_line
from .binary_ufuncs import copysign
from .promotion import broadcast_values, check_arraylike, no_out, promote, promote_inexact, strong_array, to_dtype
from .unary_ufuncs import abs, isinf, isnan, numbers_only, real_only

# ---- floats


def _real_floats(name: str, x: ArrayLike) -> Value:
    check_arraylike(name, x)
    (value,) = promote_inexact(name, numbers_only(name, as_value(x)))
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

    >>> import hloom.numpy as jnp
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

    >>> import hloom.numpy as jnp
    >>> jnp.ldexp(1.5, -3)
    Array(0.1875, dtype=float32)
    """
    check_arraylike("ldexp", x1, x2)
    exponent = as_value(x2)
    (value,) = promote_inexact("ldexp", x1)
    if not (dtypes.is_integer(exponent.aval.dtype) or exponent.aval.dtype.kind == "b"):
        raise OperandError(
            f"ldexp: the exponents are integers, not {exponent.aval.str_short()}\n  at {user_line()}", "ldexp"
        )
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

    >>> import hloom.numpy as jnp
    >>> jnp.modf(jnp.array([2.5, -0.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 2., -0.], dtype=float32))
    """
    no_out("modf", out)
    value = strong_array(_real_floats("modf", x))
    whole = lax.select(value < 0, lax.ceil(value), lax.floor(value))
    fraction = lax.select(isinf(value), lax.full_like(value, 0), value - whole)
    return copysign(fraction, value), whole


def nextafter(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The float next to x in the direction of y; NaN if one is NaN. Integers become floats. Shapes broadcast.

    >>> import hloom.numpy as jnp
    >>> float(jnp.nextafter(1.0, 2.0)) - 1
    1.1920928955078125e-07
    """
    a, b = promote_inexact("nextafter", x, y)
    return lax.nextafter(real_only("nextafter", a), b)


@compound()
def spacing(x: ArrayLike, /) -> Value:
    """The distance from x to the next float away from 0, which is negative for negative x; NaN for infinities.

    Of float16 it is the distance to the next larger float, as in NumPy.

    >>> import hloom.numpy as jnp
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


def _integers(name: str, x1: ArrayLike, x2: ArrayLike) -> tuple[Value, Value]:
    x, y = promote(name, x1, x2)
    if not dtypes.is_integer(x.aval.dtype):
        raise OperandError(f"Arguments to {name} must be integers, not {x.aval.str_short()}\n  at {user_line()}", name)
    return x, y


@compound()
def gcd(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The greatest common divisor of integers, element by element; of 0 and 0 it is 0. Shapes broadcast.

    >>> import hloom.numpy as jnp
    >>> jnp.gcd(jnp.array([12, 18, 0]), 8)
    Array([4, 2, 8], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2)
    weak = x.aval.weak_type and not x.aval.shape

    def turn(state: tuple[Value, Value]) -> tuple[Value, Value]:
        a, b = state
        done = b == 0
        safe = lax.select(done, lax.full_like(b, 1), b)
        return lax.select(done, a, b), lax.select(done, b, lax.rem(a, safe))

    def unfinished(state: tuple[Value, Value]) -> Value:
        left = state[1] != 0
        return lax.reduce_or(left, range(left.aval.ndim))

    start = tuple([to_dtype(abs(v), v.aval.dtype, False) for v in (x, y)])
    found, _ = lax.while_loop(unfinished, turn, start)
    return to_dtype(found, x.aval.dtype, weak)


@compound()
def lcm(x1: ArrayLike, x2: ArrayLike) -> Value:
    """The least common multiple of integers, element by element; 0 if one is 0. Shapes broadcast.

    >>> import hloom.numpy as jnp
    >>> jnp.lcm(jnp.array([12, 18, 0]), 8)
    Array([24, 72,  0], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    divisor = gcd(x, y)
    safe = lax.select(divisor == 0, lax.full_like(divisor, 1), divisor)
    found = abs(x) * lax.div(abs(y), safe)  # of each, so that too large a result wraps as in NumPy
    return to_dtype(found, x.aval.dtype, x.aval.weak_type and not x.aval.shape)


@compound(small=True)
def bitwise_count(x: ArrayLike, /) -> Value:
    """The number of bits of |x| that are 1, as uint8.

    >>> import hloom.numpy as jnp
    >>> jnp.bitwise_count(jnp.array([7, -3, 0]))
    Array([3, 2, 0], dtype=uint8)
    """
    check_arraylike("bitwise_count", x)
    value = as_value(x)
    if value.aval.dtype.kind == "b":
        return lax.convert_element_type(value, np.uint8)
    if not dtypes.is_integer(value.aval.dtype):
        what = value.aval.str_short()
        raise OperandError(f"bitwise_count takes integers, not {what}\n  at {user_line()}", "bitwise_count")
    return lax.convert_element_type(lax.population_count(abs(value)), np.uint8)


@compound(static=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Value:
    """Each 8 elements along an axis (of the flattened array if None) as the bits of a uint8; zeros at the end.

    bitorder: "big", the first element is the highest bit, or "little".

    >>> import hloom.numpy as jnp
    >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1, 1]))
    Array([131, 128], dtype=uint8)
    """
    _check_bit_order("packbits", bitorder)
    check_arraylike("packbits", a)
    x = as_value(a)
    if not (dtypes.is_integer(x.aval.dtype) or x.aval.dtype.kind == "b"):
        what = x.aval.str_short()
        raise OperandError(
            f"Expected an input array of integer or boolean data type, not {what}\n  at {user_line()}", "bits"
        )
    bits, place = _along(x != 0, axis)
    sizes = bits.aval.shape
    count = -(-sizes[-1] // 8)
    wide = [(0, 0, 0)] * (len(sizes) - 1) + [(0, 8 * count - sizes[-1], 0)]
    padded = lax.pad(lax.convert_element_type(bits, np.uint8), np.uint8(0), wide)
    octets = lax.reshape(padded, (*sizes[:-1], count, 8))
    shifted = lax.shift_left(octets, _bit_numbers(octets.aval.shape, bitorder))
    return _back(lax.reduce_or(shifted, [len(sizes)]), place)


@compound(static=("axis", "count", "bitorder"))
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Value:
    """The bits of uint8 along an axis (of the flattened array if None), as uint8 with the values 0 and 1.

    count: how many to keep; if negative, how many to drop at the end. More than there are: zeros.

    >>> import hloom.numpy as jnp
    >>> jnp.unpackbits(jnp.array([131], "uint8"))
    Array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    _check_bit_order("unpackbits", bitorder)
    check_arraylike("unpackbits", a)
    x = as_value(a)
    if x.aval.dtype != np.uint8:
        what = x.aval.str_short()
        raise OperandError(
            f"Expected an input array of unsigned byte data type, not {what}\n  at {user_line()}", "bits"
        )
    octets, place = _along(x, axis)
    sizes = octets.aval.shape
    wide = lax.broadcast_in_dim(octets, (*sizes, 8), range(len(sizes)))
    bits = lax.shift_right_logical(wide, _bit_numbers((*sizes, 8), bitorder)) & np.uint8(1)
    flat = lax.reshape(bits, (*sizes[:-1], 8 * sizes[-1]))
    if count is not None:
        size = 8 * sizes[-1]
        kept = count if count >= 0 else max(0, size + count)
        low = [(0, 0, 0)] * (len(sizes) - 1)
        flat = lax.pad(flat, np.uint8(0), [*low, (0, kept - size, 0)])
    return _back(flat, place)


def _check_bit_order(name: str, order: str) -> None:
    if order not in ("little", "big"):
        raise ValueError(f"{name}: 'order' must be either 'little' or 'big', not {order!r}\n  at {user_line()}")


def _along(x: Value, axis: int | None) -> tuple[Value, int]:
    """The array with an axis at the end, and where it was."""
    if axis is None:
        return lax.reshape(x, (x.aval.size,)), 0
    place = canonical_axis(axis, x.aval.ndim)
    order = [d for d in range(x.aval.ndim) if d != place]
    return lax.transpose(x, [*order, place]), place


def _back(x: Value, place: int) -> Value:
    last = x.aval.ndim - 1
    return lax.transpose(x, [*range(place), last, *range(place, last)])


def _bit_numbers(shape: tuple[int, ...], order: str) -> Value:
    index = lax.broadcasted_iota(np.uint8, shape, len(shape) - 1)
    return index if order == "little" else np.uint8(7) - index
