"""Ops that compute each element from the elements at the same index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..hlo.element_type import element_type_of
from ..hlo.ir import HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops.elementwise import (
    CompareAttributes,
    ComparisonDirection,
    ComparisonType,
    ReducePrecisionAttributes,
)
from ..tracer import dtypes, ops
from ..tracer.core import Value, bind
from ..tracer.ops import convert
from .atoms import Atom
from .primitives import primitive
from .rules import SHOWN, Body, Shown, show_as_hlo

_O = Opcode
_UNARY = {
    _O.ABS: "abs", _O.ACOS: "acos", _O.ACOSH: "acosh", _O.ASIN: "asin", _O.ASINH: "asinh", _O.ATANH: "atanh",
    _O.CBRT: "cbrt", _O.CEIL: "ceil", _O.COS: "cos", _O.COSH: "cosh", _O.ERF: "erf", _O.EXP: "exp",
    _O.EXPM1: "expm1", _O.FLOOR: "floor", _O.IMAG: "imag", _O.IS_FINITE: "is_finite", _O.LOG: "log",
    _O.LOG1P: "log1p", _O.LOGISTIC: "logistic", _O.NEGATE: "neg", _O.NOT: "not", _O.REAL: "real",
    _O.POPULATION_COUNT: "population_count", _O.COUNT_LEADING_ZEROS: "clz", _O.RSQRT: "rsqrt", _O.SIGN: "sign",
    _O.SIN: "sin", _O.SINH: "sinh", _O.SQRT: "sqrt", _O.TAN: "tan", _O.TANH: "tanh",
}
_WITH_ACCURACY = frozenset(
    {"cbrt", "cos", "exp", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt", "tan", "tanh"}
)
"""Primitives that have a parameter for it in JAX; here it is always None."""
_BINARY = {
    _O.ADD: "add", _O.AND: "and", _O.ATAN2: "atan2", _O.COMPLEX: "complex", _O.DIVIDE: "div", _O.MAXIMUM: "max",
    _O.MINIMUM: "min", _O.MULTIPLY: "mul", _O.OR: "or", _O.POWER: "pow", _O.REMAINDER: "rem",
    _O.SHIFT_LEFT: "shift_left", _O.SHIFT_RIGHT_ARITHMETIC: "shift_right_arithmetic",
    _O.SHIFT_RIGHT_LOGICAL: "shift_right_logical", _O.SUBTRACT: "sub", _O.XOR: "xor", _O.MULHI: "mulhi",
}


def spread(*values: Value) -> list[Value]:
    """Operands of one shape: scalars and sizes of 1 are broadcast."""
    shapes = [v.aval.shape for v in values]
    if all(s == shapes[0] for s in shapes):
        return list(values)
    shape = np.broadcast_shapes(*shapes)
    return [_spread(v, shape) for v in values]


def _spread(value: Value, shape: tuple[int, ...]) -> Value:
    sizes = value.aval.shape
    if sizes == shape:
        return value
    kept = [d for d, n in enumerate(sizes) if n == shape[d]] if sizes else []
    return ops.broadcast(ops.reshape(value, [sizes[d] for d in kept]), shape, kept)


def _define_unary(opcode: Opcode, name: str) -> None:
    params: dict[str, Any] = {"accuracy": None} if name in _WITH_ACCURACY else {}

    @SHOWN.register(opcode)
    def show(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
        return Shown(name, operands, dict(params))

    @primitive(name)
    def apply(x: Value, *, accuracy: None = None) -> Value:
        return bind(opcode, (x,))


def _define_binary(opcode: Opcode, name: str) -> None:
    params: dict[str, Any] = {"out_dtype": None} if name == "mul" else {}

    @SHOWN.register(opcode)
    def show(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
        return Shown(name, operands, dict(params))

    @primitive(name)
    def apply(x: Value, y: Value, *, out_dtype: Any = None) -> Value:
        if out_dtype is not None:
            x, y = (convert(v, dtypes.requested_dtype(out_dtype, name)) for v in (x, y))
        if opcode is Opcode.POWER and dtypes.is_inexact(x.aval.dtype) and not dtypes.is_inexact(y.aval.dtype):
            y = convert(y, x.aval.dtype)
        return bind(opcode, spread(x, y))


for _opcode, _name in _UNARY.items():
    _define_unary(_opcode, _name)
for _opcode, _name in _BINARY.items():
    _define_binary(_opcode, _name)


# ---- comparisons


@SHOWN.register(Opcode.COMPARE)
def _compare(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    name = i.attributes.direction.value.lower()
    return Shown(f"{name}_to" if i.attributes.type is ComparisonType.TOTALORDER else name, operands, {})


def _define_comparison(direction: ComparisonDirection, order: ComparisonType | None) -> None:
    @primitive(direction.value.lower() + ("_to" if order else ""))
    def apply(x: Value, y: Value) -> Value:
        is_ordered = order is not None and dtypes.is_floating(x.aval.dtype)
        return bind(Opcode.COMPARE, spread(x, y), CompareAttributes(direction, order if is_ordered else None))


for _direction in ComparisonDirection:
    _define_comparison(_direction, None)
    _define_comparison(_direction, ComparisonType.TOTALORDER)


# ---- others


@SHOWN.register(Opcode.SELECT)
def _select(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    """JAX counts the cases from false."""
    which, on_true, on_false = operands
    return Shown("select_n", [which, on_false, on_true], {})


@primitive("select_n")
def _select_n(which: Value, *cases: Value) -> Value:
    if which.aval.dtype == np.bool_:
        on_false, on_true = cases
        return ops.select(which, on_true, on_false)
    result = cases[-1]
    for k in range(len(cases) - 2, -1, -1):
        result = ops.select(ops.compare(which, "LE", ops.full_like(which, k)), cases[k], result)
    return result


@SHOWN.register(Opcode.CLAMP)
def _clamp(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return Shown("clamp", operands, {})


@primitive("clamp")
def _bind_clamp(low: Value, x: Value, high: Value) -> Value:
    return ops.clamp(low, x, high)


@SHOWN.register(Opcode.CONVERT)
def _convert(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    """HLO knows no weak types."""
    dtype = i.shape.element.dtype
    return Shown("convert_element_type", operands, {"new_dtype": dtype, "weak_type": False, "sharding": None})


@primitive("convert_element_type")
def _bind_convert(x: Value, *, new_dtype: Any, weak_type: bool = False, sharding: None = None) -> Value:
    return convert(x, dtypes.requested_dtype(new_dtype, "convert_element_type"), weak_type)


@SHOWN.register(Opcode.BITCAST_CONVERT)
def _bitcast(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return Shown("bitcast_convert_type", operands, {"new_dtype": i.shape.element.dtype})


@primitive("bitcast_convert_type")
def _bind_bitcast(x: Value, *, new_dtype: Any) -> Value:
    dtype = dtypes.requested_dtype(new_dtype, "bitcast_convert_type")
    old, new = (element_type_of(d).bit_width for d in (x.aval.dtype, dtype))
    sizes = x.aval.shape if old == new else (*x.aval.shape, old // new) if old > new else x.aval.shape[:-1]
    return bind(Opcode.BITCAST_CONVERT, (x,), shape=ops.array_shape(dtype, sizes), weak_type=False)


@SHOWN.register(Opcode.REDUCE_PRECISION)
def _reduce_precision(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    bits = i.attributes
    return Shown(
        "reduce_precision", operands, {"exponent_bits": bits.exponent_bits, "mantissa_bits": bits.mantissa_bits}
    )


@primitive("reduce_precision")
def _bind_reduce_precision(x: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    return bind(Opcode.REDUCE_PRECISION, (x,), ReducePrecisionAttributes(exponent_bits, mantissa_bits))


@SHOWN.register(Opcode.ROUND_NEAREST_AFZ, Opcode.ROUND_NEAREST_EVEN)
def _round(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return Shown("round", operands, {"rounding_method": int(i.opcode is Opcode.ROUND_NEAREST_EVEN)})


@primitive("round")
def _bind_round(x: Value, *, rounding_method: int) -> Value:
    return bind(Opcode.ROUND_NEAREST_EVEN if rounding_method else Opcode.ROUND_NEAREST_AFZ, (x,))


show_as_hlo(Opcode.MAP, Opcode.STOCHASTIC_CONVERT)
