"""Ops that compute each element from the elements at the same index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..hlo.ir import HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops.elementwise import (
    CompareAttributes,
    ComparisonDirection,
    ComparisonType,
)
from ..tracer import dtypes, ops
from ..tracer.core import Value, bind
from ..tracer.ops import convert
from .atoms import Atom
from .primitives import primitive
from .rules import SHOWN, Body, ParamsOf, Shown, show, show_as_hlo, shows

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


def _params_of(name: str) -> ParamsOf | None:
    key = "accuracy" if name in _WITH_ACCURACY else "out_dtype" if name == "mul" else None
    return None if key is None else lambda i: {key: None}


for _opcode, _name in {**_UNARY, **_BINARY}.items():
    show(_opcode, _name, _params_of(_name))


def _define_as_hlo(opcode: Opcode, name: str) -> None:
    """HLO's op on more types than `hloom.lax` takes, or with another order of complex numbers."""

    @primitive(name)
    def apply(*values: Value) -> Value:
        return bind(opcode, spread(*values))


for _opcode, _name in {_O.IMAG: "imag", _O.MAXIMUM: "max", _O.MINIMUM: "min", _O.REAL: "real"}.items():
    _define_as_hlo(_opcode, _name)


# ---- comparisons


@SHOWN.register(Opcode.COMPARE)
def _compare(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    name = i.attributes.direction.value.lower()
    return Shown(f"{name}_to" if i.attributes.type is ComparisonType.TOTALORDER else name, operands, {})


def _define_total(direction: ComparisonDirection) -> None:
    @primitive(f"{direction.value.lower()}_to")
    def apply(x: Value, y: Value) -> Value:
        order = ComparisonType.TOTALORDER if dtypes.is_floating(x.aval.dtype) else None
        return bind(Opcode.COMPARE, spread(x, y), CompareAttributes(direction, order))


for _direction in ComparisonDirection:
    _define_total(_direction)


# ---- others


@SHOWN.register(Opcode.SELECT)
def _select(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    """JAX counts the cases from false."""
    which, on_true, on_false = operands
    return Shown("select_n", [which, on_false, on_true], {})


show(Opcode.CLAMP, "clamp")


@shows(
    Opcode.CONVERT,  # HLO knows no weak types
    "convert_element_type",
    lambda i: {"new_dtype": i.shape.element.dtype, "weak_type": False, "sharding": None},
)
def _convert(x: Value, *, new_dtype: Any, weak_type: bool = False, sharding: None = None) -> Value:
    return convert(x, dtypes.requested_dtype(new_dtype, "convert_element_type"), weak_type)


show(Opcode.BITCAST_CONVERT, "bitcast_convert_type", lambda i: {"new_dtype": i.shape.element.dtype})
show(
    Opcode.REDUCE_PRECISION,
    "reduce_precision",
    lambda i: {"exponent_bits": i.attributes.exponent_bits, "mantissa_bits": i.attributes.mantissa_bits},
)
show(Opcode.ROUND_NEAREST_AFZ, "round", lambda i: {"rounding_method": 0})
show(Opcode.ROUND_NEAREST_EVEN, "round", lambda i: {"rounding_method": 1})
show_as_hlo(Opcode.MAP, Opcode.STOCHASTIC_CONVERT)
