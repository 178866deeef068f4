"""Elementwise operations of several instructions, or with arguments; the others are in `instructions.py`.

Operands have one dtype; a scalar, or a dimension of size 1, meets any size.

Names and the meaning of arguments follow jax.lax. Names here shadow Python's (`abs`, `max`, `round`), as they do there.
"""

from __future__ import annotations

import math
import operator as operators
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..extend.primitive import Primitive
from ..hlo.element_type import element_type_of
from ..hlo.opcode import Opcode
from ..hlo.ops.elementwise import ReducePrecisionAttributes
from ..hlo.shape import Shape
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.core import Value, bind
from ..tracer.errors import OperandError
from ..tracer.ops import convert, make_complex, scalar_like
from .accuracy import AccuracyMode, Tolerance
from .instructions import abs, add, all_weak, atan2, atanh, div, eq, exp, le, log, matched, mul, ne, neg, select, sub
from .movement import full_like


def complex(x: Any, y: Any) -> Value:
    """x + iy of real parts of one dtype, float32 or float64.

    Element by element; the result is complex64 or complex128.

    >>> lax.complex(jnp.array([1.0, 2.0]), 3.0)
    Array([1.+3.j, 2.+3.j], dtype=complex64)
    """
    return bind(Opcode.COMPLEX, matched("complex", as_value(x), as_value(y)))


def real(x: Any) -> Value:
    """The real part, of the real dtype; of complex numbers only.

    >>> lax.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    return bind(Opcode.REAL, (_complex_only("real", x),))


def imag(x: Any) -> Value:
    """The imaginary part, of the real dtype; of complex numbers only.

    >>> lax.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return bind(Opcode.IMAG, (_complex_only("imag", x),))


def _complex_only(name: str, x: Any) -> Value:
    value = as_value(x)
    if not dtypes.is_complex(value.aval.dtype):
        raise OperandError(
            f"lax.{name} takes complex numbers, not {value.aval.str_short()}\n  hloom.numpy.{name} takes real ones, "
            "too.",
            name,
        )
    return value


def conj(x: Any) -> Value:
    """The complex conjugate; a float becomes complex first.

    >>> lax.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = as_value(x)
    if not dtypes.is_complex(x.aval.dtype):
        return complex(x, full_like(x, 0))
    return complex(real(x), neg(imag(x)))


def sign(x: Any) -> Value:
    """-1, 0 (with its sign) or 1; NaN for NaN; x/|x| for complex numbers.

    Element by element, of arrays of numbers of any shape; shape and dtype remain.

    >>> lax.sign(jnp.array([-2.5, 0.0, 7.0]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    x = as_value(x)
    if dtypes.is_unsigned(x.aval.dtype):  # HLO has it for signed types only
        return convert(ne(x, full_like(x, 0)), x.aval.dtype, x.aval.weak_type)
    return bind(Opcode.SIGN, (x,))


def square(x: Any) -> Value:
    """x * x.

    Element by element, of arrays of numbers of any shape; shape and dtype remain.

    >>> lax.square(jnp.array([-3, 4]))
    Array([ 9, 16], dtype=int32)
    """
    x = as_value(x)
    if x.aval.dtype.kind == "c":
        return convert(_square.bind(x), x.aval.dtype, x.aval.weak_type)
    return mul(x, x)


_square = Primitive("square")
"""Of complex numbers: no part overflows, or loses its digits, if the square's part is in range."""


@_square.def_meaning
def _square_meaning(z: Value) -> Value:
    x, y = real(z), imag(z)
    diagonal = eq(abs(x), abs(y))
    nothing = sub(abs(x), abs(y))  # 0, or NaN of two infinities
    difference = select(diagonal, nothing, mul(sub(x, y), add(x, y)))
    product = mul(x, y)
    return make_complex(difference, add(product, product))


@_square.def_jvp
def _square_jvp(primals: Any, tangents: Any) -> tuple[Value, Value]:
    (z,), (t,) = primals, tangents
    product = mul(z, t)
    return _square.bind(z), add(product, product)


def reciprocal(x: Any) -> Value:
    """1 / x.

    Element by element, of arrays of numbers of any shape; shape and dtype remain.

    >>> lax.reciprocal(jnp.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    x = as_value(x)
    return div(full_like(x, 1), x)


def atan(x: Any) -> Value:
    """The inverse tangent, in radians.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.atan(jnp.array([0.0, 1.0])), 3)
    Array([0.   , 0.785], dtype=float32)
    """
    x = as_value(x)
    if x.aval.dtype.kind != "c":
        return atan2(x, full_like(x, 1))
    turned = atanh(make_complex(neg(imag(x)), real(x)))  # atan(z) = -i atanh(i z)
    return make_complex(imag(turned), neg(real(turned)))


def exp2(x: Any, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """2**x.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> lax.exp2(jnp.array([0.0, 1.0, -1.0]))
    Array([1. , 2. , 0.5], dtype=float32)
    """
    x = as_value(x)
    return exp(mul(x, scalar_like(x, math.log(2))), accuracy=accuracy)


def log2(x: Any, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """The logarithm to base 2; NaN below 0.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> lax.log2(jnp.array([1.0, 8.0, 0.25]))
    Array([ 0.,  3., -2.], dtype=float32)
    """
    x = as_value(x)
    return mul(log(x, accuracy=accuracy), scalar_like(x, 1 / math.log(2)))


def pow(x: Any, y: Any) -> Value:
    """x**y, for an integer or floating x; y may be an integer where x is not.

    Element by element; the result has the dtype of x. A scalar, or a size of 1, meets any size.

    >>> lax.pow(jnp.array([2.0, 3.0]), 2)
    Array([4., 9.], dtype=float32)
    >>> lax.pow(jnp.array([2, 3]), jnp.array([10, 3]))
    Array([1024,   27], dtype=int32)
    """
    x, y = as_value(x), as_value(y)
    if dtypes.is_inexact(x.aval.dtype) and not dtypes.is_inexact(y.aval.dtype):
        y = convert(y, x.aval.dtype)
    return bind(Opcode.POWER, matched("pow", x, y))


def integer_pow(x: Any, y: int) -> Value:
    """x**y for a Python integer y, by repeated squaring.

    Element by element, of arrays of numbers of any shape; shape and dtype remain.

    >>> lax.integer_pow(jnp.array([2.0, -3.0]), 3)
    Array([  8., -27.], dtype=float32)
    >>> lax.integer_pow(jnp.array([2.0]), -2)
    Array([0.25], dtype=float32)
    """
    x = as_value(x)
    if y == 0:
        return full_like(x, 1)
    if y < 0:
        return reciprocal(integer_pow(x, -y))
    result: Value | None = None
    power = x
    while True:
        if y & 1:
            result = power if result is None else mul(result, power)
        y >>= 1
        if not y:
            assert result is not None
            return result
        power = mul(power, power)


class RoundingMethod(IntEnum):
    """How `round` treats numbers halfway between two integers.

    >>> lax.round(jnp.array([0.5, 1.5, 2.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([0., 2., 2.], dtype=float32)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Value:
    """The nearest integral value.

    Of floating-point arrays. Halves go away from zero, or with `RoundingMethod.TO_NEAREST_EVEN` to the even one.

    >>> lax.round(jnp.array([0.5, 1.5, 2.4]))
    Array([1., 2., 2.], dtype=float32)
    """
    even = RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN
    return bind(Opcode.ROUND_NEAREST_EVEN if even else Opcode.ROUND_NEAREST_AFZ, (as_value(x),))


# ---- select, clamp


def select_n(which: Any, *cases: Any) -> Value:
    """Elements of cases[which]; `which` is bool (false chooses cases[0]) or an integer, a scalar or of their shape.

    Integers below 0 choose the first case, those from the number of cases on the last.

    >>> lax.select_n(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
    Array([10,  2], dtype=int32)
    >>> lax.select_n(jnp.array([2, 0]), jnp.array([1, 2]), jnp.array([3, 4]), jnp.array([5, 6]))
    Array([5, 2], dtype=int32)
    """
    which, values = as_value(which), [as_value(c) for c in cases]
    if not values:
        raise ValueError("lax.select_n needs at least one case")
    if which.aval.dtype != np.bool_ and not dtypes.is_integer(which.aval.dtype):
        what = which.aval.str_short()
        raise OperandError(f"lax.select_n: which must be bool or an integer, not {what}", "select_n_c2")
    if which.aval.dtype == np.bool_:
        if len(values) > 2:
            raise OperandError(f"lax.select_n: a boolean chooses between 2 cases, not {len(values)}", "select_n_c1")
        return values[0] if len(values) == 1 else select(which, values[1], values[0])
    last = min(len(values) - 1, int(dtypes.iinfo(which.aval.dtype).max))  # an integer of few bits reaches no further
    result = values[last]
    for k in range(last - 1, -1, -1):
        result = select(le(which, scalar_like(which, k)), values[k], result)
    return result


def clamp(min: Any, x: Any, max: Any) -> Value:
    """x limited to [min, max]; the bounds are scalars or of its shape.

    >>> lax.clamp(0.0, jnp.array([-1.0, 0.25, 7.0]), 1.0)
    Array([0.  , 0.25, 1.  ], dtype=float32)
    """
    low, x, high = as_value(min), as_value(x), as_value(max)
    if not low.aval.dtype is x.aval.dtype is high.aval.dtype:
        matched("clamp", low, x, high)  # its error names the dtypes that differ
    return bind(Opcode.CLAMP, (low, x, high), weak_type=all_weak(low, x, high))


# ---- changing the element type


def convert_element_type(operand: Any, new_dtype: DTypeLike | None) -> Value:
    """The operand with another dtype, strongly typed.

    Floats become integers by truncation, saturating; complex numbers drop their imaginary part.

    >>> lax.convert_element_type(jnp.array([1.9, -1.9, 1e20]), jnp.int32)
    Array([         1,         -1, 2147483647], dtype=int32)
    """
    if new_dtype is None:
        raise ValueError("convert_element_type: a dtype must be given")
    return convert(as_value(operand), dtypes.requested_dtype(new_dtype, "convert_element_type"), False)


def bitcast_convert_type(operand: Any, new_dtype: DTypeLike) -> Value:
    """The same bits as another dtype. A narrower one adds a last dimension, a wider one removes it.

    >>> lax.bitcast_convert_type(jnp.float32(1.0), jnp.uint32)
    Array(1065353216, dtype=uint32)
    >>> lax.bitcast_convert_type(jnp.float32(1.0), jnp.uint8).shape
    (4,)
    """
    x, dtype = as_value(operand), dtypes.requested_dtype(new_dtype, "bitcast_convert_type")
    shape, old = x.aval.shape, x.aval.dtype
    if dtypes.is_extended(dtype) or x.aval.is_extended:
        refused = dtype if dtypes.is_extended(dtype) else old
        raise OperandError(f"bitcast_convert_type does not accept {refused.name}", "bitcast")
    wide, narrow = element_type_of(old).bit_width, element_type_of(dtype).bit_width
    if wide > narrow:
        shape = (*shape, wide // narrow)
    elif wide < narrow:
        shape = shape[:-1]
    return bind(Opcode.BITCAST_CONVERT, (x,), shape=Shape.array(element_type_of(dtype), shape), weak_type=False)


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Value:
    """Floats rounded to the nearest ones with so many bits in exponent and mantissa; the dtype remains.

    >>> lax.reduce_precision(jnp.array([1.0, 1.01, 3.3]), exponent_bits=8, mantissa_bits=2)
    Array([1. , 1. , 3.5], dtype=float32)
    """
    x = as_value(operand)
    attributes = ReducePrecisionAttributes(operators.index(exponent_bits), operators.index(mantissa_bits))
    return bind(Opcode.REDUCE_PRECISION, (x,), attributes)
