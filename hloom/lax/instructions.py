"""Elementwise operations that are one instruction of HLO; those that are more are in `elementwise.py`.

Names and the meaning of arguments follow jax.lax. Names here shadow Python's (`abs`, `max`), as they do there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import DTypeLike

from ..extend.primitive import Primitive
from ..hlo.ir import NO_ATTRIBUTES, Attributes
from ..hlo.opcode import Opcode
from ..hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from ..hlo.ops.movement import BroadcastAttributes
from ..namespaces.declaring import F, declared
from ..tracer import dtypes
from ..tracer.arrays.array import Array, as_value, is_placed
from ..tracer.arrays.operators import ArrayLike
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, bind, eager_with_scalar, thread_state
from ..tracer.errors import OperandError
from ..tracer.ops import compare, convert
from .accuracy import AccuracyMode, Tolerance, check_accuracy
from .movement import broadcast_in_dim, broadcast_shapes, full_like

Binary = Callable[[Any, Any], Value]


def _unary(opcode: Opcode) -> Callable[[F], F]:
    def op(x: Any) -> Value:
        return bind(opcode, (as_value(x),))

    return lambda declaration: declared(declaration, op)


def _elementary(opcode: Opcode) -> Callable[[F], F]:
    """A function with an argument for the accuracy."""

    def decorate(declaration: F) -> F:
        name = declaration.__name__

        def op(x: Any, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
            value = as_value(x)
            if accuracy is not None:
                check_accuracy(name, accuracy, value.aval.dtype)
            return bind(opcode, (value,))

        return declared(declaration, op)

    return decorate


def _binary(opcode: Opcode) -> Callable[[F], F]:
    return lambda declaration: declared(declaration, _op_of_two(declaration.__name__, opcode, NO_ATTRIBUTES))


def _product(declaration: F) -> F:
    plain = _op_of_two("mul", Opcode.MULTIPLY, NO_ATTRIBUTES)

    def op(x: Any, y: Any, *, out_dtype: DTypeLike | None = None) -> Value:
        if out_dtype is None:
            return plain(x, y)
        dtype = dtypes.requested_dtype(out_dtype, "mul")
        return plain(convert(as_value(x), dtype, False), convert(as_value(y), dtype, False))

    return declared(declaration, op)


def _extremum(opcode: Opcode) -> Callable[[F], F]:
    """HLO's op compares the real parts of complex numbers only; here the imaginary parts decide between equal ones."""

    def decorate(declaration: F) -> F:
        name = declaration.__name__
        return declared(declaration, _op_of_two(name, opcode, NO_ATTRIBUTES, Primitive(f"complex_{name}")))

    return decorate


def _compare(direction: ComparisonDirection) -> Callable[[F], F]:
    attributes = CompareAttributes(direction)
    return lambda declaration: declared(declaration, _op_of_two(declaration.__name__, Opcode.COMPARE, attributes))


def _op_of_two(name: str, opcode: Opcode, attributes: Attributes, of_complex: Primitive | None = None) -> Binary:
    state = thread_state()
    if of_complex is not None:
        _order_complex(of_complex, ComparisonDirection.GT if opcode is Opcode.MAXIMUM else ComparisonDirection.LT)

    def op(x: Any, y: Any) -> Value:
        a, b = as_value(x), as_value(y)
        left, right = a.aval, b.aval
        if of_complex is not None and left.dtype.kind == "c":
            return convert(of_complex.bind(*matched(name, a, b)), left.dtype, left.weak_type and right.weak_type)
        if left.dtype is right.dtype:
            if left.shape == right.shape:
                return bind(opcode, (a, b), attributes)
            if not (left.shape and right.shape) and not left.is_extended:
                at_once = state.direct and not (is_placed(a) or is_placed(b))
                if at_once and isinstance(a, Array) and isinstance(b, Array):
                    return eager_with_scalar(opcode, a, b, attributes)
                a, b = (_spread(a, right.shape), b) if right.shape else (a, _spread(b, left.shape))
                return bind(opcode, (a, b), attributes)
        return bind(opcode, matched(name, a, b), attributes)

    return op


def _order_complex(chosen: Primitive, direction: ComparisonDirection) -> None:
    """Give the larger (or smaller) of two complex numbers its meaning and its derivative, half of each if equal."""

    @chosen.def_meaning
    def choose(a: Value, b: Value) -> Value:
        return bind(Opcode.SELECT, (precedes(a, b, direction), a, b))

    @chosen.def_jvp
    def choose_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
        (a, b), (s, t) = primals, tangents
        result = chosen.bind(a, b)
        half = bind(Opcode.SELECT, (eq(a, b), full_like(a, 0.5), full_like(a, 1)))
        none = full_like(a, 0)
        return result, add(mul(s, select(eq(a, result), half, none)), mul(t, select(eq(b, result), half, none)))


def precedes(a: Value, b: Value, direction: ComparisonDirection) -> Value:
    """Complex numbers compared by their real parts, equal ones by their imaginary parts."""
    attributes = CompareAttributes(direction)
    (p, q), (r, s) = ((bind(Opcode.REAL, (v,)), bind(Opcode.IMAG, (v,))) for v in (a, b))
    by_imag = bind(Opcode.COMPARE, (q, s), attributes)
    return bind(Opcode.SELECT, (eq(p, r), by_imag, bind(Opcode.COMPARE, (p, r), attributes)))


def _spread(scalar: Value, shape: tuple[int, ...]) -> Value:
    """A scalar repeated to `shape`, within a trace."""
    return bind(Opcode.BROADCAST, (scalar,), _OF_SCALAR, shape=ShapedArray(shape, scalar.aval.dtype).hlo)


_OF_SCALAR = BroadcastAttributes(())


def matched(name: str, *values: Value) -> tuple[Value, ...]:
    """`values`, of one dtype, broadcast to one shape."""
    first = values[0].aval
    if any(v.aval.dtype is not first.dtype for v in values):
        names = ", ".join(v.aval.dtype.name for v in values)
        raise OperandError(
            f"lax.{name} requires arguments to have the same dtypes, got {names} (hloom.numpy functions promote "
            "dtypes)",
            f"{name}_dtypes",
        )
    if all(v.aval.shape == first.shape for v in values):
        return values
    ranks = {len(v.aval.shape) for v in values} - {0}
    if len(ranks) > 1:
        shapes = ", ".join(v.aval.str_short() for v in values)
        raise OperandError(f"lax.{name}: arrays must have the same number of dimensions, got {shapes}", f"{name}_rank")
    shape = broadcast_shapes(*(v.aval.shape for v in values))
    return tuple(
        v if v.aval.shape == shape else broadcast_in_dim(v, shape, tuple(range(len(v.aval.shape)))) for v in values
    )


# ---- one operand


@_unary(Opcode.ABS)
def abs(x: ArrayLike) -> Value:
    """|x|; for complex numbers the modulus, of the real dtype.

    Element by element, of signed integers, floating-point or complex numbers; the shape remains.

    >>> lax.abs(jnp.array([-2, 0, 3]))
    Array([2, 0, 3], dtype=int32)
    >>> lax.abs(jnp.array([3 + 4j]))
    Array([5.], dtype=float32)
    """


@_unary(Opcode.NEGATE)
def neg(x: ArrayLike) -> Value:
    """-x; unsigned integers wrap.

    Element by element, of arrays of numbers of any shape; shape and dtype remain.

    >>> lax.neg(jnp.array([1.5, -2.0]))
    Array([-1.5,  2. ], dtype=float32)
    """


@_unary(Opcode.FLOOR)
def floor(x: ArrayLike) -> Value:
    """The largest integral value not above x.

    Element by element, of floating-point arrays of any shape; shape and dtype remain.

    >>> lax.floor(jnp.array([-1.5, 1.5]))
    Array([-2.,  1.], dtype=float32)
    """


@_unary(Opcode.CEIL)
def ceil(x: ArrayLike) -> Value:
    """The smallest integral value not below x.

    Element by element, of floating-point arrays of any shape; shape and dtype remain.

    >>> lax.ceil(jnp.array([-1.5, 1.5]))
    Array([-1.,  2.], dtype=float32)
    """


@_elementary(Opcode.EXP)
def exp(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """e**x.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.exp(jnp.array([0.0, 1.0])), 3)
    Array([1.   , 2.718], dtype=float32)
    """


@_elementary(Opcode.EXPM1)
def expm1(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """e**x - 1, accurate near 0.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> x = jnp.array([1e-9])
    >>> lax.exp(x) - 1, lax.expm1(x)
    (Array([0.], dtype=float32), Array([1.e-09], dtype=float32))
    """


@_elementary(Opcode.LOG)
def log(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """The natural logarithm.

    Element by element, of floating-point or complex arrays; -inf at 0, NaN for real numbers below. Shape and dtype
    remain.

    >>> lax.log(jnp.array([1.0, 0.0, -1.0]))
    Array([  0., -inf,  nan], dtype=float32)
    """


@_elementary(Opcode.LOG1P)
def log1p(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """log(1 + x), accurate near 0.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> x = jnp.array([1e-9])
    >>> lax.log(1 + x), lax.log1p(x)
    (Array([0.], dtype=float32), Array([1.e-09], dtype=float32))
    """


@_elementary(Opcode.SQRT)
def sqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """The square root.

    Element by element, of floating-point or complex arrays; NaN for real numbers below 0. Shape and dtype remain.

    >>> lax.sqrt(jnp.array([4.0, 9.0]))
    Array([2., 3.], dtype=float32)
    >>> lax.sqrt(jnp.array([-4.0 + 0j]))
    Array([0.+2.j], dtype=complex64)
    """


@_elementary(Opcode.RSQRT)
def rsqrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """1 / sqrt(x).

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> lax.rsqrt(jnp.array([4.0, 0.25]))
    Array([0.5, 2. ], dtype=float32)
    """


@_elementary(Opcode.CBRT)
def cbrt(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """The real cube root.

    Element by element, of floating-point arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.cbrt(jnp.array([-8.0, 27.0])), 3)
    Array([-2.,  3.], dtype=float32)
    """


@_elementary(Opcode.SIN)
def sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """The sine of radians.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.sin(jnp.array([0.0, 1.0])), 3)
    Array([0.   , 0.841], dtype=float32)
    """


@_elementary(Opcode.COS)
def cos(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """The cosine of radians.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.cos(jnp.array([0.0, 1.0])), 3)
    Array([1.  , 0.54], dtype=float32)
    """


@_elementary(Opcode.TAN)
def tan(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """The tangent of radians.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.tan(jnp.array([0.0, 1.0])), 3)
    Array([0.   , 1.557], dtype=float32)
    """


@_unary(Opcode.ASIN)
def asin(x: ArrayLike) -> Value:
    """The inverse sine, in radians.

    Element by element, of floating-point or complex arrays; NaN for real numbers outside of [-1, 1].

    >>> jnp.round(lax.asin(jnp.array([0.0, 1.0, 2.0])), 3)
    Array([0.   , 1.571,   nan], dtype=float32)
    """


@_unary(Opcode.ACOS)
def acos(x: ArrayLike) -> Value:
    """The inverse cosine, in radians.

    Element by element, of floating-point or complex arrays; NaN for real numbers outside of [-1, 1].

    >>> jnp.round(lax.acos(jnp.array([1.0, -1.0])), 3)
    Array([0.   , 3.142], dtype=float32)
    """


@_unary(Opcode.SINH)
def sinh(x: ArrayLike) -> Value:
    """The hyperbolic sine.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.sinh(jnp.array([0.0, 1.0])), 3)
    Array([0.   , 1.175], dtype=float32)
    """


@_unary(Opcode.COSH)
def cosh(x: ArrayLike) -> Value:
    """The hyperbolic cosine.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.cosh(jnp.array([0.0, 1.0])), 3)
    Array([1.   , 1.543], dtype=float32)
    """


@_elementary(Opcode.TANH)
def tanh(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """The hyperbolic tangent.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.tanh(jnp.array([0.0, 1.0, 20.0])), 3)
    Array([0.   , 0.762, 1.   ], dtype=float32)
    """


@_unary(Opcode.ASINH)
def asinh(x: ArrayLike) -> Value:
    """The inverse hyperbolic sine.

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.asinh(jnp.array([0.0, 1.0])), 3)
    Array([0.   , 0.881], dtype=float32)
    """


@_unary(Opcode.ACOSH)
def acosh(x: ArrayLike) -> Value:
    """The inverse hyperbolic cosine.

    Element by element, of floating-point or complex arrays; NaN for real numbers below 1.

    >>> jnp.round(lax.acosh(jnp.array([1.0, 2.0])), 3)
    Array([0.   , 1.317], dtype=float32)
    """


@_unary(Opcode.ATANH)
def atanh(x: ArrayLike) -> Value:
    """The inverse hyperbolic tangent.

    Element by element, of floating-point or complex arrays; infinite at -1 and 1, NaN for real numbers outside.

    >>> jnp.round(lax.atanh(jnp.array([0.0, 0.5, 1.0])), 3)
    Array([0.   , 0.549,   inf], dtype=float32)
    """


@_elementary(Opcode.LOGISTIC)
def logistic(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Value:
    """1 / (1 + e**-x).

    Element by element, of floating-point or complex arrays of any shape; shape and dtype remain.

    >>> lax.logistic(jnp.array([-jnp.inf, 0.0, jnp.inf]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """


@_unary(Opcode.ERF)
def erf(x: ArrayLike) -> Value:
    """The error function.

    Element by element, of floating-point arrays of any shape; shape and dtype remain.

    >>> jnp.round(lax.erf(jnp.array([0.0, 0.5, 1.0])), 3)
    Array([0.   , 0.52 , 0.843], dtype=float32)
    """


@_unary(Opcode.IS_FINITE)
def is_finite(x: ArrayLike) -> Value:
    """True where x is neither infinite nor NaN; for floats.

    >>> lax.is_finite(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """


@_unary(Opcode.NOT)
def bitwise_not(x: ArrayLike) -> Value:
    """All bits inverted; logical not of booleans.

    Element by element; shape and dtype remain.

    >>> lax.bitwise_not(jnp.array([0, 1, -1]))
    Array([-1, -2,  0], dtype=int32)
    """


@_unary(Opcode.POPULATION_COUNT)
def population_count(x: ArrayLike) -> Value:
    """The number of bits that are 1.

    Element by element, of integer arrays of any shape; shape and dtype remain.

    >>> lax.population_count(jnp.array([0, 1, 7, -1]))
    Array([ 0,  1,  3, 32], dtype=int32)
    """


@_unary(Opcode.COUNT_LEADING_ZEROS)
def clz(x: ArrayLike) -> Value:
    """The number of 0 bits above the highest 1.

    Element by element, of integer arrays of any shape; shape and dtype remain.

    >>> lax.clz(jnp.array([0, 1, 8]))
    Array([32, 31, 28], dtype=int32)
    """


# ---- two operands


@_binary(Opcode.ADD)
def add(x: ArrayLike, y: ArrayLike) -> Value:
    """x + y; logical or of booleans.

    Element by element, of two arrays of numbers of one dtype, which the result has too; a scalar, or a size of 1, meets
    any size.

    >>> lax.add(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([11, 22], dtype=int32)
    >>> lax.add(jnp.array([1.0, 2.0]), 0.5)
    Array([1.5, 2.5], dtype=float32)
    """


@_binary(Opcode.SUBTRACT)
def sub(x: ArrayLike, y: ArrayLike) -> Value:
    """x - y.

    Element by element, of two arrays of numbers of one dtype, which the result has too; a scalar, or a size of 1, meets
    any size.

    >>> lax.sub(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([ -9, -18], dtype=int32)
    """


@_product
def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Value:
    """x * y; logical and of booleans.

    Element by element, of two arrays of numbers of one dtype, which the result has too; a scalar, or a size of 1, meets
    any size. With `out_dtype` both are converted to that dtype first, and may have different ones.

    >>> lax.mul(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([10, 40], dtype=int32)
    """


@_binary(Opcode.MULHI)
def mulhi(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The upper half of the product of two integers, computed with twice as many bits.

    Element by element, of integers (signed or not) of one dtype; a scalar, or a size of 1, meets any size.

    >>> lax.mulhi(jnp.uint32(2**31), jnp.uint32(6))
    Array(3, dtype=uint32)
    """


@_binary(Opcode.DIVIDE)
def div(x: ArrayLike, y: ArrayLike) -> Value:
    """x / y; integers truncate towards 0, and x / 0 is -1 (all bits set).

    Element by element, of two arrays of numbers of one dtype, which the result has too; a scalar, or a size of 1, meets
    any size.

    >>> lax.div(jnp.array([-7, 7]), jnp.array([2, 0]))
    Array([-3, -1], dtype=int32)
    >>> lax.div(jnp.array([1.0, 3.0]), 2.0)
    Array([0.5, 1.5], dtype=float32)
    """


@_binary(Opcode.REMAINDER)
def rem(x: ArrayLike, y: ArrayLike) -> Value:
    """The remainder of truncating division: it has the sign of x.

    Element by element, of two arrays of numbers of one dtype, which the result has too; a scalar, or a size of 1, meets
    any size.

    >>> lax.rem(jnp.array([-7, 7]), jnp.array([3, 3]))
    Array([-1,  1], dtype=int32)
    """


@_extremum(Opcode.MAXIMUM)
def max(x: ArrayLike, y: ArrayLike) -> Value:
    """The larger one; NaN if one is NaN. Complex: by real, then imaginary part.

    Element by element, of two arrays of numbers of one dtype, which the result has too; a scalar, or a size of 1, meets
    any size.

    >>> lax.max(jnp.array([1.0, 5.0, jnp.nan]), 2.0)
    Array([ 2.,  5., nan], dtype=float32)
    """


@_extremum(Opcode.MINIMUM)
def min(x: ArrayLike, y: ArrayLike) -> Value:
    """The smaller one; NaN if one is NaN. Complex: as for `max`.

    Element by element, of two arrays of numbers of one dtype, which the result has too; a scalar, or a size of 1, meets
    any size.

    >>> lax.min(jnp.array([1.0, 5.0, jnp.nan]), 2.0)
    Array([ 1.,  2., nan], dtype=float32)
    """


@_binary(Opcode.ATAN2)
def atan2(x: ArrayLike, y: ArrayLike) -> Value:
    """The angle of the point (y, x): atan2(x, y) is the inverse tangent of x / y.

    Element by element, of floating-point or complex arrays of one dtype; the result is in [-pi, pi], in the point's
    quadrant.

    >>> jnp.round(lax.atan2(jnp.array([1.0, -1.0]), jnp.array([-1.0, -1.0])), 3)
    Array([ 2.356, -2.356], dtype=float32)
    """


@_binary(Opcode.AND)
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Value:
    """Bits set in both; logical and of booleans.

    Element by element, of integers (signed or not) of one dtype; a scalar, or a size of 1, meets any size.

    >>> lax.bitwise_and(jnp.array([0b1100]), 0b1010)
    Array([8], dtype=int32)
    """


@_binary(Opcode.OR)
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Value:
    """Bits set in one or both.

    Element by element, of integers (signed or not) of one dtype; a scalar, or a size of 1, meets any size.

    >>> lax.bitwise_or(jnp.array([0b1100]), 0b1010)
    Array([14], dtype=int32)
    """


@_binary(Opcode.XOR)
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Value:
    """Bits set in exactly one.

    Element by element, of integers (signed or not) of one dtype; a scalar, or a size of 1, meets any size.

    >>> lax.bitwise_xor(jnp.array([0b1100]), 0b1010)
    Array([6], dtype=int32)
    """


@_binary(Opcode.SHIFT_LEFT)
def shift_left(x: ArrayLike, y: ArrayLike) -> Value:
    """x * 2**y; 0 where y is the number of bits or more.

    Element by element, of integers (signed or not) of one dtype; a scalar, or a size of 1, meets any size.

    >>> lax.shift_left(jnp.array([1, 3]), 4)
    Array([16, 48], dtype=int32)
    """


@_binary(Opcode.SHIFT_RIGHT_LOGICAL)
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Value:
    """Bits moved down, 0 moved in.

    Element by element, of integers (signed or not) of one dtype; a scalar, or a size of 1, meets any size.

    >>> lax.shift_right_logical(jnp.array([-16, 16]), 2)
    Array([1073741820,          4], dtype=int32)
    """


@_binary(Opcode.SHIFT_RIGHT_ARITHMETIC)
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Value:
    """Bits moved down, the sign bit moved in.

    Element by element, of integers (signed or not) of one dtype; a scalar, or a size of 1, meets any size.

    >>> lax.shift_right_arithmetic(jnp.array([-16, 16]), 2)
    Array([-4,  4], dtype=int32)
    """


@_compare(ComparisonDirection.EQ)
def eq(x: ArrayLike, y: ArrayLike) -> Value:
    """x == y.

    Element by element, of two arrays of one dtype; the result is bool. A scalar, or a size of 1, meets any size.

    >>> lax.eq(jnp.array([1, 2, 3]), 2)
    Array([False,  True, False], dtype=bool)
    """


@_compare(ComparisonDirection.NE)
def ne(x: ArrayLike, y: ArrayLike) -> Value:
    """x != y.

    Element by element, of two arrays of one dtype; the result is bool. A scalar, or a size of 1, meets any size.

    >>> lax.ne(jnp.array([1, 2, 3]), 2)
    Array([ True, False,  True], dtype=bool)
    """


@_compare(ComparisonDirection.GE)
def ge(x: ArrayLike, y: ArrayLike) -> Value:
    """x >= y.

    Element by element, of two arrays of one dtype; the result is bool. A scalar, or a size of 1, meets any size.

    >>> lax.ge(jnp.array([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)
    """


@_compare(ComparisonDirection.GT)
def gt(x: ArrayLike, y: ArrayLike) -> Value:
    """x > y.

    Element by element, of two arrays of one dtype; the result is bool. A scalar, or a size of 1, meets any size.

    >>> lax.gt(jnp.array([1, 2, 3]), 2)
    Array([False, False,  True], dtype=bool)
    """


@_compare(ComparisonDirection.LE)
def le(x: ArrayLike, y: ArrayLike) -> Value:
    """x <= y.

    Element by element, of two arrays of one dtype; the result is bool. A scalar, or a size of 1, meets any size.

    >>> lax.le(jnp.array([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)
    """


@_compare(ComparisonDirection.LT)
def lt(x: ArrayLike, y: ArrayLike) -> Value:
    """x < y.

    Element by element, of two arrays of one dtype; the result is bool. A scalar, or a size of 1, meets any size.

    >>> lax.lt(jnp.array([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)
    """


# ---- three operands


def select(pred: Any, on_true: Any, on_false: Any) -> Value:
    """Elements of `on_true` where `pred` (bool, a scalar or of their shape) is true, else of `on_false`.

    A `pred` of integers chooses `on_false` up to 0, as in `select_n`.

    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
    Array([ 1, 20], dtype=int32)
    """
    pred, on_true, on_false = as_value(pred), as_value(on_true), as_value(on_false)
    if dtypes.is_integer(pred.aval.dtype):
        pred = compare(pred, "GT", full_like(pred, 0))
    return bind(Opcode.SELECT, (pred, on_true, on_false), weak_type=all_weak(on_true, on_false))


def all_weak(*values: Value) -> bool:
    return all(v.aval.weak_type for v in values)
