"""Elementwise operations. Operands have one dtype; a scalar, or a dimension of size 1, meets any size.

Source for names and argument meaning: jax.lax. Names here shadow Python's (`abs`, `max`, `round`), as they do there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from ..extend.core import Primitive
from ..hlo.element_type import element_type_of
from ..hlo.ir import NO_ATTRIBUTES, Attributes
from ..hlo.opcode import Opcode
from ..hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from ..hlo.ops.movement import BroadcastAttributes
from ..hlo.shape import Shape
from ..tracer import dtypes
from ..tracer.array import Array, as_value
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, bind, eager_with_scalar, thread_state
from ..tracer.errors import OperandError
from ..tracer.ops import convert, scalar_like
from ..tracer.source import user_line
from .movement import broadcast_in_dim, broadcast_shapes, full_like

__all__ = [
    "RoundingMethod",
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitcast_convert_type",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clamp",
    "clz",
    "complex",
    "conj",
    "convert_element_type",
    "cos",
    "cosh",
    "div",
    "eq",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "ge",
    "gt",
    "imag",
    "integer_pow",
    "is_finite",
    "le",
    "log",
    "log1p",
    "logistic",
    "lt",
    "max",
    "min",
    "mul",
    "ne",
    "neg",
    "population_count",
    "pow",
    "real",
    "reciprocal",
    "rem",
    "round",
    "rsqrt",
    "select",
    "select_n",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "tan",
    "tanh",
]

Unary = Callable[[Any], Value]
Binary = Callable[[Any, Any], Value]
F = TypeVar("F", bound=Callable[..., Value])


def _unary(name: str, opcode: Opcode, doc: str) -> Unary:
    def op(x: Any) -> Value:
        return bind(opcode, (as_value(x),))

    return _named(op, name, doc)


def _binary(name: str, opcode: Opcode, doc: str) -> Binary:
    return _named(_op_of_two(name, opcode, NO_ATTRIBUTES), name, doc)


def _extremum(name: str, opcode: Opcode, doc: str) -> Binary:
    """HLO's op compares the real parts of complex numbers only; here the imaginary parts decide between equal ones."""
    return _named(_op_of_two(name, opcode, NO_ATTRIBUTES, Primitive(f"complex_{name}")), name, doc)


def _compare(name: str, direction: ComparisonDirection, doc: str) -> Binary:
    return _named(_op_of_two(name, Opcode.COMPARE, CompareAttributes(direction)), name, doc)


def _op_of_two(name: str, opcode: Opcode, attributes: Attributes, of_complex: Primitive | None = None) -> Binary:
    state = thread_state()
    if of_complex is not None:
        _order_complex(of_complex, ComparisonDirection.GT if opcode is Opcode.MAXIMUM else ComparisonDirection.LT)

    def op(x: Any, y: Any) -> Value:
        a, b = as_value(x), as_value(y)
        left, right = a.aval, b.aval
        if of_complex is not None and left.dtype.kind == "c":
            return convert(of_complex.bind(*_matched(name, a, b)), left.dtype, left.weak_type and right.weak_type)
        if left.dtype is right.dtype:
            if left.shape == right.shape:
                return bind(opcode, (a, b), attributes)
            if not (left.shape and right.shape) and not left.is_extended:
                if state.direct and isinstance(a, Array) and isinstance(b, Array):
                    return eager_with_scalar(opcode, a, b, attributes)
                a, b = (_spread(a, right.shape), b) if right.shape else (a, _spread(b, left.shape))
                return bind(opcode, (a, b), attributes)
        return bind(opcode, _matched(name, a, b), attributes)

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
    (p, q), (r, s) = ((_real(v), _imag(v)) for v in (a, b))
    by_imag = bind(Opcode.COMPARE, (q, s), attributes)
    return bind(Opcode.SELECT, (eq(p, r), by_imag, bind(Opcode.COMPARE, (p, r), attributes)))


def _spread(scalar: Value, shape: tuple[int, ...]) -> Value:
    """A scalar repeated to `shape`, within a trace."""
    return bind(Opcode.BROADCAST, (scalar,), _OF_SCALAR, shape=ShapedArray(shape, scalar.aval.dtype).hlo)


_OF_SCALAR = BroadcastAttributes(())


def _named(op: F, name: str, doc: str) -> F:
    op.__name__ = op.__qualname__ = name
    op.__doc__ = doc
    op.__module__ = __name__
    return op


def _matched(name: str, *values: Value) -> tuple[Value, ...]:
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

abs = _unary("abs", Opcode.ABS, "|x|; for complex numbers the modulus, of the real dtype.")
neg = _unary("neg", Opcode.NEGATE, "-x; unsigned integers wrap.")
floor = _unary("floor", Opcode.FLOOR, "The largest integral value not above x.")
ceil = _unary("ceil", Opcode.CEIL, "The smallest integral value not below x.")
exp = _unary("exp", Opcode.EXP, "e**x.")
expm1 = _unary("expm1", Opcode.EXPM1, "e**x - 1, accurate near 0.")
log = _unary("log", Opcode.LOG, "The natural logarithm.")
log1p = _unary("log1p", Opcode.LOG1P, "log(1 + x), accurate near 0.")
sqrt = _unary("sqrt", Opcode.SQRT, "The square root.")
rsqrt = _unary("rsqrt", Opcode.RSQRT, "1 / sqrt(x).")
cbrt = _unary("cbrt", Opcode.CBRT, "The real cube root.")
sin = _unary("sin", Opcode.SIN, "The sine of radians.")
cos = _unary("cos", Opcode.COS, "The cosine of radians.")
tan = _unary("tan", Opcode.TAN, "The tangent of radians.")
asin = _unary("asin", Opcode.ASIN, "The inverse sine, in radians.")
acos = _unary("acos", Opcode.ACOS, "The inverse cosine, in radians.")
sinh = _unary("sinh", Opcode.SINH, "The hyperbolic sine.")
cosh = _unary("cosh", Opcode.COSH, "The hyperbolic cosine.")
tanh = _unary("tanh", Opcode.TANH, "The hyperbolic tangent.")
asinh = _unary("asinh", Opcode.ASINH, "The inverse hyperbolic sine.")
acosh = _unary("acosh", Opcode.ACOSH, "The inverse hyperbolic cosine.")
atanh = _unary("atanh", Opcode.ATANH, "The inverse hyperbolic tangent.")
logistic = _unary("logistic", Opcode.LOGISTIC, "1 / (1 + e**-x).")
erf = _unary("erf", Opcode.ERF, "The error function.")
is_finite = _unary("is_finite", Opcode.IS_FINITE, "True where x is neither infinite nor NaN; for floats.")
bitwise_not = _unary("bitwise_not", Opcode.NOT, "All bits inverted; logical not of booleans.")
population_count = _unary("population_count", Opcode.POPULATION_COUNT, "The number of bits that are 1.")
clz = _unary("clz", Opcode.COUNT_LEADING_ZEROS, "The number of 0 bits above the highest 1.")
_real = _unary("real", Opcode.REAL, "The real part.")
_imag = _unary("imag", Opcode.IMAG, "The imaginary part.")

# ---- two operands

add = _binary("add", Opcode.ADD, "x + y; logical or of booleans.")
sub = _binary("sub", Opcode.SUBTRACT, "x - y.")
mul = _binary("mul", Opcode.MULTIPLY, "x * y; logical and of booleans.")
div = _binary("div", Opcode.DIVIDE, "x / y; integers truncate towards 0, and x / 0 is -1 (all bits set).")
rem = _binary("rem", Opcode.REMAINDER, "The remainder of truncating division: it has the sign of x.")
max = _extremum("max", Opcode.MAXIMUM, "The larger one; NaN if one is NaN. Complex: by real, then imaginary part.")
min = _extremum("min", Opcode.MINIMUM, "The smaller one; NaN if one is NaN. Complex: as for `max`.")
atan2 = _binary("atan2", Opcode.ATAN2, "The angle of the point (y, x): atan2(x, y) is the inverse tangent of x / y.")
bitwise_and = _binary("bitwise_and", Opcode.AND, "Bits set in both; logical and of booleans.")
bitwise_or = _binary("bitwise_or", Opcode.OR, "Bits set in one or both.")
bitwise_xor = _binary("bitwise_xor", Opcode.XOR, "Bits set in exactly one.")
shift_left = _binary("shift_left", Opcode.SHIFT_LEFT, "x * 2**y; 0 where y is the number of bits or more.")
shift_right_logical = _binary("shift_right_logical", Opcode.SHIFT_RIGHT_LOGICAL, "Bits moved down, 0 moved in.")
shift_right_arithmetic = _binary(
    "shift_right_arithmetic", Opcode.SHIFT_RIGHT_ARITHMETIC, "Bits moved down, the sign bit moved in."
)
eq = _compare("eq", ComparisonDirection.EQ, "x == y.")
ne = _compare("ne", ComparisonDirection.NE, "x != y.")
ge = _compare("ge", ComparisonDirection.GE, "x >= y.")
gt = _compare("gt", ComparisonDirection.GT, "x > y.")
le = _compare("le", ComparisonDirection.LE, "x <= y.")
lt = _compare("lt", ComparisonDirection.LT, "x < y.")


def complex(x: Any, y: Any) -> Value:
    """x + iy of real parts of one dtype, float32 or float64."""
    return bind(Opcode.COMPLEX, _matched("complex", as_value(x), as_value(y)))


def real(x: Any) -> Value:
    """The real part, of the real dtype; of complex numbers only."""
    return _real(_complex_only("real", x))


def imag(x: Any) -> Value:
    """The imaginary part, of the real dtype; of complex numbers only."""
    return _imag(_complex_only("imag", x))


def _complex_only(name: str, x: Any) -> Value:
    value = as_value(x)
    if not dtypes.is_complex(value.aval.dtype):
        raise OperandError(
            f"lax.{name} takes complex numbers, not {value.aval.str_short()}\n  at {user_line()}\n"
            f"  hloom.numpy.{name} takes real ones, too.",
            name,
        )
    return value


def conj(x: Any) -> Value:
    """The complex conjugate; a float becomes complex first."""
    x = as_value(x)
    if not dtypes.is_complex(x.aval.dtype):
        return complex(x, full_like(x, 0))
    return complex(real(x), neg(imag(x)))


def sign(x: Any) -> Value:
    """-1, 0 (with its sign) or 1; NaN for NaN; x/|x| for complex numbers."""
    x = as_value(x)
    if dtypes.is_unsigned(x.aval.dtype):  # HLO has it for signed types only
        return convert(ne(x, full_like(x, 0)), x.aval.dtype, x.aval.weak_type)
    return bind(Opcode.SIGN, (x,))


def square(x: Any) -> Value:
    """x * x."""
    x = as_value(x)
    return mul(x, x)


def reciprocal(x: Any) -> Value:
    """1 / x."""
    x = as_value(x)
    return div(full_like(x, 1), x)


def atan(x: Any) -> Value:
    """The inverse tangent, in radians."""
    x = as_value(x)
    return atan2(x, full_like(x, 1))


def exp2(x: Any) -> Value:
    """2**x."""
    x = as_value(x)
    return exp(mul(x, scalar_like(x, math.log(2))))


def pow(x: Any, y: Any) -> Value:
    """x**y, for an integer or floating x; y may be an integer where x is not."""
    x, y = as_value(x), as_value(y)
    if dtypes.is_inexact(x.aval.dtype) and not dtypes.is_inexact(y.aval.dtype):
        y = convert(y, x.aval.dtype)
    return bind(Opcode.POWER, _matched("pow", x, y))


def integer_pow(x: Any, y: int) -> Value:
    """x**y for a Python integer y, by repeated squaring."""
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
    """How `round` treats numbers halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Value:
    """The nearest integral value."""
    even = RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN
    return bind(Opcode.ROUND_NEAREST_EVEN if even else Opcode.ROUND_NEAREST_AFZ, (as_value(x),))


# ---- select, clamp


def select(pred: Any, on_true: Any, on_false: Any) -> Value:
    """Elements of `on_true` where `pred` (bool, a scalar or of their shape) is true, else of `on_false`."""
    pred, on_true, on_false = as_value(pred), as_value(on_true), as_value(on_false)
    return bind(Opcode.SELECT, (pred, on_true, on_false), weak_type=_all_weak(on_true, on_false))


def select_n(which: Any, *cases: Any) -> Value:
    """Elements of cases[which]; `which` is bool (false chooses cases[0]) or int32, a scalar or of their shape."""
    which, values = as_value(which), [as_value(c) for c in cases]
    if not values:
        raise ValueError("lax.select_n needs at least one case")
    if which.aval.dtype not in (np.bool_, np.int32):
        what = which.aval.str_short()
        raise OperandError(f"lax.select_n: which must be bool or int32, not {what}\n  at {user_line()}", "select_n_c2")
    if which.aval.dtype == np.bool_:
        if len(values) > 2:
            raise OperandError(f"lax.select_n: a boolean chooses between 2 cases, not {len(values)}", "select_n_c1")
        return values[0] if len(values) == 1 else select(which, values[1], values[0])
    result = values[-1]
    for k in range(len(values) - 2, -1, -1):
        result = select(le(which, scalar_like(which, k)), values[k], result)
    return result


def clamp(min: Any, x: Any, max: Any) -> Value:
    """x limited to [min, max]; the bounds are scalars or of its shape."""
    low, x, high = as_value(min), as_value(x), as_value(max)
    if not low.aval.dtype is x.aval.dtype is high.aval.dtype:
        _matched("clamp", low, x, high)  # its error names the dtypes that differ
    return bind(Opcode.CLAMP, (low, x, high), weak_type=_all_weak(low, x, high))


def _all_weak(*values: Value) -> bool:
    return all(v.aval.weak_type for v in values)


# ---- changing the element type


def convert_element_type(operand: Any, new_dtype: DTypeLike | None) -> Value:
    """The operand with another dtype, strongly typed.

    Floats become integers by truncation, saturating; complex numbers drop their imaginary part.
    """
    if new_dtype is None:
        raise ValueError("convert_element_type: a dtype must be given")
    return convert(as_value(operand), dtypes.requested_dtype(new_dtype, "convert_element_type"), False)


def bitcast_convert_type(operand: Any, new_dtype: DTypeLike) -> Value:
    """The same bits as another dtype. A narrower one adds a last dimension, a wider one removes it."""
    x, dtype = as_value(operand), dtypes.requested_dtype(new_dtype, "bitcast_convert_type")
    shape, old = x.aval.shape, x.aval.dtype
    if dtypes.is_extended(dtype) or x.aval.is_extended:
        refused = dtype if dtypes.is_extended(dtype) else old
        raise OperandError(f"bitcast_convert_type does not accept {refused.name}\n  at {user_line()}", "bitcast")
    wide, narrow = element_type_of(old).bit_width, element_type_of(dtype).bit_width
    if wide > narrow:
        shape = (*shape, wide // narrow)
    elif wide < narrow:
        shape = shape[:-1]
    return bind(Opcode.BITCAST_CONVERT, (x,), shape=Shape.array(element_type_of(dtype), shape), weak_type=False)
