"""Element rules of the element-wise ops: ``maximum(x + y, c0)``."""

from __future__ import annotations

from ...hlo.attributes import ComparisonDirection, ComparisonType
from ...hlo.element_type import ElementType
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from .element import CAST, ELEMENT, ElementEmitter, depth_of
from .source import Expr, Index

_HALF = (ElementType.F16, ElementType.BF16)

_FUNCTIONS: dict[Opcode, str] = {
    Opcode.ACOS: "acos",
    Opcode.ACOSH: "acosh",
    Opcode.ASIN: "asin",
    Opcode.ASINH: "asinh",
    Opcode.ATAN2: "atan2",
    Opcode.ATANH: "atanh",
    Opcode.CBRT: "cbrt",
    Opcode.CEIL: "ceil",
    Opcode.COS: "cos",
    Opcode.COSH: "cosh",
    Opcode.COUNT_LEADING_ZEROS: "clz",
    Opcode.ERF: "erf",
    Opcode.EXP: "exp",
    Opcode.EXPM1: "expm1",
    Opcode.FLOOR: "floor",
    Opcode.LOG: "log",
    Opcode.LOG1P: "log1p",
    Opcode.LOGISTIC: "logistic",
    Opcode.MAXIMUM: "maximum",
    Opcode.MINIMUM: "minimum",
    Opcode.POPULATION_COUNT: "popcnt",
    Opcode.POWER: "pow",
    Opcode.ROUND_NEAREST_AFZ: "round_away",
    Opcode.ROUND_NEAREST_EVEN: "round_even",
    Opcode.RSQRT: "rsqrt",
    Opcode.SHIFT_LEFT: "shl",
    Opcode.SHIFT_RIGHT_ARITHMETIC: "shr_arithmetic",
    Opcode.SHIFT_RIGHT_LOGICAL: "shr_logical",
    Opcode.SIGN: "sign",
    Opcode.SIN: "sin",
    Opcode.SINH: "sinh",
    Opcode.SQRT: "sqrt",
    Opcode.TAN: "tan",
    Opcode.TANH: "tanh",
    Opcode.ABS: "abs",
}
"""Ops that are one function of the dialect."""

_ARITHMETIC: dict[Opcode, str] = {Opcode.ADD: "+", Opcode.SUBTRACT: "-", Opcode.MULTIPLY: "*"}
_BITWISE: dict[Opcode, str] = {Opcode.AND: "&", Opcode.OR: "|", Opcode.XOR: "^"}
_COMPARISON: dict[ComparisonDirection, str] = {
    ComparisonDirection.EQ: "==",
    ComparisonDirection.NE: "!=",
    ComparisonDirection.GE: ">=",
    ComparisonDirection.GT: ">",
    ComparisonDirection.LE: "<=",
    ComparisonDirection.LT: "<",
}


def _call(e: ElementEmitter, instruction: HloInstruction, name: str, arguments: list[Expr]) -> Expr:
    text = f"{name}({', '.join(a.text for a in arguments)})"
    return e.result(instruction, text, *arguments, atomic=True)


_LOGICAL: dict[Opcode, str] = {Opcode.ADD: "|", Opcode.MAXIMUM: "|", Opcode.MULTIPLY: "&", Opcode.MINIMUM: "&"}
"""What these ops are on pred: numbers of one bit, of which 1 + 1 is 1."""


def _of_pred(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr | None:
    sign = _LOGICAL.get(instruction.opcode)
    if sign is None or instruction.shape.element is not ElementType.PRED:
        return None
    a, b = e.operands(instruction, index)
    return Expr(f"{a.operand} {sign} {b.operand}", depth_of(a, b), atomic=False)


@ELEMENT.register(*_FUNCTIONS)
def _function(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    logical = _of_pred(e, instruction, index)
    return logical or _call(e, instruction, _FUNCTIONS[instruction.opcode], e.operands(instruction, index))


@ELEMENT.register(*_ARITHMETIC)
def _arithmetic(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    logical = _of_pred(e, instruction, index)
    if logical is not None:
        return logical
    a, b = e.operands(instruction, index)
    if instruction.shape.element.is_complex and instruction.opcode is Opcode.MULTIPLY:
        return _call(e, instruction, "multiply", [a, b])
    return e.result(instruction, f"{a.operand} {_ARITHMETIC[instruction.opcode]} {b.operand}", a, b)


@ELEMENT.register(*_BITWISE)
def _bitwise(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    a, b = e.operands(instruction, index)
    return e.result(instruction, f"{a.operand} {_BITWISE[instruction.opcode]} {b.operand}", a, b)


@ELEMENT.register(Opcode.DIVIDE)
def _divide(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    a, b = e.operands(instruction, index)
    element = instruction.shape.element
    if element.is_integral:
        return _call(e, instruction, "idiv", [a, b])
    if element.is_complex:
        return _call(e, instruction, "divide", [a, b])
    return e.result(instruction, f"{a.operand} / {b.operand}", a, b)


@ELEMENT.register(Opcode.REMAINDER)
def _remainder(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    return _call(e, instruction, "remainder", e.operands(instruction, index))


@ELEMENT.register(Opcode.NEGATE)
def _negate(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    return e.result(instruction, f"-{a.operand}", a)


@ELEMENT.register(Opcode.NOT)
def _not(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    sign = "not " if instruction.shape.element is ElementType.PRED else "~"
    return e.result(instruction, f"{sign}{a.operand}", a)


@ELEMENT.register(Opcode.IS_FINITE)
def _is_finite(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    return Expr(f"is_finite({a}) != 0", a.depth, atomic=False)


@ELEMENT.register(Opcode.COMPARE)
def _compare(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    a, b = e.operands(instruction, index)
    sign = _COMPARISON[instruction.attributes.direction]
    element = instruction.operands[0].shape.element
    if instruction.attributes.type is ComparisonType.TOTALORDER and element.is_floating:
        return Expr(f"total_order_key({a}) {sign} total_order_key({b})", depth_of(a, b), atomic=False)
    if element.is_complex:
        name = "eq" if instruction.attributes.direction is ComparisonDirection.EQ else "ne"
        return Expr(f"{name}({a}, {b}) != 0", depth_of(a, b), atomic=False)
    if element is ElementType.PRED:
        return Expr(f"uint8({a}) {sign} uint8({b})", depth_of(a, b), atomic=False)
    return Expr(f"{a.operand} {sign} {b.operand}", depth_of(a, b), atomic=False)


@ELEMENT.register(Opcode.SELECT)
def _select(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    arguments = e.operands(instruction, index)
    return Expr(f"select({', '.join(a.text for a in arguments)})", depth_of(*arguments))


@ELEMENT.register(Opcode.CLAMP)
def _clamp(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    low, x, high = e.operands(instruction, index)
    return Expr(f"minimum(maximum({low}, {x}), {high})", depth_of(low, x, high))


@ELEMENT.register(Opcode.COPY)
def _copy(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    return e.value(instruction.operands[0], index)


@ELEMENT.register(Opcode.COMPLEX)
def _complex(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    a, b = e.operands(instruction, index)
    return Expr(f"complex_from({a}, {b})", depth_of(a, b))


@ELEMENT.register(Opcode.REAL)
def _real(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    return Expr(f"real({a})", a.depth) if instruction.operands[0].shape.element.is_complex else a


@ELEMENT.register(Opcode.IMAG)
def _imag(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    if instruction.operands[0].shape.element.is_complex:
        return Expr(f"imag({a})", a.depth)
    return e.scalar(instruction.shape.element, 0)


@ELEMENT.register(Opcode.CONVERT)
def _convert(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    return converted(e, a, instruction.operands[0].shape.element, instruction.shape.element)


def converted(e: ElementEmitter, a: Expr, source: ElementType, target: ElementType) -> Expr:
    """`a`, held as a `source`, as it is held as a `target`."""
    if source is target:
        return a
    if target is ElementType.PRED:
        return Expr(f"{a.operand} != {e.scalar(source, 0)}", a.depth, atomic=False)
    if source.is_complex and not target.is_complex:
        return converted(e, Expr(f"real({a})", a.depth), source.real, target)
    held = ElementType.F32 if source in _HALF else source
    if held.is_floating and target.is_integral:
        return Expr(f"convert_{held.value}_{target.value}({a})", a.depth)
    if target in _HALF:
        return _to_half(a, source, target)
    if target.is_complex and not source.is_complex:
        part = converted(e, a, source, target.real)
        return Expr(f"complex_from({part}, {e.scalar(target.real, 0)})", a.depth)
    if source in _HALF and target is ElementType.F32:
        return a
    return Expr(f"{CAST[target]}({a})", a.depth)


def _to_half(a: Expr, source: ElementType, target: ElementType) -> Expr:
    """Round to f16 or bf16; from f64 in one step, for rounding twice could differ."""
    name = target.value
    if source is ElementType.F64:
        return Expr(f"{name}_to_f32(f64_to_{name}({a}))", a.depth)
    single = a.text if source in (*_HALF, ElementType.F32) else f"float32({a})"
    return Expr(f"{name}_to_f32(f32_to_{name}({single}))", a.depth)


@ELEMENT.register(Opcode.BITCAST_CONVERT)
def _bitcast_convert(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    source, target = instruction.operands[0].shape.element, instruction.shape.element
    a = e.value(instruction.operands[0], index)
    if source is target:
        return a
    if source.byte_width != target.byte_width or ElementType.PRED in (source, target):
        raise UnsupportedError(f"bitcast-convert of {source.value} to {target.value} inside a fusion")
    if source in _HALF:
        a, source = Expr(f"f32_to_{source.value}({a})", a.depth), ElementType.U16
    if target in _HALF:
        bits = a.text if source is ElementType.U16 else f"bitcast_{source.value}_u16({a})"
        return Expr(f"{target.value}_to_f32({bits})", a.depth)
    return a if source is target else Expr(f"bitcast_{source.value}_{target.value}({a})", a.depth)
