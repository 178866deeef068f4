"""Derivatives of elementwise ops. Conventions at kinks and branch points are JAX's (jax 0.10, lax.py).

Complex numbers follow JAX too: a jvp is the derivative of a holomorphic function (or of the pair of real functions),
and transposes are plain transposes, without conjugation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...hlo.ir import Attributes
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ...tracer.arrays.plane import direction, inversion
from ...tracer.core import Value, bind
from ...tracer.ops import (
    add,
    broadcast,
    compare,
    convert,
    div,
    full_like,
    is_complex,
    make_complex,
    mul,
    neg,
    scale,
    select,
    shift,
    square,
    sub,
    unary,
    zeros,
)
from ..tangents import Linear, Operand, Tangent, Zero, add_tangents, instantiate
from .linear import linear
from .tables import JVP, TRANSPOSE, not_linear, zero_derivative

_O = Opcode

zero_derivative(
    _O.AND,
    _O.BITCAST_CONVERT,
    _O.CEIL,
    _O.COMPARE,
    _O.COUNT_LEADING_ZEROS,
    _O.FLOOR,
    _O.IS_FINITE,
    _O.MULHI,
    _O.NOT,
    _O.OR,
    _O.POPULATION_COUNT,
    _O.ROUND_NEAREST_AFZ,
    _O.ROUND_NEAREST_EVEN,
    _O.SHIFT_LEFT,
    _O.SHIFT_RIGHT_ARITHMETIC,
    _O.SHIFT_RIGHT_LOGICAL,
    _O.SIGN,
    _O.STOCHASTIC_CONVERT,
    _O.XOR,
)

# --- one operand: the tangent is multiplied by a coefficient, which is the only residual

Coefficient = Callable[[Value, Value], Value]
"""coefficient(operand, result) -> the derivative."""


def _reciprocal_root(x: Value) -> Value:
    return unary(_O.RSQRT, x)


_COEFFICIENTS: dict[Opcode, Coefficient] = {
    _O.ACOS: lambda x, ans: neg(_reciprocal_root(_one_minus(square(x)))),
    _O.ACOSH: lambda x, ans: _reciprocal_root(shift(square(x), -1)),
    _O.ASIN: lambda x, ans: _reciprocal_root(_one_minus(square(x))),
    _O.ASINH: lambda x, ans: _reciprocal_root(shift(square(x), 1)),
    _O.ATANH: lambda x, ans: div(full_like(x, 1), mul(shift(x, 1), _one_minus(x))),
    _O.CBRT: lambda x, ans: div(div(full_like(x, 1 / 3), ans), ans),  # 1 / square(ans) has a second one of 0 * inf
    _O.COS: lambda x, ans: neg(unary(_O.SIN, x)),
    _O.COSH: lambda x, ans: unary(_O.SINH, x),
    _O.ERF: lambda x, ans: scale(unary(_O.EXP, neg(square(x))), 2 / math.sqrt(math.pi)),
    _O.EXP: lambda x, ans: ans,
    _O.EXPM1: lambda x, ans: shift(ans, 1),
    _O.LOGISTIC: lambda x, ans: mul(ans, _one_minus(ans)),
    _O.RSQRT: lambda x, ans: scale(div(ans, x), -0.5),
    _O.SIN: lambda x, ans: unary(_O.COS, x),
    _O.SINH: lambda x, ans: unary(_O.COSH, x),
    _O.SQRT: lambda x, ans: div(full_like(x, 0.5), ans),
    _O.TAN: lambda x, ans: shift(square(ans), 1),
    # (1 - ans)(1 + ans) keeps its relative accuracy where tanh saturates; 1 - ans * ans does not.
    _O.TANH: lambda x, ans: mul(_one_minus(ans), shift(ans, 1)),
}


def _one_minus(x: Value) -> Value:
    return sub(full_like(x, 1), x)


def _register_coefficient(opcode: Opcode, coefficient: Coefficient) -> None:
    def jvp(
        primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape
    ) -> tuple[Value, Tangent]:
        """The tangent times the derivative, the only residual."""
        ans = bind(opcode, primals, attributes)
        derivative = coefficient(primals[0], ans)
        return ans, mul(instantiate(tangents[0]), derivative)

    JVP[opcode] = jvp
    not_linear(opcode)


for _opcode, _coefficient in _COEFFICIENTS.items():
    _register_coefficient(_opcode, _coefficient)


@JVP.register(_O.ABS)
def _abs_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """Real: +1 at zero, as JAX. Complex: Re(t * conj(x) / |x|), zero at zero, and at infinity a direction too."""
    (x,), t = primals, instantiate(tangents[0])
    ans = bind(_O.ABS, (x,))
    if not is_complex(x):
        return ans, mul(t, select(compare(x, "GE", zeros(x.aval)), full_like(x, 1), full_like(x, -1)))
    across, up = direction(unary(_O.REAL, x), unary(_O.IMAG, x))
    return ans, add(mul(unary(_O.REAL, t), across), mul(unary(_O.IMAG, t), up))


not_linear(_O.ABS)


@JVP.register(_O.LOG)
def _log_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """The tangent divided by the operand."""
    return bind(_O.LOG, primals), div(instantiate(tangents[0]), primals[0])


@JVP.register(_O.LOG1P)
def _log1p_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """The tangent divided by the operand plus one."""
    denominator = shift(primals[0], 1)
    return bind(_O.LOG1P, primals), div(instantiate(tangents[0]), denominator)


not_linear(_O.LOG, _O.LOG1P)

# --- linear ops

linear(_O.NEGATE, _O.REDUCE_PRECISION, symmetric=True)  # cotangents are rounded, too
linear(_O.CONVERT, _O.REAL)
linear(_O.COMPLEX, count=2)


@TRANSPOSE.register(_O.REAL)
def _real_transpose(ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape) -> Any:
    """The cotangent as the real part of a complex number."""
    return [make_complex(ct, zeros(ct.aval)) if operands[0].aval.dtype.kind == "c" else ct]


@JVP.register(_O.IMAG)
def _imag_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """The imaginary part of the tangent; zero for real operands."""
    ans = unary(_O.IMAG, primals[0])
    return ans, unary(_O.IMAG, instantiate(tangents[0])) if is_complex(primals[0]) else Zero(ans.aval)


@TRANSPOSE.register(_O.IMAG)
def _imag_transpose(ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape) -> Any:
    """imag(z) = real(-i z), so that the cotangent is -i ct."""
    return [make_complex(zeros(ct.aval), neg(ct)) if operands[0].aval.dtype.kind == "c" else None]


@TRANSPOSE.register(_O.CONVERT)
def _convert_transpose(ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape) -> Any:
    """The cotangent, converted to the operand's type."""
    return [convert(ct, operands[0].aval.dtype)]


# --- two operands


@JVP.register(_O.ADD)
def _add_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """The sum of the tangents."""
    return bind(_O.ADD, primals), add_tangents(tangents[0], tangents[1])


@TRANSPOSE.register(_O.ADD)
def _add_transpose(ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape) -> Any:
    """The cotangent, for each operand."""
    return [ct if isinstance(o, Linear) else None for o in operands]


@JVP.register(_O.SUBTRACT)
def _sub_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """The difference of the tangents."""
    ans = bind(_O.SUBTRACT, primals)
    s, t = tangents
    if isinstance(t, Zero):
        return ans, s
    return ans, neg(t) if isinstance(s, Zero) else sub(s, t)


@TRANSPOSE.register(_O.SUBTRACT)
def _sub_transpose(ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape) -> Any:
    """The cotangent for the first operand, its negative for the second."""
    x, y = operands
    return [ct if isinstance(x, Linear) else None, neg(ct) if isinstance(y, Linear) else None]


@JVP.register(_O.MULTIPLY)
def _mul_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """The product rule."""
    x, y = primals
    s, t = tangents
    ans = mul(x, y)
    if x is y and s is t:  # a square: one product instead of two
        return ans, mul(instantiate(s), add(x, x))
    return ans, add_tangents(
        s if isinstance(s, Zero) else mul(s, y),
        t if isinstance(t, Zero) else mul(x, t),
    )


@TRANSPOSE.register(_O.MULTIPLY)
def _mul_transpose(ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape) -> Any:
    """The cotangent times the other factor."""
    x, y = operands
    if isinstance(x, Linear):
        return [mul(ct, _known(y, "multiply")), None]
    return [None, mul(x, ct)]


def _known(operand: Operand, name: str) -> Value:
    if isinstance(operand, Linear):
        raise TypeError(f"{name} of two values that depend on the tangents is not linear and cannot be transposed")
    return operand


@JVP.register(_O.DIVIDE)
def _div_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """The quotient rule, on the quotient: with z = x / y, dz = (dx - z dy) / y."""
    x, y = primals
    s, t = tangents
    ans = div(x, y)
    if isinstance(t, Zero):
        return ans, div(instantiate(s), y)
    if isinstance(s, Zero):
        return ans, mul(t, neg(div(ans, y)))
    return ans, div(sub(s, mul(ans, t)), y)  # one quotient, for both operands


@TRANSPOSE.register(_O.DIVIDE)
def _div_transpose(ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape) -> Any:
    """The cotangent divided by the divisor: a linear program divides by known values alone."""
    return [div(ct, _known(operands[1], "divide")), None]


def _register_extremum(opcode: Opcode, wins: str) -> None:
    def jvp(
        primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape
    ) -> tuple[Value, Tangent]:
        """An operand's tangent counts where it wins, half of it in a tie, and not at all next to NaN."""
        ans = bind(opcode, primals)

        def part(mine: Value, other: Value, tangent: Tangent) -> Tangent:
            if isinstance(tangent, Zero):
                return tangent
            in_tie = select(compare(mine, "EQ", other), full_like(ans, 0.5), zeros(ans.aval))
            if shape.element.is_complex:  # ordered by max and min alone, not by compare
                winner = select(compare(mine, "EQ", ans), full_like(ans, 1), zeros(ans.aval))
                return mul(tangent, select(compare(mine, "EQ", other), full_like(ans, 0.5), winner))
            weight = select(compare(mine, wins, other), full_like(ans, 1), in_tie)
            return mul(tangent, weight)

        x, y = primals
        return ans, add_tangents(part(x, y, tangents[0]), part(y, x, tangents[1]))

    JVP[opcode] = jvp
    not_linear(opcode)


_register_extremum(_O.MAXIMUM, "GT")
_register_extremum(_O.MINIMUM, "LT")


def _nonzero(x: Value) -> Value:
    """`x` with ones for zeros."""
    return select(compare(x, "EQ", zeros(x.aval)), full_like(x, 1), x)


@JVP.register(_O.POWER)
def _pow_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """By x: y x^(y-1), 0 for y = 0 even at x = 0. By y: log(x) x^y, with 0 for log(0): the limit for every y > 0.

    At x = y = 0 the exponent is taken to be 1; for other x, y x^(y-1) must stay as it is, for its derivative by y.
    """
    x, y = primals
    s, t = tangents
    ans = bind(_O.POWER, primals)
    if not isinstance(s, Zero):
        nothing = zeros(ans.aval)
        both = bind(_O.AND, (compare(x, "EQ", nothing), compare(y, "EQ", nothing)))
        exponent = select(both, full_like(y, 1), shift(y, -1))
        s = mul(s, mul(y, bind(_O.POWER, (x, exponent))))
    if not isinstance(t, Zero):
        t = mul(t, mul(unary(_O.LOG, _nonzero(x)), ans))
    return ans, add_tangents(s, t)


@JVP.register(_O.REMAINDER)
def _rem_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """x - y trunc(x / y), with the truncation constant."""
    x, y = primals
    s, t = tangents
    ans = bind(_O.REMAINDER, primals)
    if isinstance(t, Zero):
        return ans, s
    quotient = div(x, y)
    truncated = mul(unary(_O.SIGN, quotient), unary(_O.FLOOR, unary(_O.ABS, quotient)))
    return ans, add_tangents(s, mul(t, neg(truncated)))


@JVP.register(_O.ATAN2)
def _atan2_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """(dx y - dy x) / (x^2 + y^2) for atan2(x, y), without overflow of the squares for real operands."""
    x, y = primals
    s, t = tangents
    ans = bind(_O.ATAN2, primals)
    if is_complex(x):
        squares = add(square(x), square(y))
        by_y, by_x = div(x, squares), div(y, squares)
    else:
        by_y, by_x = inversion(x, y)
    return ans, add_tangents(
        s if isinstance(s, Zero) else mul(s, by_x), t if isinstance(t, Zero) else mul(t, neg(by_y))
    )


not_linear(_O.POWER, _O.REMAINDER, _O.ATAN2)


@TRANSPOSE.register(_O.COMPLEX)
def _complex_transpose(ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape) -> Any:
    """The real part of the cotangent, and its negative imaginary part: transposes do not conjugate."""
    x, y = operands
    return [
        unary(_O.REAL, ct) if isinstance(x, Linear) else None,
        neg(unary(_O.IMAG, ct)) if isinstance(y, Linear) else None,
    ]


# --- choices


def _spread(x: Value, shape: Shape) -> Value:
    """A scalar operand of clamp or select as an array of the result's dimensions."""
    return broadcast(x, shape.dimensions, ()) if not x.aval.shape else x


@JVP.register(_O.SELECT)
def _select_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """The choice between the tangents."""
    pred, on_true, on_false = primals
    ans = select(pred, on_true, on_false)
    _, s, t = tangents
    return ans, s if s is t else select(pred, instantiate(s), instantiate(t))


@TRANSPOSE.register(_O.SELECT)
def _select_transpose(ct: Value, operands: Sequence[Operand], attributes: Attributes, shape: Shape) -> Any:
    """The cotangent where an operand was chosen, zero elsewhere."""
    pred = _known(operands[0], "select")
    zero = zeros(ct.aval)
    return [
        None,
        select(pred, ct, zero) if isinstance(operands[1], Linear) else None,
        select(pred, zero, ct) if isinstance(operands[2], Linear) else None,
    ]


@JVP.register(_O.CLAMP)
def _clamp_jvp(primals: Sequence[Value], tangents: Sequence[Tangent], attributes: Attributes, shape: Shape) -> Any:
    """A bound's tangent where it is strictly exceeded, the operand's strictly between the bounds; zero on the edge.
    Where low > high the result is high."""
    low, x, high = primals
    ans = bind(_O.CLAMP, primals)
    low, high = _spread(low, shape), _spread(high, shape)

    def both(p: Value, q: Value) -> Value:
        return bind(_O.AND, (p, q))

    def part(tangent: Tangent, chosen: Callable[[], Value]) -> Tangent:
        if isinstance(tangent, Zero):
            return tangent
        mask, zero = chosen(), zeros(ans.aval)
        return select(mask, _spread(tangent, shape), zero)

    return ans, add_tangents(
        part(tangents[1], lambda: both(compare(x, "GT", low), compare(x, "LT", high))),
        add_tangents(
            part(tangents[0], lambda: both(compare(low, "GT", x), compare(low, "LT", high))),
            part(tangents[2], lambda: bind(_O.OR, (compare(high, "LT", x), compare(high, "LT", low)))),
        ),
    )


not_linear(_O.CLAMP)
