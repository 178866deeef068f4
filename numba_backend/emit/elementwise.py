"""Element rules of the element-wise ops: ``maximum(x + y, c0)``."""

from __future__ import annotations

from ...hlo.analyses.forms import OpaqueConstant
from ...hlo.element_type import ElementType
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.elementwise import ComparisonDirection, ComparisonType
from ..loops.expressions import Binary, Expr, Unary, call
from ..loops.writer import cast
from .element import CAST, ELEMENT, ElementEmitter, loaded, rounded, stored
from .sizes import Index

_HALF = (ElementType.F16, ElementType.BF16)

_FUNCTIONS: dict[Opcode, str] = {
    Opcode.ACOS: "acos",
    Opcode.ACOSH: "acosh",
    Opcode.ASIN: "asin",
    Opcode.ASINH: "asinh",
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
    Opcode.MULHI: "mulhi",
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
"""Ops that are one function of the dialect each."""

_ARITHMETIC: dict[Opcode, tuple[str, str]] = {
    Opcode.ADD: ("+", "add"), Opcode.SUBTRACT: ("-", "subtract"), Opcode.MULTIPLY: ("*", "multiply"),
}  # fmt: skip
"""The operator of floats, and the function of integers: these wrap around, and the operators on integers, which are for
indices, do not."""
_BITWISE: dict[Opcode, tuple[str, str]] = {
    Opcode.AND: ("&", "bit_and"), Opcode.OR: ("|", "bit_or"), Opcode.XOR: ("^", "bit_xor"),
}  # fmt: skip
"""The operator of pred, and the function of integers."""
_D = ComparisonDirection
_COMPARISON = {_D.EQ: "==", _D.NE: "!=", _D.GE: ">=", _D.GT: ">", _D.LE: "<=", _D.LT: "<"}


def _call(instruction: HloInstruction, name: str, arguments: list[Expr]) -> Expr:
    return rounded(instruction.shape.element, call(name, *arguments))


_LOGICAL: dict[Opcode, str] = {Opcode.ADD: "|", Opcode.MAXIMUM: "|", Opcode.MULTIPLY: "&", Opcode.MINIMUM: "&"}
"""These ops on pred: a pred is a number of one bit, with 1 + 1 = 1."""


def _of_pred(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr | None:
    sign = _LOGICAL.get(instruction.opcode)
    if sign is None or instruction.shape.element is not ElementType.PRED:
        return None
    a, b = e.operands(instruction, index)
    return Binary(sign, a, b)


@ELEMENT.register(*_FUNCTIONS)
def _function(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    logical = _of_pred(e, instruction, index)
    return logical or _call(instruction, _FUNCTIONS[instruction.opcode], e.operands(instruction, index))


@ELEMENT.register(Opcode.ATAN2)
def _angle(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    """``atan2(y, x)``, or ``atan(y)`` where x is 1."""
    element = instruction.shape.element
    y, x = e.operands(instruction, index)
    is_one = element.is_floating and x.text == e.scalar(element, 1, literal=True).text
    return _call(instruction, "atan", [y]) if is_one else _call(instruction, "atan2", [y, x])


_EXTREMA = {Opcode.MAXIMUM: ("maximum", ">"), Opcode.MINIMUM: ("minimum", "<")}
_HELD = frozenset((ElementType.F16, ElementType.BF16, ElementType.F32, ElementType.F64))


@ELEMENT.register(*_EXTREMA)
def _extremum(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    """``maximum(a, b)``, or ``select(c0 > x, c0, x)`` for a float and a constant that is neither NaN nor zero: then the
    two are the same for all x, and one instruction in place of three to six, as a processor's own maximum is."""
    logical = _of_pred(e, instruction, index)
    if logical is not None:
        return logical
    name, sign = _EXTREMA[instruction.opcode]
    a, b = e.operands(instruction, index)
    if instruction.shape.element in _HELD:
        bounds = [_is_bound(o) for o in instruction.operands]
        if any(bounds):
            bound, x = (a, b) if bounds[0] else (b, a)
            return _bounded(e, sign, bound, x)
    return _call(instruction, name, [a, b])


def _bounded(e: ElementEmitter, sign: str, bound: Expr, x: Expr) -> Expr:
    x = x if x.is_simple else e.writer.let("bounded", x)
    return call("select", Binary(sign, bound, x), bound, x)


def _is_bound(instruction: HloInstruction) -> bool:
    """True for a constant, or one that is broadcast, that is a number other than zero."""
    if instruction.opcode is Opcode.BROADCAST:
        (instruction,) = instruction.operands
    if instruction.opcode is not Opcode.CONSTANT or instruction.shape.num_elements != 1:
        return False
    literal = instruction.attributes.literal
    if type(literal) is OpaqueConstant:
        return True
    value = float(literal.array.reshape(()))
    return value == value and value != 0


@ELEMENT.register(*_ARITHMETIC)
def _arithmetic(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    logical = _of_pred(e, instruction, index)
    if logical is not None:
        return logical
    element = instruction.shape.element
    sign, function = _ARITHMETIC[instruction.opcode]
    a, b = e.operands(instruction, index)
    if element.is_integral or (element.is_complex and instruction.opcode is Opcode.MULTIPLY):
        return rounded(element, call(function, a, b))
    return rounded(element, Binary(sign, a, b))


@ELEMENT.register(*_BITWISE)
def _bitwise(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    a, b = e.operands(instruction, index)
    sign, function = _BITWISE[instruction.opcode]
    return Binary(sign, a, b) if instruction.shape.element is ElementType.PRED else call(function, a, b)


@ELEMENT.register(Opcode.DIVIDE)
def _divide(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    a, b = e.operands(instruction, index)
    element = instruction.shape.element
    if element.is_integral:
        return call("idiv", a, b)
    if element.is_complex:
        return call("divide", a, b)
    return rounded(element, Binary("/", a, b))


@ELEMENT.register(Opcode.REMAINDER)
def _remainder(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    return _call(instruction, "remainder", e.operands(instruction, index))


@ELEMENT.register(Opcode.NEGATE)
def _negate(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    element = instruction.shape.element
    return rounded(element, call("negate", a) if element.is_integral else Unary("-", a))


@ELEMENT.register(Opcode.NOT)
def _not(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    return Unary("not", a) if instruction.shape.element is ElementType.PRED else call("bit_not", a)


@ELEMENT.register(Opcode.IS_FINITE)
def _is_finite(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    return call("is_finite", a).ne(0)


@ELEMENT.register(Opcode.COMPARE)
def _compare(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    a, b = e.operands(instruction, index)
    sign = _COMPARISON[instruction.attributes.direction]
    element = instruction.operands[0].shape.element
    if instruction.attributes.type is ComparisonType.TOTALORDER and element.is_floating:
        return Binary(sign, call("total_order_key", a), call("total_order_key", b))
    if element.is_complex:
        name = "eq" if instruction.attributes.direction is ComparisonDirection.EQ else "ne"
        return call(name, a, b).ne(0)
    if element is ElementType.PRED:
        return Binary(sign, cast("uint8", a), cast("uint8", b))
    return Binary(sign, a, b)


@ELEMENT.register(Opcode.REDUCE_PRECISION)
def _reduce_precision(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    """``reduce_precision(x, 5, 7)``; f16 in its own bits, which differ from f32's for subnormals."""
    (a,) = e.operands(instruction, index)
    attributes, element = instruction.attributes, instruction.shape.element
    bits = [min(n, 64) for n in (attributes.exponent_bits, attributes.mantissa_bits)]
    if element is ElementType.F16:
        return call("f16_to_f32", call("reduce_precision_f16", call("f32_to_f16", a), *bits))
    return rounded(element, call("reduce_precision", a, *bits))


@ELEMENT.register(Opcode.SELECT)
def _select(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    return call("select", *e.operands(instruction, index))


@ELEMENT.register(Opcode.CLAMP)
def _clamp(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    low, x, high = e.operands(instruction, index)
    if instruction.shape.element is ElementType.PRED:
        return (low | x) & high
    if instruction.shape.element not in _HELD:
        return call("minimum", call("maximum", low, x), high)
    above, _, below = map(_is_bound, instruction.operands)
    x = _bounded(e, ">", low, x) if above else call("maximum", low, x)
    return _bounded(e, "<", high, x) if below else call("minimum", x, high)


@ELEMENT.register(Opcode.COPY)
def _copy(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    return e.value(instruction.operands[0], index)


@ELEMENT.register(Opcode.COMPLEX)
def _complex(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    return call("complex_from", *e.operands(instruction, index))


@ELEMENT.register(Opcode.REAL)
def _real(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    return call("real", a) if instruction.operands[0].shape.element.is_complex else a


@ELEMENT.register(Opcode.IMAG)
def _imag(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    if instruction.operands[0].shape.element.is_complex:
        return call("imag", a)
    return e.scalar(instruction.shape.element, 0)


@ELEMENT.register(Opcode.CONVERT)
def _convert(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    (a,) = e.operands(instruction, index)
    return converted(e, a, instruction.operands[0].shape.element, instruction.shape.element)


def converted(e: ElementEmitter, a: Expr, source: ElementType, target: ElementType) -> Expr:
    """`a`, held as `source`, converted to be held as `target`."""
    if source is target:
        return a
    if source.is_small and source.is_floating:
        return converted(e, call(f"{source.value}_to_f32", a), ElementType.F32, target)
    if target.is_small and target is not source:
        return _to_small(e, a, source, target)
    if target is ElementType.PRED:
        return a.ne(e.scalar(source, 0))
    if source.is_complex and not target.is_complex:
        return converted(e, call("real", a), source.real, target)
    held = ElementType.F32 if source in _HALF else source
    if held.is_floating and target.is_integral:
        return call(f"convert_{held.value}_{target.value}", a)
    if target in _HALF:
        return _to_half(a, source, target)
    if target.is_complex and not source.is_complex:
        return call("complex_from", converted(e, a, source, target.real), e.scalar(target.real, 0))
    if source in _HALF and target is ElementType.F32:
        return a
    return cast(CAST[target], a)


def _to_small(e: ElementEmitter, a: Expr, source: ElementType, target: ElementType) -> Expr:
    """Floats are rounded once. Integers wrap; a float is first clamped to the integer's range."""
    if target.is_floating:
        if source in (ElementType.F64, ElementType.C128):
            real = a if source is ElementType.F64 else call("real", a)
            return call(f"f32_to_{target.value}", call("f64_to_odd_f32", real))
        return call(f"f32_to_{target.value}", converted(e, a, source, ElementType.F32))
    wide = ElementType.S8 if target.is_signed else ElementType.U8
    value = converted(e, a, source, wide)
    if source.is_inexact:
        low = -1 << (target.bit_width - 1) if target.is_signed else 0
        high = low + (1 << target.bit_width) - 1
        return call("minimum", call("maximum", value, cast(CAST[wide], low)), cast(CAST[wide], high))
    return rounded(target, value)


def _to_half(a: Expr, source: ElementType, target: ElementType) -> Expr:
    """Round to f16 or bf16; from f64 in one step, because rounding twice could give another result."""
    if source is ElementType.F64:
        return call(f"{target.value}_to_f32", call(f"f64_to_{target.value}", a))
    return rounded(target, a if source in (*_HALF, ElementType.F32) else cast("float32", a))


@ELEMENT.register(Opcode.BITCAST_CONVERT)
def _bitcast_convert(e: ElementEmitter, instruction: HloInstruction, index: Index) -> Expr:
    source, target = instruction.operands[0].shape.element, instruction.shape.element
    a = e.value(instruction.operands[0], index)
    if source is target:
        return a
    if source.bit_width != target.bit_width or ElementType.PRED in (source, target):
        raise UnsupportedError(f"bitcast-convert of {source.value} to {target.value} inside a fusion")
    if source.is_small or target.is_small:
        return _small_bits(a, source, target)
    if source in _HALF:
        a, source = stored(source, a), ElementType.U16
    if target in _HALF:
        bits = a if source is ElementType.U16 else call(f"bitcast_{source.value}_u16", a)
        return call(f"{target.value}_to_f32", bits)
    return a if source is target else call(f"bitcast_{source.value}_{target.value}", a)


def _small_bits(a: Expr, source: ElementType, target: ElementType) -> Expr:
    """Through the byte in memory, which is the form in which small floats are held."""
    byte = call("bitcast_s8_u8", a) if source is ElementType.S8 else stored(source, a)
    if target is ElementType.S8:
        return call("bitcast_u8_s8", byte)
    return loaded(target, byte)
