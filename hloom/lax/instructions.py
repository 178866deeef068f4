"""Elementwise operations that are one instruction of HLO; those that are more are in `elementwise.py`.

Source for names and argument meaning: jax.lax. Names here shadow Python's (`abs`, `max`), as they do there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..declaring import F, declared
from ..extend.core import Primitive
from ..hlo.ir import NO_ATTRIBUTES, Attributes
from ..hlo.opcode import Opcode
from ..hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from ..hlo.ops.movement import BroadcastAttributes
from ..tracer import dtypes
from ..tracer.array import Array, as_value
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, bind, eager_with_scalar, thread_state
from ..tracer.errors import OperandError
from ..tracer.operators import ArrayLike
from ..tracer.ops import compare, convert
from ..tracer.source import user_line
from .movement import broadcast_in_dim, broadcast_shapes, full_like

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clz",
    "cos",
    "cosh",
    "div",
    "eq",
    "erf",
    "exp",
    "expm1",
    "floor",
    "ge",
    "gt",
    "is_finite",
    "le",
    "log",
    "log1p",
    "logistic",
    "lt",
    "max",
    "min",
    "mul",
    "mulhi",
    "ne",
    "neg",
    "population_count",
    "rem",
    "rsqrt",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sin",
    "sinh",
    "sqrt",
    "sub",
    "tan",
    "tanh",
]

Binary = Callable[[Any, Any], Value]


def _unary(opcode: Opcode) -> Callable[[F], F]:
    def op(x: Any) -> Value:
        return bind(opcode, (as_value(x),))

    return lambda declaration: declared(declaration, op)


def _binary(opcode: Opcode) -> Callable[[F], F]:
    return lambda declaration: declared(declaration, _op_of_two(declaration.__name__, opcode, NO_ATTRIBUTES))


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
                if state.direct and isinstance(a, Array) and isinstance(b, Array):
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
            f"lax.{name} requires arguments to have the same dtypes, got {names} "
            f"(hloom.numpy functions promote dtypes)\n  at {user_line() or '<unknown>'}",
            f"{name}_dtypes",
        )
    if all(v.aval.shape == first.shape for v in values):
        return values
    ranks = {len(v.aval.shape) for v in values} - {0}
    if len(ranks) > 1:
        shapes = ", ".join(v.aval.str_short() for v in values)
        raise OperandError(
            f"lax.{name}: arrays must have the same number of dimensions, got {shapes}\n  at {user_line()}",
            f"{name}_rank",
        )
    shape = broadcast_shapes(*(v.aval.shape for v in values))
    return tuple(
        v if v.aval.shape == shape else broadcast_in_dim(v, shape, tuple(range(len(v.aval.shape)))) for v in values
    )


# ---- one operand


@_unary(Opcode.ABS)
def abs(x: ArrayLike) -> Value:
    """|x|; for complex numbers the modulus, of the real dtype."""


@_unary(Opcode.NEGATE)
def neg(x: ArrayLike) -> Value:
    """-x; unsigned integers wrap."""


@_unary(Opcode.FLOOR)
def floor(x: ArrayLike) -> Value:
    """The largest integral value not above x."""


@_unary(Opcode.CEIL)
def ceil(x: ArrayLike) -> Value:
    """The smallest integral value not below x."""


@_unary(Opcode.EXP)
def exp(x: ArrayLike) -> Value:
    """e**x."""


@_unary(Opcode.EXPM1)
def expm1(x: ArrayLike) -> Value:
    """e**x - 1, accurate near 0."""


@_unary(Opcode.LOG)
def log(x: ArrayLike) -> Value:
    """The natural logarithm."""


@_unary(Opcode.LOG1P)
def log1p(x: ArrayLike) -> Value:
    """log(1 + x), accurate near 0."""


@_unary(Opcode.SQRT)
def sqrt(x: ArrayLike) -> Value:
    """The square root."""


@_unary(Opcode.RSQRT)
def rsqrt(x: ArrayLike) -> Value:
    """1 / sqrt(x)."""


@_unary(Opcode.CBRT)
def cbrt(x: ArrayLike) -> Value:
    """The real cube root."""


@_unary(Opcode.SIN)
def sin(x: ArrayLike) -> Value:
    """The sine of radians."""


@_unary(Opcode.COS)
def cos(x: ArrayLike) -> Value:
    """The cosine of radians."""


@_unary(Opcode.TAN)
def tan(x: ArrayLike) -> Value:
    """The tangent of radians."""


@_unary(Opcode.ASIN)
def asin(x: ArrayLike) -> Value:
    """The inverse sine, in radians."""


@_unary(Opcode.ACOS)
def acos(x: ArrayLike) -> Value:
    """The inverse cosine, in radians."""


@_unary(Opcode.SINH)
def sinh(x: ArrayLike) -> Value:
    """The hyperbolic sine."""


@_unary(Opcode.COSH)
def cosh(x: ArrayLike) -> Value:
    """The hyperbolic cosine."""


@_unary(Opcode.TANH)
def tanh(x: ArrayLike) -> Value:
    """The hyperbolic tangent."""


@_unary(Opcode.ASINH)
def asinh(x: ArrayLike) -> Value:
    """The inverse hyperbolic sine."""


@_unary(Opcode.ACOSH)
def acosh(x: ArrayLike) -> Value:
    """The inverse hyperbolic cosine."""


@_unary(Opcode.ATANH)
def atanh(x: ArrayLike) -> Value:
    """The inverse hyperbolic tangent."""


@_unary(Opcode.LOGISTIC)
def logistic(x: ArrayLike) -> Value:
    """1 / (1 + e**-x)."""


@_unary(Opcode.ERF)
def erf(x: ArrayLike) -> Value:
    """The error function."""


@_unary(Opcode.IS_FINITE)
def is_finite(x: ArrayLike) -> Value:
    """True where x is neither infinite nor NaN; for floats."""


@_unary(Opcode.NOT)
def bitwise_not(x: ArrayLike) -> Value:
    """All bits inverted; logical not of booleans."""


@_unary(Opcode.POPULATION_COUNT)
def population_count(x: ArrayLike) -> Value:
    """The number of bits that are 1."""


@_unary(Opcode.COUNT_LEADING_ZEROS)
def clz(x: ArrayLike) -> Value:
    """The number of 0 bits above the highest 1."""


# ---- two operands


@_binary(Opcode.ADD)
def add(x: ArrayLike, y: ArrayLike) -> Value:
    """x + y; logical or of booleans."""


@_binary(Opcode.SUBTRACT)
def sub(x: ArrayLike, y: ArrayLike) -> Value:
    """x - y."""


@_binary(Opcode.MULTIPLY)
def mul(x: ArrayLike, y: ArrayLike) -> Value:
    """x * y; logical and of booleans."""


@_binary(Opcode.MULHI)
def mulhi(x: ArrayLike, y: ArrayLike, /) -> Value:
    """The upper half of the product of two integers, whose bits are twice as many."""


@_binary(Opcode.DIVIDE)
def div(x: ArrayLike, y: ArrayLike) -> Value:
    """x / y; integers truncate towards 0, and x / 0 is -1 (all bits set)."""


@_binary(Opcode.REMAINDER)
def rem(x: ArrayLike, y: ArrayLike) -> Value:
    """The remainder of truncating division: it has the sign of x."""


@_extremum(Opcode.MAXIMUM)
def max(x: ArrayLike, y: ArrayLike) -> Value:
    """The larger one; NaN if one is NaN. Complex: by real, then imaginary part."""


@_extremum(Opcode.MINIMUM)
def min(x: ArrayLike, y: ArrayLike) -> Value:
    """The smaller one; NaN if one is NaN. Complex: as for `max`."""


@_binary(Opcode.ATAN2)
def atan2(x: ArrayLike, y: ArrayLike) -> Value:
    """The angle of the point (y, x): atan2(x, y) is the inverse tangent of x / y."""


@_binary(Opcode.AND)
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Value:
    """Bits set in both; logical and of booleans."""


@_binary(Opcode.OR)
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Value:
    """Bits set in one or both."""


@_binary(Opcode.XOR)
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Value:
    """Bits set in exactly one."""


@_binary(Opcode.SHIFT_LEFT)
def shift_left(x: ArrayLike, y: ArrayLike) -> Value:
    """x * 2**y; 0 where y is the number of bits or more."""


@_binary(Opcode.SHIFT_RIGHT_LOGICAL)
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Value:
    """Bits moved down, 0 moved in."""


@_binary(Opcode.SHIFT_RIGHT_ARITHMETIC)
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Value:
    """Bits moved down, the sign bit moved in."""


@_compare(ComparisonDirection.EQ)
def eq(x: ArrayLike, y: ArrayLike) -> Value:
    """x == y."""


@_compare(ComparisonDirection.NE)
def ne(x: ArrayLike, y: ArrayLike) -> Value:
    """x != y."""


@_compare(ComparisonDirection.GE)
def ge(x: ArrayLike, y: ArrayLike) -> Value:
    """x >= y."""


@_compare(ComparisonDirection.GT)
def gt(x: ArrayLike, y: ArrayLike) -> Value:
    """x > y."""


@_compare(ComparisonDirection.LE)
def le(x: ArrayLike, y: ArrayLike) -> Value:
    """x <= y."""


@_compare(ComparisonDirection.LT)
def lt(x: ArrayLike, y: ArrayLike) -> Value:
    """x < y."""


# ---- three operands


def select(pred: Any, on_true: Any, on_false: Any) -> Value:
    """Elements of `on_true` where `pred` (bool, a scalar or of their shape) is true, else of `on_false`.

    An int32 `pred` chooses `on_false` up to 0, as in `select_n`.
    """
    pred, on_true, on_false = as_value(pred), as_value(on_true), as_value(on_false)
    if pred.aval.dtype is dtypes.int32:
        pred = compare(pred, "GT", full_like(pred, 0))
    return bind(Opcode.SELECT, (pred, on_true, on_false), weak_type=all_weak(on_true, on_false))


def all_weak(*values: Value) -> bool:
    return all(v.aval.weak_type for v in values)
